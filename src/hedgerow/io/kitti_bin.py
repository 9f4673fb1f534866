# SPDX-License-Identifier: Apache-2.0
"""KITTI's binary files: clouds of float32 x y z reflectance, SemanticKITTI's labels of uint32."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError
from hedgerow.io.whole_file import read_bytes


def numbered_files(folder: Path, suffix: str) -> dict[int, Path]:
    """Return the files of a folder that have this suffix by their number, ascending.

    Raises:
        FileError: there are none, or one has no number for a name.
    """
    files: dict[int, Path] = {}
    for path in folder.glob(f"*{suffix}"):
        if not (path.stem.isascii() and path.stem.isdecimal() and int(path.stem[:20]) < 2**31):
            raise FileError(f"{path}: expected a number as name, such as 000042{suffix}")
        files[int(path.stem)] = path
    if not files:
        raise FileError(f"{folder}: holds no files *{suffix}")
    return dict(sorted(files.items()))


def read_bin(path: Path) -> NDArray[np.float32]:
    """Read a cloud, (N, 4) float32: x, y, z [m] in the sensor frame, reflectance.

    Raises:
        FileError: not readable, empty, or ends within a point.
    """
    data = read_bytes(path)
    if not data:
        raise FileError(f"{path}: the file is empty; was its writing or copying interrupted?")
    if len(data) % 16:
        raise FileError(
            f"{path}: has {len(data)} bytes, not a multiple of 16 (x y z reflectance); was its copying interrupted?"
        )
    return np.frombuffer(data, "<f4").astype(np.float32).reshape(-1, 4)


def read_labels(path: Path, n_points: int) -> NDArray[np.uint16]:
    """Read the classes of a cloud's points: the lower half of each number, the upper half is the instance.

    Raises:
        FileError: not readable, or not one for each point.
    """
    data = read_bytes(path)
    if len(data) != 4 * n_points:
        raise FileError(
            f"{path}: has {len(data)} bytes, expected {4 * n_points}, 4 for each of the {n_points:,} points"
        )
    return (np.frombuffer(data, "<u4") & 0xFFFF).astype(np.uint16)
