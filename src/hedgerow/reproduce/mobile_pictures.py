# SPDX-License-Identifier: Apache-2.0
"""Pictures of two drives, reality beside each world (Browning 2012 Figs. 7 and 15 to 19).

Every picture has the same panels: what was really measured on the second drive, what each world answers to the same
beams, and the scene fired again.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Beams, Log, Returns
from hedgerow.metrics import Comparison
from hedgerow.models.steps.classifier import classify
from hedgerow.report.plots import likelihood_histograms
from hedgerow.report.sweep_plots import first_points, range_images, sweeps_from_above, sweeps_in_perspective
from hedgerow.reproduce.occlusion import Obstacle
from hedgerow.scenes.site import Site

WIDTH_IN = 12.0
N_COLUMNS = 3
TREE_HALF_M = 4.5
"""Half the side of the square in which a tree is drawn."""
TREE_AWAY_M = (5.0, 14.0)
"""Distance from the path of the tree that is drawn."""
CLASSES_HALF_M = 22.0
AROUND_M = 9.0
"""Half the width of the pictures of a fence and a car."""
BROWN, GREEN, RED = "#8c5a2b", "#3a9a3a", "#d62728"

Ranges = Mapping[str, NDArray[np.float32]]
"""(N,) ranges of all beams of the second drive, by name; the first is the real one."""


def draw_all(
    folder: Path,
    name: str,
    site: Site,
    train: Log,
    test: Log,
    ranges: Ranges,
    obstacles: Sequence[Obstacle],
    scores: Comparison,
) -> tuple[Path, ...]:
    """Draw all pictures of an experiment and return their files, which begin with its name."""
    sweep = _middle_sweep(test, ranges)
    figures = {
        "above.jpg": sweeps_from_above(sweep, WIDTH_IN),
        "perspective.jpg": sweeps_in_perspective(sweep, WIDTH_IN),
        "ranges.png": range_images(sweep, WIDTH_IN),
        "likelihood.png": likelihood_histograms(scores),
        "tree.jpg": draw_tree(site, test, ranges),
        "classes.jpg": draw_classes(train),
    } | {f"{each.met.split()[-1]}.jpg": draw_obstacle(each, test.beams, ranges) for each in obstacles}
    paths = {folder / f"{name}-{end}": figure for end, figure in figures.items() if figure is not None}
    for path, figure in paths.items():
        save_figure(figure, path)
    return tuple(paths)


def _middle_sweep(test: Log, ranges: Ranges) -> dict[str, Log]:
    """The middle sweep of each."""
    numbers = test.sweeps
    rows = test.beams.sweep == numbers[len(numbers) // 2]
    seen = test[rows]
    return {name: seen.with_returns(Returns(range_m[rows])) for name, range_m in ranges.items()}


def draw_tree(site: Site, test: Log, ranges: Ranges) -> Any | None:
    """Draw a tree beside the path from the side, all sweeps together (Figs. 7 and 16); None if there is none.

    The path is to the left, so the side of the crown that reality sees through the leaves is to the right.
    """
    found = _tree_beside_path(site, test)
    if found is None:
        return None
    middle, away = found
    clouds = {name: _around(_points(test.beams, range_m), middle, TREE_HALF_M) for name, range_m in ranges.items()}
    low_m, high_m = np.percentile(clouds[next(iter(clouds))][:, 2], [0.5, 99.9]) + np.array([-0.5, 0.5])
    n_rows = -(-len(ranges) // N_COLUMNS)
    figure = new_figure(WIDTH_IN, n_rows * (0.4 + WIDTH_IN / N_COLUMNS * (high_m - low_m) / (2.4 * TREE_HALF_M)) + 0.3)
    for axes, (name, points) in zip(_panels(figure, len(ranges)), clouds.items(), strict=True):
        across, along = points[:, :2] @ away, points[:, :2] @ np.array([-away[1], away[0]])
        order = np.argsort(along)
        axes.scatter(
            across[order], points[order, 2], c=along[order], s=0.6, cmap="viridis", linewidths=0, vmin=-TREE_HALF_M,
            vmax=TREE_HALF_M,
        )  # fmt: skip
        axes.set(xlim=(-1.2 * TREE_HALF_M, 1.2 * TREE_HALF_M), ylim=(low_m, high_m))
        axes.set_title(f"{name}: {len(points):,} returns", fontsize="medium")
    figure.supxlabel("away from the path [m]; the colour is the distance along it", fontsize="medium")
    figure.supylabel("height [m]", fontsize="medium")
    return figure


def _tree_beside_path(site: Site, test: Log) -> tuple[Array, Array] | None:
    """Where the most returns from leaves are beside the path, (2,), and which way is away from it."""
    label = test.returns.label
    if label is None:
        return None
    leaves = np.isin(label, [site.labels[name] for name in ("leaves", "needles", "branch")]) & test.returns.hit
    points = _points(test.beams, np.where(leaves, test.returns.first_m, np.inf).astype(np.float32))
    cell, count = np.unique(np.floor(points[:, :2] / 2).astype(np.int64), axis=0, return_counts=True)
    path = test.beams.origin_m[:: max(1, len(test) // 2000), :2]
    middle = 2 * (cell + 0.5)
    if not len(middle):
        return None
    offset = middle[:, None] - path[None]
    nearest = np.linalg.norm(offset, axis=2).argmin(axis=1)
    toward = offset[np.arange(len(middle)), nearest]
    away_m = np.linalg.norm(toward, axis=1)
    count = np.where((away_m > TREE_AWAY_M[0]) & (away_m < TREE_AWAY_M[1]), count, 0)
    best = int(count.argmax())
    return (middle[best], toward[best] / away_m[best]) if count[best] else None


def draw_classes(train: Log) -> Any:
    """Draw what the hybrid world learns as surface and as volume, from above (Fig. 19)."""
    points = first_points(train)
    middle = train.beams.origin_m[len(train) // 2, :2]
    points = points[(np.abs(points[:, :2] - middle) < CLASSES_HALF_M).all(axis=1)]
    points = points[np.argsort(points[:, 2])]
    is_volume = classify(points)
    figure = new_figure(WIDTH_IN, 6.2)
    above, classes = figure.subplots(1, 2, sharex=True, sharey=True)
    x, y = (points[:, :2] - middle).T
    low, high = np.percentile(points[:, 2], [1, 99])
    above.scatter(x, y, c=points[:, 2], s=0.3, cmap="viridis", linewidths=0, vmin=low, vmax=high)
    above.set_title("points, coloured by height")
    classes.scatter(x, y, c=np.where(is_volume, GREEN, BROWN), s=0.3, linewidths=0)
    classes.set_title(f"surface (brown) and volume (green, {is_volume.mean():.0%})")
    for axes in (above, classes):
        axes.set(aspect="equal", xlabel="x [m]", xlim=(-CLASSES_HALF_M, CLASSES_HALF_M))
    above.set_ylabel("y [m]")
    return figure


def draw_obstacle(obstacle: Obstacle, beams: Beams, ranges: Ranges) -> Any:
    """Draw from above what is seen around a thing by the sweep that meets it most; what is behind it is red."""
    sweep = int(np.bincount(beams.sweep[obstacle.beam]).argmax())
    rows = beams.sweep == sweep
    met = obstacle.beam[beams.sweep[obstacle.beam] == sweep]
    far_m = obstacle.far_m[beams.sweep[obstacle.beam] == sweep]
    at = beams.origin_m[met, :2] + far_m[:, None] * beams.direction[met, :2]
    near = np.linalg.norm(at - beams.origin_m[met, :2], axis=1).argsort()[: max(1, len(met) // 2)]
    middle = np.median(at[near], axis=0)
    figure = new_figure(WIDTH_IN, 0.3 - (-len(ranges) // N_COLUMNS) * (0.3 + 0.8 * WIDTH_IN / N_COLUMNS))
    for axes, (name, range_m) in zip(_panels(figure, len(ranges)), ranges.items(), strict=True):
        points = _around(_points(beams, np.where(rows, range_m, np.inf).astype(np.float32)), middle, AROUND_M)
        behind = obstacle.beam[obstacle.behind_it(beams, range_m)]
        behind = behind[beams.sweep[behind] == sweep]
        red = beams.origin_m[behind] + range_m[behind, None].astype(np.float64) * beams.direction[behind]
        red -= [*middle, 0.0]
        axes.scatter(*points[:, :2].T, s=0.6, color="0.55", linewidths=0)
        axes.scatter(*red[:, :2].T, s=1.5, color=RED, linewidths=0)
        axes.plot(*(beams.origin_m[rows].mean(axis=0)[:2] - middle), marker="+", color="black", markersize=10)
        axes.set(xlim=(-AROUND_M, AROUND_M), ylim=(-AROUND_M * 0.8, AROUND_M * 0.8))
        axes.set_title(f"{name}: {len(behind):,} behind", fontsize="medium")
    figure.supxlabel(f"x [m]; red: {obstacle.behind} {obstacle.met}, +: sensor", fontsize="medium")
    figure.supylabel("y [m]", fontsize="medium")
    return figure


def _panels(figure: Any, n: int) -> list[Any]:
    """Axes for n panels of one scale, row by row."""
    grid = figure.subplots(-(-n // N_COLUMNS), N_COLUMNS, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in grid[n:]:
        axes.set_visible(False)
    for axes in grid:
        axes.set_aspect("equal")
    return list(grid[:n])


def _points(beams: Beams, range_m: NDArray[np.float32]) -> Array:
    """The (M, 3) points of the beams that return."""
    hit = np.isfinite(range_m)
    return beams.origin_m[hit] + range_m[hit, None].astype(np.float64) * beams.direction[hit]


def _around(points: Array, middle: Array, half_m: float) -> Array:
    """The (M, 3) points in a square around a (2,) place, seen from there."""
    points = points - [*middle, 0.0]
    return points[(np.abs(points[:, :2]) < half_m).all(axis=1)]
