# SPDX-License-Identifier: Apache-2.0
"""Session: one client of the Foxglove WebSocket: what it listens to, what it announced, what waits to be sent to it.

Control messages are JSON texts with an "op". Data is binary, little-endian: to the client opcode 1, subscription
(uint32), log time (uint64, ns), message; from the client opcode 1, channel (uint32), message; a time is opcode 2 and
uint64, ns. Everything that a client can make us keep has a bound. All of this runs in the loop of the guard.
"""

import asyncio
import json
import logging
import struct
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from hedgerow.base.allowance import Allowance
from hedgerow.base.guard import Visit, linger
from hedgerow.errors import InputError, shown
from hedgerow.io.formats import require_package

SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
BACKLOG = 32
"""Most messages that wait for a slow client, about ten sweeps with what belongs to them."""
BACKLOG_BYTES = 64 << 20
"""Likewise, in bytes; one message may always wait."""
MAX_MESSAGE_BYTES = 1 << 20
"""Largest message of a client; a larger one ends the connection."""
MESSAGES_PER_S, BYTES_PER_S = 1000, 4 << 20
"""What is read from one client; what is more waits in its own socket."""
MAX_CHANNELS = 16
"""Channels that one client may announce."""
WARNING, ERROR = 1, 2
"""Levels of a status."""
_BURST = 100  # messages
_CHUNK = 4096  # bytes; few messages at a time, since other clients wait meanwhile
_MAX_NAME = 200  # characters
_DATA, _TIME = 1, 2
_TEXT_FRAME, _BINARY_FRAME = 0x81, 0x82


def live_package(name: str) -> Any:
    """Import a module of an optional package.

    Raises:
        MissingPackage: it is not installed; has the pip line.
    """
    return require_package(name, "live output", "live")


@dataclass(frozen=True, slots=True)
class Channel:
    """What clients can listen to."""

    number: int
    topic: str
    encoding: str
    schema_name: str
    schema_encoding: str
    schema: str = ""

    def advertisement(self) -> dict[str, Any]:
        """Return the entry that tells a client of it."""
        return {
            "id": self.number,
            "topic": self.topic,
            "encoding": self.encoding,
            "schemaName": self.schema_name,
            "schemaEncoding": self.schema_encoding,
            "schema": self.schema,
        }


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """What a client published."""

    client: int
    """Number of the client."""
    topic: str
    """On this topic."""
    encoding: str
    """As json, cdr or something else."""
    schema_name: str
    """What the client says it is."""
    data: bytes
    """The message itself."""


Receive = Callable[[ClientMessage], None]


class Outbox:
    """Frames that wait to be sent, control messages before data. When there are too many, the oldest has to go."""

    def __init__(self, max_messages: int = BACKLOG, max_bytes: int = BACKLOG_BYTES) -> None:
        """Start empty."""
        self._max_messages, self._max_bytes = max_messages, max_bytes
        self._orders = deque[tuple[bytes, bytes]](maxlen=max_messages)
        self._data = deque[tuple[bytes, bytes]]()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._closed = False
        self.n_lost = 0
        """Frames of data that had to go since this was last set to 0."""

    def put_order(self, payload: bytes) -> None:
        """Add a control message."""
        self._orders.append((_frame_head(_TEXT_FRAME, len(payload)), payload))
        self._changed.set()

    def put(self, head: bytes, payload: bytes = b"") -> None:
        """Add data: some bytes before the payload, which is not copied."""
        head = _frame_head(_BINARY_FRAME, len(head) + len(payload)) + head
        self._data.append((head, payload))
        self._bytes += len(payload)
        while len(self._data) > 1 and (len(self._data) > self._max_messages or self._bytes > self._max_bytes):
            self._bytes -= len(self._data.popleft()[1])
            self.n_lost += 1
        self._changed.set()

    async def take(self) -> tuple[bytes, bytes] | None:
        """Wait for a frame, in two parts; None when all are sent and no more will come."""
        while not self._orders and not self._data:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        if self._orders:
            return self._orders.popleft()
        head, payload = self._data.popleft()
        self._bytes -= len(payload)
        return head, payload

    def close(self) -> None:
        """Let no more come."""
        self._closed = True
        self._changed.set()


