# SPDX-License-Identifier: Apache-2.0
"""Fields of a scene file for the ground: [terrain] and [trail]."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, NotNegative, Positive, StrictParameters
from hedgerow.errors import InputError

Point = Annotated[list[Finite], Field(min_length=2, max_length=2)]
"""x and y, map frame [m]."""
Size = Annotated[list[Positive], Field(min_length=2, max_length=2)]
"""Extent in x and y [m]."""
Path = Annotated[list[Point], Field(min_length=2)]
"""Corners of a line."""


class TerrainSpec(StrictParameters):
    """The ground."""

    kind: Literal["flat", "noise", "raster"] = "flat"
    """Flat; hills by smooth noise; or heights from a GeoTIFF or PNG."""
    size_m: Size | None = None
    """Extent in x and y, around middle_m; not for a raster, which has its own."""
    middle_m: Point = Field(default_factory=lambda: [0.0, 0.0])
    """Where the middle is; a raster is moved there if this is given."""
    height_m: Finite = 0.0
    """Height of flat ground, or added to the others'."""
    spacing_m: Positive = 0.5
    """Grid spacing of noise; a flat terrain is two triangles unless a trail is cut into it."""
    relief_m: NotNegative = 2.0
    """Noise: from the lowest to the highest point."""
    wavelength_m: Positive = 30.0
    """Noise: spacing of the largest hills."""
    octaves: int = Field(default=5, ge=1, le=16)
    """Noise: number of wavelengths, each half the one before."""
    roughness: Annotated[float, Field(ge=0, le=1)] = 0.45
    """Noise: amplitude of each against the one before."""
    seed: int | None = Field(default=None, ge=0)
    """Noise: seed of the hills. Default: the scene's."""
    file: str | None = None
    """Raster: the file, relative to the scene file."""
    metres_per_pixel: Positive | None = None
    """Raster: for pictures that do not say."""
    height_range_m: Annotated[list[Finite], Field(min_length=2, max_length=2)] | None = None
    """Raster: heights of black and white, for pictures."""
    material: str = "soil"
    """Name in the table of materials."""
    label: str = "ground"
    """Semantic class."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "raster" and self.file is None:
            raise InputError("file", "missing; a raster needs one")
        if self.kind != "raster" and self.size_m is None:
            raise InputError("size_m", "missing; expected the extent in x and y [m]")
        if self.kind != "raster" and self.file is not None:
            raise InputError("file", f"only a raster has one, but kind is {self.kind}")
        return self


class TrailSpec(StrictParameters):
    """A road or trail cut into the ground."""

    path_m: Path
    """Corners of its middle line; rounded off unless smooth is false."""
    smooth: bool = True
    """Whether the line runs through the corners as a smooth curve."""
    width_m: Positive = 3.0
    """Width of the driven part."""
    shoulder_m: NotNegative = 1.0
    """Beyond that, the ground blends back to what it was."""
    sunk_m: Finite = 0.0
    """How far the trail lies below the ground."""
    rut_depth_m: NotNegative = 0.0
    """Depth of two wheel ruts."""
    rut_width_m: Positive = 0.4
    """Width of a rut."""
    rut_gauge_m: Positive = 1.6
    """Distance between the ruts."""
    material: str = "gravel"
    """Name in the table of materials."""
    label: str = "trail"
    """Semantic class."""
