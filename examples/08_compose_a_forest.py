# SPDX-License-Identifier: Apache-2.0
"""Learn plants in one place and build another of them: segment, cut out primitives, compose, fire.

A lidar drives past shrubs; they are learned, found and cut out. A new site is made of copies of them, each an object of
its own, and the lidar drives through that.
"""

import tempfile
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.compose.composition import compose
from hedgerow.compose.primitives import extract_primitives
from hedgerow.compose.segmentation import segment
from hedgerow.scenes.site import load_site

FIRST = """
[terrain]
size_m = [60, 30]
[plants.bush]
kind = "shrub"
variants = 4
parameters = { height_m = 2.6, crown_diameter_m = 2.0, detail = 0.1 }
[scatter.bushes]
what = "bush"
count = 14
spacing_m = 4
[trajectories.drive]
waypoints_m = [[-12, 0], [12, 0]]
speed_mps = 20
"""
SECOND = """
seed = 5
[terrain]
kind = "noise"
size_m = [80, 80]
[primitives.bushes]
library = "plants.world"
class = "small-shrub"
[scatter.thicket]
what = "bushes"
count = 300
spacing_m = 1.5
[trajectories.drive]
waypoints_m = [[-20, 0], [20, 0]]
"""

with tempfile.TemporaryDirectory() as made:
    folder = Path(made)
    (folder / "first.toml").write_text(FIRST, encoding="utf-8")
    (folder / "second.toml").write_text(SECOND, encoding="utf-8")
    sensor = hr.Sensor.named("hdl-32e")
    site = load_site(folder / "first.toml")
    log = hr.Log.concatenate(list(hr.simulate(site.world(), sensor, site.trajectories["drive"], seed=1)))
    world = hr.learn(log, "hybrid")
    found = segment(world)
    print(f"found {dict(found.counts())} among 14 shrubs")
    extract_primitives(world, found, log=log).save(folder / "plants.world")

    thicket = compose(folder / "second.toml")
    place = hr.Trajectory.line((-20, 0, 3), (20, 0, 3), speed_mps=5)
    sweep = hr.simulate(thicket, sensor, place, seed=2).sweep(0)
    seen = np.unique(sweep.returns.object) if sweep.returns.object is not None else []
    print(f"one sweep of the new site: {int(sweep.returns.hit.sum()):,} returns from {len(seen) - 1} of 300 shrubs")
