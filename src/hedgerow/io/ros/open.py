# SPDX-License-Identifier: Apache-2.0
"""Open a bag as a log: one PointCloud2 message is one sweep, packets of a Velodyne are cut into turns.

Missing returns are known from packets and from bags that Hedgerow wrote. Organised clouds have an empty cell for each,
whose direction is worked out (beams/organised.py). Clouds with two points per pulse keep both. All others go the way of
clouds in files: missing returns are recovered if the lidar is known (recovery/).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, model_validator

from hedgerow.base.parameters import StrictParameters
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.clouds import CloudReading, CloudSource, SensorCloud, SweepTimes, find_sensor
from hedgerow.io.beams.firings import Firings, FiringSource, subtract_map_origin
from hedgerow.io.beams.motion import extend_trajectory, reskew
from hedgerow.io.beams.organised import PointGrid, is_organised, organised_source
from hedgerow.io.options import ReadOptions
from hedgerow.io.pcap.open import velodyne_settings
from hedgerow.io.pcap.velodyne import VelodyneSweeps
from hedgerow.io.recovery.fit import first_lasers, nominal
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.ros.bag import VELODYNE_SCAN, Bag
from hedgerow.io.ros.messages import POINT_CLOUD2, stamp_ns
from hedgerow.io.ros.poses import PoseSource
from hedgerow.io.ros.topic import NO_RETURN, CloudTopic, pulses_of, returns_per_pulse
from hedgerow.io.ros.writer import ABOUT, POINTS, plane_topics
from hedgerow.io.source import Settings, SweepSource
from hedgerow.log import MEASURED

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor

_LOOKED_AT = 4
_FARTHEST_M = 1e9
_COLUMNS = 4096  # a sweep has at most about so many
_MARGIN_NS = 200_000_000  # the first and the last turn of packets may stick out of the poses


class _About(StrictParameters):
    """What Hedgerow wrote about a log into its bag."""

    model_config = ConfigDict(extra="ignore")

    sensor: str = Field(default="", max_length=1000)
    """Name of the lidar."""
    min_range_m: Annotated[float, Field(ge=0, le=_FARTHEST_M)]
    """Nothing nearer is seen."""
    max_range_m: Annotated[float, Field(gt=0, le=_FARTHEST_M)] | None
    """Nothing farther is seen."""
    map_origin_m: list[Annotated[float, Field(ge=-_FARTHEST_M, le=_FARTHEST_M)]] = Field(min_length=3, max_length=3)
    """What to add to map coordinates."""
    n_per_pulse: int = Field(default=1, ge=1, le=255)
    """Returns that a pulse can have."""
    organised: bool = False
    """Whether clouds have a cell for every pulse."""
    metadata: dict[str, Any]
    """Whatever else was told."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_range_m is not None and self.max_range_m <= self.min_range_m:
            raise InputError("max_range_m", f"{self.max_range_m} is not above min_range_m, {self.min_range_m}")
        return self

    @classmethod
    def read(cls, text: str, path: Path) -> "_About | None":
        """Read it from JSON; None if there is none.

        Raises:
            FileError: it is damaged.
        """
        if not text:
            return None
        try:
            content: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FileError(f"{path}, {ABOUT}: is no JSON ({str(error)[:100]}); the bag is damaged") from None
        return cls.parse_from(content, f"{path}, {ABOUT}")


def open_log(path: str | Path, options: ReadOptions) -> SweepSource:
    """Open a bag; see `options.ReadOptions`.

    Raises:
        FileError: damaged, without clouds or poses, or with several topics of them.
    """
    bag = Bag(path)
    topic = _chosen_topic(bag, options.topic)
    poses = PoseSource(bag, options)
    try:
        if bag.topics[topic].kind == VELODYNE_SCAN:
            return _packets(bag, topic, poses, options)
        return _clouds(bag, topic, poses, options)
    except InputError as error:
        raise FileError(f"{path}: {error}") from error


