# SPDX-License-Identifier: Apache-2.0
"""A small scene file that uses every table, and how to write changed ones."""

GOOD = """
about = "a test"
seed = 4
sensor = "vlp-16"

[parameters]
n_bushes = 12

[terrain]
kind = "noise"
size_m = [60, 40]
relief_m = 2
wavelength_m = 40
octaves = 3

[trail]
path_m = [[-30, 0], [0, 3], [30, 0]]
width_m = 3

[materials.tarmac]
wavelength_nm = [905]
reflectance = [0.2]

[labels.oddity]
number = 2000
vegetation = true

[plants.grass]
kind = "blade-grass"
variants = 2
[plants.grass.parameters]
height_m = 0.3
segments = 2

[plants.bush]
kind = "shrub"
variants = 2
parameters = { height_m = 1.0, detail = 0.2 }

[shapes.crate]
kind = "box"
size_m = [1, 1, 1]
material = "tarmac"
label = "oddity"

[walls.fence]
path_m = [[-20, 10], [20, 10]]
height_m = 1.2
permeability = 0.7
material = "metal"
label = "fence"

[objects.crates]
what = "crate"
at_m = [5, -10]
repeat = { count = 3, step_m = [2, 0] }

[scatter.bushes]
what = "bush"
count = "$n_bushes"
trail_distance_m = [3, 15]
away_from = { crates = 2 }
spacing_m = 1.5
scale = [0.8, 1.2]

[scatter.grass]
what = "grass"
density_per_m2 = 20
polygon_m = [[-25, -15], [25, -15], [25, 15], [-25, 15]]
slope_deg = [0, 30]
trail_distance_m = [2, 100]

[trajectories.first]
along_trail = true
from_m = 5
to_m = 50

[trajectories.here]
standing_m = [0, 0]
duration_s = 2
"""


def write_scene(folder, text=GOOD, name="own.toml"):
    path = folder / name
    path.write_text(text)
    return path
