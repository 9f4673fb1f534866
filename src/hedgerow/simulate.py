# SPDX-License-Identifier: Apache-2.0
"""The simulator: aim, fire, add the sensor's noise, sweep by sweep along a trajectory.

    for sweep in hr.simulate(world, sensor, trajectory, seed=7):
        writer.append(sweep)

`fire_sweep` is the algorithm, `simulate` repeats it along a trajectory, `replay` fires the beams of a log again. The
command line, the viewer, the live server and the experiments all come through here, so the same world, sensor,
trajectory and seed give the same bytes everywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays, rotation
from hedgerow.base.arguments import as_whole, require_kind
from hedgerow.base.columns import set_fields
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams, Log
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import MAX_SWEEP_NUMBER, Aim, extent
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.world import World
from hedgerow.world.prefetch import SWEEPS_AHEAD, Foresees
from hedgerow.world.reach import require_reach, require_same_place

SAME_ORIGIN_M = 0.001
"""Map origins that differ by less than this are the same."""
MAX_SWEEPS = 10_000_000
"""Sweeps of one simulation: eleven days at 10 Hz."""


def fire_sweep(
    world: World,
    sensor: Sensor,
    trajectory: Trajectory,
    number: int,
    start_ns: int,
    *,
    seed: int = 0,
    noise: bool | None = None,
    aim: Aim | None = None,
    mount: Pose | None = None,
    reported: Trajectory | None = None,
) -> Log:
    """Fire one sweep: aim the pulses, fire them at the world, add the sensor's noise.

    Args:
        number: which sweep of the scan; pulse ids, and with them random numbers, follow from it.
        start_ns: when it starts, in the time of the trajectory [ns].
        reported: what the log takes for the trajectory. Default: the true one.
        world, sensor, trajectory, seed, noise, aim, mount: as in `simulate`.
    """
    believed = trajectory if reported is None else reported
    nominal = sensor.sweep_at(believed, number, start_ns, mount=mount)
    is_exact = believed is trajectory and (aim is None or aim.is_ideal)
    true = nominal if is_exact else sensor.sweep_at(trajectory, number, start_ns, mount=mount, aim=aim)
    log = world.fire(true, seed, sensor=sensor, noise=noise)
    # As a real sensor does, the log reports pulses where they were meant to go, from where the vehicle seemed to be.
    return replace(log, beams=nominal, metadata=log.metadata | _provenance(trajectory, aim, mount))


@dataclass(frozen=True, eq=False)
class Simulation:
    """A drive of one sensor through one world.

    Iterate it, or ask for single sweeps: a sweep has the same bytes alone, in turn, or on another machine.
    """

    world: World
    sensor: Sensor
    trajectory: Trajectory
    """T_map_base."""
    start_ns: NDArray[np.int64]
    """(S,) when each sweep starts, in the time of the trajectory [ns]."""
    seed: int = 0
    noise: bool | None = None
    """Whether to add the sensor's noise. None: unless the world has it already, from the log it was learned from."""
    aim: Aim | None = None
    """How the true pulses differ from those that the log reports."""
    mount: Pose | None = None
    """T_base_sensor. None: the trajectory is the sensor's own."""
    pose_errors: PoseErrors | None = None
    """How the poses that the log reports differ from the true ones."""

    def __post_init__(self) -> None:
        """Check what each argument is."""
        _require_kinds(self.world, self.sensor, self.trajectory, self.noise, self.aim, self.mount)
        require_kind("pose_errors", self.pose_errors, (PoseErrors, NoneType), "PoseErrors")
        require_seed(self.seed)
        start_ns = arrays.as_time_ns("start_ns", self.start_ns, arrays.n_rows("start_ns", self.start_ns))
        if len(start_ns) == 0:
            raise InputError("start_ns", "a simulation has at least one sweep")
        set_fields(self, {"start_ns": start_ns})

    def __len__(self) -> int:
        """Count the sweeps."""
        return len(self.start_ns)

    def __iter__(self) -> Iterator[Log]:
        """Fire all sweeps in turn."""
        return map(self.sweep, range(len(self)))

    @cached_property
    def reported(self) -> Trajectory:
        """The trajectory, T_map_base, as the logs have it: with the errors of its poses."""
        return self.trajectory if self.pose_errors is None else self.pose_errors.displace(self.trajectory, self.mount)

    def sweep(self, number: int) -> Log:
        """Fire one sweep; numbers past the last drive the same trajectory again, later."""
        as_whole("number", number, 0, MAX_SWEEP_NUMBER)
        if isinstance(self.world, Foresees):
            self._tell_what_comes(self.world, number % len(self))
        log = fire_sweep(
            self.world,
            self.sensor,
            self.trajectory,
            number,
            int(self.start_ns[number % len(self)]),
            seed=self.seed,
            noise=self.noise,
            aim=self.aim,
            mount=self.mount,
            reported=self.reported,
        )
        if self.pose_errors is not None and not self.pose_errors.is_ideal:
            log = replace(log, metadata=log.metadata | {"pose_errors": self.pose_errors.model_dump(mode="json")})
        return log if number < len(self) else _delay(log, self.delay_ns(number))

    def _tell_what_comes(self, world: Foresees, number: int) -> None:
        coming_ns = self.start_ns[number : number + SWEEPS_AHEAD]
        # A sweep that does not fit into the trajectory is refused when it is fired, not before.
        position_m, quaternion = self.trajectory.at(
            np.clip(coming_ns, self.trajectory.start_ns, self.trajectory.end_ns)
        )
        if self.mount is not None:
            position_m = position_m + rotation.rotate(quaternion, self.mount.position_m)
        world.expect(position_m, self.sensor.max_range_m)

    def delay_ns(self, number: int) -> int:
        """Return how much later than in the time of the trajectory a sweep is fired: 0 in the first drive [ns]."""
        pattern = self.sensor.pattern
        return pattern.start_ns(number) - pattern.start_ns(number % len(self))


