# SPDX-License-Identifier: Apache-2.0
"""Distance between the clouds of logs on the disk, of any length: no point is left out, memory holds one tile.

    found = cloud_distances("second", {"voxel": "voxel.log"})
    print(found["voxel"].worse_m)

`compare` keeps the clouds in memory and thins them once they are large (cloud_distance.py), which makes distances
larger. Here the points of all logs are first written to the disk, sorted by tile, a part of the log at a time. Then
each tile is indexed alone, with all its points, and answers for the points in it and up to `REACH_M` around it; the
least answer of all tiles is the distance. So a distance up to `REACH_M` is exact; what is farther away, which in a
simulation of the same beams is next to nothing, is bounded from above, and counted.

Distances are means (Browning 2012 eq. 15 and 16, Tallavajhula 2018 eq. 4.9). A mean needs no more than a fair sample of
the points that ask; those that answer are all there. Which points ask follows from their coordinates alone.
"""

import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics.pair import Nearest, RealSweep, hash_points
from hedgerow.parallel.engine import Engine, InProcess, Shared, current_engine
from hedgerow.parallel.log_parts import LogPart, cut_log, map_log
from hedgerow.parallel.results import Results, digest_of

TILE_M = 32.0
REACH_M = 8.0
"""How far around its tile a point is looked for."""
MOST_ASKING = 1_000_000
"""Points of each cloud whose distance is taken, about."""

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CloudDistance:
    """How far a real and a simulated cloud are from each other, on average over their points [m]."""

    to_simulated_m: float
    """From a real point to the nearest simulated one."""
    to_real_m: float
    """From a simulated point to the nearest real one."""
    n_real: int
    n_simulated: int
    n_far: int
    """Asking points with nothing within `REACH_M`, both ways together; their distances are upper bounds."""

    @property
    def worse_m(self) -> float:
        """The worse of the two ways (Browning 2012)."""
        return max(self.to_simulated_m, self.to_real_m)

    @property
    def average_m(self) -> float:
        """The average of the two ways (Tallavajhula 2018)."""
        return (self.to_simulated_m + self.to_real_m) / 2


