# SPDX-License-Identifier: Apache-2.0
"""Parameters of a learner, chosen by how well its world predicts sweeps that it did not learn from.

A slice of the training log is dealt out: of three sweeps two are learned from and one is scored (Tallavajhula 2018
§4.4.1 learns and scores on the same 10 s). Differential evolution (Storn and Price 1997) searches between the bounds,
evenly in the logarithm where they are above 0; the first generation holds the values that the model has anyway, so what
is found is no worse than these on the scored sweeps. The log that a world is judged by later has no part in it.

    found = tune_by_score(open_log("train.parquet"), "topdown", {"split_points": (20, 400)}, "observation")
    world = learn("train.parquet", "topdown", **found.best.parameters)

Three objectives, all low is good:

- observation: mean error of the packets [m] + 2 (1 - F1 of hits), that of Tallavajhula 2018;
- crps: mean CRPS of the range forecast [m] (crps.py);
- likelihood: mean negative log-likelihood of the beams (likelihood.py).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow import __version__
from hedgerow.base.arguments import as_whole
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError, one_line, shown
from hedgerow.io.source import LogSource
from hedgerow.log import Log
from hedgerow.metrics.candidates import Candidate, CandidateTable, Chosen
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.crps import crps_of_world
from hedgerow.metrics.hit_miss import HitMiss
from hedgerow.metrics.likelihood import Likelihood
from hedgerow.metrics.observation import ObservationError
from hedgerow.metrics.pair import RealSweep, SimulatedSweep, SweepPair
from hedgerow.models.registry import MODELS, learn
from hedgerow.simulate import replay
from hedgerow.world import LearnedWorld

Score = Literal["observation", "crps", "likelihood"]
SCORES: tuple[Score, ...] = get_args(Score)
SLICE_S = 10.0
"""Seconds of the slice (Tallavajhula 2018)."""
DRAWS = 4
"""Of each beam, for CRPS, which is unbiased for any number."""
_OF_THREE = 2  # the third of three sweeps is scored
_HELD_BEAMS = 8_000_000  # about 70 bytes each; a longer slice is read anew for each candidate
_DIGITS = 4  # of a value: what is written down is what was scored


@dataclass(frozen=True)
class Tuned:
    """What tuning found."""

    best: Candidate
    start: Candidate | None
    """The model's own values, where they lie between the bounds."""
    candidates: list[Candidate]
    n_learned: int
    """Sweeps that were learned from."""
    n_scored: int
    """Sweeps that were scored."""


def tune_by_score(
    recording: LogSource,
    model: str,
    vary: Mapping[str, tuple[float, float]],
    objective: Score,
    *,
    fixed: Mapping[str, Any] | None = None,
    from_s: float = 0.0,
    to_s: float | None = None,
    generations: int = 8,
    seed: int = 0,
    table: str | Path | None = None,
    say: Callable[[Candidate, int], object] | None = None,
) -> Tuned:
    """Tune parameters of a model on a slice of its training log.

    Args:
        recording: the training log.
        model: name of the model.
        vary: bounds of the varied parameters; two whole numbers make whole numbers. GROUP.NAME is one of a group.
        objective: observation, crps or likelihood.
        fixed: other parameters of the model.
        from_s: where the slice begins, from the start of the log [s].
        to_s: where it ends. Default: 10 s later.
        generations: of the search; 4 candidates for each parameter in each, and at least 5.
        seed: of search and simulation; same seed, same candidates.
        table: a .parquet or .csv file that keeps every candidate; those that it holds are not computed again.
        say: called with each candidate and its number.

    Raises:
        InputError: too few sweeps, a wrong parameter or bound, or no candidate could be learned.
        FileError: the table cannot be read or written.
    """
    if objective not in SCORES:
        raise InputError("objective", f"expected one of {', '.join(SCORES)}, found {shown(objective)}")
    held = dict(fixed or {})
    ranges = [_Range.parse(name, bounds) for name, bounds in vary.items()]
    _require_model(model, ranges, held)
    as_whole("generations", generations, 0, 10_000)
    part = _Slice(recording, from_s, from_s + SLICE_S if to_s is None else to_s)
    scorer = _Scorer(part, model, held, objective, require_seed(seed))
    kept = CandidateTable([each.name for each in ranges], scorer.plan(ranges), None if table is None else Path(table))

    def loss(places: NDArray[np.float64]) -> float:
        chosen = {each.name: each.value(place) for each, place in zip(ranges, places.tolist(), strict=True)}
        known = kept.get(chosen)
        if known is None:
            known = scorer.candidate(chosen)
            kept.add(known)
            if say is not None:
                say(known, len(kept.rows))
        return known.loss

    own = _own_values(model, ranges, held)
    _search(loss, _first_generation(ranges, own, seed), generations, seed)
    candidates = list(kept.rows.values())
    if kept.best is None:
        raise InputError("vary", f"no candidate could be learned; the first failed: {candidates[0].failure}")
    return Tuned(kept.best, None if own is None else kept.get(own), candidates, len(part.learned), len(part.scored))


