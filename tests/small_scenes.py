# SPDX-License-Identifier: Apache-2.0
"""A scene file that builds in a moment: level ground, a few shrubs, a short drive; and the trail, made as quick."""

from pathlib import Path

TEXT = """
about = "A patch of ground with shrubs."
sensor = "SENSOR"

[terrain]
size_m = [30, 30]

[plants.bush]
kind = "shrub"
variants = 1
parameters = { height_m = 1.0, detail = 0.2 }

[scatter.bushes]
what = "bush"
count = 12

[trajectories.drive]
waypoints_m = [[-2, 0], [2, 0]]
speed_mps = 10
height_m = 1.5
"""

_BARE = {"meadow_per_m2": 1, "verge_per_m2": 1, "floor_per_m2": 1, "ferns_per_m2": 0.01}
_SPARSE = {"shrubs_per_m2": 0.002, "trees_per_m2": 0.003, "scatter.spruces.count": 5}
SMALL_DEMO = [word for name, value in (_BARE | _SPARSE).items() for word in ("--set", f"{name}={value}")]
"""Options that make `hedgerow demo` quick."""


def small_scene(path: Path, sensor: str = "vlp-16") -> Path:
    """Write the scene and return its path."""
    path.write_text(TEXT.replace("SENSOR", sensor), encoding="utf-8")
    return path
