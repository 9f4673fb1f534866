# SPDX-License-Identifier: Apache-2.0
"""PlanarSite: a world of line segments, as robots on floors see it (Tallavajhula 2018 §3.4.1).

Objects are polylines with a pose: walls, targets, obstacles. Walkers go about on random walks; a map does not know
them. A site comes from a small TOML file, or from the corners of a floor plan, and is raised into an ordinary `Scene`
of upright walls, so that logs, worlds, `compare` and `view` need nothing new.

    [[object]]
    kind = "wall"
    points_m = [[0, 0], [5, 0], [5, 5], [0, 5]]
    closed = true

    [[object]]
    kind = "target"
    points_m = [[-0.305, 0], [0.305, 0]]
    pose = { x_m = 2.0, y_m = 3.0, heading_deg = 30 }

    [[walkers]]
    count = [5, 10]
    area_m = [0, 2.5, 5, 5]
"""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator

from hedgerow.base import arrays
from hedgerow.base.labels import LABELS
from hedgerow.base.parameters import Degrees, Length, NotNegative, Parameters, Place
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import InputError
from hedgerow.log import Beams
from hedgerow.planar.sensor_model import States
from hedgerow.world.scene import Scene

Kind = Literal["wall", "target", "obstacle", "walker"]
LABEL_OF: dict[Kind, int] = {
    "wall": LABELS["wall"].number,
    "target": LABELS["target"].number,
    "obstacle": LABELS["other-object"].number,
    "walker": LABELS["person"].number,
}
HALF_HEIGHT_M = 1.0
"""Walls reach from this below the plane of the scan to this above it."""
_WALKER_SIDES = 8

Point = Annotated[list[Place], Field(min_length=2, max_length=2)]
Segments = NDArray[np.float64]
"""(S, 2, 2): from where to where each segment goes, x and y [m]."""


