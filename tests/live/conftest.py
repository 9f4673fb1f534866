# SPDX-License-Identifier: Apache-2.0
"""A wall of Gaussians 8 m ahead, and a server in front of it."""

import numpy as np
import pytest

from hedgerow import Sensor
from hedgerow.live.client import Client
from hedgerow.live.publisher import Address
from hedgerow.live.server import SweepServer
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians


@pytest.fixture(scope="session")
def world():
    wall = np.stack(np.meshgrid([8.0], np.linspace(-6, 6, 60), np.linspace(-2, 4, 30)), axis=-1).reshape(-1, 3)
    stop = np.full(len(wall), 0.4, np.float32)
    return LearnedWorld(Gaussians.plain(wall, np.tile(np.eye(3) * 0.01, (len(wall), 1, 1)), stop=stop), kind="voxel")


@pytest.fixture(scope="session")
def sensor():
    return Sensor.named("vlp-16")


@pytest.fixture
def server(world, sensor):
    with SweepServer(world, sensor, Address(port=0), noise=False) as server:
        yield server


@pytest.fixture
def client(server):
    with Client(server.url) as client:
        yield client
