# SPDX-License-Identifier: Apache-2.0
"""Files of points: PCD, PLY, LAS and LAZ."""
