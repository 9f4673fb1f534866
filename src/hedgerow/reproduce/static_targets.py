# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 §6.1, Table 3: worlds of six static targets, scored by Bhattacharyya distance.

The table is Table I of Deschaud 2012, digit for digit, and so are its parameters (preset deschaud-2012-static): voxels
of 5 cm that rays meet within tau = 2, a surface with nodes of 1 cm, a kernel of 4 cm and 5 mm of noise. As in the
papers, a fifth of the sweeps is learned from and the rest is compared.

The scene static-targets plays reality: leaves, blades and planes as meshes, pulses with width (recording.py). Rings are
5 to 7 cm apart at 8 m here, and a kernel of 4 cm, which holds only one of them, knows no plane; so a second surface has
nodes of 2 cm and a kernel of 12 cm. A second volumetric world has tau = 3.5, the default. The last column is no world:
it is the scene itself, fired again with other random numbers. No world that draws its ranges can be nearer to reality.

The refined world starts from voxels of 5 cm too. Its lengths are those of a scene that is seen from one place, with
ranges good to 5 mm, and not those of a drive: a floor of 1 cm alone would make the plane as thick as voxels do.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose
from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.models import learn
from hedgerow.reproduce.beam_histograms import draw_target
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import SCENE_AGAIN
from hedgerow.reproduce.recording import REALITY, record_standing
from hedgerow.reproduce.tables import PaperTable
from hedgerow.scenes.site import Site, load_site
from hedgerow.sensor import Sensor

DISTANCE_M = 8.0
"""From the sensor to each target."""
BEHIND_M = 1.0
"""What is this much farther is the background."""


@dataclass(frozen=True)
class Target:
    """A target and where to look for it."""

    name: str
    low_m: float
    """Beams that pass the target's distance between these heights are kept [m]."""
    high_m: float
    half_width_m: float = 0.5

    @property
    def trajectory(self) -> str:
        """Name of the scene's trajectory that looks at it."""
        return self.name.lower().replace(" ", "-")


TARGETS = (
    Target("Plane", 1.2, 2.2),
    Target("High-density tree", 1.0, 2.2),
    Target("Medium-density tree", 1.0, 2.2),
    Target("Low-density tree", 1.0, 2.2),
    Target("Tall grass", 0.1, 0.8),
    Target("Short grass", -0.1, 0.1),
)


def look_at(site: Site, target: Target, sensor: Sensor) -> tuple[Pose, NDArray[np.bool_]]:
    """Return where the sensor stands, and which pulses of a sweep go through the target."""
    path = site.trajectories[target.trajectory]
    pose = Pose(path.position_m[0], path.quaternion_xyzw[0])
    ahead, left = pose.transform(np.eye(3)[:2]) - pose.position_m
    beams = sensor.sweep(pose)
    forward = beams.direction @ ahead
    reach = DISTANCE_M / np.where(forward > 0.1, forward, np.inf)
    there = beams.origin_m - pose.position_m + reach[:, None] * beams.direction
    across, height = there @ left, there[:, 2] + pose.position_m[2]
    inside = (np.abs(across) < target.half_width_m) & (height > target.low_m) & (height < target.high_m)
    return pose, inside & (forward > 0.1)


PAPER = {
    "Plane": (0.019, 0.068),
    "High-density tree": (0.111, 0.074),
    "Medium-density tree": (0.896, 0.125),
    "Low-density tree": (0.622, 0.054),
    "Tall grass": (0.888, 0.095),
    "Short grass": (1.229, 0.091),
}
PRESET = "deschaud-2012-static"
WORLDS: dict[str, tuple[str, dict[str, Any]]] = {
    "Surface": ("surface", {"preset": PRESET}),
    "Volumetric": ("voxel", {"preset": PRESET}),
    "Surface, 12 cm": (
        "surface",
        # The sensor's noise, and every triangle, as in the paper.
        {"node_m": 0.02, "kernel_m": 0.12, "voxel_m": 0.01, "max_passed": 1, "sigma0_m": 0.005, "sigma_a_m": 0},
    ),
    "Volumetric, tau 3.5": ("voxel", {"side_m": 0.05}),
}
"""Models and parameters; the paper has the first two."""
COLUMNS = (*WORLDS, "Refined", SCENE_AGAIN)
REFINED: dict[str, Any] = {
    "start": "voxel",
    "voxel": {"side_m": 0.05},
    "min_sigma_m": 0.002,  # well below the range noise
    "split_sigma_m": 0.02,
    "prior": {"reach_m": 0.15},  # the next voxels but one
}
NOISE_M = 0.005  # Browning 2012 §6.1.2: on a plane facing the sensor


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Record, learn and compare all targets; `size` is measurements per direction, about 1,500 in the paper."""
    n_repeats = size or 1500
    rows: list[tuple[str, dict[str, float], dict[str, float]]] = []
    site = load_site("static-targets")
    pictures: list[Path] = []
    for target in TARGETS:
        scores = compare_target(site, target, n_repeats, seed)
        distance = distances(scores)
        say(f"{target.name}: " + ", ".join(f"{name} {value:.3f}" for name, value in distance.items()))
        rows.append((target.name, dict(zip(COLUMNS, PAPER[target.name], strict=False)), distance))
        pictures += draw_target(scores, folder, target.trajectory, DISTANCE_M + BEHIND_M)
    title = f"Bhattacharyya distance to reality, {n_repeats:,} measurements per direction (Browning 2012 Table 3)"
    table = PaperTable(title, COLUMNS, tuple(rows), digits=3, aside=(SCENE_AGAIN,))
    return Outcome((table,), pictures=tuple(pictures))


def compare_target(site: Site, target: Target, n_repeats: int, seed: int) -> Comparison:
    """Record one target, learn its worlds and compare them with what was not learned from."""
    sensor = Sensor.named("hdl-64e-s2")
    pose, keep = look_at(site, target, sensor)

    def record(number: int) -> Log:
        return record_standing(site.world(REALITY), sensor, pose, keep, n_repeats, seed + number, noise_m=NOISE_M)

    train, test = _split(record(0))
    worlds = {name: learn(train, model, **parameters) for name, (model, parameters) in WORLDS.items()}
    worlds["Refined"] = learn(train, "refined", **REFINED)
    return compare(test, {**worlds, SCENE_AGAIN: _split(record(1))[1]}, seed=seed, static=True)


def distances(scores: Comparison) -> dict[str, float]:
    """Return the Bhattacharyya distance of each world of one target, by column."""
    return {name: float(scores[name]["bhattacharyya"] or np.nan) for name in COLUMNS}


def _split(log: Log) -> tuple[Log, Log]:
    """A fifth of the sweeps to learn from, the others to compare with."""
    chosen = log.beams.sweep % 5 == 0
    return log[chosen], log[~chosen]
