# SPDX-License-Identifier: Apache-2.0
"""Extrapolated views: worlds learned on the lane, judged 0, 1, 2 and 3 m beside it, where the truth is known.

Re-simulation is usually judged between the views that it was learned from. A robot that plans leaves them: it changes
the lane, and sees what stood behind the hedge. The trail and the street play reality (recording.py), so that views
beside the lane can be had, and drawn again. The judged sweeps stand between the learned ones along the way, half of
them to the left and half to the right, at the same height; 0 m is the lane itself. All drives have other seeds.

Places beside the lane are not alike: among bushes beams are short, and easier to forecast. So two floors stand beside
the worlds, climatology and the scene again, and the CRPS is also given between the two: 0 is as good as reality drawn
again, 1 as knowing the ranges of each ring alone. Where a score comes from is told by bands of the distance from a
return to the nearest learned one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.errors import InputError
from hedgerow.frames import Pose
from hedgerow.log import Beams, Log
from hedgerow.metrics import Comparison, compare
from hedgerow.metrics.metric import CLIMATOLOGY, REALITY_AGAIN
from hedgerow.metrics.near_learned import EDGES_M, band_name
from hedgerow.models import learn
from hedgerow.models.registry import MODELS as ALL_MODELS
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, SCENE_AGAIN, URBAN
from hedgerow.reproduce.recording import SENSOR, SceneDrive
from hedgerow.reproduce.tables import markdown_table
from hedgerow.sensor import Sensor
from hedgerow.world import LearnedWorld

OFFSETS_M = (0.0, 1.0, 2.0, 3.0)
SITES = (OFFROAD, URBAN)
MODELS = "topdown,hybrid,refined"
LEARNED, JUDGED = 22, 6
"""Sweeps to learn from, and to judge at each distance: all of them midway between two learned ones."""
SWEEP_BEAMS = 32_000
"""Of larger sweeps every second beam of each ring is judged, or every third, and so on: scores are means."""
N_BANDS = len(EDGES_M) - 1
COLUMNS = (
    ("hits_found", "hits [%]"),
    ("misses_found", "misses [%]"),
    ("crps_m", "CRPS [m]"),
    ("brier", "Brier"),
    ("log_score", "log score"),
    ("nll", "-log L"),
    ("spread", "spread"),
    ("reliability_error", "reliability error"),
)
PANELS = (("crps_m", "CRPS [m]", 1.0), ("hits_found", "hits found [%]", 100.0), ("spread", "spread of ranges", 1.0))
_AROUND = {"": "", "best": "**", "worst": ""}
_STYLES: Mapping[str, Mapping[str, Any]] = {
    REALITY_AGAIN: {"color": "gray", "linestyle": ":"},
    CLIMATOLOGY: {"color": "gray", "linestyle": "--"},
    "refined": {"color": "black", "linewidth": 2.0, "marker": "o"},
}


Views = Mapping[float, Comparison]
"""Scores by the distance from the lane [m]."""


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, models: str = "", sensor: str = ""
) -> Outcome:
    """Learn from `size` sweeps on the lane of each site, judge six or, of few, half as many at each distance.

    Args:
        folder: takes the picture.
        size: sweeps to learn from, 2 or more. Default: 22, some 3 m apart.
        seed: of the first drive.
        say: shows how far it is.
        models: names, with commas between. Default: topdown, hybrid and refined.
        sensor: name of the lidar in the catalogue. Default: the HDL-64E.

    Raises:
        InputError: no such model or sensor, or too few sweeps.
    """
    names, lidar, n_sweeps = parse_models(models), sensor or SENSOR, LEARNED if size is None else size
    if n_sweeps < 2:
        raise InputError(f"--size {n_sweeps}", "expected 2 or more: judged sweeps stand between learned ones")
    Sensor.named(lidar)  # before any scene is built
    found: dict[str, Views] = {}
    for site in SITES:
        drive = SceneDrive.open(site.scene, site.span_s)
        learned = drive.record("first", n_sweeps, seed, lidar)
        worlds = learn_named(learned, names, say)
        found[site.scene] = {
            offset_m: judge(drive, learned, worlds, offset_m, seed + 100 * (k + 1), say)
            for k, offset_m in enumerate(OFFSETS_M)
        }
    picture = folder / "extrapolated-views.png"
    draw(found, picture)
    return Outcome(text="\n\n".join(page(found, lidar)), pictures=(picture,))


def parse_models(text: str) -> list[str]:
    """Return the models that are named, each once. Raises InputError for one that there is not."""
    names = [name.strip() for name in (text or MODELS).split(",")]
    for name in names:
        if name not in ALL_MODELS:
            raise InputError(f"--models {text}", f"there is no model '{name}'; there are {', '.join(ALL_MODELS)}")
    return list(dict.fromkeys(names))


def learn_named(log: Log, names: Sequence[str], say: Print) -> dict[str, LearnedWorld]:
    """Learn a world with each model, with its defaults."""
    worlds: dict[str, LearnedWorld] = {}
    for name in names:
        worlds[name] = learn(log, name)
        say(f"learned {name} from {len(log.sweeps)} sweeps: {worlds[name].size().elements:,} elements")
    return worlds


def judge(
    drive: SceneDrive, learned: Log, worlds: Mapping[str, LearnedWorld], offset_m: float, seed: int, say: Print
) -> Comparison:
    """Record what is seen beside the lane, twice, and score the worlds and the floors on it."""
    n_sweeps = len(learned.sweeps)
    test, again = (record_beside(drive, offset_m, n_sweeps, seed + k, learned.sensor) for k in (0, 1))
    say(f"{offset_m:g} m beside: {len(test):,} beams, {1 - test.returns.hit.mean():.1%} did not return")
    return compare(test, worlds, floors=True, again=again, learned=learned, seed=seed)


def record_beside(drive: SceneDrive, offset_m: float, n_learned: int, seed: int, sensor: str) -> Log:
    """Record sweeps that stand between the learned ones along the way: half of them left, half right of the lane.

    The lane itself is driven once. Sides have seeds of their own, and the sweeps are numbered through.
    """
    begin_s, end_s = drive.span_s
    half_s = (end_s - Sensor.named(sensor).sweep_s - begin_s) / (n_learned - 1) / 2
    between = replace(drive, span_s=(begin_s + half_s, end_s - half_s))
    sides = (1, -1) if offset_m else (1,)
    n_sweeps = max(min(JUDGED, n_learned // 2) // len(sides), 1)
    logs: list[Log] = []
    for number, side in enumerate(sides):
        path = drive.site.trajectories["first"] @ Pose.from_xyz_rpy((0.0, side * offset_m, 0.0))
        whole = between.record(path, n_sweeps, seed + 10 * number, sensor)
        log = whole[is_judged(whole.beams)]
        beams = Beams.without_checks(log.beams.columns() | {"sweep": log.beams.sweep + np.int32(number * n_sweeps)})
        logs.append(replace(log, beams=beams))
    return Log.concatenate(logs)


def is_judged(beams: Beams) -> NDArray[np.bool_]:
    """Return which (N,) beams are judged: of each ring and sweep every k-th, neighbouring rings beginning elsewhere."""
    n_sweeps = len(np.unique(beams.sweep))
    one_in = max(1, round(len(beams) / n_sweeps / SWEEP_BEAMS))
    order = np.lexsort([beams.time_ns, beams.ring, beams.sweep])
    group = beams.sweep[order].astype(np.int64) * 2**16 + beams.ring[order]
    begin = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    place = np.empty(len(beams), dtype=np.int64)
    place[order] = np.arange(len(beams)) - np.repeat(begin, np.diff(begin, append=len(beams)))
    return place % one_in == beams.ring % one_in


def page(found: Mapping[str, Views], sensor: str) -> list[str]:
    """Return the tables of all sites with their headings."""
    parts: list[str] = []
    for site, views in found.items():
        parts += [
            f"**{site}, {sensor.upper()}: by the distance from the lane**\n\n{score_table(views)}",
            f"**{site}: by the distance of a return to the nearest learned one**\n\n{band_table(views)}",
        ]
    return parts


def score_table(views: Views) -> str:
    """Return a row for each distance and world: the scores, the best of them bold, and where CRPS is of the floors."""
    head = ("beside", "", *(label for _, label in COLUMNS), "CRPS between the floors")
    rows: list[tuple[str, ...]] = []
    for offset_m, scores in views.items():
        table = scores.table()
        by_key = {row.key: row.cells for row in table.rows}
        for k, name in enumerate(table.columns):
            cells = [by_key[key][k] if key in by_key else None for key, _ in COLUMNS]
            shown = ["-" if cell is None else f"{_AROUND[cell.mark]}{cell.text}{_AROUND[cell.mark]}" for cell in cells]
            rows.append((f"{offset_m:g} m", _shown(name), *shown, _text(between_floors(scores, name), 2)))
    return markdown_table(head, rows)


def between_floors(scores: Comparison, name: str) -> float | None:
    """Return where the CRPS of a world lies: 0 at the scene again, 1 at climatology; None if both are one."""
    best, worst, own = (scores[each]["crps_m"] for each in (REALITY_AGAIN, CLIMATOLOGY, name))
    if best is None or worst is None or own is None or best == worst:
        return None
    return (own - best) / (worst - best)


def band_table(views: Views) -> str:
    """Return a row for each distance from the lane and band: its share of all beams, hits and CRPS of each world."""
    worlds = list(next(iter(views.values())))
    head = (
        "beside",
        "nearest learned return",
        "beams [%]",
        *(f"{_shown(name)}: found [%], CRPS [m]" for name in worlds),
    )
    rows: list[tuple[str, ...]] = []
    for offset_m, scores in views.items():
        for band in range(N_BANDS + 1):
            said = band_name(band) if band < N_BANDS else "no return"
            found = [band_scores(scores, name, band) for name in worlds]
            share = found[0][2] / scores[worlds[0]].n_beams
            cells = [f"{_text(hits, 1, 100)}, {_text(crps_m, 2)}" for hits, crps_m, _ in found]
            rows.append((f"{offset_m:g} m", said, f"{100 * share:.1f}", *cells))
    return markdown_table(head, rows)


def band_scores(scores: Comparison, name: str, band: int) -> tuple[float | None, float | None, int]:
    """Return the share of the beams of a band that return, or not, as in reality, their CRPS [m], and their number.

    The last band is of beams without a return.
    """
    one = scores[name]
    if band < N_BANDS:
        hits = one.values.get(f"hits_near_{band}")
        return one[f"hits_near_{band}"], one[f"crps_near_{band}_m"], (hits.n or 0) if hits else 0
    forecast = one.histograms.forecast
    n = 0 if forecast is None else int(forecast.band_beams[-1])
    crps_m = float(forecast.band_crps_m[-1]) / n if forecast is not None and n else None
    return one["misses_found"], crps_m, n


def draw(found: Mapping[str, Views], path: Path) -> None:
    """Draw a row of panels for each site: scores by distance from the lane, and hits by that from learned returns."""
    figure = new_figure(16, 4.2 * len(found))
    panels: Any = figure.subplots(len(found), len(PANELS) + 1, squeeze=False)
    for row, (site, views) in zip(panels, found.items(), strict=True):
        for axes, (key, label, scale) in zip(row, PANELS, strict=False):
            for name in next(iter(views.values())):
                values = [scores[name][key] for scores in views.values()]
                if None not in values:
                    shown = [scale * (value or 0.0) for value in values]
                    axes.plot(list(views), shown, label=_shown(name), **_style(name))
            axes.set(xlabel="beside the lane [m]", ylabel=label, title=site, xticks=list(views))
            axes.grid(alpha=0.3)
        row[2].axhline(1.0, color="gray", linewidth=0.8)  # calibrated
        _draw_bands(row[-1], views)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    save_figure(figure, path)


def _draw_bands(axes: Any, views: Views) -> None:
    """Draw the share of returns that each world finds, by how far they are from learned ones, farthest off the lane."""
    offset_m, scores = list(views.items())[-1]
    for name in scores:
        hits = [band_scores(scores, name, band)[0] for band in range(N_BANDS)]
        known = [(band_name(k).removesuffix(" m"), 100 * value) for k, value in enumerate(hits) if value is not None]
        axes.plot(*zip(*known, strict=True), label=_shown(name), **_style(name))
    axes.set(xlabel="to the nearest learned return [m]", ylabel="hits found [%]", title=f"{offset_m:g} m beside")
    axes.tick_params(axis="x", labelrotation=30)
    axes.grid(alpha=0.3)


def _shown(name: str) -> str:
    return SCENE_AGAIN if name == REALITY_AGAIN else name


def _style(name: str) -> Mapping[str, Any]:
    return _STYLES.get(name, {"marker": "o"})


def _text(value: float | None, digits: int, scale: float = 1.0) -> str:
    return "-" if value is None else f"{scale * value:.{digits}f}"
