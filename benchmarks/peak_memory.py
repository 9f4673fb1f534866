# SPDX-License-Identifier: Apache-2.0
"""Peak memory of every verb by the size of the log: the table of docs/robustness.md.

python benchmarks/peak_memory.py [--beams 1 10 30] [--folder out/memory] [--verbs fire learn ...]

Logs of so many million beams are fired through the shipped scene trail and stay in the folder. Each command runs in a
process of its own; what is printed is the largest memory that it ever held, as the system counts it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

SENSOR, BEAMS_PER_SWEEP = "hdl-64e-s2", 133_312
TRAJECTORY = "0 0 0 1.8 0 0 0 1\n{end} {far} 0 1.8 0 0 0 1\n"


def peak_mb(words: list[str], folder: Path) -> tuple[float, float]:
    """Run a command; return its peak memory [MB] and its time [s].

    Raises:
        SystemExit: it failed.
    """
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *words]
    start = time.perf_counter()
    with (folder / "said.txt").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        if status != 0:
            said.seek(0)
            raise SystemExit(f"{' '.join(words)}: {said.read()}")
    return used.ru_maxrss / 1024, time.perf_counter() - start


def commands(n_sweeps: int) -> dict[str, list[str]]:
    """Return the commands to measure, by what the table calls them."""
    fire = ["--sensor", SENSOR, "--trajectory", "drive.tum", "--sweeps", str(n_sweeps), "--sub-rays", "1"]
    return {
        "fire, to Parquet": ["fire", "trail", "-o", "drive.parquet", *fire],
        "info": ["info", "drive.parquet"],
        "convert to MCAP": ["convert", "drive.parquet", "drive.mcap"],
        "convert MCAP to Parquet": ["convert", "drive.mcap", "again.parquet"],
        "convert to LAZ": ["convert", "drive.parquet", "drive.laz"],
        "convert LAZ to Parquet": ["convert", "drive.laz", "again.parquet"],
        "convert to KITTI": ["convert", "drive.parquet", "kitti", "--to", "kitti"],
        "convert KITTI to Parquet": ["convert", "kitti", "again.parquet"],
        "learn --model voxel": ["learn", "drive.parquet", "-o", "voxel.world", "--model", "voxel"],
        "learn --model hybrid": ["learn", "drive.parquet", "-o", "hybrid.world", "--model", "hybrid"],
        "learn --model refined": ["learn", "drive.parquet", "-o", "refined.world", "--model", "refined"],
        "fire the voxel world": ["fire", "voxel.world", "-o", "fired.parquet", *fire[:-2]],
        "compare": ["compare", "drive.parquet", "voxel.world"],
        "report": ["report", "drive.parquet", "voxel.world", "-o", "report.html"],
    }


def main() -> None:
    """Print one row for each command, one column for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 10, 30], help="millions of beams")
    parser.add_argument("--folder", type=Path, default=Path("out/memory"))
    parser.add_argument("--verbs", nargs="+", default=[], help="only commands that begin with one of these")
    given = parser.parse_args()
    rows: dict[str, list[str]] = {}
    for millions in given.beams:
        folder = given.folder / str(millions)
        folder.mkdir(parents=True, exist_ok=True)
        n_sweeps = max(1, round(millions * 1e6 / BEAMS_PER_SWEEP))
        end_s = n_sweeps * 0.1 + 1
        (folder / "drive.tum").write_text(TRAJECTORY.format(end=end_s, far=min(40.0, end_s)))
        for name, words in commands(n_sweeps).items():
            if given.verbs and not name.startswith(tuple(given.verbs)):
                continue
            memory_mb, took_s = peak_mb(words, folder)
            rows.setdefault(name, []).append(f"{memory_mb:,.0f} MB, {took_s:.0f} s")
            print(f"{millions} M beams, {name}: {rows[name][-1]}", flush=True)
        shutil.rmtree(folder / "kitti", ignore_errors=True)
    print("\n| command | " + " | ".join(f"{each} M beams" for each in given.beams) + " |")
    print("| --- |" + " --- |" * len(given.beams))
    for name, cells in rows.items():
        print(f"| `{name}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
