# SPDX-License-Identifier: Apache-2.0
"""One round of expectation maximisation: which element explains each range, and elements that suit what they explain.

Expectation: every beam is shared out among the elements on its way, by the ray likelihood of Browning 2012. The sums
are whole numbers in steps of 2⁻³⁰, the log density in steps of 2⁻²⁰: they add up exactly, so chunks, order and threads
do not matter.

Maximisation: stopping follows the ray likelihood exactly: a permeability is the share of passes, an extinction or a
depth takes one step up its concave likelihood. Means and covariances become those of the returned points. That is the
maximum of the points' density, not quite of the ranges': a point tells little about the shape across its own ray.

Reshaping: elements that explain nothing are pruned, similar neighbours merged, and elements that explain too much
split, within a budget of elements. Ties go to the lower element number, so the result is the same every time.

Equations: docs/models.md §13.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core
from hedgerow.base.progress import Progress
from hedgerow.log import Log
from hedgerow.models.refined.prior import ShapePrior, compose_covariance
from hedgerow.models.refined.score import RayModel
from hedgerow.models.steps.log_chunks import LogChunks
from hedgerow.models.steps.permeability import scene_of
from hedgerow.models.steps.touched_rows import TouchedRows
from hedgerow.parallel.engine import Shared
from hedgerow.parallel.log_parts import LogPart, map_log, share_with
from hedgerow.world.elements import Gaussians, Law, Triangles

Tables = tuple[Gaussians | Triangles, ...]
_SCORE_STEPS = float(1 << 20)

MIN_STOP, MAX_STOP = 1e-3, 1e5
_MAX_STEP = np.log(3.0)
MEAN_COUNT = 2.0
"""How many returns the place that an element has counts for."""
_KEPT_SPREAD = 0.36
"""Halves of a split element sit 0.8 sigma from its middle and keep 1 - 0.8² of its variance along the cut."""


@dataclass(frozen=True, slots=True, eq=False)
class RaySums:
    """Sums over beams, one row per element; they add up over chunks, bit by bit."""

    table: NDArray[np.int64]
    """(N, 14) fixed point."""
    log_density: int
    """Sum of log densities, fixed point."""
    n_beams: int

    @classmethod
    def zero(cls, n_elements: int) -> Self:
        """Sums of nothing yet."""
        return cls(np.zeros((n_elements, _core.RaySum.end), dtype=np.int64), 0, 0)

    def __add__(self, other: Self) -> Self:
        """Add the sums of two chunks."""
        return type(self)(self.table + other.table, self.log_density + other.log_density, self.n_beams + other.n_beams)

    @property
    def nll(self) -> float:
        """Mean negative log density of the measured ranges, outliers included: the `nll` of `hr.compare` [nat]."""
        return -self.log_density / _SCORE_STEPS / max(self.n_beams, 1)

    @property
    def hits(self) -> NDArray[np.float64]:
        """(N,) share of the returns that each element explains, in beams."""
        return self._column(_core.RaySum.hits)

    @property
    def passes(self) -> NDArray[np.float64]:
        """(N,) beams that passed each element."""
        return self._column(_core.RaySum.passes)

    @property
    def slope(self) -> NDArray[np.float64]:
        """(N,) first derivative of the hits' log-likelihood by the log of the extinction, or of the depth."""
        return self._column(_core.RaySum.slope)

    @property
    def curve(self) -> NDArray[np.float64]:
        """(N,) minus its second derivative."""
        return self._column(_core.RaySum.curve)

    @property
    def depth(self) -> NDArray[np.float64]:
        """(N,) optical depth that beams passed: minus both derivatives of the passes' log-likelihood."""
        return self._column(_core.RaySum.depth)

    @property
    def offset_m(self) -> NDArray[np.float64]:
        """(N, 3) sum of the returned points, relative to the element's mean, each by its share [m]."""
        return self.table[:, _core.RaySum.offset_m :][:, :3] / _core.FIXED_POINT

    @property
    def square_m2(self) -> NDArray[np.float64]:
        """(N, 3, 3) sum of their outer products [m²]."""
        lower = self.table[:, _core.RaySum.square_m2 :][:, :6] / _core.FIXED_POINT
        return lower[:, [0, 1, 3, 1, 2, 4, 3, 4, 5]].reshape(-1, 3, 3)

    def _column(self, number: _core.RaySum) -> NDArray[np.float64]:
        return self.table[:, number] / _core.FIXED_POINT


