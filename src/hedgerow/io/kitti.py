# SPDX-License-Identifier: Apache-2.0
"""KITTI: raw drives (read), odometry and SemanticKITTI sequences (read and written).

A raw drive is a folder `2011_09_26_drive_0005_sync` with velodyne_points and oxts, as downloaded from the KITTI site
(Geiger et al., 2013), with the calibration beside it. Its clouds are as measured; the HDL-64E turns clockwise and a
sweep starts at the back, at `timestamps_start.txt`. Poses come from the OXTS packets as in KITTI's devkit: Mercator,
true to scale at the first pose, x east, y north. The map's origin is at the first pose.

A sequence is a folder with velodyne/, poses.txt, times.txt, calib.txt and, in SemanticKITTI, labels/. Poses are those
of the left camera (z forward), and `Tr` in calib.txt takes lidar points to it. The map is the lidar's frame of pose 0,
x forward, z up. Its clouds are deskewed: all points of a sweep are in the frame of the instant at which the scanner
looked ahead, half way through its turn. So they are first taken back to where they were measured (beams/motion.py). A
sequence that Hedgerow wrote has everything that the format cannot say beside it (folder.py), and reads back to the last
bit. Its label files have SemanticKITTI's official numbers; finer classes are folded into those.

KITTI's own hold neither rings, missing returns (recovery/ works them out), beam origins, nor anything beyond 80 m. The
intrinsic calibration that made KITTI's clouds looks 0.205 degrees too low (Deschaud 2018, IMLS-SLAM); that is added.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.labels import SEMANTIC_KITTI, to_semantic_kitti
from hedgerow.errors import FileError, InputError, warn
from hedgerow.frames import Pose, Trajectory, poses_from_matrices
from hedgerow.io.beams.clouds import CloudReading, CloudSource, SensorCloud, SweepTimes
from hedgerow.io.beams.kept import KEPT, read_motion, with_kept_beams
from hedgerow.io.beams.motion import extend_trajectory
from hedgerow.io.folder import DeskewedSweep, FolderWriter, folder_reading
from hedgerow.io.notes import Sidecar
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import Settings, SweepSource, read_bytes, read_text, require_memory
from hedgerow.io.trajectory import read_rows, stamp_text
from hedgerow.log import Log
from hedgerow.sensor import Sensor

_SENSOR = "hdl-64e-s2"
_MAX_RANGE_M = 80.0  # KITTI's files hold nothing farther
_ELEVATION_BIAS_DEG = 0.205
_RATE_HZ = 1 / 0.1036  # KITTI's scanner, where a single sweep does not tell
_MARGIN_NS = 150_000_000  # a sweep and a half: the sweep starts before the first packet and ends after the last
_EARTH_RADIUS_M = 6378137.0
_N_OXTS = 30
_LOADING_FACTOR = 4  # bytes of memory for each byte of a cloud: as it is, as float32, as float64
_NEEDED = "KITTI needs it"
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,9})?")
# The camera's axes (x right, y down, z forward) seen from the lidar's (x forward, y left, z up).
_T_CAM_VELO = Pose.from_matrix([[0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0]])


def open_log(path: str | Path, options: ReadOptions) -> SweepSource:
    """Open an odometry or SemanticKITTI sequence; see `options.ReadOptions`.

    Raises:
        FileError: a file is missing or damaged.
    """
    path = Path(path)
    files = numbered_files(path / "velodyne", ".bin")
    sidecar = Sidecar.read(path)
    labels = path / "labels" if (path / "labels").is_dir() else None

    def from_points() -> CloudSource:
        return _open_points(path, files, labels, sidecar, options)

    clouds = {
        file.stem: [file, *([] if labels is None else [labels / f"{file.stem}.label"])] for file in files.values()
    }
    return with_kept_beams(path, sidecar, clouds, options, from_points)


def _open_points(
    path: Path, files: dict[int, Path], labels: Path | None, sidecar: Sidecar | None, options: ReadOptions
) -> CloudSource:
    """Open a sequence by its points, whoever wrote it."""
    stamps = _sequence_stamps(path / "times.txt", list(files))
    sweeps = [each for each in _sequence_sweeps(stamps, options, sidecar) if each.number in files]
    trajectory = options.sensor_trajectory() or (sidecar and read_motion(path)) or _sequence_poses(path, stamps)

    def load(number: int) -> SensorCloud:
        values = read_bin(files[number])
        label = None if labels is None else _read_labels(labels / f"{files[number].stem}.label", len(values))
        return SensorCloud(values[:, :3].astype(np.float64), values[:, 3], label)

    arrays = ["intensity"] if labels is None else ["intensity", "label"]
    settings, reading = _sequence_settings(options, sidecar, arrays)
    reading = replace(reading, poses_ns=(trajectory.start_ns, trajectory.end_ns))
    longest_ns = max(each.end_ns - each.start_ns for each in sweeps)
    return CloudSource(path, settings, extend_trajectory(trajectory, longest_ns), sweeps, load, reading)


def _sequence_settings(
    options: ReadOptions, sidecar: Sidecar | None, arrays: list[str]
) -> tuple[Settings, CloudReading]:
    if sidecar is None:
        origin_m = np.array(options.map_origin_m or [0.0, 0.0, 0.0])
        return _settings(options, origin_m, arrays), _reading(options, "kitti", deskewed=True)
    return options.apply_to(sidecar.settings(arrays)), folder_reading(options, sidecar, "kitti")


def _sequence_stamps(path: Path, numbers: list[int]) -> dict[int, int]:
    """Return the time of each sweep [ns] by its number; a line of times.txt each, also of sweeps that are not there."""
    stamps_ns = read_rows(path, 1, "a time stamp in seconds").rising_stamps_ns()
    if numbers[-1] >= len(stamps_ns):
        raise FileError(f"{path}: has {len(stamps_ns)} times but there is a sweep {numbers[-1]}")
    return {number: int(stamp_ns) for number, stamp_ns in enumerate(stamps_ns)}


def _sequence_sweeps(stamps: dict[int, int], options: ReadOptions, sidecar: Sidecar | None) -> list[SweepTimes]:
    every = np.array(list(stamps.values()), np.int64)
    usual_ns = float(np.median(np.diff(every))) if len(every) > 1 else 1e9 / _RATE_HZ
    half_ns = int((1e9 / options.rate_hz if options.rate_hz else usual_ns) / 2)
    spans = sidecar.spans_ns if sidecar is not None else {}
    sweeps: list[SweepTimes] = []
    for number, stamp in stamps.items():
        first, last = spans.get(str(number), [stamp - half_ns, stamp + half_ns])
        sweeps.append(SweepTimes(number, first, last, stamp))
    return sweeps


@np.errstate(over="ignore", invalid="ignore")  # huge numbers are no rotation, and that is said
def _sequence_poses(path: Path, stamps: dict[int, int]) -> Trajectory:
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


def open_raw(path: str | Path, options: ReadOptions) -> CloudSource:
    """Open a raw drive; see `options.ReadOptions`.

    Raises:
        FileError: a file is missing or damaged.
    """
    path = Path(path)
    files = numbered_files(path / "velodyne_points" / "data", ".bin")
    sweeps = _raw_sweeps(path, list(files))
    trajectory = options.sensor_trajectory()
    origin_m = np.array(options.map_origin_m or [0.0, 0.0, 0.0], np.float64)
    if trajectory is None:
        trajectory, first_m = _oxts_trajectory(path, [each.number for each in sweeps])
        origin_m = np.round(first_m) if options.map_origin_m is None else origin_m
        trajectory = Trajectory(trajectory.time_ns, trajectory.position_m - origin_m, trajectory.quaternion_xyzw)

    def load(number: int) -> SensorCloud:
        values = read_bin(files[number])
        return SensorCloud(values[:, :3].astype(np.float64), values[:, 3])

    settings = _settings(options, origin_m, ["intensity"])
    reading = _reading(options, "kitti-raw", deskewed=False)
    reading = replace(reading, poses_ns=(trajectory.start_ns, trajectory.end_ns))
    return CloudSource(path, settings, extend_trajectory(trajectory, _MARGIN_NS), sweeps, load, reading)


def _raw_sweeps(path: Path, numbers: list[int]) -> list[SweepTimes]:
    folder = path / "velodyne_points"
    stamps = {name: read_dates(folder / f"{name}.txt") for name in ("timestamps_start", "timestamps", "timestamps_end")}
    for name, each in stamps.items():
        if numbers[-1] >= len(each):
            raise FileError(f"{folder / name}.txt: has {len(each)} lines but there is a sweep {numbers[-1]}")
        require_rising(folder / f"{name}.txt", numbers, each[numbers])
    sweeps: list[SweepTimes] = []
    for number in numbers:
        start, middle, end = (int(each[number]) for each in stamps.values())
        if not start < end:
            raise FileError(f"{folder}/timestamps_end.txt, line {number + 1}: the sweep ends before it starts")
        sweeps.append(SweepTimes(number, start, end, middle))
    return sweeps


def _oxts_trajectory(path: Path, sweeps: list[int]) -> tuple[Trajectory, NDArray[np.float64]]:
    """Return T_mercator_velodyne and the first position; warn if one of the sweeps has no packet of its own."""
    folder = path / "oxts"
    packets = numbered_files(folder / "data", ".txt")
    stamps = read_dates(folder / "timestamps.txt")
    numbers = list(packets)
    if numbers[-1] >= len(stamps):
        raise FileError(f"{folder / 'timestamps.txt'}: has {len(stamps)} lines but there is a packet {numbers[-1]}")
    require_rising(folder / "timestamps.txt", numbers, stamps[numbers])
    between = [each for each in sweeps if each not in packets and numbers[0] < each < numbers[-1]]
    if between:
        warn(
            f"{folder / 'data'}: there is no packet for sweep {between[0]} ({len(between)} such sweeps); their poses "
            "are taken from those before and after"
        )
    values = [_read_oxts(packet) for packet in packets.values()]
    poses = [_mercator_pose(each, float(values[0][0])) for each in values]
    t_imu_velo = read_calibration(_imu_calibration(path), "R", "T").inverse()
    trajectory = Trajectory.from_poses(stamps[numbers], poses) @ t_imu_velo
    return trajectory, trajectory.position_m[0]


def _imu_calibration(path: Path) -> Path:
    name = "calib_imu_to_velo.txt"
    places = [path.resolve().parent / name, path / name]
    for place in places:
        if place.exists():
            return place
    raise FileError(
        f"{places[0]}: no such file; KITTI's calibration (2011_09_26_calib.zip) belongs beside the drive's folder"
    )


def _settings(options: ReadOptions, origin_m: NDArray[np.float64], arrays: list[str]) -> Settings:
    """Return sensor, limits and map origin of a KITTI recording."""
    return options.apply_to(Settings(sensor=_SENSOR, max_range_m=_MAX_RANGE_M, map_origin_m=origin_m, arrays=arrays))


def _reading(options: ReadOptions, name: str, *, deskewed: bool) -> CloudReading:
    """Return how KITTI's clouds become sweeps."""
    bias_deg = _ELEVATION_BIAS_DEG if options.elevation_bias_deg is None else options.elevation_bias_deg
    return CloudReading(
        sensor=Sensor.named(options.sensor or _SENSOR),
        start_rad=np.pi,
        clockwise=True,
        deskewed=deskewed if options.deskewed is None else options.deskewed,
        elevation_bias_rad=float(np.deg2rad(bias_deg)),
        recover=options.recover,
        metadata={"read_from": name},
    )


