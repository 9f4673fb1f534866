# SPDX-License-Identifier: Apache-2.0
"""A knob for fidelity: fewer elements that answer beams much as the many did (Tallavajhula 2018 §5.2.2).

Gaussians are merged two by two, the pair first whose merge costs least: the bound of Runnalls (2007) for what the
density of the returns loses in log-likelihood,

    cost = 1/2 [(m₁ + m₂) log det S - m₁ log det S₁ - m₂ log det S₂]

with S the covariance of both together. The stop mass m of an element is the share of the beams that meet it that it
stops, and of a merged one the sum over its rows: learners make elements small where beams are many, so each row counts
as met by equally many.

The merged element has the mean of the two by stop area R (stop_area.py), which is where returns come from under even
light, and a covariance that gives these returns their spread. Returns of an element lie κ S around its mean (κ is
`StopProfile.spread`: 1 or so under extinction and depth, 2.4 under permeability with τ = 3.5, whose rays are stopped
out to the rim), so with shares s₁, s₂ of R and means Δ apart S = s₁ S₁ + s₂ S₂ + s₁ s₂ Δ Δᵀ / κ. Its law's number k is
the one with which it stops what the two stopped together: R(k) = R₁ + R₂ - R₁₂, R₁₂ the area that both would stop. So
beams are stopped as often as before, on average over all directions and places around the pair. A single beam is not:
a merged element spreads over the gap between the two. For thin elements the rule says that optical depth is conserved
over the projected area.

Merging goes in rounds. Each round takes, among pairs of neighbours, those of which each is the other's cheapest, the
cheapest of these first, a twelfth of the elements at most; equals go by number. So the same world always gives the
same coarser world.

Tables keep the same share of their elements. Triangles are simplified (simplified.py), which needs the package
fast-simplification; points and beams that are remembered cannot be merged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arguments import as_whole
from hedgerow.errors import InputError
from hedgerow.world.elements import Elements, Gaussians, Triangles
from hedgerow.world.simplified import groups_of, mix_intensity, pool_labels, simplify_triangles
from hedgerow.world.stop_area import MAX_DEPTH, StopProfile, profile_of, shared_area_m2, solve_depth, stop_area_m2

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_NEIGHBOURS = 8
"""An element may merge with this many of those nearest to it."""
_SHARE = 1 / 12
"""Of the elements that merge in a round, at most. Smaller is nearer to one pair at a time, and slower."""
_PAIRS_AT_ONCE = 1 << 17
_MIXED = frozenset({"mean_m", "covariance_m2", "stop", "intensity", "intensity_sigma", "label"})
"""Columns that a merge mixes. Elements that differ in any other, such as `object`, are never merged."""


def coarser_tables(tables: Mapping[str, Elements], elements: int) -> dict[str, Elements]:
    """Return tables with `elements` elements or a few less, as far as neighbours may merge.

    Args:
        tables: of a world, by name.
        elements: how many of all kinds together; every table keeps the same share, and one element at least.

    Returns:
        The tables with fewer rows; the same tables, if there are few enough already. There may be more elements than
        asked for where objects may not merge, each keeps one, or where edges of a surface cannot be collapsed.

    Raises:
        InputError: not a number of elements, the world remembers points or beams, or it has triangles and the
            package fast-simplification is not installed.
    """
    wanted = as_whole("elements", elements, 1, 2**62, "a whole number of 1 or more")
    if sum(map(len, tables.values())) <= wanted:
        return dict(tables)
    if tables.keys() & {"points", "beams"}:
        raise InputError("world", "remembers what was measured, which cannot be merged; learn another model")
    share = wanted / sum(map(len, tables.values()))
    done: dict[str, Elements] = {}
    for name, table in tables.items():
        n_wanted = max(1, int(share * len(table)))
        if isinstance(table, Triangles):
            done[name] = simplify_triangles(table, n_wanted)
        else:
            done[name] = merge_gaussians(table, n_wanted) if isinstance(table, Gaussians) else table
    return done


def merge_gaussians(gaussians: Gaussians, n_wanted: int) -> Gaussians:
    """Return `n_wanted` Gaussians, or a few more where the rest may not merge; in the order of their first rows."""
    if len(gaussians) <= n_wanted:
        return gaussians
    merging = Merging.start(gaussians)
    while merging.n > n_wanted:
        pairs = _best_pairs(merging)[: min(merging.n - n_wanted, max(1, int(_SHARE * merging.n)))]
        if len(pairs) == 0:
            break
        merging = merging.after(pairs)
    return merging.apply_to(gaussians)


@dataclass(frozen=True)
class Merging:
    """The elements on the way."""

    profile: StopProfile
    spread: float
    """κ: how much wider than S the returns lie."""
    origin_m: Floats
    """(3,) middle of all."""
    mean_m: Floats
    """(N, 3) about the middle."""
    covariance_m2: Floats
    """(N, 3, 3) with the floor of the table, so that determinants are above 0."""
    depth: Floats
    """(N,) k of the law."""
    area_m2: Floats
    """(N,) stop area."""
    group: Rows
    """(N,) only elements of one group merge."""
    row: Rows
    """(M,) for each row of the table, the element that it has become part of."""
    mass: Floats
    """(N,) stop mass: the shares that its rows stop of the beams that meet them, added up."""
    weight: Floats
    """(M,) stop area of each row of the table."""

    @classmethod
    def start(cls, gaussians: Gaussians) -> "Merging":
        """Begin with all rows of a table."""
        profile = profile_of(gaussians)
        variance, axes = np.linalg.eigh(gaussians.covariance_m2)
        floored = np.maximum(variance, gaussians.min_sigma_m**2)
        covariance_m2 = (axes * floored[:, None, :]) @ axes.transpose(0, 2, 1)
        depth = profile.depths(gaussians.stop)
        area_m2 = stop_area_m2(covariance_m2, depth, profile)
        whole_m2 = stop_area_m2(covariance_m2, np.full(len(depth), MAX_DEPTH), profile)
        origin_m = gaussians.mean_m.mean(axis=0)
        return cls(
            profile=profile,
            spread=profile.spread,
            origin_m=origin_m,
            mean_m=gaussians.mean_m - origin_m,
            covariance_m2=covariance_m2,
            depth=depth,
            area_m2=area_m2,
            group=groups_of(gaussians, _MIXED),
            row=np.arange(len(gaussians)),
            mass=area_m2 / whole_m2,
            weight=area_m2,
        )

    @property
    def n(self) -> int:
        """Number of elements."""
        return len(self.mean_m)

    def after(self, pairs: Rows) -> "Merging":
        """Return the elements with (P, 2) pairs merged; each goes where the lower row of the two was."""
        first, second = pairs.min(axis=1), pairs.max(axis=1)
        mean_m, covariance_m2 = _joint(self, first, second)
        area_m2 = self.area_m2[first] + self.area_m2[second] - self._shared(first, second)
        values = {
            "mean_m": mean_m,
            "covariance_m2": covariance_m2,
            "depth": solve_depth(covariance_m2, area_m2, self.profile),
            "area_m2": area_m2,
            "mass": self.mass[first] + self.mass[second],
        }
        stays = np.ones(self.n, dtype=bool)
        stays[second] = False
        new_row = np.cumsum(stays) - 1
        new_row[second] = new_row[first]
        columns: dict[str, Any] = {"group": self.group[stays], "row": new_row[self.row]}
        for name, merged in values.items():
            column = getattr(self, name).copy()
            column[first] = merged
            columns[name] = column[stays]
        return replace(self, **columns)

    def _shared(self, first: Rows, second: Rows) -> Floats:
        """Return the areas that both of a pair would stop."""
        one = np.where(self.area_m2[first] <= self.area_m2[second], first, second)
        two = first + second - one
        covariance_m2 = self.covariance_m2[one], self.covariance_m2[two]
        depth = self.depth[one], self.depth[two]
        shared = shared_area_m2(self.mean_m[two] - self.mean_m[one], covariance_m2, depth, self.profile)
        return np.minimum(shared, self.area_m2[one])

    def apply_to(self, gaussians: Gaussians) -> Gaussians:
        """Return the table with these elements; rows that met no other stay the same bytes."""
        n_parts = np.bincount(self.row, minlength=self.n)
        first = np.full(self.n, len(self.row))
        np.minimum.at(first, self.row, np.arange(len(self.row)))
        merged = n_parts > 1
        mean, sigma = mix_intensity(gaussians, self.row, self.weight, self.n)

        def put(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            chosen = old[first]
            chosen[merged] = new[merged]
            return chosen

        return replace(
            gaussians[first],
            mean_m=put(gaussians.mean_m, self.mean_m + self.origin_m),
            covariance_m2=put(gaussians.covariance_m2, self.covariance_m2),
            stop=put(gaussians.stop, self.profile.stops(self.depth)),
            intensity=put(gaussians.intensity, mean),
            intensity_sigma=put(gaussians.intensity_sigma, sigma),
            label=pool_labels(gaussians.label, self.row, self.n),
        )


def _best_pairs(merging: Merging) -> Rows:
    """Return (P, 2) pairs of which each is the other's cheapest, cheapest first; at least one, if any may merge."""
    pairs = _neighbours(merging)
    if len(pairs) == 0:
        return pairs
    cost = np.concatenate([_cost(merging, some) for some in _in_parts(pairs)])
    # By number among equals, so that there is one order, and the first pair is the best of both its elements.
    pairs = pairs[np.argsort(cost, kind="stable")]
    rank = np.arange(len(pairs))
    best = np.full(merging.n, len(pairs))
    for end in pairs.T:
        np.minimum.at(best, end, rank)
    return pairs[(best[pairs[:, 0]] == rank) & (best[pairs[:, 1]] == rank)]


