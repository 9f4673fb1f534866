# SPDX-License-Identifier: Apache-2.0
"""Meshes whose triangles share their corners, and surfaces with fewer triangles (Browning 2012 §6.2.6).

Triangles of a world have corners of their own, so that they can be cut into tiles; a mesh with shared corners has the
same shape. To simplify it, edges are collapsed where that moves the surface least (quadric error metrics, Garland and
Heckbert 1997), with the package fast-simplification. Flat parts lose most of their triangles. A new triangle has the
permeability, intensity and labels of the old ones whose middles are nearest to its own: means by area, and counts added
up. So a surface stops about as many beams as before, where its area stays. Triangles that differ in a column that is
not mixed, such as `object`, are simplified apart.

Equations: docs/models.md §10.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.world.elements import Elements, Triangles
from hedgerow.world.labels import LabelCounts

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_SAME_M = 1e-4
"""Corners that agree to the last tenth of a millimetre are one."""
_MIXED = frozenset({"corners_m", "permeability", "intensity", "intensity_sigma", "label"})


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


def simplify_triangles(triangles: Triangles, n_wanted: int, asked_by: str = "elements") -> Triangles:
    """Return about `n_wanted` triangles of the same shape, as nearly as can be; each group keeps its share.

    Args:
        triangles: N of them.
        n_wanted: if there are no more, they come back as they are.
        asked_by: the parameter that asked, for the error.

    Raises:
        InputError: the package fast-simplification is not installed.
    """
    if len(triangles) <= n_wanted:
        return triangles
    package = _package(asked_by)
    group = groups_of(triangles, _MIXED)
    share = n_wanted / len(triangles)
    parts = [triangles[group == number] for number in range(int(group.max()) + 1)]
    return Triangles.join([_simplify(package, part, max(1, round(share * len(part)))) for part in parts])


def groups_of(table: Elements, mixed: frozenset[str]) -> Rows:
    """Return the (N,) number of the group of each element: all that agree in the columns that are not mixed."""
    group = np.zeros(len(table), dtype=np.int64)
    for name, column in table.columns().items():
        if name not in mixed:
            for one in np.asarray(column).reshape(len(table), -1).T:
                number = np.unique(one, return_inverse=True)[1].astype(np.int64)
                pair = group * (int(number.max(initial=0)) + 1) + number
                group = np.unique(pair, return_inverse=True)[1].astype(np.int64)
    return group


def pool_labels(label: LabelCounts, row: Rows, n: int) -> LabelCounts:
    """Add up histograms: those of old element i go to the new element row[i], of n."""
    packed = np.repeat(row, np.diff(label.first)) << 16 | label.label
    entries, entry = np.unique(packed, return_inverse=True)
    count = np.bincount(entry, label.count, len(entries)).astype(np.int64)
    return LabelCounts.from_rows(np.bincount(entries >> 16, minlength=n), (entries & 0xFFFF).astype(np.uint16), count)


def mix_intensity(table: Any, row: Rows, weight: Floats, n: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the (n,) mean intensity of the old elements of each new one, by weight, and its standard deviation."""
    known = ~np.isnan(table.intensity)
    # Where nothing weighs, all weigh alike.
    heavy = np.bincount(row[known], weight[known], n) > 0
    share = np.where(heavy[row], weight, 1.0)[known]
    intensity, sigma = table.intensity[known].astype(np.float64), table.intensity_sigma[known].astype(np.float64)
    total = np.bincount(row[known], share, n)

    def mean(values: Floats) -> Floats:
        sums = np.bincount(row[known], share * values, n)
        return np.divide(sums, total, out=np.full(n, np.nan), where=total > 0)

    middle = mean(intensity)
    spread = mean((intensity - middle[row[known]]) ** 2 + sigma**2)
    return middle.astype(np.float32), np.sqrt(np.nan_to_num(spread)).astype(np.float32)


def _package(asked_by: str) -> Any:
    try:
        return import_module("fast_simplification")
    except ModuleNotFoundError:
        raise InputError(
            asked_by,
            "fewer triangles need the package fast-simplification, which is not installed; install it with: "
            "pip install 'hedgerow[simplify]'",
        ) from None


def _simplify(package: Any, triangles: Triangles, n_wanted: int) -> Triangles:
    """Return one group with fewer triangles; as it is, if nothing can be collapsed."""
    if len(triangles) <= n_wanted:
        return triangles
    mesh = SharedMesh.of(triangles.corners_m)
    middle_m = mesh.vertices_m.mean(axis=0)  # the package works in float32
    vertices, faces = package.simplify(
        (mesh.vertices_m - middle_m).astype(np.float32), mesh.triangles.astype(np.int32), target_count=n_wanted
    )
    corners_m = np.asarray(vertices, dtype=np.float64)[np.asarray(faces)] + middle_m
    corners_m = corners_m[_area_m2(corners_m) > 0]
    return _with_looks(corners_m, triangles) if 0 < len(corners_m) < len(triangles) else triangles


def _area_m2(corners_m: Floats) -> Floats:
    return np.linalg.norm(np.cross(corners_m[:, 1] - corners_m[:, 0], corners_m[:, 2] - corners_m[:, 0]), axis=1) / 2


def _with_looks(corners_m: Floats, before: Triangles) -> Triangles:
    """Give new triangles the permeability, intensity and labels of the old ones nearest to them."""
    from scipy.spatial import cKDTree  # here: it takes long to load

    n, old_m, new_m = len(corners_m), before.centre_m(), corners_m.mean(axis=1)
    to_new = cast("Rows", cKDTree(new_m).query(old_m)[1])
    lonely = np.flatnonzero(np.bincount(to_new, minlength=n) == 0)
    # Each pair is an old triangle and the new one that it tells something about.
    old = np.concatenate([np.arange(len(before)), cast("Rows", cKDTree(old_m).query(new_m[lonely])[1])])
    row = np.concatenate([to_new, lonely])
    told = before[old]
    area_m2 = np.maximum(_area_m2(told.corners_m), 1e-12)
    passed = np.bincount(row, area_m2 * told.permeability, n) / np.bincount(row, area_m2, n)
    intensity, sigma = mix_intensity(told, row, area_m2, n)
    return replace(
        before[np.zeros(n, dtype=np.int64)],  # one group: all other columns agree
        corners_m=corners_m,
        permeability=np.clip(passed, 0, 1).astype(np.float32),
        intensity=intensity,
        intensity_sigma=sigma,
        label=pool_labels(told.label, row, n),
    )
