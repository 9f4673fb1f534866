# SPDX-License-Identifier: Apache-2.0
"""What a world knows of one beam: every element on its way, and how likely each measured range is."""

import numpy as np

import hedgerow as hr

scene = hr.Scene()
rng = np.random.default_rng(0)
leaves = rng.normal([10, 0, 1], [0.8, 0.8, 0.5], (400, 3))
scene.add_gaussians(leaves, np.broadcast_to(np.eye(3) * 0.06**2, (400, 3, 3)), extinction_per_m=6.0, label=70)

beam = hr.Beams.from_arrays(origins=(0, 0, 1), directions=[[1, 0, 0]])
met = scene.pierced(beam)
print(f"the beam meets {len(met.element)} elements between {met.mean_m.min():.2f} and {met.mean_m.max():.2f} m")
print(f"it passes all of them with probability {np.prod(met.permeability):.3f}")

n = 100_000
beams = hr.Beams.from_arrays(origins=(0, 0, 1), directions=np.broadcast_to([1.0, 0, 0], (n, 3)))
log = hr.SceneWorld(scene, max_range_m=50).fire(beams, seed=1)
print(f"of {n:,} firings {np.mean(~log.returns.hit):.3f} passed")
print(f"mean log-likelihood of what it fired: {hr.SceneWorld(scene).log_likelihood(log).mean():.3f}")
