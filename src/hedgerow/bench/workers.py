# SPDX-License-Identifier: Apache-2.0
"""Cost by workers: one log, recorded and learned by the plain process, by one worker and by two.

A worker uses the cores that fall to it: one worker all of them, of two each a half. So two, of one thread each, are
held against one of one thread. Contenders take turns; the best round counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hedgerow.bench.beams import n_sweeps, trail_text
from hedgerow.bench.benchmark import Table
from hedgerow.bench.chain import Chain, Task
from hedgerow.bench.journal import Row

PART = "workers"
JOBS = ("fire", "learn voxel", "learn topdown")
GOAL_TWO = 1.7
"""Times as fast as one worker of one thread that two should be."""
GOAL_ONE = 1.1
"""Times the seconds of the plain process that one worker may take."""


@dataclass(frozen=True)
class Contender:
    """Who does the work."""

    workers: int = 0
    threads: int | None = None
    """Of each worker. None: all cores are used."""


CONTENDERS: Mapping[str, Contender] = {
    "plain process": Contender(),
    "1 worker": Contender(1),
    "1 worker, one thread": Contender(1, 1),
    "2 workers, one thread each": Contender(2, 1),
}


def chain(beams: int, rounds: int, folder: Path, *, wood: bool = True, jobs: Sequence[str] = JOBS) -> Chain:
    """Plan all rounds; the log that is learned is the one that the plain process records first."""
    scene, log = folder / "trail.toml", folder / "drive"
    tasks: list[Task] = []
    for number in range(rounds):
        for job in jobs:
            for who, contender in CONTENDERS.items():
                first = number == 0 and job == "fire" and who == next(iter(CONTENDERS))
                step, _, model = job.partition(" ")
                output = log if first else folder / f"{step}-output"
                recording: dict[str, object] = {"scene": scene, "sweeps": n_sweeps(beams)}
                arguments = {"log": log, "model": model} if model else recording
                settings = {"beams": beams, "job": job, "who": who, "round": number}
                tasks.append(
                    Task(
                        f"{beams / 1e6:g} M beams, {job}, {who}",
                        settings,
                        step,
                        {"output": output, "workers": contender.workers, **arguments},
                        log if first else None,
                        threads=contender.threads,
                    )
                )
    return Chain(PART, folder, tuple(tasks), {scene.name: trail_text(beams, wood=wood)})


def best(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """Return the fastest round of each job and contender, of the largest log that was measured."""
    most = _most_beams(rows)
    found: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.text("job"), row.text("who")
        if row.number("beams") == most and (key not in found or seconds(row) < seconds(found[key])):
            found[key] = row
    places = {(job, who): None for job in JOBS for who in CONTENDERS}
    return {key: found[key] for key in places if key in found}


def _most_beams(rows: Sequence[Row]) -> float:
    return max((row.number("beams") for row in rows), default=0.0)


def seconds(row: Row) -> float:
    """Return the seconds of the work itself."""
    return row.values["seconds"]


def table(rows: Sequence[Row]) -> Table:
    """Lay out what was measured, goals beside."""
    found = best(rows)
    lines: list[tuple[str, ...]] = []
    for (job, who), row in found.items():
        plain = found.get((job, "plain process"))
        ratio = "-" if plain is None else f"{seconds(row) / seconds(plain):.2f}"
        values = row.values
        peaks = [values["own_mb"], *values["worker_mb"]]
        shown = " + ".join("-" if peak is None else f"{peak:,.0f}" for peak in peaks)
        stages = [f"{values.get(name, 0.0):.1f}" for name in ("start_s", "open_s", "seconds", "processor_s")]
        lines.append((job, who, *stages, ratio, shown, f"{row.load:.1f}"))
    head = ("job", "who", "start-up [s]", "opening [s]", "work [s]", "processors [s]", "of the plain process")
    head += ("peak [MB]", "load")
    note = (
        f"{_most_beams(rows) / 1e6:g} M beams. Start-up is that of the cluster, code loaded; opening is growing the "
        "scene, in each worker; neither is part of the work. Memory is that of the process, and of each worker. One "
        "worker uses all cores, if nothing else is said."
    )
    return Table("Workers", head, lines, (note, *goals(found)))


def goals(found: Mapping[tuple[str, str], Row]) -> list[str]:
    """Say of each job what was reached."""
    said: list[str] = []
    for job in JOBS:
        plain, one, alone, two = (found.get((job, who)) for who in CONTENDERS)
        if one is not None and plain is not None:
            ratio = seconds(one) / seconds(plain)
            met = _met(ratio <= GOAL_ONE, "at most", GOAL_ONE)
            said.append(f"{job}: one worker takes {ratio:.2f} times the plain process ({met}).")
        if two is not None and alone is not None:
            ratio = seconds(alone) / seconds(two)
            more = "" if one is None else f", {seconds(one) / seconds(two):.2f} times as one with all cores"
            said.append(
                f"{job}: two workers are {ratio:.2f} times as fast as one of one thread "
                f"({_met(ratio >= GOAL_TWO, 'at least', GOAL_TWO)}){more}."
            )
    return said


def _met(reached: bool, bound: str, goal: float) -> str:
    return f"goal: {bound} {goal:g}, {'reached' if reached else 'not reached'}"
