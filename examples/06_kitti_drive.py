# SPDX-License-Identifier: Apache-2.0
"""Bring a KITTI raw drive: recover what its files leave out, learn the site, fire another lidar through it.

python examples/06_kitti_drive.py FOLDER/2011_09_26/2011_09_26_drive_0005_sync

Any "synced+rectified" drive will do, with the calibration files of its day beside it.
"""

import sys
from pathlib import Path

import hedgerow as hr

if len(sys.argv) != 2:
    print(f"skipped: give the folder of a KITTI raw drive, python {Path(__file__).name} FOLDER")
    sys.exit()

drive = hr.open_log(sys.argv[1])
*learned_from, held_back = drive.sweeps[:6].tolist()
log = drive.read(learned_from)
print(f"{len(log):,} beams, {1 - log.returns.hit.mean():.1%} without return; KITTI's files hold the others only")

world = hr.learn(log, "hybrid")
real = drive.read([held_back])
scores = hr.compare(real, world, seed=7)
print(f"sweep {held_back}, which it has not seen: {scores['hits_found']:.1%} of the hits found", end=", ")
print(f"half of the beams within {scores['beam_error_median_m']:.2f} m")

sensor = hr.Sensor.named("os1-64")
place = hr.Pose(real.beams.origin_m.mean(axis=0))
seen = world.fire(sensor.sweep(place), seed=7, sensor=sensor)
print(f"an OS1-64 there: {len(seen):,} pulses, {seen.returns.hit.sum():,} returns")
