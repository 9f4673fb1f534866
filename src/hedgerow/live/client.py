# SPDX-License-Identifier: Apache-2.0
"""Client: asks a running `hedgerow serve` for sweeps, or listens to a running `hedgerow fire --live`.

    with Client("ws://127.0.0.1:8765") as client:
        sweep = client.sweep(Pose.from_xyz_rpy((0, 0, 2)), velocity_mps=(5, 0, 0))
        sweep.points["ring"], sweep.xyz(), sweep.map_points()

It speaks the Foxglove WebSocket protocol, version 1, as far as poses and sweeps need it. Control messages are JSON
texts with an "op". Data is binary: to the server opcode 1, channel (uint32), message; from the server opcode 1,
subscription (uint32), log time (uint64, ns), message; all little-endian.
"""

import json
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import rotation
from hedgerow.base.access import LOOPBACK
from hedgerow.errors import InputError, SocketError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.ros.messages import ReceivedCloud
from hedgerow.live.publisher import ANSWERS, POINTS, PORT, POSES, ros2_messages
from hedgerow.live.request import make_request
from hedgerow.live.session import SUBPROTOCOLS, live_package

_MESSAGE_DATA = 1
_POSES, _POINTS, _ANSWERS = 1, 1, 2  # our numbers for a channel and two subscriptions


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A message on a topic that was subscribed to."""

    subscription: int
    """Under this number."""
    log_time_ns: int
    """Time in its envelope [ns]."""
    payload: bytes
    """The message itself."""


def encode_subscription(channels: dict[int, int]) -> str:
    """Ask for messages of the server's channels: subscription number by channel number."""
    wanted = [{"id": number, "channelId": channel} for channel, number in channels.items()]
    return json.dumps({"op": "subscribe", "subscriptions": wanted})


def encode_advertisement(channel: int, topic: str, encoding: str, schema_name: str) -> str:
    """Announce a channel of the client's own."""
    entry = {"id": channel, "topic": topic, "encoding": encoding, "schemaName": schema_name}
    return json.dumps({"op": "advertise", "channels": [entry]})


def encode_message(channel: int, payload: bytes) -> bytes:
    """Wrap a message for a channel of the client's own."""
    return struct.pack("<BI", _MESSAGE_DATA, channel) + payload


def decode_message(message: str | bytes) -> TopicMessage | dict[str, Any] | None:
    """Decode what the server sent; None for a binary message of another kind."""
    if isinstance(message, str):
        return cast("dict[str, Any]", json.loads(message))
    if message[0] != _MESSAGE_DATA:
        return None
    _, subscription, log_time_ns = struct.unpack_from("<BIQ", message)
    return TopicMessage(subscription, log_time_ns, message[13:])


@dataclass(frozen=True, slots=True, eq=False)
class LiveSweep:
    """The answer to a pose."""

    cloud: ReceivedCloud
    """What came back, sensor frame; each point in the frame of its own instant, as from a real sensor."""
    trajectory: Trajectory
    """T_map_sensor during the sweep."""
    sensor: str
    """Name of the lidar."""
    seed: int
    number: int
    """Seed and sweep number, which make it repeatable."""
    fire_s: float
    """What the server took to fire it [s]."""

    @property
    def points(self) -> NDArray[Any]:
        """(M,) points with the fields x, y, z, intensity, ring, time."""
        return self.cloud.points

    def xyz(self) -> NDArray[np.float32]:
        """Return the (M, 3) points, sensor frame, NaN where a pulse came back with nothing [m]."""
        return self.cloud.xyz()

    def map_points(self) -> NDArray[np.float64]:
        """Return the (M, 3) points, map frame, the sensor's motion undone [m]."""
        times = self.cloud.stamp_ns + np.rint(self.points["time"].astype(np.float64) * 1e9).astype(np.int64)
        position_m, quaternion = self.trajectory.at(np.clip(times, self.trajectory.start_ns, self.trajectory.end_ns))
        return position_m + rotation.rotate(quaternion, self.xyz().astype(np.float64))


