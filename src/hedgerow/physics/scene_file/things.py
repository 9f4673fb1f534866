# SPDX-License-Identifier: Apache-2.0
"""Fields of a scene file for what can be placed: [plants.*], [meshes.*], [shapes.*], [worlds.*], and [walls.*]."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, NotNegative, Positive, Share, StrictParameters
from hedgerow.errors import InputError
from hedgerow.physics.scene_file.ground import Path

Triple = Annotated[list[Finite], Field(min_length=3, max_length=3)]


class PlantSpec(StrictParameters):
    """A kind of plant, grown in some variants."""

    kind: str
    """Name of a procedural plant, for example shrub."""
    variants: int = Field(default=3, ge=1, le=1000)
    """How many different ones to grow; copies share them."""
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Of that kind; `hedgerow plants KIND` lists them."""


class PartSpec(StrictParameters):
    """What one part of a mesh file is."""

    material: str | None = None
    """Name in the table of materials. Default: the mesh's."""
    label: str | None = None
    """Semantic class. Default: the mesh's."""


class MeshSpec(StrictParameters):
    """A mesh file: OBJ, PLY, STL or GLB. Instances in a GLB stay instances."""

    file: str
    """Relative to the scene file."""
    material: str = "plain"
    """Material of all parts that by_name does not mention."""
    label: str = "other-object"
    """Semantic class of the same."""
    by_name: dict[str, PartSpec] = Field(default_factory=dict[str, PartSpec])
    """Material and label of parts whose mesh or material in the file has this name."""
    scale: Positive = 1.0
    """Metres per unit of the file."""
    up: Literal["y", "z"] | None = None
    """Which axis of the file is up. Default: y for GLB, as its standard says, z for the others."""
    permeability: Share = 0.0
    """Share of light that passes each triangle."""


class BoxSpec(StrictParameters):
    """A box that stands on its place."""

    kind: Literal["box"]
    """What it is."""
    size_m: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    """Extent in x, y and z."""
    material: str = "plain"
    """Name in the table of materials."""
    label: str = "other-object"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of light that passes each face."""


class CylinderSpec(StrictParameters):
    """A cylinder or cone's stump that stands or lies on its place, with a lid."""

    kind: Literal["cylinder"]
    """What it is."""
    height_m: Positive
    """Height."""
    radius_m: Positive
    """Radius at the foot."""
    top_radius_m: Positive | None = None
    """Radius at the top. Default: the same."""
    sides: int = Field(default=24, ge=3, le=1000)
    """Faces round it."""
    lying: bool = False
    """Whether it lies along x, as a felled trunk, instead of standing."""
    material: str = "plain"
    """Name in the table of materials."""
    label: str = "other-object"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of light that passes each face."""


class PanelSpec(StrictParameters):
    """An upright rectangle that faces along x, in the middle over its place."""

    kind: Literal["panel"]
    """What it is."""
    width_m: Positive
    """Extent in y."""
    height_m: Positive
    """Extent in z."""
    material: str = "plain"
    """Name in the table of materials."""
    label: str = "other-object"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of light that passes it."""


class EllipsoidSpec(StrictParameters):
    """An ellipsoid that rests on its place: a boulder, a ball."""

    kind: Literal["ellipsoid"]
    """What it is."""
    size_m: Annotated[list[Positive], Field(min_length=3, max_length=3)]
    """Extent in x, y and z."""
    sides: int = Field(default=24, ge=4, le=1000)
    """Faces round it; half as many from pole to pole."""
    material: str = "rock"
    """Name in the table of materials."""
    label: str = "rock"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of light that passes each face."""


Shape = Annotated[BoxSpec | CylinderSpec | PanelSpec | EllipsoidSpec, Field(discriminator="kind")]


class WorldSpec(StrictParameters):
    """A learned world: its Gaussians and triangles stand beside meshes."""

    file: str
    """The folder, by custom NAME.world, relative to the scene file."""
    pivot_m: Triple = Field(default_factory=lambda: [0.0, 0.0, 0.0])
    """The point of the learned world that comes to the place where it is put."""


class WallSpec(StrictParameters):
    """A wall or fence along a line; its foot follows the ground."""

    path_m: Path
    """Corners of its middle line."""
    closed: bool = False
    """Whether the last corner is joined to the first."""
    height_m: Positive
    """Height above the ground."""
    thickness_m: NotNegative = 0.0
    """0 is a single sheet, as a wire fence."""
    permeability: Share = 0.0
    """Share of light that passes each sheet: a chain-link fence is not solid."""
    material: str = "concrete"
    """Name in the table of materials."""
    label: str = "wall"
    """Semantic class."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.closed and len(self.path_m) < 3:
            raise InputError("path_m", f"{len(self.path_m)} corners; a closed wall has at least 3")
        corners = [*self.path_m, self.path_m[0]] if self.closed else self.path_m
        if any(a == b for a, b in pairwise(corners)):
            raise InputError("path_m", "a corner comes twice in a row")
        return self
