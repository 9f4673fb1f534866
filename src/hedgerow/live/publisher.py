# SPDX-License-Identifier: Apache-2.0
"""Publisher: the serving end of the Foxglove WebSocket: sweeps, transforms and answers out, client messages in.

The Foxglove SDK speaks the protocol in threads of its own. A client that reads too slowly loses the oldest messages.
The SDK and rosbags, the packages of the extra `live`, are imported when they are first needed.
"""

import json
import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from hedgerow.errors import InputError, SocketError
from hedgerow.frames import Pose
from hedgerow.io.formats import require_package
from hedgerow.io.ros.bag import typestore
from hedgerow.io.ros.messages import POINT_CLOUD2, POSE_STAMPED, TF_MESSAGE, Messages

POINTS, TRANSFORMS, ANSWERS, POSES = "/points", "/tf", "/answers", "/pose"
"""Topics: three to listen to, one to publish poses on."""
MAP_FRAME, SENSOR_FRAME = "map", "lidar"
LOOPBACK = "127.0.0.1"
PORT = 8765
"""Where Foxglove looks first."""

# Most messages that wait for a slow client, about ten sweeps with what belongs to them. The SDK's 1,024 would be 3 GB
# of an HDL-64E's clouds.
_BACKLOG = 32


def live_package(name: str) -> Any:
    """Import a module of an optional package.

    Raises:
        MissingPackage: it is not installed; has the pip line.
    """
    return require_package(name, "live output", "live")


@cache
def ros2_messages() -> Messages:
    """Return what makes and reads the messages of ROS 2; the first time takes 0.2 s.

    Raises:
        MissingPackage: rosbags is not installed.
    """
    live_package("rosbags")
    types = typestore(is_ros1=False)
    for kind in (POINT_CLOUD2, TF_MESSAGE, POSE_STAMPED):
        types.get_msgdef(kind)  # writes the code for it: 20 ms each, which the first sweep need not wait for
    return Messages(types, is_ros1=False)


def encode_cloud(points: NDArray[Any], stamp_ns: int, *, dense: bool = True) -> bytes:
    """Make a PointCloud2 in the sensor's frame.

    Args:
        points: (M,) of type `POINT`.
        stamp_ns: start of the sweep [ns].
        dense: whether no point is NaN.

    Raises:
        InputError: the stamp does not fit into the message.
    """
    return ros2_messages().cloud(stamp_ns, SENSOR_FRAME, points, dense=dense)


def encode_transform(pose: Pose, stamp_ns: int) -> bytes:
    """Make a TFMessage of T_map_sensor.

    Raises:
        InputError: the stamp does not fit into the message.
    """
    transform = stamp_ns, MAP_FRAME, SENSOR_FRAME, pose.position_m, pose.quaternion_xyzw
    return ros2_messages().transforms([transform])


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str = LOOPBACK
    """Only this machine unless another one is named; 0.0.0.0 is everywhere."""
    port: int = PORT
    """0 takes a free one."""

    def __post_init__(self) -> None:
        """Check the port."""
        if not 0 <= self.port <= 65535:
            raise InputError("port", f"expected 0 to 65535, found {self.port}")

    def error(self, why: str) -> SocketError:
        """Return the error that says why nothing can listen here."""
        return SocketError(f"{self.host}:{self.port}: cannot listen there ({why}); choose another --port or --host")

    def require_free(self) -> None:
        """Find out whether one could listen here, before a scene is built for it.

        Raises:
            MissingPackage: the Foxglove SDK or rosbags is not installed.
            SocketError: the port is taken, or the host is not this machine.
        """
        live_package("foxglove.websocket")
        live_package("rosbags")
        try:
            family, kind, protocol, _, where = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                if os.name != "nt":  # as the server does: a port that was let go of just now is free
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
                probe.listen(1)
        except OSError as error:
            raise self.error(error.strerror or str(error)) from None


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """What a client published."""

    topic: str
    """On this topic."""
    encoding: str
    """As json, cdr or something else."""
    schema_name: str
    """What the client says it is."""
    data: bytes
    """The message itself."""


