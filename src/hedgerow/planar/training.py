# SPDX-License-Identifier: Apache-2.0
"""Training sensor models: bandwidths and constants by a visible search on validation readings.

    model, tried = train_p_reg(training, validation, scale)
    print(tried.to_markdown())

Every value that was tried is kept with its score, so that one can see whether the best lies inside the grid. P-Reg is
searched parameter by parameter for the least mean square error (Tallavajhula 2018 §3.4.2.1), NP-Reg for the least mean
histogram match (§3.4.3), the Gaussian and the mixture for the best likelihood.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from hedgerow.errors import InputError
from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.parametric import TARGETS, BeamMixture, GaussianModel, PReg, Smoother, Target, flatten
from hedgerow.planar.regression import Floats, Histograms, Observations, Scale, histogram_match
from hedgerow.planar.sensor_model import SensorModel, States

RANGE_GRID_M = (0.01, 0.03, 0.1, 0.3, 1.0)
INCIDENCE_GRID_RAD = (0.03, 0.1, 0.3, 1.0)
"""Bandwidths that are tried: from less than the spacing of training states to all of them."""
_MOST_READINGS = 50_000
"""Readings that constants are fitted to; more change them by less than their error."""
LEAST_DENSITY = 1e-6
"""Density floor of scores by likelihood [1/m]: one impossible reading must not decide."""


@dataclass(frozen=True)
class Tried:
    """What a search tried."""

    rows: tuple[tuple[dict[str, Any], float], ...]
    """Settings and their score; low is good."""
    score: str
    """What the score is."""

    @property
    def best(self) -> dict[str, Any]:
        """The settings of the lowest score."""
        return min(self.rows, key=lambda row: row[1])[0]

    def to_markdown(self) -> str:
        """Return all rows as a table, best first."""
        names = list(self.rows[0][0])
        lines = ["| " + " | ".join([*names, self.score]) + " |", "|" + " --- |" * (len(names) + 1)]
        for settings, score in sorted(self.rows, key=lambda row: row[1]):
            lines.append("| " + " | ".join([*(_shown(settings[name]) for name in names), f"{score:.6g}"]) + " |")
        return "\n".join(lines)


def _shown(value: Any) -> str:
    return ", ".join(f"{each:g}" for each in np.atleast_1d(value))


def search(grid: dict[str, Sequence[Any]], score: Callable[..., float], name: str) -> Tried:
    """Score every combination of values."""
    rows = tuple(
        (dict(zip(grid, values, strict=True)), float(score(**dict(zip(grid, values, strict=True)))))
        for values in product(*grid.values())
    )
    return Tried(rows, name)


def feature_grids(n_features: int, grids: Sequence[Sequence[float]] | None) -> list[tuple[float, ...]]:
    """Return all combinations of bandwidths, one for each feature; by default those for range and incidence."""
    chosen = [RANGE_GRID_M, INCIDENCE_GRID_RAD][:n_features] if grids is None else list(grids)
    if len(chosen) != n_features:
        raise InputError("grids", f"there are {len(chosen)} for {n_features} features; give one for each")
    return list(product(*chosen))


def train_p_reg(
    training: Observations,
    validation: Observations,
    scale: Scale,
    *,
    grids: Sequence[Sequence[float]] | None = None,
    smoother: Smoother = "linear",
    per_group: bool = True,
) -> tuple[PReg, dict[str, Tried]]:
    """Choose the three bandwidths of P-Reg, each by the mean square error of what it smooths, and train it.

    Args:
        training, validation: readings at different states.
        scale: what the sensor can say.
        grids: bandwidths to try for each feature.
        smoother, per_group: as in `PReg`.

    Returns:
        The model, and what was tried for null, mean and sigma.
    """
    widths = feature_grids(training.state.shape[1], grids)
    middle = widths[len(widths) // 2]
    start = {f"{what}_bandwidth": middle for what in TARGETS}
    model = PReg(training, scale, smoother=smoother, per_group=per_group, **start)
    truth = dict(zip(TARGETS, validation.moments(), strict=True))
    # Of a single reading there is no sigma to compare with: its likelihood tells instead.
    few = bool(np.median(validation.count - validation.n_null) < 2)
    states = States(validation.state, validation.groups)
    tried: dict[str, Tried] = {}
    for what in TARGETS:
        by_likelihood = few and what == "sigma"
        name = "mean log loss" if by_likelihood else f"mean square error of {what}"
        known = np.isfinite(truth[what])
        candidates = {width: model.with_bandwidth(what, width) for width in widths}
        loss = (
            partial(mean_log_loss, observations=validation)
            if by_likelihood
            else partial(_square_error, what=what, states=states[known], truth=truth[what][known])
        )
        tried[what] = Tried(tuple(({"bandwidth": width}, loss(each)) for width, each in candidates.items()), name)
        model = candidates[tried[what].best["bandwidth"]]
    model.open_null = open_share(training)
    return model, tried


def train_np_reg(
    training: Observations,
    validation: Observations,
    scale: Scale,
    *,
    grids: Sequence[Sequence[float]] | None = None,
    z_bandwidths_m: Sequence[float] = (0.0,),
    bearing_offset: bool = False,
    most_states: int = 2000,
    seed: int = 0,
) -> tuple[NPReg, Tried]:
    """Choose the bandwidths of NP-Reg by the mean histogram match on validation readings, and train it.

    Where states have a reading each, the match of one reading is its mean distance to the forecast.

    Args:
        training, validation: readings at different states.
        scale: what the sensor can say.
        grids: bandwidths to try for each feature.
        z_bandwidths_m: of kernel densities; 0 are histograms.
        bearing_offset: as in `NPReg`.
        most_states: of validation that are looked at, chosen at random.
        seed: of that choice.
    """
    rows = np.random.default_rng(seed).permutation(len(validation))[:most_states]
    judged = validation[np.sort(rows)]
    truth = Histograms(judged, scale).matrix.toarray()
    states = States(judged.state, judged.groups)

    def match(bandwidth: Any, z_bandwidth_m: float) -> float:
        model = NPReg(training, scale, bandwidth=bandwidth, z_bandwidth_m=z_bandwidth_m, bearing_offset=bearing_offset)
        return mean_match(model, states, truth)

    grid: dict[str, Sequence[Any]] = {
        "bandwidth": feature_grids(training.state.shape[1], grids),
        "z_bandwidth_m": tuple(z_bandwidths_m),
    }
    tried = search(grid, match, "mean histogram match [m]")
    model = NPReg(training, scale, bearing_offset=bearing_offset, **tried.best)
    model.open_null = open_share(training)
    return model, tried


def train_gaussian(
    training: Observations, scale: Scale, grid: Sequence[float] = tuple(np.logspace(-7, -1, 25))
) -> tuple[GaussianModel, Tried]:
    """Choose K of the Gaussian by the likelihood of the training readings that are not null."""
    states, reading = _some(training)
    real = np.isfinite(reading)
    states, reading = states[real], reading[real]

    def loss(k: float) -> float:
        return _floored_loss(GaussianModel(scale, k), states, reading)

    tried = search({"k": grid}, loss, "mean log loss")
    return GaussianModel(scale, **tried.best), tried


def train_mixture(training: Observations, scale: Scale) -> BeamMixture:
    """Fit the mixture by maximum likelihood: share, width and rate by a simplex search from several starts."""
    from scipy.optimize import minimize

    states, reading = _some(training)
    null = float(np.isinf(reading).mean())
    real = np.isfinite(reading)
    states, reading = states[real], reading[real]

    def build(x: Floats) -> BeamMixture:
        # Bounded: without readings before the wall the rate is free, and a search would walk off with it.
        share, sigma, rate = np.clip(x, (-20, -12, -12), (20, 6, 6))
        return BeamMixture(
            scale, eta=float(1 / (1 + np.exp(-share))), sigma_m=float(np.exp(sigma)), rate_per_m=float(np.exp(rate))
        )

    starts = [(eta, np.log(sigma), np.log(rate)) for eta in (0.0, 2.0) for sigma in (0.01, 0.1) for rate in (0.3, 2.0)]
    few = slice(None, None, max(1, len(reading) // 1000))  # enough to find the right valley

    def loss(x: Floats, rows: slice) -> float:
        return _floored_loss(build(x), states[rows], reading[rows])

    found = [minimize(loss, start, args=(few,), method="Nelder-Mead", tol=1e-3) for start in starts]
    start = min(found, key=lambda each: each.fun).x
    best = build(minimize(loss, start, args=(slice(None),), method="Nelder-Mead", tol=1e-4).x)
    model = BeamMixture(scale, eta=best.eta, sigma_m=best.sigma_m, rate_per_m=best.rate_per_m, null=null)
    model.open_null = open_share(training)
    return model


def _square_error(model: PReg, what: Target, states: States, truth: Floats) -> float:
    return float(np.mean((model.smoothed(what, states) - truth) ** 2))


def mean_log_loss(model: SensorModel, observations: Observations) -> float:
    """Return the mean negative log density of all readings, floored at `LEAST_DENSITY` (low is good)."""
    return _floored_loss(model, *flatten(observations))


def mean_match(model: SensorModel, states: States, truth: Floats, block: int = 200) -> float:
    """Return the mean histogram match [m] of predictions at Q states with (B + 1, Q) true shares."""
    total = 0.0
    for begin in range(0, len(states), block):
        rows = slice(begin, begin + block)
        total += float(histogram_match(model.histogram(states[rows]), truth[:, rows], model.scale.step_m).sum())
    return total / len(states)


def open_share(observations: Observations) -> float:
    """Return what share of readings to take for null where the map has nothing: no less than a training state had."""
    share = observations.moments()[0]
    return float(np.clip(np.nanmax(share), 0.5, 0.999))


def _floored_loss(model: SensorModel, states: States, reading_m: Floats) -> float:
    return float(-np.log(np.maximum(model.density(states, reading_m), LEAST_DENSITY)).mean())


def _some(training: Observations) -> tuple[States, Floats]:
    states, reading = flatten(training)
    rows = np.random.default_rng(0).permutation(len(states))[:_MOST_READINGS]
    return states[np.sort(rows)], reading[np.sort(rows)]
