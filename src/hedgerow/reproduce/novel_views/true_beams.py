# SPDX-License-Identifier: Apache-2.0
"""Novel views of other drives, on the true beams: the scores of the re-simulation papers where every beam is known.

Of each log in the folder `data` (*.parquet, such as tools/real_logs.py makes), sweeps 20 to 59 are taken, or all if it
has no others. Every tenth is judged, without the first and the last, and the others are learned from. Images have a row
for each ring and 1030 columns, and each pixel is a true beam (metrics/range_image.py). Of a beam without return we know
that it met nothing within the range limit; the papers cannot tell it from a row between two lasers.

Beside them LiDAR4D's on the static sequences of KITTI-360: another place, other pixels. And how fast images of 2650
columns are fired, as in LiDAR-RT 2025.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from time import perf_counter

import numpy as np

import hedgerow.io as io
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose
from hedgerow.io.source import LogSource
from hedgerow.log import Beams, Log
from hedgerow.metrics.novel_view import View, score_view
from hedgerow.metrics.range_image import Pixels, pixels_of
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.extrapolated_views import parse_models
from hedgerow.reproduce.novel_views.panorama import beams_from
from hedgerow.reproduce.novel_views.pictures import draw_images
from hedgerow.reproduce.novel_views.published import LIDAR4D, LIDAR_RT_IMAGES_PER_S, score_table
from hedgerow.reproduce.tables import markdown_table
from hedgerow.world import LearnedWorld, World

FIRST, N_SWEEPS, STEP = 20, 40, 10
FAST_COLUMNS = 2650
_REPEATS = 5


@dataclass(frozen=True, eq=False)
class Learned:
    """The world of one model."""

    world: LearnedWorld
    learning_s: float


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Print = print,
    *,
    data: Path | None = None,
    models: str = "",
) -> Outcome:
    """Learn `size` sweeps of each log with some models, but every tenth, and judge these."""
    names = parse_models(models)
    parts: list[str] = []
    pictures: list[Path] = []
    for path in _logs(data):
        recording = io.open_log(path)
        training, judged = split_sweeps(recording, size)
        say(f"{path.stem}: {len(training)} sweeps learned, {len(judged)} judged")
        log = recording.read(training)
        worlds = {name: _learn(log, name, say) for name in names}
        sweeps = [recording.read([number]) for number in judged]
        scores = {name: _scores(each.world, sweeps, seed) for name, each in worlds.items()}
        parts += [_table(path.stem, scores, sweeps, judged), _speeds(worlds, sweeps[len(sweeps) // 2])]
        pictures += _draw(folder, path.stem, worlds, sweeps[len(sweeps) // 2], seed)
    return Outcome(text="\n\n".join([*parts, _ABOUT]), pictures=tuple(pictures))


_ABOUT = (
    "Median: the median range and the mean intensity, none where that is likelier; draw: one random answer. LiDAR4D: "
    "static sequences of KITTI-360, images of 66 x 1030 resampled from points, hours on a graphics card. Here each "
    "pixel is a true beam; beams that the carrier hides are left out, not counted as empty."
)


def _logs(data: Path | None) -> list[Path]:
    found = [] if data is None else sorted(data.glob("*.parquet"))
    if not found:
        raise FileError(f"{data or '--data'}: novel-views needs a folder with logs, *.parquet (tools/real_logs.py)")
    return found


def split_sweeps(recording: LogSource, size: int | None = None) -> tuple[list[int], list[int]]:
    """Return the numbers of the sweeps to learn from, and of those to judge: every tenth, not the first nor the last.

    Raises:
        InputError: there are too few.
    """
    every = recording.sweeps.tolist()
    late = [number for number in every if number >= FIRST]
    numbers = (late if len(late) > STEP + 1 else every)[: size or N_SWEEPS]
    judged = numbers[STEP:-1:STEP]
    if not judged:
        raise InputError("--size", f"{len(numbers)} sweeps leave none to judge; {STEP + 2} or more do")
    return [number for number in numbers if number not in judged], judged


def _learn(log: Log, name: str, say: Print) -> Learned:
    start_s = perf_counter()
    world = learn(log, name)
    say(f"  {name}: learned in {perf_counter() - start_s:.0f} s")
    return Learned(world, perf_counter() - start_s)


def answers(world: World, sweep: Log, seed: int) -> dict[str, View]:
    """Return the median answer to the beams of a sweep, and a draw."""
    limits_m = (sweep.min_range_m, sweep.max_range_m)
    told = world.expected(sweep.beams, limits_m=limits_m)
    drawn = world.fire(sweep.beams, seed=seed, limits_m=limits_m).returns
    return {
        "median": View(told.answer_m, told.intensity, told.returns),
        "draw": View(drawn.first_m, drawn.first("intensity")),
    }


def _pixels(sweep: Log) -> Pixels:
    pixels = pixels_of(sweep.beams)
    if pixels is None:
        raise InputError("--data", f"sweep {sweep.beams.sweep[0]} has too few rings for an image")
    return pixels


def _real(sweep: Log) -> View:
    return View(sweep.returns.first_m, sweep.returns.first("intensity"))


def _scores(world: World, sweeps: Sequence[Log], seed: int) -> dict[str, dict[str, float]]:
    """Return the mean scores over sweeps, for the median answer and for a draw."""
    found: dict[str, dict[str, list[float]]] = {}
    for sweep in sweeps:
        pixels = _pixels(sweep)
        for answer, view in answers(world, sweep, seed).items():
            for key, value in score_view(sweep.beams, _real(sweep), view, pixels).items():
                found.setdefault(answer, {}).setdefault(key, []).append(value)
    return {answer: {key: fmean(values) for key, values in scores.items()} for answer, scores in found.items()}


def _table(
    name: str, scores: Mapping[str, Mapping[str, Mapping[str, float]]], sweeps: Sequence[Log], judged: Sequence[int]
) -> str:
    columns = {
        f"{model}, {answer}": values
        for answer in ("median", "draw")
        for model, each in scores.items()
        for values in (each[answer],)
    }
    rows, width = _pixels(sweeps[0]).shape
    said = f"{name}, sweeps {', '.join(map(str, judged))} judged, images of {rows} x {width}."
    return f"{said}\n\n{score_table(columns | {'LiDAR4D, KITTI-360': LIDAR4D['static']})}"


def fast_beams(sweep: Log) -> Beams:
    """Return the beams of an image of 2650 columns and the rings of a sweep, from the middle of its way."""
    direction = sweep.beams.direction.astype(np.float64)
    rings = np.unique(sweep.beams.ring)
    height = np.array([np.median(direction[sweep.beams.ring == ring, 2]) for ring in rings])
    azimuth = np.linspace(np.pi, -np.pi, FAST_COLUMNS, endpoint=False)
    flat = np.sqrt(1 - height**2)
    around = np.column_stack([np.cos(azimuth), np.sin(azimuth)])
    level = (flat[:, None, None] * around).reshape(-1, 2)
    up = np.repeat(height, FAST_COLUMNS)
    place = Pose(np.median(sweep.beams.origin_m, axis=0))
    return beams_from(place, np.column_stack([level, up]), ring=np.repeat(rings, FAST_COLUMNS))


def _speeds(worlds: Mapping[str, Learned], sweep: Log) -> str:
    """Return a table of what worlds cost: learning, elements, images per second."""
    beams = fast_beams(sweep)
    limits_m = (sweep.min_range_m, sweep.max_range_m)
    rows: list[tuple[str, ...]] = []
    for name, each in worlds.items():
        fired = _per_second(lambda world=each.world: world.fire(beams, seed=1, limits_m=limits_m))
        told = _per_second(lambda world=each.world: world.expected(beams, limits_m=limits_m))
        elements = f"{each.world.size().elements:,}"
        rows.append((name, f"{each.learning_s:.0f} s", elements, f"{fired:.1f}", f"{told:.1f}"))
    rows.append(("LiDAR-RT, graphics card", "2 h", "-", "-", f"{LIDAR_RT_IMAGES_PER_S}"))
    n_rings = len(beams) // FAST_COLUMNS
    said = f"Images of {n_rings} x {FAST_COLUMNS} per second, the fastest of {_REPEATS}."
    return f"{said}\n\n{markdown_table(('', 'learning', 'elements', 'draws', 'medians'), rows)}"


def _per_second(fire: Callable[[], object]) -> float:
    fire()  # the first builds the search tree
    fastest_s = np.inf
    for _ in range(_REPEATS):
        start_s = perf_counter()
        fire()
        fastest_s = min(fastest_s, perf_counter() - start_s)
    return 1 / fastest_s


def _draw(folder: Path, name: str, worlds: Mapping[str, Learned], sweep: Log, seed: int) -> list[Path]:
    """Draw the ranges and intensities of one sweep: real, median answers, and a draw of the last model."""
    views = {"real": _real(sweep)}
    for model, each in worlds.items():
        answered = answers(each.world, sweep, seed)
        views[f"{model}, median"] = answered["median"]
        views["draw"] = answered["draw"]
    drawn = views.pop("draw")
    views[f"{list(worlds)[-1]}, draw"] = drawn
    paths = [folder / f"novel-views-{name}-{what}.png" for what in ("ranges", "intensities")]
    for path, what in zip(paths, ("ranges", "intensities"), strict=True):
        draw_images(path, views, _pixels(sweep), what)
    return paths
