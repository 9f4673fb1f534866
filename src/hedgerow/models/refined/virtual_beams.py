# SPDX-License-Identifier: Apache-2.0
"""Virtual beams: what a beam between two rings of a sweep would have measured, where its neighbours leave no doubt.

Elements that are fitted to measured beams know these beams, and leave the space between them open: seen from elsewhere,
a road has white strips between its rings. So beams are added between neighbours on two adjacent rings:

- neither returned: the beam between them did not return either;
- both returned, and a third ring continues the line through their returns: there is one surface, and the beam meets it
  on that line. Nothing is added where the line bends: at edges, in leaves, beyond the last ring on the ground.

Which beams are drawn follows from the sweep alone, so they are the same however a log is cut.

Equations: docs/models.md §16.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.log import Beams, Log, Returns

_LEAST_RINGS = 4
"""A sensor with fewer rings has no surface between them to speak of."""


class VirtualBeamParameters(Parameters):
    """How beams between the rings of a sweep are made up for training."""

    share: NotNegative = 1.0
    """Virtual beams for each pair of neighbouring beams; 0: none."""
    max_turn_mrad: Positive = 5.0
    """Neighbours on the next ring are at most this far off in azimuth."""
    max_bend: NotNegative = 0.05
    """How far the third return may lie off the line through the two, in parts of their distance."""
    slack_m: NotNegative = 0.02
    """The same, as a length: range noise."""
    max_gap_m: Positive = 3.0
    """Returns farther apart than this are not joined."""


@dataclass(frozen=True, slots=True)
class AddVirtualBeams:
    """Adds virtual beams to every sweep of a log."""

    parameters: VirtualBeamParameters

    def __call__(self, log: Log) -> Log:
        """Return the log with virtual beams behind its own."""
        made = [sweep for _, sweep in log.iter_sweeps()]
        return Log.concatenate([log, *(virtual_beams(sweep, self.parameters) for sweep in made)])


def virtual_beams(sweep: Log, parameters: VirtualBeamParameters) -> Log:
    """Return beams between the rings of one sweep, with first returns alone; none for a sensor of few rings."""
    grid = _neighbours(sweep, parameters.max_turn_mrad / 1000)
    rng = np.random.default_rng((int(sweep.beams.sweep[0]) & 0xFFFFFFFF, len(sweep))) if len(sweep) else None
    if grid is None or rng is None or parameters.share == 0:
        return sweep[:0]
    one, other = grid.one, grid.other
    range_m = sweep.returns.first_m.astype(np.float64)
    u = rng.uniform(0.1, 0.9, len(one))
    drawn = rng.uniform(0, 1, len(one)) < parameters.share
    neither = np.isinf(range_m[one]) & np.isinf(range_m[other])
    kept = drawn & (neither | _is_one_surface(sweep, grid, range_m, parameters))
    return _between(sweep, one[kept], other[kept], u[kept], range_m)


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Neighbouring beams on adjacent rings, and the beams of the rings on either side."""

    one: NDArray[np.intp]
    """(P,) a beam."""
    other: NDArray[np.intp]
    """(P,) its neighbour on the next higher ring."""
    before: NDArray[np.intp]
    """(P,) the neighbour of `one` on the next lower ring; -1 if there is none."""
    after: NDArray[np.intp]
    """(P,) the neighbour of `other` on the next higher ring; -1 if there is none."""


def _neighbours(sweep: Log, max_turn_rad: float) -> _Pairs | None:
    direction, ring = sweep.beams.direction, sweep.beams.ring
    azimuth = np.arctan2(direction[:, 1], direction[:, 0])
    order = np.lexsort((azimuth, ring))
    starts = np.flatnonzero(np.r_[True, np.diff(ring[order].astype(np.int64)) != 0]) if len(order) else order
    if len(starts) < _LEAST_RINGS:
        return None
    by_ring: list[NDArray[np.intp]] = np.split(order, starts[1:])
    # Numbers of rings need not be in the order of their elevation.
    height = [np.median(direction[rows, 2]) for rows in by_ring]
    by_ring = [by_ring[k] for k in np.argsort(height, kind="stable")]
    next_up = np.full(len(sweep), -1)
    next_down = np.full(len(sweep), -1)
    for lower, upper in pairwise(by_ring):
        next_up[lower] = _nearest(azimuth[lower], azimuth[upper], upper, max_turn_rad)
        next_down[upper] = _nearest(azimuth[upper], azimuth[lower], lower, max_turn_rad)
    one = np.flatnonzero(next_up >= 0)
    other = next_up[one]
    return _Pairs(one, other, next_down[one], next_up[other])


