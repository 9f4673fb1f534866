# SPDX-License-Identifier: Apache-2.0
"""Make the ground of a scene file: its terrain, with the trail cut into it."""

from dataclasses import replace

from hedgerow.errors import InputError
from hedgerow.physics.scene_file.paths import Polyline
from hedgerow.physics.scene_file.read import Source
from hedgerow.physics.scene_file.schema import SceneFile
from hedgerow.physics.terrain import Terrain

_TRAIL_STEP_M = 1.0


def make_terrain(file: SceneFile, source: Source, seed: int) -> Terrain:
    """Make the ground without the trail.

    Raises:
        FileError: a figure or the raster cannot be used; names the field.
    """
    spec = file.terrain
    try:
        terrain = _raw(file, source, seed)
    except InputError as error:
        raise source.error(("terrain", error.field), error.said) from None
    if spec.kind == "raster" and spec.model_fields_set & {"middle_m"}:
        low_x, low_y, high_x, high_y = terrain.bounds_m
        x, y = spec.middle_m
        terrain = terrain.moved((x - (low_x + high_x) / 2, y - (low_y + high_y) / 2, 0))
    if spec.kind != "flat" and spec.height_m:
        terrain = terrain.moved((0, 0, spec.height_m))
    return replace(terrain, covers=((spec.material, spec.label),))


def make_trail(file: SceneFile, source: Source, terrain: Terrain) -> tuple[Terrain, Polyline | None]:
    """Cut the trail, if there is one.

    Raises:
        FileError: a figure does not fit the terrain; names the field.
    """
    spec = file.trail
    if spec is None:
        return terrain, None
    line = Polyline(spec.path_m, smooth=spec.smooth)
    coarse = Polyline(spec.path_m, smooth=spec.smooth, step_m=_TRAIL_STEP_M)
    if file.terrain.kind == "flat":
        terrain = terrain.resampled(file.terrain.spacing_m)
    how = {name: getattr(spec, name) for name in type(spec).model_fields if name not in ("path_m", "smooth", "width_m")}
    try:
        return terrain.with_trail(coarse.points_m, spec.width_m, **how), line
    except InputError as error:
        raise source.error(("trail", error.field), error.said) from None


def _raw(file: SceneFile, source: Source, seed: int) -> Terrain:
    spec = file.terrain
    if spec.kind == "raster":
        heights = None if spec.height_range_m is None else (spec.height_range_m[0], spec.height_range_m[1])
        path = source.beside(spec.file or "")
        return Terrain.from_raster(path, metres_per_pixel=spec.metres_per_pixel, height_range_m=heights)
    size, middle = tuple(spec.size_m or ()), tuple(spec.middle_m)
    if spec.kind == "flat":
        flat = Terrain.flat((size[0], size[1]), height_m=spec.height_m)
        return flat.moved((*middle, 0))
    return Terrain.from_noise(
        seed if spec.seed is None else spec.seed,
        (size[0], size[1]),
        relief_m=spec.relief_m,
        wavelength_m=spec.wavelength_m,
        octaves=spec.octaves,
        roughness=spec.roughness,
        spacing_m=spec.spacing_m,
        middle_m=(middle[0], middle[1]),
    )
