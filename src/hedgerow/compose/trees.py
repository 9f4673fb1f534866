# SPDX-License-Identifier: Apache-2.0
"""Plants that touch are parted: at stems where these are seen, else at the tops of crowns.

A stem is a narrow, upright column of points between half a metre and two metres above the ground that stands apart from
what is around it, with a crown above. A top is a column that is higher than all others within a distance that grows
with its height. Tops near a stem belong to it. What is left goes to the nearest stem or top along the links of the
cells, not through the air, so a branch stays with the tree that it hangs on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import NotNegative, Parameters, Positive, Share
from hedgerow.compose.clusters import LinkedCells
from hedgerow.scenes.point_grid import find, pack, step

Rows = NDArray[np.int64]


class TreeSettings(Parameters):
    """How touching plants are parted."""

    stem_from_m: NotNegative = 0.5
    """Lower end of the slice in which stems are looked for, above the ground [m]."""
    stem_to_m: Positive = 2.1
    """Upper end of it [m]."""
    stem_layers: Share = 0.5
    """Share of the layers of that slice that a stem fills."""
    stem_width_m: Positive = 0.9
    """Widest stem, branches of it included [m]."""
    stem_apart: Share = 0.45
    """Share of the points within a metre of a stem that must lie within 0.4 m of it."""
    tree_from_m: Positive = 2.5
    """Lowest crown above a stem [m]."""
    top_reach_m: NotNegative = 0.4
    """A top is higher than all within this, plus a share of its height [m]."""
    top_share: NotNegative = 0.17
    """That share of the height."""
    crown_share: NotNegative = 0.3
    """A top within this share of its height from a stem belongs to it; at least 1 m."""
    saddle: Share = 0.75
    """Height of the saddle between two tops, as a share of the lower one, above which they are one crown."""
    bump_height: Share = 0.6
    """The lower of them is no lower than this share of the other: what is lower is another plant."""
    bump_share: NotNegative = 0.45
    """Two tops of one crown are no farther apart than this share of the height; at least 1 m."""


@dataclass(frozen=True, slots=True, eq=False)
class Stems:
    """Stems that were seen."""

    xy_m: Array
    """(S, 2) map frame."""
    point: Rows
    """(P,) points that are part of a stem."""
    stem: Rows
    """(P,) the stem of each."""


def find_stems(points_m: Array, height_m: Array, side_m: float, settings: TreeSettings) -> Stems:
    """Find stems among the middles of voxels.

    Args:
        points_m: (N, 3) map frame.
        height_m: (N,) above the ground.
        side_m: of the voxels.
        settings: how.
    """
    slice_rows = np.flatnonzero((height_m > settings.stem_from_m) & (height_m < settings.stem_to_m))
    xy = points_m[slice_rows, :2]
    if not len(xy):
        return Stems(np.zeros((0, 2)), slice_rows, slice_rows)
    low = np.floor(xy.min(axis=0) / side_m) * side_m
    index = np.zeros((len(xy), 3), dtype=np.int64)
    index[:, :2] = np.floor((xy - low) / side_m)
    key, column = np.unique(pack(index), return_inverse=True)
    column = column.reshape(-1)
    layer = np.floor((height_m[slice_rows] - settings.stem_from_m) / side_m).astype(np.int64)
    n_layers = int(np.ceil((settings.stem_to_m - settings.stem_from_m) / side_m))
    filled = _filled(column, layer, len(key), n_layers)
    group = _grouped(key, filled >= settings.stem_layers * n_layers)
    of_point = group[column]
    rows = np.flatnonzero(of_point >= 0)
    return _apart(points_m, slice_rows, rows, of_point[rows], settings)


def _filled(column: Rows, layer: Rows, n_columns: int, n_layers: int) -> Rows:
    """Count the layers of each column in which it, or one of the points beside, is seen."""
    seen = np.unique(column * n_layers + np.clip(layer, 0, n_layers - 1))
    return np.bincount(seen // n_layers, minlength=n_columns)


def _grouped(key: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Rows:
    """Number groups of chosen columns that touch; -1 for the others."""
    from scipy import sparse

    csgraph: Any = sparse.csgraph
    pairs: list[Rows] = []
    for dx, dy in ((0, 1), (1, -1), (1, 0), (1, 1)):
        row = find(key, key + step(dx, dy, 0))
        here = np.flatnonzero((row >= 0) & chosen & chosen[np.maximum(row, 0)])
        pairs.append(np.stack([here, row[here]], axis=1))
    link = np.concatenate(pairs)
    graph = sparse.coo_matrix((np.ones(len(link)), (link[:, 0], link[:, 1])), shape=(len(key), len(key)))
    _, group = csgraph.connected_components(graph.tocsr(), directed=False)
    return np.where(chosen, group, -1)


def _apart(points_m: Array, slice_rows: Rows, rows: Rows, group: Rows, settings: TreeSettings) -> Stems:
    """Keep the groups that are narrow and stand apart from what is around them."""
    from scipy.spatial import cKDTree

    if not len(rows):
        return Stems(np.zeros((0, 2)), rows, rows)
    numbers, group = np.unique(group, return_inverse=True)
    group = group.reshape(-1)
    xy = points_m[slice_rows, :2]
    n = np.bincount(group)
    middle = np.stack([np.bincount(group, xy[rows, k]) / n for k in (0, 1)], axis=1)
    low, high = np.full((len(numbers), 2), np.inf), np.full((len(numbers), 2), -np.inf)
    np.minimum.at(low, group, xy[rows])
    np.maximum.at(high, group, xy[rows])
    tree: Any = cKDTree(xy)
    near, around = (tree.query_ball_point(middle, reach, return_length=True) for reach in (0.4, 1.0))
    good = ((high - low).max(axis=1) <= settings.stem_width_m) & (near >= settings.stem_apart * around)
    number = np.where(good, np.cumsum(good) - 1, -1)
    keep = number[group] >= 0
    return Stems(middle[good], slice_rows[rows[keep]], number[group[keep]])


def find_tops(xy_m: Array, top_m: Array, neighbours: list[Rows], settings: TreeSettings) -> Rows:
    """Return the columns that are higher than all others within a distance that grows with their height.

    Args:
        xy_m: (K, 2) middles of the columns.
        top_m: (K,) their heights above the ground.
        neighbours: of `Columns.neighbours`.
        settings: how.
    """
    from scipy.spatial import cKDTree

    beside = np.append(top_m, -np.inf)
    # Ties go to the earlier column, so that a level top has one.
    rank = np.empty(len(top_m), dtype=np.int64)
    rank[np.argsort(-top_m, kind="stable")] = np.arange(len(top_m))
    worse = np.append(rank, len(rank) + 1)
    is_peak = np.ones(len(top_m), dtype=np.bool_)
    for row in neighbours:
        is_peak &= (beside[row] < top_m) | (worse[row] > rank)
    peak = np.flatnonzero(is_peak)
    if not len(peak):
        return peak
    reach_m = settings.top_reach_m + settings.top_share * top_m[peak]
    tree: Any = cKDTree(xy_m[peak])
    found: Rows = tree.query_pairs(float(reach_m.max()), output_type="ndarray").reshape(-1, 2)
    apart_m = np.linalg.norm(xy_m[peak[found[:, 0]]] - xy_m[peak[found[:, 1]]], axis=1)
    first_lower = rank[peak[found[:, 0]]] > rank[peak[found[:, 1]]]
    lower = np.where(first_lower, found[:, 0], found[:, 1])
    higher = np.where(first_lower, found[:, 1], found[:, 0])
    # The higher one decides: a crown of nine metres has bumps a metre and a half apart.
    beaten = np.zeros(len(peak), dtype=np.bool_)
    beaten[lower[apart_m < np.minimum(reach_m[higher], 1.5 * reach_m[lower])]] = True
    return peak[~beaten]


def _with_every_group(cells: LinkedCells, height_m: Array, cell: Rows, seed: Rows, n: int) -> tuple[Rows, Rows]:
    """Add the highest cell of each group of linked cells that has no seed: a shrub under a crown, for example."""
    n_groups, group = cells.components()
    has_seed = np.zeros(n_groups, dtype=np.bool_)
    has_seed[group[cell]] = True
    order = np.lexsort((height_m, group))
    highest = order[np.append(np.flatnonzero(np.diff(group[order])), len(order) - 1)]
    added = highest[~has_seed[group[highest]]]
    return np.concatenate([cell, added]), np.concatenate([seed, n + np.arange(len(added))])


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What plants were parted into."""

    of_cell: NDArray[np.int64]
    """(C,) the part of each cell."""
    has_stem: NDArray[np.bool_]
    """(P,) whether a stem was seen."""


