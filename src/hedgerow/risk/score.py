# SPDX-License-Identifier: Apache-2.0
"""What a table of runs says about each simulator: risk, floor, regret, rank agreement, failures.

Risk (Tallavajhula 2018 eq. 2.5) is the mean over settings of |J(real) - J(simulated)|, J being computed over all
scenes. A mean of absolute values is never 0, so three more numbers stand beside it that show how much is noise: the
same mean for reality against itself, for the simulator against itself under another seed, and the interval.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import App, Objective
from hedgerow.apps.space import Setting
from hedgerow.base.intervals import REPLICATES, Interval, interval
from hedgerow.errors import InputError, shown
from hedgerow.risk.bootstrap import biases, losses, mean_loss, resample
from hedgerow.risk.objectives import Pair, alone, pair, pooled
from hedgerow.risk.table import DRAWN, RiskTable, Runs


@dataclass(frozen=True)
class Floor:
    """The risk of something against itself: what noise alone gives."""

    value: float
    how: str
    """What was compared with what."""


@dataclass(frozen=True)
class RiskScore:
    """One simulator against reality."""

    risk: float
    interval: Interval | None
    """95 %; None with fewer than two scenes or settings."""
    median_loss: float
    loss_90: float
    """90 % of the settings have no larger loss."""
    largest_loss: float
    bias: float
    """Mean of J simulated - J real; below 0 the simulator is optimistic."""
    bias_interval: Interval | None
    floor: Floor | None
    """The simulator against itself under another seed; None if it ran under one."""
    best: Setting | None
    """The setting that is best in simulation."""
    loss_at_best: float
    """|J real - J simulated| there (Tallavajhula 2018 Fig. 2.8)."""
    regret: float
    """J real there, less the best J real of all settings."""
    rank_agreement: float
    """Spearman's correlation of J real and J simulated over the settings; NaN if one of them is constant."""
    failures: float
    """Share of the simulated runs that failed."""
    failure_kinds: dict[str, float]
    """Shares by kind."""
    n_settings: int
    """How many settings count: they ran well in both, on half of the scenes or more."""


