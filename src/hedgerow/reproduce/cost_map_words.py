# SPDX-License-Identifier: Apache-2.0
"""What four cost maps differ in: tables, and sentences that say only what the numbers say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.apps.cost_grid import MAX_COST, CostGrid
from hedgerow.apps.navigation import NavigationSettings, Run
from hedgerow.reproduce.seen import BANDS_M, Seen
from hedgerow.reproduce.yard import Yard


@dataclass(frozen=True)
class Drive:
    """One sensor's drive and what it saw."""

    sensor: str
    run: Run
    seen: Seen
    over_grass: float
    """Share of the way that led over grass."""


def drive_table(drives: Sequence[Drive], yard: Yard, settings: NavigationSettings) -> str:
    """Return the drives and the cells of their maps by height, in Markdown."""
    straight_m = float(np.hypot(*(np.asarray(yard.goal_m) - yard.start_m)))
    at = "at the end" if settings.snapshot_s is None else f"after {settings.snapshot_s:g} s"
    top_m = settings.grid.max_height_m
    rows: list[tuple[str, Callable[[Drive], str]]] = [
        ("goal reached", lambda d: "yes" if d.run.reached else "no"),
        ("time [s]", lambda d: f"{d.run.time_s:.1f}"),
        (f"way driven [m] ({straight_m:.0f} straight)", lambda d: f"{d.run.trajectory.length_m:.1f}"),
        ("share of the way over grass", lambda d: _percent(d.over_grass)),
        ("collisions", lambda d: str(d.run.n_collisions)),
        ("plans", lambda d: str(len(d.run.plans))),
        (f"cells known {at}", lambda d: _cells(d, 0, np.inf)),
        ("... below 0.15 m", lambda d: _cells(d, 0, 0.15)),
        ("... 0.15 to 0.5 m", lambda d: _cells(d, 0.15, 0.5)),
        (f"... 0.5 to {top_m:g} m", lambda d: _cells(d, 0.5, top_m)),
        (f"... {top_m:g} m and above (cost {MAX_COST:g})", lambda d: _cells(d, top_m, np.inf)),
        ("cells known at the end", lambda d: f"{int(d.run.grid.known.sum()):,}"),
    ]
    title = f"**Four lidars on one robot in the {yard.name} (003 §3.5.3)**"
    return title + "\n\n" + _table(drives, rows)


def seen_table(drives: Sequence[Drive], n_places: int) -> str:
    """Return what one sweep sees of what truly stands ahead, by distance, in Markdown."""
    rows: list[tuple[str, Callable[[Drive], str]]] = []
    for kind, name in (("grass", "grass"), ("tall", "trees")):
        for band, (near, far) in enumerate(BANDS_M):
            n_cells = getattr(drives[0].seen, f"n_{kind}")[band]
            if n_cells == 0:
                continue
            title = f"{name}, {near} to {far} m ({n_cells:,} cells)"
            rows.append((title, lambda d, kind=kind, band=band: _percent(share(d.seen, kind, (band,)))))
    title = f"**Share of the cells ahead that one sweep marks, from {n_places} places along the straight way**"
    note = "Grass: a return from grass. Trees, where they are too high to cross: full cost."
    return f"{title}\n\n{_table(drives, rows)}\n\n{note}"


def share(seen: Seen, kind: str, bands: Sequence[int]) -> float:
    """Return the share of the cells of a kind ("grass" or "tall") seen in some bands; NaN if there are none."""
    of = sum(getattr(seen, f"n_{kind}")[band] for band in bands)
    return sum(getattr(seen, kind)[band] for band in bands) / of if of else float("nan")


def words(drives: Sequence[Drive]) -> str:
    """Return what the paper found by eye, beside what the numbers say, in Markdown."""
    by_name = {drive.sensor: drive for drive in drives}
    lines = [_grass_words(drives)]
    if {"vlp-16", "hdl-64e"} <= by_name.keys():
        lines += [
            _tall_words(by_name["vlp-16"], by_name["hdl-64e"]),
            _near_words(by_name["vlp-16"], by_name["hdl-64e"]),
        ]
    lines.append(_way_words(drives))
    return "**In words**\n\n" + "\n".join(f"- {line}" for line in lines)


def _grass_words(drives: Sequence[Drive]) -> str:
    shares = {drive.sensor: share(drive.seen, "grass", (0, 1)) for drive in drives}
    told = ", ".join(f"{name} {_percent(value)}" for name, value in shares.items())
    text = f"Grass within {BANDS_M[1][1]} m, share of its cells seen in one sweep: {told}."
    if "lms-291" not in shares or len(shares) < 2:
        return text
    others = min(value for name, value in shares.items() if name != "lms-291")
    verdict = (
        "misses most of it and the others see more" if shares["lms-291"] < min(0.5, others) else "does not miss it"
    )
    return f"{text} The paper: the LMS-291 does not detect most of the grass. Here it {verdict}."


def _tall_words(vlp: Drive, hdl: Drive) -> str:
    if not any(vlp.seen.n_tall):
        return "No trees stand along the way."
    parts: list[str] = []
    better: list[str] = []
    for band, (near, far) in enumerate(BANDS_M):
        if vlp.seen.n_tall[band] == 0:
            continue
        mine, theirs = share(vlp.seen, "tall", (band,)), share(hdl.seen, "tall", (band,))
        parts.append(f"{near} to {far} m {_percent(mine)} against {_percent(theirs)}")
        better += [f"{near} to {far} m"] if mine > theirs else []
    verdict = f"it marks more of them at {', '.join(better)}" if better else "it marks more of them at no distance"
    paper = "The paper: the VLP-16 detects tall obstacles at intermediate ranges somewhat better"
    return f"Trees, VLP-16 against HDL-64E: {', '.join(parts)}. {paper}. Here {verdict}."


def _near_words(vlp: Drive, hdl: Drive) -> str:
    mine, theirs = share(hdl.seen, "grass", (0,)), share(vlp.seen, "grass", (0,))
    verdict = "So it is here" if mine > theirs else "Not so here"
    paper = "The paper: the HDL-64E is better at smaller nearby obstacles"
    told = f"of the grass within {BANDS_M[0][1]} m it sees {_percent(mine)}, the VLP-16 {_percent(theirs)}"
    return f"{paper}. {verdict}: {told}."


def _way_words(drives: Sequence[Drive]) -> str:
    told = [f"{d.sensor} {d.run.trajectory.length_m:.0f} m, {_percent(d.over_grass)} over grass" for d in drives]
    failed = [d.sensor for d in drives if not d.run.reached]
    reached = "All reached the goal" if not failed else f"Not at the goal: {', '.join(failed)}"
    touched = [f"{d.sensor} {d.run.n_collisions} times" for d in drives if d.run.n_collisions]
    hits = f"touched something solid: {', '.join(touched)}" if touched else "none touched anything solid"
    return f"What is seen decides the way: {'; '.join(told)}. {reached}; {hits}."


def _cells(drive: Drive, low_m: float, high_m: float) -> str:
    grid: CostGrid = drive.run.snapshot or drive.run.grid
    height_m = grid.height_m()
    with np.errstate(invalid="ignore"):
        return f"{int(((height_m >= low_m) & (height_m < high_m)).sum()):,}"


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _table(drives: Sequence[Drive], rows: Sequence[tuple[str, Callable[[Drive], str]]]) -> str:
    head = ["", *(drive.sensor for drive in drives)]
    lines = [head, ["---"] * len(head)]
    lines += [[title, *(cell(drive) for drive in drives)] for title, cell in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
