# SPDX-License-Identifier: Apache-2.0
"""Recordings of a physics scene, which plays reality: what a real sensor's log would hold.

Pulses have width (`PhysicsWorld`, sub-rays drawn anew for each pulse), and the encoder has steps: the laser does not go
quite where the log says. So each pulse is fired somewhere within its encoder step, and logged along its nominal
direction. Repeated pulses then spread in range as they do in the field. The electronics add noise of their own; as the
catalogue's figure is a maker's upper bound, the experiments state what their papers found.

`SceneDrive` records drives through a shipped scene, `record_drive` through any world, `record_standing` from one place.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import randomness
from hedgerow.frames import Pose, Trajectory
from hedgerow.log import Beams, Log
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.scenes.site import Site, load_site
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Beam
from hedgerow.sensor.drive import Aim, rotate_about_z
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.simulate import Simulation, simulate
from hedgerow.world import World

REALITY = BeamSettings(sampling="stratified")
"""How the pulses of a recording are sampled."""
SENSOR = "hdl-64e-s2"
# Of the sensor; Browning 2012 §3.3.2 fits 15 mm on all surfaces, their roughness included.
NOISE_M = 0.012


def record_drive(
    world: World,
    sensor: Sensor,
    trajectory: Trajectory,
    n_sweeps: int,
    seed: int,
    *,
    span_s: tuple[float, float],
    noise_m: float,
    pose_errors: PoseErrors | None = None,
) -> Simulation:
    """Plan `n_sweeps` sweeps, evenly spread over a span of the trajectory's time, numbered from 0."""
    at_s = np.linspace(span_s[0], span_s[1] - sensor.sweep_s, n_sweeps)
    noisy, aim = with_noise(sensor, noise_m), Aim("uniform", seed=seed)
    return simulate(world, noisy, trajectory, seed=seed, at_s=at_s, noise=True, aim=aim, pose_errors=pose_errors)


def with_noise(sensor: Sensor, noise_m: float) -> Sensor:
    """Return the sensor with this range noise and no other error of its electronics."""
    return sensor.with_range(sigma_m=noise_m, step_m=0.0, dropout=0.0)


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
    direction = rotate_about_z(nominal.direction.astype(np.float64), turn).astype(np.float32)
    true = Beams.without_checks(nominal.columns() | {"direction": direction})
    log = world.fire(true, seed, sensor=with_noise(sensor, noise_m), noise=True)
    return replace(log, beams=nominal)


@dataclass(frozen=True)
class SceneDrive:
    """A stretch of a scene that plays reality, driven again and again, by any sensor and with any seed."""

    site: Site
    span_s: tuple[float, float]
    """Which part of the trajectories is driven, from and to [s]."""

    @classmethod
    def open(cls, scene: str, span_s: tuple[float, float]) -> Self:
        """Build a shipped scene, for the wavelength of the HDL-64E."""
        return cls(load_site(scene, wavelength_nm=Sensor.named(SENSOR).config.beam.wavelength_nm), span_s)

    def record(
        self,
        trajectory: str | Trajectory,
        n_sweeps: int,
        seed: int,
        sensor: str = SENSOR,
        *,
        width: float = 1.0,
        pose_errors: PoseErrors | None = None,
    ) -> Log:
        """Return the log of one drive: `n_sweeps` sweeps, evenly spread over the span.

        Args:
            trajectory: name of one of the scene's, or one with the same times.
            n_sweeps: how many.
            seed: two drives of one trajectory with other seeds have the same beams and other returns.
            sensor: a name of the catalogue.
            width: of the pulses, as a multiple of the sensor's own; 0: rays.
            pose_errors: of the poses that the log reports. Default: none.
        """
        path = self.site.trajectories[trajectory] if isinstance(trajectory, str) else trajectory
        model = Sensor.named(sensor)
        sweeps = record_drive(
            self.site.world(REALITY.model_copy(update={"beam": _widened(model.config.beam, width)})),
            model,
            path,
            n_sweeps,
            seed,
            span_s=self.span_s,
            noise_m=NOISE_M,
            pose_errors=pose_errors,
        )
        return Log.concatenate(list(sweeps))


def _widened(beam: Beam, factor: float) -> Beam:
    sizes = (
        "divergence_horizontal_mrad",
        "divergence_vertical_mrad",
        "aperture_horizontal_mm",
        "aperture_vertical_mm",
    )
    return beam.model_copy(update={name: factor * getattr(beam, name) for name in sizes})
