# SPDX-License-Identifier: Apache-2.0
"""Transforms: what /tf and /tf_static say, and the path of one frame in another that follows from it.

As in tf2, a frame has one parent, transforms may arrive in any order, and between two of them motion is even. Unlike
there, nothing is forgotten after ten seconds.
"""

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import rotation
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory

MAP_FRAMES = ("map", "odom", "world")
"""Frames that stand still, best first."""


@dataclass(slots=True)
class Link:
    """A frame in its parent: stamps [ns], and seven numbers for each (position, quaternion)."""

    parent: str
    is_static: bool
    stamps_ns: "array[int]" = field(default_factory=lambda: array("q"))
    numbers: "array[float]" = field(default_factory=lambda: array("d"))
    other_parent: str = ""
    """A second frame that it is said to hang on."""

    def add(self, stamp_ns: int, position: Any, turn: Any) -> None:
        """Take one transform: geometry_msgs' position or translation, and its quaternion."""
        if self.is_static:  # the last one counts
            self.stamps_ns, self.numbers = array("q"), array("d")
        self.stamps_ns.append(stamp_ns)
        self.numbers.extend((position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w))

    @property
    def fixed(self) -> bool:
        """Whether it does not move: static, or told once."""
        return self.is_static or len(self.stamps_ns) == 1

    def trajectory(self, name: str) -> Trajectory:
        """Return all its poses by time; of several with one stamp the last.

        Raises:
            FileError: a pose is none.
        """
        stamps, numbers = np.array(self.stamps_ns, np.int64), np.array(self.numbers, np.float64).reshape(-1, 7)
        _, last = np.unique(stamps[::-1], return_index=True)
        rows = len(stamps) - 1 - last
        try:
            return Trajectory(stamps[rows], numbers[rows, :3], numbers[rows, 3:])
        except InputError as error:
            raise FileError(f"{name}: {error}") from error


class Transforms:
    """The tree of frames."""

    def __init__(self, name: str) -> None:
        """Begin with an empty tree; `name` is that of the bag, for errors."""
        self._name = name
        self.links: dict[str, Link] = {}

    def add(self, message: Any, is_static: bool) -> None:
        """Take the transforms of one TFMessage."""
        for each in message.transforms:
            child, parent = each.child_frame_id.lstrip("/"), each.header.frame_id.lstrip("/")
            link = self.links.setdefault(child, Link(parent, is_static))
            if link.parent != parent:
                link.other_parent = parent
                continue
            stamp = each.header.stamp
            link.add(stamp.sec * 1_000_000_000 + stamp.nanosec, each.transform.translation, each.transform.rotation)

    def above(self, frame: str) -> list[str]:
        """Return a frame and all above it, upwards.

        Raises:
            FileError: the tree has a loop, or a frame of these has two parents.
        """
        found = [frame]
        while found[-1] in self.links:
            parent, other = self.links[found[-1]].parent, self.links[found[-1]].other_parent
            if other:
                raise FileError(
                    f"{self._name}: TF says that {found[-1]!r} hangs on {parent!r} and on {other!r}; give a trajectory"
                )
            if parent in found:
                raise FileError(f"{self._name}: the frames of TF form a loop at {parent!r}")
            found.append(parent)
        return found

    def root(self, frame: str, wanted: str | None) -> str | None:
        """Return the frame to take for the map, or None if nothing above `frame` stands still.

        Raises:
            FileError: the wanted one is not above it.
        """
        above = self.above(frame)
        if wanted is not None:
            if wanted not in above:
                raise FileError(
                    f"{self._name}: TF does not lead from {frame!r} to {wanted!r}; it leads to {', '.join(above)}"
                )
            return wanted
        known = [each for each in MAP_FRAMES if each in above]
        moves = any(not self.links[each].fixed for each in above[:-1])
        return known[0] if known else above[-1] if moves else None

    def path(self, root: str, frame: str) -> Trajectory | Pose:
        """Return T_root_frame: a trajectory, or a pose if nothing between them moves.

        Raises:
            FileError: a transform is none, or those on the way share no time.
        """
        chain: list[str] = []
        while frame != root:
            chain.insert(0, frame)
            frame = self.links[frame].parent
        parts = {child: self.links[child].trajectory(f"{self._name}, TF of {child}") for child in chain}
        moving = [parts[child] for child in chain if not self.links[child].fixed]
        time_ns = _common_times(self._name, moving) if moving else np.zeros(1, np.int64)
        position, turn = np.zeros((len(time_ns), 3)), np.tile([0.0, 0.0, 0.0, 1.0], (len(time_ns), 1))
        for child in chain:
            part = parts[child]
            if self.links[child].fixed:
                inner_m, inner = (
                    np.repeat(each[:1], len(time_ns), axis=0) for each in (part.position_m, part.quaternion_xyzw)
                )
            else:
                inner_m, inner = part.at(time_ns)
            position = position + rotation.rotate(turn, inner_m)
            turn = rotation.multiply(turn, inner)
        return Trajectory(time_ns, position, turn) if moving else Pose(position[0], turn[0])


def _common_times(name: str, parts: list[Trajectory]) -> NDArray[np.int64]:
    """Return all stamps within the time that all parts cover."""
    start, end = max(part.start_ns for part in parts), min(part.end_ns for part in parts)
    every = np.unique(np.concatenate([part.time_ns for part in parts]))
    every = every[(every >= start) & (every <= end)]
    if not len(every):
        raise FileError(f"{name}: the transforms of TF between the map and the sensor share no time")
    return every
