# SPDX-License-Identifier: Apache-2.0
"""Steps that several models share."""
