# SPDX-License-Identifier: Apache-2.0
"""What an object is, by its height and shape: one of seven classes of plants, or something else.

Heights part small from large halfway between the mean heights of Tallavajhula 2018 Table 4.2. A tree has a stem, or a
foot much narrower than its crown, or is higher than shrubs grow. Walls, vehicles and poles are no plants: their points
lie on thin surfaces (`thin_surfaces`), or all on one upright line.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Parameters, Positive, Share
from hedgerow.models.steps.normals import local_spectra
from hedgerow.scenes.annotation import OTHER_CLASS, PLANT_CLASSES

MEAN_HEIGHTS_M = {
    "low-shrub": 1.1,
    "small-shrub": 2.1,
    "medium-shrub": 3.8,
    "large-shrub": 5.4,
    "small-tree": 5.9,
    "medium-tree": 9.4,
    "large-tree": 13.4,
}
"""Tallavajhula 2018 Table 4.2."""
_LINE_REACH_M = 0.7
"""How far around a point a line is looked for, seen from above."""
SHRUBS, TREES = PLANT_CLASSES[:4], PLANT_CLASSES[4:]


class ShapeSettings(Parameters):
    """How objects are told from each other by their shape."""

    surface_reach_m: Positive = 0.5
    """How far around a point its surface is looked at [m]."""
    surface_thickness: Share = 0.012
    """Least eigenvalue of the points around, as a share of all three, below which they lie on a surface."""
    surface_flatness: Share = 0.1
    """Second eigenvalue, as a share of the largest, above which it is a surface and not a line."""
    other_share: Share = 0.5
    """Share of the points of an object on surfaces from which it is no plant."""
    line_width_m: Positive = 0.16
    """Standard deviation across a fence or guardrail, seen from above, below which it is no hedge [m]."""
    line_length_m: Positive = 5.0
    """Shortest of them [m]."""
    pole_width_m: Positive = 0.5
    """Widest pole [m]."""
    tree_foot: Share = 0.55
    """Width of the foot, as a share of the crown's, below which a plant is a tree."""
    tree_from_m: Positive = 2.5
    """Lowest tree with a stem [m]."""
    shrub_to_m: Positive = 6.5
    """Highest shrub [m]."""


def thin_surfaces(points_m: Array, settings: ShapeSettings) -> NDArray[np.bool_]:
    """Tell which points lie on a surface: those around them have hardly any thickness, and are no line either."""
    if not len(points_m):
        return np.zeros(0, dtype=np.bool_)
    spread, n = local_spectra(points_m, settings.surface_reach_m)
    total = spread.sum(axis=1)
    thin = spread[:, 0] < settings.surface_thickness * total
    return (n >= 8) & thin & (spread[:, 1] > settings.surface_flatness * spread[:, 2])


def thin_lines(points_m: Array, side_m: float, settings: ShapeSettings) -> NDArray[np.bool_]:
    """Tell which points lie on a thin line, seen from above: fences and guardrails, straight or in a bend.

    Args:
        points_m: (N, 3) map frame.
        side_m: points nearer than this count once, so that what is high does not count more.
        settings: how thin.
    """
    if not len(points_m):
        return np.zeros(0, dtype=np.bool_)
    index = np.floor(points_m[:, :2] / side_m).astype(np.int64)
    index -= index.min(axis=0)
    _, first, column = np.unique(
        index[:, 0] * (int(index[:, 1].max()) + 1) + index[:, 1], return_index=True, return_inverse=True
    )
    flat_m = points_m[first].copy()
    flat_m[:, 2] = 0.0
    spread, n = local_spectra(flat_m, _LINE_REACH_M)
    # The least eigenvalue is that of the height, which is none; the others are across and along.
    thin = (spread[:, 1] < settings.line_width_m**2) & (spread[:, 2] > 0.25**2) & (n >= 5)
    return thin[column.reshape(-1)]


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Measures of objects, (K,) each."""

    height_m: Array
    """Top above the ground."""
    base_m: Array
    """Height above which nineteen of twenty points lie."""
    foot_m: Array
    """Width of the lowest third: twice the distance from its middle that four of five points keep."""
    crown_m: Array
    """Width of the rest."""
    surface: Array
    """Share of points on thin surfaces."""
    n_cells: NDArray[np.int64]


def measure(
    group: NDArray[np.int64], n: int, points_m: Array, height_m: Array, top_m: Array, on_surface: NDArray[np.bool_]
) -> Shapes:
    """Measure objects.

    Args:
        group: (N,) the object of each point, 0 to n - 1.
        n: how many objects.
        points_m: (N, 3) map frame.
        height_m: (N,) above the ground.
        top_m: (N,) the same of the highest point that each one stands for.
        on_surface: (N,) whether it lies on a thin surface.
    """
    top = np.zeros(n)
    np.maximum.at(top, group, top_m)
    is_low = height_m < np.maximum(top[group] / 3, 0.8)
    count = np.bincount(group, minlength=n)
    surface = np.bincount(group, on_surface, minlength=n) / np.maximum(count, 1)
    foot = _width(group[is_low], n, points_m[is_low])
    crown = _width(group[~is_low], n, points_m[~is_low])
    return Shapes(top, quantile_by(group, n, height_m, 0.05), foot, crown, surface, count)


def classify(shapes: Shapes, has_stem: NDArray[np.bool_], settings: ShapeSettings) -> NDArray[np.str_]:
    """Return (K,) the class of each object."""
    high = shapes.height_m
    narrow = (shapes.foot_m < settings.tree_foot * shapes.crown_m) | np.isnan(shapes.foot_m)
    on_stem = has_stem & (high >= settings.tree_from_m)
    # A crown without a foot in sight hangs above what hides it.
    hangs = (shapes.base_m > 0.35 * high) & (high > 1.2 * settings.tree_from_m)
    is_tree = on_stem | hangs | (narrow & (high > 1.4 * settings.tree_from_m)) | (high > settings.shrub_to_m)
    # Grass around its foot does not make a post wider.
    thin = (shapes.crown_m < settings.pole_width_m) & (high > 4 * shapes.crown_m) & (high > 1.0)
    is_pole = thin & ~(shapes.foot_m > 3 * settings.pole_width_m)
    is_other = (shapes.surface > settings.other_share) | is_pole
    found = np.where(is_tree, by_height(high, TREES), by_height(high, SHRUBS))
    return np.where(is_other, OTHER_CLASS, found)


def by_height(height_m: Array, names: tuple[str, ...]) -> NDArray[np.str_]:
    """Return the class of each height: borders lie halfway between the mean heights of neighbours."""
    mean = np.array([MEAN_HEIGHTS_M[name] for name in names])
    return np.array(names)[np.searchsorted((mean[1:] + mean[:-1]) / 2, height_m)]


def quantile_by(group: NDArray[np.int64], n: int, values: Array, share: float) -> Array:
    """Return (n,) a quantile of the values of each group; NaN for those without any."""
    order = np.lexsort((values, group))
    count = np.bincount(group, minlength=n)
    first = np.cumsum(count) - count
    at = first + np.floor(share * np.maximum(count - 1, 0)).astype(np.int64)
    out = np.full(n, np.nan)
    some = count > 0
    out[some] = values[order[at[some]]]
    return out


def _width(group: NDArray[np.int64], n: int, points_m: Array) -> Array:
    middle: Any = np.stack([quantile_by(group, n, points_m[:, k], 0.5) for k in (0, 1)], axis=1)
    off_m = np.linalg.norm(points_m[:, :2] - middle[group], axis=1)
    return 2 * quantile_by(group, n, off_m, 0.8)
