# SPDX-License-Identifier: Apache-2.0
"""PoseErrors: where a vehicle believes it is, beside where it is.

Pulses are fired from the true pose; a log reports them at the pose that GPS, compass and the calibration of the mount
give (Browning 2012 §3.2 and §4.1, Goodin 2018 §3.5.3). The beams of a real log have these errors in them already, so
they are for drives alone.

    errors = PoseErrors.open("browning-2012")
    log = hr.simulate(world, sensor, trajectory, pose_errors=errors).sweep(0)

Each error is a Gauss-Markov process of time, which forgets its past within its correlation time. It is made of random
numbers keyed by seed and tick, so the error at an instant is the same whichever part of a drive is fired; other seeds
give other errors. Equations: docs/models.md §20.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow.base import randomness, rotation
from hedgerow.base.arguments import require_kind
from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Parameters
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory

PositionSigma = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
AngleSigma = Annotated[float, Field(ge=0, le=90, allow_inf_nan=False)]
CorrelationTime = Annotated[float, Field(ge=0.01, le=1e9, allow_inf_nan=False)]
Offset = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]
Angle = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]

_TICKS = 10
"""Steps of a process within its correlation time."""
_MEMORY = 14 * _TICKS
"""Steps that it remembers: what is older counts less than a millionth."""
_MAX_TICKS = 10_000_000
_NORTH, _TILT = 0, 4
"""First of the streams of random numbers: east, north and up, then heading; roll and pitch."""


class PoseErrors(Parameters):
    """Errors of the reported pose: those of GPS and compass vary in time, that of the mount is constant.

    A correlation time far longer than the drive makes an error constant; no paper gives one.
    """

    position_sigma_m: PositionSigma = 0.0
    """Standard deviation of the position (GPS), along each axis of the map."""
    position_correlation_s: CorrelationTime = 10.0
    """Correlation time of the error of the position."""
    heading_sigma_deg: AngleSigma = 0.0
    """Standard deviation of the heading (compass), about the vertical of the map."""
    heading_correlation_s: CorrelationTime = 10.0
    """Correlation time of the error of the heading."""
    tilt_sigma_deg: AngleSigma = 0.0
    """Standard deviation of roll and of pitch, about the axes of the vehicle."""
    tilt_correlation_s: CorrelationTime = 10.0
    """Correlation time of the errors of roll and pitch."""
    mount_offset_m: tuple[Offset, Offset, Offset] = (0.0, 0.0, 0.0)
    """Error of the calibrated place of the sensor: forward, left and up, in its own frame."""
    mount_rpy_deg: tuple[Angle, Angle, Angle] = (0.0, 0.0, 0.0)
    """Error of the calibrated orientation of the sensor: roll, pitch and yaw, in its own frame."""
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0
    """Seed of the errors that vary."""

    @classmethod
    def open(cls, given: str | Path) -> Self:
        """Return the errors of a preset by its name, or read them from a TOML file.

        Raises:
            FileError: the file cannot be read, or a value in it is wrong.
            InputError: no file, and no preset of that name; says which there are.
        """
        if str(given) in PRESETS:
            return cls.parse(PRESETS[str(given)], str(given))
        path = Path(given)
        if path.suffix.lower() != ".toml":
            raise InputError("pose errors", f"{given} is no preset ({', '.join(PRESETS)}) and no .toml file")
        return cls.parse_from(read_toml(path, "file of pose errors"), path)

    @property
    def is_ideal(self) -> bool:
        """Whether poses are reported as they are."""
        varying = (self.position_sigma_m, self.heading_sigma_deg, self.tilt_sigma_deg)
        return not any((*varying, *self.mount_offset_m, *self.mount_rpy_deg))

    def displace(self, trajectory: Trajectory, mount: Pose | None = None) -> Trajectory:
        """Return what is reported of a true trajectory.

        Args:
            trajectory: T_map_base, as it is.
            mount: T_base_sensor, which the error of the mount is an error of. Default: base and sensor are one.

        Returns:
            T_map_base, as it is reported: chained with `mount` it gives the reported poses of the sensor. It has the
            poses of the true one, and more between them where an error changes.

        Raises:
            InputError: the trajectory is too long for its correlation times.
        """
        require_kind("trajectory", trajectory, Trajectory, "a Trajectory; hr.read_trajectory reads one")
        if self.is_ideal:
            return trajectory
        time_ns = self._knots(trajectory)
        position_m, quaternion = trajectory.at(time_ns)
        quaternion = rotation.multiply(self._heading(time_ns), quaternion)
        quaternion = rotation.multiply(quaternion, self._tilt(time_ns))
        reported = Trajectory(time_ns, position_m + self._shift_m(time_ns), quaternion, trajectory.source)
        placed = mount or Pose()
        wrong = Pose.from_xyz_rpy(self.mount_offset_m, np.deg2rad(self.mount_rpy_deg))
        return reported @ (placed @ wrong @ placed.inverse())

    def _knots(self, trajectory: Trajectory) -> NDArray[np.int64]:
        """Return the times of the trajectory and of all ticks on it, ascending."""
        times = [trajectory.time_ns]
        for sigma, correlation_s in (
            (self.position_sigma_m, self.position_correlation_s),
            (self.heading_sigma_deg, self.heading_correlation_s),
            (self.tilt_sigma_deg, self.tilt_correlation_s),
        ):
            if sigma > 0:
                tick_ns = _tick_ns(correlation_s)
                first, last = trajectory.start_ns // tick_ns + 1, trajectory.end_ns // tick_ns
                if last - first > _MAX_TICKS:
                    lasts_s = (trajectory.end_ns - trajectory.start_ns) / 1e9
                    said = f"a correlation time of {correlation_s:g} s is too short for a drive of {lasts_s:g} s"
                    raise InputError("pose errors", f"{said}; make it longer, or fire a part of the trajectory")
                times.append(np.arange(first, last + 1, dtype=np.int64) * tick_ns)
        joined = np.unique(np.concatenate(times))
        return joined[(joined >= trajectory.start_ns) & (joined <= trajectory.end_ns)]

    def _shift_m(self, time_ns: NDArray[np.int64]) -> Array:
        """Return the (N, 3) errors of the position."""
        axes = [self._error(self.position_sigma_m, self.position_correlation_s, _NORTH + n, time_ns) for n in range(3)]
        return np.stack(axes, axis=1)

    def _heading(self, time_ns: NDArray[np.int64]) -> Array:
        """Return the (N, 4) turns about the vertical of the map."""
        return _turn(2, np.deg2rad(self._error(self.heading_sigma_deg, self.heading_correlation_s, 3, time_ns)))

    def _tilt(self, time_ns: NDArray[np.int64]) -> Array:
        """Return the (N, 4) turns by roll and pitch."""
        roll, pitch = (
            _turn(n, np.deg2rad(self._error(self.tilt_sigma_deg, self.tilt_correlation_s, _TILT + n, time_ns)))
            for n in range(2)
        )
        return rotation.multiply(pitch, roll)

    def _error(self, sigma: float, correlation_s: float, stream: int, time_ns: NDArray[np.int64]) -> Array:
        if sigma == 0:
            return np.zeros(len(time_ns))
        return sigma * gauss_markov(self.seed, randomness.POSE + 2 * stream, time_ns, correlation_s)


PRESETS: Mapping[str, Mapping[str, float]] = {
    "browning-2012": {"position_sigma_m": 0.02, "heading_sigma_deg": 0.1, "tilt_sigma_deg": 0.02}
}
"""Browning 2012 §6: "2 cm with heading error at approximately 0.1 degrees and pitch/roll at 0.02 degrees"."""


def gauss_markov(seed: int, stream: int, time_ns: NDArray[np.int64], correlation_s: float) -> Array:
    """Return a Gauss-Markov process (Ornstein and Uhlenbeck 1930) of deviation 1 at (N,) times, keyed, not drawn.

    At ticks it is the sum of all random numbers before, each counted less by its age; between two ticks it goes over
    from one to the other at constant deviation. The sum has a fixed order, so its bytes depend on nothing but the tick.
    """
    tick_ns, kept = _tick_ns(correlation_s), np.exp(-1 / _TICKS)
    tick = time_ns // tick_ns
    part = (time_ns - tick * tick_ns) / tick_ns
    first, last = int(tick.min()), int(tick.max()) + 1
    fresh = randomness.normal(seed, np.arange(first - _MEMORY + 1, last + 1, dtype=np.int64), stream)
    value = np.zeros(last - first + 1)
    for age in range(_MEMORY):
        start = _MEMORY - 1 - age
        value += np.sqrt(1 - kept**2) * kept**age * fresh[start : start + len(value)]
    left, right = value[tick - first], value[tick - first + 1]
    spread = np.sqrt((1 - part) ** 2 + part**2 + 2 * kept * part * (1 - part))
    return ((1 - part) * left + part * right) / spread


def _tick_ns(correlation_s: float) -> int:
    return round(correlation_s * 1e9 / _TICKS)


def _turn(axis: int, angle_rad: Array) -> Array:
    """Return (N, 4) quaternions that turn about one axis."""
    quaternion = np.zeros((len(angle_rad), 4))
    quaternion[:, axis], quaternion[:, 3] = np.sin(angle_rad / 2), np.cos(angle_rad / 2)
    return quaternion
