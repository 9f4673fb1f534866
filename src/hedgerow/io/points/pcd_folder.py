# SPDX-License-Identifier: Apache-2.0
"""A folder of PCD files, one per sweep in the frame of the sensor, with a trajectory: read and written.

The time of a sweep is the name of its file in seconds (`1317042272.10.pcd`), or else the time of the pose with the same
place in the trajectory. `time` of the points is in seconds, since 1970 or since the start of the sweep, or in whole
nanoseconds. The trajectory is given, or lies in the folder as poses.tum. Organised files (HEIGHT above 1) keep their
empty cells as missing returns. What Hedgerow writes is deskewed and has every beam beside it (folder.py).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.clouds import CloudReading, CloudSource, SensorCloud, SweepTimes, find_sensor, tilt_up
from hedgerow.io.beams.kept import read_motion, with_kept_beams
from hedgerow.io.beams.motion import extend_trajectory, require_pose, reskew
from hedgerow.io.beams.organised import PointGrid, organised_source
from hedgerow.io.folder import DeskewedSweep, FolderWriter, folder_reading
from hedgerow.io.notes import Sidecar
from hedgerow.io.options import ReadOptions
from hedgerow.io.points.columns import TYPES, Columns, rename_columns, times_ns, to_rows
from hedgerow.io.points.pcd import PcdFile, cells_of, pcd_header, point_times, read_pcd, with_pcl_rgb
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.source import Settings, SweepSource
from hedgerow.io.trajectory import read_tum, write_tum
from hedgerow.log import MEASURED, Log

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

    def from_points() -> SweepSource:
        return _open_points(path, files, sidecar, options)

    return with_kept_beams(path, sidecar, {file.stem: [file] for file in files}, options, from_points)


def _open_points(path: Path, files: list[Path], sidecar: Sidecar | None, options: ReadOptions) -> SweepSource:
    """Open a folder by its points, whoever wrote it."""
    poses = path / "poses.tum"
    trajectory = options.sensor_trajectory() or (read_tum(poses) if poses.exists() else None)
    if trajectory is None:
        raise FileError(f"{path}: PCD files do not say where the sensor was; give a trajectory, or put poses.tum there")
    sweeps = _sweep_times(path, files, trajectory, options, sidecar)
    if options.trajectory is None and sidecar is not None:
        trajectory = read_motion(path) or trajectory
    starts = {each.number: each.start_ns for each in sweeps}

    def load(number: int) -> SensorCloud:
        return _cloud(read_pcd(files[number]), starts[number])

    first = read_pcd(files[0])
    example = _cloud(first, starts[0])
    arrays = [name for name in MEASURED if getattr(example, name) is not None]
    settings, reading = _settings(options, sidecar, arrays)
    reading = replace(reading, poses_ns=(trajectory.start_ns, trajectory.end_ns))
    trajectory = extend_trajectory(trajectory, _MARGIN_NS)
    reason = ""
    if sidecar is None and reading.recover != "no" and first.is_organised:
        try:
            return _organised(path, files, sweeps, settings, trajectory, reading)
        except NotRecovered as error:
            reason = str(error)
            if reading.recover == "yes":
                raise FileError(f"{path}: empty cells cannot be told where they point, {error}") from None
    reading = replace(reading, metadata=reading.metadata | ({"organised": reason} if reason else {}))
    return CloudSource(path, settings, trajectory, sweeps, load, reading)


def _organised(
    path: Path,
    files: list[Path],
    sweeps: list[SweepTimes],
    settings: Settings,
    trajectory: Trajectory,
    reading: CloudReading,
) -> SweepSource:
    """Open files with a cell for every firing. Raises NotRecovered if those looked at are none."""

    def load(number: int) -> PointGrid:
        file, sweep = read_pcd(files[number]), sweeps[number]
        if not file.is_organised:
            raise FileError(f"{file.path}: has one row of points, but {files[0].name} is organised; use recover=no")
        if reading.poses_ns is not None:
            span_ns = sweep.start_ns, sweep.end_ns
            require_pose(f"{path}, sweep {number}", reading.poses_ns, span_ns, sweep.reference_ns)
        points = cells_of(file, sweep.start_ns)
        hit, xyz = points.hit, points.xyz.copy()
        if reading.deskewed:
            if points.time_ns is None:
                raise NotRecovered("they were deskewed and have no times")
            xyz[hit] = reskew(trajectory, xyz[hit], points.time_ns[hit], sweep.reference_ns)
        xyz[hit] = tilt_up(xyz[hit], reading.elevation_bias_rad)
        return replace(points, xyz=xyz)

    def span_ns(number: int, points: PointGrid) -> tuple[int, int]:
        return sweeps[number].start_ns, sweeps[number].end_ns

    looked_at = np.unique(np.linspace(0, len(files) - 1, _LOOKED_AT).round().astype(int)).tolist()
    notes = {"motion": "compensated" if reading.deskewed else "raw"}
    settings = replace(settings, metadata=settings.metadata | reading.metadata | notes)
    return organised_source(path, settings, trajectory, len(files), load, span_ns, looked_at)


def _settings(options: ReadOptions, sidecar: Sidecar | None, arrays: list[str]) -> tuple[Settings, CloudReading]:
    if sidecar is not None:
        return options.apply_to(sidecar.settings(arrays)), folder_reading(options, sidecar, "pcd-folder")
    sensor = find_sensor(options.sensor)
    far = float("inf") if sensor is None else sensor.max_range_m
    settings = Settings(sensor=options.sensor or "", max_range_m=far, arrays=arrays)
    bias_rad = float(np.deg2rad(options.elevation_bias_deg or 0.0))
    pattern = None if sensor is None else sensor.config.pattern
    reading = CloudReading(
        sensor,
        start_rad=float(np.deg2rad(getattr(pattern, "start_azimuth_deg", 0.0))),
        clockwise=pattern is None or pattern.turns == "clockwise",
        deskewed=bool(options.deskewed),
        times_by_laser=True,
        elevation_bias_rad=bias_rad,
        recover=options.recover,
        metadata={"read_from": "pcd-folder"},
    )
    return options.apply_to(settings), reading


def _sweep_times(
    path: Path, files: list[Path], trajectory: Trajectory, options: ReadOptions, sidecar: Sidecar | None
) -> list[SweepTimes]:
    spans = _spans(files, sidecar)
    if len(spans) == len(files):
        return [SweepTimes(n, a, b, a + (b - a) // 2) for n, (a, b) in enumerate(spans)]  # as folder.py deskews
    stamps = _stamps(path, files, trajectory)
    stuck = np.flatnonzero(np.diff(stamps) <= 0)
    if len(stuck):
        later = int(stuck[0]) + 1
        raise FileError(f"{files[later]}: its time is not later than that of {files[later - 1].name}")
    half_ns = int(0.5e9 / options.rate_hz) if options.rate_hz else 0
    return [SweepTimes(n, stamp - half_ns, stamp + half_ns, stamp) for n, stamp in enumerate(map(int, stamps))]


def _spans(files: list[Path], sidecar: Sidecar | None) -> list[list[int]]:
    """Return when the sweeps of these files began and ended; fewer than files if Hedgerow did not write them all."""
    spans = {} if sidecar is None else sidecar.spans_ns
    names = [file.stem.lstrip("0") or "0" for file in files]
    return [spans[name] for name in names if name in spans]


def _stamps(path: Path, files: list[Path], trajectory: Trajectory) -> NDArray[np.int64]:
    if all("." in file.stem and file.stem.replace(".", "", 1).isdecimal() for file in files):
        return times_ns(np.array([float(file.stem) for file in files]), path)
    if len(files) != len(trajectory):
        raise FileError(
            f"{path}: {len(files)} files but {len(trajectory)} poses; name the files by their time in seconds, or give "
            "a trajectory with one pose for each"
        )
    return trajectory.time_ns


@np.errstate(invalid="ignore", over="ignore")  # an intensity, label or ring may be NaN, or too large for its type
def _cloud(file: PcdFile, start_ns: int) -> SensorCloud:
    columns = rename_columns(file.columns, file.path)
    points = np.stack([columns[axis].astype(np.float64) for axis in "xyz"], axis=1)
    intensity = columns["intensity"].astype(np.float32) if "intensity" in columns else None
    label = np.clip(columns["label"], 0, 65535).astype(np.uint16) if "label" in columns else None
    ring = np.clip(columns["ring"], 0, 65535).astype(np.uint16) if "ring" in columns else None
    n_left_out = file.height * file.width - len(points)
    time_ns, colour = point_times(columns, start_ns, file.path), columns.get("colour")
    return SensorCloud(points, intensity, label, ring, time_ns, n_left_out=n_left_out, colour=colour)


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "PcdFolderWriter":
    """Prepare to write a folder of PCD files."""
    return PcdFolderWriter(path, trajectory)


class PcdFolderWriter(FolderWriter):
    """Appends sweeps to a folder of PCD files."""

    kind = "pcd-folder"
    names = ("*.pcd", "poses.tum")

    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: DeskewedSweep) -> list[Path]:
        """Write one sweep."""
        hit = sweep.returns.hit
        columns: Columns = {axis: cloud.points[:, k] for k, axis in enumerate("xyz")}
        for name in MEASURED:
            if getattr(sweep.returns, name) is not None:
                columns[name] = getattr(sweep.returns, name)[hit].astype(TYPES[name])
        columns["ring"] = sweep.beams.ring[cloud.pulse]
        columns["time"] = sweep.beams.time_ns[cloud.pulse] / 1e9
        if hit.ndim == 2:
            columns["return_number"] = (np.nonzero(hit)[1] + 1).astype(TYPES["return_number"])
        rows = to_rows(with_pcl_rgb(columns))
        path = folder / f"{number:06d}.pcd"
        path.write_bytes(pcd_header(rows, len(rows)) + rows.tobytes())
        return [path]

    def finish(self, folder: Path) -> None:
        """Write the poses."""
        trajectory = Trajectory.from_poses(np.array(self.times_ns, np.int64), self.poses)
        write_tum(trajectory, folder / "poses.tum")
