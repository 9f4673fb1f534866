# SPDX-License-Identifier: Apache-2.0
"""Scene: elements (`world/assembly.py`) and the questions that rays ask them.

A thin, checked wrapper over the native scene (`hedgerow._core`). Every world is made of one.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core, arrays
from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.progress import Progress
from hedgerow.world.assembly import Assembly
from hedgerow.world.hits import Hits, Pierced


class Scene(Assembly):
    """Meshes, Gaussians and placed scenes; frozen once it is fired at or placed in another scene."""

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
        """Find the first return of each pulse, its range drawn from the element that stops it.

        Args:
            beams: in any order; random numbers are keyed by seed and pulse, so a slice gives the slice's returns.
            seed: 0 to 2⁶⁴ - 1.
            min_range_m, max_range_m: a pulse stopped outside these gives no return [m].
            threads: 0 for all; the result does not depend on it.
            progress: called between batches; Ctrl-C is honoured there too.
        """
        if not 0 <= seed < 1 << 64:
            raise InputError("seed", f"expected 0 to 2**64 - 1, found {seed}")
        require_limits(min_range_m, max_range_m)
        answer = self.native.fire(
            self.seen(beams),
            limits=_core.RangeLimits(min_m=min_range_m, max_m=max_range_m),
            seed=seed,
            threads=require_threads(threads),
            progress=progress,
        )
        return Hits.of(answer)

    def pierced(
        self, beams: Beams, *, max_range_m: float = np.inf, threads: int = 0, progress: Progress | None = None
    ) -> Pierced:
        """List every element along each ray up to `max_range_m`, nearest first."""
        answer = self.native.pierced(
            self.seen(beams), max_range_m=max_range_m, threads=require_threads(threads), progress=progress
        )
        return Pierced(
            begin=answer.begin,
            element=answer.element,
            mean_m=answer.mean_m,
            sigma_m=answer.sigma_m,
            permeability=answer.permeability,
        )

    def count(
        self,
        beams: Beams,
        range_m: NDArray[np.float32],
        *,
        max_range_m: float = np.inf,
        window_m: float = 0.5,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Count how often each element was hit and passed, given what the beams measured.

        A triangle at t is hit if |r - t| < window, passed if r - t > window. A Gaussian is hit if the return lies in
        its tau-ellipsoid, passed if the beam goes on behind it. What lies behind the return is not counted.

        Args:
            range_m: (N,) float32 measured ranges, inf for no return within max_range_m.

        Returns:
            Hits and passes, one entry per element each.
        """
        ranges = arrays.require("range_m", range_m, np.float32, (len(beams),))
        return self.native.count(
            self.seen(beams),
            range_m=ranges,
            max_range_m=max_range_m,
            window_m=window_m,
            threads=require_threads(threads),
            progress=progress,
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
        """Give the log density of each measured range under the mixture of all elements on its ray (000 §5.4).

        Args:
            range_m: (N,) float32 measured ranges, inf for no return within the limits.
            min_sigma_m: sharper elements, such as noiseless triangles, count as this wide: a density needs a bound.

        Returns:
            (N,) natural logarithm of a density [1/m], or of the probability of no return; -inf if impossible.
        """
        ranges = arrays.require("range_m", range_m, np.float32, (len(beams),))
        require_limits(min_range_m, max_range_m)
        return self.native.log_likelihood(
            self.seen(beams),
            range_m=ranges,
            limits=_core.RangeLimits(min_m=min_range_m, max_m=max_range_m),
            min_sigma_m=min_sigma_m,
            threads=require_threads(threads),
            progress=progress,
        )

    def seen(self, beams: Beams) -> _core.BeamArrays:
        """Give the beams as the kernels take them, for kernels that are wrapped in modules of their own."""
        return beam_arrays(beams, self.origin_m.tolist())


def beam_arrays(beams: Beams, scene_origin_m: Sequence[float]) -> _core.BeamArrays:
    """Give the beams as the kernels take them, without a copy, for a scene whose frame sits at (3,) of the map [m]."""
    return _core.BeamArrays(
        origin_m=beams.origin_m,
        direction=beams.direction,
        pulse=beams.pulse,
        ring=beams.ring,
        sweep=beams.sweep,
        scene_origin_m=scene_origin_m,
    )


def require_limits(min_range_m: float, max_range_m: float) -> None:
    """Raise InputError unless something can lie between the range limits."""
    if not 0 <= min_range_m < max_range_m:
        raise InputError("range limits", f"expected 0 <= min_range_m < max_range_m, found {min_range_m}, {max_range_m}")


def require_threads(threads: int) -> int:
    """Return the number of threads, or raise InputError if it is none."""
    if not 0 <= threads <= 1024:
        raise InputError("threads", f"expected 0 (all) to 1024, found {threads}")
    return threads
