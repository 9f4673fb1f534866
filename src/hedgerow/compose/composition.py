# SPDX-License-Identifier: Apache-2.0
"""Compose a site of a scene file as a world that can be saved: assets, and where their copies stand.

world = compose("forest.toml")     # a World like any other: fire, log_likelihood, compare, save
world.save("forest.world")
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.labels import LABELS
from hedgerow.base.progress import StepProgress
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.scenes.site import load_site
from hedgerow.world.elements import Instances
from hedgerow.world.learned import LearnedWorld


def compose(
    name_or_path: str | Path,
    *,
    settings: BeamSettings | None = None,
    wavelength_nm: float = 905.0,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    progress: StepProgress | None = None,
) -> LearnedWorld:
    """Build a scene file and return it as a world of assets and instances.

    Args:
        name_or_path: a scene file (.toml), or a shipped scene.
        settings: how pulses are sampled and received where meshes stand.
        wavelength_nm, seed, set, progress: as in `load_site`.

    Raises:
        FileError: the file, a library or an annotation is wrong; names the field, with its line.
        InputError: no such scene, or an argument is out of bounds.
    """
    site = load_site(name_or_path, wavelength_nm=wavelength_nm, seed=seed, set=set, record=True, progress=progress)
    return site.composed(settings)


def count_classes(world: LearnedWorld) -> dict[str, int]:
    """Count the instances of each class, by name; those without a class are left out."""
    instances = world.tables.get("instances")
    if not isinstance(instances, Instances):
        return {}
    names = {label.number: name for name, label in LABELS.items()} | {n: name for name, n in world.classes.items()}
    number, count = np.unique(instances.class_label[instances.class_label > 0], return_counts=True)
    return {names.get(int(each), str(each)): int(n) for each, n in zip(number, count, strict=True)}
