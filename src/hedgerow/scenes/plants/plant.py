# SPDX-License-Identifier: Apache-2.0
"""Plant: a kind of plant, its parameters and how it grows from them and a seed; and the units of plant parameters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hedgerow.base.parameters import Extent, Length, Parameters
from hedgerow.errors import InputError
from hedgerow.scenes.mesh import MeshPart

Metres = Annotated[Length, Field(le=1000)]
MetresOrNone = Annotated[Extent, Field(le=1000)]
PerSquareMetre = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Angle = Annotated[float, Field(ge=0, le=180, allow_inf_nan=False)]
LeafArea = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
"""Leaf area of a plant [m²]."""
LeafAreaIndex = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
"""Leaf area over ground area; the densest forests reach about 20."""

MAX_TRIANGLES = 25_000_000
"""Most triangles of one plant or patch; growing them takes about 5 GB."""


class PlantParameters(Parameters):
    """Parameters of a kind of plant."""

    @property
    def n_triangles(self) -> float:
        """About how many triangles the plant has, known before it is grown."""
        return 0.0

    def require_few(self, field: str, what: str) -> None:
        """Refuse a plant of too many triangles.

        Args:
            field: which parameter to name, the one that most likely asks for them.
            what: what most of them are.

        Raises:
            InputError: there are too many.
        """
        n = self.n_triangles
        if n > MAX_TRIANGLES:
            raise InputError(field, f"gives {n:.3g} triangles of {what}; expected at most {MAX_TRIANGLES:,}")


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
