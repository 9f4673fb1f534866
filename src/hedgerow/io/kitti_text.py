# SPDX-License-Identifier: Apache-2.0
"""The text files of KITTI: calibrations (`NAME: numbers`), stamps (date and time), OXTS packets, pose lists."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose
from hedgerow.io.pose_text import read_rows
from hedgerow.io.whole_file import read_text

_EARTH_RADIUS_M = 6378137.0
_N_OXTS = 30
_NEEDED = "KITTI needs it"
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,9})?")


def read_calibration(path: Path, *names: str) -> Pose:
    """Read a transform: `R` (9 numbers) and `T` (3), or one name with the 12 of a 3 x 4 matrix.

    Raises:
        FileError: missing, a name is missing, or no rotation.
    """
    found: dict[str, list[str]] = {}
    for line in read_text(path, _NEEDED).splitlines():
        name, _, rest = line.partition(":")
        found[name.strip()] = rest.split()
    try:
        columns = [np.array([float(word) for word in found[name]]).reshape(3, -1) for name in names]
        return Pose.from_matrix(np.concatenate(columns, axis=1))
    except KeyError as error:
        raise FileError(f"{path}: there is no line '{error.args[0]}:' in it; is it a KITTI calibration?") from None
    except (ValueError, InputError) as error:
        raise FileError(f"{path}: '{names[0]}:' is no transform ({error})") from None


def read_stamps(path: Path) -> NDArray[np.int64]:
    """Read lines of date and time, `2011-09-26 13:04:32.349659964`, as (K,) nanoseconds since 1970.

    Raises:
        FileError: missing, or a line that is no time; names the line.
    """
    stamps: list[int] = []
    for number, line in enumerate(read_text(path, _NEEDED).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            if not _STAMP.fullmatch(line.strip()):
                raise ValueError("not a stamp")
            stamp = np.datetime64(line.strip().replace(" ", "T"), "ns")
        except ValueError:
            raise FileError(f"{path}, line {number}: {line.strip()[:40]!r} is not a date and time") from None
        stamps.append(int(stamp.astype(np.int64)))
    return np.array(stamps, np.int64)


def require_rising(path: Path, numbers: list[int], stamps: NDArray[np.int64]) -> None:
    """Raise FileError unless the stamps of sweeps `numbers` rise."""
    stuck = np.flatnonzero(np.diff(stamps) <= 0)
    if len(stuck):
        first = int(stuck[0])
        raise FileError(
            f"{path}, line {numbers[first + 1] + 1}: the time is not later than that of line {numbers[first] + 1}; "
            "leave one of the two sweeps out"
        )


def read_oxts(path: Path) -> NDArray[np.float64]:
    """Read one OXTS packet; return latitude, longitude [degrees], altitude [m], roll, pitch, yaw [rad].

    Raises:
        FileError: missing, or not 30 finite numbers.
    """
    rows = read_rows(path, _N_OXTS, "an OXTS packet")
    values = rows.numbers(0, 6)[0]
    if not np.isfinite(values).all():
        raise FileError(f"{path}: holds NaN or infinity; the pose of this instant is not known")
    if abs(values[0]) >= 90:
        raise FileError(f"{path}: the latitude is {values[0]:g} degrees; expected less than 90")
    return values


def mercator_pose(oxts: NDArray[np.float64], first_latitude_deg: float) -> Pose:
    """Return T_map_imu of (6,) `read_oxts` values as KITTI's devkit does: Mercator, true to scale at the first pose."""
    latitude, longitude, altitude, *rpy = oxts.tolist()
    scale = np.cos(np.deg2rad(first_latitude_deg)) * _EARTH_RADIUS_M
    east, north = scale * np.deg2rad(longitude), scale * np.log(np.tan(np.deg2rad(90 + latitude) / 2))
    return Pose.from_xyz_rpy((east, north, altitude), rpy)
