# SPDX-License-Identifier: Apache-2.0
"""Branches as arrays: every level of a plant's branches grows in one go from the level before.

The way of describing a tree level by level (angle to the parent, turn around it, length against the parent's, bend)
follows Weber and Penn, "Creation and Rendering of Realistic Trees", SIGGRAPH 1995; lengths follow the crown's outline.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.scenes.mesh import Mesh

GOLDEN_RAD = np.pi * (3 - np.sqrt(5))
"""Turn from one branch to the next that shades the others least; what many plants do."""

CrownShape = Literal["round", "dome", "cone", "column", "vase"]

# Radius at t = 0 (base of the crown) to 1 (top), as a share of the largest.
_OUTLINES: dict[CrownShape, Callable[[Array], Array]] = {
    "round": lambda t: np.sqrt(1 - (2 * t - 1) ** 2),
    "dome": lambda t: np.sqrt(1 - t**2),
    "cone": lambda t: 1 - t**1.2,  # a little convex, as spruces are
    "column": lambda t: (1 - np.abs(2 * t - 1) ** 4) ** 0.25,
    "vase": lambda t: np.sqrt(1 - (2 * t**1.8 - 1) ** 2),
}


@dataclass(frozen=True, slots=True)
class Crown:
    """The outline that branches grow to, a body of revolution around the z axis, as foresters describe it."""

    shape: CrownShape
    diameter_m: float
    base_m: float
    """Height of its lowest point."""
    top_m: float
    """Height of its highest point."""

    @property
    def area_m2(self) -> float:
        """Ground area below the crown; leaf area indices refer to it."""
        return np.pi / 4 * self.diameter_m**2

    def radius_m(self, z_m: Array) -> Array:
        """Return its radius at heights of any shape; 0 above and below [m]."""
        t = (z_m - self.base_m) / (self.top_m - self.base_m)
        inside = (t >= 0) & (t <= 1)
        return np.where(inside, self.diameter_m / 2 * _OUTLINES[self.shape](np.clip(t, 0, 1)), 0.0)

    def reach_m(self, start_m: Array, direction: Array, most_m: Array, steps: int = 24) -> Array:
        """Return how far each of (N, 3) rays runs until it leaves the crown, at most (N,) `most_m` [m].

        A ray that begins below or beside the crown counts from where it enters it; one that never does has 0.
        """
        share = (np.arange(steps) + 1) / steps
        points = start_m[:, None] + direction[:, None] * (most_m[:, None] * share)[..., None]
        inside = np.hypot(points[..., 0], points[..., 1]) <= self.radius_m(points[..., 2])
        last = np.where(inside, share, 0.0).max(axis=1)
        return last * most_m


class Branches(NamedTuple):
    """N branches of K straight segments each."""

    spine_m: Array
    """(N, K + 1, 3) [m]."""
    radius_m: Array
    """(N, K + 1) [m]."""

    def at(self, which: NDArray[np.int64], along: Array) -> tuple[Array, Array, Array]:
        """Return (M, 3) points, (M, 3) unit directions and (M,) radii at a share 0 to 1 along some branches."""
        segments = self.spine_m.shape[1] - 1
        k = np.clip((along * segments).astype(np.int64), 0, segments - 1)
        u = (along * segments - k)[:, None]
        low, high = self.spine_m[which, k], self.spine_m[which, k + 1]
        radius = (1 - u[:, 0]) * self.radius_m[which, k] + u[:, 0] * self.radius_m[which, k + 1]
        return low + u * (high - low), unit(high - low), radius

    @property
    def length_m(self) -> Array:
        """(N,) lengths along the spines [m]."""
        return np.linalg.norm(np.diff(self.spine_m, axis=1), axis=-1).sum(axis=1)


class Habit(NamedTuple):
    """How the branches of one level grow."""

    segments: int
    """Straight segments of a branch."""
    up: float
    """How much it bends towards the sky over its length, as what is added to its unit direction; below 0: downwards."""
    wander: float
    """Standard deviation of random bends over its length, in the same unit."""
    taper: float
    """Radius of the tip as a share of that of the foot."""


def unit(vectors: Array) -> Array:
    """Return vectors of length 1; those of length 0 become upright."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(length > 1e-12, vectors / np.maximum(length, 1e-12), [0.0, 0.0, 1.0])


