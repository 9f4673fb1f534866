# SPDX-License-Identifier: Apache-2.0
"""Draw every plant, and a meadow with a trail, into one picture.

    python tools/plant_gallery.py docs/images/plants.png [--samples 16]

Prints the triangles of each plant. The picture has few colours, so that it stays small.
"""

import argparse
from pathlib import Path

import numpy as np

from hedgerow.base.atomic import atomic_file
from hedgerow.scenes.mesh import MeshPart, count_triangles
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.terrain import Terrain
from hedgerow.view.render import named_colours, render_picture
from hedgerow.world import Scene

NAMES = ("grass", "shrub", "leaves", "needles", "vegetation", "trunk", "branch", "ground", "road")
LABELS = {name: number for number, name in enumerate(NAMES, start=1)}
COLOURS = named_colours(LABELS)
PANELS = (
    ("cylinder-grass", {"side_m": 1.2, "density_per_m2": 100.0}),
    ("blade-grass", {"side_m": 1.2, "density_per_m2": 900.0}),
    ("cereal", {"side_m": 1.2}),
    ("fern", {}),
    ("shrub", {}),
    ("broadleaf", {}),
    ("conifer", {}),
    ("broadleaf", {"crown_shape": "column", "crown_diameter_m": 2.2, "height_m": 9.0, "leaf_area_m2": 45.0}),
)


def scene_of(*parts: MeshPart) -> Scene:
    """Make a scene of some parts."""
    scene = Scene()
    for part in parts:
        scene.add_mesh(*part.mesh, label=LABELS[part.label])
    return scene


def portrait(name: str, values: dict, width_px: int, height_px: int, samples: int):
    """One plant on bare ground."""
    parts = PLANTS[name].grow(1, **values)
    print(f"{name} {values}: {count_triangles(parts):,} triangles")
    vertices = np.concatenate([part.mesh.vertices_m for part in parts])
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    half = np.abs(vertices - middle).max(axis=0)
    fov_deg = 40.0
    tan = np.tan(np.radians(fov_deg) / 2)
    away = 1.08 * max(half[:2].max() / tan, half[2] / (tan * height_px / width_px)) + 0.6 * half[:2].min()
    eye = middle + away * np.array([-0.85, -0.5, 0.22])
    scene = scene_of(*parts, *Terrain.flat((3000, 3000)).parts())
    size = {"width_px": width_px, "height_px": height_px, "fov_deg": fov_deg}
    return render_picture(scene, eye, middle, **size, colours=COLOURS, samples=samples)


def meadow(width_px: int, height_px: int, samples: int):
    """A trail through grass, with shrubs and trees beside it."""
    rng = np.random.default_rng(4)
    path = np.array([(x, 3 * np.sin(x / 14)) for x in np.arange(-60, 61, 2.0)])
    ground = Terrain.from_noise(5, (120, 120), relief_m=5, wavelength_m=45, spacing_m=0.125)
    ground = ground.with_trail(path, 2.6, shoulder_m=1.2, rut_depth_m=0.08, rut_width_m=0.5)
    scene = scene_of(*ground.parts())
    grass = scene_of(*PLANTS["blade-grass"].grow(2, side_m=1.5, density_per_m2=450.0, height_m=0.4))
    x, y = (each.ravel() for each in np.meshgrid(np.arange(-48, 49, 1.5), np.arange(-48, 49, 1.5)))
    far = np.abs(y - 3 * np.sin(x / 14)) > 2.1
    scene.place(grass, on_slope(ground, x[far], y[far]))
    for name, n, nearest_m in (("shrub", 40, 3.5), ("fern", 60, 3), ("broadleaf", 26, 7), ("conifer", 26, 8)):
        plant = scene_of(*PLANTS[name].grow(3))
        x = rng.uniform(-28, 50, n)
        y = 3 * np.sin(x / 14) + rng.choice([-1, 1], n) * rng.uniform(nearest_m, 40, n)
        scene.place(plant, upright(ground, x, y, rng))
    print(f"meadow: {scene.n_elements:,} triangles, copies counted")
    eye = (-34.0, 3 * np.sin(-34 / 14) - 1.0, float(ground.height_m(-34, -4)) + 2.4)
    return render_picture(
        scene, eye, (0, 0, 0.6), width_px=width_px, height_px=height_px, fov_deg=62,
        colours=COLOURS, samples=samples, sun_azimuth_deg=120,
    )  # fmt: skip


def on_slope(ground: Terrain, x, y):
    """Transforms that lay flat patches on the ground: sheared, so that stems stay upright."""
    places = np.tile(np.eye(4), (len(x), 1, 1))
    places[:, 2, 0], places[:, 2, 1] = ground.gradient(x, y)
    places[:, :3, 3] = np.stack([x, y, ground.height_m(x, y)], axis=1)
    return places


def upright(ground: Terrain, x, y, rng):
    """Transforms that set plants on the ground, turned and scaled at random."""
    places = np.tile(np.eye(4), (len(x), 1, 1))
    turn, scale = rng.uniform(0, 2 * np.pi, len(x)), rng.uniform(0.7, 1.2, len(x))
    places[:, 0, 0] = places[:, 1, 1] = scale * np.cos(turn)
    places[:, 1, 0], places[:, 0, 1] = scale * np.sin(turn), -scale * np.sin(turn)
    places[:, 2, 2] = scale
    places[:, :3, 3] = np.stack([x, y, ground.height_m(x, y) - 0.03], axis=1)
    return places


def main() -> None:
    """Draw the picture."""
    from PIL import Image

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--samples", type=int, default=16, help="beams per pixel")
    parser.add_argument("--colours", type=int, default=256, help="of the picture, 2 to 256")
    wanted = parser.parse_args()
    rows = [
        np.concatenate([portrait(*panel, 240, height_px, wanted.samples) for panel in panels], axis=1)
        for panels, height_px in ((PANELS[:4], 180), (PANELS[4:], 300))
    ]
    image = np.concatenate([*rows, meadow(960, 400, wanted.samples)])
    with atomic_file(wanted.path) as temporary:
        few = Image.fromarray(image).quantize(wanted.colours, dither=Image.Dither.NONE)
        few.save(temporary, format="PNG", optimize=True)


if __name__ == "__main__":
    main()
