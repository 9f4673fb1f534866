# SPDX-License-Identifier: Apache-2.0
"""Target: the elements that some beams can meet, ready to be fired at, under the numbers they have in the world.

A world in memory is one target; of a world on the disk, the tiles around the beams of the moment are one.
"""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.world.hits import Hits
from hedgerow.world.points import PointScene
from hedgerow.world.scene import Progress, Scene


class Options(TypedDict):
    """Between which ranges the sensor sees, and how to go about it; as in `Scene.fire`."""

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
    """Triangles and Gaussians in one scene, points in another."""

    scene: Scene
    points: PointScene | None = None

    def fire(self, beams: Beams, seed: int, options: Options) -> Hits:
        """Draw the first return of each pulse; where a point and another element answer, the nearer one (000 §4.5)."""
        if self.points is not None and self.scene.n_elements == 0:
            return self.points.fire(beams, seed=seed, **options)
        hits = self.scene.fire(beams, seed=seed, **options)
        if self.points is None:
            return hits
        return _nearer(hits, self.points.fire(beams, seed=seed, **options))

    def log_likelihood(
        self, beams: Beams, range_m: NDArray[np.float32], min_sigma_m: float, options: Options
    ) -> NDArray[np.float64]:
        """Give the log density of each measured range.

        Raises:
            InputError: there are points and other elements at once.
        """
        if self.points is None:
            return self.scene.log_likelihood(beams, range_m, min_sigma_m=min_sigma_m, **options)
        if self.scene.n_elements > 0:
            raise InputError("world", "has points beside other elements, which 000 does not score; score each alone")
        return self.points.log_likelihood(beams, range_m, min_sigma_m=min_sigma_m, **options)

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
