# SPDX-License-Identifier: Apache-2.0
"""What primitives are learned as, and how they fill boxes: chosen on the first section alone.

The first 60 % of the section are learned from, the last 40 % are composed of what was found there, as other sections
are in `primitives`, and scored on a drive a metre beside. Sections 2 and 3 are never looked at. Models come first;
then, with the second of them, how primitives are scaled to their boxes and drawn; then how far returns spread about the
fitted ground and about meshes.

`size` is the length of the section; default 140 m. The refined model is left out: on a quarter of the sweeps it took
18 times as long as the hybrid model, and scored no better (docs/results/primitives.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.io import write_log
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.composition.meshes import FOLDER, foreign_meshes, plain_solids
from hedgerow.reproduce.composition.scoring import BeamScores, score_world
from hedgerow.reproduce.composition.sections import LENGTH_M, Section, open_section
from hedgerow.reproduce.composition.sites import (
    MODEL,
    Ground,
    Things,
    compose_section,
    make_library,
    of_library,
    way_of,
    write_boxes,
)
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.primitive import Library

SIZE_M = 140
LEARNED = 0.6
"""Share of the way that is learned from."""
MODELS: Mapping[str, Mapping[str, Any]] = {
    "hybrid": {"model": "hybrid"},
    "hybrid, 500 points a cluster": MODEL,
    "topdown": {"model": "topdown"},
    "topdown, 500 points a cluster": {"model": "topdown", "split_points": 500},
    "topdown, 2000 points a cluster": {"model": "topdown", "split_points": 2000},
    "terrain": {"model": "terrain"},
    "voxel": {"model": "voxel"},
}
GROUND_SIGMAS = ((0.02, 0.0), (0.05, 0.0), (0.02, 0.003), (0.05, 0.01))
MESH_SIGMAS_M = (0.05, 0.26, 0.6, 1.2)
_COLUMNS = (
    ("cloud_distance_average_m", "cloud [m]"),
    ("observation_error_m", "observation [m]"),
    ("recall", "recall"),
    ("f1", "F1"),
    ("crps_m", "CRPS [m]"),
    ("nll", "-log L"),
)


@dataclass(frozen=True, eq=False)
class _Slice:
    """The part of the section that is composed, and the log to score on."""

    work: Path
    boxes: str
    way_m: list[tuple[float, float]]
    test: Log
    keep: NDArray[np.bool_]
    seed: int

    def score(self, name: str, things: Things, ground: Ground) -> tuple[str, ...]:
        """Compose it and return a row."""
        path = self.work / "choice.toml"
        world = compose_section(path, things, self.boxes, ground, self.way_m, 77_000 + self.seed)
        scores = score_world(world, self.test, seed=self.seed)
        return (name, *_cells(scores), *_cells(scores.only(self.keep)))


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, data: Path | None = None
) -> Outcome:
    """Try models and ways to fill boxes on a section of `size` metres."""
    work = folder / "choice"
    work.mkdir(exist_ok=True)
    section = open_section(work, 1, (size or SIZE_M) / LENGTH_M[1], seed)
    n = max(10, round(section.length_m / 2))
    training = section.record(0.0, round(n * LEARNED), seed, span=(0.0, LEARNED))
    place = _slice(work, section, n, seed)
    libraries: dict[str, Library] = {}
    rows = list(_models(work, section, training, place, libraries, say))
    rows += list(_fillings(work, libraries["hybrid, 500 points a cluster"], place, data, say))
    head = ("on the first section alone", *(label for _, label in _COLUMNS))
    return Outcome(text=markdown_table((*head, *(f"no ground: {label}" for _, label in _COLUMNS)), rows))


def _slice(work: Path, section: Section, n: int, seed: int) -> _Slice:
    own = section.record(0.0, round(n * (1 - LEARNED)), seed + 1, span=(LEARNED, 1.0))
    write_log(own, work / "own.parquet")
    boxes = write_boxes(work, "boxes", section.truth_annotation(), own)
    test = section.record(1.0, 10, seed + 2, span=(LEARNED + 0.06, 0.94))
    assert test.returns.object is not None
    keep = (section.object_class[test.returns.object] != "") | ~np.isfinite(test.returns.first_m)
    return _Slice(work, boxes, way_of(own), test, keep, seed)


def _models(
    work: Path, section: Section, training: Log, place: _Slice, libraries: dict[str, Library], say: Print
) -> Iterator[tuple[str, ...]]:
    boxes = section.truth_annotation()
    seen = boxes[boxes.position_m[:, 0] < training.beams.origin_m[:, 0].max() - 2]
    for k, (name, how) in enumerate(MODELS.items()):
        libraries[name] = make_library(learn(training, **how), seen, training, work / f"library-{k}.world")
        say(f"learned {name}")
        yield place.score(name, of_library(libraries[name], scale="box"), Ground("own.parquet"))


def _fillings(work: Path, library: Library, place: _Slice, data: Path | None, say: Print) -> Iterator[tuple[str, ...]]:
    ground = Ground("own.parquet")
    for scale, among in (("none", 1), ("height", 1), ("none", 3), ("box", 3)):
        things = of_library(library, scale=scale, among=among)
        yield place.score(f"the second; scale {scale}, one of {among}", things, ground)
    for sigma_m, sigma_a_m in GROUND_SIGMAS:
        other = Ground("own.parquet", sigma_m=sigma_m, sigma_a_m=sigma_a_m)
        name = f"the second; ground spread {sigma_m} m, grazing {sigma_a_m} m"
        yield place.score(name, of_library(library, scale="box"), other)
    say("filling boxes with meshes")
    has_meshes = data is not None and (data / FOLDER).is_dir()
    for sigma_m in MESH_SIGMAS_M:
        meshes = foreign_meshes(data, work, sigma_m) if data and has_meshes else plain_solids(work, sigma_m)
        yield place.score(f"{'meshes' if has_meshes else 'plain solids'}, range noise {sigma_m} m", meshes, ground)


def _cells(scores: BeamScores) -> list[str]:
    return [f"{scores.values[key]:.3f}" for key, _ in _COLUMNS]
