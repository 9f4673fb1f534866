# SPDX-License-Identifier: Apache-2.0
"""Every field that a sensor file may have, with its unit and bounds; [pattern] is in pattern_config.py.

The fields follow Table 2 of Goodin et al. 2018 (paper 003), with firing order and timing added. The catalogue's
TOML files and a user's own are checked against the same models: frozen, unknown keys refused.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import NotNegative, Positive, Share, StrictParameters
from hedgerow.errors import InputError
from hedgerow.sensor.pattern_config import Planar, Rosette, Spinning

Mode = Literal["first", "strongest", "last", "strongest+last"]


class Beam(StrictParameters):
    """Shape of the light."""

    spot: Literal["circular", "rectangular", "elliptical"]
    """Cross section."""
    divergence_horizontal_mrad: NotNegative
    """Full angle."""
    divergence_vertical_mrad: NotNegative
    """Full angle."""
    aperture_horizontal_mm: NotNegative = 0.0
    """Width where it leaves the sensor: the beam is a truncated cone."""
    aperture_vertical_mm: NotNegative = 0.0
    """Height where it leaves the sensor."""
    wavelength_nm: Positive
    """Colour."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.spot == "circular" and self.divergence_horizontal_mrad != self.divergence_vertical_mrad:
            raise InputError("spot", "circular, but the two divergences differ; call it elliptical")
        return self


class Range(StrictParameters):
    """Limits and errors of the range."""

    min_m: NotNegative
    """Nothing nearer is seen."""
    max_m: Positive
    """Nothing farther is seen."""
    sigma_m: NotNegative
    """Standard deviation of the noise."""
    sigma_per_m2: NotNegative = 0.0
    """Added to sigma_m for each square metre of range squared (triangulation)."""
    step_m: NotNegative
    """Ranges are reported in multiples of this; 0 is exact."""
    dropout: Share = 0.0
    """Share of pulses that are lost at random."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_m <= self.min_m:
            raise InputError("max_m", f"{self.max_m:g} is not above min_m, {self.min_m:g}")
        return self


class Signal(StrictParameters):
    """How returns are picked from the light that comes back (003 section 3.2.3)."""

    mode: Mode
    """Used unless another is asked for."""
    modes: list[Mode] = Field(min_length=1)
    """All that the sensor can do."""
    cutoff_m: NotNegative
    """Light from within this distance of the chosen return is averaged with it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mode not in self.modes:
            raise InputError("mode", f"'{self.mode}' is not among modes {self.modes}")
        return self


class SensorConfig(StrictParameters):
    """A sensor file."""

    name: str = Field(min_length=1)
    """Short name, as in the catalogue."""
    maker: str
    """Who makes it."""
    about: str
    """What it is and what the model leaves out."""
    sources: list[str] = Field(min_length=1)
    """Where the figures come from."""
    encoder_step_deg: NotNegative
    """Smallest step of the reported rotor angle; 0 is exact."""
    beam: Beam
    """Shape of the light."""
    range: Range
    """Limits and errors of the range."""
    signal: Signal
    """Choice of returns."""
    pattern: Annotated[Spinning | Planar | Rosette, Field(discriminator="kind")]
    """Where it points and when."""
