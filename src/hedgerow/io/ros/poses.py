# SPDX-License-Identifier: Apache-2.0
"""Where the sensor was: TF, an odometry or pose topic of the bag, a trajectory file, or nowhere but here.

TF comes first, since it says where the sensor sits. Without a way from the sensor to a frame that stands still, the
only odometry topic is taken, then the only topic of poses; where there are several, the user has to choose.
"""

from dataclasses import dataclass, field
from typing import Any

from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.firings import chosen_trajectory
from hedgerow.io.options import ReadOptions
from hedgerow.io.ros.bag import Bag, Message
from hedgerow.io.ros.tf import Link, Transforms

TF = "tf2_msgs/msg/TFMessage"
ODOMETRY = "nav_msgs/msg/Odometry"
POSES = ("geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/PoseWithCovarianceStamped")
_OLD_TF = "tf/msg/tfMessage"


@dataclass(slots=True)
class _Path:
    """Poses of one topic."""

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
        self._tf_topics = [topic.name for topic in bag.of_kind(TF, _OLD_TF)]
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
        stamp_ns = content.header.stamp.sec * 1_000_000_000 + content.header.stamp.nanosec
        before = path.link.stamps_ns
        if len(before) and stamp_ns < before[-1]:
            raise FileError(
                f"{self._bag.path}: the stamps of {message.topic} go back by {(before[-1] - stamp_ns) / 1e9:.3f} s at "
                f"{stamp_ns} ns; sort or cut the bag"
            )
        path.link.add(stamp_ns, pose.position, pose.orientation)

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
            return chosen_trajectory(self._bag.path, self._options, start_ns, end_ns)
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
    found = [topic.name for topic in bag.of_kind(ODOMETRY, *POSES)]
    if wanted is None or wanted in found:
        return found if wanted is None else [wanted]
    if wanted in bag.topics and bag.topics[wanted].kind in (TF, _OLD_TF):
        return []
    listed = ", ".join(found) or "none"
    raise FileError(f"{bag.path}: {wanted} is no topic of odometry or poses with messages; there are: {listed}")
