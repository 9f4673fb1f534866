# SPDX-License-Identifier: Apache-2.0
"""extract_segments: the segment map of a posed planar log (Tallavajhula 2018 §3.4.1).

Each scan is cut where neighbouring points lie apart, and then, at the point farthest from the line between the ends,
for as long as that is farther than a tolerance (split). Each piece that is left becomes a line by its moments. Lines of
different scans that lie on each other are joined (merge): moments add up, so a joined line is the best line of all
points of both. What too few scans have seen is left out: it walked, or was furniture that was moved.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import Length, Parameters, Positive
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.planar.site import Segments


class ExtractionSettings(Parameters):
    """When points are a segment, and when two segments are one."""

    gap_m: Length = 0.3
    """Neighbouring points farther apart than this are of two pieces."""
    gap_share: Positive = 0.1
    """The same as a share of the range, since points lie farther apart far away; the larger of both counts."""
    tolerance_m: Length = 0.06
    """Most distance of a point from the line of its piece."""
    min_length_m: Length = 0.3
    """Shorter pieces are left out."""
    min_points: int = 6
    """Pieces of fewer points are left out."""
    join_offset_m: Length = 0.12
    """Most distance between two lines that are joined."""
    join_angle_deg: Positive = 7.0
    """Most angle between them."""
    join_gap_m: Length = 0.4
    """Most gap between them, along the line."""
    min_scans: int = 2
    """A segment must have been seen in so many scans."""


@dataclass
class Line:
    """The moments of the points of one segment, where they end, and in which scans they were seen."""

    n: float
    total: NDArray[np.float64]
    """(2,) sum of the points."""
    outer: NDArray[np.float64]
    """(2, 2) sum of outer products."""
    ends: NDArray[np.float64]
    """(2, 2)."""
    scans: set[int]

    @classmethod
    def of(cls, points_m: NDArray[np.float64], scan: int) -> "Line":
        """Fit a line to (N, 2) points."""
        line = cls(len(points_m), points_m.sum(axis=0), points_m.T @ points_m, points_m[[0, -1]], {scan})
        line.ends = line.project(points_m)
        return line

    @property
    def centre(self) -> NDArray[np.float64]:
        """(2,) mean of the points."""
        return self.total / self.n

    @property
    def direction(self) -> NDArray[np.float64]:
        """(2,) of unit length, along the largest spread."""
        centre = self.centre
        return np.linalg.eigh(self.outer / self.n - np.outer(centre, centre))[1][:, 1]

    @property
    def length_m(self) -> float:
        """From end to end."""
        return float(np.linalg.norm(self.ends[1] - self.ends[0]))

    def project(self, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (2, 2) ends of the part of the line that points cover."""
        direction, centre = self.direction, self.centre
        along = (points_m - centre) @ direction
        return centre + np.outer([along.min(), along.max()], direction)

    def join(self, other: "Line") -> None:
        """Add the points of another line."""
        self.n += other.n
        self.total = self.total + other.total
        self.outer = self.outer + other.outer
        self.scans = self.scans | other.scans
        self.ends = self.project(np.concatenate([self.ends, other.ends]))

    def lies_on(self, other: "Line", settings: ExtractionSettings) -> bool:
        """Tell whether two lines are parts of one."""
        direction = other.direction
        if abs(float(self.direction @ direction)) < np.cos(np.deg2rad(settings.join_angle_deg)):
            return False
        across = np.array([-direction[1], direction[0]])
        if np.abs((self.ends - other.centre) @ across).max() > settings.join_offset_m:
            return False
        mine, theirs = np.sort((self.ends - other.centre) @ direction), np.sort((other.ends - other.centre) @ direction)
        return bool(max(mine[0], theirs[0]) - min(mine[1], theirs[1]) < settings.join_gap_m)


def extract_segments(log: Log, settings: ExtractionSettings | None = None) -> Segments:
    """Find the segments that a posed planar log has seen.

    Args:
        log: a planar log; its sweeps are scans, their beams in order of bearing.
        settings: see `ExtractionSettings`.

    Returns:
        (S, 2, 2) segments, x and y of both ends, map frame [m]; longest first.

    Raises:
        InputError: nothing in the log makes a segment.
    """
    chosen = settings or ExtractionSettings()
    lines: list[Line] = []
    for number, scan in log.iter_sweeps():
        for line in scan_lines(scan, number, chosen):
            _merge(lines, line, chosen)
    lines = _join_all(lines, chosen)
    kept = [line for line in lines if len(line.scans) >= chosen.min_scans and line.length_m >= chosen.min_length_m]
    if not kept:
        raise InputError("log", f"no segment of {chosen.min_length_m} m or more was seen in {chosen.min_scans} scans")
    return np.stack([line.ends for line in sorted(kept, key=lambda each: -each.length_m)])


def scan_lines(scan: Log, number: int, settings: ExtractionSettings) -> list[Line]:
    """Return the lines of one scan."""
    range_m = scan.returns.first_m.astype(np.float64)
    hit = np.isfinite(range_m)
    points = scan.beams.origin_m[:, :2] + np.where(hit, range_m, 0.0)[:, None] * scan.beams.direction[:, :2]
    apart = np.linalg.norm(np.diff(points, axis=0), axis=1)
    nearer = np.minimum(range_m[1:], range_m[:-1])
    cut = ~hit[1:] | ~hit[:-1] | (apart > np.maximum(settings.gap_m, settings.gap_share * nearer))
    lines: list[Line] = []
    for piece in np.split(np.arange(len(points)), np.flatnonzero(cut) + 1):
        for part in _split(points[piece[hit[piece]]], settings):
            line = Line.of(part, number)
            if line.length_m >= settings.min_length_m:
                lines.append(line)
    return lines


def _split(points_m: NDArray[np.float64], settings: ExtractionSettings) -> list[NDArray[np.float64]]:
    """Cut points at the one farthest from the line between the ends, until all are near their line."""
    done: list[NDArray[np.float64]] = []
    left = [points_m]
    while left:
        piece = left.pop()
        if len(piece) < settings.min_points:
            continue
        way = piece[-1] - piece[0]
        length = np.linalg.norm(way)
        offset = piece - piece[0]
        across = np.abs(offset[:, 0] * way[1] - offset[:, 1] * way[0]) / length if length > 0 else np.hypot(*offset.T)
        farthest = int(across.argmax())
        if across[farthest] <= settings.tolerance_m or not 0 < farthest < len(piece) - 1:
            done.append(piece)
        else:
            left += [piece[: farthest + 1], piece[farthest:]]
    return done


def _merge(lines: list[Line], new: Line, settings: ExtractionSettings) -> None:
    """Join a line to the first that it lies on, or keep it."""
    for line in lines:
        # A look at the ends first: most lines are far away, and this is quick.
        nearest = np.abs(line.ends.mean(axis=0) - new.ends.mean(axis=0)).max()
        if nearest < (line.length_m + new.length_m) / 2 + settings.join_gap_m and new.lies_on(line, settings):
            line.join(new)
            return
    lines.append(new)


def _join_all(lines: list[Line], settings: ExtractionSettings) -> list[Line]:
    """Join lines that grew together, until none do; longest first, so that short ones join long ones."""
    while True:
        joined: list[Line] = []
        for line in sorted(lines, key=lambda each: -each.length_m):
            _merge(joined, line, settings)
        if len(joined) == len(lines):
            return joined
        lines = joined
