# SPDX-License-Identifier: Apache-2.0
"""Mapping at speed (Tallavajhula 2018 §4.4.1): a site driven through at 17 mph, mapped as densely as at 5 mph.

The thesis drives slowly through a training section and fast through the rest of a site: a thin cloud is enough for an
annotation, and composition fills in what a slow drive would have seen. Here section 2 is driven at both speeds. The
slow drive is the truth. From the fast one come an annotation and the ground, and of these a composed site; its beams
are then those of the slow drive. Beside it stand the fast drive's own cloud, and the world learned from it directly.
The same is done with one in eight sweeps of the fast drive: how thin may a log be before composition pays?

Clouds are maps: of the points within a voxel one counts, so a place counts once however often it was seen.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow import io
from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.compose.segmentation import segment
from hedgerow.log import Log
from hedgerow.metrics.pair import Nearest
from hedgerow.models import learn
from hedgerow.reproduce.composition.cloud_picture import Look, draw_cloud, ramp
from hedgerow.reproduce.composition.dense_forest import PLANT_COLOURS
from hedgerow.reproduce.composition.sections import LENGTH_M, Section, open_section
from hedgerow.reproduce.composition.trial import BESIDE_M, MODEL, Sizes, Trial, learn_library
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.annotation import PLANT_CLASSES
from hedgerow.simulate import replay
from hedgerow.view.render import Camera

SLOW_MPH, FAST_MPH = 5.0, 17.0
"""As Tallavajhula 2018 §4.4.1 has them."""
N_SWEEPS = 100
"""Of the slow drive, at 10 Hz: 22 m."""
SPARSE = 8
"""One in so many sweeps of the fast drive is a still thinner log."""
VOXEL_M = 0.05
NEAR_M = 0.1
"""What has a simulated point within this distance is found."""
_MPH = 0.44704
_RATE_HZ = 10.0
_NOT_DRIVEN_M = 16.0  # of a section, at both ends together


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Drive section 2 slowly with `size` sweeps and fast with fewer, compose it of the fast drive, compare the maps."""
    n_slow = size or N_SWEEPS
    library = learn_library(folder, Sizes(), seed, say)
    section, span = choose_section(folder, n_slow, seed)
    n_fast = max(2, round(n_slow * SLOW_MPH / FAST_MPH))
    slow, again = (section.record(BESIDE_M, n_slow, 10 * seed + k, span=span) for k in (2, 3))
    fast = section.record(0.0, n_fast, 10 * seed + 1, span=span)
    io.write_log(fast, folder / "mapping.parquet")
    say(f"drove {len(slow):,} beams slowly, {len(fast):,} fast")
    trial = Trial(folder, library, section, section.truth_annotation(), fast, slow, (again,), thin=1)
    logs = {"slow drive again": again, OWN: fast} | simulate_maps(trial, seed, say, by_hand=True)
    one_in = min(SPARSE, len(fast.sweeps) - 1)  # a way needs two sweeps
    sparse = fast.select(sweep=fast.sweeps[::one_in].tolist())
    io.write_log(sparse, folder / "sparse.parquet")
    thinner = replace(trial, mapping=sparse, mapping_file="sparse.parquet")
    found = {OWN: sparse} | simulate_maps(thinner, seed, say)
    logs |= {f"{name}, 1 in {one_in} sweeps": log for name, log in found.items()}
    truth = Map.of(slow, section.object_class)
    rows = [score_map(name, log, truth) for name, log in logs.items()]
    say("compared the maps")
    picture = folder / "mapping-speed.png"
    shown = {"slow drive": slow, "fast drive": fast, COMPOSED: logs[COMPOSED], LEARNED: logs[LEARNED]}
    draw(shown, section, picture)
    return Outcome(text=text(rows, trial, n_slow, n_fast), pictures=(picture,))


OWN, LEARNED = "fast drive, its own points", "fast drive, learned directly"
COMPOSED, BY_HAND = "composed, automatic annotation", "composed, true boxes"


def choose_section(folder: Path, n_slow: int, seed: int) -> tuple[Section, tuple[float, float]]:
    """Return section 2, as long as the slow drive needs it, and the part of its way that is driven."""
    driven_m = n_slow * SLOW_MPH * _MPH / _RATE_HZ
    scale = min(1.0, max(0.1, (driven_m + _NOT_DRIVEN_M) / LENGTH_M[2]))
    way_m = scale * LENGTH_M[2] - _NOT_DRIVEN_M
    return open_section(folder, 2, scale, seed), (0.0, min(1.0, driven_m / way_m))


def simulate_maps(trial: Trial, seed: int, say: Print, *, by_hand: bool = False) -> dict[str, Log]:
    """Fire the beams of the slow drive at what the mapping drive gives: a composed site, and a learned world.

    With `by_hand` a site of true boxes is composed too.
    """
    found = segment(trial.mapping, use_labels=False).annotation(PLANT_CLASSES)
    say(f"found {len(found)} plants in {len(trial.mapping.sweeps)} sweeps")
    worlds = {COMPOSED: trial.compose("automatic", found)}
    if by_hand:
        worlds[BY_HAND] = trial.compose("true-boxes", trial.truth)
    worlds[LEARNED] = learn(trial.mapping, MODEL)
    logs: dict[str, Log] = {}
    for name, world in worlds.items():
        logs[name] = replay(world, trial.judged, seed=seed)
        say(f"fired the beams of the slow drive at: {name}")
    return logs