@dataclass(frozen=True)
class Difference:
    """Two simulators by their risk, over the settings that count in both."""

    first: str
    second: str
    difference: float
    """Risk of the first less that of the second."""
    interval: Interval | None

    @property
    def decided(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and (self.interval[0] > 0 or self.interval[1] < 0)

    def words(self) -> str:
        """Say which is better, if that is decided."""
        low, high = (self.first, self.second) if self.difference <= 0 else (self.second, self.first)
        if self.interval is None:
            return f"{low} has a lower risk than {high}, but without an interval it is not decided"
        size = f"{self.first} less {self.second}: {self.difference:.3g}, 95 % interval {_span(self.interval)}"
        if self.decided:
            return f"{low} has a lower risk than {high}: decided ({size})"
        return f"{self.first} and {self.second}: not decided which has the lower risk ({size})"


@dataclass(frozen=True)
class RiskScores:
    """All simulators of a table."""

    app: str
    objective: str
    unit: str
    n_settings: int
    n_scenes: int
    seeds: list[int]
    floor: Floor | None
    """Reality against itself."""
    failures: float
    """Share of the real runs that failed."""
    failure_kinds: dict[str, float]
    scores: dict[str, RiskScore]
    differences: list[Difference] = field(default_factory=list[Difference])
    notes: list[str] = field(default_factory=list[str])

    def to_dict(self) -> dict[str, Any]:
        """Return every number, fit for JSON: NaN becomes None."""
        return _plain(asdict(self))


def score(
    table: RiskTable, app: App, objective: str | None = None, *, replicates: int = REPLICATES, seed: int = 0
) -> RiskScores:
    """Compute risk and what stands beside it.

    Args:
        table: the runs.
        app: the program that ran, for its objectives.
        objective: name of the objective. Default: the program's first.
        replicates: how often scenes and settings are drawn again.
        seed: for that.

    Raises:
        InputError: no such objective, or no simulator in the table.
    """
    name, wanted = choose_objective(app, objective)
    real = table.of(table.real)
    names = table.names("simulated")
    if not names:
        raise InputError("risk", "the table has no simulator; give worlds, scenes or logs beside the real log")
    pairs = {each: pair(real, table.of(each), wanted) for each in names}
    drawn = resample(pairs, replicates=replicates, seed=seed)
    n_scenes = len(real.scenes)
    n_least = min(n_scenes, len(table.settings[DRAWN]))
    scores: dict[str, RiskScore] = {}
    for each in names:
        scores[each] = _score(table, each, pairs[each], wanted, drawn.risk[each], drawn.bias[each], n_least)
    differences: list[Difference] = []
    for one, other in combinations(names, 2):
        value = float(mean_loss(losses(pairs[one]) - losses(pairs[other])))
        differences.append(Difference(one, other, value, interval(value, drawn.difference[one, other], n_least)))
    return RiskScores(
        app=table.header.app,
        objective=name,
        unit=wanted.unit,
        n_settings=len(table.settings[DRAWN]),
        n_scenes=n_scenes,
        seeds=sorted({seed for each in names for seed in table.of(each).seeds}),
        floor=real_floor(table, wanted),
        failures=failure_share(real),
        failure_kinds=failure_kinds(real),
        scores=scores,
        differences=differences,
        notes=_notes(table, n_scenes, scores),
    )


def choose_objective(app: App, name: str | None) -> tuple[str, Objective]:
    """Return the objective of that name, or the first. Raises InputError if there is no such."""
    chosen = name or next(iter(app.objectives))
    if chosen not in app.objectives:
        raise InputError("objective", f"expected one of {', '.join(app.objectives)}, found {shown(chosen)}")
    return chosen, app.objectives[chosen]


def _score(
    table: RiskTable,
    name: str,
    both: Pair,
    objective: Objective,
    risk: NDArray[np.float64],
    bias: NDArray[np.float64],
    n: int,
) -> RiskScore:
    loss, signed = losses(both), biases(both)
    counts = np.isfinite(loss)
    value, mean_bias = float(mean_loss(loss)), float(mean_loss(signed))
    quantiles = np.quantile(loss[counts], [0.5, 0.9, 1.0]) if counts.any() else np.full(3, np.nan)
    runs = table.of(name)
    real, simulated = _means(both)
    best = int(np.nanargmin(simulated)) if counts.any() else None
    return RiskScore(
        risk=value,
        interval=interval(value, risk, n, least=0.0),
        median_loss=float(quantiles[0]),
        loss_90=float(quantiles[1]),
        largest_loss=float(quantiles[2]),
        bias=mean_bias,
        bias_interval=interval(mean_bias, bias, n),
        floor=seed_floor(runs, objective),
        best=None if best is None else table.settings[DRAWN][best],
        loss_at_best=np.nan if best is None else float(loss[best]),
        regret=np.nan if best is None else float(real[best] - np.nanmin(real)),
        rank_agreement=_spearman(real[counts], simulated[counts]),
        failures=failure_share(runs),
        failure_kinds=failure_kinds(runs),
        n_settings=int(counts.sum()),
    )


def _means(both: Pair) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return J of reality and of the simulator, (settings,), mean over the seeds."""
    real, simulated = both.both()
    known = np.isfinite(real) & np.isfinite(simulated)
    n = known.sum(axis=0)
    means = [np.where(known, each, 0.0).sum(axis=0) / np.maximum(n, 1) for each in (real, simulated)]
    return np.where(n > 0, means[0], np.nan), np.where(n > 0, means[1], np.nan)


def _spearman(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    from scipy import stats

    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(stats.spearmanr(first, second).statistic)


def seed_floor(runs: Runs, objective: Objective) -> Floor | None:
    """Return the risk of a simulator against itself under another seed: mean over all pairs of seeds."""
    if len(runs.seeds) < 2:
        return None
    j = alone(runs, objective)
    each = [float(mean_loss(np.abs(j[one] - j[other]))) for one, other in combinations(range(len(j)), 2)]
    return Floor(float(np.mean(each)), f"itself under another seed, {len(runs.seeds)} seeds")


def real_floor(table: RiskTable, objective: Objective) -> Floor | None:
    """Return the risk of reality against itself: another recording, every second sweep, or every second scene."""
    real = table.of(table.real)
    again, halves = table.names("again"), table.names("half")
    if again:
        others = [alone(table.of(name), objective)[0] for name in again if table.of(name).seeds]
        each = [float(mean_loss(np.abs(alone(real, objective)[0] - other))) for other in others]
        return Floor(float(np.mean(each)), f"another recording ({', '.join(again)})") if each else None
    if len(halves) == 2:
        value = losses(pair(table.of(halves[0]), table.of(halves[1]), objective))
        return Floor(float(mean_loss(value)), "the even sweeps of each scene against the odd ones")
    if len(real.scenes) < 2 or not real.seeds:
        return None
    even = (np.arange(len(real.scenes)) % 2 == 0).astype(np.float64)
    apart = np.abs(alone(real, objective, even)[0] - alone(real, objective, 1 - even)[0])
    return Floor(float(mean_loss(apart)), "every second scene against the others, so it holds their differences, too")


def failure_share(runs: Runs) -> float:
    """Return the share of the runs that failed."""
    n = int(runs.ran.sum())
    return float((runs.ran & ~runs.well).sum() / n) if n else float("nan")


def failure_kinds(runs: Runs) -> dict[str, float]:
    """Return the shares of the runs that failed, by kind: what a reason begins with."""
    n = max(int(runs.ran.sum()), 1)
    kinds: dict[str, float] = {}
    for reason, number in runs.reasons.items():
        if reason:
            kind = reason.partition(":")[0]
            kinds[kind] = kinds.get(kind, 0.0) + float((runs.failure == number).sum()) / n
    return kinds


def objective_by_source(table: RiskTable, objective: Objective) -> dict[str, NDArray[np.float64]]:
    """Return J (settings,) of reality and every simulator, over all scenes and seeds of each."""
    return {name: pooled(table.of(name), objective) for name in (table.real, *table.names("simulated"))}


def _notes(table: RiskTable, n_scenes: int, scores: Mapping[str, RiskScore]) -> list[str]:
    notes: list[str] = []
    if n_scenes < 2:
        notes.append("one scene alone gives no interval and no floor; take shorter scenes (--scene-sweeps)")
    for name, each in scores.items():
        if each.n_settings < len(table.settings[DRAWN]):
            left = len(table.settings[DRAWN]) - each.n_settings
            notes.append(f"{name}: {left} settings failed in reality or in simulation and are left out of its risk")
        if each.floor is None:
            notes.append(f"{name}: ran under one seed, so its own noise is not known")
    return notes


def _span(span: Interval) -> str:
    return f"{span[0]:.3g} to {span[1]:.3g}"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in cast("list[Any]", value)]
    return None if isinstance(value, float) and not np.isfinite(value) else value
