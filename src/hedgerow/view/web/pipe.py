# SPDX-License-Identifier: Apache-2.0
"""Pipe: hands the connections that the guard lets in on to a web server on this machine, byte by byte."""

import asyncio
from contextlib import suppress

from hedgerow.base.access import LOOPBACK, Refusal
from hedgerow.base.allowance import Allowance, FrameCounter, OversizedFrame
from hedgerow.base.guard import Visit

MESSAGES_PER_S, BYTES_PER_S = 1000, 32 << 20
"""What is read from one browser; what is more waits in its own socket."""
MAX_FRAME_BYTES = 16 << 20
"""Largest frame of a browser, a picture that it has drawn; a larger one ends the connection."""
PAGE_S = 60.0
"""So long a browser has to take a page [s]."""
_CHUNK = 1 << 18


class Pipe:
    """Where to hand connections on to."""

    def __init__(self, port: int, header: bytes, subprotocol: str) -> None:
        """Remember it.

        Args:
            port: where the server listens.
            header: a line to add to every request.
            subprotocol: what a WebSocket has to speak; the server would tell the terminal of any other.
        """
        self._port, self._header, self._subprotocol = port, header, subprotocol

    async def serve(self, visit: Visit) -> None:
        """Hand on one connection until either end closes it. Raises Refusal."""
        if visit.head.upgrades and visit.head.headers.get("sec-websocket-protocol") != self._subprotocol:
            raise Refusal(400, "this is the page of another version; reload it")
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port, limit=_CHUNK)
        try:
            line, _, rest = visit.raw.partition(b"\r\n")
            writer.write(line + b"\r\n" + self._header + rest)
            down = _copy(reader, visit.writer)
            if not visit.head.upgrades:  # nothing but the one request is handed on
                with suppress(TimeoutError):
                    await asyncio.wait_for(down, PAGE_S)
                return
            tasks = [asyncio.create_task(work) for work in (down, _copy_metered(visit.reader, writer))]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


async def _copy_metered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy the frames of a browser, no more in a second than it may send."""
    messages, in_bytes = Allowance(MESSAGES_PER_S, MESSAGES_PER_S), Allowance(BYTES_PER_S, BYTES_PER_S)
    frames = FrameCounter(MAX_FRAME_BYTES)
    with suppress(OversizedFrame):
        while data := await reader.read(_CHUNK):
            wait_s = max(messages.spend(frames.count(data)), in_bytes.spend(len(data)))
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(wait_s)
