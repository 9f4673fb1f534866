# SPDX-License-Identifier: Apache-2.0
"""Experiments of Tallavajhula 2018 chapter 3: planar sensors, and the robot programs that are developed with them."""
