# SPDX-License-Identifier: Apache-2.0
"""A real drive, its second half composed of plants that were learned in its first half.

Nothing is labelled, and nothing is done by hand: plants are cut out of the world of the first half, and boxes are found
in the log of the second half, by `segment`. What moves is masked in both. Of the second half, one sweep in five is held
out to score on; the others tell its ground and its boxes. Walls, posts and vehicles that stand are left out of composed
worlds, so rows of beams that end in a plant, or nowhere, stand beside those of all beams.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.compose.box_segmentation import segment_by_boxes
from hedgerow.compose.primitives import extract_primitives
from hedgerow.compose.segmentation import RETURNS, segment
from hedgerow.errors import InputError
from hedgerow.io import open_log, write_log
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.composition.moving import is_moving
from hedgerow.reproduce.composition.primitives_text import beams_table, paired_text
from hedgerow.reproduce.composition.scoring import BeamScores, score_world
from hedgerow.reproduce.composition.sites import (
    DIRECT,
    LEARNED,
    MESHES,
    MODEL,
    NEIGHBOUR,
    PRIMITIVES,
    Ground,
    Things,
    compose_section,
    of_library,
    way_of,
    write_boxes,
)
from hedgerow.reproduce.experiment import Print
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation
from hedgerow.scenes.primitive import Library
from hedgerow.world.learned import LearnedWorld

DRIVE = "drive.parquet"
HELD_OUT = 5
"""One sweep in so many of the second half is scored on."""
_FEWEST = 20
"""Sweeps of a drive."""


def score_halves(path: Path, work: Path, meshes: Things, seed: int, say: Print) -> str:
    """Learn the first half of a real drive, compose the second half, and return what it scores.

    Args:
        path: the log; every second beam of it is used.
        work: folder for scene files and libraries.
        meshes: what boxes are filled with beside primitives.
        seed: of the firings.
        say: shows how far it is.

    Raises:
        FileError: the log cannot be read.
        InputError: too few sweeps.
    """
    log, n_masked = _read(path)
    numbers = log.sweeps
    half = len(numbers) // 2
    first, second = log.select(sweep=numbers[:half]), numbers[half:]
    test = log.select(sweep=second[HELD_OUT // 2 :: HELD_OUT])
    own = log.select(sweep=np.setdiff1d(second, test.sweeps))
    say(f"{path.name}: {len(numbers)} sweeps, {n_masked:,} beams of moving things masked")
    library = _library(first, work / "real-primitives.world")
    boxes = segment(own, use_labels=False).annotation(PLANT_CLASSES)
    worlds, n_boxes = _worlds(work, library, meshes, boxes, own)
    scores: dict[str, BeamScores] = {}
    for name, world in worlds.items():
        scores[name] = score_world(world, test, seed=seed)
        say(f"{path.name}, {name}: CRPS {scores[name].crps_m.mean():.3f} m")
    keep = _not_ground(test, boxes)
    some = {name: each.only(keep) for name, each in scores.items()}
    title = f"real drive, its second half, {len(test.sweeps)} sweeps held out"
    about = (
        f"{len(library)} primitives of the first half ({half} sweeps), {n_boxes} boxes of the second, all found by "
        f"`segment`; {n_masked:,} of {n_masked + len(log):,} beams masked as moving."
    )
    tables = [beams_table(f"{title}, all beams", scores, {})]
    tables.append(beams_table(f"the same, the {keep.mean():.0%} of the beams that met a plant or nothing", some, {}))
    return "\n\n".join([*tables, paired_text("real drive", {"all beams": scores, "plants": some}), about])


def _read(path: Path) -> tuple[Log, int]:
    """Read every second beam of a drive, without what moves; return how many beams that were, too."""
    recording = open_log(path)
    if len(recording.sweeps) < _FEWEST:
        raise InputError(f"{path}", f"has {len(recording.sweeps)} sweeps; two halves take at least {_FEWEST}")
    log = recording.read(recording.sweeps)[::2]
    moving = is_moving(log)
    return log[~moving], int(np.count_nonzero(moving))


def _library(log: Log, path: Path) -> Library:
    world = learn(log, **MODEL)
    extract_primitives(world, segment(world, use_labels=False), log=log).save(path)
    return Library(path)


def _worlds(
    work: Path, library: Library, meshes: Things, boxes: Annotation, own: Log
) -> tuple[dict[str, LearnedWorld], int]:
    """Compose the boxes whose class the library has of primitives and of meshes; learn the same directly."""
    write_log(own, work / "real-own.parquet")
    things = of_library(library, scale="box")
    chosen = boxes[np.isin(boxes.class_name, things.classes)].expanded()
    plants = write_boxes(work, "real-plants", chosen, own)
    worlds: dict[str, LearnedWorld] = {}
    for name, each in ((PRIMITIVES, things), (MESHES, meshes)):
        ground = Ground("real-own.parquet")
        worlds[name] = compose_section(work / f"real-{name}.toml", each, plants, ground, way_of(own))
    return worlds | {LEARNED: learn(own, **DIRECT), NEIGHBOUR: learn(own, "points")}, len(chosen)


def _not_ground(test: Log, boxes: Annotation) -> NDArray[np.bool_]:
    """(N,) beams that end in the box of a plant, or nowhere."""
    hit = np.isfinite(test.returns.first_m)
    keep = ~hit
    keep[hit] = segment_by_boxes(test, boxes, use_labels=False).object[RETURNS] > 0
    return keep
