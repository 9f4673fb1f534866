# SPDX-License-Identifier: Apache-2.0
"""Goodin 2018 §3.4.3, Fig. 8: ranges of a shrub 8 m away, from 91 places on a quarter circle.

The paper names two features of the histogram, after a field test: it is broad, because the shrub is deep, and it has
two modes, because some returns come from the stems and others from the foliage in front of them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.frames import Pose, Trajectory
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.scenes.site import Site, load_site
from hedgerow.sensor import Sensor
from hedgerow.simulate import simulate

N_PLACES = 91
BIN_M = 0.02
SMOOTH_M = 0.04  # standard deviation of the curve's kernel


@dataclass(frozen=True)
class Shrub:
    """What came back from it."""

    range_m: Array
    """Horizontal distance from the sensor."""
    on_wood: NDArray[np.bool_]
    """Whether a stem or branch returned it, not a leaf."""

    def curve(self) -> tuple[Array, Array]:
        """Return places and counts per bin, smoothed by a normal kernel."""
        edges = np.arange(self.range_m.min() - 0.2, self.range_m.max() + 0.2, BIN_M)
        counts = np.histogram(self.range_m, edges)[0].astype(np.float64)
        kernel = np.exp(-0.5 * (np.arange(-8, 9) * BIN_M / SMOOTH_M) ** 2)
        smooth: Array = np.convolve(counts, kernel / kernel.sum(), "same").astype(np.float64)
        return (edges[1:] + edges[:-1]) / 2, smooth

    def modes(self) -> tuple[Array, float]:
        """Return where the curve peaks, and how deep the valley between the two highest is: 0 none, 1 to the ground.

        Peaks below a twentieth of the highest are dust.
        """
        at, curve = self.curve()
        inner = curve[1:-1]
        peaks = 1 + np.flatnonzero((inner > curve[:-2]) & (inner >= curve[2:]) & (inner > 0.05 * curve.max()))
        if len(peaks) < 2:
            return at[peaks], 0.0
        first, second = np.sort(peaks[np.argsort(curve[peaks])[-2:]]).tolist()
        return at[peaks], float(1 - curve[first:second].min() / min(curve[first], curve[second]))


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Scan the shrub from `size` places (default 91), say how broad and how bimodal the ranges are, draw them."""
    site = load_site("shrub")
    shrub = scan(site, size or N_PLACES, seed)
    say(f"{len(shrub.range_m):,} returns from the shrub, {shrub.on_wood.mean():.1%} of them from wood")
    picture = folder / "shrub-histogram.png"
    _draw(shrub, picture)
    return Outcome(text=_text(shrub), pictures=(picture,))


def scan(site: Site, n_places: int, seed: int) -> Shrub:
    """Turn the sensor once at each of the places and keep what comes back from the shrub."""
    sensor = Sensor.named("hdl-64e", rate_hz=5)
    path, world = site.trajectories["quarter-circle"], site.world()
    foliage = [site.labels[name] for name in ("shrub", "leaves")]
    wood = [site.labels[name] for name in ("trunk", "branch")]
    ranges: list[Array] = []
    on_wood: list[NDArray[np.bool_]] = []
    for place in np.unique(np.linspace(0, len(path) - 1, n_places).round().astype(int)):
        pose = Pose(path.position_m[place], path.quaternion_xyzw[place])
        standing = Trajectory.standing(pose, 2 * sensor.sweep_s)
        [log] = simulate(world, sensor, standing, seed=seed + int(place), sweeps=1, noise=False)
        label = log.returns.label
        if label is None:
            raise TypeError("a scene's returns have labels")
        kept = np.isin(label, foliage + wood)  # a missing return has label 0
        level = np.hypot(log.beams.direction[kept, 0], log.beams.direction[kept, 1])
        ranges.append(log.returns.range_m[kept].astype(np.float64) * level)
        on_wood.append(np.isin(label[kept], wood))
    return Shrub(np.concatenate(ranges), np.concatenate(on_wood))


def _text(shrub: Shrub) -> str:
    peaks, valley = shrub.modes()
    low, high = np.quantile(shrub.range_m, (0.025, 0.975))
    noise_m = Sensor.named("hdl-64e").config.range.sigma_m
    lines = (
        f"- {len(shrub.range_m):,} returns from the shrub, {shrub.on_wood.mean():.1%} of them from stems and branches.",
        f"- Broad: standard deviation {shrub.range_m.std():.3f} m, 95 % of the ranges between {low:.2f} and {high:.2f}"
        f" m; a plane would give the sensor's noise, {noise_m:g} m.",
        f"- Modes: {len(peaks)}, at {', '.join(f'{at:.2f}' for at in peaks)} m; the valley between the two highest goes"
        f" down by {valley:.0%} of the lower one.",
        f"- Mean range of leaves {shrub.range_m[~shrub.on_wood].mean():.2f} m, of wood"
        f" {shrub.range_m[shrub.on_wood].mean():.2f} m.",
    )
    return "\n".join(lines)


def _draw(shrub: Shrub, path: Path) -> None:
    figure = new_figure(8, 4.8)
    axes: Any = figure.subplots()
    edges = np.arange(shrub.range_m.min(), shrub.range_m.max() + BIN_M, BIN_M)
    parts = [shrub.range_m[shrub.on_wood], shrub.range_m[~shrub.on_wood]]
    axes.hist(parts, edges, stacked=True, color=["tab:brown", "tab:green"], label=["stems and branches", "leaves"])
    axes.plot(*shrub.curve(), color="black", lw=1.2, label="smoothed")
    title = f"Shrub 8 m away, {N_PLACES} places on a quarter circle (Goodin 2018 Fig. 8)"
    axes.set(xlabel="horizontal distance [m]", ylabel="returns per 2 cm", title=title)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
