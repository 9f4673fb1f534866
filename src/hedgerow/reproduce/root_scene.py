# SPDX-License-Identifier: Apache-2.0
"""Goodin 2018 §3.6, Fig. 11: a step in a trail, held by roots, of over 22 million triangles, among 24,564 plants.

The paper's mesh of the root came from photographs; the scene `root` makes one up, of the same size and as fine. An
HDL-32E and a VLP-16 look at it from 4 m away. The question is whether so much detail fits into the memory and is still
fired at in real time.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.site import Site, load_site
from hedgerow.sensor import Sensor
from hedgerow.simulate import simulate
from hedgerow.view.render import named_colours, render_picture

SENSORS = ("hdl-32e", "vlp-16")
PAPER_PLANTS = 24_564
PAPER_TRIANGLES = 604_488_350
PAPER_ROOT = "over 22 million"
TREES = 164
ROOT_SPACING_M = 0.00073
"""Between the vertices of the root, which gives it the paper's number of triangles."""
N_TIMED = 3
_NEAREST_M = 0.3
EYE_M, LOOK_AT_M, FOV_DEG = (-3.6, -1.3, 1.7), (0.4, 0.0, 0.1), 60.0
"""Of all pictures, above the ground at the root."""


@dataclass(frozen=True)
class Scan:
    """One sweep of one sensor, and how long it took."""

    sensor: Sensor
    log: Log
    fire_s: float
    """Of the fastest of a few."""
    core_s: float
    """Time of all cores together, of the one that took least."""

    @property
    def real_time(self) -> float:
        """Seconds of the sensor in a second of computing."""
        return self.sensor.sweep_s / self.fire_s


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Build the scene with `size` plants (default 24,564, as in the paper; the root gets coarser alike) and scan it."""
    n_plants = size or PAPER_PLANTS
    before, start = _memory_bytes(), time.perf_counter()
    site = load_site("root", set=_settings(n_plants))
    build_s, took_bytes = time.perf_counter() - start, _memory_bytes() - before
    root = _count_root(site)
    say(f"built {site.n_triangles:,} triangles in {build_s:.1f} s, {root:,} of them the root")
    scans = [scan(site, name, seed) for name in SENSORS]
    for each in scans:
        say(f"{each.sensor.name}: {each.real_time:.2f} times real time")
    picture = folder / "root-scene.jpg"
    _draw(site, scans, picture)
    return Outcome(text=_text(site, root, build_s, took_bytes, scans), pictures=(picture,))


def _settings(n_plants: int) -> dict[str, float | int]:
    share = n_plants / PAPER_PLANTS
    trees = max(1, round(TREES * share))
    return {
        "trees": trees,
        "tussocks": max(1, n_plants - trees),
        "root_spacing_m": float(ROOT_SPACING_M / np.sqrt(min(share, 1.0))),
    }


def _count_root(site: Site) -> int:
    from hedgerow.scenes.plants import PLANTS

    return round(PLANTS["root"].parameters(**site.file.plants["root"].parameters).n_triangles)


def scan(site: Site, name: str, seed: int) -> Scan:
    """Turn a sensor once where it stands; the fastest of a few counts, since the first reads the scene from memory."""
    sensor = Sensor.named(name)
    plan = simulate(site.world(), sensor, site.trajectories["front"], seed=seed, sweeps=1, noise=True)
    log = plan.sweep(0)
    fire_s, core_s = float("inf"), float("inf")
    for _ in range(N_TIMED):
        start, core_start = time.perf_counter(), time.process_time()
        log = plan.sweep(0)
        fire_s = min(fire_s, time.perf_counter() - start)
        core_s = min(core_s, time.process_time() - core_start)
    return Scan(sensor, log, fire_s, core_s)


def _memory_bytes() -> int:
    """Memory that the program holds now; 0 where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)