def part_at_stems(
    cells: LinkedCells, height_m: Array, middle_m: Array, stems: Stems, cell_of_point: Rows, settings: TreeSettings
) -> Parts:
    """Part linked cells at stems and tops.

    Args:
        cells: what stands above the ground.
        height_m: (C,) height of each cell above the ground, that of its highest point.
        middle_m: (C, 3) mean of the points of each cell, map frame.
        stems: that were seen.
        cell_of_point: (N,) the cell of each point that `stems` speaks of; -1 for none.
        settings: how.
    """
    from scipy.spatial import cKDTree

    columns = cells.columns()
    top_m = columns.highest(height_m)
    highest = np.lexsort((height_m, columns.of_cell))
    top_cell = highest[np.append(np.flatnonzero(np.diff(columns.of_cell[highest])), len(highest) - 1)]
    tops = find_tops(middle_m[top_cell, :2], top_m, columns.neighbours(), settings)
    top_xy, top_h = middle_m[top_cell[tops], :2], top_m[tops]
    n_stems = len(stems.xy_m)
    owner = n_stems + np.arange(len(tops))
    if n_stems and len(tops):
        distance, nearest = cKDTree(stems.xy_m).query(top_xy)
        close = (np.asarray(distance) < np.maximum(1.0, settings.crown_share * top_h)) & (top_h > settings.tree_from_m)
        owner = np.where(close, np.asarray(nearest), owner)
    stem_cell = cell_of_point[stems.point]
    # A stem without a crown is a post, or part of a shrub: it parts nothing.
    crowned = np.isin(stems.stem, owner) & (stem_cell >= 0)
    seed_cell = np.concatenate([stem_cell[crowned], top_cell[tops]])
    seed = np.concatenate([stems.stem[crowned], owner])
    part = cells.nearest_seed(*_with_every_group(cells, height_m, seed_cell, seed, n_stems + len(tops)))
    part = _without_bumps(cells, part, height_m, middle_m, n_stems, settings)
    numbers, of_cell = np.unique(part, return_inverse=True)
    return Parts(of_cell.reshape(-1).astype(np.int64), (numbers >= 0) & (numbers < n_stems))


