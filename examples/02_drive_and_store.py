# SPDX-License-Identifier: Apache-2.0
"""Drive a lidar along a trajectory, sweep by sweep, straight into a log; read two sweeps of it back."""

import tempfile
from pathlib import Path

import hedgerow as hr
from hedgerow.io import open_sink
from hedgerow.scenes.site import load_site

site = load_site("street")  # a shipped scene; hedgerow scenes lists them
drive = hr.simulate(site.world(), hr.Sensor.named("os1-64"), site.trajectories["first"], seed=7, sweeps=10)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "street.parquet"
    with open_sink(path) as sink:  # any format that is written; bounded memory, nothing half written if it stops
        for sweep in drive:
            sink.append(sweep)

    middle = hr.read_log(path, sweeps=range(4, 6))
    print(f"{hr.open_log(path).n_beams:,} pulses stored in {path.stat().st_size / 1e6:.1f} MB")
    print(f"sweeps 4 and 5: {len(middle):,} pulses, {len(middle.points()):,} points")

alone = drive.sweep(4)  # any sweep can be fired alone, with the same bytes
print(f"sweep 4 fired alone: {len(alone.points()):,} points, fired at {alone.metadata['world']['scene']}")
