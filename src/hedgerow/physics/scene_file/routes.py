# SPDX-License-Identifier: Apache-2.0
"""Fields of a scene file for named passes of the sensor: [trajectories.*]."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, Positive, StrictParameters
from hedgerow.errors import InputError
from hedgerow.physics.scene_file.ground import Path, Point


class ArcSpec(StrictParameters):
    """Places on a circle, looking at its middle."""

    centre_m: Point
    """Middle."""
    radius_m: Positive
    """Distance from it."""
    from_deg: Finite = 0.0
    """First bearing from the middle, counter-clockwise from x."""
    to_deg: Finite = 90.0
    """Last bearing."""
    n_poses: int = Field(default=91, ge=2, le=100_000)
    """Number of places, ends included."""


class PassSpec(StrictParameters):
    """One pass: along waypoints, along the trail, round an arc, or standing."""

    waypoints_m: Path | None = None
    """Corners of the way."""
    along_trail: bool = False
    """Or, along the middle line of the trail."""
    arc: ArcSpec | None = None
    """Or, round a point."""
    standing_m: Point | None = None
    """Or, stay here."""
    from_m: Annotated[float, Field(ge=0)] = 0.0
    """Leave out so much of the way at its start."""
    to_m: Positive | None = None
    """End here, measured along the way. Default: at its end."""
    offset_m: Finite = 0.0
    """How far to the left of that line."""
    smooth: bool = True
    """Whether the way runs through the waypoints as a smooth curve."""
    speed_mps: Positive = 5.0
    """Speed."""
    duration_s: Positive = 60.0
    """How long to stand."""
    yaw_deg: Finite = 0.0
    """Where to look while standing, counter-clockwise from x."""
    height_m: Finite = 2.0
    """Height of the sensor above the ground."""
    follow_terrain: bool = True
    """Whether the ground is followed; else height_m is a height of the map."""
    pitch: bool = False
    """Whether the sensor nods with the ground along the way; else it stays level."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        ways = {"waypoints_m": self.waypoints_m, "arc": self.arc, "standing_m": self.standing_m}
        given = [name for name, value in ways.items() if value is not None] + ["along_trail"] * self.along_trail
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise InputError("waypoints_m", f"give one of waypoints_m, along_trail, arc and standing_m; found {found}")
        if self.to_m is not None and self.to_m <= self.from_m:
            raise InputError("to_m", f"{self.to_m:g} is not beyond from_m, {self.from_m:g}")
        return self
