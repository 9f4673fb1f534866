# SPDX-License-Identifier: Apache-2.0
"""Makes small bags of all kinds with the messages that drivers publish, by rosbags alone."""

import shutil

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

START_NS = 1_700_000_000_000_000_000
KINDS = ["bag", "mcap", "db3"]
CODE = {"f4": 7, "f8": 8, "u1": 2, "u2": 4, "u4": 6, "i4": 5}
VELODYNE = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f4"), ("ring", "u2"), ("time", "f4")]
OUSTER = [
    *[("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f4"), ("t", "u4"), ("reflectivity", "u2")],
    *[("ring", "u1"), ("ambient", "u2"), ("range", "u4")],
]
HESAI = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f4"), ("timestamp", "f8"), ("ring", "u2")]


class Maker:
    """Collects messages and writes them as a bag of one kind."""

    def __init__(self, kind):
        self.kind = kind
        self.is_ros1 = kind == "bag"
        self.types = get_typestore(Stores.ROS1_NOETIC if self.is_ros1 else Stores.ROS2_HUMBLE)
        time = "time" if self.is_ros1 else "builtin_interfaces/Time"
        for name, text in (
            ("velodyne_msgs/msg/VelodynePacket", f"{time} stamp\nuint8[1206] data"),
            ("velodyne_msgs/msg/VelodyneScan", "std_msgs/Header header\nvelodyne_msgs/VelodynePacket[] packets"),
            ("tf2_msgs/msg/TFMessage", "geometry_msgs/TransformStamped[] transforms"),
        ):
            if name not in self.types.fielddefs:
                self.types.register(get_types_from_msg(text, name))
        self.messages = []

    def make(self, kind, **values):
        package, name = kind.split("/")
        return self.types.types[f"{package}/msg/{name}"](**values)

    def time(self, stamp_ns):
        return self.make("builtin_interfaces/Time", sec=stamp_ns // 10**9, nanosec=stamp_ns % 10**9)

    def header(self, stamp_ns, frame):
        more = {"seq": 0} if self.is_ros1 else {}
        return self.make("std_msgs/Header", stamp=self.time(stamp_ns), frame_id=frame, **more)

    def put(self, topic, kind, stamp_ns, message):
        self.messages.append((topic, kind.replace("/", "/msg/"), stamp_ns, message))

    def cloud(self, rows, stamp_ns, *, topic="/velodyne_points", frame="velodyne", pad=0, bag_ns=None):
        """rows: structured array, (N,) or (height, width)."""
        rows = np.atleast_2d(rows)
        offsets, at = [], 0
        names = rows.dtype.names or ()
        for name in names:
            offsets.append(at)
            at += rows.dtype[name].itemsize + pad
        packed = np.zeros(
            rows.shape,
            {
                "names": list(names),
                "formats": [rows.dtype[n] for n in names],
                "offsets": offsets,
                "itemsize": at,
            },
        )
        for name in names:
            packed[name] = rows[name]
        fields = [
            self.make(
                "sensor_msgs/PointField", name=name, offset=offset, datatype=CODE[rows.dtype[name].str[1:]], count=1
            )
            for name, offset in zip(names, offsets, strict=True)
        ]
        message = self.make(
            "sensor_msgs/PointCloud2",
            header=self.header(stamp_ns, frame),
            height=rows.shape[0],
            width=rows.shape[1],
            fields=fields,
            is_bigendian=False,
            point_step=at,
            row_step=at * rows.shape[1],
            data=np.frombuffer(packed.tobytes(), np.uint8),
            is_dense=True,
        )
        self.put(topic, "sensor_msgs/PointCloud2", stamp_ns if bag_ns is None else bag_ns, message)

    def tf(self, stamp_ns, parent, child, xyz, quaternion=(0.0, 0.0, 0.0, 1.0), *, static=False, bag_ns=None):
        transform = self.make(
            "geometry_msgs/Transform",
            translation=self.make("geometry_msgs/Vector3", **dict(zip("xyz", map(float, xyz), strict=True))),
            rotation=self.make("geometry_msgs/Quaternion", **dict(zip("xyzw", map(float, quaternion), strict=True))),
        )
        stamped = self.make(
            "geometry_msgs/TransformStamped",
            header=self.header(stamp_ns, parent),
            child_frame_id=child,
            transform=transform,
        )
        message = self.make("tf2_msgs/TFMessage", transforms=[stamped])
        topic = "/tf_static" if static else "/tf"
        self.put(topic, "tf2_msgs/TFMessage", stamp_ns if bag_ns is None else bag_ns, message)

    def pose(self, xyz, quaternion):
        return self.make(
            "geometry_msgs/Pose",
            position=self.make("geometry_msgs/Point", **dict(zip("xyz", map(float, xyz), strict=True))),
            orientation=self.make("geometry_msgs/Quaternion", **dict(zip("xyzw", map(float, quaternion), strict=True))),
        )

    def odometry(
        self, stamp_ns, xyz, quaternion=(0.0, 0.0, 0.0, 1.0), *, topic="/odom", child="base_link", bag_ns=None
    ):
        zero = self.make("geometry_msgs/Vector3", x=0.0, y=0.0, z=0.0)
        twist = self.make("geometry_msgs/Twist", linear=zero, angular=zero)
        message = self.make(
            "nav_msgs/Odometry",
            header=self.header(stamp_ns, "odom"),
            child_frame_id=child,
            pose=self.make(
                "geometry_msgs/PoseWithCovariance", pose=self.pose(xyz, quaternion), covariance=np.zeros(36)
            ),
            twist=self.make("geometry_msgs/TwistWithCovariance", twist=twist, covariance=np.zeros(36)),
        )
        self.put(topic, "nav_msgs/Odometry", stamp_ns if bag_ns is None else bag_ns, message)

    def stamped_pose(self, stamp_ns, xyz, quaternion=(0.0, 0.0, 0.0, 1.0), *, topic="/pose"):
        message = self.make(
            "geometry_msgs/PoseStamped", header=self.header(stamp_ns, "map"), pose=self.pose(xyz, quaternion)
        )
        self.put(topic, "geometry_msgs/PoseStamped", stamp_ns, message)

    def scan(self, packets, *, topic="/velodyne_packets", frame="velodyne"):
        """packets: (host time [ns], payload) of one turn."""
        made = [
            self.make("velodyne_msgs/VelodynePacket", stamp=self.time(ns), data=np.frombuffer(payload, np.uint8))
            for ns, payload in packets
        ]
        stamp_ns = packets[-1][0]
        message = self.make("velodyne_msgs/VelodyneScan", header=self.header(stamp_ns, frame), packets=made)
        self.put(topic, "velodyne_msgs/VelodyneScan", stamp_ns, message)

    def write(self, folder, name="x"):
        """Write the bag; return its path."""
        folder.mkdir(exist_ok=True)
        path = folder / (name if self.kind == "db3" else f"{name}.{self.kind}")
        temporary = folder / "made"
        if self.is_ros1:
            writer, encode = Writer1(path), self.types.serialize_ros1
        else:
            plugin = StoragePlugin.MCAP if self.kind == "mcap" else StoragePlugin.SQLITE3
            target = path if self.kind == "db3" else temporary
            writer, encode = Writer2(target, version=8, storage_plugin=plugin), self.types.serialize_cdr
        with writer:
            connections = {}
            for topic, kind, bag_ns, message in sorted(self.messages, key=lambda each: each[2]):
                if topic not in connections:
                    connections[topic] = writer.add_connection(topic, kind, typestore=self.types)
                writer.write(connections[topic], bag_ns, encode(message, kind))
        if self.kind == "mcap":
            (temporary / "made.mcap").rename(path)
            shutil.rmtree(temporary)
        return path


def rows_of(fields, n):
    return np.zeros(n, np.dtype([(name, "<" + kind) for name, kind in fields]))


def points_at(stamp_ns, n=50, seed=1):
    """A cloud in Velodyne's fields with random points, 0.1 s long."""
    rng = np.random.default_rng(seed)
    rows = rows_of(VELODYNE, n)
    for axis in "xyz":
        rows[axis] = rng.uniform(-20, 20, n)
    rows["intensity"], rows["ring"] = rng.integers(0, 256, n), rng.integers(0, 16, n)
    rows["time"] = np.sort(rng.uniform(0, 0.1, n))
    return rows


def drive(kind, n_sweeps=3, *, tf=True, topic="/velodyne_points"):
    """Sweeps of a sensor 1.5 m above base_link, which drives 10 m/s along x of odom, itself turned in the map."""
    maker = Maker(kind)
    half = np.sqrt(0.5)
    for k in range(n_sweeps):
        stamp = START_NS + k * 100_000_000
        maker.cloud(points_at(stamp, seed=k), stamp, topic=topic)
    if tf:
        maker.tf(START_NS - 200_000_000, "base_link", "velodyne", (0, 0, 1.5), static=True)
        for k in range(-2, n_sweeps * 2 + 3):
            stamp = START_NS + k * 50_000_000
            maker.tf(stamp, "odom", "base_link", (10 * k * 0.05, 0, 0))
            if k % 4 == 2 or k in (-2, n_sweeps * 2 + 2):
                maker.tf(stamp, "map", "odom", (5, 0, 0), (0, 0, half, half))
    return maker
