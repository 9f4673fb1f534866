# SPDX-License-Identifier: Apache-2.0
"""The top-down model: K-means, again within each cluster, a Gaussian for each small one (Browning 2012 §3.3.3, "Top
Down").

After Kalaiah and Varshney (2005), with K = 10 and several starts. Clusters follow the data where voxels cut through it.

A cloud of up to `cell_points` points is clustered as a whole. A larger one is first cut into cells that fit in memory.
Square cells would leave straight borders that no cluster crosses. Instead the first levels of the recursive K-means are
run on a sample of the points: a cell is one of these upper clusters, and its borders are borders that the clusters
would have anyway. The points go to temporary files cell by cell, and each cell is then clustered on its own. The sample
is the points whose positions have the smallest hashes.

The result depends on parameters and points alone: not on the order of the points, nor on how the log is cut into
chunks, nor on the number of threads.

Equations: docs/models.md §8.
"""

import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow import _core
from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.base.progress import Progress
from hedgerow.errors import FileError, InputError
from hedgerow.models.steps.credit import CreditParameters, learn_permeability
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.moments import POINT, Moments, point_records, require_points, require_same_map
from hedgerow.parallel.engine import Engine, Shared, current_engine
from hedgerow.parallel.log_parts import LogInParts, LogPart, map_log
from hedgerow.parallel.results import digest_of
from hedgerow.world.elements import Gaussians

_SAMPLE_PER_CLUSTER = 20
_HELD_PARTS = 4
_CELLS = 1 << 32  # roots of cells are numbered from here, those of the cuts between cells from 1, a whole cloud is 0


