# SPDX-License-Identifier: Apache-2.0
"""Points of whatever has some, chunk by chunk: a log of any format, a cloud without viewpoints, a learned world.

The ground is fitted to them (`ground_fit`), and objects are found among them. Where points were seen from does not
matter for that, so a LAS, PCD or PLY file that does not say it is read all the same.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.errors import FileError, InputError
from hedgerow.io.formats import format_of
from hedgerow.log import Log
from hedgerow.world.elements import Elements, Gaussians, RememberedBeams, Triangles
from hedgerow.world.labels import LabelCounts
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource

PULSES_AT_ONCE = 1_000_000
_ABOVE_M = 1000.0
"""How high above a cloud without viewpoints it is taken to be seen from; ranges then keep a tenth of a millimetre."""
_LAS_BOX_AT = 179
"""Byte of the box of all points in the header of a LAS file: largest and least x, y, z."""


class PointChunk(NamedTuple):
    """Some points."""

    points_m: Array
    """(N, 3) map frame."""
    label: NDArray[np.uint16] | None
    """(N,) semantic classes; None if there are none."""
    n_pulses: int
    """Pulses that they are returns of."""


def open_points(path: str | Path) -> "LogSource | LearnedWorld":
    """Open a log, a cloud of points or a learned world.

    Raises:
        FileError: missing, damaged, or of no such kind.
    """
    from hedgerow.io import open_log
    from hedgerow.world import is_world, load_world

    if is_world(path):
        return load_world(path)
    kind = format_of(path, reading=True)
    try:
        return open_log(path)
    except FileError:
        if "scanner_m" not in kind.options:
            raise
        return open_log(path, scanner_m=_place_above(Path(path), kind.name))


def log_points(source: "Log | LogSource", thin: int = 1) -> Iterator[PointChunk]:
    """Give the points of all returns of a log, in its order: by pulse, nearest first.

    Args:
        source: a log in memory, or one opened, which is read sweep by sweep.
        thin: take every n-th sweep.
    """
    if thin < 1:
        raise InputError("thin", f"expected 1 or more, found {thin}")
    if isinstance(source, Log):
        log = source if thin == 1 else source.select(sweep=source.sweeps[::thin])
        for first in range(0, len(log), PULSES_AT_ONCE):
            yield _chunk(log[first : first + PULSES_AT_ONCE])
        return
    numbers = None if thin == 1 else source.sweeps[::thin]
    for _, log in source.iter_sweeps(numbers):
        yield _chunk(log)


def element_points(table: Elements, side_m: float) -> tuple[Array, NDArray[np.int64]]:
    """Return points that show where elements are, and (M,) the element of each.

    A Gaussian gives its mean and six points a standard deviation away from it, a triangle points no farther apart than
    a length, anything else its place.
    """
    if isinstance(table, Gaussians):
        return _gaussian_points(table)
    if isinstance(table, Triangles):
        return _triangle_points(table.corners_m, side_m)
    centre_m = element_places(table)
    return centre_m, np.arange(len(centre_m))


def element_places(table: Elements) -> Array:
    """Return (N, 3) the middle of each element; of a remembered beam the place of its return."""
    return table.ends_m() if isinstance(table, RememberedBeams) else table.centre_m()


def element_labels(table: Elements) -> NDArray[np.uint16]:
    """Return (N,) the most common label of each element, 0 where there is none."""
    label = getattr(table, "label", None)
    if isinstance(label, LabelCounts):
        return label.most_common()
    return np.zeros(len(table), dtype=np.uint16) if label is None else label


def all_points(
    source: "Log | LogSource | LearnedWorld", *, thin: int = 1, side_m: float = 0.25
) -> Iterator[PointChunk]:
    """Give the points of a log, or points that show where the elements of a world are."""
    if not isinstance(source, LearnedWorld):
        yield from log_points(source, thin)
        return
    for table in source.spread().values():
        points_m, element = element_points(table, side_m)
        yield PointChunk(points_m, element_labels(table)[element], len(table))


def _chunk(log: Log) -> PointChunk:
    label = log.returns.label
    return PointChunk(log.points(), None if label is None else label[log.returns.hit], len(log))


def _gaussian_points(table: Gaussians) -> tuple[Array, NDArray[np.int64]]:
    variance, axes = np.linalg.eigh(table.covariance_m2)
    arms = (axes * np.sqrt(np.maximum(variance, 0))[:, None, :]).transpose(0, 2, 1)
    points = np.concatenate([table.mean_m[:, None], table.mean_m[:, None] + arms, table.mean_m[:, None] - arms], axis=1)
    return points.reshape(-1, 3), np.repeat(np.arange(len(table)), 7)


def _triangle_points(corners_m: Array, side_m: float) -> tuple[Array, NDArray[np.int64]]:
    """Spread points over triangles; at most 33 along a side."""
    longest_m = np.linalg.norm(corners_m - np.roll(corners_m, 1, axis=1), axis=2).max(axis=1, initial=0)
    n = np.clip(np.ceil(longest_m / side_m), 1, 32).astype(np.int64)
    points, element = [corners_m.mean(axis=1)], [np.arange(len(corners_m))]
    for each in sorted(set(n[n > 1].tolist())):
        rows = np.flatnonzero(n == each)
        i, j = np.indices((each + 1, each + 1))
        share = np.stack([i, j, each - i - j], axis=-1)[i + j <= each] / each
        points.append(np.einsum("sk,nkx->nsx", share, corners_m[rows]).reshape(-1, 3))
        element.append(np.repeat(rows, len(share)))
    return np.concatenate(points), np.concatenate(element)


def _place_above(path: Path, kind: str) -> list[float]:
    """Return a place above a cloud: over the middle of a LAS file, else over zero."""
    if kind not in ("las", "laz"):
        return [0.0, 0.0, _ABOVE_M]
    with path.open("rb") as file:
        head = file.read(_LAS_BOX_AT + 48)
    if len(head) < _LAS_BOX_AT + 48:
        return [0.0, 0.0, _ABOVE_M]
    high_x, low_x, high_y, low_y, high_z, _ = struct.unpack_from("<6d", head, _LAS_BOX_AT)
    place = [(high_x + low_x) / 2, (high_y + low_y) / 2, high_z + _ABOVE_M]
    return place if all(np.isfinite(place)) else [0.0, 0.0, _ABOVE_M]
