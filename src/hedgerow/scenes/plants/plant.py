# SPDX-License-Identifier: Apache-2.0
"""Plant: a name, its parameters and how it grows from them and a seed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hedgerow.base.parameters import Parameters
from hedgerow.scenes.mesh import Piece

# What the parameters of all plants share, and the units in which they are given.


Metres = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
PerSquareMetre = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Angle = Annotated[float, Field(ge=0, le=180)]

MAX_STEMS = 20_000_000
"""Most stems, blades or leaves of one plant or patch; about 8 GB of mesh."""


class PlantParameters(Parameters):
    """Parameters of a plant."""


# Plant: a name, its parameters and how it grows from them and a seed.


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
