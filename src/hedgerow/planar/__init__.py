# SPDX-License-Identifier: Apache-2.0
"""Planar worlds of line segments, and models of a planar sensor that are learned from its readings."""
