# SPDX-License-Identifier: Apache-2.0
"""The frame, the box and the outline of an object.

The foot lies on the ground under the middle of the object's points. Its x axis is the principal axis of the points in
the x-y plane that is nearest to the driving direction (Tallavajhula 2018 §4.3.1.4, which leaves its sign open): towards
the half with more points.
"""

from typing import Any, NamedTuple

import numpy as np

from hedgerow.base.arrays import Array


class Frame(NamedTuple):
    """Where an object stands, and how far it reaches."""

    xy_m: tuple[float, float]
    """Foot, map frame."""
    yaw_rad: float
    """Direction of the x axis, anticlockwise from the map's, above -pi up to pi."""
    length_m: float
    """Extent along its x axis."""
    width_m: float
    """Extent along its y axis."""


def fit_frame(xy_m: Array, driving: tuple[float, float] = (1.0, 0.0), least_m: float = 0.1) -> Frame:
    """Fit the frame of an object.

    Args:
        xy_m: (N, 2) points of it, map frame.
        driving: (2,) direction in which the sensor went.
        least_m: no extent is smaller.
    """
    middle = xy_m.mean(axis=0)
    off_m = xy_m - middle
    _, axes = np.linalg.eigh(off_m.T @ off_m)
    axis = axes[:, int(np.argmax(np.abs(np.asarray(driving) @ axes)))]
    along = off_m @ axis
    ahead, behind = np.count_nonzero(along > 1e-9), np.count_nonzero(along < -1e-9)
    # Equal halves leave it open once more: then along the driving direction.
    towards = float(ahead - behind) or float(np.asarray(driving) @ axis)
    axis = axis if towards >= 0 else -axis
    across = off_m @ np.array([-axis[1], axis[0]])
    extents = [max(float(np.ptp(each)), least_m) for each in (off_m @ axis, across)]
    return Frame((float(middle[0]), float(middle[1])), float(np.arctan2(axis[1], axis[0])), extents[0], extents[1])


def outline(xy_m: Array, side_m: float) -> Array:
    """Return the (K, 2) corners of the largest piece of what points cover, gaps of about two sides closed.

    Args:
        xy_m: (N, 2) points, map frame.
        side_m: of the squares that a point covers.
    """
    from contourpy import contour_generator
    from scipy import ndimage

    morphology: Any = ndimage
    low = np.floor(xy_m.min(axis=0) / side_m).astype(np.int64) - 3
    index = np.floor(xy_m / side_m).astype(np.int64) - low
    n_x, n_y = (int(each) + 4 for each in index.max(axis=0))
    covered = np.zeros((n_y, n_x), dtype=np.bool_)
    covered[index[:, 1], index[:, 0]] = True
    covered = morphology.binary_closing(covered, iterations=2)
    x, y = (side_m * (low[k] + np.arange(n) + 0.5) for k, n in ((0, n_x), (1, n_y)))
    lines: Any = contour_generator(x, y, covered.astype(np.float64)).lines(0.5)
    best = max(lines, key=lambda line: abs(area_m2(np.asarray(line))))
    corners = simplified(np.asarray(best, dtype=np.float64)[:-1], 0.3 * side_m)
    return corners if area_m2(corners) > 0 else corners[::-1]


def area_m2(corners_m: Array) -> float:
    """Return the area of a polygon, above 0 if its corners go anticlockwise."""
    x, y = corners_m.T
    return float(0.5 * np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def simplified(corners_m: Array, tolerance_m: float) -> Array:
    """Return a closed line with fewer corners; those left out lie within a tolerance of it (Douglas-Peucker)."""
    if len(corners_m) < 5:
        return corners_m
    far = int(np.argmax(np.linalg.norm(corners_m - corners_m[0], axis=1)))
    keep = np.zeros(len(corners_m) + 1, dtype=np.bool_)
    keep[[0, far, -1]] = True
    line = np.concatenate([corners_m, corners_m[:1]])
    waiting = [(0, far), (far, len(corners_m))]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        chord = line[last] - line[first]
        length = float(np.hypot(*chord)) or 1.0
        off = line[first + 1 : last] - line[first]
        apart_m = np.abs(off[:, 0] * chord[1] - off[:, 1] * chord[0]) / length
        worst = int(np.argmax(apart_m))
        if apart_m[worst] > tolerance_m:
            at = first + 1 + worst
            keep[at] = True
            waiting += [(first, at), (at, last)]
    found = line[:-1][keep[:-1]]
    return found if len(found) >= 3 else corners_m
