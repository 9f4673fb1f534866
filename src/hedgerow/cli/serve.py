# SPDX-License-Identifier: Apache-2.0
"""hedgerow serve: answers poses with sweeps, until Ctrl-C."""

from typing import TYPE_CHECKING

from hedgerow.cli.app import app, out
from hedgerow.cli.options import (
    NOMINAL,
    Noise,
    PulseOptions,
    RateHz,
    SceneName,
    SceneSeed,
    SceneSettings,
    SensorName,
    parse_settings,
)
from hedgerow.cli.server_options import AllowOrigin, Token, make_address

if TYPE_CHECKING:
    from hedgerow.live.server import SweepServer

_REPORT_EVERY_S = 10.0


@app.command
def serve(
    scene: SceneName,
    /,
    *,
    sensor: SensorName = None,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: Token = None,
    allow_origin: AllowOrigin = None,
    rate_hz: RateHz = None,
    pulses: PulseOptions = NOMINAL,
    noise: Noise = None,
    max_waiting: int = 8,
    scene_seed: SceneSeed = None,
    settings: SceneSettings = None,
) -> None:
    """Answer poses with sweeps over a Foxglove WebSocket, for simulators and robots in the loop.

    Parameters
    ----------
    host
        where to listen; 0.0.0.0 lets other machines in, with the token in the printed address
    port
        where to listen; 0 takes a free one
    max_waiting
        poses of each client that may wait for their answer; when one more comes, its oldest is dropped with a message
    """
    from hedgerow.base.interrupt import InterruptGuard
    from hedgerow.base.progress import step_bar
    from hedgerow.inputs import open_place
    from hedgerow.live.server import SweepServer, require_room

    address = make_address(host, port, token, allow_origin)
    address.require_free()  # before the scene is built
    require_room(max_waiting)
    aim = pulses.aim(seed=0)
    place = open_place(scene, "serve", parse_settings(settings), scene_seed)
    lidar = place.sensor(sensor, rate_hz)
    beam = pulses.beam_settings_for(place, lidar)
    with step_bar() as progress:
        world, _, summary = place.open(lidar, settings=beam, progress=progress)
    out.print(summary)
    with (
        InterruptGuard() as stop,
        SweepServer(world, lidar, address, noise=noise, aim=aim, max_waiting=max_waiting, say=out.print) as server,
    ):
        out.print(f"serving {scene} seen by {lidar.name} at {server.url}: poses in on /pose, sweeps out on /points")
        said = 0
        while not stop.asked:
            stop.wait(_REPORT_EVERY_S)
            if server.n_answered + server.n_refused > said:
                said = server.n_answered + server.n_refused
                out.print(_summary(server))
    stop.interrupt()  # the only way to end


def _summary(server: "SweepServer") -> str:
    import numpy as np

    said = f"answered {server.n_answered:,} poses, refused {server.n_refused:,}"
    if server.took_s:
        median_ms, most_ms = 1e3 * np.quantile(list(server.took_s), [0.5, 0.95])
        said += f"; pose to sweep {median_ms:.1f} ms (95 %: {most_ms:.1f} ms)"
    return said
