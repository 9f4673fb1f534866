# SPDX-License-Identifier: Apache-2.0
"""J along each parameter, in reality and in every simulator: is a step or an optimum at the same place?

Tallavajhula (2018 §4.4.2) found that scan matching had a step along one parameter and an optimum along another, and
that a poor simulator had the optimum elsewhere. Here the settings are put into bins of one parameter. J of each bin is
fitted by least squares together with parabolas of all other parameters, so that what those do is not taken for noise;
with too few settings for that, it is the mean of the bin. The curve of bins is then read, a difference counting only if
it is more than three standard errors:

- optimum: the lowest bin is not at an end, and both ends are higher, by a quarter of the curve's whole height or more;
- step: one jump from bin to bin makes up 60 % of that height or more;
- slope: the ends differ;
- flat: none of these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.space import Parameter, Setting, Space, Value

MOST_BINS = 8
_PER_BIN = 8  # settings that a bin should have
_ERRORS = 3.0
_STEP_SHARE = 0.6
_OPTIMUM_SHARE = 0.25
Shape = Literal["flat", "step", "optimum", "slope", "best choice"]


@dataclass(frozen=True)
class Curve:
    """J along one parameter in one source."""

    mean: NDArray[np.float64]
    """(bins,) NaN where a bin has no settings."""
    error: NDArray[np.float64]
    """(bins,) standard error of the mean over the settings."""
    shape: Shape
    at: int
    """Bin of the optimum or the best choice; bin before the step; bin of the lower end of a slope; 0 if flat."""


@dataclass(frozen=True)
class Along:
    """J along one parameter in every source."""

    name: str
    parameter: Parameter
    labels: list[str]
    """(bins) what the settings of each have."""
    middle: NDArray[np.float64]
    """(bins,) middle of each bin, in the parameter's own unit; of choices their number."""
    curves: dict[str, Curve]
    """By source; the first is reality."""

    def same_place(self, source: str) -> bool:
        """Tell whether a curve has the shape of the real one, at the same place or one bin beside it."""
        real, other = next(iter(self.curves.values())), self.curves[source]
        beside = 0 if self.parameter.kind == "choice" else 1
        return real.shape == other.shape and (real.shape == "flat" or abs(real.at - other.at) <= beside)

    def words(self) -> str:
        """Say where the curves have their steps and optima."""
        (real, first), *others = self.curves.items()
        parts = [f"{real}: {self._place(first)}"]
        for name, curve in others:
            same = "the same" if self.same_place(name) else self._place(curve)
            parts.append(f"{name}: {same}")
        return f"{self.name}: {'; '.join(parts)}"

    def _place(self, curve: Curve) -> str:
        match curve.shape:
            case "flat":
                return "flat"
            case "step":
                down = "down" if curve.mean[curve.at + 1] < curve.mean[curve.at] else "up"
                return f"a step {down} between {self.labels[curve.at]} and {self.labels[curve.at + 1]}"
            case "optimum":
                return f"an optimum at {self.labels[curve.at]}"
            case "slope":
                return f"falls towards {self.labels[curve.at]}"
            case "best choice":
                return f"{self.labels[curve.at]} is best"


def along(space: Space, settings: Sequence[Setting], j: Mapping[str, NDArray[np.float64]]) -> list[Along]:
    """Return the curves of every parameter that varies.

    Args:
        space: the program's.
        settings: the settings.
        j: (settings,) J of each source, reality first; NaN where there is none.
    """
    found: list[Along] = []
    for name, parameter in space.parameters.items():
        values = [each[name] for each in settings]
        if len(set(map(str, values))) < 2:
            continue
        bins, n_bins = _bins(parameter, np.array([parameter.share(each) for each in values]))
        is_choice = parameter.kind == "choice"
        others = _others(space, name, settings)
        curves = {source: _curve(each[: len(bins)], bins, n_bins, others, is_choice) for source, each in j.items()}
        edges = [parameter.at(share) for share in np.linspace(0, 1, n_bins + 1).tolist()]
        middle = [parameter.at((row + 0.5) / n_bins) for row in range(n_bins)]
        places = np.arange(n_bins, dtype=np.float64) if is_choice else np.array(middle, dtype=np.float64)
        found.append(Along(name, parameter, _labels(parameter, edges, middle, n_bins), places, curves))
    return found


