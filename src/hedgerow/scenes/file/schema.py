# SPDX-License-Identifier: Apache-2.0
"""What may stand in a scene file: every table and field, with its unit, bounds and default; unknown keys are refused.

Placeables, objects and rules are named tables, not lists: an error, a `--set` and a random seed then belong to a name,
and stay with it when something else is added to the file.
"""

from itertools import pairwise
from math import hypot
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hedgerow.base.parameters import Degrees, Extent, Factor, Length, Place, Share, StrictParameters
from hedgerow.errors import InputError, ParameterError
from hedgerow.scenes.materials import Material

MAX_LINE_M = 100_000.0
"""Longest trail, wall or drive: one has points every 0.25 m."""
ANNOTATION = "annotation"
"""What rules call the boxes of [annotation] in `away_from`."""
MAX_COPIES = 10_000_000
"""Most copies placed one by one, of all objects and rules; each takes about half a kilobyte."""


def _require_short(path_m: list[list[float]]) -> list[list[float]]:
    length_m = sum(hypot(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(path_m))
    if length_m > MAX_LINE_M:
        raise ValueError(f"is {length_m / 1000:,.0f} km long; expected at most {MAX_LINE_M / 1000:g} km")
    return path_m


def _require_apart(name: str, path_m: list[list[float]]) -> None:
    if any(hypot(b[0] - a[0], b[1] - a[1]) < 1e-6 for a, b in pairwise(path_m)):
        raise InputError(name, "a corner comes twice in a row")


Point = Annotated[list[Place], Field(min_length=2, max_length=2)]
"""x and y, map frame [m]."""
Size = Annotated[list[Length], Field(min_length=2, max_length=2)]
"""Extent in x and y [m]."""
Path = Annotated[list[Point], Field(min_length=2, max_length=10_000), AfterValidator(_require_short)]
"""Corners of a line."""
Triple = Annotated[list[Place], Field(min_length=3, max_length=3)]
"""x, y and z, map frame [m]."""
Span = Annotated[list[Place], Field(min_length=2, max_length=2)]
"""Least and largest value."""

# The ground: [terrain] and [trail].


class TerrainSpec(StrictParameters):
    """The ground."""

    kind: Literal["flat", "noise", "raster", "log"] = "flat"
    """flat; noise: random hills; raster: heights from a GeoTIFF or PNG file; log: the ground under the points of a log,
    a learned world or a cloud."""
    size_m: Size | None = None
    """Extent in x and y, around middle_m; needed unless kind is raster or log, which have their own. Of a log: what to
    cut out."""
    middle_m: Point = Field(default_factory=lambda: [0.0, 0.0])
    """x and y of the middle. Default: 0, 0, but a raster and a log stay where their files say."""
    height_m: Place = 0.0
    """Height of flat ground; added to the heights of the other kinds."""
    spacing_m: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = 0.5
    """Grid spacing of noise and log, and of flat ground that has a trail; without one, flat ground is two triangles."""
    relief_m: Extent = 2.0
    """Noise: height of the highest point above the lowest."""
    wavelength_m: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = 30.0
    """Noise: spacing of the largest hills."""
    octaves: int = Field(default=5, ge=1, le=16)
    """Noise: number of wavelengths, each half the one before."""
    roughness: Annotated[float, Field(ge=0, le=1)] = 0.45
    """Noise: amplitude of each wavelength as a share of the one before."""
    seed: int | None = Field(default=None, ge=0, lt=1 << 63)
    """Noise: seed of the hills. Default: the seed of the scene."""
    file: str | None = None
    """Raster, log: path of the file, or folder, relative to the scene file."""
    thin: int = Field(default=1, ge=1, le=1_000_000)
    """Log: take every n-th sweep."""
    metres_per_pixel: Annotated[float, Field(ge=0.001, le=100_000, allow_inf_nan=False)] | None = None
    """Raster: size of a pixel, for files that do not say it; a GeoTIFF does."""
    height_range_m: Span | None = None
    """Raster: heights of black and of white in a PNG."""
    material: str = "soil"
    """Name in the table of materials."""
    label: str = "ground"
    """Semantic class."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_file = self.kind in ("raster", "log")
        if has_file and self.file is None:
            raise InputError("file", f"missing; a {self.kind} needs one")
        if not has_file and self.size_m is None:
            raise InputError("size_m", "missing; expected the extent in x and y [m]")
        if not has_file and self.file is not None:
            raise InputError("file", f"only a raster or a log has one, but kind is {self.kind}")
        if self.kind != "log" and self.thin != 1:
            raise InputError("thin", f"only for the sweeps of a log, but kind is {self.kind}")
        return self


class TrailSpec(StrictParameters):
    """A road or trail cut into the ground."""

    path_m: Path
    """Corners of its middle line, x and y each."""
    smooth: bool = True
    """Whether the line is a smooth curve through the corners; else it is straight between them."""
    width_m: Length = 3.0
    """Width of the driven part."""
    shoulder_m: Extent = 1.0
    """Width of a strip on each side in which the ground blends back to what it was."""
    sunk_m: Place = 0.0
    """Depth of the trail below the ground; below 0 it is raised."""
    rut_depth_m: Extent = 0.0
    """Depth of two wheel ruts; 0 is none."""
    rut_width_m: Length = 0.4
    """Width of a rut."""
    rut_gauge_m: Length = 1.6
    """Distance between the middles of the two ruts."""
    material: str = "gravel"
    """Name in the table of materials."""
    label: str = "trail"
    """Semantic class."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        _require_apart("path_m", self.path_m)
        return self


# What can be placed: [plants.*], [meshes.*], [shapes.*] and [worlds.*]; and [walls.*], which have their place.


class PlantSpec(StrictParameters):
    """A kind of plant, grown in some variants."""

    kind: str
    """Name of a procedural plant, for example shrub."""
    variants: int = Field(default=3, ge=1, le=1000)
    """Number of different plants to grow; all copies are one of these."""
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Parameters of that kind; `hedgerow plants KIND` lists them."""


class PartSpec(StrictParameters):
    """Material and label of one part of a mesh file."""

    material: str | None = None
    """Name in the table of materials. Default: that of the whole mesh."""
    label: str | None = None
    """Semantic class. Default: that of the whole mesh."""


class MeshSpec(StrictParameters):
    """A mesh file: OBJ, PLY, STL or GLB. Instances in a GLB stay instances."""

    file: str
    """Path of the mesh file, relative to the scene file."""
    material: str = "plain"
    """Name in the table of materials, for all parts that by_name does not mention."""
    label: str = "other-object"
    """Semantic class of all parts that by_name does not mention."""
    by_name: dict[str, PartSpec] = Field(default_factory=dict[str, PartSpec])
    """Material and label of single parts, by the name that the part or its material has in the mesh file."""
    scale: Factor = 1.0
    """Metres per unit of the file."""
    up: Literal["y", "z"] | None = None
    """Which axis of the file is up. Default: y for GLB, as its standard says, z for the others."""
    permeability: Share = 0.0
    """Share of beams that pass each triangle."""


class BoxSpec(StrictParameters):
    """A box that stands on its place."""

    kind: Literal["box"]
    """Which shape."""
    size_m: Annotated[list[Length], Field(min_length=3, max_length=3)]
    """Extent in x, y and z."""
    material: str = "plain"
    """Name in the table of materials."""
    label: str = "other-object"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of beams that pass each face."""


class CylinderSpec(StrictParameters):
    """A cylinder or truncated cone that stands or lies on its place, closed at both ends."""

    kind: Literal["cylinder"]
    """Which shape."""
    height_m: Length
    """Height; length if it lies."""
    radius_m: Length
    """Radius at the foot."""
    top_radius_m: Length | None = None
    """Radius at the top. Default: the same as radius_m."""
    sides: int = Field(default=24, ge=3, le=1000)
    """Number of faces around it."""
    lying: bool = False
    """Whether it lies along x, as a felled trunk, instead of standing."""
    material: str = "plain"
    """Name in the table of materials."""
    label: str = "other-object"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of beams that pass each face."""


class PanelSpec(StrictParameters):
    """An upright rectangle that faces along x, centred over its place."""

    kind: Literal["panel"]
    """Which shape."""
    width_m: Length
    """Extent in y."""
    height_m: Length
    """Extent in z."""
    material: str = "plain"
    """Name in the table of materials."""
    label: str = "other-object"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of beams that pass it."""


class EllipsoidSpec(StrictParameters):
    """An ellipsoid that rests on its place: a boulder, a ball."""

    kind: Literal["ellipsoid"]
    """Which shape."""
    size_m: Annotated[list[Length], Field(min_length=3, max_length=3)]
    """Extent in x, y and z."""
    sides: int = Field(default=24, ge=4, le=1000)
    """Number of faces around it; half as many from pole to pole."""
    material: str = "rock"
    """Name in the table of materials."""
    label: str = "rock"
    """Semantic class."""
    permeability: Share = 0.0
    """Share of beams that pass each face."""


Shape = Annotated[BoxSpec | CylinderSpec | PanelSpec | EllipsoidSpec, Field(discriminator="kind")]


class WorldSpec(StrictParameters):
    """A learned world: its Gaussians and triangles stand beside meshes."""

    file: str
    """Path of the world's folder, NAME.world, relative to the scene file."""
    pivot_m: Triple = Field(default_factory=lambda: [0.0, 0.0, 0.0])
    """Point of the learned world that is put on the place."""


class PrimitiveSpec(StrictParameters):
    """Plants of one class, in as many variants as there are: learned ones of a library, or of a plant or mesh."""

    class_name: str = Field(alias="class")
    """Class of annotations: low-shrub, small-shrub, medium-shrub, large-shrub, small-tree, medium-tree, large-tree or
    other."""
    library: str | None = None
    """Path of a library's folder, NAME.world, relative to the scene file: all its primitives of that class."""
    of: str | None = None
    """Or the name of a plant, mesh or shape of this file: its variants."""
    label: str | None = None
    """Semantic class of its returns. Default: the class; "keep" is what its elements have."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.library is None) == (self.of is None):
            raise InputError("library", "give either library or of")
        return self


class AnnotationSpec(StrictParameters):
    """Boxes, each filled with a primitive of its class (Tallavajhula 2018 §4.3.1.4)."""

    file: str
    """Path of the table, .csv or .parquet, relative to the scene file: class, x, y, z, yaw, length, width, height."""
    among: int = Field(default=1, ge=1, le=1000)
    """A box takes the primitive of the nearest extents; or one drawn among so many of the nearest, so that a forest
    does not repeat itself."""
    scale: Literal["none", "height", "box"] = "none"
    """How a primitive is scaled: not; by the height of its box; or along each axis to fill its box. A plant twice as
    high keeps the depth of its Gaussians; extinction per metre stays, so it stops more."""
    classes: list[str] | None = None
    """Only boxes of these classes. Default: all that are plants."""
    box_m: Annotated[list[Place], Field(min_length=4, max_length=4)] | None = None
    """Only boxes whose foot lies inside: least x, least y, largest x, largest y."""


class WallSpec(StrictParameters):
    """A wall or fence along a line; its foot follows the ground."""

    path_m: Path
    """Corners of its middle line."""
    closed: bool = False
    """Whether the last corner is joined to the first."""
    height_m: Length
    """Height above the ground."""
    thickness_m: Extent = 0.0
    """Thickness; 0 is a single sheet, such as a wire fence."""
    permeability: Share = 0.0
    """Share of beams that pass each sheet: above 0 for a chain-link fence."""
    material: str = "concrete"
    """Name in the table of materials."""
    label: str = "wall"
    """Semantic class."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.closed and len(self.path_m) < 3:
            raise InputError("path_m", f"{len(self.path_m)} corners; a closed wall has at least 3")
        corners = [*self.path_m, self.path_m[0]] if self.closed else self.path_m
        _require_apart("path_m", corners)
        return self


# Where it is placed: [objects.*] one by one, [scatter.*] by rule.


class RepeatSpec(StrictParameters):
    """Copies in a row."""

    count: int = Field(ge=1, le=1_000_000)
    """Number of copies, the first included."""
    step_m: Annotated[list[Place], Field(min_length=2, max_length=3)]
    """Step from one copy to the next: x and y, or x, y and z."""


class ObjectSpec(StrictParameters):
    """A plant, mesh, shape or world at a place, or a row of it."""

    what: str
    """Name of a plant, mesh, shape, world or primitive of this file."""
    at_m: Annotated[list[Place], Field(min_length=2, max_length=3)]
    """Where it stands: x and y on the ground, or x, y and z."""
    yaw_deg: Degrees = 0.0
    """Rotation about the vertical, counter-clockwise."""
    pitch_deg: Degrees = 0.0
    """Rotation about its y axis, before yaw_deg: 90 lays it down along x."""
    scale: Factor = 1.0
    """Factor of its size."""
    repeat: RepeatSpec | None = None
    """Copies in a row. Default: a single one."""
    variant: int | None = Field(default=None, ge=0, le=1000)
    """Which variant of a plant or primitive, from 0. Default: copies take the variants in turn."""


class ScatterSpec(StrictParameters):
    """Copies of a plant, mesh, shape or world at random places."""

    what: str
    """Name of a plant, mesh, shape, world or primitive of this file."""
    density_per_m2: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] | None = None
    """Mean number of copies (for a grass: blades) per square metre of allowed ground; give this or count."""
    count: int | None = Field(default=None, ge=1, le=MAX_COPIES)
    """Number of copies; give this or density_per_m2."""
    box_m: Annotated[list[Place], Field(min_length=4, max_length=4)] | None = None
    """Only inside this box: least x, least y, largest x, largest y."""
    polygon_m: Annotated[list[Point], Field(min_length=3, max_length=1000)] | None = None
    """Only inside this polygon, given by its corners."""
    slope_deg: Span | None = None
    """Only where the slope of the ground is between these two angles."""
    trail_distance_m: Span | None = None
    """Only where the distance to the middle line of the trail is between these two."""
    away_from: dict[str, Extent] = Field(default_factory=dict[str, Extent])
    """Least distance to what other objects and rules have placed, by their name; they stand earlier in the file."""
    spacing_m: Extent = 0.0
    """Least distance between two copies."""
    scale: Annotated[list[Factor], Field(min_length=2, max_length=2)] | None = None
    """Factor of the size, uniform between these two. Default: 1."""
    yaw_deg: Annotated[list[Degrees], Field(min_length=2, max_length=2)] = Field(default_factory=lambda: [0.0, 360.0])
    """Rotation about the vertical, uniform between these two."""
    tilt_deg: Annotated[float, Field(ge=0, le=90, allow_inf_nan=False)] = 0.0
    """Largest tilt; copies lean to a random side by an angle uniform from 0 to this."""
    sink_m: Place = 0.0
    """Depth of the foot below the ground."""
    max_gap_m: Length = 0.05
    """Largest gap between ground and a patch of merged copies; where it is more, smaller patches are used."""

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


