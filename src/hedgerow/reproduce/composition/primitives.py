# SPDX-License-Identifier: Apache-2.0
"""Sections composed of plants that were learned elsewhere (Tallavajhula 2018 Tables 4.2 and 4.3, Fig. 4.19).

The first of three sections (sections.py) is learned from a drive; its plants are cut out with the boxes of a hand that
errs nowhere. The two others are composed: the boxes of their plants, filled with primitives of the first, on the ground
of their own log, of which one sweep in three is used. Beside them stand the section learned directly from a drive of
its own, the playback of that drive (neighbour), and the same boxes on the same ground filled with meshes: foreign ones
(meshes.py), and plants of the truth's own generator with other seeds. All are scored on another drive, a metre beside.

`size` is the length of the first section; the others keep their ratio. 350 m is as long as in the thesis.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.io import write_log
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.composition.meshes import FOLDER, foreign_meshes, plain_solids
from hedgerow.reproduce.composition.own_places import own_places
from hedgerow.reproduce.composition.primitives_picture import draw_clouds
from hedgerow.reproduce.composition.primitives_text import class_table, section_table
from hedgerow.reproduce.composition.real_halves import DRIVE, score_halves
from hedgerow.reproduce.composition.scoring import BeamScores, score_world
from hedgerow.reproduce.composition.sections import LENGTH_M, Section, open_section
from hedgerow.reproduce.composition.sites import (
    DIRECT,
    LEARNED,
    MESH_SIGMA_M,
    MESHES,
    MODEL,
    NEIGHBOUR,
    PRIMITIVES,
    Ground,
    Things,
    compose_section,
    make_library,
    of_library,
    of_plants,
    way_of,
    write_boxes,
)
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.scenes.annotation import PLANT_CLASSES
from hedgerow.scenes.primitive import Library
from hedgerow.world.learned import LearnedWorld

SIZE_M = 70
"""Length of the first section by default."""
SHORTEST_M = 35
STEP_M = 2.0
"""Way between two sweeps of a drive."""
BESIDE_M = 1.0
"""How far beside it the test drive goes."""
OTHER_SEED = 77_000
"""Of the plants of the truth's own generator: none of the sections has it."""
PLANTS = "own generator"


@dataclass(frozen=True, eq=False)
class ScoredSection:
    """The scores of several worlds of one section."""

    section: Section
    test: Log
    all_beams: Mapping[str, BeamScores]
    """By the name of the world."""

    @property
    def not_ground(self) -> NDArray[np.bool_]:
        """(N,) beams of the test log that really ended in a plant, or nowhere."""
        assert self.test.returns.object is not None
        is_plant = self.section.object_class[self.test.returns.object] != ""
        return is_plant | ~np.isfinite(self.test.returns.first_m)


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, data: Path | None = None
) -> Outcome:
    """Learn the first of three sections, `size` metres long, and compose the two others of it."""
    length_m = size or SIZE_M
    if length_m < SHORTEST_M:
        raise InputError("--size", f"{length_m} m; the first section is at least {SHORTEST_M} m long")
    work = folder / "sections"
    work.mkdir(exist_ok=True)
    fillings, about = _meshes(work, data)
    first = learn_first(work, length_m / LENGTH_M[1], seed, say)
    parts = [class_table(first.library, first.section), section_table(first.scored, training=True), first.quality]
    pictures: list[Path] = []
    for number in (2, 3):
        scored = compose_other(work, number, length_m / LENGTH_M[1], first.library, fillings, seed, say)
        parts.append(section_table(scored, training=False))
        pictures.append(folder / f"primitives-{number}.png")
        shown = {name: scored.all_beams[name] for name in (PRIMITIVES, MESHES)}
        draw_clouds(pictures[-1], scored.test, shown, scored.section.site.terrain)
    parts.append(about)
    parts.append(_real(work, data, fillings, seed, say))
    return Outcome(text="\n\n".join(parts), pictures=tuple(pictures))


