# SPDX-License-Identifier: Apache-2.0
"""A reader of ROS 1 bags and messages from the specification alone (wiki.ros.org/Bags/Format/2.0), for the tests."""

import struct

import numpy as np


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
    """Return stamp, frame and the columns of a PointCloud2."""
    stamp, frame, at = header(raw)
    height, width, n_fields = struct.unpack_from("<III", raw, at)
    at += 12
    kinds = {7: "<f4", 4: "<u2"}
    names, formats, offsets = [], [], []
    for _ in range(n_fields):
        (length,) = struct.unpack_from("<I", raw, at)
        names.append(raw[at + 4 : at + 4 + length].decode())
        offset, kind, count = struct.unpack_from("<IBI", raw, at + 4 + length)
        assert count == 1
        offsets.append(offset)
        formats.append(kinds[kind])
        at += 4 + length + 9
    big, step, row_step, n_bytes = struct.unpack_from("<BIII", raw, at)
    assert (big, row_step, n_bytes) == (0, step * width, step * width * height)
    layout = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": step})
    return stamp, frame, np.frombuffer(raw, layout, width * height, at + 13)


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
