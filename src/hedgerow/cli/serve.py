# SPDX-License-Identifier: Apache-2.0
"""The command that answers poses with sweeps."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out, settings_of
from hedgerow.cli.fire import beam_settings

if TYPE_CHECKING:
    from hedgerow.live.server import SweepServer

_SAY_EVERY_S = 10.0


@app.command
def serve(
    site: str,
    /,
    *,
    sensor: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8765,
    rate_hz: float | None = None,
    sub_rays: int | None = None,
    mode: str | None = None,
    noise: bool | None = None,
    max_waiting: int = 8,
    scene_seed: int | None = None,
    settings: Annotated[list[str] | None, Parameter(name=["--set", "-s"], negative=())] = None,
) -> None:
    """Answer poses with sweeps over a Foxglove WebSocket, for simulators and robots in the loop.

    Parameters
    ----------
    site
        a shipped scene, for example trail (hedgerow scenes lists them), a scene file (.toml), or a learned world
    sensor
        a name of the catalogue, for example hdl-64e, or a TOML file; default: the scene's
    host
        where to listen; 0.0.0.0 lets other machines in
    port
        where to listen; 0 takes a free one
    rate_hz
        turns of the sensor per second; default: its usual rate
    sub_rays
        rays for each pulse of a scene, 1 to 81; default: 9
    mode
        first, strongest, last, strongest+last, all or waveform, for scenes; default: the sensor's
    noise
        add the sensor's own range noise, range steps and drop-outs; default: to scenes, learned worlds have them
    max_waiting
        poses that may wait for their answer; when one more comes, the oldest is dropped with a message
    scene_seed
        of the scene; default: the file's
    settings
        values of the scene's parameters or fields, each NAME=VALUE
    """
    from hedgerow.base.interrupt import InterruptGuard
    from hedgerow.base.progress import step_bar
    from hedgerow.inputs import open_place
    from hedgerow.live.publisher import Address
    from hedgerow.live.server import SweepServer, require_room

    address = Address(host, port)
    address.require_free()  # before the scene is built
    require_room(max_waiting)
    place = open_place(site, "serve", settings_of(settings), scene_seed)
    lidar = place.sensor(sensor, rate_hz)
    beam = beam_settings(place, sub_rays, mode)
    with step_bar() as progress:
        world, _, summary = place.open(lidar, settings=beam, progress=progress)
    out.print(summary)
    with InterruptGuard() as stop, SweepServer(world, lidar, address, noise=noise, max_waiting=max_waiting) as server:
        out.print(f"serving {site} seen by {lidar.name} at {server.url}: poses in on /pose, sweeps out on /points")
        said = 0
        while not stop.asked:
            stop.wait(_SAY_EVERY_S)
            if server.n_answered + server.n_refused > said:
                said = server.n_answered + server.n_refused
                out.print(_summary(server))
    raise KeyboardInterrupt  # the only way to end


def _summary(server: "SweepServer") -> str:
    import numpy as np

    said = f"answered {server.n_answered:,} poses, refused {server.n_refused:,}"
    if server.took_s:
        median_ms, most_ms = 1e3 * np.quantile(list(server.took_s), [0.5, 0.95])
        said += f"; pose to sweep {median_ms:.1f} ms (95 %: {most_ms:.1f} ms)"
    return said
