# SPDX-License-Identifier: Apache-2.0
"""Partners: which beam of one log is the same as which of another, where they were not fired alike.

Another program's simulation, or a second drive, does not have the very beams of the real log. A beam of it is the
partner of a real one if both start within `match_origin_m` of each other and point the same way within `match_deg`:

- where both logs number their rings alike, the nearest in azimuth on the same ring. Its elevation may differ by up to
  half the spacing of the rings, since nominal and calibrated angles of one laser differ;
- elsewhere the nearest in direction.

The partner's range is taken along the real beam: where the partner's return lies, projected on it. What has no partner
has no score of single beams; scores of clouds and distributions need none.

`match_deg` is 0.1: spinning sensors fire every 0.09 to 0.4 degrees and their beams are 0.1 to 0.2 degrees wide, so that
partners see nearly the same spot, and a simulation of the same sensor loses few beams whatever its phase.

Equations: docs/models.md §25.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import first_row
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.metric import Value
from hedgerow.metrics.pair import SimulatedSweep, SweepPair
from hedgerow.simulate import SAME_ORIGIN_M

SAME_DIRECTION = 1e-4
"""Directions that differ by less in each coordinate are the same."""
_FEW_PARTNERS = 0.5
_ALIKE_SHARE = 0.9  # rings whose elevations must agree for numbers of rings to mean the same lasers


def limit_ranges(range_m: NDArray[np.float32], real: Log) -> NDArray[np.float32]:
    """Return the ranges, with those outside the limits of the real log replaced by inf, no return."""
    inside = (range_m >= real.min_range_m) & (range_m <= real.max_range_m)
    return np.where(inside, range_m, np.float32(np.inf))


def has_same_beams(real: Log, simulated: Log) -> bool:
    """Whether two logs of one sweep hold the same beams in the same order."""
    return len(real) == len(simulated) and not any(wrong.any() for _, wrong in _differing(real, simulated))


def require_same_beams(name: str, real: Log, simulated: Log) -> None:
    """Raise InputError, naming the sweep and the beam, if two logs of one sweep do not hold the same beams."""
    where = f"sweep {real.beams.sweep[0]}"
    if len(simulated) != len(real):
        raise InputError(
            name, f"{where} has {len(simulated)} beams, the real log {len(real)}; fire the real log's own beams"
        )
    for what, wrong in _differing(real, simulated):
        if wrong.any():
            row = first_row(wrong)
            raise InputError(
                name,
                f"{where}, beam {row} has {what} {getattr(simulated.beams, what)[row].tolist()}, the real log "
                f"{getattr(real.beams, what)[row].tolist()}; both must hold the same beams in the same order",
            )


def _differing(real: Log, simulated: Log) -> tuple[tuple[str, NDArray[np.bool_]], ...]:
    apart = np.abs(simulated.beams.origin_m - real.beams.origin_m).max(axis=1) > SAME_ORIGIN_M
    turned = np.abs(simulated.beams.direction - real.beams.direction).max(axis=1) > SAME_DIRECTION
    return ("origin_m", apart), ("direction", turned)


def match_sweep(real: Log, other: Log, settings: CompareSettings, *, is_again: bool = False) -> SimulatedSweep:
    """Answer the beams of a real sweep by their partners in another.

    Args:
        real: one sweep.
        other: the sweep beside it; may be empty.
        settings: how near partners must be.
        is_again: whether the other is reality too.
    """
    row = find_partners(real.beams, other.beams, settings.match_deg, settings.match_origin_m)
    found = row >= 0
    theirs = row[found]
    range_m = np.full(len(real), np.inf, dtype=np.float32)
    first_m = other.returns.first_m[theirs].astype(np.float64)
    apart_m = other.beams.origin_m[theirs] - real.beams.origin_m[found]
    along = np.einsum("ij,ij->i", apart_m, real.beams.direction[found].astype(np.float64))
    cosine = np.einsum("ij,ij->i", other.beams.direction[theirs], real.beams.direction[found])
    returned = np.isfinite(first_m)
    first_m[returned] = along[returned] + first_m[returned] * cosine[returned]
    range_m[found] = first_m
    return SimulatedSweep(
        limit_ranges(range_m, real),
        None,
        is_again=is_again,
        columns={name: _spread(other, name, found, theirs) for name in ("intensity", "label")},
        own=other.beams,
        own_range_m=limit_ranges(other.returns.first_m, real),
        own_intensity=other.returns.first("intensity"),
        partner=found,
    )


def find_partners(real: Beams, other: Beams, match_deg: float, match_origin_m: float) -> NDArray[np.int64]:
    """Return for each of N real beams the row of its partner among others, -1 where there is none.

    Args:
        real, other: beams of one sweep each, map frame.
        match_deg: how far apart partners may point [deg].
        match_origin_m: how far apart they may start [m].
    """
    from scipy.spatial import cKDTree

    none = np.full(len(real), -1, dtype=np.int64)
    if len(real) == 0 or len(other) == 0:
        return none
    most_apart = _ring_tolerance(real, other)
    places = _by_ring if most_apart is not None else _by_direction
    # The chord of the angle; all keys are on unit circles or spheres.
    reach = 2 * np.sin(np.radians(match_deg) / 2)
    tree: Any = cKDTree(places(other), balanced_tree=False, compact_nodes=False)
    _, found = tree.query(places(real), distance_upper_bound=reach, workers=-1)
    row = np.where(found < len(other), found, -1)
    ours, theirs = np.flatnonzero(row >= 0), row[row >= 0]
    near = np.linalg.norm(real.origin_m[ours] - other.origin_m[theirs], axis=1) <= match_origin_m
    if most_apart is not None:
        near &= np.abs(_elevation(real)[ours] - _elevation(other)[theirs]) <= most_apart
    none[ours[near]] = theirs[near]
    return none


def _by_direction(beams: Beams) -> NDArray[np.float64]:
    return beams.direction.astype(np.float64)


def _by_ring(beams: Beams) -> NDArray[np.float64]:
    """Place beams on unit circles, one above the other, too far apart for another ring to be near."""
    places = np.empty((len(beams), 3))
    azimuth = np.arctan2(beams.direction[:, 1], beams.direction[:, 0])
    places[:, 0], places[:, 1], places[:, 2] = np.cos(azimuth), np.sin(azimuth), 10.0 * beams.ring
    return places


def _elevation(beams: Beams) -> NDArray[np.float64]:
    return np.arcsin(np.clip(beams.direction[:, 2].astype(np.float64), -1, 1))


def _ring_tolerance(real: Beams, other: Beams) -> float | None:
    """Half the spacing of the rings [rad], if both logs have rings and number them alike; else None."""
    one, two = (_ring_elevations(beams) for beams in (real, other))
    both = sorted(one.keys() & two.keys())
    if len(one) < 2 or len(both) < len(one) * _ALIKE_SHARE:
        return None
    spacing = float(np.median(np.diff(np.sort(list(one.values())))))
    alike = [abs(one[ring] - two[ring]) <= spacing / 2 for ring in both]
    return spacing / 2 if np.mean(alike) >= _ALIKE_SHARE else None


def _ring_elevations(beams: Beams) -> dict[int, float]:
    """Return the median elevation of each ring in the map [rad]."""
    order = np.argsort(beams.ring, kind="stable")
    rings, begin = np.unique(beams.ring[order], return_index=True)
    parts = np.split(_elevation(beams)[order], begin[1:])
    return {int(ring): float(np.median(part)) for ring, part in zip(rings, parts, strict=True)}


def _spread(other: Log, name: str, found: NDArray[np.bool_], theirs: NDArray[np.int64]) -> NDArray[Any] | None:
    """Return a column of the partners' first returns, one row for each real beam."""
    column = other.returns.first(name)
    if column is None:
        return None
    spread = np.zeros(len(found), dtype=column.dtype)
    spread[found] = column[theirs]
    return spread