def _neighbours(merging: Merging) -> Rows:
    """Return (P, 2) pairs of neighbours of one group, each once, by number."""
    from scipy.spatial import cKDTree  # here: it takes long to load

    place = merging.mean_m
    span_m = float(np.ptp(place, axis=0).sum()) + 1.0
    if merging.group.any():  # groups stand apart along an axis of their own
        place = np.column_stack([place, 4 * span_m * merging.group])
    k = min(_NEIGHBOURS + 1, merging.n)
    distance, found = (np.asarray(each) for each in cKDTree(place).query(place, k=k, workers=-1))
    near = (distance < 2 * span_m) & (found < merging.n)
    one = np.broadcast_to(np.arange(merging.n)[:, None], found.shape)[near]
    two = found[near]
    key = np.sort((np.minimum(one, two) * merging.n + np.maximum(one, two))[one != two])
    key = key[np.append(True, key[1:] > key[:-1])[: len(key)]]  # np.unique takes several times as long
    return np.column_stack([key // merging.n, key % merging.n])


def _cost(merging: Merging, pairs: Rows) -> Floats:
    """Return Runnalls' bound for (P, 2) pairs."""
    first, second = pairs.T
    one, two = merging.mass[first], merging.mass[second]
    whole = _log_det(_joint(merging, first, second)[1])
    before = one * _log_det(merging.covariance_m2[first]) + two * _log_det(merging.covariance_m2[second])
    return 0.5 * ((one + two) * whole - before)


def _joint(merging: Merging, first: Rows, second: Rows) -> tuple[Floats, Floats]:
    """Return the (P, 3) means and (P, 3, 3) covariances of pairs, by weight; evenly if neither stops anything."""
    one, both = merging.area_m2[first], merging.area_m2[first] + merging.area_m2[second]
    share = np.divide(one, both, out=np.full(len(one), 0.5), where=both > 0)[:, None]
    apart_m = merging.mean_m[second] - merging.mean_m[first]
    covariance_m2 = share[..., None] * merging.covariance_m2[first]
    covariance_m2 += (1 - share)[..., None] * merging.covariance_m2[second]
    covariance_m2 += (share * (1 - share) / merging.spread * apart_m)[:, :, None] * apart_m[:, None, :]
    return merging.mean_m[first] + (1 - share) * apart_m, covariance_m2


def _log_det(matrix: Floats) -> Floats:
    a, b, c = matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 0, 2]
    d, e, f = matrix[:, 1, 1], matrix[:, 1, 2], matrix[:, 2, 2]
    return np.log(np.maximum(a * (d * f - e * e) - b * (b * f - c * e) + c * (b * e - c * d), 1e-300))


def _in_parts(pairs: Rows) -> Iterator[Rows]:
    for begin in range(0, len(pairs), _PAIRS_AT_ONCE):
        yield pairs[begin : begin + _PAIRS_AT_ONCE]
