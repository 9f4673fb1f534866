# SPDX-License-Identifier: Apache-2.0
"""A trail of any length: the site that long drives are recorded on.

Meadow and wood on rough ground: grass along the verge, shrubs, trees, boulders. The site grows with the drive, and
every stretch of it is like the others, so that what changes with the length is the length.
"""

import numpy as np

TRAIL_SENSOR = "hdl-32e"
_HALF_WIDTH_M = 45.0
_BEND_M = 30.0
"""The way has a corner each so many metres."""
_SCENE = """# SPDX-License-Identifier: Apache-2.0
about = "A trail of {km:g} km through meadow and wood."
seed = {seed}
sensor = "{sensor}"

[terrain]
kind = "noise"
size_m = [{x_m:.0f}, {y_m:.0f}]
spacing_m = 0.5
relief_m = 6
wavelength_m = 55
octaves = 5
roughness = 0.33

[trail]
path_m = [{way}]
width_m = 3.0
material = "gravel"

[plants.short]
kind = "blade-grass"
variants = 4
parameters = {{ height_m = 0.16, width_m = 0.005, bend_deg = 40, segments = 3 }}

[plants.bush]
kind = "shrub"
variants = 4

{trees}[shapes.boulder]
kind = "ellipsoid"
size_m = [1.3, 1.0, 0.8]

[scatter.boulders]
what = "boulder"
density_per_m2 = 0.001
trail_distance_m = [2.6, 25]
scale = [0.4, 1.5]
sink_m = 0.12

{wood}[scatter.bushes]
what = "bush"
density_per_m2 = 0.012
trail_distance_m = [2.6, 60]
scale = [0.6, 1.4]
sink_m = 0.05

[scatter.verge]
what = "short"
density_per_m2 = 20
trail_distance_m = [1.5, 5]

[trajectories.drive]
along_trail = true
from_m = 10
speed_mps = {speed_mps:.3f}
height_m = 1.9
"""
_TREES = """[plants.oak]
kind = "broadleaf"
variants = 4
parameters = { height_m = 9, crown_diameter_m = 5.5, crown_base_m = 2.2 }

[plants.spruce]
kind = "conifer"
variants = 3
parameters = { height_m = 11 }

"""
_WOOD = """[scatter.oaks]
what = "oak"
density_per_m2 = 0.006
trail_distance_m = [3.2, 60]
spacing_m = 3
scale = [0.7, 1.25]
sink_m = 0.1

[scatter.spruces]
what = "spruce"
density_per_m2 = 0.003
trail_distance_m = [3.2, 60]
spacing_m = 3
scale = [0.5, 1.15]
sink_m = 0.1

"""


def long_trail(length_m: float, speed_mps: float, seed: int = 5, *, wood: bool = True) -> str:
    """Return the text of a scene file.

    Args:
        length_m: of the trail.
        speed_mps: of the drive along it, which begins after 10 m.
        seed: of the way and of all that grows.
        wood: whether there are trees, which take some seconds to grow.
    """
    rng = np.random.default_rng(seed)
    x = np.arange(-length_m / 2, length_m / 2 + 1, _BEND_M)
    way = ", ".join(f"[{a:.0f}, {b:.1f}]" for a, b in zip(x, rng.uniform(-6, 6, len(x)), strict=True))
    return _SCENE.format(
        km=length_m / 1000,
        seed=seed,
        sensor=TRAIL_SENSOR,
        x_m=length_m + 160,
        y_m=2 * _HALF_WIDTH_M,
        way=way,
        speed_mps=speed_mps,
        trees=_TREES if wood else "",
        wood=_WOOD if wood else "",
    )
