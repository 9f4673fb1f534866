# SPDX-License-Identifier: Apache-2.0
"""Planar worlds of line segments, and models of a planar sensor that are learned from its readings."""

from hedgerow.planar.extraction import extract_segments
from hedgerow.planar.site import PlanarSite, scan_beams
from hedgerow.planar.world import PlanarWorld, readings_of

__all__ = ["PlanarSite", "PlanarWorld", "extract_segments", "readings_of", "scan_beams"]
