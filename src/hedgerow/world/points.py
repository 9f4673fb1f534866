# SPDX-License-Identifier: Apache-2.0
"""PointScene: remembered points, and what beams see of them (Browning 2012 §4.2).

The point nearest to the line of a beam, or the first along it, gives the range, plus the noise of a surface with the
point's normal. A beam sees a point or it does not: there is no permeability, and points behind others shine through
(Browning 2012 Fig. 17). Positions are float64 in the map here and float32 relative to `origin_m` inside, as in `Scene`.

Equations: docs/models.md §4.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.base.progress import Progress
from hedgerow.base.randomness import require_seed
from hedgerow.log import Beams
from hedgerow.world.elements import Points
from hedgerow.world.scene import Hits, beam_arrays
from hedgerow.world.store.header import Position


@dataclass(frozen=True, slots=True, eq=False)
class SeenPoints:
    """The point that each beam sees; without one the element is -1, the mean inf, the label 0, the rest NaN."""

    element: NDArray[np.int64]
    mean_m: NDArray[np.float32]
    """Where along the beam the point stands."""
    sigma_m: NDArray[np.float32]
    """Standard deviation of the range that it returns."""
    intensity: NDArray[np.float32]
    label: NDArray[np.uint16]
    incidence_cosine: NDArray[np.float32]


def build_cloud(points: Points, origin_m: Position, first: int) -> _core.PointCloud:
    """Hand points, numbered from `first`, to the core; a cloud can be part of several scenes with that origin."""
    return _core.PointCloud(
        position=np.ascontiguousarray(points.position_m - np.array(origin_m), dtype=np.float32),
        normal=np.ascontiguousarray(points.normal),
        intensity=np.ascontiguousarray(points.intensity),
        label=np.ascontiguousarray(points.label),
        reach_m=points.reach_m,
        first=first,
    )


class Remembered(ABC):
    """What was measured, remembered: `see` finds what answers a beam, and returns and likelihood follow from that."""

    @abstractmethod
    def see(
        self,
        beams: Beams,
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> SeenPoints:
        """Find the point that each beam sees between the limits; nothing here is random."""

    def fire(
        self,
        beams: Beams,
        *,
        seed: int = 0,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Hits:
        """Draw the return of each pulse; random numbers are keyed by seed and pulse, as in `Scene.fire`."""
        limits = {"min_range_m": min_range_m, "max_range_m": max_range_m}
        seen = self.see(beams, threads=threads, progress=progress, **limits)
        normal, _ = _core.draw_normals(require_seed(seed), beams.pulse)
        range_m = seen.mean_m + seen.sigma_m * normal
        # Seen, but drawn nearer or farther than the sensor can tell: nothing within the limits. NaN fails as well.
        returned = (range_m > 0) & (range_m >= min_range_m) & (range_m <= max_range_m)
        none = np.float32(np.nan)
        return Hits(
            range_m=np.where(returned, range_m, np.float32(np.inf)),
            intensity=np.where(returned, seen.intensity, none),
            label=np.where(returned, seen.label, np.uint16(0)),
            element=np.where(returned, seen.element, np.int64(-1)),
            incidence_cosine=np.where(returned, seen.incidence_cosine, none),
        )

    def log_likelihood(
        self,
        beams: Beams,
        range_m: NDArray[np.float32],
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        min_sigma_m: float = 0.001,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """Return the log density of each measured range: one normal density around the point that is seen.

        As Browning 2012 §6.2.5 has it, such a world gives a return for certain or not at all; only the noise of a point
        close to a limit leaves a chance of neither.
        """
        from scipy import special

        limits = {"min_range_m": min_range_m, "max_range_m": max_range_m}
        seen = self.see(beams, threads=threads, progress=progress, **limits)
        any_seen = seen.element >= 0
        mean = np.where(any_seen, seen.mean_m, 0).astype(np.float64)
        sigma = np.maximum(np.where(any_seen, seen.sigma_m, 1), min_sigma_m).astype(np.float64)
        returned = np.isfinite(range_m)
        z = (np.where(returned, range_m, 0) - mean) / sigma
        density = -0.5 * z**2 - np.log(sigma * np.sqrt(2 * np.pi))
        nearer = special.log_ndtr((min_range_m - mean) / sigma)
        farther = special.log_ndtr((mean - max_range_m) / sigma)
        outside: NDArray[np.float64] = np.logaddexp(nearer, farther)
        with_point = np.where(returned, density, outside)
        return np.where(any_seen, with_point, np.where(returned, -np.inf, 0.0))


class PointScene(Remembered):
    """Clouds of points that share one origin, pick and noise."""

    def __init__(self, clouds: Sequence[_core.PointCloud], origin_m: Position, settings: Points) -> None:
        """Collect clouds, given in the order of their numbers; `pick` and `noise` are those of `settings`."""
        self._clouds = list(clouds)
        self._origin_m = list(origin_m)
        self._pick = _core.Pick[settings.pick]
        self._noise = settings.noise.native()

    def see(
        self,
        beams: Beams,
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> SeenPoints:
        """Find the point that each beam sees between the limits; nothing here is random."""
        answer = _core.see_points(
            self._clouds,
            beam_arrays(beams, self._origin_m),
            limits=_core.RangeLimits(min_m=min_range_m, max_m=max_range_m),
            pick=self._pick,
            noise=self._noise,
            threads=threads,
            progress=progress,
        )
        return SeenPoints(
            element=answer.element,
            mean_m=answer.mean_m,
            sigma_m=answer.sigma_m,
            intensity=answer.intensity,
            label=answer.label,
            incidence_cosine=answer.incidence_cosine,
        )
