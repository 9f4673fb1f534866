# SPDX-License-Identifier: Apache-2.0
"""compare: how far simulations are from a real log, counted sweep by sweep and scored at the end."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import tee
from typing import Any, Self, cast, overload

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics.beam_error import BeamError
from hedgerow.metrics.bearing import BearingHistogram, Directions, Stillness, bearing_distances, split
from hedgerow.metrics.catalogue import Value
from hedgerow.metrics.cloud_distance import Cloud, SweepDistance, cloud_distances
from hedgerow.metrics.config import CompareSettings, settings_from
from hedgerow.metrics.hit_miss import HitMiss
from hedgerow.metrics.inputs import (
    Answer,
    HasSweeps,
    Nearest,
    Pair,
    RealSweep,
    Recording,
    Simulated,
    answers_of,
    size_of,
    sweeps_of,
)
from hedgerow.metrics.likelihood import Likelihood
from hedgerow.metrics.range_histogram import RangeHistogram, histogram_match_m
from hedgerow.metrics.scores import Comparison, Histograms, Scores
from hedgerow.world import World

# Everything counted while a real log and its simulations pass by, sweep by sweep; tallies of parts merge.


class Side:
    """What is kept of one log alone, real or simulated."""

    def __init__(self, settings: CompareSettings, directions: Directions) -> None:
        """Start with nothing."""
        self.ranges = RangeHistogram(settings.histogram_step_m)
        self.cloud = Cloud(settings.max_cloud_points)
        self.bearing = BearingHistogram(directions, settings.range_step_m)

    def add(
        self,
        range_m: NDArray[np.float32],
        points_m: NDArray[np.float64],
        direction: NDArray[np.int64] | None,
    ) -> None:
        """Add one sweep; its directions if the sensor may stand still."""
        self.ranges.add(range_m)
        self.cloud.add(points_m)
        if direction is not None:
            self.bearing.add(direction, range_m)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.ranges.merge(other.ranges)
        self.cloud.merge(other.cloud)
        self.bearing.merge(other.bearing)


class Contest:
    """What is kept of one simulation beside the real log."""

    def __init__(self, settings: CompareSettings, directions: Directions) -> None:
        """Start with nothing."""
        self.side = Side(settings, directions)
        self.hit_miss = HitMiss()
        self.beam_error = BeamError()
        self.sweep_distance = SweepDistance()
        self.likelihood = Likelihood(settings.outlier_share, settings.range_step_m)

    def add(self, pair: Pair, direction: NDArray[np.int64] | None) -> None:
        """Add one sweep."""
        self.side.add(pair.range_m, pair.points_m, direction)
        self.hit_miss.add(pair)
        self.beam_error.add(pair)
        self.sweep_distance.add(pair)
        self.likelihood.add(pair)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.side.merge(other.side)
        self.hit_miss.merge(other.hit_miss)
        self.beam_error.merge(other.beam_error)
        self.sweep_distance.merge(other.sweep_distance)
        self.likelihood.merge(other.likelihood)


class Tally:
    """One real log and any number of simulations of it."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing; `names` are those of the simulations."""
        self.settings = settings
        directions = Directions(settings.bearing_step_deg)
        self.directions = directions
        self.n_beams = self.n_sweeps = 0
        self.limits_m: tuple[float, float] | None = None
        self.stillness = Stillness(settings.static_tolerance_m)
        self.real = Side(settings, directions)
        self.contests = {name: Contest(settings, directions) for name in names}

    def add(self, sweep: Log, answers: Mapping[str, Answer]) -> None:
        """Add one sweep with the answers of all simulations.

        Raises:
            InputError: its range limits differ from those of earlier sweeps.
        """
        self._require_limits((sweep.min_range_m, sweep.max_range_m))
        self.n_beams += len(sweep)
        self.n_sweeps += 1
        self.stillness.add(sweep.beams.origin_m)
        direction = self._directions_if_still(sweep)
        real = RealSweep(sweep)
        self.real.add(real.range_m, real.points_m, direction)
        for name, contest in self.contests.items():
            contest.add(Pair(real, answers[name]), direction)

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log, compared with the same simulations under the same settings."""
        if other.limits_m:
            self._require_limits(other.limits_m)
        self.n_beams += other.n_beams
        self.n_sweeps += other.n_sweeps
        self.stillness.merge(other.stillness)
        self.real.merge(other.real)
        for name, contest in self.contests.items():
            contest.merge(other.contests[name])
        if not self._may_be_static():
            self._drop_bearings()

    def is_static(self) -> bool:
        """Whether the sensor stands still and repeats its directions, unless the settings say so."""
        if self.settings.static is not None:
            return self.settings.static
        keys, _ = self.real.bearing.entries()
        n_directions = len(np.unique(split(keys)[0])) if self.stillness.holds else 0
        return n_directions > 0 and self.n_beams / n_directions >= self.settings.min_repeats

    def _directions_if_still(self, sweep: Log) -> NDArray[np.int64] | None:
        if self._may_be_static():
            return self.directions.of(sweep.beams)
        self._drop_bearings()
        return None

    def _may_be_static(self) -> bool:
        return self.stillness.holds if self.settings.static is None else self.settings.static

    def _drop_bearings(self) -> None:
        # A moving sensor would fill memory with histograms that mean nothing.
        for side in (self.real, *(contest.side for contest in self.contests.values())):
            side.bearing = BearingHistogram(self.directions, self.settings.range_step_m)

    def _require_limits(self, limits_m: tuple[float, float]) -> None:
        if self.limits_m is None:
            self.limits_m = limits_m
        if limits_m != self.limits_m:
            raise InputError("real", f"range limits change from {self.limits_m} to {limits_m} m; compare them apart")


# compare: how far simulations are from a real log, by the metrics of docs/models.md §24 to §28.
#
#     scores = hr.compare(real, world)                            # fires the real log's own beams
#     table = hr.compare(real, {"voxel": voxel, "hybrid": hybrid}).table()
#
# One pass over the real log, sweep by sweep; memory holds one sweep, two thinned clouds and small histograms.


Progress = Callable[[int], object]
"""Called after each sweep with the number of real beams done."""
_ALONE = "simulated"


@overload
def compare(
    real: Recording,
    simulated: Mapping[str, Simulated],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison: ...
@overload
def compare(
    real: Recording, simulated: Simulated, *, seed: int = 0, progress: Progress | None = None, **settings: Any
) -> Scores: ...
def compare(
    real: Recording,
    simulated: Simulated | Mapping[str, Simulated],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Scores | Comparison:
    """Measure how far one or several simulations are from a real log.

    Args:
        real: a log in memory or on the disk (`open_log`), or a stream of logs of whole sweeps, or a
            function that gives one.
        simulated: the same beams simulated, in the same order, as a log, file or stream; or a world, which the real
            log's beams are then fired at; or several of these by name.
        seed: for firing.
        progress: called after each sweep with the number of real beams done.
        settings: see `CompareSettings`.

    Returns:
        Scores of one simulation, or a Comparison of those that came by name. First returns are compared, within the
        range limits of the real log.

    Raises:
        InputError: the real log is empty or nothing in it returned, a simulated log has other beams, or a setting is
            unknown or out of bounds.
    """
    checked = settings_from(settings)
    if isinstance(simulated, Mapping):
        named = cast("Mapping[str, Simulated]", simulated)
        if not named:
            raise InputError("simulated", "names no simulation; give at least one")
        if "real" in named:
            raise InputError(
                "simulated", "'real' is what the real log is called in tables and plots; choose another name"
            )
        return judge(tally(real, named, checked, seed, progress), {name: size_of(each) for name, each in named.items()})
    counted = tally(real, {_ALONE: simulated}, checked, seed, progress)
    return judge(counted, {_ALONE: size_of(simulated)})[_ALONE]


def tally(
    real: Recording,
    simulated: Mapping[str, Simulated],
    settings: CompareSettings,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tally:
    """Count everything that the scores of a log, or of some sweeps of it, rest on; tallies merge, `judge` scores them.

    The arguments are those of `compare`.
    """
    _require_kinds(real, simulated)
    result = Tally(settings, simulated)
    sweeps, *copies = tee(sweeps_of("real", real), 1 + len(simulated))
    answers = {
        name: answers_of(name, source, copy, seed)
        for (name, source), copy in zip(simulated.items(), copies, strict=True)
    }
    for sweep in sweeps:
        result.add(sweep, {name: next(each) for name, each in answers.items()})
        if progress is not None:
            progress(result.n_beams)
    for each in answers.values():
        _require_end(each)
    return result


def _require_end(answers: Iterator[object]) -> None:
    # With the real sweeps used up there is no answer left; this lets a simulation that goes on say so.
    next(answers, None)


def _require_kinds(real: Recording, simulated: Mapping[str, Simulated]) -> None:
    if isinstance(real, World):
        raise InputError("real", "is a world; the first argument of compare is the real log")
    for name, source in simulated.items():
        given = cast("object", source)
        if isinstance(given, str) or not (callable(given) or isinstance(given, World | HasSweeps | Iterable)):
            raise InputError(name, f"expected a log, logs or a world with fire(), found {type(source).__name__}")
    if isinstance(real, Log) and len(real) == 0:
        raise InputError("real", "the log has no beams; there is nothing to compare")
    for name, source in simulated.items():
        if isinstance(real, Log) and isinstance(source, Log) and len(source) != len(real):
            raise InputError(name, f"has {len(source)} beams, the real log {len(real)}; fire the real log's own beams")


# From the tally to the scores: what is computed once at the end, and notes on what could not be.


_FEW_REPEATS = 100


def judge(tally: Tally, sizes: Mapping[str, Mapping[str, float]]) -> Comparison:
    """Score every simulation of a tally.

    Args:
        tally: of the whole log.
        sizes: elements, parameters and bytes of those simulations that know them, by name.

    Raises:
        InputError: the real log has no beams, or none of them returned.
    """
    if tally.n_beams == 0:
        raise InputError("real", "the log has no beams; there is nothing to compare")
    if tally.real.ranges.n == tally.real.ranges.n_no_return:
        raise InputError("real", f"none of its {tally.n_beams} beams returned; there is nothing to compare")
    clouds = [tally.real.cloud, *(contest.side.cloud for contest in tally.contests.values())]
    for cloud in clouds:
        cloud.kept()  # settles how far each has to be thinned
    level = max(cloud.level for cloud in clouds)
    for cloud in clouds:
        cloud.thin_to(level)
    nearest = Nearest(tally.real.cloud.kept()[0], distinct=True)
    static = tally.is_static()
    return Comparison(
        {
            name: _scores(tally, name, contest, static, nearest, sizes.get(name, {}))
            for name, contest in tally.contests.items()
        }
    )


def _scores(
    tally: Tally, name: str, contest: Contest, static: bool, nearest: Nearest, size: Mapping[str, float]
) -> Scores:
    real, simulated = tally.real, contest.side
    max_range_m = tally.limits_m[1] if tally.limits_m else np.inf
    values: dict[str, Value] = {}
    if static:
        repeats = tally.settings.min_repeats
        values |= bearing_distances(real.bearing, simulated.bearing, repeats, max_range_m)
    values |= contest.hit_miss.values() | contest.beam_error.values() | contest.sweep_distance.values()
    values |= cloud_distances(real.cloud, simulated.cloud, nearest)
    values["range_histogram_match_m"] = Value(
        histogram_match_m(real.ranges, simulated.ranges, max_range_m), tally.n_beams
    )
    values |= contest.likelihood.values()
    values |= {key: Value(number) for key, number in size.items()}
    histograms = Histograms(
        real.ranges,
        simulated.ranges,
        contest.likelihood if contest.likelihood.n else None,
        real.bearing if static else None,
        simulated.bearing if static else None,
    )
    return Scores(
        name=name,
        values=values,
        histograms=histograms,
        n_beams=tally.n_beams,
        n_sweeps=tally.n_sweeps,
        static=static,
        settings=tally.settings.model_dump(),
        notes=tuple(_notes(tally, contest, static, max_range_m)),
    )


def _notes(tally: Tally, contest: Contest, static: bool, max_range_m: float) -> list[str]:
    notes: list[str] = []
    if static:
        repeats = _repeats(tally.real.bearing)
        if repeats < _FEW_REPEATS:
            notes.append(
                f"a direction has {repeats:.0f} beams on average: two samples of one distribution would not match "
                "either, so compare the Bhattacharyya distances with each other, not with 0"
            )
    left_out = contest.sweep_distance.n_left_out
    if left_out:
        notes.append(f"{left_out} of {tally.n_sweeps} sweeps have no distance: nothing returned, in reality or here")
    if tally.real.cloud.level:
        side_cm = tally.real.cloud.side_m * 100
        notes.append(f"clouds were thinned to one point per {side_cm:g} cm voxel, weighted by the points it stands for")
    share = tally.settings.outlier_share
    if contest.likelihood.n:
        notes.append(f"-log L has a floor: p = (1 - {share:g}) p_world + {share:g} u, u uniform over the range limits")
    elif not np.isfinite(max_range_m):
        notes.append("no likelihood: the real log has no max_range_m, so the density floor has no scale; set it")
    else:
        notes.append("no likelihood: the simulation is a log, or a world without log_likelihood()")
    return notes


def _repeats(bearing: BearingHistogram) -> float:
    keys, counts = bearing.entries()
    return float(counts.sum()) / max(len(np.unique(split(keys)[0])), 1)
