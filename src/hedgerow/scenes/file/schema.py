# SPDX-License-Identifier: Apache-2.0
"""What may stand in a scene file: every table and field, with its unit, bounds and default."""

from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, NotNegative, Positive, Share, StrictParameters
from hedgerow.errors import InputError, ParameterError
from hedgerow.scenes.materials import Material

# Fields of a scene file for the ground: [terrain] and [trail].


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


# Fields of a scene file for what can be placed: [plants.*], [meshes.*], [shapes.*], [worlds.*], and [walls.*].


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


# Fields of a scene file for where things are: [objects.*] one by one, [scatter.*] by rule.


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


# Fields of a scene file for named passes of the sensor: [trajectories.*].


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


# Every table that a scene file may have; frozen, unknown keys refused. The parts are in the modules beside this.
#
# Things and rules are named tables, not lists: an error, a `--set` and a random seed then belong to a name, and stay
# with it when something else is added to the file.


class LabelSpec(StrictParameters):
    """A semantic class of the user's own."""

    number: int = Field(ge=0, le=65535)
    """What returns carry."""
    vegetation: bool = False
    """Whether a beam may pass through it in part."""


class ViewSpec(StrictParameters):
    """From where to draw a picture of the scene."""

    eye_m: Triple
    """Where the camera is: x, y, and height above the ground."""
    look_at_m: Triple
    """What it looks at, likewise."""
    fov_deg: Annotated[float, Field(gt=0, lt=170)] = 60.0
    """Angle from the left to the right edge."""


class SceneFile(StrictParameters):
    """A scene file."""

    about: str = ""
    """What it shows."""
    seed: int = Field(default=0, ge=0)
    """Same seed, same scene."""
    sensor: str = "hdl-64e"
    """Sensor to use if none is named."""
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Values that other fields take as "$name", so that one figure can be changed from outside."""
    terrain: TerrainSpec
    """The ground."""
    trail: TrailSpec | None = None
    """A road or trail cut into it."""
    materials: dict[str, Material] = Field(default_factory=dict[str, Material])
    """Added to the shipped table, or in the place of a row of it."""
    labels: dict[str, LabelSpec] = Field(default_factory=dict[str, LabelSpec])
    """Added to the shipped table."""
    plants: dict[str, PlantSpec] = Field(default_factory=dict[str, PlantSpec])
    """Procedural plants."""
    meshes: dict[str, MeshSpec] = Field(default_factory=dict[str, MeshSpec])
    """Mesh files."""
    shapes: dict[str, Shape] = Field(default_factory=dict[str, Shape])
    """Simple solids."""
    worlds: dict[str, WorldSpec] = Field(default_factory=dict[str, WorldSpec])
    """Learned worlds."""
    walls: dict[str, WallSpec] = Field(default_factory=dict[str, WallSpec])
    """Walls and fences."""
    objects: dict[str, ObjectSpec] = Field(default_factory=dict[str, ObjectSpec])
    """Things placed one by one."""
    scatter: dict[str, ScatterSpec] = Field(default_factory=dict[str, ScatterSpec])
    """Things placed by rule."""
    view: ViewSpec | None = None
    """Where to draw the scene from. Default: from above a corner."""
    trajectories: dict[str, PassSpec] = Field(default_factory=dict[str, PassSpec])
    """Named passes of the sensor."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: dict[str, str] = {}
        for table in ("plants", "meshes", "shapes", "worlds"):
            for name in getattr(self, table):
                if name in seen:
                    raise ParameterError((table, name), f"the name is taken by {seen[name]}.{name}; choose another")
                seen[name] = table
        for name in self.scatter:
            if name in self.objects:
                raise ParameterError(("scatter", name), f"the name is taken by objects.{name}; choose another")
        return self

    def things(self) -> dict[str, PlantSpec | MeshSpec | Shape | WorldSpec]:
        """Return everything that can be placed, by name."""
        return {**self.plants, **self.meshes, **self.shapes, **self.worlds}