def simulate(
    world: World,
    sensor: Sensor,
    trajectory: Trajectory,
    *,
    seed: int = 0,
    sweeps: int | None = None,
    start_s: float = 0.0,
    at_s: ArrayLike | None = None,
    noise: bool | None = None,
    aim: Aim | None = None,
    mount: Pose | None = None,
    pose_errors: PoseErrors | None = None,
    anyway: bool = False,
) -> Simulation:
    """Drive a sensor through a world; sweeps are fired when they are asked for.

    Args:
        world: what to fire at.
        sensor: what fires.
        trajectory: T_map_base.
        seed: same seed, same answer.
        sweeps: number of sweeps. Default: to the end of the trajectory.
        start_s: when the first sweep starts, after the trajectory's first pose [s].
        at_s: (S,) when each sweep starts, after the trajectory's first pose; instead of sweeps and start_s [s].
        noise: whether to add the sensor's noise. Default: unless the world has it already, from the log that it was
            learned from.
        aim: how the true pulses differ from those that the log reports: by encoder steps, within the beam's cone.
        mount: T_base_sensor. Default: the trajectory is the sensor's own.
        pose_errors: how the poses that the log reports differ from the true ones, from which the pulses are fired.
        anyway: fire even if the trajectory is nowhere near the world, which says that one of them is in another frame.

    Returns:
        The simulation: iterate it, or ask for `sweep(number)`.

    Raises:
        InputError: the sweeps do not fit into the trajectory, the trajectory is elsewhere than the world, or an
            argument is wrong; names it.
    """
    _require_kinds(world, sensor, trajectory, noise, aim, mount)
    require_kind("anyway", anyway, bool, "True or False")
    require_seed(seed)
    if at_s is None:
        begin_ns, n = extent(sensor.pattern, trajectory, start_s, None, sweeps, "sweeps")
        _require_number(n, sensor, trajectory)
        start_ns = np.array([begin_ns + sensor.pattern.start_ns(number) for number in range(n)], dtype=np.int64)
    else:
        start_ns = _start_times(sensor, trajectory, at_s, start_s, sweeps)
    require_reach(world, _driven_m(sensor, trajectory, mount, start_ns), sensor.max_range_m, anyway=anyway)
    return Simulation(world, sensor, trajectory, start_ns, seed, noise, aim, mount, pose_errors)


def replay(world: World, log: Log, *, seed: int = 0, sensor: Sensor | None = None, noise: bool = False) -> Log:
    """Fire the beams of a log again, within its range limits, as pulses of its sensor if that is known.

    Args:
        world: what to fire at.
        log: whose beams.
        seed: same seed, same answer.
        sensor: in the place of the log's own.
        noise: whether to add the sensor's noise; a world learned from a log has it already.

    Raises:
        InputError: the world lies in another map, or elsewhere; or noise is wanted and no sensor known.
    """
    require_kind("world", world, World, "a World")
    require_kind("log", log, Log, "a Log; hr.read_log reads one")
    require_same_map("world", world, log)
    limits_m = (log.min_range_m, log.max_range_m)
    simulated = world.fire(log.beams, seed, sensor=sensor or Sensor.of(log), limits_m=limits_m, noise=noise)
    return replace(simulated, sensor=log.sensor, map_origin_m=log.map_origin_m)


