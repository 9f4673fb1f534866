# SPDX-License-Identifier: Apache-2.0
"""KITTI odometry and SemanticKITTI sequences: a folder with velodyne/, poses.txt, times.txt, calib.txt, labels/.

Poses are those of the left camera (z forward), `Tr` in calib.txt takes lidar points to it; the map is the lidar's frame
of pose 0 moved along, x forward, z up. The clouds are motion-compensated: all points of a sweep are in the frame of the
instant at which the scanner looked ahead, half way through its turn. So they are first taken back to where they were
measured (placing.py). What Hedgerow itself wrote (kitti_writer.py) also has a hedgerow.json with everything else.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Pose, Trajectory, poses_from_matrices
from hedgerow.io.clouds import Cloud, CloudSource, Frame, Plan
from hedgerow.io.folder_plan import folder_plan
from hedgerow.io.kitti_bin import numbered_files, read_bin, read_labels
from hedgerow.io.kitti_plan import kitti_plan, kitti_settings
from hedgerow.io.kitti_text import read_calibration
from hedgerow.io.kitti_writer import log_sink as log_sink
from hedgerow.io.options import ReadOptions
from hedgerow.io.placing import stretched
from hedgerow.io.pose_text import read_rows
from hedgerow.io.sidecar import Sidecar, read_motion
from hedgerow.io.source import Settings

_RATE_HZ = 1 / 0.1036  # KITTI's scanner, where a single sweep does not tell


def open_log(path: str | Path, options: ReadOptions) -> CloudSource:
    """Open a sequence; see `options.ReadOptions`.

    Raises:
        FileError: a file is missing or damaged.
    """
    path = Path(path)
    files = numbered_files(path / "velodyne", ".bin")
    sidecar = Sidecar.read(path)
    stamps = _stamps(path / "times.txt", list(files))
    frames = [frame for frame in _frames(stamps, options, sidecar) if frame.number in files]
    longest_ns = max(frame.end_ns - frame.start_ns for frame in frames)
    trajectory = options.sensor_trajectory() or (sidecar and read_motion(path)) or _poses(path, stamps)
    labels = path / "labels"
    has_labels = labels.is_dir()

    def load(number: int) -> Cloud:
        values = read_bin(files[number])
        label = read_labels(labels / f"{files[number].stem}.label", len(values)) if has_labels else None
        return Cloud(values[:, :3].astype(np.float64), values[:, 3], label)

    arrays = ["intensity", "label"] if has_labels else ["intensity"]
    settings, plan = _settings(options, sidecar, arrays)
    return CloudSource(path, settings, stretched(trajectory, longest_ns), frames, load, plan)


def _settings(options: ReadOptions, sidecar: Sidecar | None, arrays: list[str]) -> tuple[Settings, Plan]:
    if sidecar is None:
        origin_m = np.array(options.map_origin_m or [0.0, 0.0, 0.0])
        return kitti_settings(options, origin_m, arrays), kitti_plan(options, "kitti", compensated=True)
    return options.applied(sidecar.settings(arrays)), folder_plan(options, sidecar, "kitti")


def _stamps(path: Path, numbers: list[int]) -> dict[int, int]:
    """Return the time of each sweep [ns] by its number; a line of times.txt each, also of sweeps that are not there."""
    rows = read_rows(path, 1, "a time stamp in seconds")
    every = rows.stamps_ns()
    if numbers[-1] >= len(every):
        raise FileError(f"{path}: has {len(every)} times but there is a sweep {numbers[-1]}")
    stuck = np.flatnonzero(np.diff(every) <= 0)
    if len(stuck):
        raise FileError(f"{path}, line {rows.lines[stuck[0] + 1]}: the time stamp is not later than the one before")
    return {number: int(stamp) for number, stamp in enumerate(every)}


def _frames(stamps: dict[int, int], options: ReadOptions, sidecar: Sidecar | None) -> list[Frame]:
    every = np.array(list(stamps.values()), np.int64)
    usual_ns = float(np.median(np.diff(every))) if len(every) > 1 else 1e9 / _RATE_HZ
    half_ns = int((1e9 / options.rate_hz if options.rate_hz else usual_ns) / 2)
    spans = sidecar.spans_ns if sidecar is not None else {}
    frames: list[Frame] = []
    for number, stamp in stamps.items():
        first, last = spans.get(str(number), (stamp - half_ns, stamp + half_ns))
        frames.append(Frame(number, first, last, stamp))
    return frames


def _poses(path: Path, stamps: dict[int, int]) -> Trajectory:
    """Return T_map_velodyne."""
    places = [path / "poses.txt", path.resolve().parent.parent / "poses" / f"{path.resolve().name}.txt"]
    place = next((each for each in places if each.exists()), None)
    if place is None:
        raise FileError(f"{places[0]}: no such file; give a trajectory, or put the poses of the sequence there")
    t_cam_velo = read_calibration(path / "calib.txt", "Tr")
    rows = read_rows(place, 12, "a 3 x 4 matrix, row by row")
    with rows.naming_lines():
        position_m, quaternion = poses_from_matrices("matrix", rows.numbers(0, 12).reshape(-1, 3, 4))
    if len(position_m) > len(stamps):
        raise FileError(f"{place}: has {len(position_m)} poses but times.txt only {len(stamps)} times")
    time_ns: NDArray[np.int64] = np.array(list(stamps.values()), np.int64)[: len(position_m)]
    t_velo_cam = t_cam_velo.inverse()
    poses = [t_velo_cam @ Pose(p, q) @ t_cam_velo for p, q in zip(position_m, quaternion, strict=True)]
    return Trajectory.from_poses(time_ns, poses)
