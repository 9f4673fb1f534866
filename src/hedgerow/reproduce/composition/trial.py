# SPDX-License-Identifier: Apache-2.0
"""What the experiments on composed sites share: plants learned on section 1, and section 2 to be composed of them.

    library = learn_library(folder, Sizes(), seed, say)
    trial = open_trial(folder, library, Sizes(), seed, say)
    world = trial.compose("truth", trial.truth)

Section 2 was mapped once, by a drive along its trail, and is judged by another drive beside it. What the second drive
measures with another seed is the floor: no simulation can be expected to come nearer.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from hedgerow import io
from hedgerow.log import Log
from hedgerow.metrics.crps import crps
from hedgerow.models import learn
from hedgerow.reproduce.composition.scoring import DRAWS, BeamScores
from hedgerow.reproduce.composition.sections import Section, open_section
from hedgerow.reproduce.composition.sites import (
    Ground,
    Things,
    compose_section,
    make_library,
    of_library,
    way_of,
    write_boxes,
)
from hedgerow.reproduce.experiment import Print
from hedgerow.scenes.annotation import Annotation
from hedgerow.scenes.primitive import Library
from hedgerow.world.learned import LearnedWorld

MODEL = "hybrid"
"""How section 1 is learned: as Tallavajhula 2018 §4.2 does, surfaces and Gaussians."""
BESIDE_M = 1.0
"""The drive that judges goes so far to the left of the one that maps."""


@dataclass(frozen=True)
class Sizes:
    """How much of the sections is built and driven."""

    learned: float = 0.3
    """Length of section 1, as a share of its 350 m."""
    composed: float = 0.15
    """Length of section 2, as a share of its 650 m."""
    metre_per_sweep: float = 3.0
    """Of section 1: a sweep is recorded every so many metres."""
    mapped_sweeps: int = 30
    """Of the drive that maps section 2."""
    judged_sweeps: int = 12
    """Of the drive that judges."""

    @classmethod
    def of(cls, size: int | None) -> Self:
        """Return the default sizes, or with so many judging sweeps, sections that grow with them."""
        if size is None:
            return cls()
        share = min(1.0, max(0.1, 0.15 * size / 12))
        return cls(max(0.1, min(1.0, 2 * share)), share, 3.0, max(4, round(2.5 * size)), size)


@dataclass(frozen=True)
class Trial:
    """Section 2, mapped by one drive and judged by another, and the plants of section 1 to compose it of."""

    folder: Path
    library: Library
    section: Section
    truth: Annotation
    """Its true boxes."""
    mapping: Log
    """The drive that maps it."""
    judged: Log
    """The drive that judges."""
    again: tuple[Log, ...]
    """The same beams in reality, with other seeds."""
    thin: int = 3
    """One in so many mapping sweeps tells the ground."""
    mapping_file: str = "mapping.parquet"
    """The mapping drive in the folder."""

    def compose(self, name: str, boxes: Annotation, things: Things | None = None) -> LearnedWorld:
        """Compose the section of some boxes, on its fitted ground; NAME.csv and NAME.toml stay in the folder.

        Args:
            name: of the files.
            boxes: where plants stand.
            things: what fills the boxes. Default: the primitives of the library, the nearest for each, not scaled.
        """
        annotation = write_boxes(self.folder, name, on_ground(boxes), self.mapping)
        things = things or of_library(self.library)
        ground = Ground(self.mapping_file, self.thin)
        return compose_section(self.folder / f"{name}.toml", things, annotation, ground, way_of(self.mapping))

    def floor(self) -> BeamScores:
        """Score reality itself, with other seeds: the floor of every score but the likelihood, which it has not."""
        drawn = np.stack([log.returns.first_m for log in self.again])
        score = crps(self.judged.returns.first_m, drawn, self.judged.max_range_m)
        return BeamScores(self.judged, drawn[0], score, np.full(len(self.judged), np.nan))


def on_ground(boxes: Annotation) -> Annotation:
    """Return boxes that stand on the ground, wherever that is."""
    place = boxes.position_m.copy()
    place[:, 2] = np.nan
    return replace(boxes, position_m=place)


def learn_library(folder: Path, sizes: Sizes, seed: int, say: Print) -> Library:
    """Record section 1, learn it, and cut its plants out by their true boxes; the library stays in the folder."""
    section = open_section(folder, 1, sizes.learned, seed)
    log = section.record(0.0, max(4, round(section.length_m / sizes.metre_per_sweep)), seed)
    world = learn(log, MODEL)
    library = make_library(world, section.truth_annotation(), log, folder / "library.world")
    say(f"section 1, {section.length_m:.0f} m: {len(library)} primitives from {len(log):,} beams")
    return library


def open_trial(folder: Path, library: Library, sizes: Sizes, seed: int, say: Print) -> Trial:
    """Build section 2 and record its drives; the mapping drive stays in the folder."""
    section = open_section(folder, 2, sizes.composed, seed)
    mapping = section.record(0.0, sizes.mapped_sweeps, 10 * seed + 1)
    io.write_log(mapping, folder / "mapping.parquet")
    judged, *again = (
        section.record(BESIDE_M, sizes.judged_sweeps, 10 * seed + number) for number in range(2, 3 + DRAWS)
    )
    truth = section.truth_annotation()
    say(f"section 2, {section.length_m:.0f} m: {len(truth)} plants, {len(judged):,} beams to judge by")
    return Trial(folder, library, section, truth, mapping, judged, tuple(again))
