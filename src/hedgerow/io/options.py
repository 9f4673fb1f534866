# SPDX-License-Identifier: Apache-2.0
"""ReadOptions: what can be said about a recording that its files do not say themselves. WriteOptions: how to write one.

One list of each for all formats, for `open_log(path, trajectory="poses.tum")`, `write_log(log, path, organised=True)`
and `hedgerow convert --set NAME=VALUE`. No name is in both lists. A format takes only some of them (the table in
formats.py says which) and refuses the others.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field

from hedgerow.base.arrays import FARTHEST_M
from hedgerow.base.parameters import Finite, NotNegative, Parameters, Positive
from hedgerow.errors import InputError, shown
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.source import Settings
from hedgerow.io.trajectory import read_trajectory

Coordinate = Annotated[float, Field(ge=-FARTHEST_M, le=FARTHEST_M, allow_inf_nan=False)]
_OLD_NAMES = {"compensated": "deskewed"}
"""Options that were renamed; the old spelling still works."""


class ReadOptions(Parameters):
    """How to read a log that is not in Hedgerow's own format."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    trajectory: Trajectory | str | Path | None = None
    """Poses of the sensor in the map (of the vehicle, if mount is given): a trajectory, or a file of one."""
    mount: list[Finite] | None = Field(default=None, min_length=6, max_length=6)
    """Pose of the sensor on the vehicle whose trajectory is given: x y z [m], roll pitch yaw [degrees]."""
    scanner_m: list[Coordinate] | None = Field(default=None, min_length=3, max_length=3)
    """Position of a scanner that stood still, in the coordinates of the file: x y z [m]."""
    sensor: str | None = None
    """Name of the lidar in the catalogue (hedgerow sensors). Default: what the files say, or usual for the format."""
    rate_hz: Positive | None = None
    """Sweeps per second. Default: from the times of the sweeps."""
    min_range_m: NotNegative | None = None
    """Beams with a return nearer than this are left out: they hit the vehicle. Default: that of the sensor, or 0."""
    max_range_m: float | None = Field(default=None, gt=0)
    """Farther returns count as missing; a missing return says that nothing was met up to here. Default: that of the
    sensor, or of the format."""
    recover: Literal["auto", "yes", "no"] = "auto"
    """Whether to work out the rings and missing returns that a cloud does not hold: auto does where that is sure, yes
    refuses a log where it is not, no leaves every beam with a return."""
    deskewed: bool | None = None
    """Whether the points of a sweep were already moved into the frame of one instant (motion-compensated). Default:
    what is usual for the format."""
    elevation_bias_deg: Finite | None = Field(default=None, ge=-5, le=5)
    """Added to the elevation of all beams. Default: 0.205 for KITTI, whose calibration is off by that, else 0."""
    map_origin_m: list[Coordinate] | None = Field(default=None, min_length=3, max_length=3)
    """Subtracted from global coordinates, such as UTM, to get those of the map: x y z [m]. Default: near the first
    point or pose if that is far out, else 0; KITTI raw: the first pose."""

    topic: str | None = None
    """Topic of the point clouds or packets in a bag. Default: the only one there."""
    pose_topic: str | None = None
    """Topic of the poses in a bag: odometry, poses, or /tf. Default: /tf, else the only odometry, else poses."""
    map_frame: str | None = None
    """TF frame to take for the map. Default: map, else odom, else world, else the top of the tree."""
    static: bool = False
    """Whether the sensor stood still: at the map's origin, or at the pose that mount gives."""
    metadata: str | Path | None = None
    """File with the metadata of an Ouster lidar (JSON; default: the one beside the capture with the same name) or the
    calibration of an HDL-64E (YAML; default: what its packets tell)."""

    def apply_to(self, settings: Settings) -> Settings:
        """Return settings with the sensor and limits of the options, where they are given."""
        given: dict[str, Any] = {
            "sensor": self.sensor,
            "min_range_m": self.min_range_m,
            "max_range_m": self.max_range_m,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        return replace(settings, **changes)

    @property
    def mount_pose(self) -> Pose:
        """T_base_sensor of `mount`, or the identity."""
        if self.mount is None:
            return Pose()
        return Pose.from_xyz_rpy(self.mount[:3], np.deg2rad(self.mount[3:]))

    def sensor_trajectory(self) -> Trajectory | None:
        """Return T_map_sensor, read from its file if need be, or None if no trajectory is given."""
        if self.trajectory is None:
            return None
        if isinstance(self.trajectory, Trajectory):
            return self.trajectory @ self.mount_pose
        return read_trajectory(self.trajectory) @ self.mount_pose


class WriteOptions(Parameters):
    """How to write a log, where a format has more ways than one."""

    organised: bool = False
    """Whether a sweep is an organised cloud, as drivers send it: a row for each laser, a column for each firing of all
    of them, and a point at NaN where nothing came back. Only for scans that are such a grid, not of a Mid-360. Default:
    the returns alone in firing order, and missing returns in a topic of their own."""


def read_options(given: dict[str, Any], taken: tuple[str, ...], name: str) -> ReadOptions:
    """Check options for reading a format.

    Args:
        given: the options by name; None means not given.
        taken: those that the format takes.
        name: of the format, for the error.

    Raises:
        InputError: unknown, of another type, out of bounds, or not for this format.
    """
    given = {_OLD_NAMES.get(key, key): value for key, value in given.items()}
    return ReadOptions.parse(_require_taken(ReadOptions, given, taken, name), name)


def write_options(given: dict[str, Any], taken: tuple[str, ...], name: str) -> WriteOptions:
    """Check options for writing a format; otherwise as `read_options`."""
    return WriteOptions.parse(_require_taken(WriteOptions, given, taken, f"writing {name}"), name)


def split_options(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part options that may be for reading or for writing.

    Raises:
        InputError: one is neither.
    """
    both = [*ReadOptions.model_fields, *_OLD_NAMES, *WriteOptions.model_fields]
    for key in given:
        if key not in both:
            listed = ", ".join(name for name in both if name not in _OLD_NAMES)
            raise InputError(shown(key)[1:-1], f"there is no such option; there are {listed}")
    writing = {key: value for key, value in given.items() if key in WriteOptions.model_fields}
    return {key: value for key, value in given.items() if key not in writing}, writing


def _require_taken(kind: type[Parameters], given: dict[str, Any], taken: tuple[str, ...], name: str) -> dict[str, Any]:
    given = {key: value for key, value in given.items() if value is not None}
    for key in given:
        if key not in kind.model_fields:
            raise InputError(shown(key)[1:-1], f"there is no such option; there are {', '.join(kind.model_fields)}")
        if key not in taken:
            raise InputError(key, f"{name} does not take this option; it takes {', '.join(taken) or 'none'}")
    return given
