# SPDX-License-Identifier: Apache-2.0
"""Guard: the front of every server of ours. It meets each connection, and only who may come in gets to the server.

It reads the head of the first request, within limits of size and time, asks `Access`, and hands the connection on to
what serves it, in one event loop in a thread of its own. Who says nothing, or only half of it, is dropped after some
seconds, or at once if many others wait: the one who came first goes, so newcomers always get their turn.
"""

import asyncio
import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType

from hedgerow.base.access import LOOPBACK, Access, Head, Refusal, is_loopback, parse_head

HANDSHAKE_S = 5.0
"""So long a client has to say what it wants [s]."""
MAX_HEAD_BYTES = 16 * 1024
"""So much it may say."""
MAX_STRANGERS = 64
"""Connections whose request is awaited; one more, and the oldest is dropped."""
MAX_CLIENTS = 64
"""Connections that are served."""
MAX_CLIENTS_PER_MACHINE = 32
"""Likewise, from one machine, other than this one."""
_LINGER_S = 0.5  # who is refused has so long to read why
_CLOSE_S = 3.0
_RECEIVE_BYTES = 256 * 1024  # what the system keeps of a client that sends more than is read
_MAX_SAID = 20  # pages that are told about on the terminal, each once
_ASCII = bytes(code if code < 128 else ord("?") for code in range(256))


@dataclass(frozen=True, slots=True)
class Visit:
    """A connection that was let in."""

    number: int
    """Counts up from 1."""
    head: Head
    """What it asks for."""
    raw: bytes
    """Likewise, as it came, with ? for all that is not ASCII, which libraries fail on."""
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


Serve = Callable[[Visit], Awaitable[None]]


