# SPDX-License-Identifier: Apache-2.0
"""NP-Reg: whole histograms of readings, smoothed over states (Tallavajhula 2018 §3.4.2.2).

Nothing is assumed of the distribution, so two peaks stay two peaks: a wall, and people who walk in front of it. All
bearings are pooled, as in the paper, which did not have data enough for each; `bearing_offset` first takes the mean
difference of each bearing from the nominal range out of its readings, and puts it back into what is predicted.

`z_bandwidth_m` of 0 keeps histograms; above 0 they are kernel densities: every reading is spread by a Gaussian, which
is mirrored at the limits, so that no mass is lost. Equations: docs/models.md §30.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base.arguments import as_number, require_kind
from hedgerow.planar.regression import Floats, Histograms, Observations, Scale, as_bandwidth
from hedgerow.planar.sensor_model import SensorModel, States, rows_of

_BLOCK = 2_000_000
"""Most numbers of a table of predictions held at once."""


class NPReg(SensorModel):
    """Nonparametric distribution regression."""

    kind = "np-reg"

    def __init__(
        self,
        observations: Observations,
        scale: Scale,
        *,
        bandwidth: ArrayLike,
        z_bandwidth_m: float = 0.0,
        bearing_offset: bool = False,
    ) -> None:
        """Count the training readings.

        Args:
            observations: training readings; one or many at a state.
            scale: what the sensor can say.
            bandwidth: (p,) of the kernel over states, in units of the features.
            z_bandwidth_m: of the kernel over readings; 0 for histograms.
            bearing_offset: whether to learn the offset of each bearing.
        """
        require_kind("bearing_offset", bearing_offset, bool, "True or False")
        self.scale, self.observations = scale, observations
        self.bandwidth = as_bandwidth("bandwidth", bandwidth, observations.state.shape[1])
        self.z_bandwidth_m = as_number("z_bandwidth_m", z_bandwidth_m, 0, 1e6)
        self.bearing_offset = bearing_offset
        self._groups, self._offset = _offsets(observations) if bearing_offset else (np.zeros(0, np.int64), np.zeros(0))
        centred = observations
        if bearing_offset:
            shift = self._shift(observations.groups)
            centred = Observations(observations.state, observations.value - shift[:, None], observations.groups)
        self._tables = Histograms(centred, scale)

    def histogram_at(self, states: States) -> Floats:
        """Return the smoothed histograms, moved by the offsets of their bearings."""
        table = self._centred(states.feature)
        if not self.bearing_offset:
            return table
        shift = np.rint(self._shift(states.group) / self.scale.step_m).astype(int)
        out = np.zeros_like(table)
        rows = np.arange(len(table) - 1)
        for column, steps in enumerate(shift):
            np.add.at(out[:, column], np.clip(rows + steps, 0, len(rows) - 1), table[:-1, column])
        out[-1] = table[-1]
        return out

    def density_at(self, states: States, reading_m: Floats) -> Floats:
        """Return the probability of each reading's bin by its width, or of a null reading."""
        out = np.empty(len(states))
        for rows in self._blocks(len(states)):
            table = self.histogram_at(states[rows])
            bins = self.scale.bin_of(reading_m[rows])
            mass = table[bins, np.arange(table.shape[1])]
            out[rows] = np.where(np.isinf(reading_m[rows]), mass, mass / self.scale.step_m)
        return out

    def quantile_at(self, states: States, level: Floats) -> Floats:
        """Return the reading at each level."""
        out = np.empty(len(states))
        values = np.append(self.scale.values(), np.inf)
        for rows in self._blocks(len(states)):
            above = np.cumsum(self.histogram_at(states[rows]), axis=0) > level[rows]
            out[rows] = values[np.where(above.any(axis=0), above.argmax(axis=0), len(values) - 1)]
        return out

    def settings(self) -> dict[str, Any]:
        """Return bandwidths and options."""
        return {
            "bandwidth": self.bandwidth.tolist(),
            "z_bandwidth_m": self.z_bandwidth_m,
            "bearing_offset": self.bearing_offset,
        }

    @classmethod
    def restore(cls, scale: Scale, settings: dict[str, Any], observations: Observations | None) -> "NPReg":
        """Make the model again."""
        if observations is None:
            raise ValueError("its training readings are missing")
        return cls(observations, scale, **settings)

    def _centred(self, feature: Floats) -> Floats:
        from scipy.ndimage import gaussian_filter1d

        table = self._tables.predict(feature, self.bandwidth)
        if self.z_bandwidth_m > 0:
            steps = self.z_bandwidth_m / self.scale.step_m
            table[:-1] = gaussian_filter1d(table[:-1], steps, axis=0, mode="reflect")
        return table

    def _shift(self, group: NDArray[np.int64]) -> Floats:
        return self._offset[rows_of(self._groups, group)]

    def _blocks(self, n: int) -> list[slice]:
        step = max(1, _BLOCK // (self.scale.n_bins + len(self._tables.state)))
        return [slice(begin, begin + step) for begin in range(0, n, step)]


def _offsets(observations: Observations) -> tuple[NDArray[np.int64], Floats]:
    """Return every bearing and its median of reading minus nominal range; medians, since people stand in the way."""
    groups = np.unique(observations.groups)
    difference = np.where(np.isfinite(observations.value), observations.value, np.nan) - observations.state[:, :1]
    offset = np.zeros(len(groups))
    for i, group in enumerate(groups):
        own = difference[observations.groups == group]
        own = own[np.isfinite(own)]
        offset[i] = np.median(own) if len(own) else 0.0
    return groups, offset
