# SPDX-License-Identifier: Apache-2.0
"""What a client may ask for: a pose, and how to fire from it. Bad requests are refused in one sentence.

As JSON: {"id": "7", "pose": {"position_m": [1, 2, 3]}, "seed": 4}. A geometry_msgs/PoseStamped in CDR does as well; it
leaves everything else at its default.
"""

import json
from typing import Annotated, Any, Self, cast

import numpy as np
from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, Parameters
from hedgerow.errors import InputError, shown
from hedgerow.frames import Pose, Trajectory
from hedgerow.live.publisher import ros2_messages

Metres = Annotated[float, Field(allow_inf_nan=False, ge=-1e8, le=1e8)]  # more than round the Earth
Triple = tuple[Metres, Metres, Metres]
Id = Annotated[str, Field(max_length=200)]

_LAST_NS = (1 << 31) * 1_000_000_000  # seconds of a ROS stamp have 31 bits


class PoseFields(Parameters):
    """Where the sensor is, T_map_sensor."""

    position_m: Triple
    """Position x, y, z in the map frame."""
    quaternion_xyzw: tuple[Finite, Finite, Finite, Finite] = (0.0, 0.0, 0.0, 1.0)
    """Orientation: a quaternion of unit length, within 0.001."""

    def pose(self) -> Pose:
        """Return the pose. Raises InputError if the quaternion is not of unit length."""
        return Pose(np.array(self.position_m), np.array(self.quaternion_xyzw))


class SweepRequest(Parameters):
    """A request for one sweep."""

    id: Id = ""
    """Any text; it is returned with the answer, so that a client can tell its own answers."""
    stamp_ns: int | None = Field(None, ge=0, lt=_LAST_NS)
    """Time at which the sweep starts; it becomes the stamp of the cloud. Default: the server's clock."""
    pose: PoseFields
    """Pose of the sensor at the start of the sweep."""
    end: PoseFields | None = None
    """Pose at the end of the sweep; the sensor moves straight and turns evenly in between. Default: it stands still."""
    velocity_mps: Triple | None = None
    """Instead of `end`: velocity of the sensor during the sweep, map frame; it does not turn."""
    seed: int = Field(0, ge=0, lt=1 << 63)
    """Seed of the random numbers; the same seed and sweep number give the same answer."""
    number: int | None = Field(None, ge=0, lt=1 << 31)
    """Number of the sweep: selects the part of the scan pattern and the random numbers. Default: the server counts."""
    misses: bool = False
    """Whether pulses without a return are in the cloud too, as points at NaN."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.end is not None and self.velocity_mps is not None:
            raise InputError("velocity_mps", "give either this or end")
        return self

    def trajectory(self, start_ns: int, sweep_s: float) -> Trajectory:
        """Return T_map_sensor from the start of the sweep to its end.

        Raises:
            InputError: a quaternion is not of unit length.
        """
        start = self.pose.pose()
        end = start if self.end is None else self.end.pose()
        if self.velocity_mps is not None:
            end = Pose(start.position_m + sweep_s * np.array(self.velocity_mps), start.quaternion_xyzw)
        times = np.array([start_ns, start_ns + round(sweep_s * 1e9)])
        return Trajectory.from_poses(times, [start, end])


def read_request(data: bytes, encoding: str) -> SweepRequest:
    """Read what a client published.

    Args:
        data: the message.
        encoding: "json", or "cdr" for a PoseStamped.

    Raises:
        InputError: not such a message, or a field is wrong; names it.
    """
    if encoding == "cdr":
        position_m, quaternion, stamp_ns = ros2_messages().read_pose(data)
        found: Any = {"stamp_ns": stamp_ns, "pose": {"position_m": position_m, "quaternion_xyzw": quaternion}}
    else:
        found = _from_json(data)
    return make_request(found)


def make_request(fields: Any) -> SweepRequest:
    """Check plain fields and make a request of them.

    Raises:
        InputError: a field is wrong; names it.
    """
    request = SweepRequest.parse(fields, "a request")
    request.trajectory(0, 1.0)  # so that a bad quaternion is refused here
    return request


def read_id(data: bytes, encoding: str) -> str:
    """Return the id in a message, "" if it has none that can be read."""
    try:
        found = _from_json(data).get("id", "") if encoding == "json" else ""
    except InputError:
        return ""
    return found[:200] if isinstance(found, str) else ""


def _from_json(data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError("request", f"not JSON ({str(error).splitlines()[0]})") from None
    if not isinstance(found, dict):
        raise InputError("request", f"expected a JSON object, found {shown(found)}")
    return cast("dict[str, Any]", found)