@dataclass(frozen=True)
class _Range:
    """Bounds of a varied parameter, and the way from 0 to 1 between them."""

    name: str
    low: float
    high: float
    is_whole: bool

    @classmethod
    def parse(cls, name: str, bounds: tuple[float, float]) -> "_Range":
        low, high = bounds
        if not -math.inf < low < high < math.inf:
            raise InputError(name, f"expected bounds LOW below HIGH, found {low:g} and {high:g}")
        return cls(name, low, high, isinstance(low, int) and isinstance(high, int))

    def value(self, place: float) -> float | int:
        if self.low > 0:
            value = math.exp(math.log(self.low) + place * math.log(self.high / self.low))
        else:
            value = self.low + place * (self.high - self.low)
        rounded = round(value) if self.is_whole else float(f"{value:.{_DIGITS}g}")
        return min(max(rounded, self.low), self.high)

    def place(self, value: float) -> float:
        if self.low > 0:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def _require_model(model: str, ranges: Sequence[_Range], fixed: Mapping[str, Any]) -> None:
    """Refuse parameters that the model has not, and bounds that it would not take."""
    if model not in MODELS:
        raise InputError("model", f"there is no {shown(model)}; there are {', '.join(MODELS)}")
    if not ranges:
        raise InputError("vary", "names no parameter; give one with its bounds")
    for each in ranges:
        for end in (each.low, each.high):
            MODELS[model].parse({**fixed, each.name: end})