class TopdownParameters(StrictParameters, CreditParameters):
    """Parameters of the top-down model."""

    clusters: Annotated[int, Field(ge=2, le=64)] = 10
    """Number of clusters at each level (K in Browning 2012; Deschaud 2012 took 2)."""
    split_points: Annotated[int, Field(ge=2)] = 120
    """Clusters with fewer points than this are not split further (N_p in Browning 2012)."""
    min_points: Annotated[int, Field(ge=1)] = 1
    """Minimum number of points of an element; clusters with fewer are left out."""
    start: Literal["partition", "points", "axis"] = "partition"
    """How K-means is initialised: from the means of a random partition, from randomly chosen points, or along the
    longest axis of the cluster, as in Deschaud 2012, without restarts."""
    gaussian_level: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Clusters whose points pass a test of being Gaussian (Mardia's, at this level of significance) are not split
    further, however many points they have. Default: no test."""
    restarts: Annotated[int, Field(ge=1, le=1000)] = 3
    """Number of initialisations of each K-means; the result with the smallest variation within clusters is used."""
    iterations: Annotated[int, Field(ge=1)] = 30
    """Maximum number of iterations of each K-means."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-4
    """K-means stops when an iteration reduces the variation by less than this share."""
    tau: Positive = 3.5
    """Mahalanobis distance up to which a ray meets an element; Deschaud 2012 took 2."""
    min_sigma_m: Positive = 0.001
    """Minimum standard deviation of an element along any axis; keeps flat elements and single points valid."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Seed of the random initialisations."""
    cell_points: Annotated[int, Field(ge=100)] = 2_000_000
    """Approximate maximum number of points clustered at once, about 200 bytes of memory each; larger clouds are cut
    into cells first."""
    sample_points: Annotated[int, Field(ge=1000)] = 250_000
    """Number of sample points used to cut a larger cloud into cells."""


def learn_topdown(task: LearningTask, parameters: TopdownParameters) -> tuple[Gaussians, ...]:
    """Learn permeable Gaussians of recursive clusters."""
    gaussians = fit_clusters(task.chunks, parameters, progress=task.start("clustering"))
    return learn_permeability(task, (gaussians,), parameters)


def fit_clusters(
    chunks: LogChunks,
    parameters: TopdownParameters,
    *,
    threads: int = 0,
    progress: Progress | None = None,
) -> Gaussians:
    """Fit a Gaussian to each leaf of a recursive K-means over all returns of a log.

    Args:
        chunks: of the log, map frame; read a second time if there are more than `cell_points` points.
        parameters: see there.
        threads: 0 for all; the result does not depend on it.
        progress: called with the number of beams whose points are clustered.

    Returns:
        Gaussians, solid: permeability is counted afterwards.

    Raises:
        InputError: no beams, no returns, no cluster with enough points, or different map origins; says what to do.
        FileError: the temporary files cannot be written.
    """
    intake = _Intake(chunks, parameters)
    require_points(intake.n_beams, intake.sample.n_points)
    meter = _PointProgress(progress, intake.n_beams, intake.sample.n_points)
    if intake.held is not None:
        records = np.concatenate(intake.held)
        intake.held.clear()
        moments = _fit_leaves(records, 0, parameters, threads, meter)
    else:
        moments = _cluster_in_cells(chunks, intake.sample, parameters, threads, meter)
    enough = moments.count >= parameters.min_points
    if not enough.any():
        raise InputError(
            "min_points",
            f"none of {len(moments)} clusters has {parameters.min_points} points, the fullest has "
            f"{moments.count.max()}; take more sweeps or a smaller min_points",
        )
    return moments.select(enough).gaussians(tau=parameters.tau, min_sigma_m=parameters.min_sigma_m)


Split = Callable[[NDArray[np.float64], int], list[NDArray[np.integer]]]
"""Splits (M, 3) points into clusters, given a number that names the split; gives the rows of each cluster."""


class PointSample:
    """At most `size` of all the points that were added, fairly drawn and independent of their order."""

    def __init__(self, size: int) -> None:
        """Start with nothing."""
        self.size = size
        self.n_points = 0
        self._position_m = np.empty((0, 3))
        self._hash = np.empty(0, dtype=np.uint64)
        self._limit = np.uint64(2**64 - 1)

    def add(self, position_m: NDArray[np.float64]) -> None:
        """Add (M, 3) points."""
        self.n_points += len(position_m)
        hashed = _hash(position_m)
        low = hashed <= self._limit
        self._position_m = np.concatenate([self._position_m, position_m[low]])
        self._hash = np.concatenate([self._hash, hashed[low]])
        if len(self._hash) > 2 * self.size:
            self._cut()

    def merge(self, other: "PointSample") -> None:
        """Add the sample of other points, of the same size."""
        self._position_m = np.concatenate([self._position_m, other._position_m])
        self._hash = np.concatenate([self._hash, other._hash])
        self.n_points += other.n_points
        self._cut()

    def position_m(self) -> NDArray[np.float64]:
        """(S, 3) the sample, S at most `size`."""
        self._cut()
        return self._position_m

    def _cut(self) -> None:
        # Only equal points have equal hashes, so it does not matter which of them are kept.
        order = np.argsort(self._hash, kind="stable")[: self.size]
        self._position_m, self._hash = self._position_m[order], self._hash[order]
        if len(order) == self.size:
            self._limit = self._hash[-1]


class CellTree:
    """Cells as the leaves of a tree of nearest means."""

    def __init__(self, sample: PointSample, max_points: int, min_sample: int, split: Split) -> None:
        """Cut until a cell stands for at most `max_points` of all points.

        Args:
            sample: of the points to be cut.
            max_points: a cell with more than about this many is cut again.
            min_sample: a cell with fewer points of the sample is not cut.
            split: K-means; what it cannot split, because all lies in one place, stays a cell.
        """
        position_m = sample.position_m()
        most = max(max_points * len(position_m) / max(sample.n_points, 1), min_sample)
        self.n_cells = 0
        self._means: list[NDArray[np.float64]] = []
        self._children: list[list[int]] = []
        self._cell: list[int] = []
        nodes = [position_m]
        for number, points in enumerate(nodes):  # grows while it is read
            groups = split(points, number) if len(points) > most else []
            cut = len(groups) > 1
            self._cell.append(-1 if cut else self.n_cells)
            self.n_cells += not cut
            self._children.append(list(range(len(nodes), len(nodes) + len(groups))) if cut else [])
            children = [points[group] for group in groups] if cut else []
            self._means.append(np.array([child.mean(axis=0) for child in children]).reshape(-1, 3))
            nodes.extend(children)

    def cells_of(self, position_m: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the cell, from 0 to n_cells - 1, that each of (M, 3) points lies in."""
        cell = np.empty(len(position_m), dtype=np.int64)
        open_nodes = [(0, np.arange(len(position_m)))]
        while open_nodes:
            node, rows = open_nodes.pop()
            if not self._children[node]:
                cell[rows] = self._cell[node]
                continue
            squared = [((position_m[rows] - mean_m) ** 2).sum(axis=1) for mean_m in self._means[node]]
            nearest = np.argmin(squared, axis=0)
            open_nodes.extend((child, rows[nearest == k]) for k, child in enumerate(self._children[node]))
        return cell


def _hash(position_m: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Mix the bits of (M, 3) positions (the finaliser of splitmix64)."""
    bits = np.ascontiguousarray(position_m).view(np.uint64)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for axis in range(3):
        mixed = (mixed ^ bits[:, axis]) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


@dataclass(frozen=True, slots=True, eq=False)
class _Taken:
    """What the first reading takes in of one part of the log."""

    n_beams: int
    map_origin_m: NDArray[np.float64]
    sample: PointSample
    records: NDArray[Any] | None
    """All its points, as long as they are few."""


@dataclass(frozen=True, slots=True)
class _TakeIn:
    """Reads one part for the first time."""

    sample_points: int
    n_held: int
    """Of so many parts the points are held: a cloud that is clustered as a whole has no more."""

    def __call__(self, part: LogPart) -> _Taken:
        log, sample = part.read(), PointSample(self.sample_points)
        records = point_records(log)
        sample.add(records["position_m"])
        return _Taken(len(log), log.map_origin_m, sample, records if part.number < self.n_held else None)


class _Intake:
    """What the first reading of the log takes in: a sample of the points, and all of them as long as they are few."""

    def __init__(self, chunks: LogChunks, parameters: TopdownParameters) -> None:
        self.sample = PointSample(parameters.sample_points)
        self.n_beams = 0
        self.held: list[NDArray[Any]] | None = [np.empty(0, dtype=POINT)]
        origin_m: NDArray[np.float64] | None = None
        # What is kept on the disk, or sent, should be small.
        is_kept = isinstance(chunks, LogInParts) and chunks.engine.results is not None
        for taken in map_log(chunks, _TakeIn(parameters.sample_points, _HELD_PARTS if is_kept else 2**62)):
            origin_m = taken.map_origin_m if origin_m is None else origin_m
            require_same_map(origin_m, taken.map_origin_m)
            self.n_beams += taken.n_beams
            self.sample.merge(taken.sample)
            if self.sample.n_points > parameters.cell_points:
                self.held = None
            elif self.held is not None and taken.records is not None:
                self.held.append(taken.records)
        if self.held is not None and sum(map(len, self.held)) < self.sample.n_points:
            self.held = [point_records(log) for log in chunks()]


class _PointProgress:
    """Turns points done into beams done, over all cells."""

    def __init__(self, progress: Progress | None, n_beams: int, n_points: int) -> None:
        self._progress, self._beams_per_point = progress, n_beams / n_points
        self.before = 0

    def __call__(self, n_points: int) -> None:
        if self._progress is not None:
            self._progress(round((self.before + n_points) * self._beams_per_point))


def _cluster_in_cells(
    chunks: LogChunks, sample: PointSample, parameters: TopdownParameters, threads: int, meter: _PointProgress
) -> Moments:
    def split(points: NDArray[np.float64], number: int) -> list[NDArray[np.integer]]:
        # Every cluster is below the number of points, so this goes down one level only.
        one_level = parameters.model_copy(update={"split_points": len(points), "gaussian_level": None})
        order, begin = _cluster(points, number + 1, one_level, threads, None)
        return np.split(order, begin[1:-1])

    min_sample = _SAMPLE_PER_CLUSTER * parameters.clusters
    tree = CellTree(sample, parameters.cell_points, min_sample, split)
    engine = chunks.engine if isinstance(chunks, LogInParts) else current_engine()
    with _folder_of(engine) as folder:
        files = list(map_log(chunks, _SplitIntoCells(engine.share(tree), str(folder))))
        counts = np.sum([np.diff(file.begin) for file in files], axis=0)
        work = _FitCell(engine.share((str(folder), files)), parameters, threads)
        cells = [Cell(number, int(n)) for number, n in enumerate(counts) if n > 0]
        found: list[Moments] = []
        for moments, cell in zip(engine.map(work, cells), cells, strict=True):
            found.append(moments)
            meter(cell.n_points)
            meter.before += cell.n_points
    return Moments.concatenate(found)


@contextmanager
def _folder_of(engine: Engine) -> Generator[Path]:
    """Give a folder for the points of parts: with finished parts, or a temporary one."""
    if engine.results is not None:
        engine.results.folder.mkdir(parents=True, exist_ok=True)
        yield engine.results.folder
        return
    with tempfile.TemporaryDirectory(prefix="hedgerow-topdown-") as folder:
        yield Path(folder)


@dataclass(frozen=True, slots=True, eq=False)
class _PartInCells:
    """The points of one part of the log in a file, cell by cell."""

    name: str
    begin: NDArray[np.int64]
    """(C + 1,) where each cell begins."""


@dataclass(frozen=True, slots=True)
class _SplitIntoCells:
    """Writes the points of one part, sorted by the cells that they lie in."""

    tree: Shared[CellTree]
    folder: str

    def __call__(self, part: LogPart) -> _PartInCells:
        records, tree = point_records(part.read()), self.tree.value
        cell = tree.cells_of(records["position_m"])
        order = np.argsort(cell, kind="stable")
        path = Path(self.folder) / f"points-{digest_of(repr(self), repr(part))}.npy"
        try:
            with path.open("wb") as file:
                np.save(file, records[order])
        except OSError as error:
            raise FileError(f"{path}: cannot be written, {error.strerror}; set TMPDIR to a folder with room") from error
        return _PartInCells(path.name, np.searchsorted(cell[order], np.arange(tree.n_cells + 1)))


@dataclass(frozen=True, slots=True)
class Cell:
    """A part of the points, clustered on its own."""

    number: int
    n_points: int

    def __str__(self) -> str:
        """Name it in a sentence."""
        return f"cell {self.number + 1} ({self.n_points:,} points)"


@dataclass(frozen=True, slots=True)
class _FitCell:
    """Clusters the points of one cell, of all parts in their order."""

    files: Shared[tuple[str, list[_PartInCells]]]
    parameters: TopdownParameters
    threads: int

    def __call__(self, cell: Cell) -> Moments:
        folder, files = self.files.value
        found: list[NDArray[Any]] = []
        for file in files:
            first, last = file.begin[cell.number], file.begin[cell.number + 1]
            if first < last:
                found.append(np.array(np.load(Path(folder) / file.name, mmap_mode="r")[first:last]))
        silent = _PointProgress(None, 1, 1)
        return _fit_leaves(np.concatenate(found), _CELLS + cell.number, self.parameters, self.threads, silent)


def _fit_leaves(
    records: NDArray[Any], root: int, parameters: TopdownParameters, threads: int, meter: _PointProgress
) -> Moments:
    position_m = np.ascontiguousarray(records["position_m"])
    order, begin = _cluster(position_m, root, parameters, threads, meter)
    return Moments.of_points(records[order], begin)


def _cluster(
    position_m: NDArray[np.float64],
    root: int,
    parameters: TopdownParameters,
    threads: int,
    meter: _PointProgress | None,
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    max_skewness, max_kurtosis = _gaussian_limits(parameters.gaussian_level)
    settings = _core.ClusterSettings(
        clusters=parameters.clusters,
        split_points=parameters.split_points,
        restarts=parameters.restarts,
        iterations=parameters.iterations,
        tolerance=parameters.tolerance,
        start=_core.ClusterStart[parameters.start],
        max_skewness=max_skewness,
        max_kurtosis=max_kurtosis,
        seed=parameters.seed,
        root=root,
    )
    return _core.cluster(position_m, settings, threads=threads, progress=meter)


def _gaussian_limits(level: float | None) -> tuple[float, float]:
    """Limits of skewness and kurtosis that Gaussian points exceed with the probability `level`; 0: nothing passes."""
    from scipy import special

    if level is None:
        return 0.0, 0.0
    # Half of the level each: chi-square with 10 degrees of freedom, and a normal distribution to both sides.
    return float(special.chdtri(10, level / 2)), float(-special.ndtri(level / 4))
