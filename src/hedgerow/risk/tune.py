# SPDX-License-Identifier: Apache-2.0
"""Parameters of a learner tuned on application risk, started from the best by likelihood (Tallavajhula 2018 §5.2.3).

The sweeps of a log are dealt out: two of four to learn from, one to choose by, one to judge by. Each varied parameter
takes five values between its bounds, evenly in its logarithm. One pass over the parameters lowers the negative
log-likelihood of the choosing sweeps; from there a second pass lowers the risk of a program on them. Both winners are
then judged in pairs, on the sweeps that nothing was chosen by and under settings that nothing was chosen by.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.apps.app import App
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError
from hedgerow.io.source import LogSource
from hedgerow.metrics import compare
from hedgerow.models import learn
from hedgerow.risk.bootstrap import losses, mean_loss
from hedgerow.risk.measure import measure, open_table
from hedgerow.risk.objectives import pair
from hedgerow.risk.run import evaluate
from hedgerow.risk.score import RiskScores, choose_objective, score
from hedgerow.risk.sources import Drive, RecordedSource, SimulatedSource
from hedgerow.risk.table import SourceNote
from hedgerow.world import LearnedWorld

VALUES = 5
_LIKELIHOOD = "nll"
Chosen = dict[str, float | int]


@dataclass(frozen=True)
class Step:
    """One candidate that was looked at."""

    parameters: Chosen
    by: str
    """likelihood or risk."""
    value: float
    """Mean negative log-likelihood of the beams, or risk; low is good."""


@dataclass(frozen=True)
class Tuned:
    """What tuning found."""

    by_likelihood: Chosen
    by_risk: Chosen
    steps: list[Step]
    test: RiskScores
    """Both on sweeps that nothing was chosen by, as "likelihood" and "risk"; one alone if they are the same."""


def tune_model(
    recording: LogSource,
    model: str,
    vary: Mapping[str, tuple[float, float]],
    app: App,
    *,
    fixed: Mapping[str, Any] | None = None,
    objective: str | None = None,
    scene_sweeps: int = 5,
    settings: int = 24,
    seed: int = 0,
    jobs: int = 1,
    say: Callable[[str], object] = lambda _: None,
) -> Tuned:
    """Tune parameters of a model on the risk of a program.

    Args:
        recording: the log.
        model: name of the model.
        vary: bounds of the parameters that are varied, above 0; whole numbers stay whole.
        app: the program.
        fixed: other parameters of the model.
        objective: which of the program's objectives.
        scene_sweeps: sweeps of a scene.
        settings: settings of the program that are drawn.
        seed: of the settings and of the simulation.
        jobs: number of processes.
        say: called with a line for each candidate.

    Raises:
        InputError: too few sweeps, or a wrong parameter.
    """
    search = _Search(
        recording, model, dict(fixed or {}), app, objective, scene_sweeps, settings, require_seed(seed), jobs
    )
    grids = {name: _values(name, bounds) for name, bounds in vary.items()}
    if not grids:
        raise InputError("vary", "names no parameter; give one with its bounds")
    steps: list[Step] = []

    def best_by(by: str, value: Callable[[Chosen], float], start: Chosen) -> Chosen:
        best, lowest = start, np.inf
        for name, values in grids.items():
            for each in values:
                tried = {**best, name: each}
                found = value(tried)
                steps.append(Step(tried, by, found))
                say(f"{by} {found:.4g} with {_text(tried)}")
                if found < lowest:
                    best, lowest = tried, found
        return best

    by_likelihood = best_by("likelihood", search.likelihood, {name: each[VALUES // 2] for name, each in grids.items()})
    by_risk = best_by("risk", search.risk, by_likelihood)
    return Tuned(by_likelihood, by_risk, steps, search.judge(by_likelihood, by_risk))


class _Search:
    """Learns candidates, each once, and measures them."""

    def __init__(
        self,
        recording: LogSource,
        model: str,
        fixed: dict[str, Any],
        app: App,
        objective: str | None,
        scene_sweeps: int,
        settings: int,
        seed: int,
        jobs: int,
    ) -> None:
        numbers = recording.sweeps.tolist()
        if len(numbers) < 8 * scene_sweeps:
            needed = f"two scenes to choose by and two to judge by take {8 * scene_sweeps}"
            raise InputError("log", f"has {len(numbers)} sweeps; {needed}")
        self._training = recording.read(numbers[0::2])
        self._choosing = recording.read(numbers[1::4])
        needs_ground = bool(getattr(app, "needs_ground", True))
        self._drive, self._test = (
            Drive(recording, scene_sweeps, ground=needs_ground, sweeps=numbers[first::4]) for first in (1, 3)
        )
        self.app, self._model, self._fixed = app, model, fixed
        self._objective, self._settings, self._seed, self._jobs = objective, settings, seed, jobs
        self._worlds: dict[str, LearnedWorld] = {}
        real = RecordedSource(self._drive)
        self._table = open_table(app, [real], settings=settings, seed=seed)
        evaluate(app, self._table, [real], jobs=jobs)

    def world(self, chosen: Chosen) -> LearnedWorld:
        key = _text(chosen)
        if key not in self._worlds:
            parameters: dict[str, Any] = self._fixed | chosen
            self._worlds[key] = learn(self._training, self._model, **parameters)
        return self._worlds[key]

    def likelihood(self, chosen: Chosen) -> float:
        value = compare(self._choosing, self.world(chosen), seed=self._seed)[_LIKELIHOOD]
        return np.inf if value is None else float(value)

    def risk(self, chosen: Chosen) -> float:
        source = SimulatedSource(_text(chosen), self._drive, self.world(chosen))
        self._table.header.sources[source.name] = SourceNote.of(source)
        evaluate(self.app, self._table, [source], seeds=[self._seed], jobs=self._jobs)
        _, wanted = choose_objective(self.app, self._objective)
        real = self._table.of(self._table.real)
        value = float(mean_loss(losses(pair(real, self._table.of(source.name), wanted))))
        return value if np.isfinite(value) else np.inf

    def judge(self, by_likelihood: Chosen, by_risk: Chosen) -> RiskScores:
        named = {"likelihood": by_likelihood} | ({} if by_risk == by_likelihood else {"risk": by_risk})
        simulated = [SimulatedSource(name, self._test, self.world(chosen)) for name, chosen in named.items()]
        seeds = [self._seed + 1, self._seed + 2]
        table = measure(
            self.app,
            [RecordedSource(self._test), *simulated],
            settings=self._settings,
            seed=self._seed + 1,  # other settings than those that it was chosen by
            seeds=seeds,
            jobs=self._jobs,
        )
        return score(table, self.app, self._objective)


def _values(name: str, bounds: tuple[float, float]) -> list[float | int]:
    low, high = bounds
    if not 0 < low < high < np.inf:
        raise InputError(name, f"expected bounds 0 < LOW < HIGH, found {low:g} and {high:g}")
    values = np.geomspace(low, high, VALUES)
    if isinstance(low, int) and isinstance(high, int):
        return sorted({round(each) for each in values.tolist()})
    return [float(f"{each:.4g}") for each in values.tolist()]


def _text(chosen: Chosen) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in sorted(chosen.items()))
