# SPDX-License-Identifier: Apache-2.0
"""Target: the elements that some beams can meet, and the three questions that they are asked.

What comes back (`answered`), how likely a measured range is (`log_likelihood`), and what lies on a beam (`crossings`),
from which the density of its range follows. Equations: docs/models.md §5 and §32.
"""

from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.pulse.receiver import BeamSettings, resolve_pulse
from hedgerow.sensor import Sensor
from hedgerow.world.points import Remembered
from hedgerow.world.pulsed import answered_by, fire_pulses, pulse_log_likelihood
from hedgerow.world.scene import Hits, Scene, require_threads
from hedgerow.world.world import Answered, Shot, objects_column


class Options(TypedDict):
    """Arguments of `Scene.fire` and `PointScene.fire`."""

    min_range_m: float
    max_range_m: float
    threads: int
    progress: Progress | None


@dataclass(frozen=True, slots=True, eq=False)
class Crossings:
    """Elements that may return one beam, nearest first; (K,) each."""

    mean_m: NDArray[np.float64]
    sigma_m: NDArray[np.float64]
    permeability: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Elements that some beams can meet: triangles and Gaussians in one scene, what is remembered in another."""

    scene: Scene
    points: Remembered | None = None
    beam: BeamSettings = field(default_factory=BeamSettings)
    """How pulses are sampled and received, where meshes stand among the elements."""

    @property
    def knows_forecast(self) -> bool:
        """Whether the distribution of a range is known: single rays through triangles and Gaussians alone."""
        return self.points is None and not self.scene.answers("sub_ray")

    def answered(self, beams: Beams, shot: Shot, progress: Progress | None) -> Answered:
        """Draw the returns of each pulse: of meshes by pulses with width, of what was learned by their axes alone."""
        limits = (shot.min_range_m, shot.max_range_m)
        if self.points is None and self.scene.answers("sub_ray"):
            how: dict[str, Any] = {"seed": shot.seed, "threads": shot.threads, "progress": progress}
            optics = resolve_pulse(self.beam, shot.sensor)
            return answered_by(self.scene, fire_pulses(self.scene, beams, optics, self.beam, limits, **how).returns)
        hits = self.fire(beams, shot.seed, options_of(*limits, shot.threads, progress))
        names = ("range_m", "intensity", "label", "element")
        columns = {name: getattr(hits, name) for name in names} | objects_column(self.scene, hits.element)
        return Answered(Returns.without_checks(columns), np.ones(len(beams), dtype=bool))

    def fire(self, beams: Beams, seed: int, options: Options) -> Hits:
        """Draw the first return of each pulse: the nearer one of points and other elements (Browning 2012 §4.5)."""
        if self.points is not None and self.scene.n_elements == 0:
            return self.points.fire(beams, seed=seed, **options)
        hits = self.scene.fire(beams, seed=seed, **options)
        if self.points is None:
            return hits
        return _nearer(hits, self.points.fire(beams, seed=seed, **options))

    def log_likelihood(
        self, log: Log, sensor: Sensor | None, *, min_sigma_m: float, threads: int, progress: Progress | None
    ) -> NDArray[np.float64]:
        """Return the log density of each measured range.

        Raises:
            InputError: there are points and other elements at once.
        """
        if self.points is None and self.scene.answers("sub_ray"):
            how: dict[str, Any] = {"min_sigma_m": min_sigma_m, "threads": threads, "progress": progress}
            return pulse_log_likelihood(self.scene, log, resolve_pulse(self.beam, sensor), **how)
        range_m = np.ascontiguousarray(log.returns.first_m)
        options = options_of(log.min_range_m, log.max_range_m, threads, progress)
        if self.points is None:
            return self.scene.log_likelihood(log.beams, range_m, min_sigma_m=min_sigma_m, **options)
        if self.scene.n_elements > 0:
            raise InputError("world", "has points beside other elements, which have no common score; score each alone")
        return self.points.log_likelihood(log.beams, range_m, min_sigma_m=min_sigma_m, **options)

    def crossings(self, beam: Beams, options: Options) -> Crossings:
        """List what may return one beam, nearest first; a point that it sees lets nothing pass."""
        found = self.scene.pierced(beam, max_range_m=options["max_range_m"])
        columns = [found.mean_m, found.sigma_m, found.permeability]
        if self.points is not None:
            seen = self.points.see(beam, **options)
            point = (seen.mean_m, seen.sigma_m, np.zeros(1, dtype=np.float32))
            if seen.element[0] >= 0:
                columns = [np.append(column, one) for column, one in zip(columns, point, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return Crossings(*(column[order].astype(np.float64) for column in columns))


def _nearer(a: Hits, b: Hits) -> Hits:
    first = a.range_m <= b.range_m
    return Hits(
        range_m=np.where(first, a.range_m, b.range_m),
        intensity=np.where(first, a.intensity, b.intensity),
        label=np.where(first, a.label, b.label),
        element=np.where(first, a.element, b.element),
        incidence_cosine=np.where(first, a.incidence_cosine, b.incidence_cosine),
    )


@dataclass(frozen=True, slots=True, eq=False)
class RangeDensity:
    """Density of the range along one beam (Browning 2012 §5.4); its integral and `no_return` make 1."""

    range_m: NDArray[np.float64]
    density_per_m: NDArray[np.float64]
    """In the shape of `range_m` [1/m]."""
    no_return: float
    """Probability that nothing comes back from within the limits."""


def mix_densities(
    crossings: Crossings, range_m: NDArray[np.float64], min_range_m: float, max_range_m: float, min_sigma_m: float
) -> RangeDensity:
    """Weight elements by the probability that the beam reaches and is stopped by them (Browning 2012 eq. 22 to 24).

    Args:
        crossings: elements on the beam, nearest first.
        range_m: (M,) where to evaluate.
        min_range_m, max_range_m: beyond these the density is 0 and adds to the chance of no return.
        min_sigma_m: sharper elements count as this wide: a density needs a bound.
    """
    from scipy import special

    reaching = np.concatenate([[1.0], np.cumprod(crossings.permeability)])
    weight = (1 - crossings.permeability) * reaching[:-1]
    sigma = np.maximum(crossings.sigma_m, min_sigma_m)
    z = (range_m[:, None] - crossings.mean_m) / sigma
    density = np.exp(-0.5 * z**2) @ (weight / (sigma * np.sqrt(2 * np.pi)))
    within = (range_m > 0) & (range_m >= min_range_m) & (range_m <= max_range_m)
    nearer = special.ndtr((min_range_m - crossings.mean_m) / sigma)
    farther = special.ndtr((crossings.mean_m - max_range_m) / sigma)
    no_return = float(reaching[-1] + weight @ (nearer + farther))
    return RangeDensity(range_m, np.where(within, density, 0.0), min(no_return, 1.0))


def options_of(low: float, high: float, threads: int, progress: Progress | None) -> Options:
    """Return arguments of kernels, the number of threads checked."""
    return {"min_range_m": low, "max_range_m": high, "threads": require_threads(threads), "progress": progress}
