# SPDX-License-Identifier: Apache-2.0
"""Development paths (Tallavajhula 2018 §2.3.4): a program is tuned on each simulator by itself, unseen by reality.

A strategy stands for the developer. It is told a space and may try settings; each try gives J and the sums over all
scenes of the simulator. Afterwards the same settings are run in reality: J there is what the developer would have got.

    def my_strategy(space, start, trials):       # trials.try_setting(setting) -> Trial; ends by itself
        ...

Two come with Hedgerow. random: settings are drawn, the best so far counts. coordinate: one parameter after the other is
varied from the best so far, five values each.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import App, Objective
from hedgerow.apps.space import Setting, Space
from hedgerow.errors import InputError
from hedgerow.risk.objectives import pooled
from hedgerow.risk.run import evaluate
from hedgerow.risk.score import choose_objective
from hedgerow.risk.sources import Source
from hedgerow.risk.table import RiskTable, Runs

_VALUES = 5


@dataclass(frozen=True)
class Trial:
    """What the developer sees of one setting."""

    setting: Setting
    j: float
    """NaN if too many of its runs failed."""
    sums: dict[str, float]
    """Over all scenes."""


class NoMoreTrialsError(Exception):
    """The steps of a development are used up; strategies let it pass."""


@dataclass
class Trials:
    """What a strategy may do, and what it did."""

    run: Callable[[Setting], Trial]
    most: int
    rng: np.random.Generator
    done: list[Trial] = field(default_factory=list[Trial])

    def try_setting(self, setting: Mapping[str, Any]) -> Trial:
        """Run a setting on all scenes of the simulator.

        Raises:
            NoMoreTrialsError: there were as many as there may be.
        """
        if len(self.done) >= self.most:
            raise NoMoreTrialsError
        self.done.append(self.run(dict(setting)))
        return self.done[-1]

    @property
    def best(self) -> Trial:
        """The lowest J so far; the first if none has any."""
        known = [each for each in self.done if np.isfinite(each.j)]
        return min(known, key=lambda each: each.j) if known else self.done[0]


Strategy = Callable[[Space, Setting, Trials], object]


def random_search(space: Space, start: Setting, trials: Trials) -> None:
    """Draw settings at random."""
    trials.try_setting(start)
    while True:
        trials.try_setting(space.at(trials.rng.random(len(space.parameters))))


def coordinate_search(space: Space, start: Setting, trials: Trials) -> None:
    """Vary one parameter after the other from the best so far, five values each, until all steps are used up."""
    trials.try_setting(start)
    while space.parameters:
        for name, parameter in space.parameters.items():
            values = [parameter.at((row + 0.5) / _VALUES) for row in range(_VALUES)]
            for value in dict.fromkeys(values):
                best = trials.best.setting
                if value != best[name]:
                    trials.try_setting({**best, name: value})


STRATEGIES: dict[str, Strategy] = {"random": random_search, "coordinate": coordinate_search}


def open_strategy(given: str) -> Strategy:
    """Return a strategy by its name, or as `module:name`. Raises InputError if there is none."""
    if given in STRATEGIES:
        return STRATEGIES[given]
    if ":" not in given:
        raise InputError("develop", f"expected one of {', '.join(STRATEGIES)}, or module:name, found {given!r}")
    try:
        return resolve_name(given)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError("develop", f"{given} cannot be imported: {error}") from None


@dataclass(frozen=True)
class Path:
    """A development on one simulator, and what it would have been worth in reality."""

    source: str
    settings: list[Setting]
    simulated: NDArray[np.float64]
    """(steps,) J that the developer saw; NaN where the setting failed."""
    real: NDArray[np.float64]
    """(steps,) J of the same settings in reality."""
    sums: dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]
    """(steps,) sums over all scenes, simulated and real; for precision and recall."""

    def best_so_far(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (steps,) J simulated and J real of the setting that was best in simulation up to each step."""
        order = np.where(np.isfinite(self.simulated), self.simulated, np.inf)
        best = np.array([int(np.argmin(order[: step + 1])) for step in range(len(order))], dtype=np.intp)
        return self.simulated[best], self.real[best]


def develop(
    app: App,
    table: RiskTable,
    real: Source,
    simulator: Source,
    strategy: Strategy,
    *,
    name: str,
    steps: int = 30,
    start: Setting | None = None,
    objective: str | None = None,
    seed: int = 0,
    jobs: int = 1,
) -> Path:
    """Develop a program on one simulator, and run the settings in reality afterwards.

    Args:
        app: the program.
        table: where the runs go; what it has of this path is not run again.
        real, simulator: the sources.
        strategy: what to try next.
        name: of the strategy, by which the table knows the path.
        steps: how many settings are tried.
        start: values to start from. Default: the start of the space.
        objective: name of the objective that the strategy lowers.
        seed: of the strategy and of the simulation.
        jobs: number of processes.
    """
    _, wanted = choose_objective(app, objective)
    held = table.header.fixed
    free = Space({each: parameter for each, parameter in app.space.parameters.items() if each not in held})
    path = f"{name} on {simulator.name}"
    tried = table.settings.setdefault(path, [])
    known = list(tried)
    tried.clear()

    def run(setting: Setting) -> Trial:
        checked = app.space.check(setting) | held
        step = len(tried)
        if step < len(known) and known[step] != checked:
            table.runs.pop((path, simulator.name), None)  # another strategy by this name: what follows is another path
            table.runs.pop((path, real.name), None)
            known.clear()
        tried.append(checked)
        evaluate(app, table, [simulator], seeds=[seed], path=path, jobs=jobs)
        return _trial(table.of(simulator.name, path), wanted, checked, step)

    trials = Trials(run, steps, np.random.default_rng(seed))
    with suppress(NoMoreTrialsError):
        strategy(free, free.start(start), trials)
    evaluate(app, table, [real], path=path, jobs=jobs)
    return read_path(table, path, simulator.name, wanted)


def read_path(table: RiskTable, path: str, simulator: str, objective: Objective) -> Path:
    """Read a development path from a table."""
    n = len(table.settings[path])
    both = table.of(simulator, path), table.of(table.real, path)
    j = [pooled(each, objective)[:n] for each in both]
    names = both[0].sums.keys() & both[1].sums.keys()
    sums = {name: (both[0].sums[name].sum(axis=(0, 2))[:n], both[1].sums[name].sum(axis=(0, 2))[:n]) for name in names}
    return Path(simulator, table.settings[path], j[0], j[1], sums)


def paths_of(table: RiskTable, objective: Objective) -> list[Path]:
    """Return all development paths of a table whose steps were run in reality, too."""
    found: list[Path] = []
    for path in table.settings:
        for source in table.names("simulated"):
            if path.endswith(f" on {source}") and (path, source) in table.runs and (path, table.real) in table.runs:
                found.append(read_path(table, path, source, objective))
    return found


def _trial(runs: Runs, objective: Objective, setting: Setting, step: int) -> Trial:
    sums = {name: float(values[:, step].sum()) for name, values in runs.sums.items()}
    return Trial(setting, float(pooled(runs, objective)[step]), sums)
