# SPDX-License-Identifier: Apache-2.0
"""ROS 1 bags, ROS 2 bags and MCAP files, read and written without ROS by the package rosbags.

bag.py opens any of them, points.py and grid.py turn PointCloud2 messages into points and firings, tf.py and poses.py
say where the sensor was, log.py puts a log together, writer.py writes one.
"""