def _bins(parameter: Parameter, shares: NDArray[np.float64]) -> tuple[NDArray[np.intp], int]:
    n_bins = int(np.clip(len(shares) // _PER_BIN, 2, MOST_BINS))
    low, high = parameter.bounds
    if parameter.kind == "choice":
        n_bins = len(parameter.choices)
    elif parameter.kind == "integer":
        n_bins = min(n_bins, int(high - low) + 1)
    return np.minimum((shares * n_bins).astype(np.intp), n_bins - 1), n_bins


def _labels(parameter: Parameter, edges: list[Value], middle: list[Value], n_bins: int) -> list[str]:
    if parameter.kind == "choice":
        return [str(each) for each in middle]
    if parameter.kind == "integer" and n_bins == parameter.bounds[1] - parameter.bounds[0] + 1:
        return [str(each) for each in middle]
    return [f"{float(str(each)):.3g} to {float(str(after)):.3g}" for each, after in pairwise(edges)]


def _others(space: Space, name: str, settings: Sequence[Setting]) -> NDArray[np.float64]:
    """Return (settings, K) what the other parameters are: share and its square, or a column for each choice but one."""
    columns: list[NDArray[np.float64]] = []
    for other, parameter in space.parameters.items():
        if other == name:
            continue
        if parameter.kind == "choice":
            columns += [np.array([float(each[other] == value) for each in settings]) for value in parameter.choices[1:]]
        else:
            share = np.array([parameter.share(each[other]) for each in settings])
            columns += [share, share**2]
    varying = [each for each in columns if np.ptp(each) > 0]
    return np.stack(varying, axis=1) if varying else np.zeros((len(settings), 0))


def _curve(
    j: NDArray[np.float64], bins: NDArray[np.intp], n_bins: int, others: NDArray[np.float64], is_choice: bool
) -> Curve:
    mean, error = np.full(n_bins, np.nan), np.full(n_bins, np.nan)
    known = np.isfinite(j)
    filled = np.unique(bins[known])
    if len(filled):
        value, deviation = _fit(j[known], bins[known][:, None] == filled, others[known])
        mean[filled], error[filled] = value, deviation
    shape, at = _shape(mean, error, is_choice)
    return Curve(mean, error, shape, at)


def _fit(
    j: NDArray[np.float64], inside: NDArray[np.bool_], others: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return J of each bin and its standard error, NaN where a bin has but one setting."""
    if len(j) < inside.shape[1] + 2 * others.shape[1]:
        others = others[:, :0]
    design = np.concatenate([inside.astype(np.float64), others - others.mean(axis=0)], axis=1)
    found, _, rank, _ = np.linalg.lstsq(design, j, rcond=None)
    left = j - design @ found
    variance = float(left @ left) / max(len(j) - int(rank), 1)
    spread = np.sqrt(variance * np.diag(np.linalg.pinv(design.T @ design)))[: inside.shape[1]]
    return found[: inside.shape[1]].astype(np.float64), np.where(inside.sum(axis=0) > 1, spread, np.nan)


def _shape(mean: NDArray[np.float64], error: NDArray[np.float64], is_choice: bool) -> tuple[Shape, int]:
    known = np.flatnonzero(np.isfinite(mean) & np.isfinite(error))
    if len(known) < 2:
        return "flat", 0
    m, e = mean[known], error[known]

    def higher(one: int, other: int) -> bool:
        return bool(m[one] - m[other] > _ERRORS * np.hypot(e[one], e[other]))

    lowest = int(np.argmin(m))
    if is_choice:
        best = all(higher(row, lowest) for row in range(len(m)) if row != lowest)
        return ("best choice", int(known[lowest])) if best else ("flat", 0)
    ends = higher(0, lowest) and higher(len(m) - 1, lowest)
    if ends and min(m[0], m[-1]) - m[lowest] >= _OPTIMUM_SHARE * np.ptp(m):
        return "optimum", int(known[lowest])
    jump = np.diff(m)
    at = int(np.argmax(np.abs(jump)))
    clear = higher(at, at + 1) or higher(at + 1, at)
    if len(m) > 2 and clear and abs(jump[at]) >= _STEP_SHARE * np.ptp(m):
        return "step", int(known[at])
    if higher(0, len(m) - 1) or higher(len(m) - 1, 0):
        return "slope", int(known[0] if m[0] < m[-1] else known[-1])
    return "flat", 0
