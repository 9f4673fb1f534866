# SPDX-License-Identifier: Apache-2.0
"""Tallavajhula 2018 §4.4.2, Table 4.4, Figs. 4.26 and 4.27: does scan matching err in composed sites as in reality?

Settings of `scan-matching` (apps/scan_matching.py) are drawn and run on pairs of sweeps, real and simulated. Risk is
how far the mean position error [m] and the mean angle error [rad] in simulation are from those in reality. Reality is
section 2 of the scene of which everything is known, and with `--data DIR` the second half of a real drive
(DIR/drive.parquet, made by tools/real_logs.py). DIR/meshes has meshes of plants from elsewhere; without it, meshes are
our procedural plants, grown from another seed than those of the truth by the same generator.

All runs are kept in scan-matching-risk/NAME/risk.parquet in the folder: a second run with more settings goes on there.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.apps.scan_matching import ScanMatching
from hedgerow.apps.space import Setting, Space
from hedgerow.base.arguments import as_whole
from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.reproduce.composition.scan_matching_pictures import draw_along, draw_losses, draw_paths, estimated_paths
from hedgerow.reproduce.composition.scan_matching_places import (
    DRIVE,
    FOREIGN,
    OWN,
    PRIMITIVES,
    TABLE,
    Place,
    check_data,
    open_known,
    open_real,
)
from hedgerow.reproduce.composition.trial import Sizes
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.risk.along import along
from hedgerow.risk.bootstrap import losses
from hedgerow.risk.measure import measure, with_store
from hedgerow.risk.objectives import pair, pooled
from hedgerow.risk.run import evaluate
from hedgerow.risk.score import RiskScore, RiskScores, objective_by_source, score
from hedgerow.risk.table import DRAWN, RiskTable

SETTINGS = 32
N_PAIRS = 12
ALONG = ("voxel_m", "distance_m", "change")
"""Parameters that are varied one at a time: Tallavajhula 2018 found an optimum along the voxel size and a step along
the least change of the objective."""
THESIS = {"position": {PRIMITIVES: 0.070, FOREIGN: 0.096}, "angle": {PRIMITIVES: 0.0016, FOREIGN: 0.0061}}
"""Table 4.4 [m], [rad]: 1,000 settings of seven parameters, 300 scans."""
DIGITS = {"position": 3, "angle": 5}
_ALONG_VALUES = 6
_JOBS = 2
_MOST_SETTINGS = 100_000


@dataclass(frozen=True)
class Found:
    """What was measured at one place."""

    place: Place
    table: RiskTable
    scores: dict[str, RiskScores]
    """By objective."""


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, data: Path | None = None
) -> Outcome:
    """Measure the risk of learned and composed sites for scan matching with `size` settings."""
    app = ScanMatching()
    check_data(data, N_PAIRS)
    n_settings = as_whole("--size", SETTINGS if size is None else size, 2, _MOST_SETTINGS)
    places = [open_known(_work(folder, "known"), Sizes(), N_PAIRS, seed, say, data)]
    if data is not None and (data / DRIVE).is_file():
        places.append(open_real(_work(folder, "real"), data, N_PAIRS, seed, say))
    parts: list[str] = []
    pictures: list[Path] = []
    for place in places:
        found = measure_place(app, place, n_settings, seed, _work(folder, place.name) / TABLE, say)
        drawn, paths = draw(folder, app, found, seed)
        parts.append(text(app, found, paths))
        pictures += drawn
    if len(places) == 1:
        parts.append(f"No real drive was tried: give a folder with {DRIVE}, `--data DIR`.")
    return Outcome(text="\n\n".join(parts), pictures=tuple(pictures))


def _work(folder: Path, name: str) -> Path:
    path = folder / "scan-matching-risk" / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def measure_place(app: ScanMatching, place: Place, n_settings: int, seed: int, output: Path, say: Print) -> Found:
    """Run all settings on reality and every world, and the default setting with one parameter varied at a time."""
    sources = place.sources()
    shown = 0

    def progress(done: int) -> None:
        nonlocal shown
        if done // 500 > shown:
            shown = done // 500
            say(f"{place.name}: {done:,} runs")

    seeds = (seed, seed + 1)
    table = measure(
        app, sources, settings=n_settings, seed=seed, seeds=seeds, output=output, jobs=_JOBS, progress=progress
    )
    # A table of an earlier run may hold more settings; all of them count.
    shown_sources = [each for each in sources if each.role != "again"]
    for name in ALONG:
        path = path_along(name)
        table.settings[path] = vary(app.space, name)
        with_store(table, output, partial(_evaluate, app=app, table=table, sources=shown_sources, seed=seed, path=path))
    return Found(place, table, {name: score(table, app, name, seed=seed) for name in app.objectives})


def _evaluate(keep: Any, *, app: ScanMatching, table: RiskTable, sources: Any, seed: int, path: str) -> None:
    evaluate(app, table, sources, seeds=(seed,), path=path, jobs=_JOBS, keep=keep)


def path_along(name: str) -> str:
    """Return what the table calls the settings that differ in one parameter."""
    return f"along {name}"


def vary(space: Space, name: str) -> list[Setting]:
    """Return the default setting with values of one parameter, evenly from its least to its largest.

    Raises:
        InputError: there is no such parameter.
    """
    if name not in space.parameters:
        raise InputError("parameter", f"expected one of {', '.join(space.parameters)}, found {name}")
    values = [space.parameters[name].at(share) for share in np.linspace(0, 1, _ALONG_VALUES).tolist()]
    return [space.start({name: value}) for value in values]


def typical_setting(table: RiskTable, app: ScanMatching) -> Setting:
    """Return the setting whose real position error is the median: half do better, half worse."""
    j = objective_by_source(table, app.objectives["position"])[table.real]
    known = np.flatnonzero(np.isfinite(j))
    if not len(known):
        raise InputError("scan-matching-risk", "no setting ran well on the real sweeps")
    order = known[np.argsort(j[known], kind="stable")]
    return table.settings[DRAWN][int(order[len(order) // 2])]


def draw(folder: Path, app: ScanMatching, found: Found, seed: int) -> tuple[list[Path], dict[str, dict[str, Array]]]:
    """Draw bars of losses, estimated paths, and J along parameters; return the pictures and the paths."""
    name = found.place.name
    pictures = [folder / f"scan-matching-{each}-{name}.png" for each in ("losses", "paths", "along")]
    table = found.table
    real = objective_by_source(table, app.objectives["position"])[table.real]
    loss = {
        each: {
            source: losses(pair(table.of(table.real), table.of(source), app.objectives[each]))
            for source in found.scores[each].scores
        }
        for each in found.scores
    }
    draw_losses(pictures[0], loss, real, {each: _floor(scores) for each, scores in found.scores.items()})
    chosen = {"a typical setting": typical_setting(table, app), "the default setting": app.space.start()}
    paths = {title: estimated_paths(found.place, setting, seed) for title, setting in chosen.items()}
    draw_paths(pictures[1], paths)
    draw_along(pictures[2], {each: curves(app, table, each) for each in app.objectives}, app.space)
    return pictures, paths


def curves(app: ScanMatching, table: RiskTable, objective: str) -> dict[str, dict[str, tuple[Array, Array]]]:
    """Return by parameter and source the values of the parameter, and J there."""
    names = (table.real, *table.names("simulated"))
    answer: dict[str, dict[str, tuple[Array, Array]]] = {}
    for each in ALONG:
        path = path_along(each)
        value = np.array([float(setting[each]) for setting in table.settings[path]])
        answer[each] = {
            name: (value, pooled(table.of(name, path), app.objectives[objective])[: len(value)]) for name in names
        }
    return answer


def _floor(scores: RiskScores) -> float:
    return float("nan") if scores.floor is None else scores.floor.value


def text(app: ScanMatching, found: Found, paths: dict[str, dict[str, Array]]) -> str:
    """Return the tables of one place, beside the thesis's, and what they say."""
    heading = {"known": "Three sections, everything known", "real": "Real drive"}[found.place.name]
    first = found.scores["position"]
    failed = f"{first.failures:.1%} of the real runs failed"
    run = f"{first.n_settings} settings of {len(app.space.parameters)} parameters, {len(first.seeds)} seeds; {failed}"
    parts = [f"## {heading}", f"{found.place.about} {run}."]
    parts += [_risk_table(each, found) for each in found.scores]
    parts.append(_along_words(app, found.table))
    parts.append(_path_table(paths))
    return "\n\n".join(parts)


