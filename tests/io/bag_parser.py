# SPDX-License-Identifier: Apache-2.0
"""Readers of bags that are not ours, for the tests.

ROS 1 bags and messages are read from the specification alone (wiki.ros.org/Bags/Format/2.0), MCAP files by the package
mcap with its own decoder of ROS 2.
"""

import struct
from typing import Any

import numpy as np

KINDS = {2: "u1", 4: "<u2", 7: "<f4"}
"""Types of PointField."""


def fields(data):
    found, at = {}, 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        name, _, value = data[at + 4 : at + 4 + length].partition(b"=")
        found[name.decode()] = value
        at += 4 + length
    return found


def records(data, at=0):
    """Give (header, content) of every record."""
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        header = fields(data[at + 4 : at + 4 + length])
        at += 4 + length
        (length,) = struct.unpack_from("<I", data, at)
        yield header, data[at + 4 : at + 4 + length]
        at += 4 + length


def messages(path):
    """Return (topic, type, time [ns], raw) of every message in the order of the file."""
    data = path.read_bytes()
    assert data.startswith(b"#ROSBAG V2.0\n")
    connections, found = {}, []
    for header, content in records(data, 13):
        if header["op"] != b"\x05":  # only chunks hold messages
            continue
        assert header["compression"] == b"none"
        for inner, raw in records(content):
            number = inner["conn"]
            if inner["op"] == b"\x07":
                connections[number] = inner["topic"].decode(), fields(raw)["type"].decode()
            else:
                seconds, nanoseconds = struct.unpack("<II", inner["time"])
                found.append((*connections[number], seconds * 10**9 + nanoseconds, raw))
    return found


def header(raw):
    """Return stamp [ns], frame and where the header ends."""
    _, seconds, nanoseconds, length = struct.unpack_from("<IIII", raw)
    return seconds * 10**9 + nanoseconds, raw[16 : 16 + length].decode(), 16 + length


def cloud(raw):
    """Return stamp, frame, the points (in rows if there are several) and is_dense of a PointCloud2."""
    stamp, frame, at = header(raw)
    height, width, n_fields = struct.unpack_from("<III", raw, at)
    at += 12
    names, formats, offsets = [], [], []
    for _ in range(n_fields):
        (length,) = struct.unpack_from("<I", raw, at)
        names.append(raw[at + 4 : at + 4 + length].decode())
        offset, kind, count = struct.unpack_from("<IBI", raw, at + 4 + length)
        assert count == 1
        offsets.append(offset)
        formats.append(KINDS[kind])
        at += 4 + length + 9
    big, step, row_step, n_bytes = struct.unpack_from("<BIII", raw, at)
    assert (big, row_step, n_bytes) == (0, step * width, step * width * height)
    layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": step})
    rows = np.frombuffer(raw, layout, width * height, at + 13)
    return stamp, frame, rows if height == 1 else rows.reshape(height, width), bool(raw[-1])


def transforms(raw):
    """Return (stamp, parent, child, position, quaternion) of each transform of a TFMessage."""
    (n,) = struct.unpack_from("<I", raw)
    at, found = 4, []
    for _ in range(n):
        stamp, parent, length = header(raw[at:])
        at += length
        (length,) = struct.unpack_from("<I", raw, at)
        child = raw[at + 4 : at + 4 + length].decode()
        numbers = struct.unpack_from("<7d", raw, at + 4 + length)
        found.append((stamp, parent, child, np.array(numbers[:3]), np.array(numbers[3:])))
        at += 4 + length + 56
    return found


def read_by_others(path) -> Any:
    """Return [(topic, log time, content)]: of clouds (stamp, frame, points, is_dense), of TF a list of transforms."""
    if path.suffix == ".bag":
        decode = {"sensor_msgs/PointCloud2": cloud, "tf2_msgs/TFMessage": transforms}
        return [
            (topic, time_ns, decode[kind](raw) if kind in decode else raw[4:].decode())
            for topic, kind, time_ns, raw in messages(path)
        ]
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with path.open("rb") as file:
        decoded = make_reader(file, decoder_factories=[DecoderFactory()]).iter_decoded_messages()
        return [(channel.topic, message.log_time, _plain(content)) for _, channel, message, content in decoded]


def _plain(content):
    def ns(stamp):
        return stamp.sec * 10**9 + stamp.nanosec

    if hasattr(content, "transforms"):
        return [
            (
                ns(each.header.stamp),
                each.header.frame_id,
                each.child_frame_id,
                np.array([getattr(each.transform.translation, axis) for axis in "xyz"]),
                np.array([getattr(each.transform.rotation, axis) for axis in "xyzw"]),
            )
            for each in content.transforms
        ]
    if not hasattr(content, "point_step"):
        return content.data
    layout: Any = {
        "names": [each.name for each in content.fields],
        "formats": [KINDS[each.datatype] for each in content.fields],
        "offsets": [each.offset for each in content.fields],
        "itemsize": content.point_step,
    }
    rows = np.frombuffer(bytes(content.data), np.dtype(layout))
    assert content.row_step == content.width * content.point_step
    rows = rows if content.height == 1 else rows.reshape(content.height, content.width)
    return ns(content.header.stamp), content.header.frame_id, rows, content.is_dense
