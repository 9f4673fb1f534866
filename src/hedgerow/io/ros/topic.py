# SPDX-License-Identifier: Apache-2.0
"""CloudTopic: the messages of one PointCloud2 topic by number, while one of them is in memory.

Bags that Hedgerow wrote have a second topic beside it with the directions of the pulses that got nothing back. If their
clouds are organised, more topics have the second returns of the same cells, the third ones, and so on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.rgb import from_bits
from hedgerow.errors import FileError, InputError
from hedgerow.io.beams.firings import Firings
from hedgerow.io.beams.motion import times_of
from hedgerow.io.beams.organised import PointGrid
from hedgerow.io.ros.bag import Bag, Message
from hedgerow.io.ros.messages import rows_of
from hedgerow.io.source import require_memory
from hedgerow.log import MEASURED

NO_RETURN = "/no_return"
"""Ends the name of the topic with missing returns."""
_SKIP_NS = 5_000_000_000  # farther ahead, the bag is opened anew rather than read through
_SAME_RAD = 0.015  # returns of one pulse point the same way, but for the few millimetres between axis and lens
_MOST_RETURNS = 3
_MOST_TOLD = 255
_BYTES_MORE = 20  # that a message takes in memory for each of its own, as points and as beams
_APART_M, _LEVER_M = 0.1, 0.3  # returns that show the line of their beam; how far it may pass by the sensor
_BESIDE_M = 1e-4  # of float32 at 100 m it is a tenth
# What drivers call the fields.
_INTENSITY = ("intensity", "reflectivity", "intensities", "i")
_RING = ("ring", "channel", "laser_id", "laser", "line")
_TIME = ("time", "t", "timestamp", "time_stamp", "timestamps", "offset_time", "time_offset_ns", "stamp")
_LABEL = ("label", "semantic", "class")
_NUMBER = ("return_number",)
_RGB = ("rgb", "rgba")


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one cloud is."""

    bag_ns: int
    stamp_ns: int


