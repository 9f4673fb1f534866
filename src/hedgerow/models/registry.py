# SPDX-License-Identifier: Apache-2.0
"""The models a log can be learned as, each a short recipe over the learners. A new kind of world is one row more.

Equations: docs/models.md §6.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from hedgerow.base.parameters import NotNegative, Parameters, Positive, parse
from hedgerow.base.progress import ProgressSteps
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.bottomup import BottomupParameters, learn_bottomup
from hedgerow.models.points import PointsParameters, learn_points
from hedgerow.models.refined.model import RefinedParameters, learn_refined
from hedgerow.models.steps.classifier import ClassifierParameters, learn_volume_map, read_classifier, volume_part
from hedgerow.models.steps.log_parts import Parts, Survey
from hedgerow.models.steps.permeability import Counts, count, with_permeability, without_passed
from hedgerow.models.steps.surface_noise import fit_noise
from hedgerow.models.surface import SurfaceParameters, learn_surface
from hedgerow.models.topdown import TopdownParameters, learn_topdown
from hedgerow.models.voxel import VoxelParameters, learn_voxel
from hedgerow.world.elements import Gaussians, Points, Triangles

Table = Gaussians | Triangles | Points


class CountParameters(Parameters):
    """How permeability is counted."""

    window_m: Positive = 0.5
    """A triangle is hit by returns this near to it (the offset of Browning 2012, "relatively insensitive")."""
    prior_hits: NotNegative = 0.0
    """Hits that every element starts with; Tallavajhula 2018 Table 4.1 took 0 for ellipsoids and 1 for triangles."""
    prior_passes: NotNegative = 0.0
    """Passes that every element starts with; Tallavajhula 2018 took 1 for ellipsoids and 2 for triangles."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a recipe works on."""

    parts: Parts
    survey: Survey
    stages: ProgressSteps

    def count(self, tables: tuple[Gaussians | Triangles, ...], window_m: float) -> Counts:
        """Count how often each element was hit and passed."""
        return count(
            self.parts,
            tables,
            max_range_m=self.survey.max_range_m,
            window_m=window_m,
            progress=self.stages.meter("counting hits and passes"),
        )

    def permeable(self, tables: tuple[Gaussians | Triangles, ...], how: CountParameters) -> tuple[Table, ...]:
        """Count the permeability of all elements and drop those that were never hit."""
        counts = self.count(tables, how.window_m)
        return with_permeability(tables, counts, prior_hits=how.prior_hits, prior_passes=how.prior_passes)

    def with_noise(self, triangles: Triangles, how: SurfaceParameters) -> Triangles:
        """Fit the range noise of a surface."""
        noise = fit_noise(
            self.parts,
            triangles,
            max_bend_rad=math.radians(how.noise_bend_deg),
            progress=self.stages.meter("fitting range noise"),
        )
        return replace(triangles, noise=noise)


class SolidSurfaceParameters(SurfaceParameters):
    """How a solid surface is learned."""

    max_passed: Annotated[float, Field(ge=0, le=1)] = 0.5
    """A triangle is dropped if more than this share of the beams that met it passed: it is the trace of something that
    moved, or grew into free space. 1 keeps every triangle, as Browning 2012 does."""
    window_m: Positive = CountParameters().window_m
    """A triangle is hit by returns this near to it."""


class PermeableSurfaceParameters(SurfaceParameters, CountParameters):
    """How a permeable surface is learned."""


class PermeableVoxelParameters(VoxelParameters, CountParameters):
    """How a voxel world is learned."""


class PermeableTopdownParameters(TopdownParameters, CountParameters):
    """How a top-down world is learned."""


class PermeableBottomupParameters(BottomupParameters, CountParameters):
    """How a bottom-up world is learned."""


def _from_file(value: object) -> object:
    """Read the parameters of a tuned classifier if their file is named."""
    return read_classifier(value) if isinstance(value, str | Path) else value


class HybridParameters(CountParameters):
    """How a hybrid world is learned: surface and volume each by its own model."""

    classifier: Annotated[ClassifierParameters, BeforeValidator(_from_file)] = ClassifierParameters()
    """What is surface and what is volume: parameters, or a TOML file of `hedgerow tune classifier`."""
    surface: SurfaceParameters = SurfaceParameters()
    """How the surface is learned."""
    topdown: TopdownParameters = TopdownParameters()
    """How the volumes are learned."""


def _points(job: Job, parameters: PointsParameters) -> tuple[Table, ...]:
    return (learn_points(job.parts, parameters, progress=job.stages.meter("keeping points")),)


def _surface(job: Job, parameters: SolidSurfaceParameters) -> tuple[Table, ...]:
    own = _only(SurfaceParameters, parameters)
    triangles = learn_surface(job.parts, own, progress=job.stages.meter("fitting the surface"))
    if parameters.max_passed < 1:
        triangles = without_passed(triangles, job.count((triangles,), parameters.window_m), parameters.max_passed)
    return (job.with_noise(triangles, own),)


