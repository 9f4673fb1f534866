# SPDX-License-Identifier: Apache-2.0
"""Sensor models of a few numbers: P-Reg, the Gaussian of a physical law, and the classic beam mixture.

- `PReg` (Tallavajhula 2018 §3.4.2.1): share of null readings, mean and standard deviation at every training state, each
  smoothed over range and incidence, for every bearing by itself. So it learns biases and dead bearings.
- `GaussianModel` (eq. 3.6): around the nominal range, with a variance of K r² / cos δ. It knows no null readings.
- `BeamMixture` (eq. 3.7): a Gaussian around the nominal range and, in front of it, an exponential share of readings on
  what the map does not know. The paper prints exp(-λ r), a constant; exp(-λ z) is meant.

Two misprints of the paper are mended: sums run over the readings that are not null, and its third line is a variance.
A reading is reported in whole steps. So its density is the probability of its bin, by the width of the bin; what falls
outside the sensor's limits is a null reading. Equations: docs/models.md §30.
"""

import copy
from abc import abstractmethod
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arguments import as_number, as_positive
from hedgerow.planar.regression import Floats, Observations, Scale, as_bandwidth, local_linear, smooth
from hedgerow.planar.sensor_model import SensorModel, States, rows_of

Smoother = Literal["linear", "mean"]
"""linear: a plane around each query; mean: a kernel mean."""

Target = Literal["null", "mean", "sigma"]
TARGETS: tuple[Target, ...] = get_args(Target)
"""What P-Reg smooths."""

LEAST_COSINE = float(np.cos(np.deg2rad(85)))
"""Of the incidence: at grazing incidence the variance of eq. 3.6 would be infinite."""
_FEW = 5
"""With fewer readings a state, squares are pooled over states instead of making a variance of each."""


class NormalParameters(NamedTuple):
    """Of a normal distribution with null readings, one for each of Q states."""

    null: Floats
    """Probability of a null reading, 0 to 1."""
    mean_m: Floats
    sigma_m: Floats


class _Normal(SensorModel):
    """A model whose readings are null or normally distributed."""

    kind = "normal"

    @abstractmethod
    def parameters(self, states: States) -> NormalParameters:
        """Return the parameters at states with features."""

    def density_at(self, states: States, reading_m: Floats) -> Floats:
        """Return the probability of each reading's bin by its width, or of a null reading."""
        from scipy.special import ndtr

        null, mean, sigma = self.parameters(states)
        half, low, high = self.scale.step_m / 2, self.scale.low_m, self.scale.high_m
        is_null = np.isinf(reading_m)
        z = np.where(is_null, mean, reading_m)
        # The complement where both arguments are large: differences of numbers near 1 would be lost.
        near, far = (z - half - mean) / sigma, (z + half - mean) / sigma
        flip = near > 0
        mass = np.where(flip, ndtr(-near) - ndtr(-far), ndtr(far) - ndtr(near))
        outside = ndtr((low - half - mean) / sigma) + ndtr((mean - high - half) / sigma)
        return np.where(is_null, null + (1 - null) * outside, (1 - null) * mass / self.scale.step_m)

    def histogram_at(self, states: States) -> Floats:
        """Return the probability of every bin; the parameters of a state are computed once."""
        from scipy.special import ndtr

        null, mean, sigma = self.parameters(states)
        edges = np.append(self.scale.values() - self.scale.step_m / 2, self.scale.high_m + self.scale.step_m / 2)
        below = ndtr((edges[:, None] - mean) / sigma)
        inside = (1 - null) * np.diff(below, axis=0)
        return np.concatenate([inside, 1 - inside.sum(axis=0, keepdims=True)])

    def quantile_at(self, states: States, level: Floats) -> Floats:
        """Return the reading at each level; beyond the share of non-null readings it is null."""
        from scipy.special import ndtri

        null, mean, sigma = self.parameters(states)
        share = np.minimum(level / np.maximum(1 - null, 1e-300), 1.0)
        return np.where(level < 1 - null, mean + sigma * ndtri(np.clip(share, 1e-300, 1 - 1e-16)), np.inf)


