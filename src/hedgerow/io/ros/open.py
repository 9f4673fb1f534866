# SPDX-License-Identifier: Apache-2.0
"""Open a bag as a log: one PointCloud2 message is one sweep, packets of a Velodyne are cut into turns.

Missing returns: known from packets and from bags that Hedgerow wrote; from the empty cells of organised clouds, with
directions worked out (organised.py); of other clouds recovered from the points, if the lidar is said (recovery/).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.firings import FiringSource, localised
from hedgerow.io.beams.motion import stretched
from hedgerow.io.options import ReadOptions
from hedgerow.io.pcap.open import velodyne_settings
from hedgerow.io.pcap.velodyne import VelodyneSweeps
from hedgerow.io.points.columns import header_of
from hedgerow.io.ros.bag import Bag
from hedgerow.io.ros.poses import PoseSource
from hedgerow.io.ros.sweeps import CloudRecording
from hedgerow.io.ros.topic import CLOUD, NO_RETURN, CloudTopic
from hedgerow.io.ros.writer import ABOUT
from hedgerow.io.source import Settings, SweepSource

SCAN = "velodyne_msgs/msg/VelodyneScan"


def open_log(path: str | Path, options: ReadOptions) -> SweepSource:
    """Open a bag; see `options.ReadOptions`.

    Raises:
        FileError: damaged, without clouds or poses, or with several topics of them.
    """
    bag = Bag(path)
    topic = _chosen_topic(bag, options.topic)
    poses = PoseSource(bag, options)
    try:
        if bag.topics[topic].kind == SCAN:
            return _packets(bag, topic, poses, options)
        return _clouds(bag, topic, poses, options)
    except InputError as error:
        raise FileError(f"{path}: {error}") from error


def _chosen_topic(bag: Bag, wanted: str | None) -> str:
    found = [each.name for each in bag.of_kind(CLOUD, SCAN) if not each.name.endswith(NO_RETURN)]
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
    header = header_of(about or None, bag.path)
    period_ns = _period_ns(topic, options)
    first, last = topic.entries[0].stamp_ns, topic.entries[-1].stamp_ns
    trajectory = poses.trajectory(topic.frame, first - period_ns, last + period_ns)
    if options.trajectory is None:
        trajectory = stretched(trajectory, period_ns)
    trajectory, origin_m = _in_map(trajectory, header, options)
    notes = {"read_from": "bag", "topic": name} | poses.notes
    settings = _settings(header, options)
    settings = replace(settings, map_origin_m=origin_m, metadata=settings.metadata | notes)
    return CloudRecording(Path(bag.path), topic, trajectory, settings, period_ns, options, bool(header)).source()


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
        trajectory = stretched(trajectory, 200_000_000)
    trajectory, origin_m = localised(trajectory, options)
    settings = options.applied(velodyne_settings(sweeps))
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
            stamp_ns = packet.stamp.sec * 1_000_000_000 + packet.stamp.nanosec
            yield _Packet((message.bag_ns, number), stamp_ns, np.asarray(packet.data, np.uint8).tobytes())


def _period_ns(topic: CloudTopic, options: ReadOptions) -> int:
    """Return how long a sweep takes."""
    stamps = np.array([entry.stamp_ns for entry in topic.entries], np.int64)
    if options.rate_hz is not None:
        return round(1e9 / options.rate_hz)
    return int(np.median(np.diff(stamps))) if len(stamps) > 1 else 100_000_000


def _in_map(trajectory: Trajectory, header: dict[str, Any], options: ReadOptions) -> tuple[Trajectory, Any]:
    if header and options.map_origin_m is None:
        return trajectory, np.array(header["map_origin_m"])  # the poses in it are the map's already
    return localised(trajectory, options)


def _settings(header: dict[str, Any], options: ReadOptions) -> Settings:
    """Put together what the bag, the catalogue and the options say about the sensor."""
    from hedgerow.io.folder import known_sensor

    name = options.sensor or str(header.get("sensor", ""))
    known = known_sensor(name)
    near, far = (0.0, np.inf) if known is None else (known.config.range.min_m, known.config.range.max_m)
    if header:
        far_told = header.get("max_range_m")
        near, far = float(header["min_range_m"]), np.inf if far_told is None else float(far_told)
    settings = Settings(
        sensor=name,
        min_range_m=near,
        max_range_m=float(far),
        metadata=dict(header.get("metadata", {})),
        n_per_pulse=max(1, min(int(header.get("n_per_pulse", 1)), 255)),
    )
    return options.applied(settings)