def _chosen_topic(bag: Bag, wanted: str | None) -> str:
    found = [each.name for each in bag.of_kind(POINT_CLOUD2, VELODYNE_SCAN) if not each.name.endswith(NO_RETURN)]
    if ABOUT in bag.topics and POINTS in found:  # ours; those of further returns are read with the first
        found = [name for name in found if name == POINTS or not name.removeprefix(POINTS).isdigit()]
    listed = ", ".join(found)
    if wanted is not None:
        if wanted not in found:
            raise FileError(f"{bag.path}: {wanted} is no topic of clouds or packets; there are: {listed or 'none'}")
        return wanted
    if not found:
        every = ", ".join(f"{each.name} ({each.kind})" for each in bag.topics.values() if each.count)
        raise FileError(f"{bag.path}: holds no PointCloud2 or VelodyneScan messages; it has {every or 'no messages'}")
    if len(found) > 1:
        raise FileError(f"{bag.path}: there are several topics of clouds; choose topic= {listed}")
    return found[0]


def _clouds(bag: Bag, name: str, poses: PoseSource, options: ReadOptions) -> SweepSource:
    topic, about = CloudTopic(bag, name), ""
    for message in bag.messages({name, ABOUT, *poses.topics}):
        if message.topic == name:
            topic.add(message)
        elif message.topic == ABOUT:
            about = str(bag.decode(message).data)
        else:
            poses.add(message)
    if not topic.entries:
        raise FileError(f"{bag.path}: {name} holds no clouds, though its index promises some")
    header = _About.read(about, bag.path)
    period_ns = _period_ns(topic, options)
    first, last = topic.entries[0].stamp_ns, topic.entries[-1].stamp_ns
    trajectory = poses.trajectory(topic.frame, first - period_ns, last + period_ns)
    if options.trajectory is None:
        trajectory = extend_trajectory(trajectory, period_ns)
    trajectory, origin_m = _in_map(trajectory, header, options)
    notes = {"read_from": "bag", "topic": name} | poses.notes
    settings = _settings(header, options)
    topic.n_returns = settings.n_per_pulse
    if header is not None and header.organised and name == POINTS:
        topic.planes = plane_topics(POINTS, settings.n_per_pulse)
    settings = replace(settings, map_origin_m=origin_m, metadata=settings.metadata | notes)
    return _CloudRecording(Path(bag.path), topic, trajectory, settings, period_ns, options, header is not None).source()


def _period_ns(topic: CloudTopic, options: ReadOptions) -> int:
    """Return how long a sweep takes."""
    stamps = np.array([entry.stamp_ns for entry in topic.entries], np.int64)
    if options.rate_hz is not None:
        return round(1e9 / options.rate_hz)
    return int(np.median(np.diff(stamps))) if len(stamps) > 1 else 100_000_000


def _in_map(trajectory: Trajectory, header: _About | None, options: ReadOptions) -> tuple[Trajectory, Any]:
    if header is not None and options.map_origin_m is None:
        return trajectory, np.array(header.map_origin_m)  # the poses in it are the map's already
    return subtract_map_origin(trajectory, options)


def _settings(header: _About | None, options: ReadOptions) -> Settings:
    """Put together what the bag, the catalogue and the options say about the sensor."""
    name = options.sensor or ("" if header is None else header.sensor)
    known = find_sensor(name)
    near, far = (0.0, np.inf) if known is None else (known.config.range.min_m, known.config.range.max_m)
    if header is not None:
        near, far = header.min_range_m, np.inf if header.max_range_m is None else header.max_range_m
    settings = Settings(
        sensor=name,
        min_range_m=near,
        max_range_m=float(far),
        metadata={} if header is None else dict(header.metadata),
        n_per_pulse=1 if header is None else header.n_per_pulse,
    )
    return options.apply_to(settings)


