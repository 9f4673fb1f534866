# SPDX-License-Identifier: Apache-2.0
"""Pulses with width: nine sub-rays of an HDL-64E over instanced grass, against a raw Embree loop on the same rays."""

from functools import cache

import hedgerow_raw
import numpy as np
import sites
from measure import Result, at_least, best_seconds

from hedgerow import Pose, Scene, Sensor, Trajectory
from hedgerow.physics.receiver import BeamSettings
from hedgerow.physics.shapes import blades
from hedgerow.physics.stencil import Cone, make_stencil
from hedgerow.physics.world import PhysicsWorld

THREADS = 2
SUB_RAYS = 9


@cache
def sensor():
    return Sensor.named("hdl-64e", rate_hz=10)


@cache
def meadow():
    """A square of 300 m: 900 patches of 10 m by 10 m, 2000 bent blades each, on a rolling ground; as Scene and raw."""
    rng = np.random.default_rng(1)
    n = 2000
    foot = np.c_[rng.uniform(0, 10, (n, 2)), np.zeros(n)]
    patch_mesh = blades(foot, rng.uniform(0.15, 0.5, n), 0.008, rng, segments=20)
    vertices, triangles = sites.terrain(301, 160)
    places = sites.patch_places(30)
    ground, patch, scene, raw = Scene(), Scene(), Scene(), hedgerow_raw.Raw()
    ground.add_mesh(vertices, triangles, noise=sites.NOISE, label=1)
    patch.add_mesh(*patch_mesh, noise=sites.NOISE, label=2)
    scene.place(ground, np.eye(4))
    scene.place(patch, places)
    raw.mesh(vertices, triangles)
    raw.mesh(patch_mesh.vertices_m.astype(np.float32), patch_mesh.triangles.astype(np.uint32))
    raw.instance(0, np.eye(4, dtype=np.float32)[None, :3].reshape(1, 12))
    raw.instance(1, np.ascontiguousarray(places[:, :3].reshape(-1, 12), dtype=np.float32))
    raw.build()
    return scene, raw


@cache
def pulses(n_sweeps=2):
    trajectory = Trajectory.line((-5, 0, 2), (5, 0, 2), 5.0)
    return sensor().drive(trajectory, mount=Pose(), n_sweeps=n_sweeps)


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
    origin = np.repeat(beams.origin_m[order], SUB_RAYS, axis=0)
    rays = np.where(np.abs(rays) < 1e-18, 0, rays)  # see `traceable` in cpp/batch.hpp
    return np.ascontiguousarray(origin, np.float32), np.ascontiguousarray(rays.reshape(-1, 3), np.float32), order


def results():
    scene, raw = meadow()
    beams, (origin, direction, order) = pulses(), sub_rays()
    far_m = sensor().max_range_m
    out = np.empty(len(direction), np.float32)
    world = PhysicsWorld(scene, BeamSettings(sub_rays=SUB_RAYS))
    hits = world.fire_detailed(beams, sensor=sensor(), sub_rays=True).sub_rays.range_m[order].ravel()
    hedgerow_raw.trace8(raw, origin, direction, far_m, THREADS, out)
    seen = (out < far_m) & (out > sensor().min_range_m)
    agree = np.mean(np.abs(np.where(seen, out, 0) - np.where(np.isfinite(hits), hits, 0)) < 0.01)
    if agree < 0.99:
        raise SystemExit(f"beam: only {agree:.1%} of the sub-rays agree with the raw loop")
    waveform = PhysicsWorld(scene, BeamSettings(sub_rays=SUB_RAYS, mode="waveform"))
    fire_s, raw_s, waveform_s = best_seconds(
        lambda: world.fire(beams, sensor=sensor(), threads=THREADS),
        lambda: hedgerow_raw.trace8(raw, origin, direction, far_m, THREADS, out),
        lambda: waveform.fire(beams, sensor=sensor(), threads=THREADS),
        rounds=5,
    )
    n = len(beams)
    where = f"{scene.n_elements / 1e6:.0f} M instanced triangles"
    detail = f"{SUB_RAYS * n / fire_s / 1e6:.1f} of {SUB_RAYS * n / raw_s / 1e6:.1f} M sub-rays/s"
    yield at_least(f"fire_beam / raw Embree packets, {where}", raw_s / fire_s, 0.8, detail)
    per_s = sensor().pulses_per_sweep / sensor().sweep_s
    real_time = f"{n / fire_s / per_s:.2f} times real time of {per_s / 1e6:.2f} M pulses/s"
    yield Result(f"hdl-64e, {SUB_RAYS} sub-rays, {THREADS} threads", f"{n / fire_s / 1e6:.2f} M pulses/s", "", None)
    yield Result("", real_time, "", None)
    yield Result("  the same, full waveform", f"{n / waveform_s / 1e6:.2f} M pulses/s", "", None)