def _meshes(work: Path, data: Path | None) -> tuple[Things, str]:
    """Return the meshes that are compared with, and words about them."""
    if data is None or not (data / FOLDER).is_dir():
        said = "plain solids of our own (cones on trunks, ellipsoids): give the folder with free meshes, `--data DIR`"
        return plain_solids(work, MESH_SIGMA_M), f"Meshes: {said}."
    said = "trees of Kenney; for shrubs a fern, a celandine and a clump of grass of MAVS, scaled to the boxes"
    return foreign_meshes(data, work, MESH_SIGMA_M), f"Meshes: {said}; range noise {MESH_SIGMA_M} m."


def _real(work: Path, data: Path | None, meshes: Things, seed: int, say: Print) -> str:
    if data is None or not (data / DRIVE).is_file():
        return f"No real drive was composed: give a folder with {DRIVE}, `--data DIR` (tools/real_logs.py makes one)."
    return score_halves(data / DRIVE, work, meshes, seed, say)


@dataclass(frozen=True, eq=False)
class FirstSection:
    """What is learned from the first section."""

    section: Section
    world: LearnedWorld
    library: Library
    scored: ScoredSection
    quality: str
    """What composing it of its own primitives loses."""


def learn_first(work: Path, scale: float, seed: int, say: Print) -> FirstSection:
    """Learn the first section, cut out its plants, and score what was learned."""
    section, log, test = _drives(work, 1, scale, seed, say)
    world = _learn(log, MODEL, say)
    world.save(work / "section-1.world")
    boxes = section.truth_annotation()
    library = make_library(world, boxes, log, work / "primitives.world")
    say(f"cut out {len(library)} primitives")
    scored = _score(section, test, {LEARNED: world, NEIGHBOUR: learn(log, "points")}, seed, say)
    quality = own_places(work, world, boxes, log, scored.all_beams[LEARNED], seed)
    return FirstSection(section, world, library, scored, quality)


def compose_other(
    work: Path, number: int, scale: float, library: Library, meshes: Things, seed: int, say: Print
) -> ScoredSection:
    """Compose another section of a library and of meshes, learn it directly, and score all."""
    section, log, test = _drives(work, number, scale, seed, say)
    write_log(log, work / f"drive-{number}.parquet")
    boxes = write_boxes(work, f"plants-{number}", section.truth_annotation(), log)
    ground, way_m = Ground(f"drive-{number}.parquet"), way_of(log)
    fillings = {PRIMITIVES: of_library(library, scale="box"), MESHES: meshes, PLANTS: of_plants(scale="box")}
    worlds: dict[str, LearnedWorld] = {}
    for name, things in fillings.items():
        path = work / f"{name.replace(' ', '-')}-{number}.toml"
        worlds[name] = compose_section(path, things, boxes, ground, way_m, OTHER_SEED + seed)
    worlds |= {LEARNED: _learn(log, DIRECT, say), NEIGHBOUR: learn(log, "points")}
    missing = [name for name in PLANT_CLASSES if not library.of_class(name)]
    if missing:
        say(f"the library has no {', no '.join(missing)}; their boxes stay empty for primitives")
    return _score(section, test, worlds, seed, say)


def _drives(work: Path, number: int, scale: float, seed: int, say: Print) -> tuple[Section, Log, Log]:
    """Open a section; record the drive to learn from, and another one to score on."""
    section = open_section(work, number, scale, seed)
    log = section.record(0.0, max(8, round(section.length_m / STEP_M)), 10 * seed + number)
    n_test = int(np.clip(section.length_m / 5, 10, 40))
    test = section.record(BESIDE_M, n_test, 100 * seed + number)
    say(f"section {number}: {section.length_m:.0f} m, {len(log.sweeps)} sweeps to learn from, {n_test} to score on")
    return section, log, test


def _learn(log: Log, how: Mapping[str, Any], say: Print) -> LearnedWorld:
    world = learn(log, **how)
    say(f"learned {world.size().elements:,} elements ({world.kind})")
    return world


def _score(section: Section, test: Log, worlds: Mapping[str, LearnedWorld], seed: int, say: Print) -> ScoredSection:
    scores: dict[str, BeamScores] = {}
    for name, world in worlds.items():
        scores[name] = score_world(world, test, seed=seed)
        say(f"section {section.number}, {name}: CRPS {scores[name].crps_m.mean():.3f} m")
    return ScoredSection(section, test, scores)
