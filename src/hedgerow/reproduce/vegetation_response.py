# SPDX-License-Identifier: Apache-2.0
"""Mattes 2021 Tables 1 and 2: calibration of the vegetation response, and what the response costs.

Mattes 2021 measured the scatter of bushes with a real VLP-32MR and in a simulated scene of theirs, and set the noise by
the difference. Here the "real" log is made by a response of known mean and deviation in a scene of bushes and grass, so
that it can be seen whether the calibration finds them again. The cost is measured as in Mattes 2021 §5.2: 64 lasers, 90
degrees, one sweep at a time. tools/real_vegetation.py repeats Table 1 and the figures on a real recording.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams
from hedgerow.models.vegetation_calibration import Calibration, Selection, calibrate
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.scenes import mesh
from hedgerow.scenes.plants import PLANTS
from hedgerow.sensor import Sensor
from hedgerow.world import Scene, SceneWorld

BUSH, GRASS, GROUND, WALL = 102, 101, 72, 50
NAMES = {BUSH: "bushes", GRASS: "low grass"}
INJECTED = ((BUSH, 0.0, 1.0), (BUSH, 0.3, 0.5), (BUSH, -0.1, 0.2), (GRASS, 0.0, 0.1), (GRASS, 0.0, 1.0))
"""Label, mean and deviation [m]; Mattes 2021 set 0 and 1 m."""
PAPER_SCATTER = (("real", 63383, -0.099250, 1.594310), ("simulated", 63409, -0.0912173, 0.587409))
PAPER_S = {"depth": 0.038, "single": 0.123, "dual": 0.158}
ROUNDS = 9


@dataclass(frozen=True)
class Recovery:
    """What was put in and what came out."""

    label: int
    mean_m: float
    sigma_m: float
    found: Calibration
    clipped_share: float
    """Share of returns that would have gone past the ground or the wall and were set on it."""


@dataclass(frozen=True)
class Cost:
    """Seconds per sweep of each sensor."""

    seconds: dict[str, float]
    vegetation: float
    """Share of returns on vegetation."""
    n_beams: int

    def ratio(self, name: str) -> float:
        """Return the time over that of the plain depth sensor."""
        return self.seconds[name] / self.seconds["depth"]


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Recover injected noise, measure the overhead and draw the range errors; `size` is the sweeps of each log."""
    world = bushes_and_grass(seed)
    n_sweeps = size or 10
    say(f"scene of {world.scene.n_elements:,} triangles; {n_sweeps} sweeps of a VLP-32MR ahead")
    beams = beams_ahead(Sensor.named("vlp-32mr"), n_sweeps)
    recoveries = [recover_noise(world, beams, *each, seed) for each in INJECTED]
    for each in recoveries:
        say(f"{NAMES[each.label]}: put in {each.mean_m:g} and {each.sigma_m:g} m, ".ljust(48) + _found(each))
    cost = overhead(world, seed)
    say(f"single {cost.ratio('single'):.2f}, dual {cost.ratio('dual'):.2f} times the plain sensor (paper: 3.2 and 4.2)")
    picture = folder / "vegetation-response.png"
    _draw(world, beams, seed, picture)
    return Outcome(text="\n\n".join([_recovery_text(recoveries), _cost_text(cost)]), pictures=(picture,))


def bushes_and_grass(seed: int) -> SceneWorld:
    """Return a meadow with a dense line of bushes 15 m ahead, low grass before it and a wall 45 m ahead."""
    rng = np.random.default_rng(seed)
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((-60, -60, 0), (120, 0, 0), (0, 120, 0)), label=GROUND)
    scene.add_mesh(*mesh.box((45, -40, 0), (45.3, 40, 6)), label=WALL)
    bush, grass = Scene(), Scene()
    for part in PLANTS["shrub"].grow(seed, height_m=2.4, crown_diameter_m=2.2, leaf_length_m=0.1):
        bush.add_mesh(*part.mesh, label=BUSH)
    for part in PLANTS["blade-grass"].grow(seed, side_m=2.0, density_per_m2=400, height_m=0.3):
        grass.add_mesh(*part.mesh, label=GRASS)
    rows = [(x, y) for y in np.arange(-16, 16.1, 1.1) for x in (15.0, 16.2)]
    scene.place(bush, _standing(np.array(rows) + rng.uniform(-0.4, 0.4, (len(rows), 2)), rng))
    squares = np.array([(x, y) for x in range(3, 13, 2) for y in range(-14, 14, 2)], dtype=float)
    scene.place(grass, _standing(squares, None))
    return SceneWorld(scene)


def _standing(places_m: NDArray[np.float64], rng: np.random.Generator | None) -> NDArray[np.float64]:
    """Return (M, 4, 4) transforms to (M, 2) places, turned at random if there is a generator."""
    matrices = np.tile(np.eye(4), (len(places_m), 1, 1))
    matrices[:, :2, 3] = places_m
    if rng is not None:
        turn = rng.uniform(0, 2 * np.pi, len(places_m))
        matrices[:, 0, 0] = matrices[:, 1, 1] = np.cos(turn)
        matrices[:, 1, 0] = np.sin(turn)
        matrices[:, 0, 1] = -np.sin(turn)
    return matrices


def beams_ahead(sensor: Sensor, n_sweeps: int) -> Beams:
    """Return sweeps of a sensor that stands 2 m above the ground, the 90 degrees ahead of it."""
    standing = Trajectory.standing(Pose.from_xyz_rpy((0, 0, 2), (0, 0, 0)), (n_sweeps + 1) * sensor.sweep_s)
    beams = sensor.drive(standing, n_sweeps=n_sweeps)
    return beams[beams.direction[:, 0] > np.abs(beams.direction[:, 1])]


