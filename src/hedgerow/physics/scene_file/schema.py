# SPDX-License-Identifier: Apache-2.0
"""Every table that a scene file may have; frozen, unknown keys refused. The parts are in the modules beside this.

Things and rules are named tables, not lists: an error, a `--set` and a random seed then belong to a name, and stay
with it when something else is added to the file.
"""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import StrictParameters
from hedgerow.errors import ParameterError
from hedgerow.physics.materials import Material
from hedgerow.physics.scene_file.ground import TerrainSpec, TrailSpec
from hedgerow.physics.scene_file.placing import ObjectSpec, ScatterSpec
from hedgerow.physics.scene_file.routes import PassSpec
from hedgerow.physics.scene_file.things import MeshSpec, PlantSpec, Shape, Triple, WallSpec, WorldSpec


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
