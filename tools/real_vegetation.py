# SPDX-License-Identifier: Apache-2.0
"""Mattes 2021 Table 1 and Figs. 2 to 9 on real recordings: real, simulated, and what the response adds.

    python tools/real_vegetation.py DATA [--pictures FOLDER] [--seed N]

DATA holds a folder per dataset, with the load.py that tools/real_logs.py describes. Two places beside the road of KITTI
drive 0029 are picked by boxes. A surface world is learned from three sweeps of four: plants as smooth as a coarse
model of them. It is fired at with the beams of the fourth. What it scatters less than the real ranges is what the
response has to add; the response is then given exactly that. For the two returns of Figs. 8 and 9, a sweep of an
Ouster in a tree-lined square stands beside one of the scene trail. docs/results/papers.md has table and pictures.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from real_logs import Choice, loader, logs

import hedgerow as hr
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.models.vegetation_calibration import Calibration, Selection, calibrate
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.reproduce.vegetation_response import PAPER_SCATTER
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.simulate import replay, simulate

FOLDER, SENSOR, SWEEPS = "kitti_0029_start", "hdl-64e-s2", "18:38"
PLACES: dict[str, tuple[float, float, float, float, float, float]] = {
    "hedge": (-48, 8, -1.9, -40, 15, 3),
    "shrubs": (-36, 32, -1.9, -22, 40, 3),
}
"""Boxes, map frame [m]."""
VEGETATION, OTHER = 70, 72
MARGIN_M = 4.0
MODEL = "surface"
DUAL_FOLDER, DUAL_RECORDING = "ouster_bsd", "dual_OSx128_2048_plaza"
DUAL_AT_S, DUAL_SLAB_M, DUAL_SIGMA_M = 28.0, 8.0, 0.5


@dataclass(frozen=True)
class Found:
    """One place: what was measured, and the three clouds."""

    name: str
    calibration: Calibration
    with_response: Calibration
    """Of the simulated log that the response scattered."""
    clouds: dict[str, hr.Log]


def read(data: Path, choice: Choice, box_m: tuple[float, ...]) -> hr.Log:
    """Read the beams that pass a box or its surroundings; returns in the box are labelled vegetation."""
    parts = [log[_passing(log, box_m)] for log in logs(data / FOLDER, choice, max_range_m=80.0, sensor=SENSOR)]
    log = hr.Log.concatenate(parts)
    inside = np.full(len(log), OTHER, np.uint16)
    inside[Selection(box_m=(*box_m,)).rows(log, "log")] = VEGETATION  # pyright: ignore[reportArgumentType]
    return log.with_returns(
        hr.Returns(log.returns.range_m, label=np.where(log.returns.hit, inside, 0).astype(np.uint16))
    )


def _passing(log: hr.Log, box_m: tuple[float, ...]) -> NDArray[np.intp]:
    """Return the beams that go through the box with a margin around it."""
    low, high = np.array(box_m[:3]) - MARGIN_M, np.array(box_m[3:]) + MARGIN_M
    with np.errstate(divide="ignore"):
        ends = (np.stack([low, high])[:, None] - log.beams.origin_m) / log.beams.direction
    enter, leave = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
    return np.flatnonzero((leave > enter) & (leave > 0))


def measure(data: Path, name: str, seed: int) -> Found:
    """Learn from three sweeps of four, measure on the fourth."""
    box_m = PLACES[name]
    train, test = (read(data, choice, box_m) for choice in (Choice(SWEEPS, skip_every=4), Choice(SWEEPS, only_every=4)))
    world = hr.learn(train, MODEL)
    selection = Selection(labels=(VEGETATION,))
    found = calibrate(test, selection, simulated=world, seed=seed)
    scattering = world.with_vegetation(found.settings())
    clouds = {"real": test, "simulated": replay(world, test, seed=seed)}
    clouds["simulated, with the response"] = replay(scattering, test, seed=seed)
    return Found(name, found, calibrate(clouds["simulated, with the response"], selection), clouds)


def table(places: list[Found]) -> str:
    """Return real, simulated, added and the check in Markdown."""
    lines = [
        "| place | | returns | mean [m] | variance [m²] | deviation to add [m] |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    added_m = np.sqrt(PAPER_SCATTER[0][3] - PAPER_SCATTER[1][3])
    for kind, n, mean_m, variance_m2 in PAPER_SCATTER:
        last = f"{added_m:.2f}" if kind == "simulated" else "-"
        lines.append(f"| Mattes 2021, bushes | {kind} | {n:,} | {mean_m:.3f} | {variance_m2:.3f} | {last} |")
    for place in places:
        found = place.calibration
        assert found.simulated is not None
        rows = {
            "real": (found.measured, "-"),
            "simulated": (found.simulated, f"{found.sigma_m:.2f}"),
            "simulated, with the response": (place.with_response.measured, "-"),
        }
        for kind, (part, last) in rows.items():
            figures = f"{part.n:,} | {part.mean_m:.3f} | {part.variance_m2:.3f}"
            lines.append(f"| KITTI 0029, {place.name} | {kind} | {figures} | {last} |")
    return "\n".join(lines)


def draw(places: list[Found], path: Path) -> None:
    """Draw the last sweep of each place from above: real, simulated, and with the response."""
    figure = new_figure(12, 4.2 * len(places))
    panels: Any = figure.subplots(len(places), 3, squeeze=False, sharex="row", sharey="row")
    for row, place in zip(panels, places, strict=True):
        box_m = PLACES[place.name]
        for axes, (kind, log) in zip(row, place.clouds.items(), strict=True):
            one = log.select(sweep=int(log.beams.sweep.max()))
            hit = np.isfinite(one.returns.first_m)
            assert one.returns.label is not None
            points = (one.beams.origin_m + one.returns.first_m[:, None] * one.beams.direction.astype(float))[hit]
            on_plants = one.returns.label[hit] == VEGETATION
            for chosen, colour, size in ((~on_plants, "#b0a090", 0.6), (on_plants, "#2a7f3a", 1.2)):
                axes.scatter(points[chosen, 0], points[chosen, 1], s=size, c=colour, linewidths=0)
            axes.set(title=f"{place.name}, {kind}", aspect="equal", xlabel="x [m]")
            axes.set(xlim=(box_m[0] - 3, box_m[3] + 3), ylim=(box_m[1] - 3, box_m[4] + 3))
        row[0].set_ylabel("y [m]")
    figure.suptitle("Plants beside a road (KITTI 0029), one sweep from above; green: labelled vegetation")
    save_figure(figure, path)


@dataclass(frozen=True)
class TwoReturns:
    """A sweep around a sensor in the middle, with up to two returns per pulse."""

    origin_m: NDArray[np.float64]
    direction: NDArray[np.float64]
    range_m: NDArray[np.float64]
    """(N, 2); inf without a return; the second repeats the first if there is but one."""

    def points(self, number: int, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the places of one of the two, for some pulses, in a slab beside the sensor."""
        range_m = self.range_m[:, number]
        seen = np.isfinite(range_m) & chosen
        places_m = self.origin_m[seen] + range_m[seen, None] * self.direction[seen]
        return places_m[np.abs(places_m[:, 1] - DUAL_SLAB_M) < DUAL_SLAB_M / 2]


