# SPDX-License-Identifier: Apache-2.0
"""Mean distance to the nearest point of the other cloud, both ways, of single sweeps and of a whole log.

Browning 2012 §5.2 takes the worse of the two ways, Tallavajhula 2018 eq. 4.7 to 4.9 their average. Sweep to sweep, each
sweep is compared with its own simulation and the distances of the sweeps are averaged, so no pose error enters.
Browning 2012 writes sums (eq. 15); its tables, like ours, are means over points.

The cloud of a whole log is bounded in memory. Up to a number of distinct points all are kept. Beyond it one point is
kept per voxel, with how many it stands for, and the voxel side doubles (1 cm, 2 cm, 4 cm, ...) whenever there are still
too many. The kept point is the one with the smallest hash of its coordinates, so the result does not depend on the
order of the sweeps or on how they are merged. Distances are then means over the kept points, weighted by what they
stand for; the clouds of one comparison are thinned alike. Thinning makes distances to the other cloud larger, by less
than the side: the scores say which side was used.

Equations: docs/models.md §25.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Metric, Value
from hedgerow.metrics.pair import Nearest, RealSweep, SweepPair, hash_points

CLOUD_METRICS = {
    "cloud_distance_m": Metric(
        label="Cloud to cloud, worse way",
        meaning="the same for the points of all sweeps together",
        source="Browning 2012 eq. 16",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="returns",
    ),
    "cloud_distance_average_m": Metric(
        label="Cloud to cloud, average",
        meaning="the average of the two ways",
        source="Tallavajhula 2018 eq. 4.9",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="returns",
    ),
}
SWEEP_METRICS = {
    "sweep_distance_m": Metric(
        label="Sweep to sweep, worse way",
        meaning="mean distance to the nearest return of the other sweep, the worse of the two ways, "
        "averaged over sweeps",
        source="Browning 2012 eq. 16",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="returns",
    ),
    "sweep_distance_average_m": Metric(
        label="Sweep to sweep, average",
        meaning="the average of the two ways",
        source="Tallavajhula 2018 eq. 4.9",
        better="low",
        near="reality",
        unit="cm",
        scale=100,
        decimals=2,
        counts="returns",
    ),
}

FIRST_VOXEL_M = 0.01
_N_SHARES = 16
_BLOCK = 100_000

_Part = tuple[NDArray[np.float64], NDArray[np.int64]]
"""(M, 3) points and (M,) numbers of points that they stand for."""


class SweepDistance:
    """Sums over sweeps of the distance from each to its simulation."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.n_sweeps = 0
        self.n_left_out = 0
        """Sweeps without any return, in reality or simulation: no distance is defined."""
        self.n_returns = 0
        self.worse_m = 0.0
        self.average_m = 0.0

    def add(self, pair: SweepPair) -> None:
        """Add one sweep."""
        real_m, simulated_m = pair.whole.points_m, pair.points_m
        if len(real_m) == 0 or len(simulated_m) == 0:
            self.n_left_out += 1
            return
        there, back = float(pair.there.distance_m.mean()), float(pair.back.distance_m.mean())
        self.n_sweeps += 1
        self.n_returns += len(real_m) + len(simulated_m)
        self.worse_m += max(there, back)
        self.average_m += (there + back) / 2

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.n_sweeps += other.n_sweeps
        self.n_left_out += other.n_left_out
        self.n_returns += other.n_returns
        self.worse_m += other.worse_m
        self.average_m += other.average_m

    def values(self) -> dict[str, Value]:
        """Return the mean over sweeps of the worse way (Browning 2012) and of the average (Tallavajhula 2018) [m]."""
        n = self.n_sweeps
        return {
            "sweep_distance_m": Value(self.worse_m / n if n else None, self.n_returns),
            "sweep_distance_average_m": Value(self.average_m / n if n else None, self.n_returns),
        }

    def notes(self) -> list[str]:
        """Say how many sweeps are left out."""
        if not self.n_left_out:
            return []
        n = self.n_sweeps + self.n_left_out
        return [f"{self.n_left_out} of {n} sweeps have no distance: nothing returned, in reality or here"]


