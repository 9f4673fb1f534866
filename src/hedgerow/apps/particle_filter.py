# SPDX-License-Identifier: Apache-2.0
"""Localisation by a particle filter: odometry moves the particles, a sensor model weighs them (Thrun et al. 2005).

Particles start evenly spread around the true pose, are moved by the commanded motion plus noise, get a weight by how
likely the scan is from where they are (the map does not know who walks there), and are drawn anew by low-variance
resampling. The estimate is the weighted mean.

The sensor model is a part of the program: two models make two programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, ratio
from hedgerow.apps.space import Setting, Space, number, whole
from hedgerow.log import Beams, Log
from hedgerow.planar.sensor_model import SensorModel
from hedgerow.planar.site import nominal_states
from hedgerow.world.scene import Scene

Floats = NDArray[np.float64]

LEAST_DENSITY = 1e-3
"""Floor of the density of a reading [1/m]: a reading that a model calls impossible must not end the filter."""


class WalkTruth(NamedTuple):
    """A run of a sensor among people."""

    scene: Scene
    """The map, without them."""
    pose: Floats
    """(T, 3) true poses: x, y [m] and heading [rad]."""
    motion: Floats
    """(T - 1, 3) commanded motion from each scan to the next: forward, left [m], turn [rad], in the sensor's frame."""
    seed: int
    """Of the filter's own random numbers."""


@dataclass(frozen=True)
class ParticleFilter:
    """The filter with one sensor model."""

    model: SensorModel
    n_bearings: int
    name: str = "particle-filter"
    space: Space = field(
        default_factory=lambda: Space.of(
            particles=whole(20, 1000, 200, "number of particles"),
            spread=number(
                0.05, 1.0, 0.3, "power that the likelihood of a scan is raised to: bearings are not independent"
            ),
        )
    )
    objectives: Mapping[str, Objective] = field(
        default_factory=lambda: {
            "position": ratio("position", "n", "m", "mean distance of the estimate"),
            "late": ratio("late", "n_late", "m", "the same over the second half"),
        }
    )
    every: int = 6
    """Every so many bearings are weighed."""
    motion_sigma: tuple[float, float, float] = (0.01, 0.01, 0.01)
    """Noise that particles get on their way [m, m, rad]."""
    start_radius_m: float = 1.0
    start_turn_rad: float = np.deg2rad(10)

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Run the filter over all scans of a log."""
        if not isinstance(truth, WalkTruth):
            return fail("lost", "the scene has no map and poses")
        estimates = self.estimate(log, parameters, truth)
        if len(estimates) == 0:
            return fail("lost", "the log has no scan")
        error = np.hypot(*(estimates - truth.pose[: len(estimates)])[:, :2].T)
        late = error[len(error) // 2 :]
        return Outcome(
            {
                "position": float(error.sum()),
                "n": float(len(error)),
                "late": float(late.sum()),
                "n_late": float(len(late)),
            }
        )

    def estimate(self, log: Log, parameters: Setting, truth: WalkTruth) -> Floats:
        """Return the (T, 3) estimated poses."""
        random = np.random.default_rng(truth.seed)
        particles = self._start(truth.pose[0], int(parameters["particles"]), random)
        poses: list[Floats] = []
        for place, (_, scan) in enumerate(log.iter_sweeps()):
            if place:
                particles = move(particles, truth.motion[place - 1], np.array(self.motion_sigma), random)
            weight = self.weigh(scan, truth.pose[place], particles, truth.scene, float(parameters["spread"]))
            poses.append(mean_pose(particles, weight))
            particles = resample(particles, weight, random)
        return np.array(poses)

    def weigh(self, scan: Log, true_pose: Floats, particles: Floats, scene: Scene, power: float) -> Floats:
        """Return the (P,) weights of particles, which add up to 1.

        The scan's beams lie in the map by the true pose; in the sensor's frame they are the same for every particle.
        """
        rows = slice(None, None, self.every)
        direction = scan.beams.direction[rows]
        bearing = np.arctan2(direction[:, 1], direction[:, 0]) - true_pose[2]
        pulse = scan.beams.pulse[rows] % self.n_bearings
        reading = scan.returns.first_m[rows].astype(np.float64)
        beams = beams_from(particles, bearing, pulse)
        states = nominal_states(scene, beams, self.n_bearings, self.model.scale.high_m)
        density = self.model.density(states, np.tile(reading, len(particles)))
        score = power * np.log(np.maximum(density, LEAST_DENSITY)).reshape(len(particles), -1).sum(axis=1)
        weight = np.exp(score - score.max())
        return weight / weight.sum()

    def _start(self, pose: Floats, n: int, random: np.random.Generator) -> Floats:
        radius, angle = np.sqrt(random.uniform(size=n)), random.uniform(0, 2 * np.pi, n)
        place = pose[:2] + self.start_radius_m * (radius * np.array([np.cos(angle), np.sin(angle)])).T
        return np.column_stack([place, pose[2] + random.uniform(-1, 1, n) * self.start_turn_rad])


def beams_from(particles: Floats, bearing_rad: Floats, pulse: NDArray[np.int64]) -> Beams:
    """Return the beams of one scan from every particle, particle by particle."""
    angle = (particles[:, 2, None] + bearing_rad).ravel()
    direction = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    origin = np.repeat(np.column_stack([particles[:, :2], np.zeros(len(particles))]), len(bearing_rad), axis=0)
    return Beams.from_arrays(origins=origin, directions=direction, pulses=np.tile(pulse, len(particles)))


def move(particles: Floats, motion: Floats, sigma: Floats, random: np.random.Generator) -> Floats:
    """Return particles after a motion in their own frames, with noise."""
    forward, left, turn = (motion + sigma * random.normal(size=(len(particles), 3))).T
    cosine, sine = np.cos(particles[:, 2]), np.sin(particles[:, 2])
    step = np.column_stack([cosine * forward - sine * left, sine * forward + cosine * left, turn])
    return particles + step


def resample(particles: Floats, weight: Floats, random: np.random.Generator) -> Floats:
    """Draw particles by their weights, low-variance: one random number, equal steps."""
    n = len(particles)
    levels = (random.uniform() + np.arange(n)) / n
    return particles[np.minimum(np.searchsorted(np.cumsum(weight), levels), n - 1)]


def mean_pose(particles: Floats, weight: Floats) -> Floats:
    """Return the weighted mean pose, (3,)."""
    heading = np.arctan2(weight @ np.sin(particles[:, 2]), weight @ np.cos(particles[:, 2]))
    return np.array([weight @ particles[:, 0], weight @ particles[:, 1], heading])