def cloud_distances(
    real: str | Path,
    simulated: Mapping[str, str | Path],
    engine: Engine | None = None,
    *,
    most_asking: int = MOST_ASKING,
    progress: Progress | None = None,
) -> dict[str, CloudDistance]:
    """Measure how far the clouds of simulations are from that of a real log.

    Args:
        real: path of a Parquet log.
        simulated: paths of Parquet logs of the same sweeps, by name.
        engine: what works on parts and tiles. Default: that of the `using` block around, or this process.
        most_asking: about how many points of each cloud are asked for their distance.
        progress: called with the number of real beams whose points are sorted.

    Raises:
        FileError: a log cannot be read.
        InputError: a log has no returns, or not the sweeps of the real one.
    """
    with _with_results(engine or current_engine()) as chosen:
        assert chosen.results is not None
        parts = cut_log(real, chosen)
        step = max(1, sum(len(part) for part in parts.parts()) // most_asking)
        clouds = _Clouds(1 + len(simulated))
        for found in map_log(parts, _SortPart(chosen.results, _stamped(simulated.values()), step), progress):
            clouds.add(found)
        for name, n in zip(("real", *simulated), clouds.n_points, strict=True):
            if n == 0:
                raise InputError(name, "nothing returned; there is no cloud to compare")
        return dict(zip(simulated, _measure(clouds, chosen), strict=True))


def _measure(clouds: "_Clouds", engine: Engine) -> list[CloudDistance]:
    """Ask all tiles, and return the distances of all simulated clouds."""
    assert engine.results is not None
    asking = clouds.asking()
    best = {(a, b): np.full(len(asking[a]), np.inf) for k in range(1, len(asking)) for a, b in ((0, k), (k, 0))}
    for answers in engine.map(_AskTile(engine.results, engine.share(asking)), clouds.tiles()):
        for pair, (rows, distance_m) in answers.items():
            best[pair][rows] = np.minimum(best[pair][rows], distance_m)
    n_far: dict[tuple[int, int], int] = {}
    for (a, b), distance_m in best.items():
        far = distance_m > REACH_M
        n_far[a, b] = int(far.sum())
        if n_far[a, b]:  # the distance to any point of the other cloud is an upper bound
            distance_m[far] = np.minimum(distance_m[far], Nearest(asking[b]).distance_m(asking[a][far]))
    return [
        CloudDistance(
            float(best[0, k].mean()),
            float(best[k, 0].mean()),
            clouds.n_points[0],
            clouds.n_points[k],
            n_far[0, k] + n_far[k, 0],
        )
        for k in range(1, len(asking))
    ]


@contextmanager
def _with_results(engine: Engine) -> Generator[Engine]:
    """Give an engine that has a place for files."""
    if engine.results is not None:
        yield engine
        return
    with tempfile.TemporaryDirectory(prefix="hedgerow-clouds-") as folder:
        yield InProcess(Results(folder))


def _stamped(paths: Iterable[str | Path]) -> tuple[tuple[str, str], ...]:
    """Return the paths of logs as every worker finds them, with what tells these files from later ones."""
    from hedgerow.io.parquet.reader import LogFile

    files = [LogFile(path) for path in paths]
    return tuple((str(file.path.absolute()), file.stamp) for file in files)


@dataclass(frozen=True, slots=True)
class SortedPoints:
    """The points of one part of one log, in a file that is sorted by tile."""

    file: str
    """Name among the results: (N, 3) float32, relative to the corner of the tile."""
    key: NDArray[np.int64]
    """(T, 2) tiles that occur."""
    first: NDArray[np.int64]
    """(T + 1,) rows at which each tile begins, and the last ends."""
    asking_m: Points
    """(M, 3) points that ask, map frame."""


@dataclass(frozen=True, slots=True)
class _SortPart:
    """Writes the points of one part of the real log, and of the same sweeps of its simulations, sorted by tile."""

    results: Results
    simulated: tuple[tuple[str, str], ...]
    """Paths and stamps."""
    step: int
    """One in so many points asks."""

    def __call__(self, part: LogPart) -> list[SortedPoints]:
        said = digest_of(repr(self), repr(part))
        found = [self._sort(part.read(), f"cloud-{said}-0.npy")]
        for number, (path, stamp) in enumerate(self.simulated, start=1):
            same = LogPart(part.number, part.n_beams, path, stamp, part.sweeps)
            found.append(self._sort(same.read(), f"cloud-{said}-{number}.npy"))
        return found

    def _sort(self, log: Log, name: str) -> SortedPoints:
        points_m = RealSweep(log).points_m
        tile = np.floor(points_m[:, :2] / TILE_M).astype(np.int64)
        order = np.lexsort((tile[:, 1], tile[:, 0]))
        points_m, tile = points_m[order], tile[order]
        begins = np.flatnonzero(np.concatenate([[True], (tile[1:] != tile[:-1]).any(axis=1)])[: len(tile)])
        local = points_m.copy()
        local[:, :2] -= tile * TILE_M
        with self.results.writing(name) as path, path.open("wb") as file:
            np.save(file, local.astype(np.float32))
        hashed = hash_points(np.ascontiguousarray(points_m).view(np.uint64))
        # At least one: a cloud of few points asks too.
        asks = (hashed % np.uint64(self.step) == 0) | (hashed == hashed.min(initial=np.iinfo(np.uint64).max))
        return SortedPoints(name, tile[begins], np.append(begins, len(tile)), points_m[asks])


@dataclass(frozen=True, slots=True)
class TileOfClouds:
    """Where the points of one tile are: for each cloud files and rows."""

    key: tuple[int, int]
    where: tuple[tuple[tuple[str, int, int], ...], ...]

    def __str__(self) -> str:
        """Name it in a sentence."""
        return f"tile {self.key}"

    def read(self, cloud: int, results: Results) -> Points:
        """Return the (N, 3) points of a cloud, map frame."""
        pieces = [np.load(results.path(file), mmap_mode="r")[begin:end] for file, begin, end in self.where[cloud]]
        points_m = np.concatenate([np.zeros((0, 3), np.float32), *pieces]).astype(np.float64)
        points_m[:, :2] += np.array(self.key) * TILE_M
        return points_m


class _Clouds:
    """What is known of all clouds: how many points, which ask, and where each tile's points are."""

    def __init__(self, n: int) -> None:
        self.n_points = [0] * n
        self._asking: list[list[Points]] = [[] for _ in range(n)]
        self._where: dict[tuple[int, int], list[list[tuple[str, int, int]]]] = {}

    def add(self, found: list[SortedPoints]) -> None:
        for cloud, each in enumerate(found):
            self.n_points[cloud] += int(each.first[-1])
            self._asking[cloud].append(each.asking_m)
            for (x, y), begin, end in zip(
                each.key.tolist(), each.first[:-1].tolist(), each.first[1:].tolist(), strict=True
            ):
                where = self._where.setdefault((x, y), [[] for _ in found])
                where[cloud].append((each.file, begin, end))

    def asking(self) -> list[Points]:
        return [np.concatenate(each) for each in self._asking]

    def tiles(self) -> list[TileOfClouds]:
        return [TileOfClouds(key, tuple(map(tuple, where))) for key, where in sorted(self._where.items())]


@dataclass(frozen=True, slots=True)
class _AskTile:
    """Indexes the points of one tile, and answers for those that ask in it and around it."""

    results: Results
    asking: Shared[list[Points]]

    def __call__(self, tile: TileOfClouds) -> dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.float64]]]:
        asking = self.asking.value
        low_m = np.array(tile.key) * TILE_M - REACH_M
        around = [
            np.flatnonzero(((a[:, :2] >= low_m) & (a[:, :2] <= low_m + TILE_M + 2 * REACH_M)).all(axis=1))
            for a in asking
        ]
        answers: dict[tuple[int, int], tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        for indexed in range(len(asking)):
            # The real cloud is asked by all others, these by the real one.
            pairs = [
                (other, indexed) for other in (range(1, len(asking)) if indexed == 0 else (0,)) if len(around[other])
            ]
            points_m = tile.read(indexed, self.results) if pairs else np.zeros((0, 3))
            if len(points_m):
                nearest = Nearest(points_m)
                answers |= {(a, b): (around[a], nearest.distance_m(asking[a][around[a]])) for a, b in pairs}
        return answers
