# SPDX-License-Identifier: Apache-2.0
"""Seams: whether returns near the borders of tiles and of cells differ from those elsewhere.

Two things cut a large world into pieces. On the disk it is cut into tiles, of which only some are in memory; the
answers must be those of the whole world, bit for bit, near borders as elsewhere. And the top-down model cuts a large
cloud into cells, each clustered on its own (models/topdown.py); such a world differs from one clustered as a whole, and
the question is whether it is worse near the borders of cells.

Both are measured on a second drive along the trail. A return is near a border if the border is within `NEAR_M` of where
the real beam ended. The interval of a difference comes from drawing squares of `BLOCK_M` anew: neighbouring returns
err together, squares hardly do.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.models.topdown import (
    CellTree,
    PointSample,
    TopdownParameters,
    _cluster,  # pyright: ignore[reportPrivateUsage]  # the learner's own cells, not others like them
)
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, record
from hedgerow.reproduce.tables import markdown_table
from hedgerow.simulate import replay
from hedgerow.world import LearnedWorld, load_world

TILE_M = 8.0
"""A quarter of the usual side: sixteen times as many borders."""
TILE_MODELS = {"Voxel": "voxel", "Top Down": "topdown", "Permeable Surface": "permeable-surface"}
RESIDENT = 3
"""One in so many tiles is in memory."""
CELLS = 12
"""Cells hold one in so many points each, at most."""
NEAR_M = 0.5
STEPS_M = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Bins of the distance from a border; beyond the last is far."""
BLOCK_M = 4.0
DRAWS = 1000
_MOST_POINTS = 60_000
_SAMPLE_PER_CLUSTER = 20  # as models/topdown.py cuts cells
_FLAT = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]])
_AROUND = np.concatenate([_FLAT, (_FLAT + np.roll(_FLAT, 1, axis=0)) / np.sqrt(2), [[0, 0, 1], [0, 0, -1]]])


@dataclass(frozen=True)
class Judged:
    """A number for each of some places, of one world."""

    at_m: NDArray[np.float64]
    border_m: NDArray[np.float64]
    """How far the nearest border is, rounded up to a bin."""
    value: NDArray[np.float64]

    def where(self, near: bool) -> "Judged":
        """Return the places near borders, or the others."""
        return self.select((self.border_m <= NEAR_M) == near)

    def select(self, rows: NDArray[np.bool_]) -> "Judged":
        """Return some of the places."""
        return Judged(self.at_m[rows], self.border_m[rows], self.value[rows])


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Record two drives of `size` sweeps, learn on one, fire at wholes and at pieces along the other, and compare."""
    train, test = record(OFFROAD, size or 6, seed)
    say(f"recorded two drives of {len(train):,} beams")
    tiles = tile_rows(train, test, seed, say)
    found = judge_cells(train, test, seed, say)
    picture = folder / "seams.png"
    draw(found, picture, seed)
    text = (
        f"**Tiles of {TILE_M:g} m, one in {RESIDENT} in memory, against the whole world**\n\n{tiles}",
        f"**Top Down in {found.n_cells} cells, against one clustered as a whole**\n\n{cell_table(found, seed)}",
    )
    return Outcome(text="\n\n".join(text), pictures=(picture,))


def tile_rows(train: Log, test: Log, seed: int, say: Print, models: Mapping[str, str] = TILE_MODELS) -> str:
    """Return a table: how many returns of each world differ once it is paged, and by how much, near borders or not."""
    hit, at_m = test.returns.hit, test.points()
    near = border_of_tiles(at_m) <= NEAR_M
    rows: list[tuple[str, ...]] = []
    for name, model in models.items():
        whole, paged, tiles = fire_both(learn(train, model), test, seed)
        same = (whole == paged) | (np.isinf(whole) & np.isinf(paged))
        with np.errstate(invalid="ignore"):
            apart_m = np.where(same, 0.0, np.abs(whole - paged))
        returned = np.isfinite(paged[hit])
        shares = [f"{100 * returned[region].mean():.2f}" for region in (near, ~near)]
        differ = [f"{np.count_nonzero(~same[hit][region]):,}" for region in (near, ~near)]
        rows.append((name, tiles, f"{near.sum():,}", *shares, *differ, f"{apart_m.max():.3g}"))
        say(f"paged {name}: {np.count_nonzero(~same):,} of {len(same):,} beams differ")
    within = f"within {NEAR_M:g} m"
    head = ("", "tiles", f"beams {within}", f"hits found {within} [%]", "elsewhere [%]", f"differ {within}")
    return markdown_table((*head, "differ elsewhere", "largest difference [m]"), rows)


def fire_both(world: LearnedWorld, test: Log, seed: int) -> tuple[NDArray[np.float32], NDArray[np.float32], str]:
    """Fire the beams of a log at a world in small tiles, in memory and paged; ranges of both, and the tiles."""
    header = world.header
    whole = LearnedWorld(
        *world.tables.values(),  # pyright: ignore[reportArgumentType]  # as a world has them
        kind=header.kind,
        parameters=header.parameters,
        min_range_m=header.min_range_m,
        max_range_m=header.max_range_m,
        map_origin_m=header.map_origin_m,
        tile_m=TILE_M,
    )
    with tempfile.TemporaryDirectory(prefix="hedgerow-seams-") as folder:
        whole.save(Path(folder) / "tiles.world")
        n_tiles = sum(1 for _ in Path(folder).glob("tiles.world/*/*.parquet"))
        paged = load_world(Path(folder) / "tiles.world", resident_tiles=max(1, n_tiles // RESIDENT))
        ranges = [replay(each, test, seed=seed).returns.first_m for each in (whole, paged)]
    return ranges[0], ranges[1], f"{n_tiles:,}"


def border_of_tiles(at_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far (N, 3) points are from the nearest border of a tile [m]."""
    inside = at_m[:, :2] % TILE_M
    return np.minimum(inside, TILE_M - inside).min(axis=1)


