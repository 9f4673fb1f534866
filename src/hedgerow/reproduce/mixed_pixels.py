# SPDX-License-Identifier: Apache-2.0
"""Goodin 2018 §3.4.2, Fig. 7: an LMS-291 looks at nine rods in front of a plane; do ranges appear where nothing is?

A mixed pixel is a return farther than 3 cm from everything that its pulse touched: the receiver has averaged a rod and
the plane. With the plane 0.6 m behind the rods both lie within the sensor's cutoff of 1.6 m; with 2 m they do not.
How many pulses are split depends on the stencil, so it is done with ours and with the paper's own (receivers.py).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.receivers import OURS, WAYS
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.world.pulsed import PhysicsWorld

BACKGROUNDS_M = (0.6, 2.0)
APART_M = 0.03  # a return this far from all it touched is mixed; three times the sensor's noise
MIXED_IN_THE_PAPER = {0.6: "yes", 2.0: "none"}


@dataclass(frozen=True)
class Scan:
    """One scan of the rods."""

    way: str
    """How pulses were sampled and received."""
    background_m: float
    log: Log
    touched: NDArray[np.bool_]
    """(N,) pulses of which some light met a rod and some the plane."""
    mixed: NDArray[np.bool_]
    """(N,) pulses whose range is where nothing is."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Scan the rods before both planes in each way and count mixed pixels; `size` is sub-rays of ours, default 9."""
    ways = {**WAYS, OURS: BeamSettings(sub_rays=size or 9)}
    scans = [
        scan(background_m, way, settings, seed) for way, settings in ways.items() for background_m in BACKGROUNDS_M
    ]
    for each in scans:
        counts = f"{each.mixed.sum()} mixed pixels of {each.touched.sum()} split pulses"
        say(f"{each.way}, plane {each.background_m:g} m behind: {counts}")
    picture = folder / "mixed-pixels.png"
    _draw([each for each in scans if each.way == OURS], picture)
    return Outcome(text=_text(scans), pictures=(picture,))


def scan(background_m: float, way: str = OURS, settings: BeamSettings | None = None, seed: int = 1) -> Scan:
    """Scan the rods once with a plane so far behind them [m]; `settings` are those of the way if not given."""
    sensor = Sensor.named("lms-291")
    site = load_site("rods", wavelength_nm=sensor.config.beam.wavelength_nm, set={"background_m": background_m})
    beams = sensor.drive(site.trajectories["sensor"], n_sweeps=1)
    # Goodin 2018 Table 3
    beams = beams[np.abs(np.arctan2(beams.direction[:, 1], beams.direction[:, 0])) <= np.deg2rad(50)]
    # Not fired as the sensor: the rods stand nearer than its least range, on which the paper's table is silent.
    given: dict[str, Any] = {"beam": sensor.config.beam, "mode": "first", "cutoff_m": sensor.config.signal.cutoff_m}
    settings = (settings or WAYS[way]).model_copy(update=given)
    found = PhysicsWorld(site.scene, settings, max_range_m=sensor.max_range_m).fire_detailed(beams, seed, sub_rays=True)
    if found.sub_rays is None:
        raise TypeError("sub-rays were asked for")
    hit, range_m = np.isfinite(found.sub_rays.range_m), found.log.returns.range_m
    away = np.where(hit, np.abs(found.sub_rays.range_m - range_m[:, None]), np.inf).min(axis=1)
    on_rod = found.sub_rays.label == site.labels["pole"]
    touched = (on_rod & hit).any(axis=1) & (~on_rod & hit).any(axis=1)
    return Scan(way, background_m, found.log, touched, np.isfinite(range_m) & (away > APART_M))


def _text(scans: list[Scan]) -> str:
    head = (
        "| pulses | plane behind the rods [m] | number | split between rod and plane | mixed pixels | in the paper |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    rows = [
        f"| {each.way} | {each.background_m:g} | {len(each.log)} | {each.touched.sum()} | {each.mixed.sum()} | "
        f"{MIXED_IN_THE_PAPER[each.background_m]} |"
        for each in scans
    ]
    return "\n".join([head, *rows])


def _draw(scans: list[Scan], path: Path) -> None:
    figure = new_figure(11, 5)
    panels: Any = figure.subplots(1, 2)
    for panel, letter, each in zip(panels, "ab", scans, strict=True):
        points = each.log.beams.origin_m + each.log.returns.range_m[:, None] * each.log.beams.direction
        sensor = each.log.beams.origin_m[0]
        x, y = (points - sensor)[:, 0], (points - sensor)[:, 1]
        panel.plot(y[~each.mixed], x[~each.mixed], ".", ms=4, color="tab:blue", label="on a rod or the plane")
        panel.plot(y[each.mixed], x[each.mixed], "x", ms=6, color="tab:red", label="mixed pixel")
        panel.plot(0, 0, "^", color="black", label="sensor")
        title = f"({letter}) plane {each.background_m:g} m behind the rods: {each.mixed.sum()} mixed pixels"
        panel.set(title=title, xlabel="across [m]", ylabel="ahead [m]", aspect="equal", xlim=(1.3, -1.3))
        panel.set_ylim(-0.15, 0.95 + each.background_m)
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8, loc="lower right")
    save_figure(figure, path)