def _risk_table(objective: str, found: Found) -> str:
    scores = found.scores[objective]
    digits = DIGITS[objective]
    head = (
        f"{objective} error [{scores.unit}]",
        *(("thesis",) if found.place.name == "known" else ()),
        "risk",
        "95 % interval",
        "against itself, other seed",
        "reality against itself",
        "bias",
        "regret",
        "rank agreement",
        "failed",
    )
    rows = [_risk_row(name, each, objective, found, digits) for name, each in scores.scores.items()]
    how = "" if scores.floor is None else f"Reality against itself: {scores.floor.how}."
    real = objective_by_source(found.table, ScanMatching().objectives[objective])[found.table.real]
    span = ", ".join(f"{value:.{digits}f}" for value in np.nanquantile(real, [0, 0.5, 1]))
    said = f"J real over the settings, least, median, largest: {span} {scores.unit}. {how}"
    lines = [*(each.words() for each in scores.differences), *scores.notes]
    return f"{markdown_table(head, rows)}\n\n{said}\n\n" + "\n".join(f"- {each}" for each in lines)


def _risk_row(name: str, each: RiskScore, objective: str, found: Found, digits: int) -> list[str]:
    def number(value: float | None) -> str:
        return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"

    thesis = THESIS[objective].get(name)
    if name == OWN and FOREIGN not in found.scores[objective].scores:
        thesis = THESIS[objective][FOREIGN]
    span = "-" if each.interval is None else f"{number(each.interval[0])} to {number(each.interval[1])}"
    return [
        name,
        *((number(thesis),) if found.place.name == "known" else ()),
        number(each.risk),
        span,
        number(None if each.floor is None else each.floor.value),
        number(_floor(found.scores[objective])),
        number(each.bias),
        number(each.regret),
        f"{each.rank_agreement:.2f}",
        f"{each.failures:.1%}",
    ]


def _along_words(app: ScanMatching, table: RiskTable) -> str:
    """Say where J has steps and optima over the drawn settings."""
    lines: list[str] = []
    for objective, wanted in app.objectives.items():
        found = along(app.space, table.settings[DRAWN], objective_by_source(table, wanted))
        lines += [f"- {objective} error along {each.words()}" for each in found if each.name in ALONG]
    return "Over the drawn settings:\n\n" + "\n".join(lines)


def _path_table(paths: dict[str, dict[str, Array]]) -> str:
    """Say how far the ends of the estimated paths are from the true end."""
    names = [name for name in next(iter(paths.values())) if name != "true"]
    rows = [[title, *(_end_off(found, name) for name in names)] for title, found in paths.items()]
    length_m = float(np.linalg.norm(np.diff(next(iter(paths.values()))["true"], axis=0), axis=1).sum())
    return markdown_table((f"end of a path of {length_m:.3g} m is off by [m]", *names), rows)


def _end_off(found: dict[str, Array], name: str) -> str:
    if not len(found[name]):
        return "lost"
    return f"{float(np.linalg.norm(found[name][-1] - found['true'][-1])):.2f}"
