# SPDX-License-Identifier: Apache-2.0
"""CloudSource: sweeps that are stored as clouds of points in the frame of the sensor, one file each.

KITTI and folders of PCD files are this. A reader says how one file is loaded, when each sweep was, and where the
sensor was; here the points become beams: deskewed clouds are taken back to the instants of their points (motion.py),
missing returns recovered (recovery/), limits applied.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Numbers
from hedgerow.errors import FileError, HedgerowError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.motion import move_to_map, require_pose, require_span, reskew
from hedgerow.io.recovery.fit import first_lasers, guess_turned, nominal
from hedgerow.io.recovery.sweeps import NotRecovered, Pulses, Recovery
from hedgerow.io.source import Settings, SweepSource, pulse_ids
from hedgerow.log import MEASURED, MISSING, Beams, Log, Returns

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor

_SWEEPS_TO_FIT = 6
_TURN = 2 * np.pi


@dataclass(frozen=True, slots=True, eq=False)
class SensorCloud:
    """The points of one sweep."""

    points: NDArray[np.float64]
    """(N, 3) sensor frame [m]."""
    intensity: NDArray[np.float32] | None = None
    label: NDArray[np.uint16] | None = None
    ring: NDArray[np.uint16] | None = None
    time_ns: NDArray[np.int64] | None = None
    """(N,) when each point was measured, if the file says."""
    laser: NDArray[np.int64] | None = None
    """(N,) first guess of its laser, highest first; made when it is read."""
    n_left_out: int = 0
    """Points that had no finite place."""
    colour: NDArray[np.uint32] | None = None
    """(N,) 0xRRGGBB."""

    def __getitem__(self, rows: NDArray[Any]) -> "SensorCloud":
        """Keep some of the points."""
        beside = {name: getattr(self, name) for name in (*MEASURED, "ring", "time_ns", "laser")}
        kept: dict[str, Any] = {name: each if each is None else each[rows] for name, each in beside.items()}
        points = self.points[rows]
        return SensorCloud(points, **kept, n_left_out=self.n_left_out + len(self.points) - len(points))


@dataclass(frozen=True, slots=True)
class SweepTimes:
    """When a sweep was."""

    number: int
    start_ns: int
    end_ns: int
    reference_ns: int
    """The instant whose sensor frame a deskewed cloud is in."""


@dataclass(frozen=True, slots=True, eq=False)
class CloudReading:
    """How the clouds of a recording become sweeps."""

    sensor: "Sensor | None"
    """For the recovery of missing returns; None if the lidar is not in the catalogue."""
    start_rad: float = np.pi
    """Azimuth at which a sweep starts."""
    clockwise: bool = True
    """Whether the rotor turns clockwise, seen from above."""
    deskewed: bool = False
    """Whether all points of a sweep were moved into the frame of one instant."""
    times_by_laser: bool = False
    """Whether clouds were deskewed by the true time of each pulse, or as KITTI's were, by the azimuth of the point."""
    elevation_bias_rad: float = 0.0
    """Added to all elevations."""
    recover: Literal["auto", "yes", "no"] = "auto"
    poses_ns: tuple[int, int] | None = None
    """Time of the first and the last pose, if the trajectory was made longer; sweeps need a pose of their own."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


class CloudSource(SweepSource):
    """A recording of clouds in the sensor frame."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        trajectory: Trajectory,
        sweeps: Sequence[SweepTimes],
        load: Callable[[int], SensorCloud],
        reading: CloudReading,
    ) -> None:
        """Look at a few sweeps to find out whether missing returns can be recovered.

        Args:
            path: of the recording.
            settings: sensor name, limits, map origin, arrays; metadata are added here.
            trajectory: T_map_sensor, long enough for the sweeps to be read.
            sweeps: when each was, by ascending number.
            load: gives the cloud of a sweep by its number.
            reading: how clouds become sweeps.

        Raises:
            FileError: a cloud that is looked at is damaged, or recovery was asked for and is not possible.
        """
        self._times = {each.number: each for each in sweeps}
        if not self._times:
            raise FileError(f"{path}: holds no sweeps")
        self._load = load
        self._reading = reading
        self._known = None if reading.sensor is None else nominal(reading.sensor)
        super().__init__(path, settings, trajectory)
        self._trajectory = trajectory
        self._recovery, recovered = self._fit()
        notes: dict[str, Any] = {"motion": "compensated" if reading.deskewed else "raw"}
        notes["elevation_bias_deg"] = round(float(np.rad2deg(reading.elevation_bias_rad)), 6)
        notes["turn"] = {"start_deg": round(float(np.rad2deg(reading.start_rad)), 6), "clockwise": reading.clockwise}
        self.metadata = settings.metadata | reading.metadata | notes | {"recovery": recovered}
        self.settings = replace(settings, metadata=self.metadata)

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return np.array(sorted(self._times), np.int32)

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        for number in self.selected_sweeps(sweeps):
            yield number, self._sweep(self._times[number])

    def _sweep(self, sweep: SweepTimes) -> Log:
        name = f"{self.path}, sweep {sweep.number}"
        try:
            cloud = self._in_sensor_frame(sweep)
            self.n_left_out += cloud.n_left_out
            pulses = self._pulses(cloud)
            return self._log(sweep, cloud, pulses)
        except NotRecovered as error:
            raise FileError(
                f"{name}: missing returns cannot be recovered, {error}; leave it out, or use recover=no"
            ) from None
        except InputError as error:
            raise FileError(f"{name}: {error}") from error

    def _in_sensor_frame(self, sweep: SweepTimes) -> SensorCloud:
        """Load a cloud, without points that are none, each in the sensor frame of its own instant."""
        cloud = self._load(sweep.number)
        cloud = cloud[np.isfinite(cloud.points).all(axis=1) & (np.abs(cloud.points).max(axis=1, initial=0) < 1e5)]
        cloud = cloud[np.einsum("ij,ij->i", cloud.points, cloud.points) > 1e-6]
        name = f"{self.path}, sweep {sweep.number}"
        require_span(name, self._trajectory, sweep.start_ns, sweep.end_ns)
        if self._reading.poses_ns is not None:
            require_pose(name, self._reading.poses_ns, (sweep.start_ns, sweep.end_ns), sweep.reference_ns)
        points = cloud.points
        laser = None if self._known is None else first_lasers(points, self._known, cloud.ring)
        if self._reading.deskewed:
            for _ in range(3):  # when a point was measured shows in its azimuth then; each round is 1000 times nearer
                turned = self._turned(points, laser if self._reading.times_by_laser else None)
                time_ns = self._time_ns(sweep, cloud, turned)
                points = reskew(self._trajectory, cloud.points, time_ns, sweep.reference_ns)
        return replace(cloud, points=tilt_up(points, self._reading.elevation_bias_rad), laser=laser)

    def _turned(self, points: NDArray[np.float64], laser: NDArray[np.int64] | None) -> NDArray[np.float64]:
        """Return what share of its turn the rotor had done at (N, 3) points; their azimuths tell, less the lasers'."""
        if self._known is not None and laser is not None:
            return guess_turned(points, laser, self._known, self._reading.start_rad)
        azimuth = np.arctan2(points[:, 1], points[:, 0])
        turned = self._reading.start_rad - azimuth if self._reading.clockwise else azimuth - self._reading.start_rad
        return turned % _TURN / _TURN

    def _time_ns(self, sweep: SweepTimes, cloud: SensorCloud, turned: NDArray[np.float64]) -> NDArray[np.int64]:
        if cloud.time_ns is not None:
            return cloud.time_ns
        return sweep.start_ns + np.rint(turned * (sweep.end_ns - sweep.start_ns)).astype(np.int64)

    def _pulses(self, cloud: SensorCloud) -> Pulses:
        """Return every firing if that can be recovered, else one pulse for each point."""
        points = cloud.points
        if self._recovery is not None:
            return self._recovery.complete(points)
        range_m = np.linalg.norm(points, axis=1)
        ring = np.zeros(len(points), np.int64) if cloud.ring is None else cloud.ring.astype(np.int64)
        everyone = np.arange(len(points))
        turned = self._turned(points, cloud.laser if self._reading.times_by_laser else None)
        return Pulses(np.zeros_like(points), points / range_m[:, None], range_m, ring, turned, everyone)

    def _log(self, sweep: SweepTimes, cloud: SensorCloud, pulses: Pulses) -> Log:
        seen = pulses.point >= 0
        time_ns = self._time_ns(sweep, replace(cloud, time_ns=None), pulses.turned)
        if cloud.time_ns is not None:
            time_ns[seen] = cloud.time_ns[pulses.point[seen]]
        range_m = np.where(pulses.range_m <= self.max_range_m, pulses.range_m, np.inf).astype(np.float32)
        keep = range_m >= np.float32(self.min_range_m)
        origin_m, direction = move_to_map(self._trajectory, time_ns, pulses.origin_m, pulses.direction)
        number = np.full(len(seen), sweep.number, np.int32)
        ring = pulses.ring.astype(np.uint16)
        beams = Beams(origin_m, direction, time_ns, ring, number, pulse_ids(sweep.number, len(seen)))
        returned = seen & np.isfinite(range_m)
        beside = {name: _beside(getattr(cloud, name), pulses.point, returned, MISSING[name]) for name in MEASURED}
        return self.settings.log(beams[keep], Returns(range_m, **beside)[keep])  # it refuses nearer ranges

    def _fit(self) -> tuple[Recovery | None, dict[str, Any]]:
        """Try the recovery on a few sweeps; return it, or None, and what to note in the metadata."""
        reading = self._reading
        if reading.recover == "no":
            return None, _not_recovered("not asked for")
        try:
            if reading.sensor is None:
                raise NotRecovered("the lidar is not known; say sensor=")
            # Not the first and the last, whose poses reach only half way.
            spread = np.linspace(0, len(self._times) - 1, _SWEEPS_TO_FIT + 2)[1:-1]
            chosen = np.unique(spread.round().astype(int))
            some = [self._times[number] for number in self.sweeps[chosen].tolist()]
            clouds = list(self._few(some))
            guesses = [cloud.laser for cloud in clouds if cloud.laser is not None]
            found = Recovery.of(reading.sensor, [cloud.points for cloud in clouds], reading.start_rad, guesses)
            return found, found.quality
        except NotRecovered as error:
            if reading.recover == "yes":
                raise FileError(f"{self.path}: missing returns cannot be recovered, {error}") from None
            return None, _not_recovered(str(error))

    def _few(self, sweeps: Sequence[SweepTimes]) -> Iterator[SensorCloud]:
        """Load those of the sweeps that can be; a damaged one is refused when it is read."""
        for sweep in sweeps:
            try:
                yield self._in_sensor_frame(sweep)
            except HedgerowError:
                continue


def find_sensor(name: str | None) -> "Sensor | None":
    """Return a sensor of the catalogue, or None if it is not there."""
    from hedgerow.sensor import Sensor

    try:
        return Sensor.named(name) if name else None
    except InputError:
        return None


def _not_recovered(reason: str) -> dict[str, Any]:
    return {"method": "none", "summary": f"not recovered, every beam has a return ({reason})"}


def tilt_up(points: NDArray[np.float64], angle_rad: float) -> NDArray[np.float64]:
    """Turn (N, 3) points up by an angle, each about the horizontal line through the sensor across its beam."""
    if angle_rad == 0:
        return points
    rho, z = np.hypot(points[:, 0], points[:, 1]), points[:, 2]
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    scale = (rho * cos - z * sin) / np.maximum(rho, 1e-9)
    return np.stack([points[:, 0] * scale, points[:, 1] * scale, rho * sin + z * cos], axis=1)


def _beside(values: NDArray[Any] | None, point: NDArray[np.int64], returned: NDArray[np.bool_], blank: Any) -> Any:
    if values is None:
        return None
    column = np.full(len(point), blank)
    column[returned] = values[point[returned]]
    return column
