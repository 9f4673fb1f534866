# SPDX-License-Identifier: Apache-2.0
"""SweepServer: pose in, returns out, over a Foxglove WebSocket.

Clients publish poses on /pose. Each is answered with a cloud on /points, its transform on /tf and a line of facts on
/answers: {"id", "stamp_ns", "log_time_ns", ...}, where log_time_ns is the time in the envelope of the cloud. Every
client hears all of these. What went wrong is a line {"id", "error"}, for the one who asked alone.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from types import TracebackType

from hedgerow.errors import HedgerowError, InputError
from hedgerow.live.inbox import FairInbox
from hedgerow.live.points import make_points
from hedgerow.live.publisher import POSES, Address, Publisher, encode_cloud, encode_transform
from hedgerow.live.request import read_id, read_request
from hedgerow.live.session import ClientMessage
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import Aim
from hedgerow.simulate import fire_sweep
from hedgerow.world import World

MAX_WAITING = 8
"""Poses of one client that may wait for their answer; more, and its oldest are dropped."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    message: ClientMessage
    came_s: float


def require_room(max_waiting: int) -> None:
    """Raise InputError unless at least one pose may wait."""
    if max_waiting < 1:
        raise InputError("max_waiting", f"expected at least 1, found {max_waiting}")


class SweepServer(AbstractContextManager["SweepServer"]):
    """Answers from the moment it is made until it is closed, one pose after the other, of each client in turn."""

    def __init__(
        self,
        world: World,
        sensor: Sensor,
        address: Address | None = None,
        *,
        noise: bool | None = None,
        aim: Aim | None = None,
        max_waiting: int = MAX_WAITING,
        say: Callable[[str], object] | None = None,
    ) -> None:
        """Start to listen.

        Args:
            world: what to fire at.
            sensor: what fires.
            address: where to listen. Default: this machine alone, port 8765.
            noise: whether to add the sensor's own noise. Default: not to a learned world, which has it.
            aim: how the true pulses differ from the scan pattern; its seed is that of each request.
            max_waiting: poses of one client that may wait; when one more comes, its oldest is dropped with a message.
            say: takes a line when a web page is refused. Default: nobody.

        Raises:
            MissingPackage, SocketError: it cannot listen.
            InputError: max_waiting below 1.
        """
        require_room(max_waiting)
        self._world, self._sensor, self._noise, self._aim = world, sensor, noise, aim
        self._max_waiting = max_waiting
        self._inbox = FairInbox[_Waiting](max_waiting)
        self._last_log_ns = 0
        self._lock = threading.Lock()
        self.n_answered = 0
        """Poses answered with a sweep."""
        self.n_refused = 0
        """Messages answered with an error."""
        self.took_s = deque[float](maxlen=10_000)
        """From a pose's arrival until its sweep was sent, of the last answers [s]."""
        with self._lock:  # a client that is very quick waits for its answer until the publisher is known
            self._publisher = Publisher(
                address or Address(), f"hedgerow: {sensor.name}", self._receive, gone=self._inbox.forget, say=say
            )
        self.url = self._publisher.url
        """What to give to a client."""
        self._worker = threading.Thread(target=self._work, name="hedgerow-serve", daemon=True)
        self._worker.start()

    def close(self) -> None:
        """Finish the answer under way, forget those that wait, and stop to listen."""
        self._inbox.close()
        self._worker.join()
        self._publisher.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _receive(self, message: ClientMessage) -> None:
        """Put a message into the inbox; what is in it is for the worker to read, since here all clients wait."""
        dropped = self._inbox.put(message.client, _Waiting(message, time.perf_counter()))
        if dropped is not None:
            said = f"dropped: more than {self._max_waiting} poses were waiting; wait for answers before asking again"
            self._refuse(dropped.message, said)
            self._publisher.warn(message.client, f"poses were {said}", "dropped")

    def _work(self) -> None:
        while (waiting := self._inbox.take()) is not None:
            try:
                self._answer(waiting)
            except HedgerowError as error:
                self._refuse(waiting.message, str(error))
            except Exception as error:  # a bug; the other clients shall not suffer from it
                logging.getLogger(__name__).exception("a request failed")
                self._refuse(waiting.message, f"the server failed with {type(error).__name__}: {error}")

    def _answer(self, waiting: _Waiting) -> None:
        message, sensor = waiting.message, self._sensor
        _require_pose(message)
        request = read_request(message.data, message.encoding)
        stamp_ns = time.time_ns() if request.stamp_ns is None else request.stamp_ns
        number = self.n_answered if request.number is None else request.number
        trajectory = request.trajectory(stamp_ns, sensor.sweep_s)
        start_s = time.perf_counter()
        aim = None if self._aim is None else replace(self._aim, seed=request.seed)
        log = fire_sweep(
            self._world, sensor, trajectory, number, stamp_ns, seed=request.seed, noise=self._noise, aim=aim
        )
        fire_s = time.perf_counter() - start_s
        points = make_points(sensor, log, stamp_ns, misses=request.misses)
        cloud = encode_cloud(points, stamp_ns, dense=not request.misses)
        transform = encode_transform(trajectory.pose_at(stamp_ns), stamp_ns)
        facts = {
            "id": request.id,
            "stamp_ns": stamp_ns,
            "sensor": sensor.name,
            "sweep_ns": trajectory.end_ns - stamp_ns,
            "seed": request.seed,
            "number": number,
            "n_points": len(points),
            "fire_ms": round(1e3 * fire_s, 3),
        }
        with self._lock:
            log_ns = self._log_time_ns()
            self._publisher.send_sweep(cloud, transform, log_time_ns=log_ns, sensor_time_ns=stamp_ns)
            self._publisher.send_answer(facts | {"log_time_ns": log_ns}, log_ns)
        self.n_answered += 1
        self.took_s.append(time.perf_counter() - waiting.came_s)

    def _refuse(self, message: ClientMessage, sentence: str) -> None:
        request_id = read_id(message.data, message.encoding)
        with self._lock:
            self.n_refused += 1
            self._publisher.send_answer({"id": request_id, "error": sentence}, self._log_time_ns(), to=message.client)

    def _log_time_ns(self) -> int:
        """Return a time that no other message has, so that a cloud and its answer can be told to belong together."""
        self._last_log_ns = max(time.time_ns(), self._last_log_ns + 1)
        return self._last_log_ns


def _require_pose(message: ClientMessage) -> None:
    topic, schema_name = message.topic, message.schema_name
    if topic != POSES:
        raise InputError(f"{topic}", f"nothing is listened for there; publish poses on {POSES}")
    if message.encoding not in ("json", "cdr"):
        raise InputError(f"{topic}", f"encoding {message.encoding!r} is not known; use json or cdr")
    if message.encoding == "cdr" and schema_name.replace("/msg/", "/") != "geometry_msgs/PoseStamped":
        raise InputError(f"{topic}", f"message {schema_name!r} is not known; use geometry_msgs/msg/PoseStamped")
