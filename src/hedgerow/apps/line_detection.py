# SPDX-License-Identifier: Apache-2.0
"""Line targets in a planar scan: find straight things of one length (Tallavajhula 2018 §3.5.2).

From a point the program grows a line in either direction, for as long as the next point is near the line of all points
so far. A line of enough points is a candidate. Checks against false positives ask for the right length, and that a
target stands free: what is beside its ends must be farther away, or a beam that did not return. As a first version of
such a program would be, it starts with all checks off.

J is minus F1 of a set of scans: 2 tp / (2 tp + fp + fn).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Objective, Outcome, fail, minus_f1
from hedgerow.apps.space import Setting, Space, choice, log_number, whole
from hedgerow.log import Log

TARGET_LENGTH_M = 0.61
"""Of the targets of the paper."""
SAME_PLACE_M = 0.15
"""A detection this near to the middle of a target is right, if it also lies in its direction."""
SAME_ANGLE_RAD = math.radians(20)
_GAP_M = 0.2
"""Neighbouring points farther apart than this are not on one thing."""


class TargetTruth(NamedTuple):
    """Where the targets of a scan really are."""

    targets: NDArray[np.float64]
    """(T, 2, 2) segments, map frame [m]."""


class Line(NamedTuple):
    """A straight run of points."""

    first: int
    last: int
    """Places of its ends among the points, in order of bearing; `last` may pass the end of the turn."""
    centre: tuple[float, float]
    angle_rad: float
    length_m: float


@dataclass(frozen=True)
class LineDetection:
    """Finds line targets."""

    name: str = "line-detection"
    space: Space = field(
        default_factory=lambda: Space.of(
            inlier_m=log_number(0.002, 0.08, 0.02, "most distance of a point from its line"),
            min_points=whole(3, 25, 5, "fewest points of a line"),
            smooth=choice("off", "on", default="off", meaning="median of three neighbouring ranges first"),
            length_m=log_number(0.02, 1.0, 1.0, "most difference from the length of a target"),
            free=choice("off", "on", default="off", meaning="what is beside the ends must be farther away"),
        )
    )
    objectives: Mapping[str, Objective] = field(default_factory=lambda: {"minus F1": minus_f1()})

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Detect in one scan, and count right and wrong detections."""
        if not isinstance(truth, TargetTruth):
            return fail("lost", "the scene has no targets")
        lines = detect(log, parameters)
        found = _match(lines, truth.targets)
        n_found = len(lines)
        return Outcome({"tp": float(found), "fp": float(n_found - found), "fn": float(len(truth.targets) - found)})


def detect(log: Log, parameters: Setting) -> list[Line]:
    """Return the lines of one scan that pass all checks."""
    range_m = log.returns.first_m.astype(np.float64)
    if parameters["smooth"] == "on":
        range_m = median_of_three(range_m)
    seen = np.flatnonzero(np.isfinite(range_m))
    if len(seen) < 2:
        return []
    points = log.beams.origin_m[seen, :2] + range_m[seen, None] * log.beams.direction[seen, :2]
    lines = grow_lines(points.tolist(), float(parameters["inlier_m"]), int(parameters["min_points"]))
    length, free = float(parameters["length_m"]), parameters["free"] == "on"
    return [
        line
        for line in lines
        if abs(line.length_m - TARGET_LENGTH_M) <= length and not (free and _is_held(line, seen, range_m))
    ]


def median_of_three(range_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranges with lone wrong ones mended; a null reading between two others becomes their nearer one."""
    stack = np.stack([np.roll(range_m, 1), range_m, np.roll(range_m, -1)])
    return np.sort(stack, axis=0)[1]


def grow_lines(points: list[list[float]], inlier_m: float, min_points: int) -> list[Line]:
    """Grow lines from every point that is not yet on one; points are in order of bearing, around the turn."""
    n = len(points)
    used = [False] * n
    lines: list[Line] = []
    for start in range(n):
        if used[start]:
            continue
        moments = _Moments()
        moments.add(points[start])
        last = _grow(points, used, moments, start, 1, inlier_m)
        first = _grow(points, used, moments, start, -1, inlier_m)
        if moments.n >= min_points:
            for place in range(first, last + 1):
                used[place % n] = True
            lines.append(moments.line(points, first, last))
    return lines


def _grow(
    points: list[list[float]], used: list[bool], moments: "_Moments", start: int, step: int, inlier_m: float
) -> int:
    """Add points in one direction while they are near the line; return the place of the last."""
    n, place = len(points), start
    while moments.n < n:
        following = points[(place + step) % n]
        here = points[place % n]
        if used[(place + step) % n] or math.dist(here, following) > _GAP_M:
            break
        if moments.n >= 2 and moments.distance(following) > inlier_m:
            break
        moments.add(following)
        place += step
    return place


class _Moments:
    """Sums of points, from which their line follows."""

    def __init__(self) -> None:
        self.n = 0
        self.x = self.y = self.xx = self.xy = self.yy = 0.0

    def add(self, point: list[float]) -> None:
        x, y = point
        self.n += 1
        self.x += x
        self.y += y
        self.xx += x * x
        self.xy += x * y
        self.yy += y * y

    def axis(self) -> tuple[float, float, float]:
        """Return middle and angle of the line of least squares."""
        x, y = self.x / self.n, self.y / self.n
        sxx, sxy, syy = self.xx / self.n - x * x, self.xy / self.n - x * y, self.yy / self.n - y * y
        return x, y, 0.5 * math.atan2(2 * sxy, sxx - syy)

    def distance(self, point: list[float]) -> float:
        x, y, angle = self.axis()
        return abs((point[1] - y) * math.cos(angle) - (point[0] - x) * math.sin(angle))

    def line(self, points: list[list[float]], first: int, last: int) -> Line:
        x, y, angle = self.axis()
        cosine, sine = math.cos(angle), math.sin(angle)
        ends = [
            (p[0] - x) * cosine + (p[1] - y) * sine for p in (points[first % len(points)], points[last % len(points)])
        ]
        middle = sum(ends) / 2
        return Line(first, last, (x + middle * cosine, y + middle * sine), angle, abs(ends[1] - ends[0]))


def _is_held(line: Line, seen: NDArray[np.intp], range_m: NDArray[np.float64]) -> bool:
    """Tell whether something stands beside an end of the line, as near as the line itself or nearer."""
    n = len(seen)
    for end, step in ((line.first, -1), (line.last, 1)):
        beam = int(seen[end % n])
        beside = range_m[(beam + step) % len(range_m)]
        if beside < range_m[beam] + _GAP_M:
            return True
    return False


def _match(lines: list[Line], targets: NDArray[np.float64]) -> int:
    """Count the targets that a line lies on; each line counts once."""
    left = list(lines)
    found = 0
    for target in targets:
        middle = target.mean(axis=0)
        way = target[1] - target[0]
        angle = math.atan2(way[1], way[0])
        for line in left:
            turn = abs((line.angle_rad - angle + math.pi / 2) % math.pi - math.pi / 2)
            if math.dist(line.centre, middle) <= SAME_PLACE_M and turn <= SAME_ANGLE_RAD:
                found += 1
                left.remove(line)
                break
    return found
