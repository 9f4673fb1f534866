# SPDX-License-Identifier: Apache-2.0
"""Bag: topics and messages of a ROS 1 bag, a ROS 2 bag or an MCAP file.

Messages are decoded by the definitions that ROS ships, not by those in the file: the few types that are read here
have not changed in ten years, and a strange type on another topic does no harm.
"""

import struct
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hedgerow.base.bounded_file import BoundedPath
from hedgerow.errors import FileError, HedgerowError
from hedgerow.io.ros.check import require_sound
from hedgerow.io.ros.limits import bounded_queries, install
from hedgerow.io.ros.messages import TF_MESSAGE

VELODYNE_SCAN = "velodyne_msgs/msg/VelodyneScan"
OLD_TF_MESSAGE = "tf/msg/tfMessage"
_SAME: dict[str, str] = {OLD_TF_MESSAGE: TF_MESSAGE}
"""Types that are one by another name; old bags have both on one topic."""
_LATEST_NS = 1 << 62  # the year 2116; later times are damage, and sums of them would not fit
_MORE_TYPES = {
    "velodyne_msgs/msg/VelodynePacket": "time stamp\nuint8[1206] data\n",
    VELODYNE_SCAN: "std_msgs/Header header\nvelodyne_msgs/VelodynePacket[] packets\n",
    TF_MESSAGE: "geometry_msgs/TransformStamped[] transforms\n",
    OLD_TF_MESSAGE: "geometry_msgs/TransformStamped[] transforms\n",
}


@dataclass(frozen=True, slots=True)
class Topic:
    """What a bag says about a topic."""

    name: str
    kind: str
    """Type of its messages, as ROS 2 writes it: sensor_msgs/msg/PointCloud2."""
    count: int


@dataclass(frozen=True, slots=True)
class Message:
    """One message, not decoded yet."""

    topic: str
    kind: str
    bag_ns: int
    """When it was recorded."""
    raw: bytes


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """The std_msgs/Header that a message begins with."""

    stamp_ns: int
    frame: str


class Bag:
    """A recording, opened anew for each reading."""

    def __init__(self, path: str | Path) -> None:
        """List the topics.

        Raises:
            FileError: missing, damaged, or no bag.
        """
        self.path = Path(path)
        self.is_ros1 = self.path.suffix.lower() == ".bag"
        self._others: dict[str, str] = {}
        self.topics: dict[str, Topic] = {}
        require_sound(self.path)
        with self._opened() as reader:
            for each in reader.connections:
                self._add(each.topic, each.msgtype, each.msgcount)

    def _add(self, name: object, kind: object, count: object) -> None:
        """Note a connection; several of one topic, as from nodes that took turns, count together."""
        if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(count, int) or count < 0:
            raise ValueError(f"a topic {name!r} of type {kind!r} with {count!r} messages is not possible")
        kind, known = _SAME.get(kind, kind), self.topics.get(name)
        if known is None or known.kind == kind or not known.count:
            self.topics[name] = Topic(name, kind, count + (known.count if known else 0))
        elif count:
            self._others[name] = kind

    def of_kind(self, *kinds: str) -> list[Topic]:
        """Return the topics of these message types that have messages, by name."""
        found = [topic for topic in self.topics.values() if topic.kind in kinds and topic.count]
        return sorted(found, key=lambda topic: topic.name)

    def messages(self, topics: Collection[str], start_ns: int | None = None) -> Iterator[Message]:
        """Give the messages of some topics in the order in which they were recorded.

        Args:
            topics: their names.
            start_ns: time of recording to begin with.

        Raises:
            FileError: the bag is damaged.
        """
        for name in set(topics) & set(self._others):
            kinds = f"{self.topics[name].kind} and {self._others[name]}"
            raise FileError(f"{self.path}: {name} has messages of several types, {kinds}; split the bag")
        with self._opened() as reader:
            wanted = [each for each in reader.connections if each.topic in topics]
            if not wanted:
                return
            for connection, bag_ns, raw in reader.messages(connections=wanted, start=start_ns):
                yield self._message(connection, bag_ns, raw, topics)

    def _message(self, connection: Any, bag_ns: object, raw: object, topics: Collection[str]) -> Message:
        """Take what rosbags gives; a damaged index leads to messages of other topics, SQLite has any type anywhere."""
        name: str = connection.topic
        kind = _SAME.get(connection.msgtype, str(connection.msgtype))
        if name not in topics or name not in self.topics or kind != self.topics[name].kind:
            raise ValueError(f"its index leads to a message of {name}")
        if not isinstance(bag_ns, int) or not 0 <= bag_ns < _LATEST_NS:
            raise ValueError(f"{name} has a message recorded at {bag_ns!r} ns")
        if isinstance(raw, memoryview):
            raw = raw.tobytes()
        if not isinstance(raw, bytes):
            raise ValueError(f"{name} has a message that is no bytes")
        return Message(name, kind, bag_ns, raw)

    def decode(self, message: Message) -> Any:
        """Return the content of a message.

        Raises:
            FileError: it is damaged.
        """
        with self._guarded(f", {message.topic} at {message.bag_ns} ns"):
            types = typestore(self.is_ros1)
            decode = types.deserialize_ros1 if self.is_ros1 else types.deserialize_cdr
            return decode(message.raw, message.kind)

    def header(self, message: Message) -> MessageHeader:
        """Return the header of a message without decoding the rest.

        Raises:
            FileError: it is damaged.
        """
        raw = message.raw
        with self._guarded(f", {message.topic} at {message.bag_ns} ns"):
            order = "<" if self.is_ros1 or raw[1] & 1 else ">"
            seconds, nanoseconds, length = struct.unpack_from(order + "III", raw, 4)
            text = raw[16 : 16 + length].rstrip(b"\0").decode()
            return MessageHeader(seconds * 1_000_000_000 + nanoseconds, text.lstrip("/"))

    @contextmanager
    def _opened(self) -> Generator[Any]:
        from rosbags.rosbag1 import Reader as Reader1
        from rosbags.rosbag2 import Reader as Reader2

        install()
        with self._guarded():
            reader: Any = (Reader1 if self.is_ros1 else Reader2)(BoundedPath(self.path))
            with bounded_queries(_n_bytes(self.path)):
                reader.open()
            try:
                yield reader
            finally:
                reader.close()

    @contextmanager
    def _guarded(self, where: str = "") -> Generator[None]:
        """Turn whatever rosbags raises on damaged files (also assertions and struct errors) into one sentence."""
        try:
            yield
        except HedgerowError:
            raise
        except OSError as error:
            raise FileError(f"{self.path}{where}: cannot read ({error.strerror or error})") from error
        except Exception as error:
            text = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
            kind = "ROS 1 bag" if self.is_ros1 else "ROS 2 bag or MCAP file"
            raise FileError(f"{self.path}{where}: is damaged, cut off, or no {kind} ({text})") from error


def _n_bytes(path: Path) -> int:
    files = [each for each in path.iterdir() if each.is_file()] if path.is_dir() else [path]
    return sum(each.stat().st_size for each in files)


@cache
def typestore(is_ros1: bool) -> Any:
    """Return the message types that are read and written here."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if is_ros1 else Stores.ROS2_HUMBLE)
    for kind, text in _MORE_TYPES.items():
        if kind not in store.fielddefs:
            definition = text if is_ros1 else text.replace("time ", "builtin_interfaces/Time ")
            store.register({kind: get_types_from_msg(definition, kind)[kind]})
    return store
