# SPDX-License-Identifier: Apache-2.0
"""The command that shows logs and worlds in the browser: view."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out

if TYPE_CHECKING:
    from hedgerow.view.web.frame import Choice
    from hedgerow.view.web.stage import Stage


@app.command
def view(
    paths: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    colour: str | None = None,
    sweep: int | None = None,
    accumulate: int = 1,
    points: int = 2_000_000,
    side_by_side: Annotated[bool, Parameter(negative=())] = False,
    seed: int = 0,
) -> None:
    """Show logs, worlds and scenes in the browser, real and simulated over each other or side by side, until Ctrl-C.

    Over SSH: ssh -L 8080:localhost:8080 MACHINE, start it there, open the address here.

    Parameters
    ----------
    paths
        logs, worlds (folders with a world.toml) and scenes (hedgerow scenes lists them, or a .toml file); the beams of
        the first log are fired at each world and scene
    host
        address to listen at; 0.0.0.0 lets other machines in, without a password
    port
        0 for any that is free
    colour
        layer, height, intensity, ring, label, range-error or log-likelihood; default: layer if there are two or more
        clouds, else height
    sweep
        number of the sweep to start with; default: the first
    accumulate
        how many sweeps to show together
    points
        draw at most so many points; of more, some beams are left out
    side_by_side
        start with the clouds beside each other
    seed
        for firing
    """
    from hedgerow.progress import stage_bar
    from hedgerow.view.web.frame import APART_M
    from hedgerow.view.web.opening import open_stage
    from hedgerow.view.web.server import start_server, stop_server, url_of

    with stage_bar() as progress:
        stage = open_stage(paths, seed, progress)
    choice = _choice(stage, colour, sweep, accumulate, points)
    choice.apart_m = APART_M if side_by_side else 0.0
    server = start_server(host, port)
    try:
        from hedgerow.view.web.viewer import Viewer

        viewer = Viewer(server, stage, choice)
        out.print(f"open {url_of(server)} in a browser; Ctrl-C ends")
        if host == "0.0.0.0":
            out.print("every machine of the network can open it")
        viewer.run()
    except KeyboardInterrupt:
        out.print("ended")
    finally:
        stop_server(server)


def _choice(stage: "Stage", colour: str | None, sweep: int | None, accumulate: int, points: int) -> "Choice":
    from hedgerow.errors import InputError
    from hedgerow.view.web.colours import QUANTITIES, Quantity
    from hedgerow.view.web.frame import Choice

    names: dict[str, Quantity] = {quantity.replace(" ", "-"): quantity for quantity in QUANTITIES}
    colour = colour or ("layer" if stage.partners else "height")
    if colour not in names:
        raise InputError(f"--colour {colour}: expected one of {', '.join(names)}")
    if accumulate < 1 or points < 1:
        raise InputError(f"--accumulate {accumulate}, --points {points}: expected 1 or more of each")
    numbers = stage.sweeps.tolist()
    if sweep is not None and sweep not in numbers:
        there = f"{numbers[0]} to {numbers[-1]}" if numbers else "none, since no log is given"
        raise InputError(f"--sweep {sweep}: there is no such sweep; there are {there}")
    position = 0 if sweep is None else numbers.index(sweep)
    return Choice(position=position, accumulate=accumulate, quantity=names[colour], point_limit=points)