class Session:
    """One client, from its handshake to its end."""

    def __init__(self, visit: Visit, channels: Sequence[Channel], receive: Receive | None) -> None:
        """Prepare.

        Args:
            visit: the connection.
            channels: what it may listen to.
            receive: takes what it publishes. Default: it may not.
        """
        self._visit, self._receive = visit, receive
        self._channels = {channel.number: channel for channel in channels}
        self._subscriptions: dict[int, int] = {}  # number of the subscription by channel
        self._announced: dict[int, tuple[str, str, str]] = {}  # topic, encoding, schema by number
        self._outbox = Outbox()
        self._statuses = Allowance(per_s=2, burst=20)
        self._messages = Allowance(MESSAGES_PER_S, _BURST)
        self._bytes = Allowance(BYTES_PER_S, 2 * BYTES_PER_S)
        self._parts: list[bytes] = []  # of a message in several frames
        self._is_text = False
        self._sender: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        quiet = logging.getLogger("hedgerow.live.websockets")
        quiet.setLevel(logging.CRITICAL)  # what a stranger does wrong is no error of ours
        self._protocol: Any = live_package("websockets.server").ServerProtocol(
            subprotocols=SUBPROTOCOLS, max_size=MAX_MESSAGE_BYTES, logger=quiet
        )

    async def open(self, server_info: dict[str, Any]) -> bool:
        """Shake hands and tell what there is; false if the other end is no client of this protocol."""
        protocol = self._protocol
        protocol.receive_data(self._visit.raw)
        for request in protocol.events_received():
            protocol.send_response(protocol.accept(request))
        self._write_protocol()
        if not self._is_open:
            await linger(self._visit.reader, self._visit.writer)
            return False
        self._send_json(server_info)
        offered = [channel.advertisement() for channel in self._channels.values()]
        self._send_json({"op": "advertise", "channels": offered})
        return True

    async def run(self) -> None:
        """Listen and send until the client goes."""
        self._sender = asyncio.create_task(self._send_all())
        try:
            await self._listen()
            await linger(self._visit.reader, self._visit.writer)
        finally:
            self._gone.set()
            self._sender.cancel()

    def send(self, channel: int, log_time_ns: int, payload: bytes) -> None:
        """Send a message of a channel, if the client listens to it."""
        number = self._subscriptions.get(channel)
        if number is not None:
            self._outbox.put(struct.pack("<BIQ", _DATA, number, log_time_ns), payload)

    def send_time(self, time_ns: int) -> None:
        """Send what time it is."""
        self._outbox.put(struct.pack("<BQ", _TIME, time_ns))

    def send_status(self, level: int, sentence: str, name: str = "") -> None:
        """Tell the client something; not more often than some times in a second.

        Args:
            level: WARNING or ERROR.
            sentence: what to tell.
            name: a later status of this name replaces it.
        """
        if self._statuses.has(1):
            status = {"op": "status", "level": level, "message": sentence}
            self._send_json(status | ({"id": name} if name else {}))

    async def finish(self) -> None:
        """Send what waits, say goodbye, and wait until the client is gone."""
        self._outbox.close()
        if self._sender is not None:
            await asyncio.wait([self._sender])
        if self._is_open:
            self._protocol.send_close(1001, "the server ends")
            self._write_protocol()
        await self._gone.wait()

    @property
    def _is_open(self) -> bool:
        return self._protocol.state.name == "OPEN"

    def _send_json(self, message: dict[str, Any]) -> None:
        self._outbox.put_order(json.dumps(message).encode())

    def _write_protocol(self) -> None:
        """Write what the protocol itself has to say: handshake, pongs, goodbye."""
        writer = self._visit.writer
        for data in self._protocol.data_to_send():
            if data and not writer.is_closing():
                writer.write(data)

    async def _send_all(self) -> None:
        writer = self._visit.writer
        with suppress(OSError):  # it is gone; so will the listener find
            while (frame := await self._outbox.take()) is not None and not writer.is_closing():
                for part in frame if len(frame[1]) > _CHUNK else (b"".join(frame),):  # large ones are not copied
                    writer.write(part)
                await writer.drain()
                if self._outbox.n_lost:
                    said = f"{self._outbox.n_lost} messages were left out, the oldest: you read too slowly"
                    self._outbox.n_lost = 0
                    self.send_status(WARNING, said, "slow")

    async def _listen(self) -> None:
        reader, writer = self._visit.reader, self._visit.writer
        while self._is_open and (data := await reader.read(_CHUNK)):
            self._protocol.receive_data(data)
            frames = self._protocol.events_received()
            for frame in frames:
                self._take_frame(frame)
            self._write_protocol()
            await writer.drain()  # who does not take our pongs is not read from
            await asyncio.sleep(max(self._messages.spend(len(frames)), self._bytes.spend(len(data))))

    def _take_frame(self, frame: Any) -> None:
        if frame.opcode.name in ("TEXT", "BINARY"):
            self._parts, self._is_text = [], frame.opcode.name == "TEXT"
        elif frame.opcode.name != "CONT":
            return  # the protocol has dealt with it
        self._parts.append(bytes(frame.data))
        if frame.fin:
            message, self._parts = b"".join(self._parts), []
            try:
                if self._is_text:
                    self._take_order(message)
                else:
                    self._take_data(message)
            except InputError as error:
                self.send_status(ERROR, str(error))

    def _take_data(self, message: bytes) -> None:
        if len(message) < 5 or message[0] != _DATA:
            raise InputError("message", "a binary message is opcode 1, the number of a channel, and its data")
        (number,) = struct.unpack_from("<I", message, 1)
        if self._receive is None or number not in self._announced:
            raise InputError(f"channel {number}", "was not announced by this client")
        self._receive(ClientMessage(self._visit.number, *self._announced[number], message[5:]))

    def _take_order(self, message: bytes) -> None:
        try:
            found: Any = json.loads(message.decode())
        except (ValueError, RecursionError):
            raise InputError("message", "a text is a JSON object with an op") from None
        order = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        match order.get("op"):
            case "subscribe":
                self._subscribe(_entries(order, "subscriptions"))
            case "unsubscribe":
                unwanted = set(_numbers(order, "subscriptionIds"))
                self._subscriptions = {k: v for k, v in self._subscriptions.items() if v not in unwanted}
            case "advertise":
                self._announce(_entries(order, "channels"))
            case "unadvertise":
                for number in _numbers(order, "channelIds"):
                    self._announced.pop(number, None)
            case other:
                raise InputError("op", f"{shown(other)} is not known here")

    def _subscribe(self, entries: list[dict[str, Any]]) -> None:
        n_wrong = 0
        for entry in entries:
            number, channel = entry.get("id"), entry.get("channelId")
            known = _is_number(number) and _is_number(channel) and channel in self._channels
            if known and channel not in self._subscriptions:
                self._subscriptions[cast(int, channel)] = cast(int, number)
            else:
                n_wrong += 1
        if n_wrong:
            raise InputError(
                "subscriptions",
                f"{n_wrong:,} of {len(entries):,} name no channel, or one that is subscribed to already",
            )

    def _announce(self, entries: list[dict[str, Any]]) -> None:
        if self._receive is None:
            raise InputError("channels", "nothing can be published here")
        for entry in entries:
            number = entry.get("id")
            names = [entry.get(key) for key in ("topic", "encoding", "schemaName")]
            if not _is_number(number) or not all(isinstance(name, str) and len(name) <= _MAX_NAME for name in names):
                raise InputError("channels", "each has an id, and a topic, encoding and schemaName of a usual length")
            if number not in self._announced and len(self._announced) >= MAX_CHANNELS:
                raise InputError("channels", f"a client may announce {MAX_CHANNELS}, and this one has")
            self._announced[cast(int, number)] = cast("tuple[str, str, str]", tuple(names))


def _frame_head(opcode: int, n: int) -> bytes:
    """Return the head of a frame of n bytes, as a server sends it."""
    if n < 126:
        return bytes((opcode, n))
    return struct.pack(">BBH", opcode, 126, n) if n < 1 << 16 else struct.pack(">BBQ", opcode, 127, n)


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 32


def _entries(order: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = order.get(key)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in cast("list[Any]", found)):
        raise InputError(key, "expected a list of JSON objects")
    return cast("list[dict[str, Any]]", found)


def _numbers(order: dict[str, Any], key: str) -> list[int]:
    found = order.get(key)
    if not isinstance(found, list) or not all(map(_is_number, cast("list[Any]", found))):
        raise InputError(key, "expected a list of numbers")
    return cast("list[int]", found)