def numbered_files(folder: Path, suffix: str) -> dict[int, Path]:
    """Return the files of a folder that have this suffix by their number, ascending.

    Raises:
        FileError: there are none, one has no number for a name, or two have the same.
    """
    files: dict[int, Path] = {}
    for path in folder.glob(f"*{suffix}"):
        if not (path.stem.isascii() and path.stem.isdecimal() and int(path.stem[:20]) < 2**31):
            raise FileError(f"{path}: expected a number as name, such as 000042{suffix}")
        number = int(path.stem)
        if number in files:
            raise FileError(f"{path}: is sweep {number} as {files[number].name} is; remove one of the two")
        files[number] = path
    if not files:
        raise FileError(f"{folder}: holds no files *{suffix}")
    return dict(sorted(files.items()))


def read_bin(path: Path) -> NDArray[np.float32]:
    """Read a cloud, (N, 4) float32: x, y, z [m] in the sensor frame, reflectance.

    Raises:
        FileError: not readable, empty, or ends within a point.
    """
    if path.exists():
        require_memory(path, _LOADING_FACTOR * path.stat().st_size)
    data = read_bytes(path)
    if not data:
        raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
    if len(data) % 16:
        raise FileError(
            f"{path}: has {len(data)} bytes, not a multiple of 16 (x y z reflectance); was its copying interrupted?"
        )
    values = np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, 4)
    values[~np.isfinite(values)] = np.nan  # of the usual kind: another would warn when it is converted
    return values