@dataclass(frozen=True)
class CellSeams:
    """What was measured of a world learned as a whole, and of one in cells: two of each, in this order."""

    n_cells: int
    cell: NDArray[np.int64]
    """(M,) the cell of each place of `distance`, for the picture."""
    hits: tuple[Judged, Judged]
    """1 where the world returned a beam that really returned, else 0."""
    distance: tuple[Judged, Judged]
    """From a real point to the nearest simulated one [m]."""
    reverse: tuple[Judged, Judged]
    """From a simulated point to the nearest real one [m]."""


def judge_cells(train: Log, test: Log, seed: int, say: Print = print) -> CellSeams:
    """Learn as a whole and in cells, and measure both along the other drive."""
    n_points = int(train.returns.hit.sum())
    cell_points = max(100, n_points // CELLS)
    tree = cells_of(train, TopdownParameters(cell_points=cell_points))
    whole, pieces = (learn(train, "topdown", cell_points=most) for most in (n_points + 100, cell_points))
    say(f"learned Top Down: {whole.size().elements:,} elements as a whole, {pieces.size().elements:,} in cells")
    rng = np.random.default_rng(seed)

    def some_of(n: int) -> NDArray[np.intp]:
        return np.sort(rng.permutation(n)[:_MOST_POINTS])

    real = test.points()
    asked = some_of(len(real))
    at_m, border_m = real[asked], border_of_cells(tree, real[asked])
    hits: list[Judged] = []
    distance: list[Judged] = []
    reverse: list[Judged] = []
    for world in (whole, pieces):
        log = replay(world, test, seed=seed)
        found = np.isfinite(log.returns.first_m[test.returns.hit][asked])
        hits.append(Judged(at_m, border_m, found.astype(np.float64)))
        points = log.points()
        distance.append(Judged(at_m, border_m, _nearest_m(points, at_m)))
        back_m = points[some_of(len(points))]
        reverse.append(Judged(back_m, border_of_cells(tree, back_m), _nearest_m(real, back_m)))
    pairs = ((each[0], each[1]) for each in (hits, distance, reverse))
    return CellSeams(tree.n_cells, tree.cells_of(at_m), *pairs)


def cells_of(train: Log, parameters: TopdownParameters) -> CellTree:
    """Return the cells that the top-down model cuts the points of a log into."""

    def split(points: NDArray[np.float64], number: int) -> list[NDArray[np.integer]]:
        one_level = parameters.model_copy(update={"split_points": len(points), "gaussian_level": None})
        order, begin = _cluster(points, number + 1, one_level, 0, None)
        return np.split(order, begin[1:-1])

    sample = PointSample(parameters.sample_points)
    sample.add(train.points())
    return CellTree(sample, parameters.cell_points, _SAMPLE_PER_CLUSTER * parameters.clusters, split)


def border_of_cells(tree: CellTree, at_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least of `STEPS_M` within which another cell begins, to any of ten sides; inf if none does [m]."""
    own = tree.cells_of(at_m)
    out = np.full(len(at_m), np.inf)
    for step_m in STEPS_M[::-1]:
        for side in _AROUND:
            out[tree.cells_of(at_m + step_m * side) != own] = step_m
    return out


def _nearest_m(points: NDArray[np.float64], at_m: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(points).query(at_m, workers=-1)[0])


def difference(before: Judged, after: Judged, seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean after less the mean before, squares of places drawn anew; NaN of none."""
    if len(before.value) == 0 or len(after.value) == 0:
        return np.nan, np.nan
    square = np.floor(np.concatenate([before.at_m, after.at_m])[:, :2] / BLOCK_M).astype(np.int64)
    block = np.unique(square, axis=0, return_inverse=True)[1].ravel()
    n = int(block.max()) + 1
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), DRAWS)
    means: list[NDArray[np.float64]] = []
    for judged, own in ((before, block[: len(before.value)]), (after, block[len(before.value) :])):
        total, count = np.bincount(own, judged.value, n), np.bincount(own, minlength=n)
        means.append((drawn @ total) / np.maximum(drawn @ count, 1))
    low, high = np.quantile(means[1] - means[0], (0.025, 0.975))
    return float(low), float(high)


