# SPDX-License-Identifier: Apache-2.0
"""One sweep of a VLP-16 in front of a chain-link fence, with a wall behind it."""

import numpy as np

import hedgerow as hr

scene = hr.Scene()
noise = hr.SurfaceNoise(sigma0_m=0.015, sigma_a_m=0.0014)
fence = np.array([[8, -20, -2], [8, 20, -2], [8, 20, 2], [8, -20, 2]])
scene.add_mesh(fence, [[0, 1, 2], [0, 2, 3]], permeability=0.7, label=51, noise=noise)
scene.add_mesh(1.5 * fence, [[0, 1, 2], [0, 2, 3]], label=50, noise=noise)  # 4 m behind, just covered by the fence

sensor = hr.Sensor.named("vlp-16")
log = hr.SceneWorld(scene).fire(sensor.sweep(), seed=7, sensor=sensor)  # standing; hr.simulate drives

stopped = log.returns.label == 51
passed = log.returns.label == 50
print(f"{len(log):,} pulses, {log.returns.hit.sum():,} returns")
print(f"of those that met the fence, {passed.sum() / (stopped.sum() + passed.sum()):.2f} passed it (0.7 were to)")
