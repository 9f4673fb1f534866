# SPDX-License-Identifier: Apache-2.0
"""The web server: on a free port, quiet, on loopback unless told otherwise."""

import logging
import socket
from contextlib import redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING

from hedgerow.errors import InputError, MissingPackage

if TYPE_CHECKING:
    from viser import ViserServer

LOOPBACK = "127.0.0.1"
PORT = 8080


def start_server(host: str = LOOPBACK, port: int = PORT) -> "ViserServer":
    """Start serving an empty scene.

    Args:
        host: address to listen at; 0.0.0.0 for all of this machine.
        port: 0 for any that is free.

    Raises:
        MissingPackage: viser is not installed.
        InputError: the port is taken, or there is no such address here.
    """
    try:
        import viser
    except ImportError as error:
        raise MissingPackage(
            "view: needs the package viser, which is not installed; install it with: pip install 'hedgerow[view]'"
        ) from error
    # Browsers open connections that they never use; each would be told with a traceback.
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    free = _free_port(host, port)
    with redirect_stdout(StringIO()):  # it prints a panel; the command line has its own words
        server = viser.ViserServer(host, free, label="Hedgerow", verbose=False)
    if server.get_port() != free:  # somebody was quicker, and viser went on to the next one
        server.stop()
        raise _taken(free)
    # No share button: it would send the data through somebody else's server.
    server.gui.configure_theme(dark_mode=True, control_width="large", show_logo=False, show_share_button=False)
    return server


def stop_server(server: "ViserServer") -> None:
    """Stop serving."""
    with redirect_stdout(StringIO()):
        server.stop()


def url_of(server: "ViserServer") -> str:
    """Return the address to open in a browser on this machine."""
    host = server.get_host()
    return f"http://{'localhost' if host in (LOOPBACK, '0.0.0.0', '') else host}:{server.get_port()}"


def _free_port(host: str, port: int) -> int:
    """Return a port that can be listened at: viser would silently take another one, or hang on a wrong address."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port}", "expected 0 (any) to 65535")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio does, or the last run blocks us
            probe.bind((host, port))
            probe.listen(1)
            return int(probe.getsockname()[1])
    except socket.gaierror:
        raise InputError(
            f"--host {host}", "no such address; expected 127.0.0.1, 0.0.0.0 or one of this machine"
        ) from None
    except PermissionError:
        raise InputError(f"--port {port}", "not allowed here; take one above 1023") from None
    except OSError as error:
        if error.errno in _NOT_HERE:
            raise InputError(
                f"--host {host}", "not an address of this machine; expected 127.0.0.1 or 0.0.0.0"
            ) from None
        raise _taken(port) from None


def _taken(port: int) -> InputError:
    return InputError(f"--port {port}", "is taken by another program; choose another one, or 0 for any that is free")


_NOT_HERE = (99, 49, 10049)
"""EADDRNOTAVAIL on Linux, macOS and Windows."""
