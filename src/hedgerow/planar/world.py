# SPDX-License-Identifier: Apache-2.0
"""PlanarWorld: a map of segments and a model of the sensor, together a World; and readings of logs to train it from.

    world = PlanarWorld(site.scene(), model, n_bearings=360)
    log = world.fire(beams, seed=7)             # as any other world
    world.log_likelihood(log)

The map gives each beam its nominal range and incidence, the model says how readings are distributed there. Bearings are
drawn independently unless a copula joins neighbours (copula.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import randomness
from hedgerow.base.arguments import as_whole, require_kind
from hedgerow.base.box import Box
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.planar.copula import NeighbourCopula
from hedgerow.planar.regression import Observations
from hedgerow.planar.sensor_model import STREAM, SensorModel, States
from hedgerow.planar.site import nominal_states
from hedgerow.world.scene import Scene
from hedgerow.world.world import Shot, World, require_end_of_range


class PlanarWorld(World):
    """Walls of a map, seen by a learned sensor."""

    has_noise = True
    has_likelihood = True

    def __init__(
        self, scene: Scene, model: SensorModel, n_bearings: int, *, copula: NeighbourCopula | None = None
    ) -> None:
        """Put a sensor model before a map.

        Args:
            scene: the map, raised (`PlanarSite.scene`).
            model: of the sensor.
            n_bearings: readings in a scan; the bearing of a beam is its pulse number modulo this.
            copula: how neighbouring bearings hang together. Default: not at all.
        """
        require_kind("scene", scene, Scene, "a Scene; PlanarSite.scene() gives one")
        require_kind("model", model, SensorModel, "a SensorModel")
        super().__init__(min_range_m=max(0.0, model.scale.low_m), max_range_m=model.scale.high_m)
        self.scene, self.model, self.copula = scene, model, copula
        self.n_bearings = as_whole("n_bearings", n_bearings, 1, 1_000_000)

    @property
    def box(self) -> Box | None:
        """From where to where the map reaches."""
        return self.scene.box

    def provenance(self) -> dict[str, Any]:
        """Return the kind of world and of sensor model."""
        return super().provenance() | {"sensor_model": self.model.kind, "copula": self.copula is not None}

    def states(self, beams: Beams) -> States:
        """Return the features of every beam."""
        return nominal_states(self.scene, beams, self.n_bearings, self.model.scale.high_m)

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Draw one reading for each beam."""
        states = self.states(beams)
        if self.copula is None:
            level = randomness.uniform(shot.seed, beams.pulse, STREAM)
        else:
            level = self.copula.levels(shot.seed, beams.pulse)
        reading_m = self.model.quantile(states, level).astype(np.float32)
        seen = (reading_m > 0) & (reading_m >= shot.min_range_m) & (reading_m <= shot.max_range_m)
        return Returns(np.where(seen, reading_m, np.float32(np.inf)))

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the log density of each reading; a copula is not regarded: they are the densities of each alone."""
        require_end_of_range(log)
        return self.model.log_density(self.states(log.beams), log.returns.first_m.astype(np.float64))


def readings_of(log: Log, scene: Scene, n_bearings: int, max_range_m: float) -> Observations:
    """Take training readings from a posed log: one at each state, or many where scans were taken from one pose.

    Args:
        log: a planar log, all scans of `n_bearings` readings.
        scene: the map, raised.
        n_bearings: readings in a scan.
        max_range_m: what the sensor can see.

    Returns:
        A row for each bearing of each pose that meets the map.

    Raises:
        InputError: no beam of the log meets the map.
    """
    scans = len(log) // n_bearings
    if scans * n_bearings != len(log):
        raise InputError("log", f"has {len(log)} beams, which are no whole scans of {n_bearings}")
    states = nominal_states(scene, log.beams, n_bearings, max_range_m)
    value = log.returns.first_m.astype(np.float64)
    value[value > max_range_m] = np.inf
    seen = ~states.is_open
    if not seen.any():
        raise InputError("log", "none of its beams meets the map; are both in one frame?")
    return _same_states(states[seen], value[seen])


def _same_states(states: States, value: NDArray[np.float64]) -> Observations:
    """Put readings of one bearing at one state into one row."""
    key = np.column_stack([states.group, states.feature])
    _, first, place = np.unique(key, axis=0, return_index=True, return_inverse=True)
    place = place.reshape(-1)
    order = np.argsort(place, kind="stable")
    counts = np.bincount(place)
    column = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((len(counts), counts.max()), np.nan)
    table[place[order], column] = value[order]
    return Observations(states.feature[first], table, states.group[first])
