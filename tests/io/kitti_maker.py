# SPDX-License-Identifier: Apache-2.0
"""Small folders in the layouts of KITTI, and the drive of the real recording where it is at hand."""

from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[3] / "shared" / "data"
DRIVE = DATA / "kitti_raw_sample" / "2011_09_26" / "2011_09_26_drive_0005_sync"
STAMPS = [f"2011-09-26 13:04:32.{tenths}00000000" for tenths in range(1, 9)]
"""A tenth of a second apart."""


def points(seed: int, n: int = 30) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.uniform(-20, 20, (n, 2)), rng.uniform(-2, 2, n), rng.random(n)]).astype("<f4")


def make_raw(folder: Path, n_sweeps: int = 3) -> Path:
    """A drive that moves 1e-6 degrees of longitude (7.3 cm at 49 degrees north) per sweep, looking east."""
    drive = folder / "2011_09_26_drive_0001_sync"
    for name in ("velodyne_points/data", "oxts/data"):
        (drive / name).mkdir(parents=True)
    for k in range(n_sweeps):
        points(k).tofile(drive / "velodyne_points" / "data" / f"{k:010d}.bin")
        oxts = [49.0, 8.4 + 1e-6 * k, 112.0, 0.0, 0.0, 0.0] + [0.0] * 24
        (drive / "oxts" / "data" / f"{k:010d}.txt").write_text(" ".join(map(repr, oxts)))
    velodyne = drive / "velodyne_points"
    (velodyne / "timestamps_start.txt").write_text("\n".join(STAMPS[:n_sweeps]) + "\n")
    (velodyne / "timestamps.txt").write_text("\n".join(s[:-8] + "50000000" for s in STAMPS[:n_sweeps]) + "\n")
    (velodyne / "timestamps_end.txt").write_text("\n".join(STAMPS[1 : n_sweeps + 1]) + "\n")
    (drive / "oxts" / "timestamps.txt").write_text("\n".join(s[:-8] + "50000000" for s in STAMPS[:n_sweeps]) + "\n")
    (folder / "calib_imu_to_velo.txt").write_text("calib_time: now\nR: 1 0 0 0 1 0 0 0 1\nT: 0 0 0\n")
    return drive


def make_sequence(folder: Path, n_sweeps: int = 3, labels: bool = False) -> Path:
    """A sequence that moves 1 m forward (the camera's z) per sweep."""
    sequence = folder / "00"
    (sequence / "velodyne").mkdir(parents=True)
    for k in range(n_sweeps):
        points(k).tofile(sequence / "velodyne" / f"{k:06d}.bin")
        if labels:
            (sequence / "labels").mkdir(exist_ok=True)
            (np.arange(30) + (7 << 16)).astype("<u4").tofile(sequence / "labels" / f"{k:06d}.label")
    poses = [f"1 0 0 0 0 1 0 0 0 0 1 {k}" for k in range(n_sweeps)]
    (sequence / "poses.txt").write_text("\n".join(poses) + "\n")
    (sequence / "times.txt").write_text("".join(f"{0.1 * k:.6f}\n" for k in range(n_sweeps)))
    (sequence / "calib.txt").write_text("P0: 1 0 0 0 0 1 0 0 0 0 1 0\nTr: 0 -1 0 0 0 0 -1 0 1 0 0 0\n")
    return sequence
