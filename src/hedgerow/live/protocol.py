# SPDX-License-Identifier: Apache-2.0
"""The client's side of the Foxglove WebSocket protocol, version 1, as far as poses and sweeps need it.

Control messages are JSON texts with an "op". Data is binary: to the server opcode 1, channel (uint32), message; from
the server opcode 1, subscription (uint32), log time (uint64, ns), message; all little-endian.
"""

import json
import struct
from dataclasses import dataclass
from typing import Any, cast

SUBPROTOCOLS = ("foxglove.sdk.v1", "foxglove.websocket.v1")
_MESSAGE_DATA = 1


@dataclass(frozen=True, slots=True)
class Data:
    """A message on a topic that was subscribed to."""

    subscription: int
    """Under this number."""
    log_time_ns: int
    """Time in its envelope [ns]."""
    payload: bytes
    """The message itself."""


def subscribe(channels: dict[int, int]) -> str:
    """Ask for messages of the server's channels: subscription number by channel number."""
    wanted = [{"id": number, "channelId": channel} for channel, number in channels.items()]
    return json.dumps({"op": "subscribe", "subscriptions": wanted})


def advertise(channel: int, topic: str, encoding: str, schema_name: str) -> str:
    """Announce a channel of the client's own."""
    entry = {"id": channel, "topic": topic, "encoding": encoding, "schemaName": schema_name}
    return json.dumps({"op": "advertise", "channels": [entry]})


def publish(channel: int, payload: bytes) -> bytes:
    """Wrap a message for a channel of the client's own."""
    return struct.pack("<BI", _MESSAGE_DATA, channel) + payload


def parse(message: str | bytes) -> Data | dict[str, Any] | None:
    """Take apart what the server sent; None for a binary message of another kind."""
    if isinstance(message, str):
        return cast("dict[str, Any]", json.loads(message))
    if message[0] != _MESSAGE_DATA:
        return None
    _, subscription, log_time_ns = struct.unpack_from("<BIQ", message)
    return Data(subscription, log_time_ns, message[13:])
