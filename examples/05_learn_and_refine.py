# SPDX-License-Identifier: Apache-2.0
"""Learn the same street three ways, the third by fitting Gaussians to the beams, and see which one is nearest.

A lidar drives down a street of houses, hedges and trees; worlds are learned from every other sweep and scored on the
rest.
"""

import hedgerow as hr
from hedgerow.scenes.site import load_site

site, sensor = load_site("street"), hr.Sensor.named("vlp-16")
log = hr.Log.concatenate(list(hr.simulate(site.world(), sensor, site.trajectories["first"], seed=7, sweeps=12)))
learned_from, held_back = (log.select(sweep=range(start, 12, 2)) for start in (0, 1))

worlds = {
    "voxel": hr.learn(learned_from, "voxel"),
    "hybrid": hr.learn(learned_from, "hybrid"),
    "refined": hr.learn(learned_from, "refined", rounds=3),
}
scores = hr.compare(held_back, worlds, seed=7)
print(scores.table().to_markdown())
unlikely = {name: scores[name]["nll"] or 0.0 for name in worlds}
print(f"{min(unlikely, key=lambda name: unlikely[name])} finds the sweeps held back most likely")
