# SPDX-License-Identifier: Apache-2.0
"""Tallavajhula 2018 §3.5.2, Figs. 3.15 to 3.17: a program that finds line targets, developed on simulators.

Scenes have walls, a target of 0.61 m and obstacles of other lengths around the scanner. Of a million candidates fifty
are kept that differ most: the one farthest from all chosen so far, again and again (the paper says non-maximal
suppression, not by what). The hidden scanner plays reality; P-Reg and the Gaussian are the paper's simulators, P-Reg
with neighbours that hang together is ours. Bandwidths and constants come from the room of planar-observation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.line_detection import TARGET_LENGTH_M, LineDetection, TargetTruth
from hedgerow.apps.space import Setting, Space
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.planar.copula import fit_copula
from hedgerow.planar.site import Kind, PlanarSite, scan_beams
from hedgerow.planar.world import PlanarWorld
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.planar.hidden_sensor import BEARING_RAD, N_BEARINGS, HiddenSensor, HiddenWorld
from hedgerow.reproduce.planar.lab import ROOM, collect, record, train
from hedgerow.reproduce.risk_text import holds, risk_text
from hedgerow.reproduce.tables import markdown_table
from hedgerow.risk.develop import Path as DevelopmentPath
from hedgerow.risk.develop import Trials, develop
from hedgerow.risk.measure import measure
from hedgerow.risk.score import score
from hedgerow.risk.sources import FunctionSource, Scene
from hedgerow.world.world import World

CANDIDATES = 1_000_000
N_SCENES = 50
SETTINGS = 60
_THINGS = 3
"""The target and two obstacles."""
_STEPS = 24
"""Of a development."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Measure the risk of three simulators for the detector; `size` is the number of scenes, 50 in the paper."""
    n_scenes = size or N_SCENES
    sites = choose_scenes(n_scenes, CANDIDATES if size is None else 20_000, seed)
    say(f"{n_scenes} scenes chosen")
    parts: list[str] = []
    pictures: list[Path] = []
    for name, sensor in (("with biases", HiddenSensor()), ("without biases", HiddenSensor().without_bias())):
        worlds = simulators(sensor, seed)
        app = LineDetection()
        scenes = [f"{number:03d}" for number in range(len(sites))]
        hidden = partial(HiddenWorld, sensor=sensor)
        real = FunctionSource("real", scenes, _Make(tuple(sites), hidden, 1), role="real", is_random=False)
        again = FunctionSource("again", scenes, _Make(tuple(sites), hidden, 2), role="again", is_random=False)
        sims = [FunctionSource(each, scenes, _Make(tuple(sites), make)) for each, make in worlds.items()]
        table = measure(app, [real, again, *sims], settings=SETTINGS, sampler="sobol", seed=seed, seeds=(11, 12))
        scores = score(table, app)
        parts.append(f"### Scanner {name}\n\n{risk_text(scores)}")
        if name == "with biases":
            how: Any = {"name": "recall, then precision", "steps": _STEPS, "seed": 11}
            paths = [develop(app, table, real, each, recall_then_precision, **how) for each in sims]
            parts.append(_paths_text(paths))
            pictures = [_draw_scenes(folder / "planar-detection-scenes.png", sites, sensor), _draw_paths(folder, paths)]
        risks = {each: found.risk for each, found in scores.scores.items()}
        parts.append(
            f"Conclusions of the paper: P-Reg has a lower risk than the Gaussian: "
            f"{holds(risks['P-Reg'] < risks['Gaussian'])}. The Gaussian is optimistic: "
            f"{holds(scores.scores['Gaussian'].bias < 0)}."
        )
        say(f"scanner {name}: " + ", ".join(f"{each} {risk:.3f}" for each, risk in risks.items()))
    return Outcome(text="\n\n".join(parts), pictures=tuple(pictures))


def simulators(sensor: HiddenSensor, seed: int) -> dict[str, Callable[[Any], World]]:
    """Train the models on readings in the room, and return what makes a world of a scene."""
    data = collect(100, seed, sensor)
    models = train(data, most_states=100)
    scans = record(ROOM.scene(), data.poses["validation"][:10], 3, seed + 77, sensor)
    states = PlanarWorld(ROOM.scene(), models.p_reg, N_BEARINGS).states(scans.beams)
    copula = fit_copula(models.p_reg, states, scans.returns.first_m.astype(np.float64), N_BEARINGS)
    return {
        "P-Reg": lambda scene: PlanarWorld(scene, models.p_reg, N_BEARINGS),
        "P-Reg, joined": lambda scene: PlanarWorld(scene, models.p_reg, N_BEARINGS, copula=copula),
        "Gaussian": lambda scene: PlanarWorld(scene, models.gaussian, N_BEARINGS),
    }


@dataclass(frozen=True)
class _Make:
    """Makes the scan of a scene."""

    sites: tuple[PlanarSite, ...]
    world: Callable[[Any], World]
    seed: int | None = None
    """Of a recording; None takes that of the simulation."""

    def __call__(self, name: str, seed: int) -> Scene:
        number = int(name)
        site = self.sites[number]
        beams = scan_beams((0.0, 0.0, 0.0), BEARING_RAD, sweep=number)
        log = self.world(site.scene()).fire(beams, seed if self.seed is None else self.seed)
        return Scene(log, TargetTruth(site.segments("target")))


def choose_scenes(n: int, n_candidates: int, seed: int) -> list[PlanarSite]:
    """Return n scenes that differ most of many drawn at random."""
    random = np.random.default_rng(seed + 4000)
    drawn = _candidates(n_candidates, random)
    features = np.column_stack(
        [np.cos(drawn[:, 0::4]), np.sin(drawn[:, 0::4]), drawn[:, 1::4], drawn[:, 2::4], drawn[:, 3::4]]
    )
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    chosen = [0]
    nearest = np.linalg.norm(features - features[0], axis=1)
    while len(chosen) < n:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.linalg.norm(features - features[chosen[-1]], axis=1))
    return [_site(drawn[row]) for row in chosen]