def real_dual(data: Path) -> TwoReturns:
    """Read a sweep of an Ouster that reports two returns."""
    sweep = loader(data / DUAL_FOLDER, DUAL_RECORDING)[0](0)
    first_m, second_m = np.asarray(sweep["range"]), np.asarray(sweep["range2"])
    range_m = np.stack([first_m, np.where(np.isfinite(second_m), second_m, first_m)], axis=1)
    return TwoReturns(np.asarray(sweep["origin"]), np.asarray(sweep["dir"]), range_m)


def simulated_dual(behind: Literal["solid", "any"], seed: int) -> TwoReturns:
    """Fire a sweep in the wood of the scene trail, with the response."""
    sensor = Sensor.named("os1-128")
    site = load_site("trail", wavelength_nm=sensor.config.beam.wavelength_nm)
    response = VegetationSettings(sigma_m=DUAL_SIGMA_M, dual=True, behind=behind)
    world = site.world(BeamSettings(sub_rays=1)).with_vegetation(response)
    log = simulate(world, sensor, site.trajectories["first"], seed=seed, at_s=[DUAL_AT_S], noise=False).sweep(0)
    around_m = log.beams.origin_m - log.beams.origin_m.mean(axis=0)
    return TwoReturns(around_m, log.beams.direction.astype(np.float64), log.returns.range_m.astype(np.float64))


def draw_dual(data: Path, path: Path, seed: int) -> None:
    """Draw first returns in blue and second ones in red where they differ, real beside simulated, from the side."""
    figure = new_figure(11, 9)
    clouds = {
        "real, an Ouster in a square": real_dual(data),
        'simulated, scene trail, behind = "solid"': simulated_dual("solid", seed),
        'simulated, scene trail, behind = "any"': simulated_dual("any", seed),
    }
    panels: Any = figure.subplots(3, 1, sharex=True)
    for axes, (title, sweep) in zip(panels, clouds.items(), strict=True):
        same = np.isclose(sweep.range_m[:, 0], sweep.range_m[:, 1], atol=0.01)
        for number, chosen, colour, name in (
            (0, same, "#b8b0a8", "both the same"),
            (0, ~same, "#1f5fbf", "first return"),
            (1, ~same, "#d62728", "second return"),
        ):
            points = sweep.points(number, chosen)
            axes.scatter(points[:, 0], points[:, 2], s=1.2, c=colour, linewidths=0, label=name)
        n_two, n_first = (np.isfinite(sweep.range_m[~same, 1]).sum(), np.isfinite(sweep.range_m[:, 0]).sum())
        axes.set(title=f"{title}: {n_two / n_first:.0%} of the pulses have two", aspect="equal", ylabel="z [m]")
        axes.set(xlim=(-30, 30), ylim=(-3, 10))
        axes.legend(loc="upper left", markerscale=6, fontsize="small")
    panels[-1].set_xlabel("x [m]")
    figure.suptitle("Two returns, a slab of 8 m beside the sensor, seen from the side")
    save_figure(figure, path)


def main() -> None:
    """Read the arguments, measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pictures", type=Path, help="folder for the picture")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    places = [measure(given.data, name, given.seed) for name in PLACES]
    print(table(places))
    if given.pictures is not None:
        draw(places, given.pictures / "real-vegetation.png")
        draw_dual(given.data, given.pictures / "real-two-returns.png", given.seed)


if __name__ == "__main__":
    main()
