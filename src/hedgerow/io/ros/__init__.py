# SPDX-License-Identifier: Apache-2.0
"""ROS 1 bags, ROS 2 bags and MCAP files, read and written without ROS by the package rosbags.

bag.py opens any of them; check.py and limits.py see to it that none does harm. topic.py turns PointCloud2 messages into
points and firings, poses.py says where the sensor was, open.py puts a log together. writer.py writes one, grid.py as
organised clouds; messages.py has the bytes of messages, for live output too.
"""