def _permeable_surface(job: Job, parameters: PermeableSurfaceParameters) -> tuple[Table, ...]:
    own = _only(SurfaceParameters, parameters)
    triangles = learn_surface(job.parts, own, progress=job.stages.meter("fitting the surface"))
    return job.permeable((job.with_noise(triangles, own),), parameters)


def _voxel(job: Job, parameters: PermeableVoxelParameters) -> tuple[Table, ...]:
    own = _only(VoxelParameters, parameters)
    return job.permeable((learn_voxel(job.parts, own, progress=job.stages.meter("summing up voxels")),), parameters)


def _topdown(job: Job, parameters: PermeableTopdownParameters) -> tuple[Table, ...]:
    own = _only(TopdownParameters, parameters)
    return job.permeable((learn_topdown(job.parts, own, progress=job.stages.meter("clustering")),), parameters)


def _bottomup(job: Job, parameters: PermeableBottomupParameters) -> tuple[Table, ...]:
    own = _only(BottomupParameters, parameters)
    return job.permeable((learn_bottomup(job.parts, own, progress=job.stages.meter("growing regions")),), parameters)


def _hybrid(job: Job, parameters: HybridParameters) -> tuple[Table, ...]:
    stages = job.stages
    is_volume = learn_volume_map(job.parts, parameters.classifier, progress=stages.meter("telling surface from volume"))

    def volume_parts() -> Iterator[Log]:
        return (volume_part(log, is_volume) for log in job.parts())

    triangles = learn_surface(
        job.parts, parameters.surface, keep=lambda p: ~is_volume(p), progress=stages.meter("fitting the surface")
    )
    tables: tuple[Gaussians | Triangles, ...] = (job.with_noise(triangles, parameters.surface),)
    if any(log.returns.hit.any() for log in volume_parts()):
        tables += (learn_topdown(volume_parts, parameters.topdown, progress=stages.meter("clustering volumes")),)
    return job.permeable(tables, parameters)


def _refined(job: Job, parameters: RefinedParameters) -> tuple[Table, ...]:
    return (learn_refined(job.parts, parameters, survey=job.survey, stages=job.stages),)


def _only(kind: type[Any], parameters: BaseModel) -> Any:
    """The part of some parameters that one learner knows."""
    return kind(**{name: getattr(parameters, name) for name in kind.model_fields})


@dataclass(frozen=True, slots=True)
class Model:
    """One way to learn a world."""

    about: str
    """When to use it."""
    parameters: type[BaseModel]
    learn: Callable[[Job, Any], tuple[Table, ...]]

    def with_parameters(self, name: str, values: dict[str, Any]) -> BaseModel:
        """Check what the user asked for; a dotted name, such as prior.count, changes one value of a group.

        Raises:
            InputError: unknown name or value out of bounds; says which and what there is.
        """
        return parse(self.parameters, self._grouped(values), f"model {name}")

    def _grouped(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values with those of dotted names put into their groups, beside the defaults of these."""
        grouped = {name: value for name, value in values.items() if "." not in name}
        for dotted in (name for name in values if "." in name):
            name, _, field = dotted.partition(".")
            default = self._default(name)
            group = grouped.get(name, default.model_dump() if default else {})
            if not isinstance(group, dict):
                raise InputError(f"{dotted}", f"{name} is set as a whole too; expected one or the other")
            grouped[name] = group | {field: values[dotted]}
        return grouped

    def _default(self, name: str) -> BaseModel | None:
        """The group of parameters that a parameter is, as it is by default; None if it is a single value."""
        field = self.parameters.model_fields.get(name)
        return field.default if field and isinstance(field.default, BaseModel) else None


MODELS: dict[str, Model] = {
    "points": Model("remembers every return; a baseline that sees through walls", PointsParameters, _points),
    "surface": Model("solid triangles; for roads, walls and ground alone", SolidSurfaceParameters, _surface),
    "permeable-surface": Model(
        "triangles that let beams pass; for fences and ground", PermeableSurfaceParameters, _permeable_surface
    ),
    "voxel": Model("a Gaussian per voxel; quick, scales to any site", PermeableVoxelParameters, _voxel),
    "topdown": Model("Gaussians by recursive K-means; best for vegetation", PermeableTopdownParameters, _topdown),
    "hybrid": Model("surface where it is one, Gaussians elsewhere; the best start", HybridParameters, _hybrid),
    "bottomup": Model("Gaussians grown from small ones; compact", PermeableBottomupParameters, _bottomup),
    "refined": Model(
        "fitted to the beams themselves, validated on held-out sweeps; most faithful, slower to learn",
        RefinedParameters,
        _refined,
    ),
}
