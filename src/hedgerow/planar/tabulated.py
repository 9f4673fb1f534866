# SPDX-License-Identifier: Apache-2.0
"""TabulatedModel: any sensor model, looked up in a table over range and incidence instead of computed.

A particle filter asks for millions of densities, a simulator for thousands of scans a second. The table holds the
distribution at the nodes of a grid. Between nodes it is their bilinear mixture, which is a distribution again:
densities are interpolated, and a draw takes one of the four nodes by its weight, then a quantile of that node. Models
that treat each bearing by itself get a table for every bearing.
"""

from typing import Any

import numpy as np

from hedgerow.base.arguments import as_positive
from hedgerow.errors import InputError
from hedgerow.planar.regression import Floats, Observations, Scale
from hedgerow.planar.sensor_model import SensorModel, States

_LEVELS = 1024
"""Quantiles of a node; between them levels differ by 0.001."""
_MOST = 200_000_000
"""Most numbers in a table, 800 MB."""
MOST_INCIDENCE_RAD = np.pi / 2


class TabulatedModel(SensorModel):
    """A table of another model."""

    kind = "tabulated"

    def __init__(
        self,
        model: SensorModel,
        *,
        range_step_m: float = 0.05,
        incidence_step_rad: float = np.pi / 36,
        groups: Any = (0,),
    ) -> None:
        """Ask the model at every node.

        Args:
            model: what to tabulate.
            range_step_m: distance of nodes in range.
            incidence_step_rad: distance of nodes in incidence.
            groups: bearings to make tables for; one for all if the model pools them.

        Raises:
            InputError: the table would be too large.
        """
        self.model, self.scale, self.open_null = model, model.scale, model.open_null
        high = model.scale.high_m + as_positive("range_step_m", range_step_m)
        self._range = np.arange(0.0, high + range_step_m, range_step_m)
        n_incidence = int(np.ceil(MOST_INCIDENCE_RAD / as_positive("incidence_step_rad", incidence_step_rad))) + 1
        self._incidence = np.linspace(0.0, MOST_INCIDENCE_RAD, n_incidence)
        self._groups = np.unique(np.asarray(groups, dtype=np.int64))
        shape = (len(self._groups), len(self._range), n_incidence)
        n_nodes = int(np.prod(shape))
        if n_nodes * (self.scale.n_bins + 1) > _MOST:
            raise InputError("range_step_m", f"the table would have {n_nodes:,} nodes; make the steps larger")
        group, range_m, incidence = np.meshgrid(self._groups, self._range, self._incidence, indexing="ij")
        feature = np.column_stack([range_m.ravel(), incidence.ravel()])
        states = States(feature, group.ravel())
        self._mass = np.empty((n_nodes, self.scale.n_bins + 1), dtype=np.float32)
        for begin in range(0, n_nodes, 500):
            self._mass[begin : begin + 500] = model.histogram(states[begin : begin + 500]).T
        self._quantile: Floats | None = None

    def density_at(self, states: States, reading_m: Floats) -> Floats:
        """Return interpolated densities, or null probabilities."""
        node, weight = self._corners(states)
        bins = self.scale.bin_of(reading_m)
        mass: Floats = np.sum(self._mass[node, bins] * weight, axis=0)
        return np.where(np.isinf(reading_m), mass, mass / self.scale.step_m)

    def quantile_at(self, states: States, level: Floats) -> Floats:
        """Return a quantile of one of the four nodes: the level says which, and how far in it."""
        node, weight = self._corners(states)
        before = np.zeros(len(states))
        left = level.copy()
        chosen, within = node[3].copy(), np.zeros(len(states))
        for place in range(4):
            here = (left >= before) & (left < before + weight[place])
            chosen[here] = node[place][here]
            within[here] = ((left - before) / np.maximum(weight[place], 1e-300))[here]
            before = before + weight[place]
        table = self._quantiles()
        return table[chosen, np.minimum((within * _LEVELS).astype(int), _LEVELS - 1)]

    def settings(self) -> dict[str, Any]:
        """Refuse: a table is made from its model in a moment; save that."""
        raise InputError("model", "is a table of another model; save that model, and tabulate it again")

    @classmethod
    def restore(cls, scale: Scale, settings: dict[str, Any], observations: Observations | None) -> "TabulatedModel":
        """Refuse: tables are not stored."""
        raise ValueError("tables are not stored")

    def _quantiles(self) -> Floats:
        if self._quantile is None:
            values = np.append(self.scale.values(), np.inf)
            levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
            above = np.cumsum(self._mass, axis=1, dtype=np.float64)
            place = np.empty((len(above), _LEVELS), dtype=np.intp)
            for node, row in enumerate(above):
                place[node] = np.searchsorted(row, levels * row[-1])
            self._quantile = values[np.minimum(place, len(values) - 1)]
        return self._quantile

    def _corners(self, states: States) -> tuple[Any, Floats]:
        """Return (4, Q) nodes around each state and their weights."""
        row = np.zeros(len(states), np.int64)
        if len(self._groups) > 1:
            row = np.clip(np.searchsorted(self._groups, states.group), 0, len(self._groups) - 1)
        ranges, n_incidence = len(self._range), len(self._incidence)
        i, u = _place(states.feature[:, 0], self._range)
        j, v = _place(states.feature[:, 1], self._incidence)
        first = (row * ranges + i) * n_incidence + j
        node = np.stack([first, first + 1, first + n_incidence, first + n_incidence + 1])
        return node, np.stack([(1 - u) * (1 - v), (1 - u) * v, u * (1 - v), u * v])


def _place(value: Floats, grid: Floats) -> tuple[Any, Floats]:
    """Return the node below each value and how far it is on the way to the next, 0 to 1."""
    scaled = np.clip((value - grid[0]) / (grid[1] - grid[0]), 0.0, len(grid) - 1 - 1e-9)
    below = scaled.astype(np.int64)
    return below, scaled - below