@dataclass(frozen=True, eq=False)
class Map:
    """A cloud with one point for each voxel."""

    log: Log
    points_m: Array
    is_plant: NDArray[np.bool_]
    """(M,) whether a point is of an annotated plant."""
    nearest: Nearest

    @classmethod
    def of(cls, log: Log, object_class: NDArray[np.str_]) -> "Map":
        """Thin the points of a log; classes of its objects tell which are of plants, grass is none."""
        points_m, first = thin(log.points())
        owner = log.returns.object
        assert owner is not None
        is_plant = object_class[owner[log.returns.hit][first]] != ""
        return cls(log, points_m, is_plant, Nearest(points_m))


def thin(points_m: Array, side_m: float = VOXEL_M) -> tuple[Array, NDArray[np.intp]]:
    """Return one point of each voxel, the first of each, and which these are."""
    cell = np.floor(points_m / side_m).astype(np.int64)
    cell -= cell.min(axis=0, initial=0)
    n = cell.max(axis=0, initial=0) + 1
    _, first = np.unique((cell[:, 0] * n[1] + cell[:, 1]) * n[2] + cell[:, 2], return_index=True)
    return points_m[first], first


@dataclass(frozen=True)
class MapScore:
    """How far a map is from the truth."""

    name: str
    n_voxels: int
    to_truth_m: float
    """Mean distance of its points to the nearest true one: what is there that should not be."""
    from_truth_m: float
    """Mean distance of true points to its nearest: what is missing."""
    plants_m: float
    """The same for true points of plants."""
    found: float
    """Share of the true points with one of its points near."""
    f1: float
    """Of hits of single beams; NaN for other beams."""


def score_map(name: str, log: Log, truth: Map) -> MapScore:
    """Compare the map of a log with the true one."""
    points_m, _ = thin(log.points())
    back_m = Nearest(points_m).distance_m(truth.points_m)
    return MapScore(
        name,
        len(points_m),
        float(truth.nearest.distance_m(points_m).mean()),
        float(back_m.mean()),
        float(back_m[truth.is_plant].mean()) if truth.is_plant.any() else np.nan,
        float((back_m <= NEAR_M).mean()),
        _f1(truth.log, log) if len(log) == len(truth.log) else np.nan,
    )


def _f1(real: Log, simulated: Log) -> float:
    """F1 of hits, as Tallavajhula 2018 §4.3.3 counts them."""
    one, other = (np.isfinite(log.returns.first_m) for log in (real, simulated))
    return float(2 * (one & other).sum() / max(one.sum() + other.sum(), 1))


def text(rows: list[MapScore], trial: Trial, n_slow: int, n_fast: int) -> str:
    """Return the table, and what it is of."""
    driven_m = n_slow * SLOW_MPH * _MPH / _RATE_HZ
    said = (
        f"{driven_m:.0f} m of section 2: {n_slow} sweeps at {SLOW_MPH:g} mph ({driven_m / (SLOW_MPH * _MPH):.0f} s), "
        f"{n_fast} at {FAST_MPH:g} mph ({driven_m / (FAST_MPH * _MPH):.0f} s). All but the fast drive's own points are "
        f"answers to the {len(trial.judged):,} beams of the slow drive. One point counts per voxel of "
        f"{100 * VOXEL_M:.0f} cm."
    )
    head = (
        "map", "voxels", "to the truth [m]", "from the truth [m]", "average [m]", "from true plants [m]",
        f"found within {NEAR_M:g} m [%]", "F1",
    )  # fmt: skip
    lines = [
        (
            each.name,
            f"{each.n_voxels:,}",
            f"{each.to_truth_m:.3f}",
            f"{each.from_truth_m:.3f}",
            f"{(each.to_truth_m + each.from_truth_m) / 2:.3f}",
            f"{each.plants_m:.3f}",
            f"{100 * each.found:.1f}",
            "-" if np.isnan(each.f1) else f"{each.f1:.3f}",
        )
        for each in rows
    ]
    return f"{said}\n\n{markdown_table(head, lines)}"


def draw(logs: dict[str, Log], section: Section, path: Path) -> None:
    """Draw the clouds side by side from one place, by height above the true ground."""
    first = next(iter(logs.values()))
    camera = _camera(first)
    figure = new_figure(13, 3.6 * ((len(logs) + 1) // 2))
    panels = figure.subplots((len(logs) + 1) // 2, 2, squeeze=False).ravel()
    for axes, (name, log) in zip(panels, logs.items(), strict=False):
        points_m = log.points()
        axes.imshow(draw_cloud(points_m, _colours(points_m, section), camera, Look(point_m=0.05)))
        axes.set_title(name, fontsize="medium")
    for axes in panels:
        axes.axis("off")
    save_figure(figure, path)


def _colours(points_m: Array, section: Section) -> Array:
    terrain = section.site.terrain
    low_x, low_y, high_x, high_y = terrain.bounds_m
    ground_m = terrain.height_m(np.clip(points_m[:, 0], low_x, high_x), np.clip(points_m[:, 1], low_y, high_y))
    above_m = points_m[:, 2] - ground_m
    return np.where(
        (above_m > 0.35)[:, None], ramp(np.sqrt(np.clip(above_m / 12, 0, 1)), PLANT_COLOURS), (0.24, 0.27, 0.33)
    )


def _camera(log: Log) -> Camera:
    """Stand a little behind where the drive began, above it, and look along it."""
    begin, end = log.beams.origin_m[0], log.beams.origin_m[-1]
    ahead = (end - begin)[:2] / max(float(np.linalg.norm((end - begin)[:2])), 1e-6)
    eye = np.array([*(begin[:2] - 4.0 * ahead), begin[2] + 5.0])
    look_at = np.array([*(begin[:2] + 22.0 * ahead), begin[2] + 0.5])
    return Camera(eye, look_at, 1000, 500, 75.0)