class CloudTopic:
    """The clouds of a topic; give it their messages once, then ask for points by number."""

    def __init__(self, bag: Bag, name: str) -> None:
        """Begin without any."""
        self._bag, self.name = bag, name
        self.entries: list[Entry] = []
        self.frame = ""
        self.misses = name + NO_RETURN if name + NO_RETURN in bag.topics else None
        self.planes = [name]
        """Topics with the first, second, ... returns of the same cells; one unless Hedgerow wrote organised clouds."""
        self.n_returns = 1
        """Most returns of a pulse, which say how much memory a cloud takes."""
        self._unstamped = False
        self._stream: Iterator[Message] | None = None
        self._next: Message | None = None

    def add(self, message: Message) -> None:
        """Note where a cloud is.

        Raises:
            FileError: it is damaged, its stamp is not later than the one before, or its frame is another.
        """
        header = self._bag.header(message)
        if header.stamp_ns == 0 and self.entries and self.entries[-1].stamp_ns == 0:
            self._unstamped = True  # a driver that does not stamp: the times of recording have to do
            self.entries[-1] = Entry(self.entries[-1].bag_ns, self.entries[-1].bag_ns)
        stamp_ns = self._stamp_ns(message)
        if not self.entries:
            self.frame = header.frame
        elif header.frame != self.frame:
            raise FileError(f"{self._where(len(self.entries))}: is in the frame {header.frame!r}, not {self.frame!r}")
        elif stamp_ns <= self.entries[-1].stamp_ns:
            apart_s = (self.entries[-1].stamp_ns - stamp_ns) / 1e9
            raise FileError(
                f"{self._where(len(self.entries))}: its stamp is not later than that of the cloud before, but "
                f"{apart_s:.3f} s earlier; sort or cut the bag"
            )
        self.entries.append(Entry(message.bag_ns, stamp_ns))

    def points(self, number: int) -> PointGrid:
        """Return the points of a cloud.

        Raises:
            FileError: it is damaged.
        """
        return self.both(number)[0]

    def both(self, number: int) -> tuple[PointGrid, PointGrid | None]:
        """Return the points of a cloud and, if there is such a topic, the directions of missing returns."""
        found = self._read(number)
        planes = [found[name] for name in self.planes]
        if len({plane.xyz.shape for plane in planes}) > 1:
            raise FileError(f"{self._where(number)}: the clouds of its first and further returns differ in size")
        return stacked(planes), found.get(self.misses or "")

    def _read(self, number: int) -> dict[str, PointGrid]:
        entry = self.entries[number]
        found: dict[str, PointGrid] = {}
        for message in self._at(entry.bag_ns):
            stamp_ns = self._stamp_ns(message)
            if stamp_ns == entry.stamp_ns:
                require_memory(self._bag.path, (_BYTES_MORE + 3 * self.n_returns) * len(message.raw))
                found[message.topic] = points_of(self._bag.decode(message), stamp_ns, self._where(number))
        if not set(self.planes) <= set(found):
            raise FileError(f"{self._where(number)}: is gone; did the bag change while it was read?")
        return found

    def _at(self, bag_ns: int) -> list[Message]:
        """Return the messages recorded at one instant, going on from the last reading if that is not far."""
        ahead = None if self._next is None else bag_ns - self._next.bag_ns
        if self._stream is None or ahead is None or not 0 <= ahead < _SKIP_NS:
            topics = {*self.planes} if self.misses is None else {*self.planes, self.misses}
            self._stream = self._bag.messages(topics, bag_ns)
            self._next = next(self._stream, None)
        found: list[Message] = []
        while self._next is not None and self._next.bag_ns <= bag_ns:
            if self._next.bag_ns == bag_ns:
                found.append(self._next)
            self._next = next(self._stream, None)
        return found

    def _stamp_ns(self, message: Message) -> int:
        return message.bag_ns if self._unstamped else self._bag.header(message).stamp_ns

    def _where(self, number: int) -> str:
        return f"{self._bag.path}, {self.name}, cloud {number}"


def pulses_of(points: PointGrid, misses: PointGrid | None, n_returns: int) -> Firings:
    """Return a pulse for each point; points of one ring and one time are returns of one pulse, if nothing tells.

    Args:
        points: frame of the sensor at the instant of each.
        misses: unit directions of pulses without a return.
        n_returns: most returns of a pulse; farther ones are left out. 1: each point is a pulse of its own.
    """
    hit = points.hit
    xyz = points.xyz[hit]
    time_ns, ring = _of(points.time_ns, hit, np.int64), _of(points.ring, hit, np.int64)
    range_m = np.linalg.norm(xyz, axis=1)
    pulse, slot = np.arange(len(xyz)), np.zeros(len(xyz), np.int64)
    if n_returns > 1:
        told = _told(points)
        pulse, slot = _grouped(time_ns, ring, range_m) if told is None else (np.cumsum(told == 1) - 1, told - 1)
    kept = slot < n_returns
    first = np.flatnonzero(slot == 0)[np.argsort(pulse[slot == 0])]
    shape = (len(first), n_returns)
    origin_m, direction = _lines(xyz, pulse[kept], slot[kept], np.flatnonzero(kept), first)
    ranges = np.full(shape, np.inf)
    ranges[pulse[kept], slot[kept]] = np.einsum("ij,ij->i", xyz[kept], direction[pulse[kept]])
    beside: dict[str, Any] = {}
    for name in MEASURED:
        values = getattr(points, name)
        if values is not None:
            beside[name] = np.zeros(shape, values.dtype)
            beside[name][pulse[kept], slot[kept]] = values[hit][kept]
    firings = Firings(origin_m, direction, ranges, ring[first], time_ns[first], **beside)
    return firings if misses is None else _with_misses(firings, misses)


