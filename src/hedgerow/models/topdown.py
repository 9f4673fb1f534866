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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow import _core
from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.base.progress import Progress
from hedgerow.errors import FileError, InputError
from hedgerow.log import Log
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.moments import POINT, Moments, point_records, require_points, require_same_map
from hedgerow.models.steps.permeability import CountParameters, count_permeability
from hedgerow.world.elements import Gaussians

_SAMPLE_PER_CLUSTER = 20
_CELLS = 1 << 32  # roots of cells are numbered from here, those of the cuts between cells from 1, a whole cloud is 0


class TopdownParameters(StrictParameters, CountParameters):
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
    return count_permeability(task, (gaussians,), parameters)


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
    intake = _Intake(parameters)
    for log in chunks():
        intake.add(log)
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


class CellFiles:
    """Points of cells in files of a folder, which the caller removes."""

    def __init__(self, folder: Path, n_cells: int) -> None:
        """Start with empty cells."""
        self._paths = [folder / f"cell_{cell:06d}.points" for cell in range(n_cells)]

    def append(self, cell: NDArray[np.int64], records: NDArray[Any]) -> None:
        """Add (M,) points of type POINT to the (M,) cells they lie in.

        Raises:
            FileError: a file cannot be written.
        """
        order = np.argsort(cell, kind="stable")
        begin = np.searchsorted(cell[order], np.arange(len(self._paths) + 1))
        for path, first, last in zip(self._paths, begin[:-1], begin[1:], strict=True):
            if first == last:
                continue
            try:
                with path.open("ab") as file:
                    file.write(records[order[first:last]].tobytes())
            except OSError as error:
                raise FileError(
                    f"{path}: cannot be written, {error.strerror}; set TMPDIR to a folder with room"
                ) from error

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Give the points of each cell in turn; each file is removed when it has been read."""
        for path in self._paths:
            if not path.exists():
                yield np.empty(0, dtype=POINT)
                continue
            records = np.fromfile(path, dtype=POINT)
            path.unlink()
            yield records


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


class _Intake:
    """What the first reading of the log takes in: a sample of the points, and all of them as long as they are few."""

    def __init__(self, parameters: TopdownParameters) -> None:
        self.sample = PointSample(parameters.sample_points)
        self.n_beams = 0
        self.held: list[NDArray[Any]] | None = [np.empty(0, dtype=POINT)]
        self._limit = parameters.cell_points
        self._map_origin_m: NDArray[np.float64] | None = None

    def add(self, log: Log) -> None:
        if self._map_origin_m is None:
            self._map_origin_m = log.map_origin_m
        require_same_map(self._map_origin_m, log.map_origin_m)
        self.n_beams += len(log)
        records = point_records(log)
        self.sample.add(records["position_m"])
        if self.sample.n_points > self._limit:
            self.held = None
        if self.held is not None:
            self.held.append(records)


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
    with tempfile.TemporaryDirectory(prefix="hedgerow-topdown-") as folder:
        files = CellFiles(Path(folder), tree.n_cells)
        for log in chunks():
            records = point_records(log)
            files.append(tree.cells_of(records["position_m"]), records)
        found: list[Moments] = []
        for cell, records in enumerate(files):
            if len(records):
                found.append(_fit_leaves(records, _CELLS + cell, parameters, threads, meter))
                meter.before += len(records)
    return Moments.concatenate(found)


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
