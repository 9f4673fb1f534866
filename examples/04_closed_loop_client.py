# SPDX-License-Identifier: Apache-2.0
"""A vehicle in the loop: it asks a sweep server what its lidar sees, and brakes for the wall that it finds.

The server runs in this program to keep the example in one piece. Usually it is a process of its own, started with
`hedgerow serve SCENE --sensor vlp-16`, and the client needs nothing but its address: Client("ws://127.0.0.1:8765").
"""

import numpy as np

import hedgerow as hr
from hedgerow.live.client import Client
from hedgerow.live.publisher import Address
from hedgerow.live.server import SweepServer

scene = hr.Scene()
scene.add_mesh([[30, -9, 0], [30, 9, 0], [30, 9, 4], [30, -9, 4]], [[0, 1, 2], [0, 2, 3]])  # a wall, 30 m ahead
scene.add_mesh([[-99, -99, 0], [99, -99, 0], [99, 99, 0], [-99, 99, 0]], [[0, 1, 2], [0, 2, 3]])
sensor = hr.Sensor.named("vlp-16")
step_s = sensor.sweep_s

with SweepServer(hr.SceneWorld(scene), sensor, Address(port=0)) as server, Client(server.url) as client:
    x_m, speed_mps, time_ns = 0.0, 10.0, 0
    while speed_mps > 0.1:
        pose = hr.Pose.from_xyz_rpy((x_m, 0, 1.8))
        sweep = client.sweep(pose, velocity_mps=(speed_mps, 0, 0), stamp_ns=time_ns)
        points = sweep.map_points()
        ahead = points[(np.abs(points[:, 1]) < 1) & (points[:, 2] > 0.5) & (points[:, 0] > x_m)]
        free_m = ahead[:, 0].min() - x_m if len(ahead) else np.inf
        x_m += speed_mps * step_s
        time_ns += round(step_s * 1e9)
        if free_m < 15:  # brake so as to stop 3 m before what is there
            speed_mps -= min(speed_mps, step_s * speed_mps**2 / (2 * max(free_m - 3, 0.1)))
    print(f"stopped after {time_ns * 1e-9:.1f} s at x = {x_m:.1f} m, {30 - x_m:.1f} m before the wall")