def _lines(
    xyz: NDArray[np.float64],
    pulse: NDArray[np.int64],
    slot: NDArray[np.int64],
    row: NDArray[np.intp],
    first: NDArray[np.intp],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return origins and unit directions of pulses: lines from the sensor, or through the returns that one has.

    A laser emits some centimetres beside the axis, so that a line from the axis through the nearest return can miss the
    farthest by decimetres. The line through both is the beam's own.

    Args:
        xyz: (N, 3) points.
        pulse, slot, row: (M,) of the points that count: their pulses, which of the returns they are, their rows.
        first: (P,) row of the nearest point of each pulse.
    """
    far = first.copy()
    order = np.argsort(slot, kind="stable")
    far[pulse[order]] = row[order]
    along = xyz[far] - xyz[first]
    apart_m = np.linalg.norm(along, axis=1)
    direction = xyz[first] / np.linalg.norm(xyz[first], axis=1, keepdims=True)
    line = along / np.where(apart_m > 0, apart_m, 1)[:, None]
    foot_m = xyz[first] - np.einsum("ij,ij->i", xyz[first], line)[:, None] * line
    beside_m = np.linalg.norm(xyz[far] - np.einsum("ij,ij->i", xyz[far], direction)[:, None] * direction, axis=1)
    # Else one line has them all, they are too near each other to tell, or no returns of one pulse.
    sure = (beside_m > _BESIDE_M) & (apart_m > _APART_M) & (np.linalg.norm(foot_m, axis=1) < _LEVER_M)
    return np.where(sure[:, None], foot_m, 0.0), np.where(sure[:, None], line, direction)


def returns_per_pulse(points: PointGrid) -> int:
    """Tell how many returns a pulse of this cloud has: as it says, or by points of one ring, time and direction."""
    told = _told(points)
    if told is not None and len(told):
        return int(min(told.max(), _MOST_TOLD))
    if points.ring is None or points.time_ns is None:
        return 1
    hit = points.hit
    xyz, time_ns, ring = points.xyz[hit], points.time_ns[hit], points.ring[hit]
    if len(xyz) < 2:
        return 1
    order = np.lexsort([ring, time_ns])
    same = (np.diff(time_ns[order]) == 0) & (np.diff(ring[order]) == 0)
    unit = xyz[order] / np.linalg.norm(xyz[order], axis=1, keepdims=True)
    apart = np.linalg.norm(np.diff(unit, axis=0), axis=1)
    _, counts = np.unique(np.stack([time_ns, ring]), axis=1, return_counts=True)
    n_same = int(np.count_nonzero(same))
    alike = n_same > 0 and np.count_nonzero(apart[same] < _SAME_RAD) > 0.95 * n_same
    return int(counts.max()) if alike and counts.max() <= _MOST_RETURNS else 1


def stacked(planes: list[PointGrid]) -> PointGrid:
    """Put the clouds of first, second, ... returns together, cell by cell; one alone stays the grid that it is."""
    if len(planes) == 1:
        return planes[0]

    def of(name: str) -> Any:
        values = [getattr(plane, name) for plane in planes]
        return None if any(each is None for each in values) else np.stack(values, axis=2).reshape(1, -1)

    xyz = np.stack([plane.xyz for plane in planes], axis=2).reshape(1, -1, 3)
    names = (*MEASURED, "ring", "time_ns", "return_number")
    return PointGrid(xyz, **{name: of(name) for name in names})


def _told(points: PointGrid) -> NDArray[np.int64] | None:
    """Return which of its pulse's returns each point is, where the cloud numbers them and has each pulse in one go."""
    if points.return_number is None or points.ring is None or points.time_ns is None:
        return None
    hit = points.hit
    number, ring, time_ns = points.return_number[hit], points.ring[hit], points.time_ns[hit]
    further = number[1:] > 1
    follows = (np.diff(number) == 1) & (np.diff(ring) == 0) & (np.diff(time_ns) == 0)
    in_order = bool((number[:1] == 1).all()) and bool((number >= 1).all()) and bool(follows[further].all())
    return number if in_order else None


def _grouped(
    time_ns: NDArray[np.int64], ring: NDArray[np.int64], range_m: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pulse of each point, and which of its returns it is, nearest first."""
    order = np.lexsort([range_m, ring, time_ns])
    new = np.ones(len(order), np.bool_)
    new[1:] = (np.diff(time_ns[order]) != 0) | (np.diff(ring[order]) != 0)
    pulse, slot = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    pulse[order] = np.cumsum(new) - 1
    place: NDArray[np.int64] = np.arange(len(order), dtype=np.int64)
    slot[order] = place - np.flatnonzero(new)[np.cumsum(new) - 1]
    return pulse, slot


def _with_misses(firings: Firings, misses: PointGrid) -> Firings:
    there = misses.hit
    xyz = misses.xyz[there]
    n, n_returns = len(xyz), firings.range_m.shape[1]
    time_ns = np.concatenate([firings.time_ns, _of(misses.time_ns, there, np.int64)])
    ring = np.concatenate([firings.ring, _of(misses.ring, there, np.int64)])
    order = np.lexsort([ring, time_ns])
    beside: dict[str, Any] = {}
    for name in MEASURED:
        values = getattr(firings, name)
        if values is not None:
            beside[name] = np.concatenate([values, np.zeros((n, n_returns), values.dtype)])[order]
    return Firings(
        np.concatenate([firings.origin_m, np.zeros((n, 3))])[order],
        np.concatenate([firings.direction, xyz / np.linalg.norm(xyz, axis=1, keepdims=True)])[order],
        np.concatenate([firings.range_m, np.full((n, n_returns), np.inf)])[order],
        ring[order],
        time_ns[order],
        **beside,
    )


def _of(values: NDArray[Any] | None, chosen: NDArray[np.bool_], dtype: Any) -> NDArray[Any]:
    return np.zeros(int(chosen.sum()), dtype) if values is None else values[chosen]


def points_of(message: Any, stamp_ns: int, where: str) -> PointGrid:
    """Take the fields out of a PointCloud2 message.

    Args:
        message: decoded.
        stamp_ns: of its header.
        where: for the error.

    Raises:
        FileError: it has no x, y, z, or does not hold what it says.
    """
    rows = _rows(message, where)
    names = rows.dtype.names or ()
    if not {"x", "y", "z"} <= set(names):
        raise FileError(f"{where}: the cloud has no fields x, y, z (has {', '.join(names) or 'none'})")
    with np.errstate(all="ignore"):
        xyz = np.stack([rows[axis].astype(np.float64) for axis in "xyz"], axis=-1)
        return PointGrid(
            xyz,
            _first(rows, _INTENSITY, np.float32),
            _first(rows, _RING, np.int64),
            times_of(_first(rows, _TIME), stamp_ns),
            _first(rows, _LABEL, np.uint16),
            _first(rows, _NUMBER, np.int64),
            _colour(rows),
        )


def _colour(rows: NDArray[np.void]) -> NDArray[np.uint32] | None:
    packed = _first(rows, _RGB)
    return None if packed is None else from_bits(packed)


def _rows(message: Any, where: str) -> NDArray[np.void]:
    """Return the content as a structured array, (height, width)."""
    fields = ((each.name, int(each.offset), int(each.datatype), int(each.count)) for each in message.fields)
    shape = int(message.height), int(message.width)
    steps = int(message.point_step), int(message.row_step)
    try:
        return rows_of(fields, np.asarray(message.data, np.uint8), shape, steps, bool(message.is_bigendian))
    except InputError as error:
        raise FileError(f"{where}: {error}") from None


def _first(rows: NDArray[np.void], names: tuple[str, ...], dtype: Any = None) -> Any:
    """Return the first of these fields that there is, as it is or as another type, or None."""
    there = [name for name in names if name in (rows.dtype.names or ())]
    if not there:
        return None
    return rows[there[0]] if dtype is None else rows[there[0]].astype(dtype)
