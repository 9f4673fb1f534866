# SPDX-License-Identifier: Apache-2.0
"""A drive of several kilometres, recorded, learned and fired again within a few gigabytes of memory.

    python benchmarks/long_trail.py --km 3 --beams 100e6 --models voxel topdown refined --workers 2

Grows a trail through meadow and wood (grass, shrubs, trees, boulders on rough ground), drives an HDL-32E along it, and
runs `hedgerow` as a user would, each command in a process of its own. Prints beams per second, processor time, and the
peak of the memory of the process. 100 million beams take 3 GB of disk; not part of run.py.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hedgerow as hr
from hedgerow.bench.long_trail import TRAIL_SENSOR, long_trail
from hedgerow.io.parquet.reader import LogFile
from hedgerow.scenes.site import open_scene

HEDGEROW = [sys.executable, "-c", "from hedgerow.cli import main; main()"]


def timed(title, *command):
    """Run a command of hedgerow; print and return its seconds, with processor time and its peak of memory."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([*HEDGEROW, *map(str, command)], stdout=said, stderr=subprocess.STDOUT, text=True)
        _, status, used = os.wait4(process.pid, 0)  # its workers, which it waits for, included
        took_s = time.perf_counter() - start
        said.seek(0)
        lines = said.read().splitlines()
    if status:
        raise SystemExit(f"{title}: {lines[-1]}")
    peak_gb, processor_s = used.ru_maxrss * 1024 / 1e9, used.ru_utime + used.ru_stime
    print(
        f"{title:28} {took_s:6.0f} s, {processor_s:6.0f} s of the processors, {peak_gb:.2f} GB, "
        f"load {os.getloadavg()[0]:.1f}   {lines[-2]}",
        flush=True,
    )
    return took_s


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--km", type=float, default=0.3)
    parser.add_argument("--beams", type=float, default=3e6)
    parser.add_argument("--models", nargs="*", default=["voxel", "topdown"])
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("out/long-trail"))
    parser.add_argument("--way", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        hr.write_trajectory(
            open_scene(given.way).build(wavelength_nm=905.0).trajectories["drive"], given.folder / "drive.tum"
        )
        return
    given.folder.mkdir(parents=True, exist_ok=True)
    sensor, workers = hr.Sensor.named(TRAIL_SENSOR), ["--workers", given.workers] if given.workers else []
    sweeps = round(given.beams / sensor.pulses_per_sweep)
    speed = given.km * 1000 / (sweeps * sensor.sweep_s) * 0.98
    path = given.folder / "long-trail.toml"
    path.write_text(long_trail(given.km * 1000, speed), encoding="utf-8")
    print(f"{given.km:g} km at {speed:.2f} m/s, {sweeps:,} sweeps of {TRAIL_SENSOR}, {os.cpu_count()} cores, {workers}")
    log = given.folder / "drive"
    if not log.exists():
        timed("fire the scene", "fire", path, "--sweeps", sweeps, "-o", log, *workers)
    n_beams = LogFile(log).n_beams
    for model in given.models:
        world = given.folder / f"{model}.world"
        took_s = timed(f"learn {model}", "learn", log, "-o", world, "--model", model, *workers)
        print(f"{'':32} {n_beams / took_s / 1e6:8.2f} M beams/s")
    if given.models:
        world = given.folder / f"{given.models[0]}.world"
        again = ["--sensor", TRAIL_SENSOR, "--trajectory", given.folder / "drive.tum", "--sweeps", min(sweeps, 100)]
        write_way = [sys.executable, __file__, "--way", path, "--folder", given.folder]
        subprocess.run(write_way, check=True)  # elsewhere: Linux counts the memory of this process to those it starts
        for memory in ([], ["--memory", "200M"]):
            title = f"fire {given.models[0]} {' '.join(memory)}"
            timed(title, "fire", world, *again, "-o", given.folder / "again", *memory, *workers)


if __name__ == "__main__":
    main()
