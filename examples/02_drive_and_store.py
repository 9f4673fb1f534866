# SPDX-License-Identifier: Apache-2.0
"""Drive a lidar along a trajectory, sweep by sweep, straight into a Parquet log; read two sweeps of it back."""

import tempfile
from pathlib import Path

import hedgerow as hr
from hedgerow.io.parquet.writer import LogWriter
from hedgerow.scenes.site import load_site

site = load_site("street")  # a shipped scene; hedgerow scenes lists them
world, trajectory = site.world(), site.trajectories["first"]
sensor = hr.Sensor.named("os1-64")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "street.parquet"
    with LogWriter(path) as writer:  # bounded memory, and nothing half written if it stops
        for beams in sensor.drive_sweeps(trajectory, n_sweeps=10):
            writer.append(world.fire(beams, seed=7, sensor=sensor))

    middle = hr.read_log(path, sweeps=range(4, 6))
    print(f"{hr.open_log(path).n_beams:,} pulses stored in {path.stat().st_size / 1e6:.1f} MB")
    print(f"sweeps 4 and 5: {len(middle):,} pulses, {len(middle.points()):,} points")
