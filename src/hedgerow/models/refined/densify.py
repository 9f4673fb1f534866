# SPDX-License-Identifier: Apache-2.0
"""Beams between the beams of a single sweep, interpolated from their neighbours in the ring.

Elements fitted to a single sweep know its beams and leave the space between them open; no other sweep fills it. So in
each epoch every beam is turned towards a neighbour, by less than half of the way. Where the two met something smooth,
the range is that of the straight line through both returns; elsewhere the beam keeps its own range.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Log

_MAX_GAP = 3.0  # medians; a wider one is a hole in the scan
_MAX_SLOPE = (
    5.0  # ranges of a smooth surface change by less than this times the step across it: 11 degrees of incidence
)


def densify(log: Log, rng: np.random.Generator) -> Log:
    """Return the beams of one sweep, each turned at random towards its neighbour before or after it in the ring.

    Args:
        log: beams in the order of firing.
        rng: draws which neighbour and how far, up to half of the way.
    """
    if len(log) == 0:
        return log
    turn = rng.uniform(-0.5, 0.5, len(log))
    before, after = find_ring_neighbours(log)
    other = np.where(turn < 0, before, after)
    share = np.abs(turn)
    direction = _mixed(log.beams.direction.astype(float), other, share)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    beams = log.beams.columns() | {
        "direction": direction.astype(np.float32),
        "origin_m": _mixed(log.beams.origin_m, other, share),
    }
    range_m = _ranges(log, other, share).astype(np.float32)
    return replace(log, beams=type(log.beams).without_checks(beams), returns=type(log.returns)(range_m))


def find_ring_neighbours(log: Log) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the beams before and after each in its ring; its own where there is none near."""
    order = np.argsort(log.beams.ring, kind="stable")
    one, next_one = order[:-1], order[1:]
    apart = _apart(log, one, next_one)
    pair = (log.beams.ring[one] == log.beams.ring[next_one]) & (apart > 0)
    pair &= apart <= _MAX_GAP * np.median(apart[pair]) if pair.any() else False
    before, after = np.arange(len(log)), np.arange(len(log))
    before[next_one[pair]], after[one[pair]] = one[pair], next_one[pair]
    return before, after


def _ranges(log: Log, other: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranges of the turned beams. Along a straight line it is the inverse of the range that changes evenly, nearly."""
    own_m = log.returns.first_m.astype(float)
    other_m = own_m[other]
    both = np.isfinite(own_m) & np.isfinite(other_m)
    with np.errstate(invalid="ignore"):  # inf - inf and 0 * inf: no return, and not smooth
        step_m = _apart(log, np.arange(len(log)), other) * own_m
        smooth = both & (np.abs(own_m - other_m) <= _MAX_SLOPE * step_m)
    inverse = (1 - share) / own_m + share / other_m
    return np.where(smooth, 1 / np.where(smooth, inverse, 1), own_m)


def _apart(log: Log, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Angles between beams [rad]; small ones have no use for an arc cosine, which would lose half of their digits."""
    direction = log.beams.direction
    return np.linalg.norm(direction[one].astype(float) - direction[other], axis=1)


def _mixed(values: NDArray[np.float64], other: NDArray[np.int64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    return (1 - share)[:, None] * values + share[:, None] * values[other]
