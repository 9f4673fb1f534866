# SPDX-License-Identifier: Apache-2.0
"""compare: how far simulations are from a real log, by the metrics of docs/models.md §24 to §28.

    scores = hr.compare(real, world)                            # fires the real log's own beams
    table = hr.compare(real, {"voxel": voxel, "hybrid": hybrid}).table()

One run over the real log, sweep by sweep: every family of metrics (catalogue.py) adds each sweep to its sums, and gives
its scores at the end. Memory holds one sweep, histograms, and the points of the real log and of every simulation: up
to `max_cloud_points` of each (8 million, 256 MB), thinned beyond that. Thinning a cloud, or indexing it at the
end, takes as much again. A lower `max_cloud_points` takes less, and thins more.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import tee
from typing import Any, Literal, Self, TypeVar, cast, overload

from hedgerow.base.progress import Progress, counted
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics.bearing import BearingDistances
from hedgerow.metrics.catalogue import FAMILIES
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.floors import floor_columns, with_floors
from hedgerow.metrics.forecast_scores import ForecastScores
from hedgerow.metrics.inputs import Again, HasSweeps, Recording, Simulated, simulate_sweeps, size_of, sweeps_of
from hedgerow.metrics.intensity import IntensityScores
from hedgerow.metrics.label_scores import LabelScores
from hedgerow.metrics.learned_cloud import LearnedCloud
from hedgerow.metrics.likelihood import Likelihood
from hedgerow.metrics.matching import Partners
from hedgerow.metrics.metric import CLIMATOLOGY, REALITY_AGAIN, Sums, SumsOfPairs, Value
from hedgerow.metrics.near_learned import NearLearned
from hedgerow.metrics.pair import RealSweep, SimulatedSweep, SweepPair
from hedgerow.metrics.range_histogram import RangeHistograms
from hedgerow.metrics.scores import Comparison, Histograms, Scores
from hedgerow.metrics.shares import Shares
from hedgerow.parallel import log_parts
from hedgerow.world import World

_ALONE = "simulated"  # name of a simulation that comes without one
_FITTED = (
    "fitted to the judged log itself, ring by ring: a world with worse proper scores says less of this place than "
    "knowing nothing of it"
)
_S = TypeVar("_S")


@overload
def compare(
    real: Recording,
    simulated: Mapping[str, Simulated],
    *,
    floors: bool = False,
    again: Recording | World | None = None,
    learned: Recording | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison: ...
@overload
def compare(
    real: Recording,
    simulated: Simulated,
    *,
    floors: Literal[True],
    again: Recording | World | None = None,
    learned: Recording | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison: ...
@overload
def compare(
    real: Recording,
    simulated: Simulated,
    *,
    floors: Literal[False] = False,
    again: None = None,
    learned: Recording | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Scores: ...
def compare(
    real: Recording,
    simulated: Simulated | Mapping[str, Simulated],
    *,
    floors: bool = False,
    again: Recording | World | None = None,
    learned: Recording | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Scores | Comparison:
    """Measure how far one or several simulations are from a real log.

    Args:
        real: a log in memory or on the disk (`open_log`), or a stream of logs of whole sweeps, or a
            function that gives one.
        simulated: the same beams simulated, in the same order, as a log, file or stream; or a log or file of other
            beams, which are then matched (matching.py); or a world, which the real log's beams are fired at; or several
            of these by name.
        floors: whether to put two columns beside them: "climatology", what can be said without a world, and "reality
            again", if there is one (floors.py). The real log is then read twice.
        again: another recording of the same place, or the scene that the real log was recorded in, for the column
            "reality again". Default, with floors: the log's own next sweep, where the sensor stands.
        learned: the log that the worlds were learned from, for scores by distance to the nearest learned return
            (near_learned.py).
        seed: for firing.
        progress: called after each sweep with the number of real beams done.
        settings: see `CompareSettings`.

    Returns:
        Scores of one simulation, or a Comparison of those that came by name or with floors. First returns are compared,
        within the range limits of the real log.

    Raises:
        InputError: the real log is empty or nothing in it returned, a simulated log has other beams, or a setting is
            unknown or out of bounds.
    """
    checked = CompareSettings.parse(settings, "compare")
    is_alone = not isinstance(simulated, Mapping)
    named = {_ALONE: simulated} if is_alone else dict(cast("Mapping[str, Simulated]", simulated))
    _require_names(named)
    _require_kinds(real, named)
    if floors or again is not None:
        beside = floor_columns(real, checked, again)
        named = with_floors(named, beside if floors else {REALITY_AGAIN: beside[REALITY_AGAIN]})
    cloud = None if learned is None else LearnedCloud.of(learned, checked)
    sums = accumulate(real, named, checked, seed, progress, cloud)
    scores = score(sums, {name: size_of(each) for name, each in named.items()})
    return scores[_ALONE] if is_alone and len(scores) == 1 else scores


class ComparisonSums:
    """What the scores are computed from: the sums of every family of metrics, over a real log and its simulations."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing; `names` are those of the simulations."""
        self.settings = settings
        self.names = tuple(names)
        self.n_beams = self.n_sweeps = self.n_returned = 0
        self.limits_m: tuple[float, float] | None = None
        self.sums: tuple[Any, ...] = tuple(family.start(settings, self.names) for family in FAMILIES)
        """`Sums`, one for each family."""

    def add(self, sweep: Log, simulated: Mapping[str, SimulatedSweep], learned: LearnedCloud | None = None) -> None:
        """Add one sweep with what all simulations answer to it, and what worlds were learned from, if known.

        Raises:
            InputError: its range limits differ from those of earlier sweeps.
        """
        self._require_limits((sweep.min_range_m, sweep.max_range_m))
        if learned is not None:
            learned.require_same_map(sweep)
        real = RealSweep(sweep, None if learned is None else learned.nearest)
        self.n_beams += len(sweep)
        self.n_returned += int(real.hit.sum())
        self.n_sweeps += 1
        pairs = {name: SweepPair(real, simulated[name]) for name in self.names}
        for each in self.sums:
            each.add(real, pairs)

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log, compared with the same simulations under the same settings."""
        if other.limits_m:
            self._require_limits(other.limits_m)
        self.n_beams += other.n_beams
        self.n_returned += other.n_returned
        self.n_sweeps += other.n_sweeps
        for ours, theirs in zip(self.sums, other.sums, strict=True):
            ours.merge(theirs)

    def of(self, kind: type[_S]) -> _S:
        """Return the sums of one family, by its class."""
        return next(each for each in self.sums if isinstance(each, kind))

    def of_pair(self, kind: type[_S], name: str) -> _S:
        """Return the sums of a family that looks at one simulation at a time."""
        pairs = (each.by_name[name] for each in self.sums if isinstance(each, SumsOfPairs))
        return next(each for each in pairs if isinstance(each, kind))

    def _require_limits(self, limits_m: tuple[float, float]) -> None:
        if self.limits_m is None:
            self.limits_m = limits_m
        if limits_m != self.limits_m:
            raise InputError("real", f"range limits change from {self.limits_m} to {limits_m} m; compare them apart")


def accumulate(
    real: Recording,
    simulated: Mapping[str, Simulated],
    settings: CompareSettings,
    seed: int = 0,
    progress: Progress | None = None,
    learned: LearnedCloud | None = None,
) -> ComparisonSums:
    """Accumulate what the scores of a log, or of some sweeps of it, are computed from; sums merge, `score` scores them.

    The arguments are those of `compare`.
    """
    _require_kinds(real, simulated)
    result = ComparisonSums(settings, simulated)
    sweeps, *copies = tee(sweeps_of("real", real), 1 + len(simulated))
    answers = {
        name: simulate_sweeps(name, source, copy, seed, settings)
        for (name, source), copy in zip(simulated.items(), copies, strict=True)
    }
    part = ComparisonSums(settings, simulated)
    for sweep in counted(sweeps, progress):
        # Sums of floats depend on their order: part by part, as workers do it (in_parts.py), they are the same.
        if part.n_sweeps and part.n_beams + len(sweep) > log_parts.BEAMS_PER_PART:
            result.merge(part)
            part = ComparisonSums(settings, simulated)
        part.add(sweep, {name: next(each) for name, each in answers.items()}, learned)
    for each in answers.values():
        _require_end(each)
    if part.n_sweeps:
        result.merge(part)
    return result


def score(sums: ComparisonSums, sizes: Mapping[str, Mapping[str, float]]) -> Comparison:
    """Score every simulation.

    Args:
        sums: of the whole log.
        sizes: elements, parameters and bytes of those simulations that know them, by name.

    Raises:
        InputError: the real log has no beams, or none of them returned, or a simulated log is nowhere near it.
    """
    if sums.n_beams == 0:
        raise InputError("real", "the log has no beams; there is nothing to compare")
    if sums.n_returned == 0:
        raise InputError("real", f"none of its {sums.n_beams} beams returned; there is nothing to compare")
    for name in sums.names:
        sums.of_pair(Partners, name).require_some(name)
    values: dict[str, dict[str, Value]] = {name: {} for name in sums.names}
    notes: dict[str, list[str]] = {name: [] for name in sums.names}
    for family in cast("tuple[Sums, ...]", sums.sums):
        for name, found in family.values().items():
            values[name] |= found
        for name, found in family.notes().items():
            notes[name] += found
    if CLIMATOLOGY in notes:
        notes[CLIMATOLOGY].append(_FITTED)
    static = sums.of(BearingDistances).is_static()
    return Comparison(
        {
            name: Scores(
                name=name,
                values=values[name] | {key: Value(number) for key, number in sizes.get(name, {}).items()},
                histograms=_histograms(sums, name, static),
                n_beams=sums.n_beams,
                n_sweeps=sums.n_sweeps,
                static=static,
                settings=sums.settings.model_dump(),
                notes=tuple(notes[name]),
            )
            for name in sums.names
        }
    )


def _histograms(sums: ComparisonSums, name: str, static: bool) -> Histograms:
    ranges, bearing = sums.of(RangeHistograms), sums.of(BearingDistances)
    likelihood, forecast = sums.of_pair(Likelihood, name), sums.of_pair(ForecastScores, name)
    shares, intensity = sums.of(Shares), sums.of_pair(IntensityScores, name)
    labels, learned = sums.of_pair(LabelScores, name), sums.of_pair(NearLearned, name)
    return Histograms(
        ranges.real,
        ranges.simulated[name],
        likelihood if likelihood.n else None,
        bearing.real if static else None,
        bearing.simulated[name] if static else None,
        forecast if forecast.n else None,
        shares.real,
        shares.simulated[name],
        intensity if intensity.is_known else None,
        labels if labels.is_known else None,
        learned if learned.is_known else None,
    )


def _require_end(answers: Iterator[object]) -> None:
    # With the real sweeps used up there is no answer left; this lets a simulation that goes on say so.
    next(answers, None)


def _require_names(named: Mapping[str, Simulated]) -> None:
    if not named:
        raise InputError("simulated", "names no simulation; give at least one")
    if "real" in named:
        raise InputError("simulated", "'real' is what the real log is called in tables and plots; choose another name")


def _require_kinds(real: Recording, simulated: Mapping[str, Simulated]) -> None:
    if isinstance(real, World):
        raise InputError("real", "is a world; the first argument of compare is the real log")
    for name, source in simulated.items():
        given = cast("object", source)
        if isinstance(given, str) or not (callable(given) or isinstance(given, World | HasSweeps | Iterable | Again)):
            raise InputError(name, f"expected a log, logs or a world with fire(), found {type(source).__name__}")
    if isinstance(real, Log) and len(real) == 0:
        raise InputError("real", "the log has no beams; there is nothing to compare")
