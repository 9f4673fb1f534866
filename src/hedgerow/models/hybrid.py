# SPDX-License-Identifier: Apache-2.0
"""The hybrid model: triangles where the log saw surfaces, Gaussians where it saw volumes (Browning 2012 §3.3.4).

A classifier says for every place which of the two it is (steps/classifier.py). The surface model learns the surface,
the top-down model the volumes. Permeability is counted for all of them together: a beam that passes a hedge may be
stopped by the wall behind it.

Equations: docs/models.md §12.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator

from hedgerow.errors import InputError, warn
from hedgerow.log import Log
from hedgerow.models.steps.classifier import (
    ClassifierParameters,
    learn_volume_map,
    read_classifier,
    select_volume_beams,
)
from hedgerow.models.steps.credit import CreditParameters, learn_permeability
from hedgerow.models.steps.kept import another_model, wide_enough_m
from hedgerow.models.steps.log_chunks import LearningTask
from hedgerow.models.steps.permeability import CountParameters, Tables
from hedgerow.models.surface import SurfaceParameters, better_kernel_m, fit_surface, node_of, with_noise
from hedgerow.models.topdown import TopdownParameters, fit_clusters

Counting = TypeVar("Counting", bound=CountParameters)


def read_if_file(value: object) -> object:
    """Read the parameters of a tuned classifier if their file is named."""
    return read_classifier(value) if isinstance(value, str | Path) else value


def _require_no_counting(parameters: Counting) -> Counting:
    """Refuse counting parameters that would have no effect."""
    own = type(parameters).model_fields
    for name in (each for each in CreditParameters.model_fields if each in own):
        if getattr(parameters, name) != own[name].default:
            raise InputError(name, f"surface and volumes are counted together; set {name} of the hybrid model instead")
    return parameters


class HybridParameters(CreditParameters):
    """Parameters of the hybrid model."""

    classifier: Annotated[ClassifierParameters, BeforeValidator(read_if_file)] = ClassifierParameters()
    """Classifier of surface and volume: parameters, or a TOML file written by `hedgerow tune classifier`."""
    surface: Annotated[SurfaceParameters, AfterValidator(_require_no_counting)] = SurfaceParameters()
    """Parameters of the surface."""
    topdown: Annotated[TopdownParameters, AfterValidator(_require_no_counting)] = TopdownParameters()
    """Parameters of the volumes."""


def learn_hybrid(task: LearningTask, parameters: HybridParameters) -> Tables:
    """Learn permeable triangles and Gaussians."""
    is_volume = learn_volume_map(task.chunks, parameters.classifier, progress=task.start("telling surface from volume"))

    def volume_chunks() -> Iterator[Log]:
        return (select_volume_beams(log, is_volume) for log in task.chunks())

    triangles = fit_surface(
        task.chunks,
        parameters.surface,
        points_to_use=lambda position_m: ~is_volume(position_m),
        progress=task.start("fitting the surface"),
    )
    tables: Tables = (with_noise(task, triangles, parameters.surface),)
    if any(log.returns.hit.any() for log in volume_chunks()):
        tables += (fit_clusters(volume_chunks, parameters.topdown, progress=task.start("clustering volumes")),)
    if len(triangles) == 0 and len(tables) > 1:
        lengths = _longer(task, parameters)
        found = "log: no surface was found in it, and this world has Gaussians alone, as one of topdown has"
        warn(f"{found}; take {lengths} to find one" if lengths else found)
    return learn_permeability(task, tables, parameters, advice=lambda: _advice(task, parameters))


def _advice(task: LearningTask, parameters: HybridParameters) -> str:
    lengths = _longer(task, parameters)
    return f"take {lengths}, or the model topdown, which keeps all of them" if lengths else another_model()


def _longer(task: LearningTask, parameters: HybridParameters) -> str:
    """Return the lengths that let classifier and surface find something among sparse points; empty if these do."""
    own = parameters.classifier
    radius_m, kernel_m = wide_enough_m(task.chunks, own.min_neighbours), better_kernel_m(task, parameters.surface)
    if radius_m is None or radius_m <= own.radius_m or kernel_m is None:
        return ""
    node_m = node_of(parameters.surface, kernel_m)
    return f"classifier.radius_m={radius_m:g}, surface.kernel_m={kernel_m:g} and surface.node_m={node_m:g}"
