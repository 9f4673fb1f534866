# SPDX-License-Identifier: Apache-2.0
"""What each return gains if its own cell is surface, everything else being as it is.

Two whole worlds cannot be compared cell by cell: what a surface makes of the bush in front would count against the
wall behind it. So both stand in one scene, and each ray is asked twice: with the cell that it returned from made of
triangles, and of Gaussians. One pass over the beams tries all cells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.learners.evidence import cells_of, returned_m
from hedgerow.learners.permeability import scene_of
from hedgerow.learners.ray_sums import RayModel
from hedgerow.log import Log
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.hits import Pierced

_CHUNK = 1 << 15  # beams at a time: their crossings are all in memory


def triangle_cells(triangles: Triangles, cell_m: float) -> NDArray[np.int64]:
    """Return the (N, 4) cells of the three corners and the middle of each triangle: those that it belongs to.

    Where surface and volume meet, they overlap: a gap would let beams through that neither world does.
    """
    places_m = np.concatenate([triangles.corners_m, triangles.centre_m()[:, None]], axis=1)
    return cells_of(places_m.reshape(-1, 3), cell_m).reshape(-1, 4)


class Swap:
    """Gaussians and triangles in one scene, some cells of which are surface."""

    def __init__(
        self, gaussians: Gaussians, triangles: Triangles, freed: NDArray[np.bool_], model: RayModel, cell_m: float
    ) -> None:
        """Build the scene once; `freed` is the mask of the Gaussians that triangles of the same cell replace."""
        self.model, self.cell_m = model, cell_m
        self._scene = scene_of((gaussians, triangles))
        self._n_gaussians = len(gaussians)
        self._home = np.where(freed, cells_of(gaussians.mean_m, cell_m), -1)
        self._owners = triangle_cells(triangles, cell_m)

    def gains(self, log: Log, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how much more likely each return is with its own cell as surface than as volume.

        Args:
            log: N beams, all of which returned.
            chosen: cells that are surface, whatever becomes of the beam's own.

        Returns:
            (N,) differences of log densities [nat].
        """
        state = np.isin(self._home, chosen), np.isin(self._owners, chosen)
        out = np.empty(len(log))
        for start in range(0, len(log), _CHUNK):
            rows = slice(start, start + _CHUNK)
            out[rows] = self._gains(log[rows], *state)
        return out

    def _gains(self, log: Log, gone: NDArray[np.bool_], owned: NDArray[np.bool_]) -> NDArray[np.float64]:
        met = self._scene.pierced(log.beams, max_range_m=self.model.max_range_m)
        beam = np.repeat(np.arange(len(log)), np.diff(met.begin))
        cell = cells_of(returned_m(log), self.cell_m)[beam]
        surface, volume = np.empty((2, len(beam)), dtype=np.bool_)
        is_volume = met.element < self._n_gaussians
        element = met.element[is_volume]
        own = self._home[element] == cell[is_volume]
        surface[is_volume], volume[is_volume] = ~(gone[element] | own), ~gone[element] | own
        element = met.element[~is_volume] - self._n_gaussians
        own = self._owners[element] == cell[~is_volume, None]
        surface[~is_volume] = (owned[element] | own).any(axis=1)
        volume[~is_volume] = (owned[element] & ~own).any(axis=1)
        shares = _shares(met, log.returns.first_m.astype(np.float64)[beam], self.model)
        return _log_density(met, shares, surface, self.model) - _log_density(met, shares, volume, self.model)


@dataclass(frozen=True, slots=True, eq=False)
class _Shares:
    """What each crossing is worth to its ray, if the ray gets there."""

    passing: NDArray[np.float64]
    density: NDArray[np.float64]
    """Probability of stopping here times the density of the measured range [1/m]."""


def _shares(met: Pierced, range_m: NDArray[np.float64], model: RayModel) -> _Shares:
    passing = met.permeability.astype(np.float64)
    sigma_m = np.maximum(met.sigma_m.astype(np.float64), model.min_sigma_m)
    normal = np.exp(-0.5 * ((range_m - met.mean_m) / sigma_m) ** 2) / (np.sqrt(2 * np.pi) * sigma_m)
    return _Shares(passing, (1 - passing) * normal)


def _log_density(met: Pierced, shares: _Shares, there: NDArray[np.bool_], model: RayModel) -> NDArray[np.float64]:
    """Log density of each ray's range, outliers included, if only some of the crossings are there."""
    passing, density = np.where(there, shares.passing, 1.0), np.where(there, shares.density, 0.0)
    n_met = np.diff(met.begin)
    order = np.argsort(-n_met, kind="stable")  # rays with many crossings first: those still going are always a front
    first, n_met = met.begin[:-1][order], n_met[order]
    reaching, total = np.ones(len(order)), np.zeros(len(order))
    for number in range(int(n_met.max(initial=0))):
        going = int(np.searchsorted(-n_met, -number))  # rays with more than `number` crossings
        row = first[:going] + number
        total[:going] += reaching[:going] * density[row]
        reaching[:going] *= passing[row]
    share = model.outlier_share
    out = np.empty(len(order))
    out[order] = np.log((1 - share) * total + share / (model.max_range_m - model.min_range_m))
    return out
