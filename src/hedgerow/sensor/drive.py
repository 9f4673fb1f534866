# SPDX-License-Identifier: Apache-2.0
"""Drive: a sensor's scan pattern along a trajectory, every pulse from the pose of its own instant (rolling shutter).

`Aim` says how the pulses of a synthetic scan differ from the pattern. A sensor reports each pulse at an encoder count
and along the axis of its beam, but the light that it measured came from some ray of a truncated cone around that axis
(Deschaud 2012 §IV). The beams of a real log already contain both errors (Browning 2012 §3.2), so replaying a log never
comes through here. Equations: docs/models.md §20.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import randomness
from hedgerow.base.arguments import as_number, as_positive, as_whole, require_kind
from hedgerow.base.arrays import Array
from hedgerow.errors import InputError, shown
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams
from hedgerow.sensor.scan.pattern import Pattern

if TYPE_CHECKING:
    from hedgerow import _core
    from hedgerow.sensor.config import Beam, SensorConfig

Encoder = Literal["exact", "rounded", "uniform"]

MAX_PULSES = 150_000_000
"""Maximum number of pulses in one `Beams` (about 7 GB)."""


MAX_SWEEP_NUMBER = 2**31 - 1
"""Sweep numbers are int32."""
_MOST_S = 1e10
"""More seconds than between any two times."""
_ROUNDING_NS = 1000
"""A pulse this long before or after a trajectory still is on it."""


@dataclass(frozen=True, slots=True)
class Aim:
    """How pulses differ from the scan pattern. Raises InputError if a value is not one of those named."""

    encoder: Encoder = "exact"
    """exact: as the pattern has it. rounded: the rotor stands on the nearest encoder count. uniform: anywhere within
    half a count of that."""
    cone: bool = False
    """Whether each ray is drawn from the cross section of the beam's truncated cone, instead of being its axis."""
    seed: int = 0
    """Random numbers are keyed by this and the pulse id."""

    def __post_init__(self) -> None:
        """Check every value once."""
        require_kind("encoder", self.encoder, str, "'exact', 'rounded' or 'uniform'")
        if self.encoder not in get_args(Encoder):
            raise InputError("encoder", f"expected 'exact', 'rounded' or 'uniform', found {shown(self.encoder)}")
        require_kind("cone", self.cone, (bool, np.bool_), "True or False")
        randomness.require_seed(self.seed)

    @property
    def is_ideal(self) -> bool:
        """Whether all pulses go where the pattern says."""
        return self.encoder == "exact" and not self.cone


