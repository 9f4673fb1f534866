# SPDX-License-Identifier: Apache-2.0
"""Recordings of a physics scene, which plays reality: what a real sensor's log would hold.

Pulses have width (`PhysicsWorld`, sub-rays drawn anew for each pulse), and the encoder has steps: the laser does not go
quite where the log says. So each pulse is fired somewhere within its encoder step, and logged along its nominal
direction. Repeated pulses then spread in range as they do in the field. The electronics add noise of their own; as the
catalogue's figure is a maker's upper bound, the experiments state what their papers found.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams, Log
from hedgerow.physics.receiver import BeamSettings
from hedgerow.sensor import Sensor, randomness
from hedgerow.sensor.aim import about_z
from hedgerow.sensor.noise import degraded
from hedgerow.world import World

REALITY = BeamSettings(sampling="stratified")
"""How the pulses of a recording are sampled."""


def record_drive(
    world: World,
    sensor: Sensor,
    trajectory: Trajectory,
    n_sweeps: int,
    seed: int,
    *,
    span_s: tuple[float, float],
    noise_m: float,
) -> Iterator[Log]:
    """Give `n_sweeps` sweeps, evenly spread over a span of the trajectory's time, numbered from 0."""
    for number, start_s in enumerate(np.linspace(span_s[0], span_s[1] - sensor.sweep_s, n_sweeps)):
        start = float(start_s)
        nominal = sensor.drive(trajectory, start_s=start, n_sweeps=1)
        wobble = seed + 7919 * number  # single sweeps have the same pulse ids
        true = sensor.drive(trajectory, start_s=start, n_sweeps=1, encoder="uniform", seed=wobble)
        yield _logged(world, sensor, _numbered(nominal, number), _numbered(true, number), seed, noise_m)


def _numbered(beams: Beams, number: int) -> Beams:
    """Make a single sweep the n-th of a drive, so that no two sweeps share their random numbers."""
    sweep = np.full(len(beams), number, dtype=np.int32)
    return Beams.trusted(beams.columns() | {"sweep": sweep, "pulse": beams.pulse + number * len(beams)})


def record_standing(
    world: World, sensor: Sensor, pose: Pose, keep: NDArray[np.bool_], n_repeats: int, seed: int, *, noise_m: float
) -> Log:
    """Fire the pulses that `keep` selects from a sweep again and again from one level place, a sweep each time."""
    once = sensor.sweep(pose)[keep]
    nominal = Beams.from_arrays(
        origins=np.tile(once.origin_m, (n_repeats, 1)),
        directions=np.tile(once.direction, (n_repeats, 1)),
        rings=np.tile(once.ring, n_repeats),
        sweeps=np.repeat(np.arange(n_repeats), len(once)),
    )
    step_rad = np.deg2rad(sensor.config.encoder_step_deg)
    turn = (randomness.uniform(seed, nominal.pulse, randomness.ENCODER) - 0.5) * step_rad
    direction = about_z(nominal.direction.astype(np.float64), turn).astype(np.float32)
    true = Beams.trusted(nominal.columns() | {"direction": direction})
    return _logged(world, sensor, nominal, true, seed, noise_m)


def _logged(world: World, sensor: Sensor, nominal: Beams, true: Beams, seed: int, noise_m: float) -> Log:
    returns = world.fire(true, seed, sensor=sensor).returns
    log = Log(nominal, returns, sensor=sensor.name, min_range_m=sensor.min_range_m, max_range_m=sensor.max_range_m)
    errors = sensor.config.range.model_copy(update={"sigma_m": noise_m})
    return degraded(log, errors, seed=seed, noise=True, quantise=False, dropout=0.0)
