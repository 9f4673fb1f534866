# SPDX-License-Identifier: Apache-2.0
"""Distribution regression: how a scalar observation is distributed at a state where none was made.

At each of N training states a sensor was read once or many times. Between the states, what was found is smoothed by a
Gaussian kernel with one bandwidth for each feature (Tallavajhula 2018 §3.3.2 and §3.4.2). Two smoothers are here:

- `local_linear`: of a number per state (a mean, a standard deviation, a share), by a plane fitted around each query;
- `Histograms`: of a whole distribution per state, bin by bin: one product of a sparse and a dense matrix.

Nothing here knows of lidars: a state is a row of numbers, an observation is a number, or inf if the sensor gave none.
Equations: docs/models.md §30.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_positive
from hedgerow.base.columns import set_fields
from hedgerow.base.parameters import Finite, Parameters, Positive
from hedgerow.errors import InputError

Floats = NDArray[np.float64]

_RIDGE = 1e-8
"""Of the plane fit, relative to its largest sum: states in one line leave a slope free, which then is 0."""
_BLOCK = 4_000_000
"""Most kernel values held at once."""


class Scale(Parameters):
    """What a sensor can say: readings from `low_m` to `high_m` in steps, or a null reading."""

    low_m: Finite = 0.0
    """Smallest reading."""
    high_m: Positive
    """Largest reading; what would be more is a null reading."""
    step_m: Positive
    """Resolution, the width of a bin."""

    @property
    def n_bins(self) -> int:
        """How many readings there are, the null reading left out."""
        return round((self.high_m - self.low_m) / self.step_m) + 1

    def values(self) -> Floats:
        """Return the (B,) readings, ascending, the null reading left out."""
        return self.low_m + self.step_m * np.arange(self.n_bins, dtype=np.float64)

    def bin_of(self, reading_m: Floats) -> NDArray[np.int64]:
        """Return the bin of each reading, 0 to B - 1, of those outside the limits the first or last; of inf B."""
        finite = np.where(np.isfinite(reading_m), reading_m, self.low_m)
        bins = np.clip(np.rint((finite - self.low_m) / self.step_m), 0, self.n_bins - 1).astype(np.int64)
        return np.where(np.isfinite(reading_m), bins, self.n_bins)

    def round(self, reading_m: Floats) -> Floats:
        """Return readings as the sensor reports them: in whole steps; outside the limits null (inf)."""
        with np.errstate(invalid="ignore"):
            steps = np.rint((reading_m - self.low_m) / self.step_m)
        rounded = self.low_m + steps * self.step_m
        inside = (steps >= 0) & (steps < self.n_bins) & np.isfinite(reading_m)
        return np.where(inside, rounded, np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """What a scalar sensor gave at N states, up to M times at each."""

    state: Floats
    """(N, p) features of each state."""
    value: Floats
    """(N, M) observations; inf is none (a null reading), NaN is a place not used. (N,) is one at each state."""
    group: NDArray[np.int64] | None = None
    """(N,) which part of the sensor made them: the bearing of a scanner. None: it has one part."""

    def __post_init__(self) -> None:
        """Check shapes and values once."""
        state = arrays.as_floats("state", self.state, ("N", "P"))
        value = arrays.as_floats("value", self.value, ("N",), ("N", "M"))
        value = value[:, None] if value.ndim == 1 else value
        arrays.require_finite("state", state)
        if len(state) != len(value):
            raise InputError("value", f"has {len(value)} rows, state {len(state)}; expected one for each state")
        if len(state) == 0 or np.isnan(value).all():
            raise InputError("value", "holds no observation; there is nothing to learn from")
        group = np.zeros(len(state), np.int64) if self.group is None else self.group
        group = arrays.as_integers("group", group, (len(state),), np.int64)
        set_fields(self, {"state": state, "value": value, "group": group})

    def __len__(self) -> int:
        """Count the states."""
        return len(self.state)

    def __getitem__(self, rows: Any) -> "Observations":
        """Select states by slice, mask or positions."""
        return Observations(self.state[rows], self.value[rows], self.groups[rows])

    @property
    def groups(self) -> NDArray[np.int64]:
        """(N,) which part of the sensor made them."""
        assert self.group is not None  # filled in when it was made
        return self.group

    @property
    def count(self) -> NDArray[np.int64]:
        """(N,) observations at each state, null readings included."""
        return (~np.isnan(self.value)).sum(axis=1)

    @property
    def n_null(self) -> NDArray[np.int64]:
        """(N,) null readings at each state."""
        return np.isinf(self.value).sum(axis=1)

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Return (N,) share of null readings, mean and standard deviation of the others; NaN where there are none.

        Maximum likelihood: the variance is a mean of squares over the non-null readings.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            real = np.isfinite(self.value)
            n = real.sum(axis=1)
            filled = np.where(real, self.value, 0.0)
            mean = filled.sum(axis=1) / n
            variance = (np.where(real, filled - mean[:, None], 0.0) ** 2).sum(axis=1) / n
            return self.n_null / self.count, mean, np.sqrt(variance)


def as_bandwidth(name: str, bandwidth: ArrayLike, n_features: int) -> Floats:
    """Return (p,) bandwidths, one above 0 for each feature, in its unit.

    Raises:
        InputError: another number of them, or one that is not above 0.
    """
    found = arrays.as_floats(name, bandwidth, (n_features,))
    for each in found:
        as_positive(name, each)
    return found


def kernel(query: Floats, state: Floats, bandwidth: Floats) -> Floats:
    """Return (Q, N) Gaussian kernel values, the largest of each query 1, so that far queries have neighbours too.

    Args:
        query: (Q, p).
        state: (N, p), or (Q, N, p) if each query has states of its own.
        bandwidth: (p,) in units of the features.
    """
    squares: Any = 0.0
    for column in range(state.shape[-1]):
        squares = squares + ((query[:, column, None] - state[..., column]) / bandwidth[column]) ** 2
    squares -= squares.min(axis=1, keepdims=True)
    return np.exp(-0.5 * squares)


def smooth(query: Floats, state: Floats, value: Floats, bandwidth: Floats, weight: Floats | None = None) -> Floats:
    """Return (Q,) kernel means of values; outside the data they are those of the nearest states.

    Arguments as in `local_linear`.
    """
    return _in_blocks(_mean, query, state, value, bandwidth, weight)


def local_linear(
    query: Floats, state: Floats, value: Floats, bandwidth: Floats, weight: Floats | None = None
) -> Floats:
    """Return (Q,) values of planes, each fitted to the values around its query (Tallavajhula 2018 eq. 3.2).

    The plane has an intercept, which the paper does not print: without it, predictions shrink towards 0 at the origin.

    Args:
        query: (Q, p).
        state: (N, p), or (Q, N, p) if each query has states of its own.
        value: (N,) or (Q, N) finite numbers.
        bandwidth: (p,) of the kernel, in units of the features.
        weight: (N,) or (Q, N) how much each value counts: its number of observations, 0 to leave it out. Default: 1.
    """
    return _in_blocks(_plane, query, state, value, bandwidth, weight)


def _in_blocks(
    fit: Callable[..., Floats], query: Floats, state: Floats, value: Floats, bandwidth: Floats, weight: Floats | None
) -> Floats:
    """Fit some queries at a time, so that memory stays bounded."""
    own = state.ndim == 3
    step = max(1, _BLOCK // max(1, value.shape[-1]))
    parts: list[Floats] = []
    for begin in range(0, len(query), step):
        rows = slice(begin, begin + step)
        states, values = (state[rows], value[rows]) if own else (state, value)
        weights = kernel(query[rows], states, bandwidth)
        if weight is not None:
            weights = _weighted(weights, weight[rows] if own else weight)
        parts.append(fit(query[rows], states, values, bandwidth, weights))
    return np.concatenate(parts) if parts else np.zeros(0)


def _weighted(weights: Floats, weight: Floats) -> Floats:
    """Count each value as often as it says; where all that counts is far away, the nearest of it still does."""
    weighted = weights * weight
    lost = weighted.max(axis=1) < 1e-200
    if lost.any():
        weighted[lost] = np.broadcast_to(weight, weights.shape)[lost] + 1e-300
    return weighted


def _sum(weights: Floats, column: Floats) -> Floats:
    """Add up a column, (N,) or (Q, N), by the weights of each query."""
    return weights @ column if column.ndim == 1 else np.einsum("qn,qn->q", weights, column)


def _mean(query: Floats, state: Floats, value: Floats, bandwidth: Floats, weights: Floats) -> Floats:
    return _sum(weights, value) / weights.sum(axis=1)


def _plane(query: Floats, state: Floats, value: Floats, bandwidth: Floats, weights: Floats) -> Floats:
    # Around the kernel's own mean state the intercept is the weighted mean, and the fit is one of slopes alone.
    total = weights.sum(axis=1)
    p = state.shape[-1]
    mean = _sum(weights, value) / total
    scaled = [state[..., i] / bandwidth[i] for i in range(p)]
    centre = np.stack([_sum(weights, column) / total for column in scaled], axis=1)
    left, right = np.empty((len(query), p, p)), np.empty((len(query), p))
    for i in range(p):
        right[:, i] = _sum(weights, scaled[i] * value) / total - centre[:, i] * mean
        for j in range(i, p):
            left[:, i, j] = _sum(weights, scaled[i] * scaled[j]) / total - centre[:, i] * centre[:, j]
            left[:, j, i] = left[:, i, j]
    left += _RIDGE * np.maximum(1.0, np.trace(left, axis1=1, axis2=2))[:, None, None] * np.eye(p)
    slope = cast("Floats", np.linalg.solve(left, right[..., None]))
    return mean + np.einsum("qp,qp->q", query / bandwidth - centre, slope[..., 0])


class Histograms:
    """Distributions over equal bins at N states, smoothed over the states (Tallavajhula 2018 eqs. 3.4 and 3.5).

    The last bin of a prediction is the null reading. H is sparse: a state with M readings fills at most M bins.
    """

    def __init__(self, observations: Observations, scale: Scale) -> None:
        """Count the observations in the bins of a scale."""
        from scipy import sparse

        self.state = observations.state
        used = ~np.isnan(observations.value)
        row, column = np.nonzero(used)
        share = 1.0 / used.sum(axis=1).clip(min=1)
        shape = (scale.n_bins + 1, len(observations))
        # Sums of equal places: a histogram.
        self.matrix: Any = sparse.csr_array(
            (share[row], (scale.bin_of(observations.value[row, column]), row)), shape=shape
        )

    def predict(self, query: Floats, bandwidth: Floats) -> Floats:
        """Return (B + 1, Q) probabilities at Q queries: H W, the null reading last."""
        return self.matrix @ self.weights(query, bandwidth)

    def weights(self, query: Floats, bandwidth: Floats) -> Floats:
        """Return (N, Q) weights of the states, which add up to 1 for each query."""
        weights = kernel(query, self.state, bandwidth)
        return np.ascontiguousarray((weights / weights.sum(axis=1, keepdims=True)).T)


def histogram_match(first: Floats, second: Floats, step: float = 1.0) -> Floats:
    """Return the L1 distance of cumulative histograms along the first axis (Tallavajhula 2018 §3.4.3).

    Args:
        first, second: (B, ...) probabilities. The null reading, if there is one, is the last bin: one step behind the
            longest range.
        step: width of a bin; 1 gives the distance in bins, as the paper has it, the width in metres a length.
    """
    return np.abs(np.cumsum(first - second, axis=0)).sum(axis=0) * step
