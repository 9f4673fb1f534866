# SPDX-License-Identifier: Apache-2.0
"""Run KISS-ICP on a KITTI sequence folder and write its trajectory as TUM: the wrapper that app.toml calls.

python run.py FOLDER OUT.tum --voxel 1.0 --points 20 --threshold 2.0 --iterations 100

Needs kiss-icp, and nothing of Hedgerow. It reads the clouds and their times, not the poses that lie beside them.
"""

import argparse
from pathlib import Path

import numpy as np
from kiss_icp.config import KISSConfig  # pyright: ignore[reportMissingImports] - not a dependency
from kiss_icp.kiss_icp import KissICP  # pyright: ignore[reportMissingImports]


def quaternion_xyzw(turn: np.ndarray) -> np.ndarray:
    """Return the unit quaternion of a (3, 3) rotation: the eigenvector of Bar-Itzhack's matrix."""
    m = turn
    k = np.array(
        [
            [m[0, 0] - m[1, 1] - m[2, 2], m[1, 0] + m[0, 1], m[2, 0] + m[0, 2], m[2, 1] - m[1, 2]],
            [m[1, 0] + m[0, 1], m[1, 1] - m[0, 0] - m[2, 2], m[2, 1] + m[1, 2], m[0, 2] - m[2, 0]],
            [m[2, 0] + m[0, 2], m[2, 1] + m[1, 2], m[2, 2] - m[0, 0] - m[1, 1], m[1, 0] - m[0, 1]],
            [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
        ]
    )
    return np.linalg.eigh(k / 3)[1][:, -1]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--voxel", type=float, required=True)
    parser.add_argument("--points", type=int, required=True)
    parser.add_argument("--threshold", type=float, required=True)
    parser.add_argument("--iterations", type=int, required=True)
    given = parser.parse_args()

    config = KISSConfig()
    config.data.deskew = False  # the clouds come deskewed
    config.mapping.voxel_size = given.voxel
    config.mapping.max_points_per_voxel = given.points
    config.adaptive_threshold.initial_threshold = given.threshold
    config.registration.max_num_iterations = given.iterations
    config.registration.max_num_threads = 1
    odometry = KissICP(config)

    lines = []
    times = (given.folder / "times.txt").read_text().split()
    clouds = sorted((given.folder / "velodyne").glob("*.bin"))
    for stamp, path in zip(times, clouds, strict=True):
        points = np.fromfile(path, dtype=np.float32).reshape(-1, 4)[:, :3].astype(np.float64)
        odometry.register_frame(points, np.zeros(len(points)))
        pose = odometry.last_pose
        numbers = (*pose[:3, 3], *quaternion_xyzw(pose[:3, :3]))
        lines.append(" ".join([stamp, *(f"{number:.9f}" for number in numbers)]))
    given.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
