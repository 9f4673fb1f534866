# SPDX-License-Identifier: Apache-2.0
"""World: anything that answers `fire(beams, seed) -> Log`; SceneWorld does it with one native scene."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.sensor import Sensor
from hedgerow.world.scene import Progress, Scene


@runtime_checkable
class World(Protocol):
    """Something to fire beams at."""

    def fire(self, beams: Beams, seed: int = 0, *, sensor: Sensor | None = None) -> Log:
        """Fire the beams and return them with their first returns; `sensor` sets name and range limits."""
        ...


class SceneWorld:
    """A world over one native scene."""

    def __init__(self, scene: Scene, *, min_range_m: float = 0.0, max_range_m: float = np.inf) -> None:
        """Wrap a scene; the range limits hold where no sensor is named."""
        self.scene = scene
        self.min_range_m = min_range_m
        self.max_range_m = max_range_m

    def fire(
        self,
        beams: Beams,
        seed: int = 0,
        *,
        sensor: Sensor | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Log:
        """Fire the beams through the world.

        Args:
            beams: map frame, in any order.
            seed: same seed, same answer, on any number of threads.
            sensor: sets the log's sensor name and range limits; the world's own limits if None.
            threads: 0 for all.
            progress: called between batches with the number of beams done.

        Returns:
            The beams with the first return of each: range, intensity, label and element.
        """
        min_range_m, max_range_m = self._limits(sensor)
        hits = self.scene.fire(
            beams, seed=seed, min_range_m=min_range_m, max_range_m=max_range_m, threads=threads, progress=progress
        )
        returns = Returns.trusted(
            {"range_m": hits.range_m, "intensity": hits.intensity, "label": hits.label, "element": hits.element}
        )
        return Log(
            beams,
            returns,
            sensor="" if sensor is None else sensor.name,
            min_range_m=min_range_m,
            max_range_m=max_range_m,
            metadata={"seed": seed},
        )

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Give the log density of each pulse's first return, or of its absence, within the log's own limits.

        Returns:
            (N,) natural logarithms; -inf where the world says it cannot be.

        Raises:
            InputError: the log has no maximal range, so "no return" would mean nothing.
        """
        if not np.isfinite(log.max_range_m) and not log.returns.hit.all():
            raise InputError("log: has missing returns but no max_range_m; say within what range nothing came back")
        return self.scene.log_likelihood(
            log.beams,
            np.ascontiguousarray(log.returns.first_m),
            min_range_m=log.min_range_m,
            max_range_m=log.max_range_m,
            min_sigma_m=min_sigma_m,
            threads=threads,
            progress=progress,
        )

    def _limits(self, sensor: Sensor | None) -> tuple[float, float]:
        if sensor is None:
            return self.min_range_m, self.max_range_m
        return sensor.min_range_m, sensor.max_range_m
