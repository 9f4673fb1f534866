# SPDX-License-Identifier: Apache-2.0
"""Readers of clouds by the definition of their format, with nothing but struct: none of our code, no library."""

import struct

import numpy as np

_CODES = {
    **{"F4": "f", "F8": "d", "U1": "B", "U2": "H", "I4": "i"},
    **{"float": "f", "double": "d", "uchar": "B", "ushort": "H", "int": "i"},
}


def _columns(names, kinds, body, n):
    row = struct.Struct("<" + "".join(_CODES[kind] for kind in kinds))
    assert len(body) == n * row.size
    rows = [row.unpack_from(body, k * row.size) for k in range(n)]
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def plain_pcd(path):
    """Read the columns of a binary PCD file."""
    head, _, body = path.read_bytes().partition(b"DATA binary\n")
    lines = {line.split()[0]: line.split()[1:] for line in head.decode().splitlines() if not line.startswith("#")}
    kinds = [kind + size for kind, size in zip(lines["TYPE"], lines["SIZE"], strict=True)]
    return _columns(lines["FIELDS"], kinds, body, int(lines["POINTS"][0]))


def plain_ply(path):
    """Read the vertices of a binary PLY file that has nothing else."""
    head, _, body = path.read_bytes().partition(b"end_header\n")
    words = [line.split() for line in head.decode().splitlines()]
    assert ["format", "binary_little_endian", "1.0"] in words
    properties = [each[1:] for each in words if each[0] == "property"]
    n = next(int(each[2]) for each in words if each[:2] == ["element", "vertex"])
    return _columns([name for _, name in properties], [kind for kind, _ in properties], body, n)
