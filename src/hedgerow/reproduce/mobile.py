# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 §6.2, Tables 4 to 9: worlds learned on one drive, compared on another, off-road and in a street.

The scenes trail and street play reality, with pulses of width (recording.py). The second drive runs 0.6 m beside the
first. Sixty metres of each scene are driven: on the trail out of the meadow, through the hedge and into the forest.

Beside the paper's six worlds stands the refined one. The last column is no world: it is the scene itself, fired again
with other random numbers. Pulses go another way within their encoder step and leaves are met or missed, so reality does
not repeat itself either; a world that draws its ranges cannot come closer on all metrics at once.

What is seen behind fences and cars is counted besides (occlusion.py), and everything is drawn (mobile_pictures.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile_pictures import draw_all
from hedgerow.reproduce.occlusion import find_obstacles, occlusion_table
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.reproduce.tables import PaperTable, order_table
from hedgerow.simulate import replay
from hedgerow.world import LearnedWorld

# Our names of the paper's models, in the paper's order.
PAPER_MODELS = {
    "Voxel": "voxel",
    "Top Down": "topdown",
    "Surface": "surface",
    "Permeable Surface": "permeable-surface",
    "Nearest Neighbors": "points",
    "Hybrid": "hybrid",
}
MODELS = PAPER_MODELS | {"Refined": "refined"}
SCENE_AGAIN = "Scene again"
"""The scene itself, fired with other random numbers: how far reality repeats itself."""
PAPER_PARAMETERS: dict[str, dict[str, Any]] = {"surface": {"max_passed": 1}}  # Browning 2012 keeps every triangle


@dataclass(frozen=True)
class MobileSite:
    """A site, and the paper's tables for its like."""

    name: str
    scene: str
    """A shipped scene with the trajectories first and second."""
    span_s: tuple[float, float]
    """Which part of the trajectories is driven, from and to [s]."""
    hits: tuple[float, ...]
    misses: tuple[float, ...]
    sweep_cm: tuple[float, ...]
    cloud_cm: tuple[float, ...]
    nll: tuple[float, ...]
    parameters: tuple[float, ...]


OFFROAD = MobileSite(
    "off-road (Browning 2012 Tables 5, 7 and 9)",
    "trail",
    (13.0, 25.0),
    (98.6, 98.1, 99.8, 93.8, 99.9, 97.9),
    (67.1, 66.5, 54.5, 74.8, 52.9, 66.6),
    (17.46, 17.43, 29.11, 16.07, 22.91, 16.65),
    (4.61, 4.55, 10.09, 6.17, 4.62, 4.38),
    (6.84, 6.65, 10.76, 9.52, 10.50, 7.22),
    (1_904_690, 5_209_820, 4_787_172, 5_319_080, 46_701_630, 4_926_730),
)
URBAN = MobileSite(
    "urban (Browning 2012 Tables 4, 6 and 8)",
    "street",
    (6.0, 18.0),
    (99.3, 98.5, 99.8, 95.9, 99.8, 98.2),
    (39.9, 38.3, 33.6, 46.3, 33.3, 39.6),
    (15.23, 14.63, 81.44, 12.72, 18.19, 12.79),
    (3.77, 3.74, 45.12, 4.02, 3.47, 3.48),
    (6.59, 6.54, 9.59, 8.39, 9.65, 7.21),
    (1_545_860, 5_793_490, 3_212_991, 3_569_990, 50_246_901, 4_177_620),
)
SITES = {"offroad": OFFROAD, "urban": URBAN}


def record(site: MobileSite, n_sweeps: int, seed: int = 1) -> tuple[Log, Log]:
    """Record two drives, the second 0.6 m beside the first."""
    drive = SceneDrive.open(site.scene, site.span_s)
    return drive.record("first", n_sweeps, seed), drive.record("second", n_sweeps, seed + 1)


def learn_all(train: Log, models: Mapping[str, str] = MODELS, say: Print = print) -> dict[str, LearnedWorld]:
    """Learn worlds, those of the paper with its parameters, and the refined one no larger than Top Down."""
    worlds: dict[str, LearnedWorld] = {}
    for name, model in models.items():
        parameters = dict(PAPER_PARAMETERS.get(model, {}))
        if model == "refined":
            parameters["budget"] = worlds["Top Down"].size().elements
        worlds[name] = learn(train, model, **parameters)
        elements = ", ".join(f"{n:,} {kind}" for kind, n in worlds[name].size().tables.items())
        say(f"learned {name}: {elements}")
    return worlds


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, site: str = "offroad") -> Outcome:
    """Record two drives of `size` sweeps each, learn on one, compare on the other, count and draw what is seen."""
    place, n_sweeps = SITES[site], size or 24
    drive = SceneDrive.open(place.scene, place.span_s)
    train, test, again = (
        drive.record(trajectory, n_sweeps, seed + number)
        for number, trajectory in enumerate(("first", "second", "second"))
    )
    say(f"recorded two drives of {len(train):,} beams; {1 - test.returns.hit.mean():.1%} of the second did not return")
    worlds = learn_all(train, say=say)
    scores = compare(test, {**worlds, SCENE_AGAIN: again}, seed=seed)
    ranges = {"Real": test.returns.first_m}
    ranges |= {name: replay(world, test, seed=seed).returns.first_m for name, world in worlds.items()}
    ranges[SCENE_AGAIN] = again.returns.first_m
    obstacles = find_obstacles(drive.site, test.beams)
    found = tuple(tables(place, scores))
    text = (
        f"**Order of the paper's six worlds, {place.name}**\n\n{order_table(found)}",
        occlusion_table(obstacles, test.beams, ranges),
        scores.table(aside=(SCENE_AGAIN,)).to_markdown(),
    )
    pictures = draw_all(folder, f"mobile-{site}", drive.site, train, test, ranges, obstacles, scores)
    return Outcome(found, "\n\n".join(text), pictures)


def tables(site: MobileSite, scores: Comparison) -> list[PaperTable]:
    """Put our scores beside the paper's."""
    columns = (*MODELS, SCENE_AGAIN)

    def ours(key: str, scale: float = 1.0) -> dict[str, float]:
        found = {name: scores[name][key] for name in columns if name in scores.scores}
        return {name: scale * value for name, value in found.items() if value is not None}

    def paper(values: tuple[float, ...]) -> Mapping[str, float]:
        return dict(zip(PAPER_MODELS, values, strict=True))

    rates = (
        ("Hits found [%]", paper(site.hits), ours("hits_found", 100)),
        ("Misses found [%]", paper(site.misses), ours("misses_found", 100)),
    )
    distances = (
        ("Sweep to sweep [cm]", paper(site.sweep_cm), ours("sweep_distance_m", 100)),
        ("Cloud to cloud [cm]", paper(site.cloud_cm), ours("cloud_distance_m", 100)),
        ("Beam error, mean [cm]", dict[str, float](), ours("beam_error_mean_m", 100)),
        ("-log L", paper(site.nll), ours("nll_binned")),
    )
    sizes = (("Parameters", paper(site.parameters), ours("parameters")),)
    return [
        PaperTable(
            f"Hits and misses, {site.name}", columns, rates, digits=1, lower_is_better=False, aside=(SCENE_AGAIN,)
        ),
        PaperTable(f"Distances and likelihood, {site.name}", columns, distances, aside=(SCENE_AGAIN,)),
        PaperTable(f"Size, {site.name}", tuple(MODELS), sizes, digits=0),
    ]