def _without_bumps(
    cells: LinkedCells, part: Rows, height_m: Array, middle_m: Array, n_stems: int, settings: TreeSettings
) -> Rows:
    """Give a part without a stem to the neighbour from which only a shallow saddle parts it: both are one crown."""
    n = int(part.max()) + 1
    order = np.lexsort((height_m, part))
    highest = order[np.append(np.flatnonzero(np.diff(part[order])), len(order) - 1)]
    top_m, top_xy = np.full(n, -np.inf), np.zeros((n, 2))
    top_m[part[highest]], top_xy[part[highest]] = height_m[highest], middle_m[highest, :2]
    # A part may only go to one that ranks before it: with a stem, or higher.
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((-top_m, np.arange(n) >= n_stems))] = np.arange(n)
    link = cells.link[part[cells.link[:, 0]] != part[cells.link[:, 1]]]
    if not len(link):
        return part
    a, b = part[link[:, 0]], part[link[:, 1]]
    lower, upper = np.where(rank[a] > rank[b], a, b), np.where(rank[a] > rank[b], b, a)
    saddle_m = np.minimum(height_m[link[:, 0]], height_m[link[:, 1]])
    least_m = np.minimum(top_m[lower], top_m[upper])
    apart_m = np.linalg.norm(top_xy[lower] - top_xy[upper], axis=1)
    one = (lower >= n_stems) & (saddle_m > settings.saddle * least_m)
    one &= least_m > settings.bump_height * np.maximum(top_m[lower], top_m[upper])
    one &= apart_m < np.maximum(1.0, settings.bump_share * np.maximum(top_m[lower], top_m[upper]))
    best = np.flatnonzero(one)[np.argsort(saddle_m[one], kind="stable")]
    goes_to = np.arange(n)
    goes_to[lower[best]] = upper[best]  # the last one, over the highest saddle, stays
    while (goes_to[goes_to] != goes_to).any():
        goes_to = goes_to[goes_to]
    return goes_to[part]
