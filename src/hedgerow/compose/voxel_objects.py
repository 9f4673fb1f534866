# SPDX-License-Identifier: Apache-2.0
"""Objects among the voxels of a site: what stands on the ground, parted, and told apart by shape.

First come surfaces: walls, huts and vehicles are parted from the plants that touch them. The rest is parted at stems
and tops (`trees`), and each part gets its class (`shape_classes`). Shrubs that touch and run on become one again, a
patch. Last, the voxels near the ground under an object become part of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Parameters, Positive, Share
from hedgerow.compose.clusters import LinkedCells
from hedgerow.compose.shape_classes import (
    SHRUBS,
    Shapes,
    ShapeSettings,
    by_height,
    classify,
    measure,
    quantile_by,
    thin_lines,
    thin_surfaces,
)
from hedgerow.compose.trees import TreeSettings, find_stems, part_at_stems
from hedgerow.scenes.annotation import OTHER_CLASS
from hedgerow.scenes.ground_fit import Ground, GroundSettings
from hedgerow.scenes.point_grid import GROUND, OTHER, PLANT, GridTable, find, step

Rows = NDArray[np.int64]


class SegmentSettings(Parameters):
    """How a site is parted into ground and objects."""

    voxel_m: Positive = 0.2
    """Side of the voxels that points are summed up in [m]."""
    link_m: Positive = 0.4
    """Side of the cells that are linked: what is nearer than that touches [m]."""
    gap_m: Positive = 1.2
    """Gaps up to this in an upright column do not part an object: rings of a lidar lie apart [m]."""
    ground_band_m: Positive = 0.2
    """Up to this above the surface points are ground [m]."""
    low_m: Positive = 0.5
    """What stands lower than this above the ground is grass, unless it lies under an object [m]."""
    min_height_m: Positive = 0.7
    """Lowest object [m]."""
    min_voxels: int = 10
    """Smallest object, in voxels."""
    patch_m: Positive = 4.0
    """Shrubs that run on longer than this are a patch [m]."""
    patch_alike: Share = 0.6
    """Shrubs of a patch that touch are alike: the lower is no lower than this share of the other."""
    cell_m: Positive = 2.0
    """Side of the cells that a patch is cut into [m]."""
    ground: GroundSettings = GroundSettings()
    """How the ground is fitted."""
    trees: TreeSettings = TreeSettings()
    """How plants that touch are parted."""
    shapes: ShapeSettings = ShapeSettings()
    """How objects are told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class VoxelObjects:
    """What each voxel is."""

    object: Rows
    """(V,) number of its object, from 1 on; 0: none."""
    is_ground: NDArray[np.bool_]
    """(V,)."""
    class_name: NDArray[np.str_]
    """(K,) of objects 1 to K."""
    is_patch: NDArray[np.bool_]
    """(K,) whether it is a patch of shrubs."""


def find_objects(voxels: GridTable, origin_m: Array, ground: Ground, settings: SegmentSettings) -> VoxelObjects:
    """Find the objects of a site.

    Args:
        voxels: its points, summed up in voxels.
        origin_m: (3,) corner of a voxel.
        ground: what they stand on.
        settings: how.
    """
    height_m = ground.height_above(voxels.mean_m)
    top_m = height_m + voxels.top_m - voxels.mean_m[:, 2]
    said = said_by_labels(voxels)
    is_ground = np.where(said >= 0, said == GROUND, height_m < settings.ground_band_m)
    labelled = ((said == PLANT) | (said == OTHER)) & (height_m > settings.ground_band_m)
    stands = np.flatnonzero((said != GROUND) & ((height_m > settings.low_m) | labelled))
    points_m = voxels.mean_m[stands]
    surface, wall = _surfaces(points_m, said[stands], origin_m, settings)
    part, class_name, is_patch = _plants(
        points_m, height_m[stands], top_m[stands], surface, wall < 0, origin_m, settings
    )
    n_plants = len(class_name)
    group = np.where(wall >= 0, n_plants + wall, part)
    n_walls = int(wall.max(initial=-1)) + 1
    group = _joined_to_walls(points_m, group, n_plants, settings)
    class_name = np.concatenate([class_name, np.full(n_walls, OTHER_CLASS)])
    is_patch = np.concatenate([is_patch, np.zeros(n_walls, dtype=np.bool_)])
    number, kept = _numbered(group, top_m[stands], len(class_name), settings)
    objects = np.zeros(len(voxels), dtype=np.int64)
    objects[stands] = number
    low = (height_m <= settings.low_m) & ~is_ground & (objects == 0)
    _take_low(voxels, low, objects)
    return VoxelObjects(objects, is_ground & (objects == 0), class_name[kept], is_patch[kept])


