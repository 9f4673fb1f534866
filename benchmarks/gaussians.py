# SPDX-License-Identifier: Apache-2.0
"""Firing at half a million permeable Gaussians: against single rays, against the clock, and over threads."""

import hedgerow_raw  # pyright: ignore[reportMissingImports]  # built by run.py
import numpy as np
import sites
from measure import at_least, best_seconds

FAR_M = 120.0
HDL64E_PULSES_PER_S = 1.333e6


def results():
    scene, beams = sites.gaussian_scene(), sites.drive()
    raw = hedgerow_raw.Raw()
    raw.gaussians(*sites.raw_gaussians())
    raw.build()
    order = sites.ring_order(beams)
    origin = np.ascontiguousarray(beams.origin_m[order], dtype=np.float32)
    direction, out = np.ascontiguousarray(beams.direction[order]), np.empty(len(order), dtype=np.float32)
    hits = scene.fire(beams, max_range_m=FAR_M)
    hedgerow_raw.trace1(raw, origin, direction, FAR_M, 2, out)
    if abs(np.mean(out < FAR_M) - np.mean(hits.element >= 0)) > 0.01:
        raise SystemExit("gaussians: packets and single rays disagree on how many pulses return")
    two_s, one_s, single_s = best_seconds(
        lambda: scene.fire(beams, max_range_m=FAR_M, threads=2),
        lambda: scene.fire(beams, max_range_m=FAR_M, threads=1),
        lambda: hedgerow_raw.trace1(raw, origin, direction, FAR_M, 2, out),
    )
    rate = len(beams) / two_s
    detail = f"{rate / 1e6:.1f} of {len(beams) / single_s / 1e6:.1f} M rays/s"
    yield at_least("fire / single rays, 500,000 Gaussians", single_s / two_s, 1.8, detail)
    yield at_least("times real time, HDL-64E at full rate", rate / HDL64E_PULSES_PER_S, 6)
    yield at_least("two threads / one", one_s / two_s, 1.8)