@dataclass(frozen=True, slots=True, eq=False)
class _CloudRecording:
    """A topic of clouds with everything that is known about it; looks at a few clouds to tell how to read them all."""

    path: Path
    topic: CloudTopic
    trajectory: Trajectory
    """T_map_sensor."""
    settings: Settings
    """All but arrays, returns per pulse and what the metadata say about missing returns."""
    period_ns: int
    """How long a sweep takes, where the clouds do not tell."""
    options: ReadOptions
    is_ours: bool
    """Whether Hedgerow wrote the bag, and told of missing returns."""

    def source(self) -> SweepSource:
        """Look at a few clouds and make a log of them all.

        Raises:
            FileError: a cloud is damaged, or recovery was asked for and is not possible.
        """
        chosen = np.unique(np.linspace(0, len(self.topic.entries) - 1, _LOOKED_AT).round().astype(int)).tolist()
        some = [self.topic.points(number) for number in chosen]
        first = next((each for each in some if each.hit.any()), some[0])
        arrays = [name for name in MEASURED if getattr(first, name) is not None]
        known = replace(self, settings=replace(self.settings, arrays=arrays))
        if self.topic.misses is not None and self.is_ours and self.options.recover != "no":
            return known._with_misses()
        if len(self.topic.planes) > 1:
            return known._with_several_returns(self.settings.n_per_pulse)
        reason = ""
        if is_organised(first) and self.options.recover != "no":
            try:
                return known._organised(chosen)
            except NotRecovered as error:
                reason = str(error)
                if self.options.recover == "yes":
                    raise FileError(f"{self.path}: empty cells cannot be told where they point, {error}") from None
        n_returns = max(returns_per_pulse(each) for each in some)
        return known._with_several_returns(n_returns) if n_returns > 1 else known._points_alone(first, reason)

    def _raw(self, number: int) -> PointGrid:
        """Return the points of a cloud, each in the sensor frame of its own instant."""
        points = self.topic.points(number)
        if not self.options.deskewed or points.time_ns is None:
            return points
        hit, xyz = points.hit, points.xyz.copy()
        stamp_ns = self.topic.entries[number].stamp_ns
        xyz[hit] = reskew(self.trajectory, xyz[hit], points.time_ns[hit], stamp_ns)
        return replace(points, xyz=xyz)

    def _firing_source(
        self, load: Callable[[int], Firings], recovery: dict[str, Any], n_per_pulse: int
    ) -> FiringSource:
        metadata = self.settings.metadata | {"motion": self._motion(), "recovery": recovery}
        settings = replace(self.settings, n_per_pulse=n_per_pulse, metadata=metadata)
        return FiringSource(self.path, settings, self.trajectory, range(len(self.topic.entries)), load)

    def _motion(self) -> str:
        return "compensated" if self.options.deskewed else "raw"

    def _with_misses(self) -> FiringSource:
        """Read what Hedgerow wrote: points, and directions of pulses without any."""
        n_returns = self.settings.n_per_pulse
        recovery = {"method": "told", "summary": "known; the recording tells every firing"}
        return self._firing_source(lambda number: pulses_of(*self.topic.both(number), n_returns), recovery, n_returns)

    def _with_several_returns(self, n_returns: int) -> FiringSource:
        """Read clouds in which a pulse has several points."""
        summary = "not recovered, every beam has a return (points of one ring and time are returns of one pulse)"
        recovery = {"method": "none", "summary": summary}
        return self._firing_source(lambda number: pulses_of(self._raw(number), None, n_returns), recovery, n_returns)

    def _organised(self, chosen: list[int]) -> FiringSource:
        """Read clouds with a cell for every firing. Raises NotRecovered if those looked at are none."""
        settings = replace(self.settings, metadata=self.settings.metadata | {"motion": self._motion()})
        count = len(self.topic.entries)
        return organised_source(self.path, settings, self.trajectory, count, self._raw, self._span, chosen)

    def _points_alone(self, first: PointGrid, reason: str) -> CloudSource:
        """Read clouds that hold nothing but points."""
        sensor = find_sensor(self.settings.sensor)
        entries = self.topic.entries
        low, high = (each - entries[0].stamp_ns for each in self._span(0, self.topic.points(0)))
        sweeps = [SweepTimes(k, e.stamp_ns + low, e.stamp_ns + high, e.stamp_ns) for k, e in enumerate(entries)]
        reading = CloudReading(
            sensor=sensor,
            start_rad=_start_rad(first, sensor),
            clockwise=sensor is None or sensor.config.pattern.turns == "clockwise",
            deskewed=bool(self.options.deskewed),
            times_by_laser=True,
            recover=self.options.recover,
            metadata={"organised": reason} if reason else {},
        )
        settings = replace(self.settings, n_per_pulse=1)
        return CloudSource(
            self.path, settings, self.trajectory, sweeps, lambda number: _cloud(self.topic.points(number)), reading
        )

    def _span(self, number: int, points: PointGrid) -> tuple[int, int]:
        """Return when a cloud began and ended: by its times, else one sweep from its stamp on."""
        stamp_ns, hit = self.topic.entries[number].stamp_ns, points.hit
        if points.time_ns is None or not hit.any():
            return stamp_ns, stamp_ns + self.period_ns
        time_ns = points.time_ns[hit]
        return int(time_ns.min()), int(time_ns.max())