def _read_labels(path: Path, n_points: int) -> NDArray[np.uint16]:
    """Read the classes of a cloud's points: the lower half of each number, the upper half is the instance.

    Raises:
        FileError: not readable, or not one for each point.
    """
    data = read_bytes(path)
    if len(data) != 4 * n_points:
        raise FileError(
            f"{path}: has {len(data)} bytes, expected {4 * n_points}, 4 for each of the {n_points:,} points"
        )
    return (np.frombuffer(data, "<u4") & 0xFFFF).astype(np.uint16)


@np.errstate(over="ignore", invalid="ignore")  # huge numbers are no rotation, and that is said
def read_calibration(path: Path, *names: str) -> Pose:
    """Read a transform: `R` (9 numbers) and `T` (3), or one name with the 12 of a 3 x 4 matrix.

    Raises:
        FileError: missing, a name is missing, or no rotation.
    """
    found: dict[str, list[str]] = {}
    for line in read_text(path, _NEEDED).splitlines():
        name, _, rest = line.partition(":")
        found[name.strip()] = rest.split()
    try:
        columns = [np.array([float(word) for word in found[name]]).reshape(3, -1) for name in names]
        return Pose.from_matrix(np.concatenate(columns, axis=1))
    except KeyError as error:
        raise FileError(f"{path}: there is no line '{error.args[0]}:' in it; is it a KITTI calibration?") from None
    except (ValueError, InputError) as error:
        raise FileError(f"{path}: '{names[0]}:' is no transform ({error})") from None


