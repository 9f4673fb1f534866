# SPDX-License-Identifier: Apache-2.0
"""Tables of the experiment `primitives`: Tallavajhula 2018 Tables 4.2 and 4.3 beside ours."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.reproduce.composition.scoring import PAIRED, ROWS, BeamScores, Row, difference, verdict
from hedgerow.reproduce.composition.sections import Section
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.annotation import PLANT_CLASSES
from hedgerow.scenes.primitive import Library

if TYPE_CHECKING:
    from hedgerow.reproduce.composition.primitives import ScoredSection

TABLE_4_2 = {
    "low-shrub": (4, 4, 1.1),
    "small-shrub": (18, 12, 2.1),
    "medium-shrub": (27, 24, 3.8),
    "large-shrub": (10, 34, 5.4),
    "small-tree": (32, 150, 5.9),
    "medium-tree": (33, 301, 9.4),
    "large-tree": (19, 161, 13.4),
}
"""Instances, ellipsoids each and mean height [m] of the thesis, by class."""
_KEYS = ("cloud_distance_average_m", "observation_error_m", "precision", "recall", "f1")
_THESIS = {
    1: {"learned directly": (0.26, 3.2, 0.52, 0.95, 0.67), "neighbour": (0.30, 9.8, 0.55, 0.61, 0.57)},
    2: {"primitives": (0.48, 2.9, 0.57, 0.85, 0.68), "meshes": (0.55, 3.1, 0.58, 0.75, 0.65)},
    3: {"primitives": (0.58, 3.6, 0.56, 0.81, 0.66), "meshes": (0.72, 3.8, 0.54, 0.67, 0.59)},
}
"""Table 4.3, by section and simulator: the values of _KEYS."""
_NAMES = {1: "training section", 2: "test section 1", 3: "test section 2"}


def class_table(library: Library, section: Section) -> str:
    """Return Table 4.2 beside ours."""
    rows: list[tuple[str, ...]] = []
    for name in PLANT_CLASSES:
        mine = library.of_class(name)
        instances, elements, height_m = TABLE_4_2[name]
        ours = [np.mean([library.n_elements[k] for k in mine]), np.mean([library.facts[k].height_m for k in mine])]
        cells = (f"{ours[0]:.0f}", f"{ours[1]:.1f}") if mine else ("-", "-")
        half = f"{sum(library.facts[k].is_half_seen for k in mine)}"
        rows.append((name, str(instances), str(len(mine)), str(elements), cells[0], f"{height_m}", cells[1], half))
    head = ("Table 4.2", "instances, thesis", f"ours in {section.length_m:.0f} m", "elements each, thesis", "ours")
    return markdown_table((*head, "mean height, thesis [m]", "ours [m]", "half seen"), rows)


def section_table(scored: "ScoredSection", *, training: bool) -> str:
    """Return Table 4.3 of one section beside ours: all beams, then those that met no ground."""
    number = scored.section.number
    keep = scored.not_ground
    title = f"Table 4.3, {_NAMES[number]}, {scored.section.length_m:.0f} m, {len(scored.test.sweeps)} sweeps"
    parts = [beams_table(f"{title}, all beams", scored.all_beams, _thesis(number))]
    some = {name: scores.only(keep) for name, scores in scored.all_beams.items()}
    parts.append(beams_table(f"the same, the {keep.mean():.0%} of the beams that met no ground", some, {}))
    if not training:
        parts.append(paired_text(_NAMES[number], {"all beams": scored.all_beams, "no ground": some}))
    return "\n\n".join(parts)


def _thesis(number: int) -> dict[str, dict[str, float]]:
    return {name: dict(zip(_KEYS, values, strict=True)) for name, values in _THESIS[number].items()}


def beams_table(title: str, scores: Mapping[str, BeamScores], thesis: Mapping[str, Mapping[str, float]]) -> str:
    """Return the scores of several worlds, a row for each score; the thesis' values stand in brackets."""
    paired = "primitives" in scores and "meshes" in scores
    rows: list[tuple[str, ...]] = []
    for row in ROWS:
        cells = [_cell(row, each.values, thesis.get(name, {})) for name, each in scores.items()]
        judged = (verdict(row, scores["primitives"].values, scores["meshes"].values),) if paired else ()
        rows.append((row.label, *cells, *judged))
    return markdown_table((title, *scores, *(("primitives against meshes",) if paired else ())), rows)


def _cell(row: Row, values: Mapping[str, float], thesis: Mapping[str, float]) -> str:
    said = f"{values[row.key]:.{row.digits}f}"
    return f"{said} ({thesis[row.key]:g})" if row.key in thesis else said


def paired_text(place: str, beams: Mapping[str, Mapping[str, BeamScores]]) -> str:
    """Say by how much primitives are ahead of meshes, with intervals over the sweeps."""
    label = {row.key: row.label for row in ROWS}
    rows: list[tuple[str, ...]] = []
    for key in PAIRED:
        said = [difference(each["primitives"], each["meshes"], key).words() for each in beams.values()]
        rows.append((label[key], *said))
    head = f"{place}: primitives less meshes, by sweep; below 0 primitives are better"
    return markdown_table((head, *beams), rows)
