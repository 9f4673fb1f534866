# SPDX-License-Identifier: Apache-2.0
"""Scan patterns: where each kind of lidar points, pulse by pulse."""