def said_by_labels(voxels: GridTable) -> NDArray[np.int64]:
    """Return (V,) what most labels of a voxel say: GROUND, PLANT or OTHER; -1 where too few are labelled."""
    if not len(voxels):
        return np.zeros(0, dtype=np.int64)
    most = voxels.labels.argmax(axis=1)
    return np.where(voxels.labels.max(axis=1) > 0.5 * voxels.count, most, -1)


def _surfaces(
    points_m: Array, said: NDArray[np.int64], origin_m: Array, settings: SegmentSettings
) -> tuple[NDArray[np.bool_], Rows]:
    """Return (N,) which points lie on thin surfaces, and the wall, fence or vehicle that each belongs to, -1: none."""
    surface = (thin_surfaces(points_m, settings.shapes) & (said != PLANT)) | (said == OTHER)
    line = thin_lines(points_m, settings.voxel_m, settings.shapes) & (said != PLANT)
    wall = np.full(len(points_m), -1, dtype=np.int64)
    rows = np.flatnonzero(surface | line)
    if not len(rows):
        return surface, wall
    cells, cell = LinkedCells.of(points_m[rows], origin_m, settings.link_m, settings.link_m)
    n, group = cells.components()
    group = group[cell]
    size = np.bincount(group, minlength=n)
    length_m = _lengths(group, n, points_m[rows])
    on_surface = np.bincount(group, surface[rows], minlength=n)
    labelled = np.bincount(group, said[rows] == OTHER, minlength=n) > 0
    # A wall or vehicle is a surface wider than a stem; a fence or guardrail is a long line.
    wide = (on_surface > 0.5 * size) & (length_m > 2 * settings.shapes.pole_width_m)
    large = (wide | (length_m > settings.shapes.line_length_m)) & (size >= 2 * settings.min_voxels)
    large |= labelled
    number = np.where(large, np.cumsum(large) - 1, -1)
    wall[rows] = number[group]
    return surface, wall


def _plants(
    points_m: Array,
    height_m: Array,
    top_m: Array,
    surface: NDArray[np.bool_],
    chosen: NDArray[np.bool_],
    origin_m: Array,
    settings: SegmentSettings,
) -> tuple[Rows, NDArray[np.str_], NDArray[np.bool_]]:
    """Part what is chosen; return (N,) the part of each point, -1 for the others, and class and patch of each part."""
    part = np.full(len(points_m), -1, dtype=np.int64)
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return part, np.zeros(0, dtype=np.str_), np.zeros(0, dtype=np.bool_)
    points_m, height_m, top_m, surface = points_m[rows], height_m[rows], top_m[rows], surface[rows]
    cells, cell = LinkedCells.of(points_m, origin_m, settings.link_m, settings.gap_m)
    n = np.bincount(cell)
    middle = np.stack([np.bincount(cell, points_m[:, k]) / n for k in range(3)], axis=1)
    cell_top = np.full(len(cells), -np.inf)
    np.maximum.at(cell_top, cell, top_m)
    stems = find_stems(points_m, height_m, settings.voxel_m, settings.trees)
    parts = part_at_stems(cells, cell_top, middle, stems, cell, settings.trees)
    of_point = parts.of_cell[cell]
    shapes = measure(of_point, len(parts.has_stem), points_m, height_m, top_m, surface)
    class_name = classify(shapes, parts.has_stem, settings.shapes)
    joined, class_name, is_patch = _joined_shrubs(cells, parts.of_cell, class_name, shapes, middle, settings)
    part[rows] = joined[of_point]
    return part, class_name, is_patch


