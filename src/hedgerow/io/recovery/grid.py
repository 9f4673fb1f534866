# SPDX-License-Identifier: Apache-2.0
"""The firings of one sweep: which rotor angles the lasers fired at, which point belongs to which, which are missing.

All lasers fire at every stop of the rotor. A stop is known by the many points that share its angle; where none of the
lasers saw anything, the stops between are filled in at the usual distance. A laser without a point at a stop fired and
got nothing back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.io.recovery.lasers import Ints, Lasers

_TURN = 2 * np.pi
_LASER_TOLERANCE = 0.35  # of the distance to the next laser
_STEP_TOLERANCE = 0.35  # of a step of the rotor
_MIN_SHARE = 0.2  # of the usual number of points, for an angle to be a stop of its own
_EDGE = 3.0  # usual distances to the start or end of the sweep, above which stops are missing there
_GAP = 1.6  # usual distances between stops, above which one is missing


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The firings of one sweep."""

    laser: Ints
    """(N,) laser of each point."""
    stop: Ints
    """(N,) stop of the rotor at which it was fired; -1 where none is free for it."""
    count: Ints
    """(S,) rotor angle of each stop, in steps since the start of the sweep, ascending."""
    explained: float
    """Share of points that lie on a laser's line and at a stop."""
    off_line_rad: float
    """Root mean square distance of the points from their laser's line, as an angle."""
    off_step_rad: float
    """Root mean square distance of the rotor angles from the lattice."""

    def empty(self, n_lasers: int) -> NDArray[np.bool_]:
        """Return the (S, K) mask of firings without a point."""
        empty = np.ones((len(self.count), n_lasers), np.bool_)
        placed = self.stop >= 0
        empty[self.stop[placed], self.laser[placed]] = False
        return empty


def turned_steps(points: Array, laser: Ints, lasers: Lasers, start_rad: float, clockwise: bool) -> Array:
    """Return by how many steps the rotor had turned since the start of the sweep when (N, 3) points were made."""
    turned = (lasers.rotor_rad(points, laser) - start_rad) * (-1 if clockwise else 1)
    # A pulse of the first stop may come out a hair before it; it is not one of the end of the sweep.
    return (turned + lasers.step_rad / 2) % _TURN / lasers.step_rad - 0.5


def arrange(points: Array, lasers: Lasers, start_rad: float, clockwise: bool) -> Grid:
    """Sort the (N, 3) points of one sweep, sensor frame, into the firings of its lasers."""
    laser, off_line = lasers.nearest(points)
    turned = turned_steps(points, laser, lasers, start_rad, clockwise)
    count = np.rint(turned).astype(np.int64)
    off_step = turned - count
    spacing = np.abs(np.diff(np.sort(lasers.elevation_rad)))
    fits = (np.abs(off_line) < _LASER_TOLERANCE * np.median(spacing)) & (np.abs(off_step) < _STEP_TOLERANCE)
    stops = _stops(count[fits], int(np.ceil(_TURN / lasers.step_rad)), len(lasers))
    stop = _stop_of(count, laser, fits, stops, len(lasers))
    explained = float(np.count_nonzero(fits & (stop >= 0))) / max(len(stop), 1)
    return Grid(
        laser,
        stop,
        stops,
        explained=explained,
        off_line_rad=_rms(off_line[fits]),
        off_step_rad=_rms(off_step[fits]) * lasers.step_rad,
    )


def _stops(count: Ints, n_counts: int, n_lasers: int) -> Ints:
    """Return the counts at which the lasers fired: those with many points, and between them where none saw anything."""
    votes = np.bincount(count, minlength=n_counts)
    if not votes.any():
        return np.zeros(0, np.int64)
    busy = votes[votes > n_lasers * 0.1] if (votes > n_lasers * 0.1).any() else votes[votes > 0]
    stops = np.flatnonzero(votes >= max(2, _MIN_SHARE * float(np.median(busy))))
    if len(stops) < 3:
        return stops.astype(np.int64)
    steps = np.diff(stops)
    usual = float(np.mean(steps[steps <= 2 * np.median(steps)]))
    filled = [stops]
    for gap in np.flatnonzero(steps > _GAP * usual):
        n_missing = round(float(steps[gap]) / usual) - 1
        filled.append(np.rint(stops[gap] + np.arange(1, n_missing + 1) * steps[gap] / (n_missing + 1)))
    # Nothing may have been seen at the start or the end either; one or two stops less than expected prove nothing.
    before, after = (stops[0] + 0.5) / usual, (n_counts - 0.5 - stops[-1]) / usual
    if before > _EDGE:
        filled.append(np.rint(stops[0] - np.arange(1, int(before) + 1) * usual))
    if after > _EDGE:
        filled.append(np.rint(stops[-1] + np.arange(1, int(after) + 1) * usual))
    every = np.unique(np.concatenate(filled).astype(np.int64))
    return every[(every >= 0) & (every < n_counts)]


def _stop_of(count: Ints, laser: Ints, fits: NDArray[np.bool_], stops: Ints, n_lasers: int) -> Ints:
    """Give each point its stop, or the neighbouring one if it is one count off and that firing is still free.

    Points that do not fit well come last: they take what is left, so that their firing is not called a miss.
    """
    stop = np.full(len(count), -1, np.int64)
    if not len(stops):
        return stop
    free = np.ones((len(stops), n_lasers), np.bool_)
    for shift, rough in ((0, False), (1, False), (-1, False), (0, True), (1, True), (-1, True)):
        waiting = np.flatnonzero((fits | rough) & (stop < 0))
        at = np.minimum(np.searchsorted(stops, count[waiting] + shift), len(stops) - 1)
        meets = (stops[at] == count[waiting] + shift) & free[at, laser[waiting]]
        rows, where = waiting[meets], at[meets]
        # Two points of one laser at one stop: the first keeps it.
        _, first = np.unique(where * n_lasers + laser[rows], return_index=True)
        rows, where = rows[first], where[first]
        stop[rows] = where
        free[where, laser[rows]] = False
    return stop


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
