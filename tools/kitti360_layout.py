# SPDX-License-Identifier: Apache-2.0
"""Write a re-packed KITTI drive in the layout of KITTI-360, to try `hedgerow reproduce kitti360-nvs` on real sweeps.

    python tools/kitti360_layout.py DATA/kitti_0029_start OUT [--sweeps 20:71] [--frame 2350]

The folder's load.py (see real_logs.py) has a class Log(folder) with image(i), sensor_beams(ticks) and the poses T at
the start, the middle and the end of each sweep. Clouds are written as measured, in the frame of the moving sensor, with
one pose each, that of the middle: 51 sweeps from frame 2350 are one of the sequences of the benchmark, 64 from 1538
another.
"""

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import Pose

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # the makers of the tests are no package

from kitti360_maker import write_drive


def open_repacked(folder: Path) -> Any:
    """Return the recording that the folder's load.py opens."""
    spec = importlib.util.spec_from_file_location("load", folder / "load.py")
    if spec is None or spec.loader is None or not (folder / "load.py").exists():
        raise SystemExit(f"{folder}: has no load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Log(str(folder))


def cloud_of(recording: Any, sweep: int) -> np.ndarray:
    """Return the returns of a sweep as measured, (N, 4): x, y, z in the frame of the moving sensor, and intensity."""
    range_m, intensity, ticks = recording.image(sweep)
    origin_m, direction = recording.sensor_beams(ticks)
    hit = np.isfinite(range_m)
    points = origin_m[hit] + range_m[hit][:, None] * direction[hit]
    return np.column_stack([points, np.nan_to_num(intensity[hit])])


def main() -> None:
    """Read the arguments and write the drive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, help="a folder that does not exist yet")
    parser.add_argument("--sweeps", default="20:71", help="FIRST:LAST, as a Python slice of the sweep numbers")
    parser.add_argument("--frame", type=int, default=2350, help="number of the first frame")
    asked = parser.parse_args()
    recording = open_repacked(asked.folder)
    first, last = (int(word) for word in asked.sweeps.split(":"))
    numbers = list(recording.frames)[first:last]
    frames = range(asked.frame, asked.frame + len(numbers))
    clouds = {frame: cloud_of(recording, number) for frame, number in zip(frames, numbers, strict=True)}
    poses = {frame: Pose.from_matrix(recording.T[number, 1]) for frame, number in zip(frames, numbers, strict=True)}
    write_drive(asked.out, clouds, poses)
    print(f"{asked.out}: frames {frames[0]} to {frames[-1]}")


if __name__ == "__main__":
    main()
