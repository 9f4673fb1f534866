# SPDX-License-Identifier: Apache-2.0
"""Plant: a name, its parameters and how it grows from them and a seed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.physics.piece import Piece
from hedgerow.physics.plants.parameters import PlantParameters


@dataclass(frozen=True, slots=True)
class Plant:
    """One kind of plant."""

    name: str
    about: str
    """What it is."""
    parameters: type[PlantParameters]
    make: Callable[[Any, np.random.Generator], tuple[Piece, ...]]
    """Parameters and random numbers in, pieces that stand on (0, 0, 0) out; z is up, metres."""

    def grow(self, seed: int = 0, **values: Any) -> tuple[Piece, ...]:
        """Make one plant, for example `PLANTS["shrub"].grow(7, height_m=1.2)`.

        Raises:
            InputError: unknown name or value out of bounds; says which and what there is.
        """
        parameters = self.parameters.parse(values, self.name)
        return self.make(parameters, np.random.default_rng(seed))