class PlanarPose(Parameters):
    """Where an object stands."""

    x_m: Place = 0.0
    """Forward or east."""
    y_m: Place = 0.0
    """Left or north."""
    heading_deg: Degrees = 0.0
    """Counter-clockwise from the x axis."""

    def transform(self, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Take (..., 2) points of the object into the map."""
        angle = np.deg2rad(self.heading_deg)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return points_m @ turn.T + [self.x_m, self.y_m]


class PlanarObject(Parameters):
    """A polyline with a pose."""

    kind: Literal["wall", "target", "obstacle"] = "wall"
    """What it is; returns carry its label."""
    points_m: list[Point] = Field(min_length=2, max_length=100_000)
    """Corners, in the object's own frame."""
    closed: bool = False
    """Whether the last corner is joined to the first."""
    pose: PlanarPose = PlanarPose()
    """Where it stands."""

    @cached_property
    def segments(self) -> Segments:
        """(S, 2, 2) segments in the map."""
        corners = self.pose.transform(np.asarray(self.points_m, dtype=np.float64))
        ends = np.roll(corners, -1, axis=0)
        joined = np.stack([corners, ends], axis=1)
        return joined if self.closed else joined[:-1]


class Walkers(Parameters):
    """People who walk about at random; the map does not know them."""

    count: Annotated[list[Annotated[int, Field(ge=0, le=1000)]], Field(min_length=2, max_length=2)]
    """Fewest and most of them; drawn once."""
    area_m: Annotated[list[Place], Field(min_length=4, max_length=4)]
    """Where they stay: least x and y, greatest x and y."""
    radius_m: Length = 0.2
    """Of a walker."""
    step_m: NotNegative = 0.2
    """Standard deviation of a step along each axis, from one scan to the next."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.count[0] > self.count[1]:
            raise InputError("count", f"the fewest, {self.count[0]}, are more than the most, {self.count[1]}")
        low_x, low_y, high_x, high_y = self.area_m
        if low_x >= high_x or low_y >= high_y:
            raise InputError("area_m", "expected least x, least y, greatest x, greatest y, in this order")
        return self

    def positions(self, random: np.random.Generator, n_steps: int) -> NDArray[np.float64]:
        """Return (n_steps, W, 2) positions of W walkers; walks are mirrored at the edges of the area."""
        n = int(random.integers(self.count[0], self.count[1] + 1))
        low, high = np.array(self.area_m[:2]), np.array(self.area_m[2:])
        steps = self.step_m * random.normal(size=(n_steps, n, 2))
        steps[:1] = random.uniform(low, high, size=(min(1, n_steps), n, 2)) - low
        walked = np.cumsum(steps, axis=0) % (2 * (high - low))
        return low + np.minimum(walked, 2 * (high - low) - walked)


class PlanarSite(Parameters):
    """Objects and walkers."""

    object: list[PlanarObject] = Field(min_length=1, max_length=10_000)
    """What stands there."""
    walkers: list[Walkers] = Field(default=[], max_length=100)
    """Who walks about."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a site file.

        Raises:
            FileError: missing, no TOML, or a field is wrong; names it.
        """
        return cls.parse_from(read_toml(Path(path), "planar site"), path)

    @classmethod
    def from_polyline(cls, points_m: ArrayLike, *, closed: bool = True) -> Self:
        """Make a site of one floor plan: (K, 2) corners in order."""
        corners = arrays.as_floats("points_m", points_m, ("K", 2))
        values = {"object": [{"points_m": corners.tolist(), "closed": closed}]}
        return cls.parse(values, "a floor plan")

    @classmethod
    def from_segments(cls, segments: ArrayLike) -> Self:
        """Make a site of (S, 2, 2) segments, for example those that `extract_segments` found."""
        found = np.asarray(segments, dtype=np.float64)
        if found.ndim != 3 or found.shape[1:] != (2, 2) or len(found) == 0:
            raise InputError("segments", f"expected (S, 2, 2) coordinates of one segment or more, found {found.shape}")
        return cls.parse({"object": [{"points_m": each.tolist()} for each in found]}, "segments")

    def segments(self, kind: Kind | None = None) -> Segments:
        """Return the (S, 2, 2) segments of all objects, or of one kind."""
        chosen = [each.segments for each in self.object if kind is None or each.kind == kind]
        return np.concatenate(chosen) if chosen else np.zeros((0, 2, 2))

    def scene(self, walkers_m: ArrayLike | None = None) -> Scene:
        """Raise the objects into a scene of upright walls, walkers at these (W, 2) places among them [m]."""
        scene = Scene()
        for kind in get_args(Kind):
            walls = self.segments(kind)
            if kind == "walker" and walkers_m is not None:
                walls = self._walker_segments(np.asarray(walkers_m, dtype=np.float64).reshape(-1, 2))
            if len(walls):
                add_walls(scene, walls, LABEL_OF[kind])
        return scene

    def walks(self, seed: int, n_steps: int) -> NDArray[np.float64]:
        """Return (n_steps, W, 2) places of all walkers [m]; same seed, same walks."""
        random = np.random.default_rng(seed)
        walks = [each.positions(random, n_steps) for each in self.walkers]
        return np.concatenate(walks, axis=1) if walks else np.zeros((n_steps, 0, 2))

    def _walker_segments(self, centre_m: NDArray[np.float64]) -> Segments:
        radius_m = self.walkers[0].radius_m if self.walkers else Walkers.model_fields["radius_m"].default
        angle = 2 * np.pi * np.arange(_WALKER_SIDES) / _WALKER_SIDES
        ring = radius_m * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        sides = np.stack([ring, np.roll(ring, -1, axis=0)], axis=1)
        return (centre_m[:, None, None] + sides[None]).reshape(-1, 2, 2)


def add_walls(scene: Scene, segments: Segments, label: int) -> None:
    """Add one upright rectangle for each of (S, 2, 2) segments."""
    low, high = np.full((len(segments), 2, 1), -HALF_HEIGHT_M), np.full((len(segments), 2, 1), HALF_HEIGHT_M)
    corners = np.concatenate([np.concatenate([segments, each], axis=2) for each in (low, high)], axis=1)
    triangles = 4 * np.arange(len(segments))[:, None, None] + np.array([[0, 1, 3], [0, 3, 2]])
    scene.add_mesh(corners.reshape(-1, 3), triangles.reshape(-1, 3), label=label, lambertian=False)


def scan_beams(pose: ArrayLike, bearing_rad: ArrayLike, *, sweep: ArrayLike = 0, time_s: ArrayLike = 0.0) -> Beams:
    """Return the beams of one scan from a pose, or of several.

    Args:
        pose: (3,) x, y [m] and heading [rad], or (S, 3).
        bearing_rad: (B,) counter-clockwise from the heading.
        sweep: number of the scan, or (S,); pulses are numbered through.
        time_s: when, or (S,).
    """
    several = np.ndim(pose) == 2
    poses = np.atleast_2d(arrays.as_floats("pose", pose, ("S", 3) if several else (3,)))
    bearing = arrays.as_floats("bearing_rad", bearing_rad, ("B",))
    angle = (poses[:, 2, None] + bearing).ravel()
    number = np.repeat(np.broadcast_to(np.asarray(sweep, dtype=np.int64), len(poses)), len(bearing))
    return Beams.from_arrays(
        origins=np.repeat(np.column_stack([poses[:, :2], np.zeros(len(poses))]), len(bearing), axis=0),
        directions=np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1),
        times=np.repeat(np.broadcast_to(np.asarray(time_s, dtype=np.float64), len(poses)), len(bearing)),
        sweeps=number,
        pulses=number * len(bearing) + np.tile(np.arange(len(bearing)), len(poses)),
    )


def nominal_states(scene: Scene, beams: Beams, n_bearings: int, max_range_m: float) -> States:
    """Return the features of every beam in a map: range and incidence where a wall is met, NaN elsewhere.

    Args:
        scene: the map, raised.
        beams: in the plane z = 0; the bearing of a beam is its pulse number modulo `n_bearings`.
        n_bearings: readings in a scan.
        max_range_m: nothing farther off is a feature.
    """
    hits = scene.fire(beams, max_range_m=max_range_m)
    met = np.isfinite(hits.range_m)
    incidence = np.arccos(np.clip(np.abs(hits.incidence_cosine), 0.0, 1.0))
    feature: NDArray[Any] = np.stack([hits.range_m, incidence], axis=1).astype(np.float64)
    feature[~met] = np.nan
    return States(feature, beams.pulse % n_bearings)