def require_same_map(name: str, world: World, log: Log) -> None:
    """Raise InputError, with the world's name, if world and log have different map origins, or are far apart."""
    theirs, ours = world.map_origin_m, log.map_origin_m
    # Worlds that do not know where their map lies leave its origin at 0.
    if theirs.any() and not np.allclose(theirs, ours, rtol=0, atol=SAME_ORIGIN_M):
        raise InputError(
            name,
            f"the world's map begins at {theirs.tolist()}, that of the log at {ours.tolist()}; learn and fire "
            "with logs of one map origin",
        )
    require_same_place(name, world, log.beams.origin_m, log.map_origin_m)


def _start_times(
    sensor: Sensor, trajectory: Trajectory, at_s: ArrayLike, start_s: float, sweeps: int | None
) -> NDArray[np.int64]:
    if start_s != 0.0 or sweeps is not None:
        raise InputError("at_s", "give either this or start_s and sweeps")
    times = np.atleast_1d(arrays.as_numbers("at_s", at_s).astype(np.float64))
    if times.ndim != 1 or len(times) == 0 or not np.isfinite(times).all():
        raise InputError("at_s", f"expected one finite time for each sweep, found shape {times.shape}")
    for time_s in (float(times.min()), float(times.max())):
        extent(sensor.pattern, trajectory, time_s, None, 1)
    return trajectory.start_ns + np.rint(times * 1e9).astype(np.int64)


def _require_kinds(
    world: object, sensor: object, trajectory: object, noise: object, aim: object, mount: object
) -> None:
    require_kind("world", world, World, "a World: a SceneWorld, a PhysicsWorld or a learned world")
    require_kind("sensor", sensor, Sensor, "a Sensor; for example hr.Sensor.named('vlp-16')")
    require_kind("trajectory", trajectory, Trajectory, "a Trajectory; hr.read_trajectory reads one")
    require_kind("noise", noise, (bool, np.bool_, NoneType), "True, False or None")
    require_kind("aim", aim, (Aim, NoneType), "an Aim")
    require_kind("mount", mount, (Pose, NoneType), "a Pose")


def _require_number(n: int, sensor: Sensor, trajectory: Trajectory) -> None:
    """Refuse to plan more sweeps than any drive has: the times of the trajectory must be of another unit."""
    if n > MAX_SWEEPS:
        days = (trajectory.end_ns - trajectory.start_ns) / 86_400e9
        raise InputError(
            "sweeps",
            f"the trajectory lasts {days:,.0f} days, which are {n:,} sweeps of {sensor.name}; give sweeps (at most "
            f"{MAX_SWEEPS:,}), or mend the times: float times are seconds, integers nanoseconds",
        )


def _driven_m(
    sensor: Sensor, trajectory: Trajectory, mount: Pose | None, start_ns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the (K, 3) positions of the sensor at its poses from the first to the last sweep, one before and after."""
    placed = trajectory if mount is None else trajectory @ mount
    begin_ns, last_ns = int(start_ns.min()), int(start_ns.max())
    first = max(0, int(np.searchsorted(placed.time_ns, begin_ns, side="right")) - 1)
    end_ns = last_ns + round(sensor.sweep_s * 1e9)
    return placed.position_m[first : int(np.searchsorted(placed.time_ns, end_ns)) + 1]


def _delay(log: Log, delay_ns: int) -> Log:
    return replace(log, beams=Beams.without_checks(log.beams.columns() | {"time_ns": log.beams.time_ns + delay_ns}))


def _provenance(trajectory: Trajectory, aim: Aim | None, mount: Pose | None) -> dict[str, Any]:
    said: dict[str, Any] = {"trajectory": trajectory.provenance}
    if aim is not None and not aim.is_ideal:
        said["aim"] = {"encoder": aim.encoder, "cone": aim.cone, "seed": aim.seed}
    if mount is not None:
        said["mount"] = {"position_m": mount.position_m.tolist(), "quaternion_xyzw": mount.quaternion_xyzw.tolist()}
    return said
