# SPDX-License-Identifier: Apache-2.0
"""Publisher: the serving end of the Foxglove WebSocket: sweeps, transforms and answers out, client messages in.

A guard meets the connections, each client is a session, all in one thread. A client that reads too slowly loses the
oldest messages. Websockets and rosbags, the packages of the extra `live`, are imported when they are first needed.
"""

import asyncio
import json
import socket
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any

from numpy.typing import NDArray

from hedgerow.base.access import FOXGLOVE_ORIGINS, LOOPBACK, Access
from hedgerow.base.guard import Guard, Visit, listen_at, reachable_name
from hedgerow.errors import InputError, SocketError
from hedgerow.frames import Pose
from hedgerow.io.ros.bag import typestore
from hedgerow.io.ros.messages import POINT_CLOUD2, POSE_STAMPED, TF_MESSAGE, Messages
from hedgerow.live.session import WARNING, Channel, Receive, Session, live_package

POINTS, TRANSFORMS, ANSWERS, POSES = "/points", "/tf", "/answers", "/pose"
"""Topics: three to listen to, one to publish poses on."""
MAP_FRAME, SENSOR_FRAME = "map", "lidar"
PORT = 8765
"""Where Foxglove looks first."""

_POINTS, _TRANSFORMS, _ANSWERS = 1, 2, 3  # numbers of the channels


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
    """Where to listen, and whom to let in besides programs of this machine."""

    host: str = LOOPBACK
    """Only this machine unless another one is named; 0.0.0.0 is everywhere."""
    port: int = PORT
    """0 takes a free one."""
    token: str | None = None
    """What clients have to know. Default: beyond this machine a new one, which is in the url; else nothing."""
    allow_origins: tuple[str, ...] = ()
    """Web pages that may connect besides the Foxglove app and those of this machine, such as https://app.example.org."""

    def __post_init__(self) -> None:
        """Check all of it."""
        if not 0 <= self.port <= 65535:
            raise InputError("port", f"expected 0 to 65535, found {self.port}")
        self.access()

    def access(self) -> Access:
        """Return the rules of access; each time with a new token, where one is made."""
        return Access(self.host, self.token, (*FOXGLOVE_ORIGINS, *self.allow_origins))

    def listen(self) -> socket.socket:
        """Return a socket that listens here.

        Raises:
            SocketError: the port is taken, or the host is not this machine.
        """
        try:
            return listen_at(self.host, self.port)
        except OSError as error:
            why = error.strerror or str(error)
            raise SocketError(
                f"{self.host}:{self.port}: cannot listen there ({why}); choose another --port or --host"
            ) from None

    def require_free(self) -> None:
        """Find out whether one could listen here, before a scene is built for it.

        Raises:
            MissingPackage: websockets or rosbags is not installed.
            SocketError: the port is taken, or the host is not this machine.
        """
        live_package("websockets")
        live_package("rosbags")
        self.listen().close()


class Publisher(AbstractContextManager["Publisher"]):
    """A socket that listens from the moment it is made until it is closed."""

    def __init__(
        self,
        address: Address,
        name: str,
        receive: Receive | None = None,
        *,
        gone: Callable[[int], None] | None = None,
        say: Callable[[str], object] | None = None,
    ) -> None:
        """Start to listen.

        Args:
            address: where.
            name: what clients are told.
            receive: takes what clients publish, in the thread of the socket, so quickly. Default: they may not.
            gone: takes the number of a client that has gone, likewise. Default: nobody.
            say: takes a line when a web page is refused. Default: nobody.

        Raises:
            MissingPackage: websockets or rosbags is not installed.
            SocketError: the port is taken, or the host is not this machine.
        """
        live_package("websockets.server")
        self._channels = [
            _ros_channel(_POINTS, POINTS, POINT_CLOUD2),
            _ros_channel(_TRANSFORMS, TRANSFORMS, TF_MESSAGE),
        ]
        if receive is not None:
            self._channels.append(Channel(_ANSWERS, ANSWERS, "json", "hedgerow/Answer", "jsonschema"))
        self._receive, self._gone = receive, gone
        self._server_info: dict[str, Any] = {
            "op": "serverInfo",
            "name": name,
            "capabilities": ["time"] if receive is None else ["time", "clientPublish"],
            "supportedEncodings": [] if receive is None else ["cdr", "json"],  # Foxglove takes the first
            "metadata": {},
            "sessionId": str(time.time_ns()),
        }
        self._sessions: dict[int, Session] = {}
        access = address.access()
        self._guard = Guard(address.listen(), access, self._serve, finish=self._finish, say=say)
        self.url = access.with_token(f"ws://{reachable_name(address.host)}:{self._guard.port}")
        """What to give to a client."""

    def send_sweep(self, cloud: bytes, transform: bytes, *, log_time_ns: int, sensor_time_ns: int) -> None:
        """Send a cloud and the transform of its frame.

        Args:
            cloud: a PointCloud2.
            transform: a TFMessage.
            log_time_ns: what the messages' envelope says [ns].
            sensor_time_ns: what time it is for the sensor; Foxglove shows it [ns].
        """

        def send(session: Session) -> None:
            session.send_time(sensor_time_ns)
            session.send(_TRANSFORMS, log_time_ns, transform)
            session.send(_POINTS, log_time_ns, cloud)

        self._guard.call(lambda: self._to_all(send))

    def send_answer(self, answer: dict[str, Any], log_time_ns: int, *, to: int | None = None) -> None:
        """Send what became of a client's message.

        Args:
            answer: it has the id of the message.
            log_time_ns: what the envelope says [ns].
            to: the client that gets it. Default: all of them; each knows its own ids.
        """
        data = json.dumps(answer).encode()
        self._guard.call(lambda: self._to_all(lambda session: session.send(_ANSWERS, log_time_ns, data), to))

    def warn(self, client: int, sentence: str, name: str) -> None:
        """Show a warning to one client; the last one of a name counts. Foxglove lists them."""
        self._guard.call(lambda: self._to_all(lambda session: session.send_status(WARNING, sentence, name), client))

    def close(self) -> None:
        """Send what is under way, stop to listen and let go of the port; a second time does nothing."""
        self._guard.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _to_all(self, send: Callable[[Session], None], only: int | None = None) -> None:
        for number, session in self._sessions.items():
            if only is None or number == only:
                send(session)

    async def _serve(self, visit: Visit) -> None:
        session = Session(visit, self._channels, self._receive)
        if not await session.open(self._server_info):
            return
        self._sessions[visit.number] = session
        try:
            await session.run()
        finally:
            del self._sessions[visit.number]
            if self._gone is not None:
                self._gone(visit.number)

    async def _finish(self) -> None:
        await asyncio.gather(*(session.finish() for session in self._sessions.values()))


def _ros_channel(number: int, topic: str, message: str) -> Channel:
    return Channel(number, topic, "cdr", message, "ros2msg", ros2_messages().definition(message))
