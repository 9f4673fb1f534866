# SPDX-License-Identifier: Apache-2.0
"""SweepServer: pose in, returns out, over a Foxglove WebSocket.

Clients publish poses on /pose. Each is answered with a cloud on /points, its transform on /tf and a line of facts on
/answers: {"id", "stamp_ns", "log_time_ns", ...}, where log_time_ns is the time in the envelope of the cloud. What went
wrong is a line {"id", "error"}. Every client hears all answers.
"""

import logging
import threading
import time
from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

from hedgerow.errors import HedgerowError, InputError
from hedgerow.live.points import make_points
from hedgerow.live.publisher import POSES, Address, ClientMessage, Publisher, encode_cloud, encode_transform
from hedgerow.live.request import SweepRequest, read_id, read_request
from hedgerow.sensor import Sensor
from hedgerow.simulate import fire_sweep
from hedgerow.world import World

MAX_WAITING = 8
"""Poses that may wait for their answer; more, and the oldest are dropped."""
Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """A queue of limited length between threads. When it is full the oldest has to go: of poses, the newest matters."""

    def __init__(self, capacity: int) -> None:
        """Start empty, with room for so many."""
        self._items = deque[Item]()
        self._capacity = capacity
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Item) -> Item | None:
        """Add something and return what had to go for it, if anything."""
        with self._changed:
            dropped = self._items.popleft() if len(self._items) >= self._capacity else None
            self._items.append(item)
            self._changed.notify()
        return dropped

    def take(self) -> Item | None:
        """Wait for something and return it; None after `close`, whatever is left."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed)
            return None if self._closed else self._items.popleft()

    def close(self) -> None:
        """Let `take` return at once from now on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: SweepRequest
    came_s: float


def require_room(max_waiting: int) -> None:
    """Raise InputError unless at least one pose may wait."""
    if max_waiting < 1:
        raise InputError("max_waiting", f"expected at least 1, found {max_waiting}")


class SweepServer(AbstractContextManager["SweepServer"]):
    """Answers from the moment it is made until it is closed, one pose after the other, in the order they came in."""

    def __init__(
        self,
        world: World,
        sensor: Sensor,
        address: Address | None = None,
        *,
        noise: bool | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        """Start to listen.

        Args:
            world: what to fire at.
            sensor: what fires.
            address: where to listen. Default: this machine alone, port 8765.
            noise: whether to add the sensor's own noise. Default: not to a learned world, which has it.
            max_waiting: poses that may wait; when one more comes, the oldest is dropped with a message.

        Raises:
            MissingPackage, SocketError: it cannot listen.
            InputError: max_waiting below 1.
        """
        require_room(max_waiting)
        self._world, self._sensor, self._noise, self._max_waiting = world, sensor, noise, max_waiting
        self._inbox = Inbox[_Waiting](max_waiting)
        self._last_log_ns = 0
        self._lock = threading.Lock()
        self.n_answered = 0
        """Poses answered with a sweep."""
        self.n_refused = 0
        """Messages answered with an error."""
        self.took_s = deque[float](maxlen=10_000)
        """From a pose's arrival until its sweep was sent, of the last answers [s]."""
        with self._lock:  # a client that is very quick waits for its answer until the publisher is known
            self._publisher = Publisher(address or Address(), f"hedgerow: {sensor.name}", self._receive)
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
        """Put a pose into the inbox; called in threads of the SDK."""
        came_s = time.perf_counter()
        try:
            _require_pose(message)
            request = read_request(message.data, message.encoding)
        except HedgerowError as error:
            self._refuse(read_id(message.data, message.encoding), str(error))
            return
        dropped = self._inbox.put(_Waiting(request, came_s))
        if dropped is not None:
            said = f"dropped: more than {self._max_waiting} poses were waiting; wait for answers before asking again"
            self._refuse(dropped.request.id, said)

    def _work(self) -> None:
        while (waiting := self._inbox.take()) is not None:
            try:
                self._answer(waiting)
            except HedgerowError as error:
                self._refuse(waiting.request.id, str(error))
            except Exception as error:  # a bug; the other clients shall not suffer from it
                logging.getLogger(__name__).exception("a request failed")
                self._refuse(waiting.request.id, f"the server failed with {type(error).__name__}: {error}")

    def _answer(self, waiting: _Waiting) -> None:
        request, sensor = waiting.request, self._sensor
        stamp_ns = time.time_ns() if request.stamp_ns is None else request.stamp_ns
        number = self.n_answered if request.number is None else request.number
        trajectory = request.trajectory(stamp_ns, sensor.sweep_s)
        start_s = time.perf_counter()
        log = fire_sweep(self._world, sensor, trajectory, number, stamp_ns, seed=request.seed, noise=self._noise)
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

    def _refuse(self, request_id: str, sentence: str) -> None:
        with self._lock:
            self.n_refused += 1
            self._publisher.send_answer({"id": request_id, "error": sentence}, self._log_time_ns())

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