class Client(AbstractContextManager["Client"]):
    """A connection to a Hedgerow server; one thread at a time may use it."""

    def __init__(self, url: str = f"ws://{LOOPBACK}:{PORT}", *, timeout_s: float = 30.0) -> None:
        """Connect.

        Args:
            url: where the server listens; with `/?token=...` if it asks for one, as the server printed it.
            timeout_s: how long to wait for an answer [s].

        Raises:
            MissingPackage: the package websockets or rosbags is not installed.
            SocketError: nobody answers there, or no server of sweeps.
        """
        self._url, self._timeout_s = url.partition("/?")[0], timeout_s  # without the token, for messages
        self._name, self._n_asked = secrets.token_hex(8), 0
        self._stack = ExitStack()
        connect = live_package("websockets.sync.client").connect
        ros2_messages()  # which takes a moment the first time: not while a sweep is waited for
        settings = {"open_timeout": timeout_s, "compression": None, "max_size": None, "proxy": None}
        try:
            connection = connect(url, subprotocols=SUBPROTOCOLS, **settings)
            self._socket: Any = self._stack.enter_context(connection)
        except live_package("websockets").exceptions.InvalidStatus as error:
            said = bytes(error.response.body or b"")[:300].decode("ascii", "replace").strip()
            raise SocketError(f"{self._url}: refused with {error.response.status_code} ({said!r})") from None
        except (OSError, ValueError, live_package("websockets").exceptions.WebSocketException) as error:
            raise SocketError(f"{self._url}: nobody answers ({error}); is hedgerow serve running there?") from None
        try:
            self._subscribe()
        except BaseException:
            self.close()
            raise

    def sweep(
        self,
        pose: Pose,
        *,
        end: Pose | None = None,
        velocity_mps: ArrayLike | None = None,
        stamp_ns: int = 0,
        seed: int = 0,
        number: int | None = None,
        misses: bool = False,
    ) -> LiveSweep:
        """Ask for the sweep from a pose and wait for it.

        Args:
            pose: T_map_sensor at the start of the sweep.
            end: at its end. Default: the sensor stands.
            velocity_mps: or, (3,) how it moves, map frame, without turning [m/s].
            stamp_ns: when the sweep starts [ns].
            seed: same seed and same number, same answer.
            number: which sweep of the scan. Default: this client counts from 0.
            misses: also give pulses that came back with nothing, as NaN.

        Raises:
            InputError: the server refuses; says why.
            SocketError: no answer in time, or the server is gone.
        """
        if not self._takes_poses:
            raise InputError(f"{self._url}", "streams a drive and takes no poses; start hedgerow serve")
        request = make_request(
            {
                "id": f"{self._name}-{self._n_asked}",
                "stamp_ns": stamp_ns,
                "pose": _pose_fields(pose),
                "end": None if end is None else _pose_fields(end),
                "velocity_mps": None if velocity_mps is None else np.asarray(velocity_mps).tolist(),
                "seed": seed,
                "number": self._n_asked if number is None else number,
                "misses": misses,
            }
        )
        self._n_asked += 1
        self._send(encode_message(_POSES, request.model_dump_json().encode()))
        answer, cloud = self._wait_for_answer(request.id)
        trajectory = request.trajectory(stamp_ns, answer["sweep_ns"] * 1e-9)
        return LiveSweep(cloud, trajectory, answer["sensor"], seed, answer["number"], 1e-3 * answer["fire_ms"])

    def clouds(self) -> Iterator[ReceivedCloud]:
        """Give every cloud that the server sends to anybody, until it is gone or silent for too long."""
        while True:
            message = self._receive(time.monotonic() + self._timeout_s)
            if isinstance(message, TopicMessage) and message.subscription == _POINTS:
                yield ros2_messages().read_cloud(message.payload)

    def close(self) -> None:
        """Let go of the connection; a second time does nothing."""
        self._stack.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _subscribe(self) -> None:
        """Read what the server offers, subscribe, and announce our own channel."""
        deadline = time.monotonic() + self._timeout_s
        channels: dict[str, int] = {}
        while POINTS not in channels:
            message = self._receive(deadline)
            if isinstance(message, dict) and message.get("op") == "advertise":
                offered = cast("list[dict[str, Any]]", message["channels"])
                channels = {each["topic"]: each["id"] for each in offered}
                if POINTS not in channels:
                    raise SocketError(f"{self._url}: is no server of sweeps, it offers {', '.join(sorted(channels))}")
        self._takes_poses = ANSWERS in channels
        numbers = {POINTS: _POINTS, ANSWERS: _ANSWERS}
        self._send(encode_subscription({channels[topic]: numbers[topic] for topic in numbers if topic in channels}))
        if self._takes_poses:
            self._send(encode_advertisement(_POSES, POSES, "json", "hedgerow/SweepRequest"))
        # The server reads in order, so with its pong the subscriptions are in force and nothing later is missed.
        self._socket.ping().wait(self._timeout_s)

    def _wait_for_answer(self, request_id: str) -> tuple[dict[str, Any], ReceivedCloud]:
        """Wait for the facts of a request; its cloud is the last one before them."""
        deadline = time.monotonic() + self._timeout_s
        cloud: TopicMessage | None = None
        while True:
            message = self._receive(deadline)
            if not isinstance(message, TopicMessage):
                continue
            if message.subscription == _POINTS:
                cloud = message
                continue
            answer: dict[str, Any] = json.loads(message.payload)
            if answer["id"] != request_id:
                continue
            if "error" in answer:
                raise InputError("request", answer["error"])
            if cloud is None or cloud.log_time_ns != answer["log_time_ns"]:
                raise SocketError(f"{self._url}: a cloud was lost; read faster, or ask again")
            return answer, ros2_messages().read_cloud(cloud.payload)

    def _send(self, message: str | bytes) -> None:
        try:
            self._socket.send(message)
        except live_package("websockets").exceptions.ConnectionClosed:
            raise SocketError(f"{self._url}: the server is gone") from None

    def _receive(self, deadline_s: float) -> TopicMessage | dict[str, Any] | None:
        try:
            return decode_message(self._socket.recv(timeout=max(0.0, deadline_s - time.monotonic())))
        except TimeoutError:
            raise SocketError(f"{self._url}: no answer within {self._timeout_s:g} s") from None
        except live_package("websockets").exceptions.ConnectionClosed:
            raise SocketError(f"{self._url}: the server is gone") from None


def _pose_fields(pose: Pose) -> dict[str, list[float]]:
    return {"position_m": pose.position_m.tolist(), "quaternion_xyzw": pose.quaternion_xyzw.tolist()}
