# SPDX-License-Identifier: Apache-2.0
"""A folder of PCD files, one per sweep in the frame of the sensor, with a trajectory: read and written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io import trajectory as tum
from hedgerow.io.beams.clouds import Cloud, CloudSource, Frame, Plan, tilted
from hedgerow.io.beams.motion import stretched, uncompensated
from hedgerow.io.beams.organised import Points, organised_source
from hedgerow.io.folder import FolderWriter, FramedSweep, Sidecar, folder_plan, known_sensor, read_motion
from hedgerow.io.options import ReadOptions
from hedgerow.io.points.columns import TYPES, Columns, named, times_ns, to_rows
from hedgerow.io.points.pcd import PcdFile, cells_of, pcd_header, point_times, read_pcd
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.source import Settings, SweepSource
from hedgerow.log import Log

# A folder of PCD files, one per sweep in the frame of the sensor, with a trajectory.
#
# The time of a sweep is the name of its file in seconds (`1317042272.10.pcd`), or else the time of the pose with the
# same place in the trajectory. `time` of the points is in seconds, since 1970 or since the start of the sweep, or in
# whole nanoseconds. The trajectory is given, or lies in the folder as poses.tum. What Hedgerow writes is
# motion-compensated and has a hedgerow.json. Organised files (HEIGHT above 1) keep their empty cells as missing
# returns.


_LOOKED_AT = 4
_MARGIN_NS = 200_000_000


def open_log(path: str | Path, options: ReadOptions) -> SweepSource:
    """Open a folder of PCD files; see `options.ReadOptions`.

    Raises:
        FileError: damaged, no trajectory, or files without times.
    """
    path = Path(path)
    files = sorted(path.glob("*.pcd"), key=lambda each: (len(each.stem.partition(".")[0]), each.stem))
    sidecar = Sidecar.read(path)
    poses = path / "poses.tum"
    trajectory = options.sensor_trajectory() or (tum.read_tum(poses) if poses.exists() else None)
    if trajectory is None:
        raise FileError(f"{path}: PCD files do not say where the sensor was; give a trajectory, or put poses.tum there")
    frames = _frames(path, files, trajectory, options, sidecar)
    if options.trajectory is None and sidecar is not None:
        trajectory = read_motion(path) or trajectory
    starts = {frame.number: frame.start_ns for frame in frames}

    def load(number: int) -> Cloud:
        return _cloud(read_pcd(files[number]), starts[number])

    first = read_pcd(files[0])
    example = _cloud(first, starts[0])
    arrays = [name for name in ("intensity", "label") if getattr(example, name) is not None]
    settings, plan = _settings(options, sidecar, arrays)
    trajectory = stretched(trajectory, _MARGIN_NS)
    reason = ""
    if sidecar is None and plan.recover != "no" and first.is_organised:
        try:
            return _organised(path, files, frames, settings, trajectory, plan)
        except NotRecovered as error:
            reason = str(error)
            if plan.recover == "yes":
                raise FileError(f"{path}: empty cells cannot be told where they point, {error}") from None
    plan = replace(plan, metadata=plan.metadata | ({"organised": reason} if reason else {}))
    return CloudSource(path, settings, trajectory, frames, load, plan)


def _organised(
    path: Path, files: list[Path], frames: list[Frame], settings: Settings, trajectory: Trajectory, plan: Plan
) -> SweepSource:
    """Open files with a cell for every firing. Raises NotRecovered if those looked at are none."""

    def load(number: int) -> Points:
        file, frame = read_pcd(files[number]), frames[number]
        if not file.is_organised:
            raise FileError(f"{file.path}: has one row of points, but {files[0].name} is organised; use recover=no")
        points = cells_of(file, frame.start_ns)
        hit, xyz = points.hit, points.xyz.copy()
        if plan.compensated:
            if points.time_ns is None:
                raise NotRecovered("the motion was taken out of them and they have no times")
            xyz[hit] = uncompensated(trajectory, xyz[hit], points.time_ns[hit], frame.reference_ns)
        xyz[hit] = tilted(xyz[hit], plan.elevation_bias_rad)
        return replace(points, xyz=xyz)

    def span_ns(number: int, points: Points) -> tuple[int, int]:
        return frames[number].start_ns, frames[number].end_ns

    looked_at = np.unique(np.linspace(0, len(files) - 1, _LOOKED_AT).round().astype(int)).tolist()
    notes = {"motion": "compensated" if plan.compensated else "raw"}
    settings = replace(settings, metadata=settings.metadata | plan.metadata | notes)
    return organised_source(path, settings, trajectory, len(files), load, span_ns, looked_at)


def _settings(options: ReadOptions, sidecar: Sidecar | None, arrays: list[str]) -> tuple[Settings, Plan]:
    if sidecar is not None:
        return options.applied(sidecar.settings(arrays)), folder_plan(options, sidecar, "pcd-folder")
    sensor = known_sensor(options.sensor)
    far = float("inf") if sensor is None else sensor.max_range_m
    settings = Settings(sensor=options.sensor or "", max_range_m=far, arrays=arrays)
    bias_rad = float(np.deg2rad(options.elevation_bias_deg or 0.0))
    pattern = None if sensor is None else sensor.config.pattern
    plan = Plan(
        sensor,
        start_rad=float(np.deg2rad(getattr(pattern, "start_azimuth_deg", 0.0))),
        clockwise=pattern is None or pattern.turns == "clockwise",
        compensated=bool(options.compensated),
        times_by_laser=True,
        elevation_bias_rad=bias_rad,
        recover=options.recover,
        metadata={"read_from": "pcd-folder"},
    )
    return options.applied(settings), plan


def _frames(
    path: Path, files: list[Path], trajectory: Trajectory, options: ReadOptions, sidecar: Sidecar | None
) -> list[Frame]:
    stamps = _stamps(path, files, trajectory)
    stuck = np.flatnonzero(np.diff(stamps) <= 0)
    if len(stuck):
        later = int(stuck[0]) + 1
        raise FileError(f"{files[later]}: its time is not later than that of {files[later - 1].name}")
    half_ns = int(0.5e9 / options.rate_hz) if options.rate_hz else 0
    spans = {} if sidecar is None else sidecar.spans_ns
    frames: list[Frame] = []
    for number, stamp in enumerate(map(int, stamps)):
        first, last = spans.get(str(number), (stamp - half_ns, stamp + half_ns))
        frames.append(Frame(number, first, last, stamp))
    return frames


def _stamps(path: Path, files: list[Path], trajectory: Trajectory) -> NDArray[np.int64]:
    if all("." in file.stem and file.stem.replace(".", "", 1).isdecimal() for file in files):
        return times_ns(np.array([float(file.stem) for file in files]), path)
    if len(files) != len(trajectory):
        raise FileError(
            f"{path}: {len(files)} files but {len(trajectory)} poses; name the files by their time in seconds, or give "
            "a trajectory with one pose for each"
        )
    return trajectory.time_ns


def _cloud(file: PcdFile, start_ns: int) -> Cloud:
    columns = named(file.columns, file.path)
    points = np.stack([columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
    intensity = columns["intensity"].astype(np.float32) if "intensity" in columns else None
    label = np.clip(columns["label"], 0, 65535).astype(np.uint16) if "label" in columns else None
    ring = np.clip(columns["ring"], 0, 65535).astype(np.uint16) if "ring" in columns else None
    n_left_out = file.height * file.width - len(points)
    return Cloud(points, intensity, label, ring, point_times(columns, start_ns, file.path), n_left_out=n_left_out)


# Write a log as a folder of PCD files, one per sweep in the frame of the sensor, with poses.tum and hedgerow.json.


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "PcdFolderWriter":
    """Prepare to write a folder of PCD files."""
    return PcdFolderWriter(path, trajectory)


class PcdFolderWriter(FolderWriter):
    """Appends sweeps to a folder of PCD files."""

    kind = "pcd-folder"
    names = ("*.pcd", "poses.tum")

    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: FramedSweep) -> None:
        """Write one sweep."""
        hit = sweep.returns.hit
        columns: Columns = {axis: cloud.points[:, k] for k, axis in enumerate("xyz")}
        for name in ("intensity", "label"):
            if getattr(sweep.returns, name) is not None:
                columns[name] = getattr(sweep.returns, name)[hit].astype(TYPES[name])
        columns["ring"] = sweep.beams.ring[cloud.pulse]
        columns["time"] = sweep.beams.time_ns[cloud.pulse] / 1e9
        rows = to_rows(columns)
        (folder / f"{number:06d}.pcd").write_bytes(pcd_header(rows, len(rows)) + rows.tobytes())

    def finish(self, folder: Path) -> None:
        """Write the poses."""
        trajectory = Trajectory.from_poses(np.array(self.times_ns, np.int64), self.poses)
        tum.write_tum(trajectory, folder / "poses.tum")
