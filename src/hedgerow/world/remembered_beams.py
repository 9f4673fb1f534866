# SPDX-License-Identifier: Apache-2.0
"""BeamScene: remembered beams, the nearest of which answers (Browning 2012 §4.2, in the spirit of light fields).

How far two beams are apart the paper leaves open. Here it is the root mean square distance between their rays,
p(t) = o + t d, over the first L = `length_m` metres:

    mean over t of |Δo + t Δd|² = |Δo + L/2 Δd|² + L²/12 |Δd|²

which is the Euclidean distance between (o + L/2 d, L/√12 d): six numbers per beam, in a k-d tree.

Equations: docs/models.md §4.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hedgerow.base.progress import Progress
from hedgerow.log import Beams
from hedgerow.world.elements import RememberedBeams
from hedgerow.world.points import Remembered, SeenPoints
from hedgerow.world.store.header import Position

_AT_ONCE = 500_000


class BeamScene(Remembered):
    """Remembered beams, numbered from `first`."""

    def __init__(self, table: RememberedBeams, origin_m: Position, first: int) -> None:
        """Sort beams into a tree, in coordinates about `origin_m`, so that large map offsets do not cost digits."""
        self._table, self._first = table, first
        self._origin_m = np.array(origin_m)
        self._tree = cKDTree(self._places(table.origin_m, table.direction), balanced_tree=False)
        self._ends_m = table.ends_m()

    def see(
        self,
        beams: Beams,
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> SeenPoints:
        """Find the return of the nearest remembered beam, if it had one, projected onto each beam."""
        table = self._table
        near = self._nearest(beams, threads, progress)
        direction = beams.direction.astype(np.float64)
        mean_m = np.einsum("ij,ij->i", self._ends_m[near] - beams.origin_m, direction)
        cosine = np.minimum(np.abs(np.einsum("ij,ij->i", table.normal[near], direction)), 1)
        seen = np.isfinite(table.range_m[near]) & (mean_m > 0) & (mean_m >= min_range_m) & (mean_m <= max_range_m)

        def where_seen(values: NDArray[np.floating]) -> NDArray[np.float32]:
            return np.where(seen, values, np.nan).astype(np.float32)

        return SeenPoints(
            element=np.where(seen, self._first + near, -1),
            mean_m=np.where(seen, mean_m, np.inf).astype(np.float32),
            sigma_m=where_seen(table.noise.sigma_m(cosine, mean_m)),
            intensity=where_seen(table.intensity[near]),
            label=np.where(seen, table.label[near], np.uint16(0)),
            incidence_cosine=where_seen(cosine),
        )

    def _nearest(self, beams: Beams, threads: int, progress: Progress | None) -> NDArray[np.int64]:
        """Return the (N,) row of the nearest remembered beam; of equally near ones always the same."""
        near = np.empty(len(beams), dtype=np.int64)
        for start in range(0, len(beams), _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            places = self._places(beams.origin_m[rows], beams.direction[rows])
            near[rows] = self._tree.query(places, workers=threads or -1)[1]
            if progress is not None:
                progress(min(start + _AT_ONCE, len(beams)))
        return near

    def _places(self, origin_m: NDArray[np.float64], direction: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return (N, 6) places whose distances are those between the rays."""
        length_m, along = self._table.length_m, direction.astype(np.float64)
        middle_m = origin_m - self._origin_m + length_m / 2 * along
        return np.hstack([middle_m, length_m / np.sqrt(12) * along])
