# SPDX-License-Identifier: Apache-2.0
"""Stage: everything that can be shown, read and fired when it is asked for, and kept as far as the memory goes."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.evaluate.sources import require_same_beams, within
from hedgerow.log import Log
from hedgerow.view.web.kept import Kept
from hedgerow.view.web.layers import Layer
from hedgerow.world import LearnedWorld

KEPT_BEAMS = 12_000_000
"""Beams of all kept sweeps together: about 0.9 GB."""
KEPT_VALUES = 40_000_000
_AROUND = 8
"""Places of the way, before and after, that tell the heading."""


def _no_way() -> NDArray[np.float64]:
    return np.zeros((0, 3))


@dataclass(frozen=True)
class Solid:
    """A world whose elements are shown themselves."""

    name: str
    world: LearnedWorld


@dataclass
class Stage:
    """Layers and solids in one map frame."""

    layers: list[Layer]
    """The first one says which sweeps there are, and is what the others are compared with."""
    solids: list[Solid] = field(default_factory=list[Solid])
    centre_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) whole metres, map frame: the browser has float32 and gets coordinates relative to this."""
    map_origin_m: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    """(3,) of the map that everything is shown in."""
    way_m: NDArray[np.float64] = field(default_factory=_no_way)
    """(K, 3) where the sensor went, map frame."""

    def __post_init__(self) -> None:
        """Start with nothing kept."""
        self._sweeps: Kept[Log] = Kept(KEPT_BEAMS, len)
        self._values: Kept[NDArray[np.float64]] = Kept(KEPT_VALUES, len)

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Numbers of the sweeps to step through."""
        return self.layers[0].sweeps if self.layers else np.zeros(0, dtype=np.int32)

    @property
    def partners(self) -> list[int]:
        """Which layers can be compared with the first one."""
        return list(range(1, len(self.layers)))

    def shift_m(self, map_origin_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (3,) offset that takes coordinates of another map to this one; 0 where one origin is unknown."""
        known = map_origin_m.any() and self.map_origin_m.any()
        return map_origin_m - self.map_origin_m if known else np.zeros(3)

    def window(self, position: int, accumulate: int) -> list[int]:
        """Return the numbers of the sweep at a position of the slider and of those before it, `accumulate` in all."""
        return self.sweeps[max(0, position - accumulate + 1) : position + 1].tolist()

    def sweep(self, layer: int, number: int) -> Log | None:
        """Return a sweep of a layer; None if it has none of that number."""
        chosen = self.layers[layer]
        if number not in chosen.sweeps:
            return None
        return self._sweeps.get((layer, number), lambda: chosen.read(number))

    def place_m(self, position: int) -> NDArray[np.float64]:
        """Return the (3,) middle of the sensor's places during the sweep at a position of the slider, map frame."""
        log = self.sweep(0, int(self.sweeps[position])) if len(self.sweeps) else None
        return self.centre_m if log is None else log.beams.origin_m.mean(axis=0)

    def heading(self, position: int) -> NDArray[np.float64]:
        """Return the (3,) level unit vector along which the sensor goes there; x if it stands still."""
        if len(self.way_m) < 2:
            return np.array([1.0, 0.0, 0.0])
        here = int(np.argmin(np.linalg.norm(self.way_m - self.place_m(position), axis=1)))
        some = self.way_m[max(0, here - _AROUND) : here + _AROUND + 1]
        step = (some[-1] - some[0]) * [1, 1, 0]
        length = float(np.linalg.norm(step))
        return step / length if length > 0.1 else np.array([1.0, 0.0, 0.0])

    def range_error(self, simulated: int, number: int) -> NDArray[np.float64] | None:
        """Return how much farther each beam of a sweep reached in a simulation than in reality.

        Args:
            simulated: which layer is compared with the first.
            number: which sweep.

        Returns:
            (N,) simulated minus real range of the first returns [m], NaN where one of them is missing; None if the
            layer lacks the sweep.

        Raises:
            InputError: the layer holds other beams.
        """
        real, other = self.sweep(0, number), self.sweep(simulated, number)
        if real is None or other is None:
            return None
        return self._values.get(
            ("error", simulated, number), lambda: _difference(self.layers[simulated].name, real, other)
        )

    def log_likelihood(self, simulated: int, number: int) -> NDArray[np.float64]:
        """Return the (N,) log density that a layer's world gives what was really measured.

        Raises:
            InputError: the layer knows no densities, or the log has no maximal range.
        """
        layer, real = self.layers[simulated], self.sweep(0, number)
        world = layer.world
        if world is None or not world.has_likelihood or real is None:
            raise InputError(f"{layer.name}", "has no densities; learned worlds do")
        return self._values.get(("likelihood", simulated, number), lambda: world.log_likelihood(real))


def _difference(name: str, real: Log, simulated: Log) -> NDArray[np.float64]:
    require_same_beams(name, real, simulated)
    here, there = real.returns.first_m, within(simulated.returns.first_m, real)
    both = np.isfinite(here) & np.isfinite(there)
    error = np.full(len(real), np.nan)
    error[both] = there[both].astype(np.float64) - here[both]
    return error