def _own_values(model: str, ranges: Sequence[_Range], fixed: Mapping[str, Any]) -> Chosen | None:
    """Return what the model has if nothing is varied; None if one of these is no number, or out of bounds."""
    own: Chosen = {}
    parameters = MODELS[model].parse(dict(fixed))
    for each in ranges:
        value: object = parameters
        for name in each.name.split("."):
            value = getattr(value, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not each.low <= value <= each.high:
            return None
        own[each.name] = value
    return own


def _first_generation(ranges: Sequence[_Range], own: Chosen | None, seed: int) -> NDArray[np.float64]:
    """Return (P, d) places, evenly spread, the first of them the model's own values."""
    from scipy.stats import qmc

    places = qmc.LatinHypercube(len(ranges), seed=seed).random(max(5, 4 * len(ranges)))
    if own is not None:
        places[0] = [each.place(own[each.name]) for each in ranges]
    return places


def _search(
    loss: Callable[[NDArray[np.float64]], float], first: NDArray[np.float64], generations: int, seed: int
) -> None:
    from scipy.optimize import Bounds, differential_evolution

    n = first.shape[1]
    with np.errstate(invalid="ignore"):  # the loss of what cannot be learned is inf
        differential_evolution(
            loss,
            Bounds(np.zeros(n), np.ones(n)),
            init=first,
            maxiter=generations,
            tol=1e-3,
            polish=False,  # there is no gradient to follow
            seed=np.random.default_rng(seed),
        )


class _Slice:
    """Some seconds of a log, dealt out to be learned from and to be scored."""

    def __init__(self, recording: LogSource, from_s: float, to_s: float) -> None:
        if not 0 <= from_s < to_s < math.inf:
            raise InputError("from_s, to_s", f"expected 0 <= from_s < to_s, found {from_s:g} and {to_s:g}")
        self._recording = recording
        self._held: dict[int, Log] = {}
        self.path = str(getattr(recording, "path", ""))
        self.n_beams = n_held = 0
        numbers: list[int] = []
        begin_ns: int | None = None
        for number, log in recording.iter_sweeps():
            at_ns = int(log.beams.time_ns.min())
            begin_ns = at_ns if begin_ns is None else begin_ns
            at_s = (at_ns - begin_ns) / 1e9
            if at_s >= to_s:
                break
            if at_s < from_s:
                continue
            numbers.append(number)
            self.n_beams += len(log)
            if self.n_beams <= _HELD_BEAMS:
                self._held[number], n_held = log, n_held + 1
        if len(numbers) < 3:
            raise InputError("log", f"has {len(numbers)} sweeps from {from_s:g} to {to_s:g} s; tuning takes 3 or more")
        if n_held < len(numbers):
            self._held.clear()
        self.scored = numbers[_OF_THREE::3]
        self.learned = [number for row, number in enumerate(numbers) if row % 3 != _OF_THREE]

    def logs(self, numbers: Sequence[int]) -> Iterator[Log]:
        """Give sweeps of the slice."""
        if self._held:
            yield from (self._held[number] for number in numbers)
        else:
            yield from (log for _, log in self._recording.iter_sweeps(np.array(numbers)))


class _Scorer:
    """Learns candidates and scores them."""

    def __init__(self, part: _Slice, model: str, fixed: dict[str, Any], objective: Score, seed: int) -> None:
        self._part, self._model, self._fixed, self._seed = part, model, fixed, seed
        self._objective: Score = objective

    def plan(self, ranges: Sequence[_Range]) -> dict[str, Any]:
        part = self._part
        return {
            "hedgerow": __version__,
            "log": [Path(part.path).name, part.n_beams, part.learned, part.scored],
            "model": [self._model, {name: str(value) for name, value in self._fixed.items()}],
            "varied": [[each.name, each.is_whole] for each in ranges],
            "objective": self._objective,
            "seed": self._seed,
        }

    def candidate(self, chosen: Chosen) -> Candidate:
        begin_s = perf_counter()
        try:
            parameters: dict[str, Any] = {**self._fixed, **chosen}
            world = learn(lambda: self._part.logs(self._part.learned), self._model, **parameters)
        except InputError as error:
            return Candidate(chosen, math.inf, seconds=perf_counter() - begin_s, failure=one_line(str(error), 200))
        scores = self._scores(world)
        loss = _loss(self._objective, scores)
        return Candidate(chosen, loss, scores, world.size().elements, round(perf_counter() - begin_s, 3))

    def _scores(self, world: LearnedWorld) -> dict[str, float]:
        sweeps = self._part.logs(self._part.scored)
        if self._objective == "crps":
            found = [crps_of_world(world, sweep, DRAWS, self._seed) for sweep in sweeps]
            return {"crps_m": float(np.concatenate(found).mean())}
        settings = CompareSettings()
        if self._objective == "likelihood":
            sums = Likelihood(settings)
            for sweep in sweeps:
                sums.add(
                    SweepPair(RealSweep(sweep), SimulatedSweep(sweep.returns.first_m, world.log_likelihood(sweep)))
                )
            return _known(sums.values(), ("nll", "floored"))
        errors, hits = ObservationError(settings), HitMiss(settings)
        for sweep in sweeps:
            simulated = replay(world, sweep, seed=self._seed).returns.first_m
            pair = SweepPair(RealSweep(sweep), SimulatedSweep(simulated, None))
            errors.add(pair)
            hits.add(pair)
        return _known(errors.values() | hits.values(), ("observation_error_m", "precision", "recall", "f1"))


def _known(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, float]:
    return {name: float(values[name].value) for name in names if values[name].value is not None}


def _loss(objective: Score, scores: Mapping[str, float]) -> float:
    if objective == "observation":
        return scores.get("observation_error_m", math.inf) + 2 * (1 - scores.get("f1", 0.0))
    return scores["crps_m" if objective == "crps" else "nll"]
