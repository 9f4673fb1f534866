# SPDX-License-Identifier: Apache-2.0
"""Captured network packets of Velodyne and Ouster lidars.

capture.py reads the files, velodyne.py and ouster.py know what the packets of a maker hold, open.py opens a recording.
All of it is NumPy: the makers' own libraries drop missing returns or weigh more than Hedgerow.
"""
