# SPDX-License-Identifier: Apache-2.0
"""One sensor maps, another one drives: worlds learned with an HDL-64E, fired with the beams of other sensors.

The trail plays reality. An HDL-64E drives the first pass; an HDL-32E and a VLP-16 drive the second, and what they
measure is compared with worlds that the HDL-64E taught, and with worlds of the same models that they taught themselves
on the first pass. The other sensors look higher (10 and 15 degrees instead of 2), have fewer beams, other range limits,
and the VLP-16's spot is twice as tall.

How much that width matters is asked apart: the HDL-64E drives the second pass with spots narrower and wider than its
own, and the world that it taught with its own is compared with each.
"""

from collections.abc import Sequence
from pathlib import Path

from hedgerow.evaluate import Comparison, Scores, compare
from hedgerow.learners import learn
from hedgerow.log import Log
from hedgerow.reproduce.course import SENSOR, Course
from hedgerow.reproduce.experiment import Outcome, Say
from hedgerow.reproduce.markdown import markdown_table
from hedgerow.reproduce.mobile import AGAIN, OFFROAD
from hedgerow.world import LearnedWorld

MODELS = ("topdown", "hybrid", "refined")
SENSORS = ("hdl-32e", "vlp-16")
WIDTHS = (0.0, 0.5, 1.0, 2.0, 4.0)


def run(folder: Path, size: int | None = None, seed: int = 1, say: Say = print) -> Outcome:
    """Learn with each sensor on the first pass, compare on the second; `size` is sweeps."""
    n_sweeps = size or 12
    course = Course.open(OFFROAD.scene, OFFROAD.span_s)
    brought = learned(course.record("first", n_sweeps, seed), say)
    parts: list[str] = []
    for sensor in SENSORS:
        say(f"{sensor}: learning and comparing")
        scores = transfer(course, brought, sensor, n_sweeps, seed, say)
        parts.append(f"**Compared with an {sensor.upper()}**\n\n{scores.table(aside=(AGAIN,)).to_markdown()}")
    parts.append(f"**Width of the beam**\n\n{widths_table(course, brought['refined'], max(n_sweeps // 3, 1), seed)}")
    return Outcome(text="\n".join(parts))


def learned(log: Log, say: Say) -> dict[str, LearnedWorld]:
    """Learn the worlds to be compared from one log."""
    worlds: dict[str, LearnedWorld] = {}
    for model in MODELS:
        worlds[model] = learn(log, model)
        say(f"learned {model} with {log.sensor}: {worlds[model].size().elements:,} elements")
    return worlds


def transfer(
    course: Course, brought: dict[str, LearnedWorld], sensor: str, n_sweeps: int, seed: int, say: Say
) -> Comparison:
    """Compare brought worlds, and worlds that the sensor taught, with what it measures on the second pass."""
    own = learned(course.record("first", n_sweeps, seed, sensor), say)
    test, again = (course.record("second", n_sweeps, seed + number, sensor) for number in (1, 2))
    simulated = {
        f"{model}, {taught}": world
        for model in MODELS
        for taught, world in ((SENSOR.removesuffix("-s2"), brought[model]), ("own", own[model]))
    }
    return compare(test, {**simulated, AGAIN: again}, seed=seed)


def widths_table(course: Course, world: LearnedWorld, n_sweeps: int, seed: int) -> str:
    """Return a table of how well a world, and the scene with the sensor's own beam, predict other widths."""
    usual = course.record("second", n_sweeps, seed + 2)
    rows: list[Sequence[str]] = []
    for width in WIDTHS:
        test = course.record("second", n_sweeps, seed + 1, width=width)
        scores = compare(test, {"scene": usual, "world": world}, seed=seed)
        rows.append((f"{width:g}", *_cells(scores["scene"])[:3], *_cells(scores["world"])))
    names = ("hits [%]", "misses [%]", "beam error [cm]")
    return markdown_table(
        ("width", *(f"scene: {name}" for name in names), *(f"refined: {name}" for name in (*names, "-log L"))), rows
    )


def _cells(scores: Scores) -> tuple[str, ...]:
    keys = ("hits_found", "misses_found", "beam_error_mean_m")
    nll = scores["nll_binned"]
    found = tuple(f"{100 * (scores[key] or 0.0):.1f}" for key in keys)
    return (*found, "-" if nll is None else f"{nll:.3f}")