class Partners:
    """Counts which beams and sweeps found a partner; scores nothing."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        self.match_deg, self.match_origin_m = settings.match_deg, settings.match_origin_m
        self.match_place_m = settings.match_place_m
        self.is_matched = False
        self.n_beams = self.n_partners = 0
        self.n_sweeps = self.n_alone = 0

    def add(self, pair: SweepPair) -> None:
        """Count one sweep."""
        self.n_beams += len(pair.whole.hit)
        self.n_partners += len(pair.hit)
        self.n_sweeps += 1
        self.is_matched |= pair.partner is not None
        self.n_alone += pair.own is not None and len(pair.own) == 0

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.is_matched |= other.is_matched
        for name in ("n_beams", "n_partners", "n_sweeps", "n_alone"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def require_some(self, name: str) -> None:
        """Raise InputError if no sweep of a simulated log stands beside a real one: it is from elsewhere."""
        if self.n_sweeps and self.n_alone == self.n_sweeps:
            raise InputError(
                name,
                f"none of its sweeps is within {self.match_place_m:g} m of one of the real log; are both in one map, "
                "and of one place? match_place_m sets how far they may be apart",
            )

    def values(self) -> dict[str, Value]:
        """Return nothing: it is no score."""
        return {}

    def notes(self) -> list[str]:
        """Say how many beams found a partner, and what that is, unless all beams are the same."""
        if not self.is_matched:
            return []
        share = self.n_partners / max(self.n_beams, 1)
        said = [
            f"{self.n_partners:,} of {self.n_beams:,} real beams ({share:.1%}) have a partner within "
            f"{self.match_deg:g} degrees and {self.match_origin_m:g} m: scores of single beams are over these, those "
            "of clouds and distributions over all"
        ]
        if share < _FEW_PARTNERS:
            said.append(
                "few beams have a partner: if the sensors were turned otherwise, or drove some way beside each other, "
                "match_deg and match_origin_m can be larger; partners then see other spots: look at reality again too"
            )
        if self.n_alone:
            said.append(f"{self.n_alone} of {self.n_sweeps} real sweeps have none beside them, and no score here")
        return said


@dataclass(frozen=True, slots=True)
class SweepPlace:
    """When and where a sweep was recorded, to find the one beside it."""

    number: int
    time_ns: int
    centre_m: NDArray[np.float64]

    @classmethod
    def of(cls, sweep: Log) -> Self:
        """Take the middle of a sweep."""
        beams = sweep.beams
        middle_ns = int(beams.time_ns.min()) // 2 + int(beams.time_ns.max()) // 2
        return cls(int(beams.sweep[0]), middle_ns, beams.origin_m.mean(axis=0))