class PReg(_Normal):
    """Parametric distribution regression."""

    kind = "p-reg"

    def __init__(
        self,
        observations: Observations,
        scale: Scale,
        *,
        null_bandwidth: ArrayLike,
        mean_bandwidth: ArrayLike,
        sigma_bandwidth: ArrayLike,
        smoother: Smoother = "linear",
        per_group: bool = True,
    ) -> None:
        """Estimate the three numbers at every training state.

        Args:
            observations: training readings; one or many at a state.
            scale: what the sensor can say.
            null_bandwidth, mean_bandwidth, sigma_bandwidth: (p,) of the kernel, common to all bearings, in units of
                the features.
            smoother: see `Smoother`.
            per_group: every bearing by itself, or all together.
        """
        p = observations.state.shape[1]
        self.scale, self.observations = scale, observations
        self.smoother: Smoother = smoother
        self.per_group = per_group
        self.bandwidth: dict[Target, Floats] = {
            "null": as_bandwidth("null_bandwidth", null_bandwidth, p),
            "mean": as_bandwidth("mean_bandwidth", mean_bandwidth, p),
            "sigma": as_bandwidth("sigma_bandwidth", sigma_bandwidth, p),
        }
        self._smooth = local_linear if smoother == "linear" else smooth
        self._arrange(observations)

    @property
    def least_sigma_m(self) -> float:
        """Standard deviation of rounding to whole steps; predictions below it are raised to it."""
        return self.scale.step_m / np.sqrt(12)

    def parameters(self, states: States) -> NormalParameters:
        """Return the smoothed numbers at each state."""
        return NormalParameters(*(self.smoothed(what, states) for what in TARGETS))

    def smoothed(self, what: Target, states: States) -> Floats:
        """Return one of the three numbers at each state: a share within 0 to 1, sigma at least that of rounding."""
        found = self._predict(what, states.feature, self._rows(states))
        if what == "null":
            return np.clip(found, 0.0, 1.0)
        if what == "mean":
            return found
        sigma = np.sqrt(np.maximum(found, 0.0)) if self._pooled else found
        return np.maximum(sigma, self.least_sigma_m)

    def with_bandwidth(self, what: Target, bandwidth: ArrayLike) -> "PReg":
        """Return this model with another bandwidth of one number; what was counted is shared."""
        new = copy.copy(self)
        new.bandwidth = dict(self.bandwidth)
        new.bandwidth[what] = as_bandwidth(f"{what}_bandwidth", bandwidth, self._state.shape[-1])
        if what == "mean":
            new._squares = None
        return new

    def settings(self) -> dict[str, Any]:
        """Return bandwidths and options."""
        return {f"{name}_bandwidth": width.tolist() for name, width in self.bandwidth.items()} | {
            "smoother": self.smoother,
            "per_group": self.per_group,
        }

    @classmethod
    def restore(cls, scale: Scale, settings: dict[str, Any], observations: Observations | None) -> "PReg":
        """Make the model again."""
        if observations is None:
            raise ValueError("its training readings are missing")
        return cls(observations, scale, **settings)

    def _arrange(self, observations: Observations) -> None:
        """Put the states of each bearing into one row of a table, filled up with states that do not count."""
        group = observations.groups if self.per_group else np.zeros(len(observations), np.int64)
        self._groups, place = np.unique(group, return_inverse=True)
        counts = np.bincount(place)
        self._shape = (len(counts), int(counts.max()))
        column = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
        order = np.argsort(place, kind="stable")
        self._where = (place[order], column)
        self._order = order
        self._state = self._table(observations.state)
        share, mean, sigma = observations.moments()
        n_null, n = observations.n_null, observations.count
        has_mean = n > n_null
        self._value = {"null": self._table(share), "mean": self._table(np.where(has_mean, mean, 0.0))}
        self._weight = {"null": self._table(n.astype(float)), "mean": self._table((n - n_null).astype(float))}
        self._pooled = bool(np.median(n - n_null) < _FEW)
        self._squares: Floats | None = None
        self._value["sigma"] = self._table(np.where(has_mean, sigma, 0.0))
        self._weight["sigma"] = self._weight["mean"]

    def _table(self, values: Floats) -> Floats:
        table = np.zeros((*self._shape, *values.shape[1:]))
        table[self._where] = values[self._order]
        return table

    def _pooled_squares(self) -> Floats:
        """Return for each state the mean square around the mean that the other states predict.

        With a reading or two a state there is no variance of a state; leaving out its own readings keeps a smoother
        that follows single readings from making residuals too small.
        """
        if self._squares is not None:
            return self._squares
        assert self.observations is not None  # given when it was made
        rows, columns = np.nonzero(self._weight["mean"] > 0)
        predicted = np.zeros(self._shape)
        step = max(1, 1_000_000 // self._shape[1])
        for begin in range(0, len(rows), step):
            row, column = rows[begin : begin + step], columns[begin : begin + step]
            weight = self._weight["mean"][row]
            weight[np.arange(len(row)), column] = 0.0
            predicted[row, column] = self._smooth(
                self._state[row, column], self._state[row], self._value["mean"][row], self.bandwidth["mean"], weight
            )
        per_state = np.zeros(len(self.observations))
        per_state[self._order] = predicted[self._where]
        real = np.isfinite(self.observations.value)
        error = np.where(real, self.observations.value, 0.0) - per_state[:, None]
        square = (np.where(real, error, 0.0) ** 2).sum(axis=1)
        self._squares = self._table(square / np.maximum(real.sum(axis=1), 1))
        return self._squares

    def _rows(self, states: States) -> NDArray[np.intp]:
        return rows_of(self._groups, states.group) if self.per_group else np.zeros(len(states), np.intp)

    def _predict(self, what: Target, feature: Floats, row: NDArray[np.intp]) -> Floats:
        width, value, weight = self.bandwidth[what], self._value[what], self._weight[what]
        if what == "sigma" and self._pooled:
            value = self._pooled_squares()
        if len(self._groups) == 1:
            return self._smooth(feature, self._state[0], value[0], width, weight[0])
        return self._smooth(feature, self._state[row], value[row], width, weight[row])


class GaussianModel(_Normal):
    """Normal around the nominal range, with a variance of K r² / cos δ (Tallavajhula 2018 eq. 3.6)."""

    kind = "gaussian"

    def __init__(self, scale: Scale, k: float) -> None:
        """Take K of the variance; r in metres."""
        self.scale, self.k = scale, as_positive("k", k)

    def parameters(self, states: States) -> NormalParameters:
        """Return the nominal range and the sigma of the law; no null readings."""
        range_m, incidence = states.feature[:, 0], states.feature[:, 1]
        cosine = np.maximum(np.cos(incidence), LEAST_COSINE)
        sigma = np.sqrt(self.k * range_m**2 / cosine)
        return NormalParameters(np.zeros(len(states)), range_m, np.maximum(sigma, self.scale.step_m / np.sqrt(12)))

    def settings(self) -> dict[str, Any]:
        """Return K."""
        return {"k": self.k}

    @classmethod
    def restore(cls, scale: Scale, settings: dict[str, Any], observations: Observations | None) -> "GaussianModel":
        """Make the model again."""
        return cls(scale, **settings)


class BeamMixture(SensorModel):
    """Normal around the nominal range, exponential in front of it (Tallavajhula 2018 eq. 3.7, "classic raycast")."""

    kind = "beam-mixture"

    def __init__(self, scale: Scale, *, eta: float, sigma_m: float, rate_per_m: float, null: float = 0.0) -> None:
        """Set the parameters.

        Args:
            scale: what the sensor can say.
            eta: share of the normal part among readings that are not null.
            sigma_m: its standard deviation.
            rate_per_m: λ of the exponential part, which ends at the nominal range.
            null: share of null readings; the paper has none.
        """
        self.scale = scale
        self.eta = as_number("eta", eta, 0, 1)
        self.sigma_m = as_positive("sigma_m", sigma_m)
        self.rate_per_m = as_positive("rate_per_m", rate_per_m)
        self.null = as_number("null", null, 0, 1)

    def cumulative(self, states: States, reading_m: Floats) -> Floats:
        """Return the share of non-null readings below each value, limits not yet regarded."""
        from scipy.special import ndtr

        range_m = states.feature[:, 0]
        front = -np.expm1(-self.rate_per_m * np.clip(reading_m, 0.0, range_m))
        whole = -np.expm1(-self.rate_per_m * range_m)
        normal = ndtr((reading_m - range_m) / self.sigma_m)
        return self.eta * normal + (1 - self.eta) * front / np.maximum(whole, 1e-300)

    def density_at(self, states: States, reading_m: Floats) -> Floats:
        """Return the probability of each reading's bin by its width, or of a null reading."""
        half = self.scale.step_m / 2
        is_null = np.isinf(reading_m)
        z = np.where(is_null, self.scale.low_m, reading_m)
        mass = self.cumulative(states, z + half) - self.cumulative(states, z - half)
        low = np.full(len(states), self.scale.low_m - half)
        high = np.full(len(states), self.scale.high_m + half)
        inside = self.cumulative(states, high) - self.cumulative(states, low)
        share = 1 - self.null
        return np.where(is_null, self.null + share * (1 - inside), share * mass / self.scale.step_m)

    def quantile_at(self, states: States, level: Floats) -> Floats:
        """Return the reading at each level, by bisection."""
        share = np.minimum(level / max(1 - self.null, 1e-300), 1.0)
        low = np.full(len(states), self.scale.low_m - 10 * self.sigma_m)
        high = np.maximum(states.feature[:, 0], self.scale.high_m) + 10 * self.sigma_m
        for _ in range(50):  # to 1e-14 of the interval
            middle = (low + high) / 2
            below = self.cumulative(states, middle) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(level < 1 - self.null, high, np.inf)

    def settings(self) -> dict[str, Any]:
        """Return the parameters."""
        return {"eta": self.eta, "sigma_m": self.sigma_m, "rate_per_m": self.rate_per_m, "null": self.null}

    @classmethod
    def restore(cls, scale: Scale, settings: dict[str, Any], observations: Observations | None) -> "BeamMixture":
        """Make the model again."""
        return cls(scale, **settings)


def flatten(observations: Observations) -> tuple[States, Floats]:
    """Return one state and one reading for every observation, null readings included."""
    row, column = np.nonzero(~np.isnan(observations.value))
    states = States(observations.state[row], observations.groups[row])
    return states, arrays.as_floats("value", observations.value[row, column], ("N",))
