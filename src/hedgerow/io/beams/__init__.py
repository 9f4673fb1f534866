# SPDX-License-Identifier: Apache-2.0
"""From points and times to beams: what the readers of recordings share."""