class Publisher(AbstractContextManager["Publisher"]):
    """A socket that listens from the moment it is made until it is closed."""

    def __init__(self, address: Address, name: str, receive: Callable[[ClientMessage], None] | None = None) -> None:
        """Start to listen.

        Args:
            address: where.
            name: what clients are told.
            receive: takes what clients publish, in a thread of the SDK. Default: they may not.

        Raises:
            MissingPackage: the Foxglove SDK or rosbags is not installed.
            SocketError: the port is taken, or the host is not this machine.
        """
        foxglove = live_package("foxglove")
        capability = live_package("foxglove.websocket").Capability
        # Held by us: with the context its channels would go. A context of our own keeps servers in one process apart.
        self._context = context = foxglove.Context()
        # Made before the server starts, so that a client hears of all of them at once.
        self._points = _ros_channel(foxglove, context, POINTS, POINT_CLOUD2)
        self._transforms = _ros_channel(foxglove, context, TRANSFORMS, TF_MESSAGE)
        self._answers: Any = None
        if receive is not None:
            self._answers = foxglove.Channel(ANSWERS, message_encoding="json", context=context)
        try:
            self._server: Any = foxglove.start_server(
                name=name,
                host=address.host,
                port=address.port,
                capabilities=[capability.Time] if receive is None else [capability.Time, capability.ClientPublish],
                server_listener=None if receive is None else _Listener(receive),
                supported_encodings=None if receive is None else ["cdr", "json"],  # Foxglove takes the first
                context=context,
                message_backlog_size=_BACKLOG,
            )
        except RuntimeError as error:
            raise address.error(str(error).rpartition("bind port: ")[2]) from None
        host = f"[{address.host}]" if ":" in address.host else address.host  # IPv6
        self.url = f"ws://{host}:{self._server.port}"
        """What to give to a client."""

    def send_sweep(self, cloud: bytes, transform: bytes, *, log_time_ns: int, sensor_time_ns: int) -> None:
        """Send a cloud and the transform of its frame.

        Args:
            cloud: a PointCloud2.
            transform: a TFMessage.
            log_time_ns: what the messages' envelope says [ns].
            sensor_time_ns: what time it is for the sensor; Foxglove shows it [ns].
        """
        self._server.broadcast_time(sensor_time_ns)
        self._transforms.log(transform, log_time=log_time_ns)
        self._points.log(cloud, log_time=log_time_ns)

    def send_answer(self, answer: dict[str, Any], log_time_ns: int) -> None:
        """Send what became of a client's message, to all clients; each knows its own ids."""
        self._answers.log(json.dumps(answer).encode(), log_time=log_time_ns)

    def close(self) -> None:
        """Stop to listen and let go of the port; a second time does nothing."""
        self._server.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()


def _ros_channel(foxglove: Any, context: Any, topic: str, message: str) -> Any:
    schema = foxglove.Schema(name=message, encoding="ros2msg", data=ros2_messages().definition(message).encode())
    return foxglove.Channel(topic, message_encoding="cdr", schema=schema, context=context)


class _Listener:
    """What the SDK calls; it wants every method, also those that have nothing to do."""

    def __init__(self, receive: Callable[[ClientMessage], None]) -> None:
        self._receive = receive
        self._channels: dict[tuple[int, int], Any] = {}

    def on_subscribe(self, client: Any, channel: Any) -> None:
        pass

    def on_unsubscribe(self, client: Any, channel: Any) -> None:
        pass

    def on_client_advertise(self, client: Any, channel: Any) -> None:
        self._channels[client.id, channel.id] = channel

    def on_client_unadvertise(self, client: Any, client_channel_id: int) -> None:
        self._channels.pop((client.id, client_channel_id), None)

    def on_message_data(self, client: Any, client_channel_id: int, data: bytes) -> None:
        channel = self._channels[client.id, client_channel_id]
        self._receive(ClientMessage(channel.topic, channel.encoding, channel.schema_name, data))