class RayCounter:
    """Shares beams out among the elements of some tables, numbered through in their order."""

    def __init__(self, tables: Tables, rays: RayModel) -> None:
        """Build the scene once."""
        self.rays = rays
        self._scene = scene_of(tables)

    def sums(self, log: Log, *, threads: int = 0, progress: Callable[[int], object] | None = None) -> RaySums:
        """Share the beams of a log out among the elements.

        Args:
            log: any chunk; second returns are left out.
            threads: 0 for all; the result does not depend on it.
            progress: called with the number of beams done.
        """
        table, log_density = _core.ray_sums(
            self._scene.native,
            self._scene.beam_arrays(log.beams),
            range_m=np.ascontiguousarray(log.returns.first_m),
            model=self.rays.native(),
            threads=threads,
            progress=progress,
        )
        return RaySums(table, int(np.rint(log_density * _SCORE_STEPS).astype(np.int64).sum()), len(log))


def gather_sums(gaussians: Gaussians, chunks: LogChunks, rays: RayModel, progress: Progress | None = None) -> RaySums:
    """Share all beams of a log out among Gaussians."""
    work = _GatherSums(share_with(chunks, gaussians), rays)
    table = RaySums.zero(len(gaussians)).table
    log_density = n_beams = 0
    for touched, some_density, n in map_log(chunks, work, progress):
        touched.add_to(table)
        log_density, n_beams = log_density + some_density, n_beams + n
    return RaySums(table, log_density, n_beams)


@dataclass(frozen=True, slots=True)
class _GatherSums:
    """Shares out the beams of one part of a log; returns rows of `RaySums.table`, sum of log densities and beams."""

    gaussians: Shared[Gaussians]
    rays: RayModel

    def __call__(self, part: LogPart) -> tuple[TouchedRows, int, int]:
        sums = self.gaussians.built(_counter, self.rays).sums(part.read())
        return TouchedRows.of(sums.table), sums.log_density, sums.n_beams


def _counter(gaussians: Gaussians, rays: RayModel) -> RayCounter:
    return RayCounter((gaussians,), rays)


def maximise_stop(gaussians: Gaussians, sums: RaySums) -> NDArray[np.float32]:
    """Return the (N,) most likely permeability, extinction or depth; the old ones where no beam came."""
    if gaussians.law == "permeability":
        met = sums.hits + sums.passes
        share = np.divide(sums.passes, met, out=gaussians.stop.astype(np.float64), where=met > 0)
        return np.clip(share, 0, 1).astype(np.float32)
    # Newton's step in the log of it, damped: for thin elements log1p gives the maximum itself, and it
    # is shorter than Newton's step everywhere, which could overshoot.
    ratio = (sums.slope - sums.depth) / (sums.curve + sums.depth + 1e-9)
    step = np.clip(np.sign(ratio) * np.log1p(np.abs(ratio)), -_MAX_STEP, _MAX_STEP)
    return np.clip(gaussians.stop * np.exp(step), MIN_STOP, MAX_STOP).astype(np.float32)


def maximise(gaussians: Gaussians, sums: RaySums, prior: ShapePrior | None = None) -> Gaussians:
    """Return the elements after one round.

    Args:
        gaussians: the elements that the sums were gathered with.
        sums: of the training beams.
        prior: shapes that elements are pulled towards. Default: their returns alone decide.
    """
    hits = sums.hits
    n = np.maximum(hits, 1e-9)[:, None]
    offset_m = sums.offset_m / n
    own_m2 = sums.square_m2 / n[:, :, None] - offset_m[:, :, None] * offset_m[:, None, :]
    before = gaussians.covariance_m2 if prior is None else prior.covariance_m2
    # An element with hardly a hit stays where and what it is; prune may drop it.
    weight = (hits / (hits + (1e-6 if prior is None else max(prior.count, 1e-6))))[:, None, None]
    trust = (hits / (hits + (1e-6 if prior is None else MEAN_COUNT)))[:, None]
    covariance_m2 = floor_covariance(weight * own_m2 + (1 - weight) * before, gaussians.min_sigma_m)
    return replace(
        gaussians,
        mean_m=gaussians.mean_m + trust * offset_m,
        covariance_m2=covariance_m2,
        stop=maximise_stop(gaussians, sums),
    )


def floor_covariance(covariance_m2: NDArray[np.float64], min_sigma_m: float) -> NDArray[np.float64]:
    """Return the covariances with no standard deviation below a floor."""
    variance, axes = np.linalg.eigh(covariance_m2)
    return compose_covariance(np.maximum(variance, min_sigma_m**2), axes)


def convert_law(gaussians: Gaussians, law: Law) -> Gaussians:
    """Return elements of constant permeability as elements of extinction or depth.

    They get twice the depth that they had, in the middle: it falls off from there. Rounds do the rest.
    """
    sigma_m = np.sqrt(np.maximum(np.einsum("nii->n", gaussians.covariance_m2) / 3, gaussians.min_sigma_m**2))
    depth = -np.log(np.clip(gaussians.stop.astype(np.float64), 0.02, 0.98))
    per = sigma_m if law == "extinction" else 1.0
    return replace(gaussians, stop=(2 * depth / per).astype(np.float32), law=law)


