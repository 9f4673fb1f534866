# SPDX-License-Identifier: Apache-2.0
"""Robot applications that use a simulated lidar as they would a real one."""