def listen_at(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises OSError if that is not possible.

    Args:
        host: address or name of this machine; of several addresses the first.
        port: 0 takes a free one.
    """
    family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name != "nt":  # a port that was let go of just now is free
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)  # connections inherit it
        listener.bind(where)
        listener.listen(128)
    except BaseException:
        listener.close()
        raise
    return listener


def reachable_name(host: str) -> str:
    """Return how others call a host that a server listens at, for an address: of all interfaces, one with a route."""
    if host in ("0.0.0.0", "::", ""):
        family = socket.AF_INET6 if host == "::" else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("2001:db8::1" if host == "::" else "192.0.2.1", 9))  # of documents; nothing is sent
                host = str(probe.getsockname()[0])
            except OSError:
                host = socket.gethostname()
    return f"[{host}]" if ":" in host else host


class Guard(AbstractContextManager["Guard"]):
    """Meets connections from the moment it is made until it is closed."""

    def __init__(
        self,
        listener: socket.socket,
        access: Access,
        serve: Serve,
        *,
        finish: Callable[[], Awaitable[None]] | None = None,
        say: Callable[[str], object] | None = None,
    ) -> None:
        """Start.

        Args:
            listener: a socket that listens; it belongs to the guard from now on.
            access: who may come in.
            serve: takes a connection; when it returns, or the guard is closed, the connection is closed. It may raise
                Refusal before it has written anything.
            finish: is awaited before the connections are closed, for some seconds at most.
            say: takes a line when a page is refused, once for each. Default: nobody.
        """
        self._listener, self._access, self._serve, self._finish = listener, access, serve, finish
        self._say = say
        self.port: int = listener.getsockname()[1]
        """Where it listens."""
        self._cookie_name = f"hedgerow-{self.port}"
        self._strangers: dict[asyncio.Task[None], None] = {}  # in the order in which they came
        self._clients: Counter[str] = Counter()
        self._n_visits = 0
        self._said: set[str] = set()
        self._started = threading.Event()
        self.loop = asyncio.new_event_loop()
        """Everything of `serve` runs here."""
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="hedgerow-guard", daemon=True)
        self._thread.start()
        self._started.wait()

    def call(self, work: Callable[[], object]) -> None:
        """Let the loop call something soon, or at once if this is its thread; not at all when the guard is closed."""
        if threading.get_ident() == self._thread.ident:
            work()
            return
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(work)

    def close(self) -> None:
        """Close all connections and stop to listen; a second time does nothing."""
        self.call(self._stop.set)
        self._thread.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._main())
        finally:
            self._listener.close()
            self.loop.close()
            self._started.set()

    async def _main(self) -> None:
        server = await asyncio.start_server(self._meet, sock=self._listener, limit=MAX_HEAD_BYTES)
        self._started.set()
        await self._stop.wait()
        server.close()
        if self._finish is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._finish(), _CLOSE_S)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Meet one connection, from its first byte to its end."""
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # notices machines that are gone
        peer = writer.get_extra_info("peername")
        machine = str(peer[0]) if peer else LOOPBACK
        try:
            visit = await self._greet(machine, reader, writer)
            if visit is not None:
                try:
                    await self._serve(visit)
                finally:
                    self._clients[machine] -= 1
        except Refusal as refusal:
            with suppress(OSError, asyncio.CancelledError):
                await _answer(reader, writer, refusal.status, refusal.sentence)
        except (OSError, asyncio.CancelledError):
            pass  # gone, or dropped
        except Exception:
            logging.getLogger(__name__).exception("a connection failed")
        finally:
            writer.close()

    async def _greet(self, machine: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit | None:
        """Read what a stranger wants; None if that cannot be."""
        task = asyncio.current_task()
        assert task is not None
        if len(self._strangers) >= MAX_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel()
        self._strangers[task] = None
        try:
            raw = await _read_head(reader)
            head = parse_head(raw)
            self._access.check(head, self._cookie_name)
            if cookie := self._access.cookie(head, self._cookie_name):
                await _answer(reader, writer, 303, "go on", (f"Set-Cookie: {cookie[0]}", f"Location: {cookie[1]}"))
                return None
            self._require_room(machine)
        except Refusal as refusal:
            self._tell(refusal)
            await _answer(reader, writer, refusal.status, refusal.sentence)
            return None
        finally:
            self._strangers.pop(task, None)
        self._clients[machine] += 1
        self._n_visits += 1
        return Visit(self._n_visits, head, raw.translate(_ASCII), reader, writer)

    def _require_room(self, machine: str) -> None:
        self._clients += Counter()  # forgets machines without a connection
        n_there = 0 if is_loopback(machine) else self._clients[machine]
        if self._clients.total() >= MAX_CLIENTS or n_there >= MAX_CLIENTS_PER_MACHINE:
            raise Refusal(503, "too many connections; close some, or try again later")

    def _tell(self, refusal: Refusal) -> None:
        """Tell the terminal of a page that was refused: it may be one that the user wants."""
        if self._say is None or not refusal.origin or len(self._said) >= _MAX_SAID or refusal.origin in self._said:
            return
        self._said.add(refusal.origin)
        self._say(f"refused a page from {refusal.origin}; --allow-origin {refusal.origin} would let it in")


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HANDSHAKE_S)
    except asyncio.LimitOverrunError:
        raise Refusal(431, f"the request has more than {MAX_HEAD_BYTES:,} bytes") from None
    except asyncio.IncompleteReadError:
        raise ConnectionResetError from None
    except TimeoutError:
        raise Refusal(408, f"no whole request came within {HANDSHAKE_S:g} s") from None


async def _answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    status: int,
    sentence: str,
    headers: tuple[str, ...] = (),
) -> None:
    """Answer with a sentence."""
    body = f"{sentence}\n".encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: text/plain; charset=utf-8",
        "X-Content-Type-Options: nosniff",
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(("WWW-Authenticate: Bearer",) if status == HTTPStatus.UNAUTHORIZED else ()),
        *headers,
    ]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
    await linger(reader, writer)


async def linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Give the other end a moment to take the last words; bytes of its own left unread would make it lose them."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(_LINGER_S):
            await writer.drain()
            if not writer.is_closing():
                writer.write_eof()
            while await reader.read(MAX_HEAD_BYTES):
                pass