class ThinnedCloud:
    """Distinct points with counts, one per voxel if there are too many."""

    def __init__(self, max_points: int, voxel_m: float = 0.0) -> None:
        """Start with nothing; keep at most `max_points` distinct points, and a quarter more until they are thinned.

        With `voxel_m` they are thinned to voxels of this side from the beginning.
        """
        self.max_points = max_points
        self._first_m = voxel_m or FIRST_VOXEL_M
        self.level = 1 if voxel_m else 0
        """0: every distinct point is kept; k: voxels of 2^(k-1) times the first side, 1 cm unless told otherwise."""
        self._parts: list[_Part] = []
        self._n_waiting = 0  # points of the last parts, which are not thinned yet

    @property
    def voxel_m(self) -> float:
        """Voxel side [m]; 0 if nothing was left out."""
        return self._first_m * 2 ** (self.level - 1) if self.level else 0.0

    def add(self, points_m: NDArray[np.float64]) -> None:
        """Add (M, 3) points, map frame."""
        self._wait(points_m, np.broadcast_to(np.int64(1), len(points_m)))

    def merge(self, other: Self) -> None:
        """Add the points of another cloud."""
        self.thin_to(other.level)
        self._wait(*other.points())

    def points(self) -> _Part:
        """Return the (K, 3) kept points and the (K,) numbers of points that they stand for."""
        self._settle()
        if len(self._parts) != 1:
            self._parts = [_join(self._parts)]
        return self._parts[0]

    def thin_to(self, level: int) -> None:
        """Thin at least to a level."""
        if level > self.level:
            self._settle()
            self.level = level
            _keep_one_per_voxel(self._parts, self.voxel_m)

    def _wait(self, points_m: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        self._parts.append((points_m, counts))
        self._n_waiting += len(points_m)
        if self._n_waiting > self.max_points // 4:
            self._settle()

    def _settle(self) -> None:
        if not self._n_waiting:
            return
        self._n_waiting = 0
        _keep_one_per_voxel(self._parts, self.voxel_m)
        while sum(len(points_m) for points_m, _ in self._parts) > self.max_points:
            self.thin_to(self.level + 1)


class CloudDistances:
    """The clouds of a real log and of its simulations."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing."""
        self.real = ThinnedCloud(settings.max_cloud_points)
        self.simulated = {name: ThinnedCloud(settings.max_cloud_points) for name in names}

    def add(self, real: RealSweep, pairs: Mapping[str, SweepPair]) -> None:
        """Add one sweep, with its simulations by name."""
        self.real.add(real.points_m)
        for name, cloud in self.simulated.items():
            cloud.add(pairs[name].points_m)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.real.merge(other.real)
        for name, cloud in self.simulated.items():
            cloud.merge(other.simulated[name])

    def values(self) -> dict[str, dict[str, Value]]:
        """Return the distances of each simulation, all clouds thinned alike [m]."""
        self._thin_alike()
        # One index at a time: with the clouds it is most of what is in memory here.
        there_m = _mean_distances_m(self.real, self.simulated)
        return {
            name: _values(self.real, cloud, there_m[name], _mean_distances_m(cloud, {name: self.real})[name])
            for name, cloud in self.simulated.items()
        }

    def notes(self) -> dict[str, list[str]]:
        """Say how far the clouds were thinned."""
        self._thin_alike()
        if not self.real.level:
            return {}
        note = (
            f"clouds were thinned to one point per {self.real.voxel_m * 100:g} cm voxel, weighted by the points it "
            "stands for"
        )
        return {name: [note] for name in self.simulated}

    def _thin_alike(self) -> None:
        clouds = (self.real, *self.simulated.values())
        for cloud in clouds:
            cloud.points()  # settles how far each has to be thinned
        level = max(cloud.level for cloud in clouds)
        for cloud in clouds:
            cloud.thin_to(level)


def _mean_distances_m(indexed: ThinnedCloud, clouds: Mapping[str, ThinnedCloud]) -> dict[str, float | None]:
    """Return the mean distance of each cloud's points to the nearest of one cloud; None where there are no points."""
    points_m, _ = indexed.points()
    result: dict[str, float | None] = dict.fromkeys(clouds)
    if len(points_m) == 0:
        return result
    nearest = Nearest(points_m, distinct=True)
    for name, cloud in clouds.items():
        asked_m, counts = cloud.points()
        if len(asked_m):
            result[name] = float(np.average(nearest.distance_m(asked_m), weights=counts))
    return result


def _values(
    real: ThinnedCloud, simulated: ThinnedCloud, there_m: float | None, back_m: float | None
) -> dict[str, Value]:
    """Return the worse of the two ways (Browning 2012) and their average (Tallavajhula 2018) [m]."""
    n = int(real.points()[1].sum() + simulated.points()[1].sum())
    if there_m is None or back_m is None:
        return {"cloud_distance_m": Value(None, n), "cloud_distance_average_m": Value(None, n)}
    return {
        "cloud_distance_m": Value(max(there_m, back_m), n),
        "cloud_distance_average_m": Value((there_m + back_m) / 2, n),
    }


def _keep_one_per_voxel(parts: list[_Part], voxel_m: float) -> None:
    """Keep the point of the smallest hash in each voxel and add up the counts; side 0 joins equal points only.

    Points stay in the order they came: neighbours in the scan are neighbours in space, which makes looking up fast.
    """
    counts = _add_up_counts(parts, voxel_m)
    begin = 0
    for k, (points_m, _) in enumerate(parts):  # each in its place: there is no room for all points twice
        of_part = counts[begin : begin + len(points_m)]
        begin += len(points_m)
        parts[k] = points_m[of_part > 0], of_part[of_part > 0]


def _join(parts: list[_Part]) -> _Part:
    """Make one part of all; the list is emptied on the way, so that no points are in memory twice."""
    n = sum(len(points_m) for points_m, _ in parts)
    points_m, counts = np.empty((n, 3)), np.empty(n, dtype=np.int64)
    end = n
    while parts:
        part_m, of_part = parts.pop()
        points_m[end - len(part_m) : end], counts[end - len(part_m) : end] = part_m, of_part
        end -= len(part_m)
    return points_m, counts


def _add_up_counts(parts: list[_Part], voxel_m: float) -> NDArray[np.int64]:
    """Return for each point the number of points of its voxel if it has the smallest hash there, and otherwise 0."""
    counts = np.concatenate([np.zeros(0, dtype=np.int64), *(counts for _, counts in parts)])
    rank = _hash_each(parts, lambda points_m: points_m + 0.0)  # minus zero has other bits than zero
    voxel = rank if voxel_m == 0 else _hash_each(parts, lambda points_m: np.floor(points_m / voxel_m).astype(np.int64))
    share_of = voxel.astype(np.uint8) % _N_SHARES
    for share in range(_N_SHARES):  # a share of the voxels at a time: sorting takes several times what is sorted
        some = np.flatnonzero(share_of == share)
        order = some[np.lexsort((rank[some], voxel[some]))]
        ordered = voxel[order]
        first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(order)])
        sums = np.add.reduceat(counts[order], first) if len(order) else counts[order]
        counts[some] = 0
        counts[order[first]] = sums
    return counts


def _hash_each(parts: list[_Part], words: Callable[[NDArray[np.float64]], NDArray[Any]]) -> NDArray[np.uint64]:
    """Hash three words for each point, of 64 bits, to (M,) numbers."""
    hashed = np.empty(sum(len(points_m) for points_m, _ in parts), dtype=np.uint64)
    begin = 0
    for block in (points_m[k : k + _BLOCK] for points_m, _ in parts for k in range(0, len(points_m), _BLOCK)):
        hashed[begin : begin + len(block)] = hash_points(words(block).view(np.uint64))
        begin += len(block)
    return hashed
