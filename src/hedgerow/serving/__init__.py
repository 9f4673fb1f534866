# SPDX-License-Identifier: Apache-2.0
"""What every server stands behind: who may connect (`access`), the front door (`guard`), how much one may send."""
