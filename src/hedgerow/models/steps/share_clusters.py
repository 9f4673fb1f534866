# SPDX-License-Identifier: Apache-2.0
"""Clusters of a wanted number: K-means again and again, always within the cluster that varies most.

Tallavajhula 2018 §4.3.1.2 asks a library for a number of clusters, a share of the number of points, and the library
cuts its tree of K-means where the variance within clusters is least. This does the same from the top: the cluster with
the largest sum of squares about its mean is split next. Where points are sparse clusters are as small as where they are
dense, and hold fewer points; `topdown` splits by the number of points instead.

The points are cut into square blocks first, each clustered on its own, as in the thesis; they wait in temporary files,
so the log may be larger than memory.
"""

import heapq
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow import _core
from hedgerow.base.parameters import Parameters, Positive
from hedgerow.errors import FileError
from hedgerow.models.steps.moments import POINT, Moments

Split = Callable[[NDArray[np.float64]], list[NDArray[np.integer]]]
"""Splits (M, 3) points into clusters; gives the rows of each."""


class ShareParameters(Parameters):
    """Parameters of clusters whose number is a share of that of the points."""

    clusters_per_point: Annotated[float, Field(gt=0, le=1)] = 0.042
    """Clusters for each point; 0.042 is one for 24 points (Tallavajhula 2018 Table 4.1)."""
    min_points: Annotated[int, Field(ge=1)] = 5
    """Clusters with fewer points are left out (Table 4.1), and none with fewer than twice as many is split."""
    branching: Annotated[int, Field(ge=2, le=64)] = 10
    """Number of clusters that one is split into; the library of Tallavajhula 2018 takes 32."""
    restarts: Annotated[int, Field(ge=1, le=1000)] = 3
    """Number of initialisations of each K-means; the result with the smallest variation within clusters is used."""
    iterations: Annotated[int, Field(ge=1)] = 30
    """Maximum number of iterations of each K-means."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Seed of the random initialisations."""
    block_m: Positive = 50.0
    """Side of the blocks that are clustered on their own."""


def cluster_share(
    position_m: NDArray[np.float64], parameters: ShareParameters, *, block: int = 0, threads: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Cluster points into about as many clusters as the share asks for.

    Args:
        position_m: (M, 3) float64, M of 1 or more.
        parameters: see there.
        block: names the block, so that each has random numbers of its own.
        threads: 0 for all; the result does not depend on it.

    Returns:
        order (M,) and begin (V + 1,): cluster i is the rows order[begin[i]:begin[i + 1]].
    """
    n_splits = 0

    def split(points_m: NDArray[np.float64]) -> list[NDArray[np.integer]]:
        nonlocal n_splits
        n_splits += 1
        settings = _core.ClusterSettings(
            clusters=parameters.branching,
            split_points=len(points_m),  # every cluster is below this, so one level is all
            restarts=parameters.restarts,
            iterations=parameters.iterations,
            tolerance=1e-4,
            start=_core.ClusterStart["partition"],
            max_skewness=0.0,
            max_kurtosis=0.0,
            seed=parameters.seed,
            root=block << 32 | n_splits,
        )
        order, begin = _core.cluster(points_m, settings, threads=threads, progress=None)
        return np.split(order, begin[1:-1])

    wanted = max(1, round(parameters.clusters_per_point * len(position_m)))
    groups = split_most_varied(position_m, wanted, 2 * parameters.min_points, split)
    begin = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    return np.concatenate(groups), begin.astype(np.int64)


def split_most_varied(
    position_m: NDArray[np.float64], wanted: int, least_points: int, split: Split
) -> list[NDArray[np.int64]]:
    """Split the cluster with the largest sum of squares until there are enough; return the rows of each.

    Clusters with fewer than `least_points` points, or all of whose points lie in one place, stay whole.
    """
    done: list[NDArray[np.int64]] = []
    waiting: list[tuple[float, int, NDArray[np.int64]]] = []
    n_made = 0

    def put(rows: NDArray[np.int64]) -> None:
        nonlocal n_made
        points_m = position_m[rows]
        squares = float(((points_m - points_m.mean(axis=0)) ** 2).sum())
        if len(rows) < least_points or squares == 0:
            done.append(rows)
        else:
            n_made += 1
            heapq.heappush(waiting, (-squares, n_made, rows))

    put(np.arange(len(position_m)))
    while waiting and len(waiting) + len(done) < wanted:
        rows = heapq.heappop(waiting)[2]
        groups = split(np.ascontiguousarray(position_m[rows]))
        if len(groups) < 2:
            done.append(rows)
            continue
        for group in groups:
            put(rows[group])
    return done + [rows for _, _, rows in sorted(waiting, key=lambda each: each[1])]


class Blocks:
    """Points of square blocks, waiting in files; `blocks` makes one."""

    def __init__(self, folder: Path, block_m: float) -> None:
        """Start with nothing in an empty folder."""
        self._folder, self._block_m = folder, block_m
        self._names: set[tuple[int, int]] = set()

    def add(self, records: NDArray[Any]) -> None:
        """Add (M,) points of type POINT.

        Raises:
            FileError: a file cannot be written.
        """
        place = np.floor(records["position_m"][:, :2] / self._block_m).astype(np.int64)
        found, block = np.unique(place, axis=0, return_inverse=True)
        for number, (x, y) in enumerate(found.tolist()):
            self._names.add((x, y))
            path = self._path(x, y)
            try:
                with path.open("ab") as file:
                    file.write(records[block.reshape(-1) == number].tobytes())
            except OSError as error:
                said = f"cannot be written, {error.strerror}; set TMPDIR to a folder with room"
                raise FileError(f"{path}: {said}") from error

    def moments(self, parameters: ShareParameters, *, threads: int = 0) -> Iterator[tuple[Moments, int]]:
        """Cluster block after block; give the moments of each one's clusters, and its number of points."""
        for number, (x, y) in enumerate(sorted(self._names)):
            records = np.fromfile(self._path(x, y), dtype=POINT)
            position_m = np.ascontiguousarray(records["position_m"])
            order, begin = cluster_share(position_m, parameters, block=number, threads=threads)
            yield Moments.of_points(records[order], begin), len(records)

    def _path(self, x: int, y: int) -> Path:
        return self._folder / f"block_{x}_{y}.points"


@contextmanager
def blocks(block_m: float) -> Generator[Blocks]:
    """Give empty blocks; their files go when the `with` block ends."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-blocks-") as folder:
        yield Blocks(Path(folder), block_m)