def _candidates(n: int, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw (K, 12) scenes: bearing, distance, turn against the line of sight and length of each thing.

    Things stand at least 60 degrees apart, so that none hides another.
    """
    gaps = random.dirichlet((1, 1, 1), size=n) * (2 * np.pi - _THINGS * np.deg2rad(60)) + np.deg2rad(60)
    bearing = random.uniform(0, 2 * np.pi, (n, 1)) + np.cumsum(gaps, axis=1)
    distance = random.uniform(0.6, 1.5, (n, _THINGS))
    turn = random.uniform(-1.0, 1.0, (n, _THINGS))
    length = np.where(
        random.uniform(size=(n, _THINGS)) < 0.5,
        random.uniform(0.25, 0.48, (n, _THINGS)),
        random.uniform(0.74, 1.1, (n, _THINGS)),
    )
    length[:, 0] = TARGET_LENGTH_M
    return np.stack([bearing, distance, turn, length], axis=2).reshape(n, -1)


def _site(row: NDArray[np.float64]) -> PlanarSite:
    things: list[dict[str, Any]] = [{"points_m": [[-1.9, -1.9], [1.9, -1.9], [1.9, 1.9], [-1.9, 1.9]], "closed": True}]
    for k, (bearing, distance, turn, length) in enumerate(row.reshape(_THINGS, 4)):
        pose = {
            "x_m": distance * np.cos(bearing),
            "y_m": distance * np.sin(bearing),
            "heading_deg": float(np.rad2deg(bearing + np.pi / 2 + turn)),
        }
        kind = "obstacle" if k else "target"
        things.append({"kind": kind, "points_m": [[-length / 2, 0.0], [length / 2, 0.0]], "pose": pose})
    return PlanarSite.parse({"object": things}, "a scene")


def recall_then_precision(space: Space, start: Setting, trials: Trials) -> None:
    """Develop as in §3.5.2: with all checks off first raise recall, then precision at some cost to recall."""
    first = {**start, "inlier_m": 0.005, "min_points": 5, "smooth": "off", "length_m": 1.0, "free": "off"}
    best = trials.try_setting(first)
    for change in (
        {"smooth": "on"},
        {"inlier_m": 0.01},
        {"inlier_m": 0.02},
        {"inlier_m": 0.04},
        {"min_points": 3},
        {"min_points": 8},
    ):
        tried = trials.try_setting({**best.setting, **change})
        best = tried if recall(tried.sums) > recall(best.sums) + 1e-9 else best
    for change in (
        {"length_m": 0.4},
        {"length_m": 0.2},
        {"length_m": 0.1},
        {"length_m": 0.06},
        {"free": "on"},
        {"min_points": 12},
    ):
        tried = trials.try_setting({**best.setting, **change})
        best = tried if tried.j < best.j - 1e-9 else best


def recall(sums: dict[str, float]) -> float:
    """Return the share of the targets that were found."""
    return sums["tp"] / max(sums["tp"] + sums["fn"], 1)


def _rates(sums: dict[str, tuple[Any, Any]], which: int) -> tuple[Any, Any]:
    tp, fp, fn = (sums[name][which] for name in ("tp", "fp", "fn"))
    return tp / np.maximum(tp + fp, 1), tp / np.maximum(tp + fn, 1)


def _paths_text(paths: list[DevelopmentPath]) -> str:
    rows: list[tuple[str, ...]] = []
    for path in paths:
        simulated, real = path.best_so_far()
        rows.append((path.source, f"{-simulated[-1]:.3f}", f"{-real[-1]:.3f}", f"{-np.nanmin(path.real):.3f}"))
    text = "Development, first recall and then precision, on each simulator by itself; F1 at its end:\n\n"
    return text + markdown_table(("developed on", "F1 there", "F1 in reality", "best F1 in reality on the way"), rows)


def _draw_scenes(path: Path, sites: list[PlanarSite], sensor: HiddenSensor) -> Path:
    figure = new_figure(12, 3.4)
    for axes, site in zip(figure.subplots(1, 4), sites[:4], strict=True):
        log = HiddenWorld(site.scene(), sensor).fire(scan_beams((0, 0, 0), BEARING_RAD), 3)
        colours: dict[Kind, str] = {"wall": "0.7", "obstacle": "0.4", "target": "tab:green"}
        for kind, colour in colours.items():
            for segment in site.segments(kind):
                axes.plot(*segment.T, color=colour, linewidth=1 if kind == "wall" else 3)
        axes.plot(*log.points()[:, :2].T, ".", color="tab:red", markersize=2)
        axes.plot(0, 0, "k>", markersize=5)
        axes.set(aspect="equal", xticks=[], yticks=[])
    figure.suptitle("scenes; target green, readings of the hidden scanner red", fontsize=10)
    save_figure(figure, path)
    return path


def _draw_paths(folder: Path, paths: list[DevelopmentPath]) -> Path:
    figure = new_figure(4 * len(paths), 3.8)
    for axes, path in zip(figure.subplots(1, len(paths), squeeze=False)[0], paths, strict=True):
        for which, (name, colour) in enumerate((("simulated", "tab:red"), ("real", "tab:blue"))):
            precision, found = _rates(path.sums, which)
            axes.plot(found, precision, "o-", color=colour, label=name, markersize=3, linewidth=1)
        axes.set(
            title=f"developed on {path.source}", xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02)
        )
        axes.legend(fontsize=8)
    path = folder / "planar-detection-paths.png"
    save_figure(figure, path)
    return path