def _nearest(
    azimuth: NDArray[np.float32], others: NDArray[np.float32], among: NDArray[np.intp], max_turn_rad: float
) -> NDArray[np.intp]:
    """Return which beam is nearest in azimuth to each given one; -1 if none is near.

    Args:
        azimuth: (M,) of the given beams [rad].
        others: (K,) of the beams to choose from, ascending [rad].
        among: (K,) their numbers.
        max_turn_rad: how far off a beam may be.
    """
    place = np.searchsorted(others, azimuth)
    right, left = place % len(others), place - 1  # around the back, too
    off_right, off_left = (_turn(others[side] - azimuth) for side in (right, left))
    off = np.minimum(off_right, off_left)
    return np.where(off <= max_turn_rad, among[np.where(off_right <= off_left, right, left)], -1)


def _turn(angle_rad: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the size of an angle, the short way round [rad]."""
    size = np.abs(angle_rad)
    return np.minimum(size, np.float32(2 * np.pi) - size)


def _is_one_surface(
    sweep: Log, pairs: _Pairs, range_m: NDArray[np.float64], parameters: VirtualBeamParameters
) -> NDArray[np.bool_]:
    """Tell which pairs returned from one line that a third ring continues, by horizontal distance and height."""
    direction = sweep.beams.direction.astype(np.float64)
    with np.errstate(invalid="ignore"):  # a component of 0 times inf, of what did not return
        away_m = range_m * np.hypot(direction[:, 0], direction[:, 1])
        up_m = range_m * direction[:, 2]
        place = np.stack([away_m, up_m], axis=1)
        along = place[pairs.other] - place[pairs.one]
        gap_m = np.hypot(*along.T)
        allowed_m = parameters.max_bend * gap_m + parameters.slack_m
        continued = np.zeros(len(gap_m), dtype=bool)
        for third in (pairs.before, pairs.after):
            offset = place[third] - place[pairs.one]
            off_m = np.abs(along[:, 0] * offset[:, 1] - along[:, 1] * offset[:, 0]) / gap_m
            continued |= (third >= 0) & (off_m <= allowed_m)
        return continued & (gap_m > 0) & (gap_m <= parameters.max_gap_m)


def _between(
    sweep: Log, one: NDArray[np.intp], other: NDArray[np.intp], u: NDArray[np.float64], range_m: NDArray[np.float64]
) -> Log:
    """Return the beams at the shares `u` of the way from one direction to the other, on the line of their returns."""
    mixed = {
        name: (1 - u)[:, None] * column[one] + u[:, None] * column[other]
        for name, column in (("origin_m", sweep.beams.origin_m), ("direction", sweep.beams.direction.astype(float)))
    }
    length = np.linalg.norm(mixed["direction"], axis=1)
    with np.errstate(divide="ignore"):  # no return is 1 / 0
        between_m = length / ((1 - u) / range_m[one] + u / range_m[other])
    columns: dict[str, Any] = sweep.beams[one].columns() | {
        "origin_m": mixed["origin_m"],
        "direction": (mixed["direction"] / length[:, None]).astype(np.float32),
    }
    returns = _nearer_returns(sweep, np.where(u < 0.5, one, other), between_m.astype(np.float32))
    return replace(sweep[one], beams=Beams.without_checks(columns), returns=returns)


def _nearer_returns(sweep: Log, nearer: NDArray[np.intp], range_m: NDArray[np.float32]) -> Returns:
    """Return first returns at these ranges, with intensity, label and colour of the nearer beam's first return."""
    known = {name: column for name, column in sweep.returns[nearer].columns().items() if column is not None}
    if sweep.returns.n_per_pulse > 1:
        known = {name: _first_alone(name, column) for name, column in known.items()}
        known["range_m"][:, 0] = range_m
    else:
        known["range_m"] = range_m
    return Returns.without_checks(known)


def _first_alone(name: str, column: NDArray[Any]) -> NDArray[Any]:
    """Return an (N, R) column with all but the first returns as those of no return are."""
    empty = {"range_m": np.inf, "intensity": np.nan, "element": -1}.get(name, 0)
    alone = np.full_like(column, empty)
    alone[:, 0] = column[:, 0]
    return alone