def recover_noise(world: SceneWorld, beams: Beams, label: int, mean_m: float, sigma_m: float, seed: int) -> Recovery:
    """Put noise on the returns of one label, calibrate on the log and on the scene without noise."""
    settings = VegetationSettings(labels=(label,), mean_m=mean_m, sigma_m=sigma_m, dual=True)
    log = world.with_vegetation(settings).fire(beams, seed)
    found = calibrate(log, Selection(labels=(label,)), simulated=world, seed=seed)
    range_m, kind = log.returns.range_m, log.returns.label
    on_plant = kind is not None and kind[:, 0] == label
    return Recovery(label, mean_m, sigma_m, found, float((range_m[on_plant, 0] == range_m[on_plant, 1]).mean()))


def overhead(world: SceneWorld, seed: int, rounds: int = ROUNDS) -> Cost:
    """Time one sweep of 64 lasers over 90 degrees; the three sensors take turns, and the best round of each counts."""
    sensor = Sensor.named("hdl-64e")
    beams = beams_ahead(sensor, 1)
    labels = (BUSH, GRASS)
    worlds: dict[str, SceneWorld] = {
        "depth": world,
        "single": world.with_vegetation(VegetationSettings(labels=labels)),
        "dual": world.with_vegetation(VegetationSettings(labels=labels, dual=True)),
    }
    hits = world.scene.fire(beams, min_range_m=sensor.min_range_m, max_range_m=sensor.max_range_m)
    for each in worlds.values():
        each.fire(beams, seed, sensor=sensor)  # builds what it needs
    seconds = dict.fromkeys(worlds, float("inf"))
    for number in range(rounds):
        for name, each in worlds.items():
            start = time.perf_counter()
            each.fire(beams, seed + number, sensor=sensor)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return Cost(seconds, float(np.isin(hits.label[hits.element >= 0], labels).mean()), len(beams))


def _found(each: Recovery) -> str:
    return f"found {each.found.mean_m:.3f} and {each.found.sigma_m:.3f} m; {each.clipped_share:.1%} held back"


def _recovery_text(recoveries: Sequence[Recovery]) -> str:
    lines = [
        "**Mattes 2021 Table 1, difference between measured and expected range; ours: known noise as the real log**",
        "",
        "| | returns | mean [m] | variance [m²] | put in: mean, deviation [m] | found [m] | held back |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, n, mean_m, variance_m2 in PAPER_SCATTER:
        lines.append(f"| Mattes 2021, {name} | {_figures(n, mean_m, variance_m2)} | - | - | - |")
    for each in recoveries:
        part = each.found.measured
        put, found = f"{each.mean_m:g}, {each.sigma_m:g}", f"{each.found.mean_m:.3f}, {each.found.sigma_m:.3f}"
        figures = _figures(part.n, part.mean_m, part.variance_m2)
        lines.append(f"| {NAMES[each.label]}, real | {figures} | {put} | {found} | {each.clipped_share:.1%} |")
    for label, name in NAMES.items():  # the scene without noise is the same for all of a label
        part = next(each.found.simulated for each in recoveries if each.label == label)
        if part is not None:
            lines.append(f"| {name}, simulated | {_figures(part.n, part.mean_m, part.variance_m2)} | - | - | - |")
    words = (
        "Mattes 2021 took the difference of both variances, 1 m², as the noise. Held back: returns that would have "
        "gone past the ground or the wall and lie on it instead. In low grass these limit the scatter, so what is "
        "found there is the noise that is left, less than what was put in."
    )
    return "\n".join([*lines, "", words])


def _figures(n: int, mean_m: float, variance_m2: float) -> str:
    return f"{n:,} | {mean_m:.3f} | {variance_m2:.3f}"


def _cost_text(cost: Cost) -> str:
    lines = [
        "**Mattes 2021 Table 2, time per sweep of 64 lasers over 90 degrees, the plain depth sensor as the unit**",
        "",
        "| sensor | Mattes 2021 [s] | Mattes 2021, ratio | ours [s] | ours, ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, paper_s in PAPER_S.items():
        ratio = f"{paper_s / PAPER_S['depth']:.1f}"
        lines.append(f"| {name} | {paper_s:.3f} | {ratio} | {cost.seconds[name]:.4f} | {cost.ratio(name):.2f} |")
    words = (
        f"{cost.n_beams:,} beams, {cost.vegetation:.0%} of the returns on vegetation; best of {ROUNDS} rounds in turns."
    )
    return "\n".join([*lines, "", words])


def _draw(world: SceneWorld, beams: Beams, seed: int, path: Path) -> None:
    """Draw what is added to the range on bushes and on low grass, for a deviation of 1 m."""
    figure = new_figure(10, 4)
    panels: Any = figure.subplots(1, 2, sharex=True)
    plain = world.fire(beams, seed).returns
    settings = VegetationSettings(labels=(BUSH, GRASS), sigma_m=1.0)
    noisy = world.with_vegetation(settings).fire(beams, seed).returns
    edges = np.linspace(-4, 4, 81)
    middle = (edges[1:] + edges[:-1]) / 2
    for axes, (label, name) in zip(panels, NAMES.items(), strict=True):
        rows = noisy.label == label  # a lost return has none
        error_m = noisy.range_m[rows] - plain.range_m[rows]
        axes.hist(error_m, edges, density=True, color="tab:green", alpha=0.7, label="response")
        axes.plot(middle, np.exp(-(middle**2) / 2) / np.sqrt(2 * np.pi), "k--", label="normal, 1 m")
        axes.set(title=name.capitalize(), xlabel="added to the range [m]", ylabel="density [1/m]")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle("Vegetation response (Mattes 2021): noise, held back by what stands behind")
    save_figure(figure, path)