# How the sensor moves: [trajectories.*].


class ArcSpec(StrictParameters):
    """Poses on a circle, looking at its middle."""

    centre_m: Point
    """Middle of the circle."""
    radius_m: Length
    """Radius of the circle."""
    from_deg: Degrees = 0.0
    """Bearing of the first pose from the middle, counter-clockwise from x."""
    to_deg: Degrees = 90.0
    """Bearing of the last pose."""
    n_poses: int = Field(default=91, ge=2, le=100_000)
    """Number of poses, both ends included."""


class TrajectorySpec(StrictParameters):
    """A trajectory of the sensor: along waypoints, along the trail, round an arc, or standing."""

    waypoints_m: Path | None = None
    """Drive along a line through these corners."""
    along_trail: bool = False
    """Or drive along the middle line of the trail."""
    arc: ArcSpec | None = None
    """Or drive round a point."""
    standing_m: Point | None = None
    """Or stand here."""
    from_m: Extent = 0.0
    """Start this far along the line."""
    to_m: Length | None = None
    """End this far along the line. Default: at its end."""
    offset_m: Place = 0.0
    """Distance to the left of the line; below 0 to the right."""
    smooth: bool = True
    """Whether the line is a smooth curve through the waypoints; else it is straight between them."""
    speed_mps: Annotated[float, Field(ge=0.001, le=100_000, allow_inf_nan=False)] = 5.0
    """Speed of the drive."""
    duration_s: Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)] = 60.0
    """How long to stand."""
    yaw_deg: Degrees = 0.0
    """Where to look while standing, counter-clockwise from x."""
    height_m: Place = 2.0
    """Height of the sensor above the ground, or in the map: see follow_terrain."""
    follow_terrain: bool = True
    """Whether height_m is above the ground; else it is a height in the map."""
    pitch: bool = False
    """Whether the sensor pitches with the slope of the ground; else it stays level."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        lines = {"waypoints_m": self.waypoints_m, "arc": self.arc, "standing_m": self.standing_m}
        given = [name for name, value in lines.items() if value is not None] + ["along_trail"] * self.along_trail
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise InputError("waypoints_m", f"give one of waypoints_m, along_trail, arc and standing_m; found {found}")
        if self.waypoints_m is not None and self.smooth:
            _require_apart("waypoints_m", self.waypoints_m)
        if self.to_m is not None and self.to_m <= self.from_m:
            raise InputError("to_m", f"{self.to_m:g} is not beyond from_m, {self.from_m:g}")
        return self


# The file as a whole, with [labels.*] and [view].


class LabelSpec(StrictParameters):
    """A semantic class that the file adds."""

    number: int = Field(ge=0, le=65535)
    """Number that returns of this class carry."""
    vegetation: bool = False
    """Whether it is vegetation: a beam may pass through it in part."""


class ViewSpec(StrictParameters):
    """From where to draw a picture of the scene."""

    eye_m: Triple
    """Where the camera is: x, y, and height above the ground."""
    look_at_m: Triple
    """Where it looks to: x, y, and height above the ground."""
    fov_deg: Annotated[float, Field(gt=0, lt=170)] = 60.0
    """Horizontal field of view."""


class SceneFile(StrictParameters):
    """All tables of a scene file."""

    about: str = ""
    """What the scene shows."""
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    """Seed of everything random: same seed, same scene."""
    sensor: str = "hdl-64e"
    """Sensor to fire if none is given."""
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Named values that other fields use as "$name", so that `--set name=value` changes them all."""
    terrain: TerrainSpec
    """The ground."""
    trail: TrailSpec | None = None
    """A road or trail cut into the ground."""
    materials: dict[str, Material] = Field(default_factory=dict[str, Material])
    """Materials added to the shipped table; one of the same name replaces a row."""
    labels: dict[str, LabelSpec] = Field(default_factory=dict[str, LabelSpec])
    """Semantic classes added to the shipped table."""
    plants: dict[str, PlantSpec] = Field(default_factory=dict[str, PlantSpec])
    """Procedural plants."""
    meshes: dict[str, MeshSpec] = Field(default_factory=dict[str, MeshSpec])
    """Mesh files."""
    shapes: dict[str, Shape] = Field(default_factory=dict[str, Shape])
    """Simple solids."""
    worlds: dict[str, WorldSpec] = Field(default_factory=dict[str, WorldSpec])
    """Learned worlds."""
    primitives: dict[str, PrimitiveSpec] = Field(default_factory=dict[str, PrimitiveSpec])
    """Plants of one class, learned or of meshes, in many variants."""
    annotation: AnnotationSpec | None = None
    """Boxes, each filled with a primitive of its class."""
    walls: dict[str, WallSpec] = Field(default_factory=dict[str, WallSpec])
    """Walls and fences."""
    objects: dict[str, ObjectSpec] = Field(default_factory=dict[str, ObjectSpec])
    """Plants, meshes, shapes and worlds placed one by one."""
    scatter: dict[str, ScatterSpec] = Field(default_factory=dict[str, ScatterSpec])
    """Plants, meshes, shapes and worlds placed at random by a rule."""
    view: ViewSpec | None = None
    """Where to draw the scene from. Default: from above a corner."""
    trajectories: dict[str, TrajectorySpec] = Field(default_factory=dict[str, TrajectorySpec])
    """Named trajectories of the sensor."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        seen: dict[str, str] = {}
        for table in ("plants", "meshes", "shapes", "worlds", "primitives"):
            for name in getattr(self, table):
                if name in seen:
                    raise ParameterError((table, name), f"the name is taken by {seen[name]}.{name}; choose another")
                seen[name] = table
        for table in ("objects", "scatter"):
            if self.annotation is not None and ANNOTATION in getattr(self, table):
                raise ParameterError((table, ANNOTATION), "the name is taken by [annotation]; choose another")
        for name in self.scatter:
            if name in self.objects:
                raise ParameterError(("scatter", name), f"the name is taken by objects.{name}; choose another")
        return self

    def placeables(self) -> dict[str, PlantSpec | MeshSpec | Shape | WorldSpec | PrimitiveSpec]:
        """Return everything that can be placed, by name."""
        return {**self.plants, **self.meshes, **self.shapes, **self.worlds, **self.primitives}
