# SPDX-License-Identifier: Apache-2.0
"""Making beams and reading logs must not be what one waits for."""

import tempfile
from pathlib import Path

import numpy as np
import sites
from measure import at_least, best_seconds

from hedgerow import Log, Pose, SceneWorld, Trajectory, read_log, simulate, write_log


def drive():
    scene, beams = sites.gaussian_scene(), sites.drive()
    trajectory = Trajectory.line((-5, 0, 2), (5, 0, 2), 5.0)
    drive_s, fire_s = best_seconds(
        lambda: sites.sensor().drive(trajectory, mount=Pose(), n_sweeps=8),
        lambda: scene.fire(beams, max_range_m=120.0),
    )
    detail = f"{len(beams) / drive_s / 1e6:.0f} M beams/s"
    return at_least("Sensor.drive / fire", fire_s / drive_s, 1, detail)


def main_loop():
    """Aim, fire and assemble the log of one sweep, against firing beams that are there already."""
    world, beams = SceneWorld(sites.gaussian_scene(), max_range_m=120.0), sites.drive(1)
    simulation = simulate(world, sites.sensor(), Trajectory.line((-5, 0, 2), (5, 0, 2), 5.0), noise=False)
    loop_s, fire_s = best_seconds(lambda: simulation.sweep(0), lambda: world.fire(beams))
    return at_least("fire / a sweep of simulate", fire_s / loop_s, 0.8, f"{loop_s * 1e3:.1f} ms a sweep")


def reading():
    n = 10_000_000
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(n, 3)).astype(np.float32)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    log = Log.from_arrays(
        origins=np.repeat(rng.normal(size=(n // 1000, 3)), 1000, axis=0),
        directions=direction,
        ranges=rng.uniform(1, 100, n).astype(np.float32),
        times=np.arange(n) * 750,
        rings=np.arange(n) % 64,
        sweeps=np.arange(n) // 133_333,
    )
    columns = [a for a in [*log.beams.columns().values(), log.returns.range_m] if a is not None]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ten_million.parquet"
        write_log(log, path)
        read_s, copy_s = best_seconds(lambda: read_log(path), lambda: [a.copy() for a in columns], rounds=3)
    detail = f"{n / read_s / 1e6:.0f} M beams/s; a copy in memory is {read_s / copy_s:.0f} times faster"
    return at_least("read_log of 10 M beams, M beams/s / 5", n / read_s / 5e6, 1, detail)


def results():
    yield drive()
    yield main_loop()
    yield reading()
