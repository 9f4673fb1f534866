# SPDX-License-Identifier: Apache-2.0
"""Sections composed of what was learned elsewhere: a library, scene files that name it, and the worlds of these.

Everything is written into a folder, as a user would have it: logs (.parquet), annotations (.csv), libraries (.world)
and scene files (.toml), which `hedgerow compose` takes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.atomic import atomic_file
from hedgerow.compose.box_segmentation import segment_by_boxes
from hedgerow.compose.composition import compose
from hedgerow.compose.primitives import extract_primitives
from hedgerow.log import Log
from hedgerow.reproduce.composition.sections import SENSOR
from hedgerow.reproduce.segmentation_site import KINDS
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation, write_annotation
from hedgerow.scenes.primitive import Library
from hedgerow.sensor import Sensor
from hedgerow.world.learned import LearnedWorld

MODEL: Mapping[str, Any] = {"model": "hybrid", "topdown.split_points": 500}
"""What primitives are learned as: a compromise between scores on the first section alone (choice.py)."""
DIRECT: Mapping[str, Any] = {"model": "hybrid"}
"""What a section is learned directly as."""
MESH_SIGMA_M = 0.26
"""Spread of returns about foreign meshes: the range noise of Tallavajhula 2018 Table 4.1, 0.07 m²."""
PRIMITIVES, MESHES, LEARNED, NEIGHBOUR = "primitives", "meshes", "learned directly", "neighbour"
"""What worlds are called in tables."""
THIN = 3
"""Of the sweeps of a section's own log, one in so many tells its ground."""
_DETAIL = 0.15
_VARIANTS = 4


@dataclass(frozen=True)
class Ground:
    """The ground of a composed section: which log it is fitted to, and how far returns scatter about it."""

    log: str
    """File name."""
    thin: int = THIN
    sigma_m: float = 0.02
    """Spread of returns about it: grass, and what the fit leaves; measured on the first section (choice.py)."""
    sigma_a_m: float = 0.003
    """The same for grazing beams (Browning 2012 eq. 1)."""


@dataclass(frozen=True)
class Things:
    """What boxes are filled with: tables of a scene file, and how they are scaled."""

    tables: str
    """[primitives.*] of all seven classes, and what they name."""
    among: int = 1
    scale: str = "none"
    classes: tuple[str, ...] = PLANT_CLASSES


def make_library(world: LearnedWorld, boxes: Annotation, log: Log | None, path: Path) -> Library:
    """Cut the plants of boxes out of a world and write them; the ground is told by height alone, without labels."""
    found = segment_by_boxes(world, boxes, use_labels=False)
    extract_primitives(world, found, log=log).save(path)
    return Library(path)


def of_library(library: Library, *, among: int = 1, scale: str = "none") -> Things:
    """Fill boxes with learned primitives; classes that the library has none of are left out."""
    there = tuple(name for name in PLANT_CLASSES if library.of_class(name))
    tables = [f'[primitives.{name}]\nlibrary = "{library.path.name}"\nclass = "{name}"' for name in there]
    return Things("\n\n".join(tables), among, scale, there)


def of_plants(among: int = 1, scale: str = "none") -> Things:
    """Fill boxes with procedural plants of the kinds of the truth; a scene's seed grows other ones."""
    tables: list[str] = []
    for name in PLANT_CLASSES:
        kind, values = KINDS[name]
        inline = ", ".join(f"{key} = {value}" for key, value in (values | {"detail": _DETAIL}).items())
        grown = f'[plants.{name}-plant]\nkind = "{kind}"\nvariants = {_VARIANTS}\nparameters = {{ {inline} }}'
        tables.append(f'{grown}\n\n[primitives.{name}]\nof = "{name}-plant"\nclass = "{name}"')
    return Things("\n\n".join(tables), among, scale)


def compose_section(
    path: Path,
    things: Things,
    annotation: str,
    ground: Ground,
    way_m: Iterable[tuple[float, float]],
    seed: int = 1,
) -> LearnedWorld:
    """Write the scene file of a composed section and compose it.

    Args:
        path: the scene file to write; what it names lies beside it.
        things: what fills the boxes.
        annotation: file name of the boxes.
        ground: what they stand on.
        way_m: (P, 2) line that half-seen primitives face; if it is empty they stand as boxes do.
        seed: of draws, and of plants.
    """
    corners = ", ".join(f"[{x:.2f}, {y:.2f}]" for x, y in way_m)
    way = f"[trajectories.drive]\nwaypoints_m = [{corners}]" if corners else ""
    chosen = ", ".join(f'"{name}"' for name in things.classes)
    text = f"""# SPDX-License-Identifier: Apache-2.0
seed = {seed}
sensor = "{SENSOR}"

[materials.fitted-ground]
about = "ground fitted to a log, with the grass on it"
wavelength_nm = [905]
reflectance = [0.25]
sigma0_m = {ground.sigma_m}
sigma_a_m = {ground.sigma_a_m}

[terrain]
kind = "log"
file = "{ground.log}"
thin = {ground.thin}
material = "fitted-ground"

[annotation]
file = "{annotation}"
among = {things.among}
scale = "{things.scale}"
classes = [{chosen}]

{things.tables}

{way}
"""
    with atomic_file(path) as temporary:
        temporary.write_text(text)
    return compose(path, wavelength_nm=Sensor.named(SENSOR).config.beam.wavelength_nm)


def way_of(log: Log, step_m: float = 5.0) -> list[tuple[float, float]]:
    """Return corners of the line that the sensor drove, at least a step apart; of a shorter way, its ends."""
    _, first = np.unique(log.beams.sweep, return_index=True)
    places = [(x, y) for x, y in log.beams.origin_m[first, :2].tolist()]
    corners = places[:1]
    for x, y in places:
        if np.hypot(x - corners[-1][0], y - corners[-1][1]) >= step_m:
            corners.append((x, y))
    if len(corners) == 1:
        corners = [places[0], places[-1]] if places[-1] != places[0] else []
    return corners


def write_boxes(folder: Path, name: str, boxes: Annotation, log: Log) -> str:
    """Write the boxes that stand where a log saw something beside the scene files; return the file name."""
    points_m = log.points()[:, :2]
    low, high = points_m.min(axis=0), points_m.max(axis=0)
    seen = ((boxes.position_m[:, :2] > low) & (boxes.position_m[:, :2] < high)).all(axis=1)
    write_annotation(folder / f"{name}.csv", boxes[seen])
    return f"{name}.csv"
