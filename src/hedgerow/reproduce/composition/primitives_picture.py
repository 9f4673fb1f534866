# SPDX-License-Identifier: Apache-2.0
"""Clouds of reality and of composed worlds, one below the other (Tallavajhula 2018 Fig. 4.19)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.reproduce.composition.cloud_picture import Look, draw_cloud, ramp
from hedgerow.reproduce.composition.scoring import BeamScores
from hedgerow.scenes.terrain import Terrain
from hedgerow.view.render import Camera

SIZE_PX = 1100, 400
_HIGHEST_M = 12.0
"""Above the ground, where the colours end."""
_STOPS = ((0.45, 0.38, 0.30), (0.20, 0.48, 0.26), (0.42, 0.72, 0.30), (0.85, 0.92, 0.45))
_HOVER_M, _AHEAD_M = 9.0, 30.0


def draw_clouds(path: Path, real: Log, simulated: Mapping[str, BeamScores], terrain: Terrain) -> None:
    """Draw the points of the test log, as they were measured and as worlds answer, from above its way.

    Args:
        path: the picture to write.
        real: the test log.
        simulated: its beams fired at worlds, by name.
        terrain: the true ground; colours are heights above it.
    """
    clouds = {"real": real.points()} | {name: each.simulated.points() for name, each in simulated.items()}
    camera = _camera(real, terrain)
    figure = new_figure(SIZE_PX[0] / 100, len(clouds) * (SIZE_PX[1] / 100 + 0.3))
    panels: Any = figure.subplots(len(clouds), 1, squeeze=False)[:, 0]
    for panel, (name, points_m) in zip(panels, clouds.items(), strict=True):
        panel.imshow(_picture(points_m, camera, terrain))
        panel.set_title(name, fontsize=11, loc="left")
        panel.set_axis_off()
    save_figure(figure, path, dpi=110)


def _camera(log: Log, terrain: Terrain) -> Camera:
    """Hover over the first third of the way and look along it."""
    _, first = np.unique(log.beams.sweep, return_index=True)
    way_m = log.beams.origin_m[first]
    eye = way_m[len(way_m) // 4]
    away_m = np.linalg.norm(way_m[:, :2] - eye[:2], axis=1)
    ahead = way_m[-1] if away_m[-1] < _AHEAD_M else way_m[int(np.flatnonzero(away_m >= _AHEAD_M)[-1])]
    look_at = eye + (ahead - eye) * _AHEAD_M / max(float(np.linalg.norm(ahead - eye)), 1.0)
    ground_m = float(terrain.height_m(look_at[0], look_at[1])) if _inside(terrain, look_at) else float(look_at[2])
    return Camera(eye + np.array([0, 0, _HOVER_M]), np.array([*look_at[:2], ground_m + 1.0]), *SIZE_PX, 80)


def _inside(terrain: Terrain, place_m: Array) -> bool:
    return bool(terrain.contains(place_m[:1], place_m[1:2]).all())


def _picture(points_m: Array, camera: Camera, terrain: Terrain) -> NDArray[np.uint8]:
    low_x, low_y, high_x, high_y = terrain.bounds_m
    x, y = np.clip(points_m[:, 0], low_x, high_x), np.clip(points_m[:, 1], low_y, high_y)
    height_m = points_m[:, 2] - terrain.height_m(x, y)
    colour = ramp(np.clip(height_m / _HIGHEST_M, 0, 1) ** 0.6, _STOPS)
    return draw_cloud(points_m, colour, camera, Look(point_m=0.10, haze_m=150.0))
