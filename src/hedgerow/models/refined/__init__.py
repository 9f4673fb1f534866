# SPDX-License-Identifier: Apache-2.0
"""The refined model: Gaussians fitted to the beams themselves. model.py is the main loop, the other files its steps."""