def _joined_shrubs(
    cells: LinkedCells, of_cell: Rows, class_name: NDArray[np.str_], shapes: Shapes, middle: Array, settings: Any
) -> tuple[Rows, NDArray[np.str_], NDArray[np.bool_]]:
    """Join shrubs that touch and run on; return the new number of each part, and class and patch of what is then."""
    from scipy import sparse

    csgraph: Any = sparse.csgraph
    n = len(class_name)
    is_shrub = np.isin(class_name, SHRUBS)
    pair = of_cell[cells.link]
    pair = pair[(pair[:, 0] != pair[:, 1]) & is_shrub[pair].all(axis=1)]
    high = shapes.height_m[pair]
    pair = pair[high.min(axis=1) > settings.patch_alike * high.max(axis=1)]
    graph = sparse.coo_matrix((np.ones(len(pair)), (pair[:, 0], pair[:, 1])), shape=(n, n)).tocsr()
    _, group = csgraph.connected_components(graph, directed=False)
    n_groups = int(group.max()) + 1
    top = np.zeros(n_groups)
    np.maximum.at(top, group, shapes.height_m)
    # A single shrub is about as wide as it is high.
    runs_on = _lengths(group[of_cell], n_groups, middle) > np.maximum(settings.patch_m, 1.3 * top)
    in_patch = runs_on[group] & is_shrub
    # What does not run on stays apart: two shrubs may touch.
    _, group = np.unique(np.where(in_patch, group, n_groups + np.arange(n)), return_inverse=True)
    group = group.reshape(-1).astype(np.int64)
    n_groups = int(group.max()) + 1
    first = np.zeros(n_groups, dtype=np.int64)
    first[group[::-1]] = np.arange(n)[::-1]
    is_patch = in_patch[first]
    # Half of a patch's tops are lower than this; one sapling in a hedge does not make it a large shrub.
    usual = quantile_by(group, n_groups, shapes.height_m, 0.5)
    return group, np.where(is_patch, by_height(usual, SHRUBS), class_name[first]), is_patch


def _lengths(group: Rows, n: int, points_m: Array) -> Array:
    """Return (n,) the length of each group: that of a line with the spread of its points along the principal axis."""
    count = np.maximum(np.bincount(group, minlength=n), 1)
    x, y = (points_m[:, k] - (np.bincount(group, points_m[:, k], minlength=n) / count)[group] for k in (0, 1))
    xx, xy, yy = (np.bincount(group, each, minlength=n) / count for each in (x * x, x * y, y * y))
    largest = (xx + yy) / 2 + np.sqrt(((xx - yy) / 2) ** 2 + xy**2)
    return np.sqrt(12 * largest)


def _joined_to_walls(points_m: Array, group: Rows, n_plants: int, settings: SegmentSettings) -> Rows:
    """Give what clings to a wall or vehicle, smaller than it, to it: mirrors, edges, wheels."""
    from scipy.spatial import cKDTree

    is_wall = group >= n_plants
    if not is_wall.any() or is_wall.all():
        return group
    walls, rest = np.flatnonzero(is_wall), np.flatnonzero(~is_wall & (group >= 0))
    tree: Any = cKDTree(points_m[walls])
    distance, nearest = tree.query(points_m[rest], distance_upper_bound=1.5 * settings.link_m)
    close = np.isfinite(distance)
    size = np.bincount(group[group >= 0], minlength=int(group.max()) + 1)
    touched = np.bincount(group[rest[close]], minlength=n_plants)
    clings = touched[:n_plants] > 0.6 * size[:n_plants]
    owner = np.full(n_plants, -1, dtype=np.int64)
    owner[group[rest[close]]] = group[walls[nearest[close]]]
    clings &= (owner >= 0) & (size[:n_plants] < size[np.maximum(owner, 0)])
    moved = rest[clings[group[rest]]]
    group = group.copy()
    group[moved] = owner[group[moved]]
    return group


def _numbered(group: Rows, top_m: Array, n: int, settings: SegmentSettings) -> tuple[Rows, Rows]:
    """Return (N,) the number of each object, from 1 on, 0 for those too small; and which groups they were."""
    inside = group >= 0
    size = np.bincount(group[inside], minlength=n)
    top = np.zeros(n)
    np.maximum.at(top, group[inside], top_m[inside])
    kept = np.flatnonzero((size >= settings.min_voxels) & (top >= settings.min_height_m))
    number = np.zeros(n + 1, dtype=np.int64)
    number[kept] = 1 + np.arange(len(kept))
    return number[group], kept


def _take_low(voxels: GridTable, low: NDArray[np.bool_], objects: Rows) -> None:
    """Give low voxels to the object whose lowest voxels stand above them, or above their neighbours: its foot."""
    rows = np.flatnonzero(low)
    beside = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
    before = objects.copy()  # those taken must not take others in turn: a foot does not creep along the ground
    for up in (1, 2, 3):
        for dx, dy in beside:
            above = find(voxels.key, voxels.key[rows] + step(dx, dy, up))
            taken = (above >= 0) & (before[above] > 0) & (objects[rows] == 0)
            objects[rows[taken]] = before[above[taken]]