def _text(site: Site, root: int, build_s: float, took_bytes: int, scans: list[Scan]) -> str:
    plants = site.n_copies["tussocks"] + site.n_copies["trees"]
    memory = f"{took_bytes / 1e9:.1f} GB" if took_bytes > 0 else "-"
    scene = markdown_table(
        ("scene", "paper", "ours"),
        [
            ("triangles of the root", PAPER_ROOT, f"{root:,}"),
            ("grass and trees", f"{PAPER_PLANTS:,}", f"{plants:,}"),
            ("triangles, all copies counted", f"{PAPER_TRIANGLES:,}", f"{site.n_triangles:,}"),
            ("time to build", "-", f"{build_s:.1f} s"),
            ("memory", "-", memory),
        ],
    )
    rows = [
        (
            each.sensor.name,
            f"{len(each.log):,}",
            f"{each.log.returns.hit.mean():.1%}",
            f"{len(each.log) / each.fire_s / 1e6:.2f} M",
            f"{each.real_time:.2f}",
            f"{len(each.log) / each.core_s / 1e6:.2f} M",
            f"{each.core_s / each.sensor.sweep_s:.1f}",
        )
        for each in scans
    ]
    head = ("sensor", "pulses of a sweep", "returned", "pulses per second", "times real time")
    head += ("pulses per second of a core", "cores for real time")
    return f"{scene}\n\n{markdown_table(head, rows)}\n\nThe paper says of both sensors that they scan in real time."


def _draw(site: Site, scans: list[Scan], path: Path) -> None:
    figure = new_figure(13, 9.2)
    panels: Any = figure.subplot_mosaic([["scene", "scene"], list(SENSORS)], height_ratios=[1.15, 1])
    eye_m, look_at_m = (at + np.array([0.0, 0.0, site.terrain.height_m(0.0, 0.0)]) for at in (EYE_M, LOOK_AT_M))
    picture = render_picture(
        site.scene,
        eye_m,
        look_at_m,
        fov_deg=FOV_DEG,
        width_px=1100,
        height_px=520,
        samples=3,
        colours=named_colours(site.labels),
        bias_m=0.04,
    )
    panels["scene"].imshow(picture)
    panels["scene"].set_title("the scene")
    panels["scene"].axis("off")
    dots: Any = None
    for each in scans:
        axes = panels[each.sensor.name]
        dots = _draw_points(axes, each.log, eye_m, look_at_m)
        axes.set_title(f"{each.sensor.name}, one sweep, coloured by intensity")
    figure.colorbar(dots, ax=[panels[name] for name in SENSORS], label="intensity", shrink=0.8)
    save_figure(figure, path)


def _draw_points(axes: Any, log: Log, eye_m: Array, look_at_m: Array) -> Any:
    """Draw a sweep as a camera sees it, the nearest on top."""
    if log.returns.intensity is None:
        raise TypeError("a scene's returns have intensities")
    across, up, depth = _seen(log.points(), eye_m, look_at_m)
    order = np.argsort(-depth)
    order = order[depth[order] > _NEAREST_M]
    size = np.clip((14 / depth[order]) ** 2, 0.3, 20)
    intensity = log.returns.intensity[log.returns.hit][order]
    dots = axes.scatter(across[order], up[order], c=intensity, s=size, cmap="inferno", vmin=0, vmax=0.55, linewidths=0)
    half = np.tan(np.radians(FOV_DEG) / 2)
    axes.set(xlim=(-half, half), ylim=(-0.62 * half, 0.62 * half), aspect="equal", facecolor="#101418")
    axes.set(xticks=[], yticks=[])
    return dots


def _seen(points: Array, eye_m: Array, look_at_m: Array) -> tuple[Array, Array, Array]:
    """Across and up at 1 m, and depth, of (N, 3) points before a camera."""
    ahead = (look_at_m - eye_m) / np.linalg.norm(look_at_m - eye_m)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    from_eye = points - eye_m
    depth = from_eye @ ahead
    with np.errstate(divide="ignore", invalid="ignore"):
        return from_eye @ right / depth, from_eye @ np.cross(right, ahead) / depth, depth
