# SPDX-License-Identifier: Apache-2.0
"""Layers: clouds that can be shown over each other, each read or fired sweep by sweep."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Numbers
from hedgerow.errors import InputError
from hedgerow.frames import Trajectory
from hedgerow.log import Log
from hedgerow.simulate import Simulation, replay, require_same_map
from hedgerow.world import World

Rgb = tuple[int, int, int]
OWN_COLOURS: tuple[Rgb, ...] = ((86, 180, 233), (230, 159, 0), (0, 200, 140), (220, 110, 190), (240, 228, 66))
"""Of the layers in turn: Okabe and Ito's, told apart by colour-blind eyes too, and bright on black."""


class Recording(Protocol):
    """A log of which sweeps are read by number: what `open_log` gives."""

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        ...

    def read(self, sweeps: Numbers | None = None) -> Log:
        """Read these sweeps."""
        ...


@dataclass(frozen=True)
class Layer:
    """One cloud."""

    name: str
    sweeps: NDArray[np.int32]
    """Numbers of the sweeps there are, ascending."""
    read: Callable[[int], Log]
    """Gives the sweep of that number."""
    colour: Rgb = OWN_COLOURS[0]
    """Its own, where clouds are told apart by colour."""
    world: World | None = None
    """What the sweeps were fired at; None for a recording."""
    way_m: NDArray[np.float64] | None = None
    """(K, 3) where the sensor goes, map frame; None if only its beams tell."""

    @property
    def is_fired(self) -> bool:
        """Whether it is a simulation made here."""
        return self.world is not None


def recorded(name: str, recording: Recording) -> Layer:
    """Return the layer of a log."""
    trajectory: Trajectory | None = getattr(recording, "trajectory", None)  # most formats have one; Parquet has not
    way_m = None if trajectory is None else trajectory.position_m
    return Layer(name, recording.sweeps, lambda number: recording.read(number), way_m=way_m)


def fired(name: str, world: World, real: Layer, seed: int) -> Layer:
    """Return the layer of a world at which the beams of another layer are fired; same seed, same cloud.

    Args:
        name: what to call it.
        world: what to fire at.
        real: whose beams.
        seed: for firing.
    """

    def fire(number: int) -> Log:
        recording = real.read(number)
        require_same_map(name, world, recording)
        return replay(world, recording, seed=seed)

    return Layer(name, real.sweeps, fire, world=world)


def driven(name: str, simulation: Simulation) -> Layer:
    """Return the layer of a drive through a world, its sweeps fired when they are looked at."""
    numbers = np.arange(len(simulation), dtype=np.int32)
    way_m = simulation.trajectory.position_m
    return Layer(name, numbers, simulation.sweep, world=simulation.world, way_m=way_m)


def named_apart(layers: list[Layer]) -> list[Layer]:
    """Give each layer its own colour, and a number where two have one name."""
    names = [layer.name for layer in layers]
    done: list[Layer] = []
    for i, layer in enumerate(layers):
        name = layer.name if names.count(layer.name) == 1 else f"{layer.name} ({names[: i + 1].count(layer.name)})"
        done.append(replace(layer, name=name, colour=OWN_COLOURS[i % len(OWN_COLOURS)]))
    return done


def require_sweeps(layer: Layer) -> None:
    """Raise InputError if a log is empty."""
    if len(layer.sweeps) == 0:
        raise InputError(f"{layer.name}", "has no beams; there is nothing to see")
