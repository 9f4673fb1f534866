# SPDX-License-Identifier: Apache-2.0
"""Meshes whose triangles share their corners: what they are worth, and simplification (Browning 2012 §6.2.6).

Triangles of a world have corners of their own, so that they can be cut into tiles; a mesh with shared corners has the
same shape. Simplification collapses edges where that moves the surface least (quadric error metrics, Garland and
Heckbert 1997), with the package fast-simplification. Flat parts lose most of their triangles.

Equations: docs/models.md §10.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.world.elements import Triangles
from hedgerow.world.labels import LabelCounts

_SAME_M = 1e-4
"""Corners that agree to the last tenth of a millimetre are one."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedMesh:
    """Triangles by the numbers of their corners."""

    vertices_m: NDArray[np.float64]
    """(V, 3) map frame."""
    triangles: NDArray[np.int64]
    """(T, 3) rows of vertices_m."""

    @classmethod
    def of(cls, corners_m: NDArray[np.float64]) -> "SharedMesh":
        """Join the corners of (T, 3, 3) triangles that are in one place."""
        flat_m = corners_m.reshape(-1, 3)
        place = np.rint(flat_m / _SAME_M).astype(np.int64)
        key = place @ np.array([1, 0x9E3779B97F4A7C15 - 2**64, 0x2545F4914F6CDD1D])  # a hash: sorts faster than rows
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
        return cls(flat_m[first], number.reshape(-1, 3))

    def n_parameters(self, permeable: bool) -> int:
        """Count the numbers that define it: 3 per corner, and 1 per triangle if that is permeable."""
        return 3 * len(self.vertices_m) + (len(self.triangles) if permeable else 0)

    def n_bytes(self, permeable: bool) -> int:
        """Count the bytes of that in float32, and of the corner numbers in uint32."""
        return 4 * (self.n_parameters(permeable) + 3 * len(self.triangles))


def simplify(triangles: Triangles, share: float) -> Triangles:
    """Return a mesh of the same shape, as nearly as can be, with fewer triangles.

    Args:
        triangles: N of them.
        share: of the triangles that is taken away, from 0 to below 1.

    Returns:
        About (1 - share) N triangles, solid: permeability is counted afterwards. Intensity and labels are those of the
        triangles before that were nearest, by their middles.

    Raises:
        InputError: the package fast-simplification is not installed.
    """
    if share == 0 or len(triangles) == 0:
        return triangles
    mesh = SharedMesh.of(triangles.corners_m)
    middle_m = mesh.vertices_m.mean(axis=0)  # the package works in float32
    vertices, faces = _package().simplify(
        (mesh.vertices_m - middle_m).astype(np.float32), mesh.triangles.astype(np.int32), target_reduction=share
    )
    corners_m = np.asarray(vertices, dtype=np.float64)[np.asarray(faces)] + middle_m
    area = np.linalg.norm(np.cross(corners_m[:, 1] - corners_m[:, 0], corners_m[:, 2] - corners_m[:, 0]), axis=1)
    return _with_looks(corners_m[area > 0], triangles)


def _package() -> Any:
    try:
        return import_module("fast_simplification")
    except ModuleNotFoundError:
        raise InputError(
            "simplify",
            "needs the package fast-simplification, which is not installed; install it with: "
            "pip install 'hedgerow[simplify]'",
        ) from None


def _with_looks(corners_m: NDArray[np.float64], before: Triangles) -> Triangles:
    """Give new triangles the intensity and the labels of the old ones nearest to them."""
    from scipy.spatial import cKDTree

    n, old_m, new_m = len(corners_m), before.centre_m(), corners_m.mean(axis=1)
    to_new = cast("NDArray[np.int64]", cKDTree(new_m).query(old_m)[1])
    lonely = np.flatnonzero(np.bincount(to_new, minlength=n) == 0)
    # Each pair is an old triangle and the new one that it tells something about.
    old = np.concatenate([np.arange(len(before)), cast("NDArray[np.int64]", cKDTree(old_m).query(new_m[lonely])[1])])
    new = np.concatenate([to_new, lonely])
    intensity, sigma = before.intensity[old].astype(np.float64), before.intensity_sigma[old].astype(np.float64)
    known = ~np.isnan(intensity)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.bincount(new[known], values[known], n)
        count = np.bincount(new[known], minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)

    middle = mean(intensity)
    spread = np.sqrt(np.maximum(mean(sigma**2 + intensity**2) - middle**2, 0))
    return Triangles.plain(
        corners_m,
        intensity=middle.astype(np.float32),
        intensity_sigma=np.nan_to_num(spread).astype(np.float32),
        label=_pool(before.label[old], new, n),
        noise=before.noise,
    )


def _pool(label: LabelCounts, group: NDArray[np.int64], n: int) -> LabelCounts:
    """Add up the histograms of the elements of each group."""
    packed = np.repeat(group, np.diff(label.first)) << 16 | label.label
    entries, entry = np.unique(packed, return_inverse=True)
    counts = np.bincount(entry, label.count, len(entries)).astype(np.int64)
    return LabelCounts.from_rows(np.bincount(entries >> 16, minlength=n), (entries & 0xFFFF).astype(np.uint16), counts)
