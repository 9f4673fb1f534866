# SPDX-License-Identifier: Apache-2.0
"""Pulses with width: nine sub-rays of an HDL-64E in the courtyard, against a raw Embree loop over the same sub-rays.

The raw loop traces the engine's own search trees, so that nothing but the work around them differs.
"""

import os
import time
from functools import cache
from pathlib import Path

import hedgerow_raw  # pyright: ignore[reportMissingImports]  # built by run.py
import numpy as np
import sites
from measure import Result, at_least, best_seconds

from hedgerow import Sensor
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.stencil import Cone, make_stencil
from hedgerow.scenes.site import load_site
from hedgerow.world.pulsed import PhysicsWorld

THREADS = 2
SUB_RAYS = 9
PAPER_REAL_TIME = 6.8 / 4.7
"""Goodin 2018 §3.3, of the HDL-64E on 40 processors and of the LMS-291 on 4: 6.8 s simulated in 4.7 s, which is 1.45;
the text says "approximately 30 % faster than real time" of both."""


@cache
def sensor():
    return Sensor.named("hdl-64e", rate_hz=10)


@cache
def courtyard():
    """The shipped scene (Goodin 2018 §3.5.1), how long it took to build, and the memory that it took [s], [bytes]."""
    before, start = memory_bytes(), time.perf_counter()
    site = load_site("courtyard")
    site.scene.build()
    return site, time.perf_counter() - start, memory_bytes() - before


def memory_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@cache
def pulses(n_sweeps=2):
    return sensor().drive(courtyard()[0].trajectories["drive"], start_s=10.0, n_sweeps=n_sweeps)


def sub_rays():
    """The sub-rays of all pulses, in the order that serves packets best: pulses along the ring, nine by nine."""
    beams = pulses()
    order = sites.ring_order(beams)
    direction = beams.direction[order].astype(np.float64)
    left = np.stack([-direction[:, 1], direction[:, 0], np.zeros(len(order))], axis=1)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    up = np.cross(direction, left)
    across, upward = (make_stencil("rectangular", SUB_RAYS).points * Cone.of(sensor().config.beam).tangent).T
    rays = direction[:, None] + across[:, None] * left[:, None] + upward[:, None] * up[:, None]
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    origin = np.repeat(beams.origin_m[order] - courtyard()[0].scene.origin_m, SUB_RAYS, axis=0)
    rays = np.where(np.abs(rays) < 1e-18, 0, rays)  # see `traceable` in cpp/trace/batch.hpp
    return np.ascontiguousarray(origin, np.float32), np.ascontiguousarray(rays.reshape(-1, 3), np.float32), order


def lms_results():
    """The other sensor of Goodin 2018 §3.3, on 4 processors there."""
    lms = Sensor.named("lms-291")
    beams = lms.drive(courtyard()[0].trajectories["drive"], start_s=10.0, n_sweeps=200)
    world = PhysicsWorld(courtyard()[0].scene, BeamSettings(sub_rays=SUB_RAYS))
    (fire_s,) = best_seconds(lambda: world.fire(beams, sensor=lms, threads=THREADS), rounds=5)
    per_s = lms.pulses_per_sweep / lms.sweep_s
    real_time = len(beams) / fire_s / per_s
    what = f"lms-291, {SUB_RAYS} sub-rays, {THREADS} threads"
    yield Result(what, f"{real_time:.0f} times real time of {per_s / 1e3:.1f} k pulses/s", "", None)
    core_for_core = (real_time / THREADS) / (PAPER_REAL_TIME / 4)
    yield Result("  per core, against the 4 processors of Goodin 2018", f"{core_for_core:.0f} times", "", None)


def results():
    site, build_s, scene_bytes = courtyard()
    scene, address = site.scene, site.scene.native.embree_address()
    beams, (origin, direction, order) = pulses(), sub_rays()
    far_m = sensor().max_range_m
    out = np.empty(len(direction), np.float32)
    world = PhysicsWorld(scene, BeamSettings(sub_rays=SUB_RAYS))
    traced = world.fire_detailed(beams, sensor=sensor(), sub_rays=True).sub_rays
    assert traced is not None
    hits = traced.range_m[order].ravel()
    hedgerow_raw.trace8_at(address, origin, direction, far_m, THREADS, out)
    seen = (out < far_m) & (out > sensor().min_range_m)
    agree = np.mean(np.abs(np.where(seen, out, 0) - np.where(np.isfinite(hits), hits, 0)) < 0.01)
    if agree < 0.99:
        raise SystemExit(f"beam: only {agree:.1%} of the sub-rays agree with the raw loop")
    waveform = PhysicsWorld(scene, BeamSettings(sub_rays=SUB_RAYS, mode="waveform"))
    fire_s, raw_s, waveform_s = best_seconds(
        lambda: world.fire(beams, sensor=sensor(), threads=THREADS),
        lambda: hedgerow_raw.trace8_at(address, origin, direction, far_m, THREADS, out),
        lambda: waveform.fire(beams, sensor=sensor(), threads=THREADS),
        rounds=5,
    )
    n = len(beams)
    where = f"courtyard of {site.n_triangles / 1e6:.0f} M triangles"
    detail = f"{SUB_RAYS * n / fire_s / 1e6:.1f} of {SUB_RAYS * n / raw_s / 1e6:.1f} M sub-rays/s"
    yield at_least(f"fire_pulses / raw Embree packets, {where}", raw_s / fire_s, 0.8, detail)
    per_s = sensor().pulses_per_sweep / sensor().sweep_s
    real_time = f"{n / fire_s / per_s:.2f} times real time of {per_s / 1e6:.2f} M pulses/s"
    yield Result(f"hdl-64e, {SUB_RAYS} sub-rays, {THREADS} threads", f"{n / fire_s / 1e6:.2f} M pulses/s", "", None)
    yield Result("", real_time, "", None)
    core_for_core = (n / fire_s / THREADS) / (PAPER_REAL_TIME * 1e6 / 40)
    yield Result("  per core, against the 40 processors of Goodin 2018", f"{core_for_core:.1f} times", "", None)
    yield from lms_results()
    yield Result("  building it", f"{build_s:.1f} s, {scene_bytes / 1e9:.2f} GB", "", None)
    yield Result("  the same, full waveform", f"{n / waveform_s / 1e6:.2f} M pulses/s", "", None)