def _cloud(points: PointGrid) -> SensorCloud:
    hit = points.hit

    def chosen(values: Any) -> Any:
        return None if values is None else values[hit]

    ring = None if points.ring is None else np.clip(points.ring[hit], 0, 65535).astype(np.uint16)
    n_left_out = hit.size - int(np.count_nonzero(hit))
    xyz, time_ns = points.xyz[hit], chosen(points.time_ns)
    beside = {name: chosen(getattr(points, name)) for name in MEASURED}
    return SensorCloud(xyz, ring=ring, time_ns=time_ns, n_left_out=n_left_out, **beside)


def _start_rad(points: PointGrid, sensor: "Sensor | None") -> float:
    """Return the angle of the rotor at which sweeps start: that of the earliest points, or of the first in order."""
    hit = points.hit
    xyz, ring = points.xyz[hit], None if points.ring is None else points.ring[hit]
    if not len(xyz):
        return float(np.pi)
    rows: NDArray[np.intp] = np.arange(max(1, len(xyz) // 1000))
    if points.time_ns is not None:
        time_ns = points.time_ns[hit]
        rows = np.flatnonzero(time_ns <= time_ns.min() + np.ptp(time_ns) // _COLUMNS)
    known = None if sensor is None else nominal(sensor)
    angle = np.arctan2(xyz[rows, 1], xyz[rows, 0])
    if known is not None:  # beams leave the rotor at an angle
        laser = first_lasers(xyz, known, ring)[rows]
        angle = known.lasers.rotor_rad(xyz[rows], laser)
    return float(np.angle(np.exp(1j * angle).sum()))


def _packets(bag: Bag, name: str, poses: PoseSource, options: ReadOptions) -> SweepSource:
    frame = ""
    for message in bag.messages({name, *poses.topics}):
        if message.topic != name:
            poses.add(message)
        elif not frame:
            frame = bag.header(message).frame
    where, packets = f"{bag.path}, {name}", partial(_unpacked, bag, name)
    sweeps = VelodyneSweeps(where, packets, options.sensor, options.metadata)
    trajectory = poses.trajectory(frame, sweeps.start_ns, sweeps.end_ns)
    if options.trajectory is None:
        trajectory = extend_trajectory(trajectory, _MARGIN_NS)
    trajectory, origin_m = subtract_map_origin(trajectory, options)
    settings = options.apply_to(velodyne_settings(sweeps))
    notes = {"read_from": "bag", "topic": name} | poses.notes
    settings = replace(settings, map_origin_m=origin_m, metadata=settings.metadata | notes)
    return FiringSource(Path(bag.path), settings, trajectory, range(sweeps.count), sweeps.load)


@dataclass(frozen=True, slots=True)
class _Packet:
    position: tuple[int, int]
    """When its message was recorded, and its place in it."""
    time_ns: int
    payload: bytes


def _unpacked(bag: Bag, name: str, position: tuple[int, int] | None) -> Iterator[_Packet]:
    """Give the packets of a topic from a position on."""
    start_ns, skip = (None, 0) if position is None else position
    for message in bag.messages({name}, start_ns):
        content: Any = bag.decode(message)
        for number, packet in enumerate(content.packets):
            if message.bag_ns == start_ns and number < skip:
                continue
            yield _Packet((message.bag_ns, number), stamp_ns(packet.stamp), np.asarray(packet.data, np.uint8).tobytes())
