# SPDX-License-Identifier: Apache-2.0
"""Materials: how much light a surface sends back at a laser's wavelength, and how rough it is to the range.

The table is materials.toml, each figure with its source; a scene file may add materials or replace these.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import InputError
from hedgerow.world.surface_noise import SurfaceNoise

Reflectance = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Roughness = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class Material(StrictParameters):
    """A row of the table of materials."""

    about: str = ""
    """What the material is."""
    source: str = ""
    """Where the figures come from."""
    kind: Literal["lambertian", "retro"] = "lambertian"
    """lambertian: brightness falls with the cosine of the incidence angle; retro: it is the same at every angle."""
    wavelength_nm: list[Annotated[Positive, Field(le=1e6)]] = Field(min_length=1, max_length=10_000)
    """Wavelengths for which the reflectance is known, in rising order."""
    reflectance: list[Reflectance] = Field(min_length=1, max_length=10_000)
    """Share of light sent back at normal incidence, one number for each wavelength; retro-reflectors may exceed 1."""
    sigma0_m: Roughness = 0.0
    """Standard deviation of the range at normal incidence, from the roughness of the surface."""
    sigma_a_m: Roughness = 0.0
    """Growth of that standard deviation with the incidence angle (Browning 2012 eq. 1; docs/models.md §2)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        n, m = len(self.wavelength_nm), len(self.reflectance)
        if n != m:
            raise InputError("reflectance", f"{m} figures for {n} wavelengths; give one for each")
        if any(a >= b for a, b in zip(self.wavelength_nm, self.wavelength_nm[1:], strict=False)):
            raise InputError("wavelength_nm", f"{self.wavelength_nm} does not rise")
        if self.kind == "lambertian" and max(self.reflectance) > 1:
            raise InputError("reflectance", f"{max(self.reflectance):g} is above 1; only a retro-reflector can be")
        return self

    def at(self, wavelength_nm: float) -> "Surface":
        """Return what a laser of that wavelength meets: interpolated, or the nearest figure outside the table."""
        reflectance = float(np.interp(wavelength_nm, self.wavelength_nm, self.reflectance))
        return Surface(reflectance, self.kind == "lambertian", SurfaceNoise(self.sigma0_m, self.sigma_a_m))


class Surface(NamedTuple):
    """A material at one wavelength, as `Scene.add_mesh` takes it."""

    reflectance: float
    lambertian: bool
    noise: SurfaceNoise


@cache
def materials() -> Mapping[str, Material]:
    """Return the shipped table of materials by name."""
    table = read_toml(resources.files("hedgerow.scenes") / "materials.toml", "table of materials")
    return {name: Material.model_validate(content) for name, content in table.items()}
