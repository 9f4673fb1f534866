# SPDX-License-Identifier: Apache-2.0
"""Learning worlds from logs.

    world = hr.learn(log, model="voxel", side_m=0.2)

registry.py lists the models, one module each has their learners.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import InputError
from hedgerow.log import Log

if TYPE_CHECKING:
    from hedgerow.base.progress import StepProgress
    from hedgerow.io.source import LogSource
    from hedgerow.models.steps.log_parts import Parts
    from hedgerow.world import LearnedWorld

__all__ = ["learn"]


def learn(
    source: "Log | LogSource | str | Path | Parts",
    model: str = "hybrid",
    *,
    progress: "StepProgress | None" = None,
    **parameters: Any,
) -> "LearnedWorld":
    """Learn a world from a log.

    Args:
        source: a log; or the path of one, of any format, or `open_log` of it, which may be larger than memory; or a
            function that gives the partitions of a log anew each time it is called.
        model: points, surface, permeable-surface, voxel, topdown, bottomup, hybrid or refined.
        progress: called with (stage, beams done, beams in all).
        parameters: of the model; `hedgerow models NAME` lists them.

    Returns:
        A world to fire at, to ask for likelihoods, and to save.

    Raises:
        InputError: unknown model or parameter, or a log that cannot be learned from; says why.
        FileError: the log cannot be read.
    """
    # Here, because the learners bring pydantic, scipy and the engine along.
    from hedgerow.base.progress import ProgressSteps
    from hedgerow.models.registry import MODELS, Job
    from hedgerow.models.steps.log_parts import parts_of, survey
    from hedgerow.world import LearnedWorld
    from hedgerow.world.store.header import Provenance

    if model not in MODELS:
        raise InputError("model", f"there is no {model!r}; there are {', '.join(MODELS)}")
    recipe = MODELS[model]
    checked = recipe.with_parameters(model, parameters)
    parts = parts_of(source)
    found = survey(parts)
    stages = ProgressSteps(found.n_beams, progress)
    tables = recipe.learn(Job(parts, found, stages), checked)
    stages.finish()
    return LearnedWorld(
        *tables,
        kind=model,
        parameters=checked.model_dump(mode="json"),
        min_range_m=found.min_range_m,
        max_range_m=found.max_range_m,
        map_origin_m=found.map_origin_m,
        provenance=Provenance(sensor=found.sensor, log=_name_of(source), n_beams=found.n_beams),
    )


def _name_of(source: object) -> str:
    if isinstance(source, str | Path):
        return Path(source).name
    path: object = getattr(source, "path", "")
    return Path(path).name if isinstance(path, str | Path) else ""