def cell_table(found: CellSeams, seed: int) -> str:
    """Return a table of hit shares and distances, of both worlds, near borders and elsewhere."""
    rows: list[tuple[str, ...]] = []
    for label, worlds in (
        ("hits found [%]", found.hits),
        ("real to simulated [cm]", found.distance),
        ("simulated to real [cm]", found.reverse),
    ):
        for near in (True, False):
            before, after = (judged.where(near) for judged in worlds)
            low, high = difference(before, after, seed)
            means = [f"{100 * _mean(judged.value):.2f}" for judged in (before, after)]
            interval = f"{100 * low:+.2f} to {100 * high:+.2f}"
            rows.append((label, _where(near), f"{len(after.value):,}", *means, interval))
    return markdown_table(("", "border", "points", "whole", "in cells", "difference, 95 %"), rows)


def _where(near: bool) -> str:
    return f"within {NEAR_M:g} m" if near else "farther"


def draw(found: CellSeams, path: Path, seed: int) -> None:
    """Draw the cells from above, and what cells change by how far the border is, with 95 % intervals."""
    figure = new_figure(15, 4.5)
    above, *panels = figure.subplots(1, 3)
    at_m = found.distance[0].at_m
    shown = slice(None, None, max(1, len(at_m) // 30_000))
    above.scatter(at_m[shown, 0], at_m[shown, 1], c=found.cell[shown] % 20, cmap="tab20", s=0.5, linewidths=0)
    above.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title=f"returns by cell ({found.n_cells})")
    steps = (*STEPS_M, np.inf)
    labels = ("simulated to real, in cells less whole [cm]", "hits found, in cells less whole [%]")
    for axes, label, worlds in zip(panels, labels, (found.reverse, found.hits), strict=True):
        for place, step in enumerate(steps):
            before, after = (judged.select(judged.border_m == step) for judged in worlds)
            low, high = (100 * value for value in difference(before, after, seed))
            axes.plot([place, place], [low, high], "C3-")
            axes.plot(place, 100 * (_mean(after.value) - _mean(before.value)), "C3s", markersize=4)
        axes.axhline(0, color="k", linewidth=0.8)
        axes.set_xticks(range(len(steps)), [*(f"{step:g}" for step in STEPS_M), "more"])
        axes.set(xlabel="border of a cell within [m]", ylabel=label)
        axes.grid(alpha=0.3)
    save_figure(figure, path)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")
