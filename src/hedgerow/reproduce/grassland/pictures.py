# SPDX-License-Identifier: Apache-2.0
"""Pictures of the grassland: the whole of it from above, as it is stored, and some sweeps close up."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.reproduce.composition.cloud_picture import Look, draw_cloud, ramp
from hedgerow.reproduce.grassland.nursery import PATCH_M, SENSOR
from hedgerow.reproduce.grassland.site import SPEED_MPS, TILE_M, SiteRules, drive_of, height_m, way_of
from hedgerow.scenes.annotation import PLANT_CLASSES, label_of
from hedgerow.sensor import Sensor
from hedgerow.simulate import simulate
from hedgerow.view.render import Camera
from hedgerow.world.elements import Instances
from hedgerow.world.load import load_world
from hedgerow.world.store.files import WorldFile

N_SWEEPS = 40
_CLOSE_MAX_BYTES = 64_000_000
_SUN = np.array([-0.6, 0.55, 0.58])
_MEADOW = ((0.34, 0.42, 0.20), (0.47, 0.54, 0.26), (0.66, 0.66, 0.38), (0.80, 0.76, 0.52))
_PLANTS = ((0.25, 0.36, 0.16), (0.16, 0.28, 0.12), (0.07, 0.18, 0.09))
_GRASS = ((0.20, 0.30, 0.16), (0.42, 0.55, 0.22), (0.78, 0.80, 0.42))
_TREES = ((0.10, 0.32, 0.36), (0.18, 0.52, 0.44), (0.55, 0.80, 0.62), (0.92, 0.98, 0.86))


def draw_grassland(path: Path, rules: SiteRules, seed: int, picture: Path) -> None:
    """Draw the stored site from above beside some sweeps of the drive."""
    figure = new_figure(15, 6.4)
    figure.get_layout_engine().set(h_pad=0.12)
    above, close = figure.subplots(1, 2, width_ratios=(1, 1.32))
    _draw_above(above, WorldFile(path), rules)
    log = some_sweeps(path, rules, seed)
    close.imshow(draw_close(log, rules, seed))
    close.set_axis_off()
    close.set_title(f"{N_SWEEPS} sweeps of an {SENSOR.upper()} on the way, by height above the ground", fontsize=10)
    save_figure(figure, picture, dpi=100)


def read_map(file: WorldFile) -> tuple[Array, Array, Array, NDArray[np.uint16]]:
    """Read the site tile by tile: (ny, nx) heights of its squares and (4,) their extent; plants, (N, 2) and class."""
    tiles = np.stack([file.tiles.x, file.tiles.y], axis=1)
    low, high = tiles.min(axis=0), tiles.max(axis=0) + 1
    n = round(TILE_M / PATCH_M)
    z_m = np.zeros(((high - low) * n)[::-1])
    feet: list[Array] = []
    classes: list[NDArray[np.uint16]] = []
    for row in range(len(tiles)):
        table = file.read_row(row)
        assert isinstance(table, Instances)
        plant = table.class_label > 0
        place = table.transform[~plant, :, 3]
        column, line = np.floor(place[:, :2] / PATCH_M - low * n).astype(np.int64).T
        z_m[line, column] = place[:, 2]
        feet.append(table.transform[plant, :2, 3])
        classes.append(table.class_label[plant])
    extent_m = np.stack([low, high], axis=1).ravel() * TILE_M
    return z_m, extent_m, np.concatenate(feet), np.concatenate(classes)


def _draw_above(panel: Any, file: WorldFile, rules: SiteRules) -> None:
    z_m, extent_m, feet_m, class_label = read_map(file)
    panel.imshow(shaded(z_m), origin="lower", extent=extent_m, interpolation="bilinear")
    points = 72 * 5.6 / float(extent_m[1] - extent_m[0])  # of the paper, for each metre
    for k, name in enumerate(PLANT_CLASSES):
        mine = feet_m[class_label == label_of(name)]
        width_m = 2.0 + 1.3 * k
        colour = ramp(np.array([k / (len(PLANT_CLASSES) - 1)]), _PLANTS)
        panel.scatter(*mine.T, s=max(0.05, (1.3 * width_m * points) ** 2), c=colour, linewidths=0)
    line = way_of(rules).points_m
    panel.plot(*line.T, color="#d62f1f", linewidth=1.4)
    panel.set(xlim=extent_m[:2], ylim=extent_m[2:], xlabel="x [m]", ylabel="y [m]", aspect="equal")
    area_km2 = float((extent_m[1] - extent_m[0]) * (extent_m[3] - extent_m[2])) / 1e6
    panel.set_title(f"{area_km2:.2f} km², {len(feet_m):,} plants, as stored; the way in red", fontsize=10)


def shaded(z_m: Array) -> Array:
    """Return (ny, nx, 3) colours of heights on the grid of the patches, lit from the north-west."""
    slope = np.gradient(z_m, PATCH_M)
    normal = np.stack([-slope[1], -slope[0], np.ones_like(z_m)], axis=-1)
    light = normal @ _SUN / np.linalg.norm(normal, axis=-1) / np.linalg.norm(_SUN)
    span = float(np.ptp(z_m)) or 1.0
    colour = ramp(((z_m - z_m.min()) / span).ravel(), _MEADOW).reshape(*z_m.shape, 3)
    return np.clip(colour * (0.35 + 1.1 * np.clip(light, 0, 1))[..., None], 0, 1)


def some_sweeps(path: Path, rules: SiteRules, seed: int) -> Log:
    """Return sweeps from a stretch in the middle of the way, one every few metres."""
    world = load_world(path, max_bytes=_CLOSE_MAX_BYTES)
    way, sensor = drive_of(rules, seed), Sensor.named(SENSOR)
    middle_s = way_of(rules).length_m / 2 / SPEED_MPS
    at_s = middle_s + np.linspace(0.0, min(8.0, 0.4 * middle_s), N_SWEEPS)
    return Log.concatenate(list(simulate(world, sensor, way, seed=seed, at_s=at_s)))


def draw_close(log: Log, rules: SiteRules, seed: int, width_px: int = 1240, height_px: int = 900) -> NDArray[np.uint8]:
    """Draw sweeps from above the way: grass and plants by their height above the ground."""
    points_m = log.points()
    above_m = points_m[:, 2] - height_m(points_m[:, 0], points_m[:, 1], rules, seed)
    owner = log.returns.object
    assert owner is not None
    plant = owner[log.returns.hit] > 0
    grass = ramp(np.clip(above_m / 0.4, 0, 1), _GRASS)
    colour = np.where(plant[:, None], ramp(np.sqrt(np.clip(above_m / 12.0, 0, 1)), _TREES), grass)
    line = way_of(rules)
    eye, look_at = line.at(np.array([line.length_m / 2 - 6.0, line.length_m / 2 + 45.0]))
    z = height_m(np.array([eye[0], look_at[0]]), np.array([eye[1], look_at[1]]), rules, seed)
    camera = Camera(np.array([*eye, z[0] + 7.0]), np.array([*look_at, z[1] - 6.0]), width_px, height_px, 78)
    return draw_cloud(points_m, colour, camera, Look(point_m=0.06, haze_m=220.0))
