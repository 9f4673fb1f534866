# SPDX-License-Identifier: Apache-2.0
"""Views that were not seen, scored as in the lidar re-simulation papers: KITTI-360, and other drives on true beams."""