def apply_aim(
    pattern: "Pattern", rows: slice, pulse: NDArray[np.int64], aim: Aim, beam: "Beam", step_deg: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return origins and directions of some pulses as they really point, (N, 3) each, sensor frame.

    Args:
        pattern: the ideal scan.
        rows: which pulses of it, N of them.
        pulse: (N,) their ids.
        aim: what to apply.
        beam: shape of the beam.
        step_deg: encoder step.
    """
    origin = pattern.origin_m[rows].astype(np.float64)
    direction = pattern.direction[rows].astype(np.float64)
    if aim.encoder != "exact" and step_deg > 0:
        turn = encoder_error(pattern.rotor_rad[rows], np.deg2rad(step_deg), pulse, aim)
        origin, direction = rotate_about_z(origin, turn), rotate_about_z(direction, turn)
    if aim.cone:
        origin, direction = from_cone(origin, direction, pulse, aim.seed, beam)
    return origin.astype(np.float32), direction.astype(np.float32)


def encoder_error(rotor_rad: Array, step_rad: float, pulse: NDArray[np.int64], aim: Aim) -> Array:
    """Return by how much (N,) to turn each pulse about the axis [rad]."""
    error = np.rint(rotor_rad / step_rad) * step_rad - rotor_rad
    if aim.encoder == "uniform":
        error = error + (randomness.uniform(aim.seed, pulse, randomness.ENCODER) - 0.5) * step_rad
    return error


def spot_points(pulse: NDArray[np.int64], seed: int, beam: "Beam") -> tuple[Array, Array]:
    """Draw points uniformly from the unit spot: a disk of radius 1, or the square from -1 to 1; (N,) each."""
    first = randomness.uniform(seed, pulse, randomness.CONE_RADIUS)
    second = randomness.uniform(seed, pulse, randomness.CONE_ANGLE)
    if beam.spot == "rectangular":
        return 2 * first - 1, 2 * second - 1
    radius, angle = np.sqrt(first), 2 * np.pi * second
    return radius * np.cos(angle), radius * np.sin(angle)


def from_cone(
    origin: Array, direction: Array, pulse: NDArray[np.int64], seed: int, beam: "Beam"
) -> tuple[Array, Array]:
    """Move each ray to a point of the aperture and tilt it to the same point of the spot at 1 m; (N, 3) each."""
    across, upward = spot_points(pulse, seed, beam)
    # Straight up or down "left" is undefined; the y axis serves.
    flat = np.hypot(direction[:, 0], direction[:, 1])
    steep = flat < 1e-9
    divisor = np.where(steep, 1, flat)
    left = np.stack([-direction[:, 1] / divisor, direction[:, 0] / divisor, np.zeros(len(flat))], axis=1)
    left[steep] = (0, 1, 0)
    up = np.cross(direction, left)
    tan_h = np.tan(beam.divergence_horizontal_mrad * 1e-3 / 2)
    tan_v = np.tan(beam.divergence_vertical_mrad * 1e-3 / 2)
    half_h, half_v = beam.aperture_horizontal_mm * 1e-3 / 2, beam.aperture_vertical_mm * 1e-3 / 2
    shift = (half_h * across)[:, None] * left + (half_v * upward)[:, None] * up
    ray = direction + (tan_h * across)[:, None] * left + (tan_v * upward)[:, None] * up
    return origin + shift, ray / np.linalg.norm(ray, axis=1, keepdims=True)


def rotate_about_z(vectors: Array, angle_rad: Array) -> Array:
    """Turn (N, 3) vectors by (N,) angles about the z axis."""
    cos, sin = np.cos(angle_rad), np.sin(angle_rad)
    x, y, z = vectors.T
    return np.stack([x * cos - y * sin, x * sin + y * cos, z], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Drive:
    """Sweeps of one sensor along a trajectory; sweeps and pulses are numbered from its start."""

    config: "SensorConfig"
    """The sensor."""
    pattern: Pattern
    """Its scan at the chosen rate."""
    trajectory: Trajectory
    """T_map_base."""
    mount: Pose
    """T_base_sensor."""
    start_ns: int
    """When sweep 0 starts [ns]."""
    n_sweeps: int
    """How many sweeps to fire."""
    aim: Aim
    """How pulses differ from the pattern."""
    threads: int
    """0 uses all."""

    def sweep(self, number: int) -> Beams:
        """Fire a single sweep."""
        ideal, rows = self.pattern, self.pattern.rows(number)
        pulse = np.arange(number * ideal.pulses_per_sweep, (number + 1) * ideal.pulses_per_sweep, dtype=np.int64)
        origin_m, direction = ideal.origin_m[rows], ideal.direction[rows]
        if not self.aim.is_ideal:
            step_deg = self.config.encoder_step_deg
            origin_m, direction = apply_aim(ideal, rows, pulse, self.aim, self.config.beam, step_deg)
        placed = self._place_pattern(origin_m, direction, ideal.time_ns[rows], number // ideal.n_sweeps, 1)
        return _beams(placed, ideal.ring[rows], np.full(len(pulse), number, dtype=np.int32), pulse)

    def all_sweeps(self) -> Beams:
        """Fire all sweeps.

        Raises:
            InputError: too many pulses to hold at once.
        """
        ideal, n = self.pattern, self.n_sweeps
        n_pulses = n * ideal.pulses_per_sweep
        if n_pulses > MAX_PULSES:
            raise InputError(
                "n_sweeps",
                f"{n} sweeps are {n_pulses:,} pulses, more than {MAX_PULSES:,} at once; "
                "use drive_sweeps, or a shorter duration_s",
            )
        if not self.aim.is_ideal or ideal.n_sweeps > 1:
            return Beams.join([self.sweep(number) for number in range(n)])
        placed = self._place_pattern(ideal.origin_m, ideal.direction, ideal.time_ns, 0, n)
        number = np.repeat(np.arange(n, dtype=np.int32), ideal.pulses_per_sweep)
        return _beams(placed, np.tile(ideal.ring, n), number, np.arange(n_pulses, dtype=np.int64))

    def _place_pattern(
        self,
        origin_m: NDArray[np.float32],
        direction: NDArray[np.float32],
        time_ns: NDArray[np.int64],
        first_repeat: int,
        n_repeats: int,
    ) -> "_core.PlacedPattern":
        """Repeat pulses of the sensor frame along the trajectory; each gets the pose of its own instant.

        Pulse i of repeat k is fired at start + round((first_repeat + k) * period) + time_ns[i].
        """
        from hedgerow import _core  # here, so that listing sensors does not load the engine

        return _core.place_pattern(
            pattern_origin_m=origin_m,
            pattern_direction=direction,
            pattern_time_ns=time_ns,
            knot_time_ns=self.trajectory.time_ns,
            knot_position_m=self.trajectory.position_m,
            knot_quaternion_xyzw=self.trajectory.quaternion_xyzw,
            mount=_core.Mount(
                position_m=self.mount.position_m.tolist(), quaternion_xyzw=self.mount.quaternion_xyzw.tolist()
            ),
            repeats=_core.Repeats(
                start_ns=self.start_ns, period_ns=self.pattern.period_ns, first=first_repeat, count=n_repeats
            ),
            threads=self.threads,
        )


def extent(
    pattern: Pattern,
    trajectory: Trajectory,
    start_s: float,
    duration_s: float | None,
    n_sweeps: int | None,
    count_name: str = "n_sweeps",
) -> tuple[int, int]:
    """Return when the first sweep starts [ns] and how many there are; the arguments are those of `Sensor.drive`.

    Raises:
        InputError: the sweeps do not fit; names the argument, n_sweeps by `count_name`, as the caller knows it.
    """
    require_kind("trajectory", trajectory, Trajectory, "a Trajectory; hr.read_trajectory reads one")
    if duration_s is not None and n_sweeps is not None:
        raise InputError("n_sweeps", "give either n_sweeps or duration_s")
    as_number("start_s", start_s, -_MOST_S, _MOST_S)
    if n_sweeps is not None:
        as_whole(count_name, n_sweeps, -(2**63), 2**63, "a whole number")
    span_s = (trajectory.end_ns - trajectory.start_ns) * 1e-9
    if not 0 <= start_s <= span_s:
        raise InputError("start_s", f"{start_s} lies outside the trajectory, which lasts {span_s:g} s")
    start_ns = trajectory.start_ns + round(start_s * 1e9)
    end_ns = trajectory.end_ns
    if duration_s is not None:
        end_ns = start_ns + round(min(as_positive("duration_s", duration_s), _MOST_S) * 1e9)
        if end_ns > trajectory.end_ns:
            raise InputError("duration_s", f"{duration_s} s from {start_s} s on exceed the trajectory of {span_s:g} s")
    fitting = _fitting(pattern, end_ns - start_ns)
    if fitting == 0:
        sweep_s, left_s = pattern.period_ns * 1e-9 / pattern.n_sweeps, (end_ns - start_ns) * 1e-9
        raise InputError("trajectory", f"{left_s:g} s are left to fire in, but a sweep takes {sweep_s:g} s")
    if n_sweeps is not None and not 1 <= n_sweeps <= fitting:
        raise InputError(count_name, f"{n_sweeps} asked for, but the trajectory of {span_s:g} s has room for {fitting}")
    return start_ns, fitting if n_sweeps is None else n_sweeps


def require_on_trajectory(pattern: Pattern, trajectory: Trajectory, number: int, start_ns: int) -> None:
    """Raise InputError unless a sweep that starts at this time ends before the trajectory does: no pose is guessed."""
    end_ns = start_ns + _last_ns(pattern, number) - pattern.start_ns(number)
    if start_ns < trajectory.start_ns - _ROUNDING_NS or end_ns > trajectory.end_ns + _ROUNDING_NS:
        raise InputError(
            "start_ns",
            f"the sweep from {start_ns} to {end_ns} ns does not lie on the trajectory, which spans "
            f"{trajectory.start_ns} to {trajectory.end_ns} ns",
        )


def _fitting(pattern: Pattern, span_ns: int) -> int:
    """Count the sweeps whose last pulse is fired within the span."""
    count = int(span_ns * pattern.n_sweeps / pattern.period_ns) + 1
    while count > 0 and _last_ns(pattern, count - 1) > span_ns:
        count -= 1
    return count


def _last_ns(pattern: Pattern, number: int) -> int:
    """Return when the last pulse of a sweep is fired, after the start of the drive [ns]."""
    start_ns = round(number // pattern.n_sweeps * pattern.period_ns)
    return start_ns + int(pattern.time_ns[pattern.rows(number)][-1])


def _beams(
    placed: "_core.PlacedPattern", ring: NDArray[np.uint16], sweep: NDArray[np.int32], pulse: NDArray[np.int64]
) -> Beams:
    # Right by construction: the pattern's directions are unit and the trajectory is finite.
    return Beams.without_checks(
        {
            "origin_m": placed.origin_m,
            "direction": placed.direction,
            "time_ns": placed.time_ns,
            "ring": ring,
            "sweep": sweep,
            "pulse": pulse,
        }
    )
