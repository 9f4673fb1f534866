# SPDX-License-Identifier: Apache-2.0
"""The models that a log can be learned as, and `learn`, which runs one of them.

A model is a file of its own: its parameters, its algorithm and its recipe, a function `learn_NAME(task, parameters)`
that returns tables of elements. A new model is one such file, and one row in MODELS. What recipes share is the task
(steps/log_chunks.py: the log in chunks, its summary, progress) and counting (steps/permeability.py).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from hedgerow.base.arguments import require_kind
from hedgerow.base.parameters import Parameters
from hedgerow.base.places import Address, as_place
from hedgerow.base.progress import ProgressSteps, StepProgress, late_step_bar
from hedgerow.errors import InputError, called_from_outside, shown
from hedgerow.log import Log
from hedgerow.models.bottomup import BottomupParameters, learn_bottomup
from hedgerow.models.hybrid import HybridParameters, learn_hybrid
from hedgerow.models.points import PointsParameters, learn_points
from hedgerow.models.presets import with_preset
from hedgerow.models.refined.model import RefinedParameters, learn_refined
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks, summarise
from hedgerow.models.surface import (
    SolidSurfaceParameters,
    SurfaceParameters,
    learn_permeable_surface,
    learn_surface,
)
from hedgerow.models.terrain import TerrainParameters, learn_terrain
from hedgerow.models.topdown import TopdownParameters, learn_topdown
from hedgerow.models.voxel import VoxelParameters, learn_voxel
from hedgerow.parallel.engine import Engine, using
from hedgerow.parallel.log_parts import cut_log
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians, Points, RememberedBeams, Triangles
from hedgerow.world.store.header import Provenance

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource


@dataclass(frozen=True, slots=True)
class Model:
    """A row of MODELS."""

    name: str
    about: str
    """When to use it."""
    parameters: type[Parameters]
    learn: Callable[[LearningTask, Any], tuple[Gaussians | Triangles | Points | RememberedBeams, ...]]
    """The recipe: from the log and parameters to elements."""

    def parse(self, values: dict[str, Any]) -> Parameters:
        """Check the parameters that a user gives; a dotted name, such as prior.count, changes one value of a group.

        Raises:
            InputError: unknown name or value out of bounds; says which and what there is.
        """
        return self.parameters.parse(self._grouped(values), f"model {self.name}")

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


_ROWS = (
    Model(
        "points",
        "keeps every return as a point; a baseline only: beams see through walls",
        PointsParameters,
        learn_points,
    ),
    Model("surface", "solid triangles; for roads, walls and ground alone", SolidSurfaceParameters, learn_surface),
    Model(
        "permeable-surface",
        "triangles that let beams pass; for fences and ground",
        SurfaceParameters,
        learn_permeable_surface,
    ),
    Model("voxel", "one Gaussian per voxel; fast, for sites of any size", VoxelParameters, learn_voxel),
    Model(
        "topdown",
        "Gaussians by recursive K-means; for vegetation, and for sensors that stand",
        TopdownParameters,
        learn_topdown,
    ),
    Model(
        "hybrid",
        "triangles for surfaces, Gaussians for vegetation; the default, quick",
        HybridParameters,
        learn_hybrid,
    ),
    Model(
        "terrain",
        "the ground as a height field, Gaussians for what stands on it; for open country and composed scenes",
        TerrainParameters,
        learn_terrain,
    ),
    Model("bottomup", "Gaussians grown from small ones; compact", BottomupParameters, learn_bottomup),
    Model(
        "refined",
        "Gaussians fitted to the beams themselves; the best forecasts of drives and standing sensors, takes minutes",
        RefinedParameters,
        learn_refined,
    ),
)
MODELS = {model.name: model for model in _ROWS}


def learn(
    source: "Log | LogSource | str | Path | LogChunks",
    model: str = "hybrid",
    *,
    preset: str | None = None,
    progress: StepProgress | None = None,
    engine: Engine | None = None,
    **parameters: Any,
) -> LearnedWorld:
    """Learn a world from a log.

    Args:
        source: a log; or the path of one, of any format, or `open_log` of it, which may be larger than memory; or a
            function that gives the chunks of a log anew each time it is called.
        model: a name of MODELS; `hedgerow models` says when to use which.
        preset: a name of PRESETS: the values of a paper in place of the defaults; `hedgerow models` lists them.
        progress: called with (stage, beams done, beams in all). Default: a bar on a terminal or in a notebook, if it
            takes longer than some seconds.
        engine: what works on the parts of the log (docs/scale.md). Default: this process. The world has the same bytes
            whatever it is.
        parameters: of the model; `hedgerow models NAME` lists them.

    Returns:
        A world to fire at, to ask for likelihoods, and to save.

    Raises:
        InputError: unknown model, preset or parameter, or a log that cannot be learned from; says why.
        FileError: the log cannot be read.
    """
    require_kind("model", model, str, f"one of {', '.join(MODELS)}")
    if model not in MODELS:
        raise InputError("model", f"there is no {shown(model)}; there are {', '.join(MODELS)}")
    row = MODELS[model]
    checked = row.parse(with_preset(model, preset, parameters))
    if progress is None and called_from_outside():
        with late_step_bar() as bar:
            return _learn(source, row, checked, bar, engine)
    return _learn(source, row, checked, progress, engine)


def _learn(
    source: "Log | LogSource | str | Path | LogChunks",
    row: Model,
    checked: Parameters,
    progress: StepProgress | None,
    engine: Engine | None,
) -> LearnedWorld:
    chunks = cut_log(source, engine)
    summary = summarise(chunks)
    stages = ProgressSteps(summary.n_beams, progress)
    with using(chunks.engine):
        tables = row.learn(LearningTask(chunks, summary, stages), checked)
    stages.finish()
    return LearnedWorld(
        *tables,
        kind=row.name,
        parameters=checked.model_dump(mode="json"),
        min_range_m=summary.min_range_m,
        max_range_m=summary.max_range_m,
        map_origin_m=summary.map_origin_m,
        classes=summary.classes,
        provenance=Provenance(sensor=summary.sensor, log=_name_of(source), n_beams=summary.n_beams),
    )


def _name_of(source: object) -> str:
    if isinstance(source, str | Path):
        return as_place(source).name
    path: object = getattr(source, "path", "")
    return as_place(path).name if isinstance(path, str | Path | Address) else ""
