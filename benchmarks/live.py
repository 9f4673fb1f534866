# SPDX-License-Identifier: Apache-2.0
"""Live output: from pose to sweep over the socket, beside a plain fire, and the rate held while somebody listens."""

import queue
import threading
import time
from contextlib import suppress

import numpy as np
import sites
from measure import Result, at_least

from hedgerow import LearnedWorld, Pose, Sensor, Trajectory, simulate
from hedgerow.errors import SocketError
from hedgerow.live.client import Client
from hedgerow.live.publisher import Address
from hedgerow.live.server import SweepServer
from hedgerow.live.stream import stream_drive
from hedgerow.world import Gaussians

ROUNDS = 40
STREAMED = 30  # sweeps
POSE = Pose.from_xyz_rpy((0, 0, 2))


def world():
    mean, covariance, permeability = sites.gaussian_site()
    stop = permeability.astype(np.float32)
    return LearnedWorld(Gaussians.plain(mean, covariance, stop=stop, tau=sites.TAU), kind="voxel")


def latency(site, sensor):
    """Seconds of each round: a plain fire of a sweep, and the same sweep asked for over the socket, taking turns."""
    plain_s, asked_s = [], []
    with SweepServer(site, sensor, Address(port=0), noise=False) as server, Client(server.url) as client:
        for number in range(-3, ROUNDS):  # the first three warm up
            start_s = time.perf_counter()
            site.fire(sensor.sweep(POSE, number=max(number, 0)), sensor=sensor)
            middle_s = time.perf_counter()
            client.sweep(POSE, number=max(number, 0))
            if number >= 0:
                plain_s.append(middle_s - start_s)
                asked_s.append(time.perf_counter() - middle_s)
    return np.array(plain_s), np.array(asked_s)


def held(site, sensor):
    """The pace of a stream in real time, with a client that reads and decodes every cloud."""
    said, heard = queue.Queue(), []

    def listen():
        # SocketError: the stream has ended.
        with Client(said.get().split()[2].rstrip(";")) as client, suppress(SocketError):
            heard.extend(len(cloud.points) for cloud in client.clouds())

    threading.Thread(target=listen).start()
    trajectory = Trajectory.line((-5, 0, 2), (5, 0, 2), 2.0)
    _, pace = stream_drive(
        simulate(site, sensor, trajectory, sweeps=STREAMED, noise=False), address=Address(port=0), say=said.put
    )
    return pace


def results():
    site = world()
    for sensor in (sites.sensor(), Sensor.named("vlp-16")):
        plain_s, asked_s = latency(site, sensor)
        median_ms, most_ms = 1e3 * np.quantile(asked_s, [0.5, 0.95])
        n = f"{sensor.pulses_per_sweep:,} pulses, 500,000 Gaussians"
        yield Result(f"pose to sweep, {sensor.name} ({n})", f"{median_ms:.1f} ms (95 %: {most_ms:.1f} ms)", "", None)
        ratio = float(np.median(plain_s) / np.median(asked_s))
        yield at_least(f"plain fire / pose to sweep, {sensor.name}", ratio, 0.5, f"{1e3 * np.median(plain_s):.1f} ms")
        pace = held(site, sensor)
        yield at_least(f"share of real time held, {sensor.name}", pace.share, 0.99, pace.text())
