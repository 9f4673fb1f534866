# SPDX-License-Identifier: Apache-2.0
"""Where the sensor was: TF, an odometry or pose topic of the bag, a trajectory file, or nowhere but here.

TF comes first, since it says where the sensor sits. Where it does not lead from the sensor to a frame that stands
still, the only odometry topic is taken, then the only topic of poses; where there are several, the user has to choose.

`Transforms` is the tree of /tf and /tf_static. As in tf2, a frame has one parent, transforms may arrive in any order,
and between two of them motion is even. Unlike there, nothing is forgotten after ten seconds.
"""

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.beams.firings import require_trajectory
from hedgerow.io.options import ReadOptions
from hedgerow.io.ros.bag import OLD_TF_MESSAGE, Bag, Message
from hedgerow.io.ros.messages import ODOMETRY, POSE_STAMPED, TF_MESSAGE, stamp_ns

MAP_FRAMES = ("map", "odom", "world")
"""Frames that stand still, best first."""
_POSES = (POSE_STAMPED, "geometry_msgs/msg/PoseWithCovarianceStamped")


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
            link.add(stamp_ns(each.header.stamp), each.transform.translation, each.transform.rotation)

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
            FileError: a transform is none, or those between the frames share no time.
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


@dataclass(slots=True)
class _Path:
    """The poses of one topic."""

    child: str
    """Frame that they are of; empty if the topic does not say."""
    link: Link = field(default_factory=lambda: Link("", False))


class PoseSource:
    """Collects the poses of a bag while it is read, and then says where the sensor was."""

    def __init__(self, bag: Bag, options: ReadOptions) -> None:
        """Choose the topics to read.

        Raises:
            FileError: the topic asked for is not there, or has no poses.
        """
        self._bag, self._options = bag, options
        self._transforms = Transforms(str(bag.path))
        self._paths: dict[str, _Path] = {}
        self._tf_topics = [topic.name for topic in bag.of_kind(TF_MESSAGE, OLD_TF_MESSAGE)]
        given = options.trajectory is not None or options.static
        self._pose_topics = [] if given else _pose_topics(bag, options.pose_topic)
        if given:
            self._tf_topics = []
        self.notes: dict[str, Any] = {}

    @property
    def topics(self) -> set[str]:
        """Topics to read."""
        return {*self._tf_topics, *self._pose_topics}

    def add(self, message: Message) -> None:
        """Take one message of these topics.

        Raises:
            FileError: it is damaged, or the stamps of an odometry topic go back.
        """
        content = self._bag.decode(message)
        if message.topic in self._tf_topics:
            self._transforms.add(content, is_static="static" in message.topic)
            return
        child = getattr(content, "child_frame_id", "").lstrip("/")
        path = self._paths.setdefault(message.topic, _Path(child))
        pose = content.pose.pose if hasattr(content.pose, "pose") else content.pose
        at_ns = stamp_ns(content.header.stamp)
        before = path.link.stamps_ns
        if len(before) and at_ns < before[-1]:
            raise FileError(
                f"{self._bag.path}: the stamps of {message.topic} go back by {(before[-1] - at_ns) / 1e9:.3f} s at "
                f"{at_ns} ns; sort or cut the bag"
            )
        path.link.add(at_ns, pose.position, pose.orientation)

    def trajectory(self, frame: str, start_ns: int, end_ns: int) -> Trajectory:
        """Return T_map_sensor.

        Args:
            frame: of the sensor, as its clouds say.
            start_ns, end_ns: how long a sensor that stands still does so.

        Raises:
            FileError: there are no poses, or several topics of them.
        """
        if self._options.trajectory is not None or self._options.static:
            self.notes["poses"] = "standing still" if self._options.static else "trajectory"
            return require_trajectory(self._bag.path, self._options, start_ns, end_ns)
        wanted = self._options.pose_topic
        if wanted is None or wanted in self._tf_topics:
            root = self._transforms.root(frame, self._options.map_frame)
            if root is not None:
                return self._from_tf(root, frame, start_ns, end_ns)
        return self._from_topic(frame)

    def _from_tf(self, root: str, frame: str, start_ns: int, end_ns: int) -> Trajectory:
        if self._options.mount is not None:
            raise InputError("mount", f"TF says where {frame!r} sits; leave it out, or choose a pose_topic")
        self.notes["poses"] = f"TF, {frame} in {root}"
        path = self._transforms.path(root, frame)
        if isinstance(path, Trajectory):
            return path
        return Trajectory.from_poses([start_ns, max(end_ns, start_ns + 1)], [path, path])

    def _from_topic(self, frame: str) -> Trajectory:
        chosen = {name: path for name, path in self._paths.items() if len(path.link.stamps_ns)}
        odometry = [name for name in chosen if self._bag.topics[name].kind == ODOMETRY]
        names = sorted(odometry or chosen)
        if not names:
            raise FileError(
                f"{self._bag.path}: no way in TF from {frame!r} to a map, and no odometry or poses; give a trajectory, "
                "or static=true if the sensor stood still"
            )
        if len(names) > 1:
            raise FileError(
                f"{self._bag.path}: there are several topics of poses; choose pose_topic= {', '.join(names)}"
            )
        path = chosen[names[0]]
        mount = self._mount(path.child, frame)
        self.notes["poses"] = names[0]
        return path.link.trajectory(f"{self._bag.path}, {names[0]}") @ mount

    def _mount(self, child: str, frame: str) -> Pose:
        """Return where the sensor sits on what a topic describes."""
        if self._options.mount is not None:
            return self._options.mount_pose
        if child and child in self._transforms.above(frame):
            path = self._transforms.path(child, frame)
            if isinstance(path, Pose):
                return path
        self.notes["mount"] = f"not known; {frame!r} is taken to be what the poses describe"
        return Pose()


def _pose_topics(bag: Bag, wanted: str | None) -> list[str]:
    found = [topic.name for topic in bag.of_kind(ODOMETRY, *_POSES)]
    if wanted is None or wanted in found:
        return found if wanted is None else [wanted]
    if wanted in bag.topics and bag.topics[wanted].kind in (TF_MESSAGE, OLD_TF_MESSAGE):
        return []
    listed = ", ".join(found) or "none"
    raise FileError(f"{bag.path}: {wanted} is no topic of odometry or poses with messages; there are: {listed}")