def read_dates(path: Path) -> NDArray[np.int64]:
    """Read lines of date and time, `2011-09-26 13:04:32.349659964`, as (K,) nanoseconds since 1970.

    Raises:
        FileError: missing, or a line that is no time; names the line.
    """
    stamps: list[int] = []
    for number, line in enumerate(read_text(path, _NEEDED).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            if not _STAMP.fullmatch(line.strip()):
                raise ValueError("not a stamp")
            stamp = np.datetime64(line.strip().replace(" ", "T"), "ns")
        except ValueError:
            raise FileError(f"{path}, line {number}: {line.strip()[:40]!r} is not a date and time") from None
        stamps.append(int(stamp.astype(np.int64)))
    return np.array(stamps, np.int64)


def require_rising(path: Path, numbers: list[int], stamps: NDArray[np.int64]) -> None:
    """Raise FileError unless the stamps of sweeps `numbers` rise."""
    stuck = np.flatnonzero(np.diff(stamps) <= 0)
    if len(stuck):
        first = int(stuck[0])
        raise FileError(
            f"{path}, line {numbers[first + 1] + 1}: the time is not later than that of line {numbers[first] + 1}; "
            "leave one of the two sweeps out"
        )


def _read_oxts(path: Path) -> NDArray[np.float64]:
    """Read one OXTS packet; return latitude, longitude [degrees], altitude [m], roll, pitch, yaw [rad].

    Raises:
        FileError: missing, or not 30 finite numbers.
    """
    rows = read_rows(path, _N_OXTS, "an OXTS packet")
    values = rows.numbers(0, 6)[0]
    if not np.isfinite(values).all():
        raise FileError(f"{path}: holds NaN or infinity; the pose of this instant is not known")
    if abs(values[0]) >= 90:
        raise FileError(f"{path}: the latitude is {values[0]:g} degrees; expected less than 90")
    if abs(values[1]) > 360:
        raise FileError(f"{path}: the longitude is {values[1]:g} degrees; expected at most 360")
    return values


def _mercator_pose(oxts: NDArray[np.float64], first_latitude_deg: float) -> Pose:
    """Return T_map_imu of (6,) `_read_oxts` values as KITTI's devkit does, Mercator true to scale at the first pose."""
    latitude, longitude, altitude, *rpy = oxts.tolist()
    scale = np.cos(np.deg2rad(first_latitude_deg)) * _EARTH_RADIUS_M
    east, north = scale * np.deg2rad(longitude), scale * np.log(np.tan(np.deg2rad(90 + latitude) / 2))
    return Pose.from_xyz_rpy((east, north, altitude), rpy)


def open_sink(path: str | Path, trajectory: Trajectory | None) -> "KittiWriter":
    """Prepare to write a sequence folder."""
    return KittiWriter(path, trajectory)


class KittiWriter(FolderWriter):
    """Appends sweeps to a sequence folder: deskewed clouds, points in KITTI's order."""

    kind = "kitti"
    names = ("velodyne", "labels", "poses.txt", "times.txt", "calib.txt")

    def __init__(self, path: str | Path, trajectory: Trajectory | None = None) -> None:
        """Prepare to write; see `FolderWriter`."""
        super().__init__(path, trajectory)
        self._n_unknown = 0
        self._has_colour = False
        self._n_unnumbered = 0

    def write_sweep(self, folder: Path, number: int, sweep: Log, cloud: DeskewedSweep) -> list[Path]:
        """Write one sweep."""
        order = kitti_order(cloud.points, sweep.beams.ring[cloud.pulse], cloud.height)
        hit = sweep.returns.hit
        intensity = np.zeros(len(order), "<f4") if sweep.returns.intensity is None else sweep.returns.intensity[hit]
        values = np.column_stack([cloud.points, np.nan_to_num(intensity)])[order].astype("<f4")
        files = [_write(folder / "velodyne" / f"{number:06d}.bin", values.tobytes())]
        self._has_colour |= sweep.returns.colour is not None
        if sweep.returns.label is not None:
            label = self._official(sweep.returns.label[hit][order]).astype("<u4")
            if sweep.returns.object is not None:
                label |= self._instances(sweep.returns.object[hit][order]) << 16
            files.append(_write(folder / "labels" / f"{number:06d}.label", label.astype("<u4").tobytes()))
        return files

    def _instances(self, number: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the objects as the upper half of a label holds them: those beyond 65535 have no place there."""
        fits = number <= 0xFFFF
        self._n_unnumbered += int(np.count_nonzero(~fits))
        return np.where(fits, number, np.uint32(0))

    def _official(self, label: NDArray[np.uint16]) -> NDArray[np.uint16]:
        """Return SemanticKITTI's numbers: what trains on them knows no others. The fine ones are kept beside."""
        folded = to_semantic_kitti(label)
        known = np.isin(folded, list(SEMANTIC_KITTI))
        self._n_unknown += int(np.count_nonzero(~known))
        return np.where(known, folded, np.uint16(0))

    def finish(self, folder: Path) -> None:
        """Write poses, times and calibration."""
        inverse = _T_CAM_VELO.inverse()
        poses = "".join(_line(_T_CAM_VELO @ pose @ inverse) for pose in self.poses)
        (folder / "poses.txt").write_text(poses, encoding="utf-8")
        (folder / "times.txt").write_text("".join(f"{stamp_text(each)}\n" for each in self.times_ns), encoding="utf-8")
        (folder / "calib.txt").write_text("Tr: " + _line(_T_CAM_VELO), encoding="utf-8")
        if self._n_unknown:
            self.written.losses.append(
                f"{self._n_unknown:,} labels are 0 in the label files: SemanticKITTI has no such number ({KEPT} has)"
            )
        if self._n_unnumbered:
            said = f"{self._n_unnumbered:,} returns have no instance in the label files"
            self.written.losses.append(f"{said}: their objects are above 65535 ({KEPT} has them)")
        if self._has_colour:
            self.written.losses.append(f"the clouds have no colours: KITTI has no place for them ({KEPT} has)")


def kitti_order(
    points: NDArray[np.float32], ring: NDArray[np.uint16], height: NDArray[np.floating]
) -> NDArray[np.intp]:
    """Return the order in which KITTI stores points: the highest laser first, each by growing azimuth from 0.

    Args:
        points: (M, 3) sensor frame.
        ring: (M,) laser of each.
        height: (M,) z of the unit direction of the beam, sensor frame.
    """
    azimuth = np.arctan2(points[:, 1], points[:, 0]) % np.float32(2 * np.pi)
    numbers, of_point = np.unique(ring, return_inverse=True)
    middle = np.array([np.median(height[of_point == k]) for k in range(len(numbers))])
    return np.lexsort([azimuth, of_point, -middle[of_point] if len(numbers) else azimuth])


def _line(pose: Pose) -> str:
    return " ".join(map(repr, pose.matrix()[:3].ravel().tolist())) + "\n"


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path
