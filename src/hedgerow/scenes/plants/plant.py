# SPDX-License-Identifier: Apache-2.0
"""Plant: a kind of plant, its parameters and how it grows from them and a seed; and the units of plant parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hedgerow.base.parameters import Parameters
from hedgerow.scenes.mesh import MeshPart

Metres = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
PerSquareMetre = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Angle = Annotated[float, Field(ge=0, le=180)]

MAX_STEMS = 20_000_000
"""Most stems, blades or leaves of one plant or patch; about 8 GB of mesh."""


class PlantParameters(Parameters):
    """Parameters of a kind of plant."""


@dataclass(frozen=True, slots=True)
class Plant:
    """One kind of plant: a row of the table PLANTS."""

    name: str
    """What scene files call it."""
    about: str
    """What it is, in a few words."""
    parameters: type[PlantParameters]
    """What can be set, with defaults and bounds."""
    make: Callable[[Any, np.random.Generator], tuple[MeshPart, ...]]
    """Takes parameters and random numbers, returns mesh parts that stand on (0, 0, 0); z is up, metres."""

    def grow(self, seed: int = 0, **values: Any) -> tuple[MeshPart, ...]:
        """Make one plant, for example `PLANTS["shrub"].grow(7, height_m=1.2)`.

        Raises:
            InputError: unknown name or value out of bounds; says which and what there is.
        """
        parameters = self.parameters.parse(values, self.name)
        return self.make(parameters, np.random.default_rng(seed))
