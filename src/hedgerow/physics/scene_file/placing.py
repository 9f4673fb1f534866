# SPDX-License-Identifier: Apache-2.0
"""Fields of a scene file for where things are: [objects.*] one by one, [scatter.*] by rule."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, NotNegative, Positive, StrictParameters
from hedgerow.errors import InputError
from hedgerow.physics.scene_file.ground import Point

Span = Annotated[list[Finite], Field(min_length=2, max_length=2)]


class RepeatSpec(StrictParameters):
    """More copies in a row."""

    count: int = Field(ge=1, le=1_000_000)
    """How many in all."""
    step_m: Annotated[list[Finite], Field(min_length=2, max_length=3)]
    """From one to the next, x and y, or x, y and z."""


class ObjectSpec(StrictParameters):
    """A thing, or a row of it, at a place."""

    what: str
    """Name of a plant, mesh, shape or world of this file."""
    at_m: Annotated[list[Finite], Field(min_length=2, max_length=3)]
    """x and y: it stands on the ground; x, y and z: exactly there."""
    yaw_deg: Finite = 0.0
    """Turned about the vertical, counter-clockwise."""
    pitch_deg: Finite = 0.0
    """Turned about its y axis before that: 90 lays it down along x."""
    scale: Positive = 1.0
    """Larger or smaller."""
    repeat: RepeatSpec | None = None
    """A row of copies."""
    variant: int | None = Field(default=None, ge=0)
    """Which variant of a plant. Default: the first for the first copy, and so on."""


class ScatterSpec(StrictParameters):
    """A thing at random places."""

    what: str
    """Name of a plant, mesh, shape or world of this file."""
    density_per_m2: Positive | None = None
    """Copies (of a grass: blades) per square metre of allowed ground, on average."""
    count: int | None = Field(default=None, ge=1, le=50_000_000)
    """Or, how many copies."""
    box_m: Annotated[list[Finite], Field(min_length=4, max_length=4)] | None = None
    """Only here: least x, least y, largest x, largest y."""
    polygon_m: Annotated[list[Point], Field(min_length=3)] | None = None
    """Only inside this polygon, given by its corners."""
    slope_deg: Span | None = None
    """Only where the ground is inclined by this much, from and to."""
    trail_distance_m: Span | None = None
    """Only this far from the middle line of the trail, from and to."""
    away_from: dict[str, NotNegative] = Field(default_factory=dict[str, NotNegative])
    """Not within so many metres of what these rules and objects, named earlier in the file, have placed."""
    spacing_m: NotNegative = 0.0
    """Least distance between two copies."""
    scale: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    """Uniform between these. Default: all as they are."""
    yaw_deg: Span = Field(default_factory=lambda: [0.0, 360.0])
    """Uniform between these."""
    tilt_deg: Annotated[float, Field(ge=0, le=90)] = 0.0
    """Tilted to a random side by a uniform angle up to this."""
    sink_m: Finite = 0.0
    """How deep the foot stands in the ground."""
    max_gap_m: Positive = 0.05
    """Merged patches only: how far a patch may be off the ground before it is cut smaller."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.density_per_m2 is None) == (self.count is None):
            raise InputError("density_per_m2", "give either density_per_m2 or count")
        if self.box_m is not None and self.polygon_m is not None:
            raise InputError("polygon_m", "give either polygon_m or box_m")
        if self.box_m is not None and not (self.box_m[0] < self.box_m[2] and self.box_m[1] < self.box_m[3]):
            raise InputError("box_m", f"{self.box_m} has no area; expected least x, least y, largest x, largest y")
        for name in ("slope_deg", "trail_distance_m", "scale", "yaw_deg"):
            span = getattr(self, name)
            if span is not None and span[0] > span[1]:
                raise InputError(name, f"{span[0]:g} is above {span[1]:g}; expected from and to")
        return self