def prune(gaussians: Gaussians, hits: NDArray[np.float64], min_hits: float) -> tuple[Gaussians, NDArray[np.float64]]:
    """Return the elements that explain at least `min_hits` returns, and their hits; the heaviest always stays."""
    keep = hits >= min_hits
    keep[np.argmax(hits)] = True
    return gaussians[keep], hits[keep]


def split(
    gaussians: Gaussians, hits: NDArray[np.float64], *, budget: int, min_hits: float, min_sigma_m: float
) -> Gaussians:
    """Split heavy, long elements in two across their longest axis, first those with most returns times variance.

    Args:
        gaussians: the elements.
        hits: (N,) returns that each explains.
        budget: most elements in the result, unless more were given.
        min_hits: lighter elements stay whole.
        min_sigma_m: shorter elements stay whole.
    """
    variance, axes = np.linalg.eigh(gaussians.covariance_m2)
    able = np.flatnonzero((hits >= min_hits) & (variance[:, 2] > min_sigma_m**2))
    priority = hits[able] * variance[able, 2]
    chosen = able[np.argsort(-priority, kind="stable")[: max(budget - len(gaussians), 0)]]
    if len(chosen) == 0:
        return gaussians
    along_m = axes[chosen, :, 2] * np.sqrt(variance[chosen, 2])[:, None]
    shift_m = np.sqrt(1 - _KEPT_SPREAD) * along_m
    halves = replace(
        gaussians[chosen],
        covariance_m2=gaussians.covariance_m2[chosen] - shift_m[:, :, None] * shift_m[:, None, :],
        mean_m=gaussians.mean_m[chosen] + shift_m,
    )
    others = replace(halves, mean_m=gaussians.mean_m[chosen] - shift_m)
    whole = np.ones(len(gaussians), dtype=bool)
    whole[chosen] = False
    return Gaussians.join([gaussians[whole], halves, others])


def merge(gaussians: Gaussians, hits: NDArray[np.float64], budget: int) -> tuple[Gaussians, NDArray[np.float64]]:
    """Merge pairs of nearest neighbours until the elements are within the budget, cheapest first.

    A pair costs what merging loses in log-likelihood of its points, by the bound of Runnalls (2007).
    """
    while len(gaussians) > max(budget, 1):
        first, second = _mutual_pairs(gaussians.mean_m)
        weight = np.maximum(hits, 1e-9)
        a, b = gaussians[first], gaussians[second]
        share = (weight[first] / (weight[first] + weight[second]))[:, None]
        apart_m = a.mean_m - b.mean_m
        joint_m2 = share[:, :, None] * a.covariance_m2 + (1 - share)[:, :, None] * b.covariance_m2
        joint_m2 += (share * (1 - share))[:, :, None] * apart_m[:, :, None] * apart_m[:, None, :]
        size = [_log_size(c, gaussians.min_sigma_m) for c in (joint_m2, a.covariance_m2, b.covariance_m2)]
        cost = weight[first] * (size[0] - size[1]) + weight[second] * (size[0] - size[2])
        best = np.sort(np.argsort(cost, kind="stable")[: len(gaussians) - budget])
        heavier = np.where(weight[first] >= weight[second], first, second)[best]
        new = replace(
            gaussians[heavier],
            mean_m=(share * a.mean_m + (1 - share) * b.mean_m)[best],
            covariance_m2=joint_m2[best],
            stop=(share[:, 0] * a.stop + (1 - share[:, 0]) * b.stop)[best].astype(np.float32),
        )
        alone = np.ones(len(gaussians), dtype=bool)
        alone[first[best]] = alone[second[best]] = False
        hits = np.concatenate([hits[alone], (hits[first] + hits[second])[best]])
        gaussians = Gaussians.join([gaussians[alone], new])
    return gaussians, hits


def _mutual_pairs(mean_m: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the pairs, lower number first, of which each is the other's nearest neighbour; at least one."""
    from scipy.spatial import cKDTree  # here: it takes long to load

    distance, found = (np.asarray(each) for each in cKDTree(mean_m).query(mean_m, k=2))
    number = np.arange(len(mean_m))
    # Of points in one place either may come first.
    nearest = np.where(found[:, 0] == number, found[:, 1], found[:, 0])
    first = np.flatnonzero((nearest[nearest] == number) & (number < nearest))
    if len(first) == 0:
        closest = int(np.argmin(distance[:, 1]))
        a, b = sorted((closest, int(nearest[closest])))
        return np.array([a]), np.array([b])
    return first, nearest[first]


def _log_size(covariance_m2: NDArray[np.float64], min_sigma_m: float) -> NDArray[np.float64]:
    """Half the log of the determinant: what -log of a density at the mean grows with."""
    variance = np.maximum(np.linalg.eigvalsh(covariance_m2), min_sigma_m**2)
    return 0.5 * np.log(variance).sum(axis=1)
