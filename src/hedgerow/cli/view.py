# SPDX-License-Identifier: Apache-2.0
"""hedgerow view: logs, worlds and scenes in the browser, until Ctrl-C."""

import signal
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out
from hedgerow.cli.options import NOMINAL, Flag, PulseOptions, Seed, Settings, parse_settings
from hedgerow.cli.server_options import AllowOrigin, Token, token_of_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from hedgerow.view.web.colours import Quantity
    from hedgerow.view.web.frame import Choice
    from hedgerow.view.web.segment_viewer import SegmentViewer
    from hedgerow.view.web.server import WebServer
    from hedgerow.view.web.session import Session


@app.command
def view(
    paths: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: Token = None,
    allow_origin: AllowOrigin = None,
    colour: str | None = None,
    sweep: int | None = None,
    accumulate: int = 1,
    points: int = 2_000_000,
    points_moving: int = 250_000,
    side_by_side: Flag = False,
    segments: Path | None = None,
    pulses: PulseOptions = NOMINAL,
    seed: Seed = 0,
    settings: Settings = None,
) -> None:
    """Show logs, worlds and scenes in the browser, real and simulated over each other or side by side, until Ctrl-C.

    Over SSH: ssh -L 8080:localhost:8080 MACHINE, start it there, open the address here.

    Parameters
    ----------
    paths
        logs, worlds (folders with a world.toml) and scenes (hedgerow scenes lists them, or a .toml file); the beams of
        the first log are fired at each world and scene
    host
        address to listen at; 0.0.0.0 lets other machines in, with the token in the printed address
    port
        0 for any that is free
    colour
        layer, height, intensity, ring, label, colour (of a camera, where the log has it), range-error or
        log-likelihood; default: layer if there are two or more clouds, else height
    sweep
        number of the sweep to start with; default: the first
    accumulate
        how many sweeps to show together
    points
        draw at most so many points; of more, some beams are left out; without a graphics card, try 250000
    points_moving
        draw at most so many of them while the camera moves, 0 for all
    side_by_side
        start with the clouds beside each other
    segments
        show one log or world parted into the objects of this file (hedgerow segment writes it), to be mended by hand:
        classes, parts of a cloud, joined objects; saved to the same file
    settings
        set a parameter of the reader, where the logs do not say themselves: static=true, trajectory=poses.tum,
        scanner_m=[0,0,2]; may be repeated; hedgerow convert --formats lists them
    """
    from hedgerow.base.progress import step_bar
    from hedgerow.view.web.frame import SPACING_M, Choice
    from hedgerow.view.web.server import WebServer
    from hedgerow.view.web.session import open_session

    choice = Choice(accumulate=accumulate, point_limit=points, moving_points=points_moving)
    choice.spacing_m = SPACING_M if side_by_side else 0.0
    quantity, options = _checked(choice, colour), parse_settings(settings)
    beam, aim = pulses.beam_settings(), pulses.aim(seed)
    _require_dual(paths, pulses)
    _require_one(paths, segments)
    token = token or token_of_environment()
    # A taken port is told before anything slow.
    server = WebServer(host, port, token=token, allow_origins=allow_origin or (), say=out.print)
    try:
        if segments is not None:
            viewer = _segment_viewer(server, paths[0], segments, points)
        else:
            with step_bar() as progress:
                session = open_session(paths, seed, progress, options, settings=beam, aim=aim)
            choice.quantity = quantity or ("layer" if session.comparable else "height")
            choice.position = 0 if sweep is None else _position(session, sweep)
            from hedgerow.view.web.viewer import Viewer

            viewer = Viewer(server.viser, session, choice)
        with _ended_by_ctrl_c(viewer.stop):
            out.print(f"open {server.url} in a browser; Ctrl-C ends")
            viewer.run()
    except KeyboardInterrupt:  # while something was read or built, or pressed twice
        pass
    finally:
        server.close()
    out.print("ended")


@contextmanager
def _ended_by_ctrl_c(stop: "Callable[[], None]") -> "Generator[None]":
    """Call `stop` at the first Ctrl-C; only a second one interrupts, since imports and callbacks may swallow that."""

    def pressed(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        Thread(target=stop).start()  # not here: this may have cut into a lock that `stop` needs

    before = signal.signal(signal.SIGINT, pressed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _checked(choice: "Choice", colour: str | None) -> "Quantity | None":
    """Raise InputError if an option is wrong; return the quantity that was named."""
    from hedgerow.errors import InputError
    from hedgerow.view.web.colours import QUANTITIES, Quantity

    names: dict[str, Quantity] = {quantity.replace(" ", "-"): quantity for quantity in QUANTITIES}
    if colour is not None and colour not in names:
        raise InputError(f"--colour {colour}", f"expected one of {', '.join(names)}")
    if choice.accumulate < 1 or choice.point_limit < 1:
        raise InputError(
            f"--accumulate {choice.accumulate}, --points {choice.point_limit}", "expected 1 or more of each"
        )
    if choice.moving_points < 0:
        raise InputError(f"--points-moving {choice.moving_points}", "expected 0 (all) or more")
    return None if colour is None else names[colour]


def _require_dual(paths: list[Path], pulses: PulseOptions) -> None:
    """Raise InputError if dual returns are asked for of a scene's own sensor that gives none."""
    from hedgerow.inputs import kind_of, open_place

    scenes = [path for path in paths if pulses.dual and kind_of(path) == "scene"]
    for path in scenes:
        pulses.require_dual(open_place(path, "view").sensor(None))


def _require_one(paths: list[Path], segments: Path | None) -> None:
    """Raise InputError if segments are to be shown with anything but the one log or world that they belong to."""
    from hedgerow.errors import InputError
    from hedgerow.inputs import require_kind

    if segments is None:
        return
    if len(paths) != 1:
        raise InputError("--segments", f"expected the one log or world that they belong to, found {len(paths)} paths")
    require_kind(paths[0], ("log", "learned world"), "view --segments")


def _segment_viewer(server: "WebServer", path: Path, segments: Path, limit: int) -> "SegmentViewer":
    from hedgerow.view.web.segment_viewer import SegmentViewer
    from hedgerow.view.web.segments import open_edit

    return SegmentViewer(server.viser, open_edit(path, segments, limit))


def _position(session: "Session", sweep: int) -> int:
    from hedgerow.errors import InputError

    numbers = session.sweeps.tolist()
    if sweep not in numbers:
        there = f"{numbers[0]} to {numbers[-1]}" if numbers else "none, since no log is given"
        raise InputError(f"--sweep {sweep}", f"there is no such sweep; there are {there}")
    return numbers.index(sweep)
