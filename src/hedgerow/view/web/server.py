# SPDX-License-Identifier: Apache-2.0
"""The web server: viser behind a guard, quiet, on loopback unless told otherwise.

The guard listens and decides who may come in; viser listens at a port of its own on this machine, and answers only
requests with a secret that the guard adds. Without that, any web page could find the port and go round the guard.
"""

import logging
import secrets
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from importlib import import_module
from io import StringIO
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hedgerow.base.access import LOOPBACK, Access
from hedgerow.base.guard import Guard, listen_at, reachable_name
from hedgerow.errors import HedgerowError, InputError, MissingPackage
from hedgerow.view.web.pipe import Pipe

if TYPE_CHECKING:
    from viser import ViserServer

PORT = 8080
SECRET_HEADER = "X-Hedgerow-Guard"
_starting = Lock()


class WebServer(AbstractContextManager["WebServer"]):
    """Serves an empty scene from the moment it is made until it is closed."""

    viser: "ViserServer"
    """Takes what to show."""
    url: str
    """What to open in a browser."""

    def __init__(
        self,
        host: str = LOOPBACK,
        port: int = PORT,
        *,
        token: str | None = None,
        allow_origins: Iterable[str] = (),
        say: Callable[[str], object] | None = None,
    ) -> None:
        """Start.

        Args:
            host: address to listen at; 0.0.0.0 for all of this machine.
            port: 0 for any that is free.
            token: what browsers have to know. Default: beyond this machine a new one, in the url; else nothing.
            allow_origins: web pages that may connect besides the viewer's own and those of this machine.
            say: takes a line when a page is refused. Default: nobody.

        Raises:
            MissingPackage: viser is not installed.
            InputError: the port is taken, there is no such address here, or the token or an origin is wrong.
        """
        access = Access(host, token, allow_origins)
        listener = _listen(host, port)
        try:
            secret = secrets.token_urlsafe(32)
            self.viser = _start_viser(secret)
        except BaseException:
            listener.close()
            raise
        import viser

        head = f"{SECRET_HEADER}: {secret}\r\n".encode()
        pipe = Pipe(self.viser.get_port(), head, f"viser-v{viser.__version__}")
        self._guard = Guard(listener, access, pipe.serve, say=say)
        self.port = self._guard.port
        """Where it listens."""
        name = "localhost" if access.is_local and host == LOOPBACK else reachable_name(host)
        self.url = access.with_token(f"http://{name}:{self.port}")

    def close(self) -> None:
        """Stop serving."""
        self._guard.close()
        with redirect_stdout(StringIO()):
            self.viser.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def _start_viser(secret: str) -> "ViserServer":
    """Start viser at a free port of this machine, where it answers only who knows the secret."""
    try:
        import viser
    except ImportError as error:
        raise MissingPackage(
            "view: needs the package viser, which is not installed; install it with: pip install 'hedgerow[view]'"
        ) from error
    # Browsers open connections that they never use; each would be told with a traceback.
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    # Messages that viser cannot read fail in tasks that nobody waits for.
    logging.getLogger("asyncio").addFilter(_is_not_of_viser)
    with _starting, _asking_for(secret), redirect_stdout(StringIO()):  # it prints a panel; we have our own words
        with listen_at(LOOPBACK, 0) as probe:
            port = int(probe.getsockname()[1])
        server = viser.ViserServer(LOOPBACK, port, label="Hedgerow", verbose=False)
        try:
            _require_closed(server.get_port(), viser.__version__)
        except BaseException:
            server.stop()
            raise
    # No share button: it would send the data through somebody else's server.
    server.gui.configure_theme(dark_mode=True, control_width="large", show_logo=False, show_share_button=False)
    return server


@contextmanager
def _asking_for(secret: str) -> Generator[None]:
    """Let the server that viser starts ask for a secret in every request; viser itself has no place for that."""
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    websockets: Any = import_module("websockets.asyncio.server")
    plain = websockets.serve

    def serve(handler: Any, *words: Any, process_request: Any = None, **settings: Any) -> Any:
        if not str(getattr(handler, "__module__", "")).startswith("viser"):
            return plain(handler, *words, process_request=process_request, **settings)

        def ask(connection: Any, request: Any) -> Any:
            said: list[str] = request.headers.get_all(SECRET_HEADER)
            if len(said) != 1 or not secrets.compare_digest(said[0].encode(), secret.encode()):
                return Response(403, "Forbidden", Headers({"Content-Length": "0"}), b"")
            return process_request(connection, request)

        return plain(handler, *words, process_request=ask, **settings)

    websockets.serve = serve
    try:
        yield
    finally:
        websockets.serve = plain


def _require_closed(port: int, version: str) -> None:
    """Raise HedgerowError if viser answers without the secret: another version may start its server in another way."""
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://{LOOPBACK}:{port}", timeout=10):
            pass
    except urllib.error.HTTPError as error:
        if error.code == 403:
            return
    raise HedgerowError(f"view: viser {version} cannot be closed to strangers; install viser 1.1")


def _is_not_of_viser(record: logging.LogRecord) -> bool:
    """Whether a line of asyncio's log is of anything but a task of viser."""
    frame = record.exc_info[2] if record.exc_info else None
    while frame is not None:
        if str(frame.tb_frame.f_globals.get("__name__", "")).startswith("viser."):
            return False
        frame = frame.tb_next
    return True


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port}", "expected 0 (any) to 65535")
    try:
        return listen_at(host, port)
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
        raise InputError(
            f"--port {port}", "is taken by another program; choose another one, or 0 for any that is free"
        ) from None


_NOT_HERE = (99, 49, 10049)
"""EADDRNOTAVAIL on Linux, macOS and Windows."""
