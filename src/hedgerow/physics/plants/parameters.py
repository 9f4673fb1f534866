# SPDX-License-Identifier: Apache-2.0
"""What the parameters of all plants share, and the units in which they are given."""

from typing import Annotated

from pydantic import Field

from hedgerow.base.parameters import Parameters

Metres = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
PerSquareMetre = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
Angle = Annotated[float, Field(ge=0, le=180)]

MAX_STEMS = 20_000_000
"""Most stems, blades or leaves of one plant or patch; about 8 GB of mesh."""


class PlantParameters(Parameters):
    """Parameters of a plant."""