def across(direction: Array) -> tuple[Array, Array]:
    """Return two unit vectors square to each of (N, 3) directions: a level one, and the other one, up if possible."""
    reference = np.where(np.abs(direction[:, 2:]) > 0.999, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    level = unit(np.cross(direction, reference))
    return level, np.cross(level, direction)


def turn_away(direction: Array, away_rad: Array, turn_rad: Array) -> Array:
    """Turn (N, 3) unit directions away from themselves, to the side that `turn_rad` says; 0 is the level one."""
    level, other = across(direction)
    side = np.cos(turn_rad)[:, None] * level + np.sin(turn_rad)[:, None] * other
    return np.cos(away_rad)[:, None] * direction + np.sin(away_rad)[:, None] * side


def grow_branches(
    foot_m: Array, direction: Array, length_m: Array, radius_m: Array, habit: Habit, rng: np.random.Generator
) -> Branches:
    """Grow N branches from their feet: first (N, 3) direction, (N,) length and radius at the foot [m]."""
    n, segments = len(foot_m), habit.segments
    bends = habit.wander / np.sqrt(segments) * rng.normal(size=(n, segments, 3))
    bends += np.array([0, 0, habit.up / segments])
    bends[:, 0] *= 0.3  # it leaves its parent where it was told to
    heading = unit(direction[:, None] + np.cumsum(bends, axis=1))
    steps = heading * (length_m / segments)[:, None, None]
    spine = foot_m[:, None] + np.concatenate([np.zeros((n, 1, 3)), np.cumsum(steps, axis=1)], axis=1)
    thinner = 1 - (1 - habit.taper) * np.linspace(0, 1, segments + 1)
    return Branches(spine, radius_m[:, None] * thinner)


def fit_lengths_m(crown: Crown, foot_m: Array, direction: Array, wanted_m: Array) -> Array:
    """Shorten (N,) wanted lengths to where the branch would leave the crown; a stub of a fifth is left."""
    return np.maximum(crown.reach_m(foot_m, direction, wanted_m), 0.2 * wanted_m)


def clip_heights(branches: Branches, top_m: float) -> Branches:
    """Clip the branches to heights between the ground and a top [m]."""
    spine = branches.spine_m.copy()
    spine[..., 2] = np.clip(spine[..., 2], 0, top_m)
    return Branches(spine, branches.radius_m)


def tubes(branches: Branches, sides: int) -> Mesh:
    """Return the branches as tubes with open ends; 2 `sides` triangles per segment."""
    spine, radius = branches
    n, points = len(spine), int(spine.shape[1])
    tangent = unit(np.gradient(spine, axis=1))
    first, _ = across(unit(spine[:, -1] - spine[:, 0]))
    # One reference for the whole branch, made square to each segment: the tube does not twist.
    level = unit(first[:, None] - (first[:, None] * tangent).sum(axis=-1, keepdims=True) * tangent)
    other = np.cross(tangent, level)
    angle = np.arange(sides) * 2 * np.pi / sides
    ring = np.cos(angle)[:, None] * level[:, :, None] + np.sin(angle)[:, None] * other[:, :, None]
    vertices = spine[:, :, None] + radius[:, :, None, None] * ring
    i = np.arange(sides)
    j = (i + 1) % sides
    faces = np.concatenate([np.stack([i, j, i + sides], axis=1), np.stack([j, j + sides, i + sides], axis=1)])
    start = np.add.outer(points * np.arange(n), np.arange(points - 1)) * sides
    return Mesh(vertices.reshape(-1, 3), np.add.outer(start, faces).reshape(-1, 3))
