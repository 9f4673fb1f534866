# SPDX-License-Identifier: Apache-2.0
"""What worlds learn from frames that are images of points (panorama.py), and how they answer as such images.

Learned from: the points of the training frames themselves, each a beam from the one pose of its frame, as exact as they
are; the papers learn from the pixels. And beams that met nothing: pixels that are empty, and those above and below too.
A single empty pixel says little, as it may lie between two lasers.

Answered with: the world fired along the mean direction in which training frames have a point in that pixel, since this
is where the laser goes (ranges on the ground change by decimetres within a row). The chance of a return is the world's,
times the share of the returns it forecast around that pixel which the training frames really had: rows between lasers,
the carrier, lasers that drop light. The papers' ray-drop networks do the same. All of it comes from the training frames
alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose
from hedgerow.log import Log
from hedgerow.metrics.novel_view import View
from hedgerow.reproduce.novel_views.panorama import Floats, Image, Panorama, beams_from
from hedgerow.world import World
from hedgerow.world.forecast import Forecast

SHARE_COLUMNS = 21
"""Columns that the share of returns of a pixel is counted over: 7 degrees."""


@dataclass(frozen=True, eq=False)
class Frame:
    """One sweep as the papers have it."""

    number: int
    pose: Pose
    """T_map_sensor, one for the sweep."""
    cloud: NDArray[np.float32]
    """(N, 4) points in the frame of the sensor, and their intensities."""
    image: Image

    @property
    def view(self) -> View:
        """What was measured, pixel by pixel."""
        return View(self.image.range_m, self.image.intensity)

    @classmethod
    def of(cls, number: int, pose: Pose, cloud: NDArray[np.float32], grid: Panorama) -> Self:
        """Make the image of a cloud."""
        return cls(number, pose, cloud, grid.image(cloud))


def training_log(frames: Sequence[Frame], grid: Panorama) -> Log:
    """Return what the frames say: their points, and beams that met nothing."""
    return Log.concatenate([_frame_log(frame, grid) for frame in frames])


def _frame_log(frame: Frame, grid: Panorama) -> Log:
    points = frame.cloud[:, :3].astype(np.float64)
    range_m = np.linalg.norm(points, axis=1)
    pixel = grid.pixel_of(points)
    kept = (pixel >= 0) & (range_m > 0) & (range_m < grid.max_range_m)
    empty = sure_misses(frame.image, grid)
    row = np.concatenate([pixel[kept], np.flatnonzero(empty)]) // grid.columns
    direction = np.concatenate([points[kept] / range_m[kept, None], grid.middles[empty]])
    beams = beams_from(frame.pose, direction, ring=row, sweep=frame.number)
    missed = np.full(np.count_nonzero(empty), np.inf)
    return Log.from_arrays(
        origins=beams.origin_m,
        directions=beams.direction,
        ranges=np.concatenate([range_m[kept], missed]),
        intensities=np.concatenate([frame.cloud[kept, 3], np.full(len(missed), np.nan)]),
        times=beams.time_ns,
        rings=beams.ring,
        sweeps=beams.sweep,
        max_range_m=grid.max_range_m,
    )


def sure_misses(image: Image, grid: Panorama) -> NDArray[np.bool_]:
    """Return the (P,) pixels in which a beam surely met nothing: empty, and those above and below too."""
    empty = np.isinf(image.range_m).reshape(grid.rows, grid.columns)
    around = np.pad(empty, ((1, 1), (0, 0)), constant_values=True)
    return (around[:-2] & empty & around[2:]).ravel()


@dataclass(frozen=True, eq=False)
class Lasers:
    """Where the lasers of a sensor go in its images, and which share of a world's returns they see."""

    grid: Panorama
    direction: Floats
    """(P, 3) sensor frame."""
    share: Floats
    """(P,) from 0 to 1."""

    @classmethod
    def learn(cls, frames: Sequence[Frame], world: World, grid: Panorama) -> Self:
        """Learn them from training frames, and from what the world says to these."""
        total, count = np.zeros((grid.n_pixels, 3)), np.zeros(grid.n_pixels)
        for frame in frames:
            assert frame.image.direction is not None
            filled = np.isfinite(frame.image.range_m)
            total[filled] += frame.image.direction[filled]
            count += filled
        direction = np.where(count[:, None] > 0, total, grid.middles)
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        forecast = np.zeros(grid.n_pixels)
        for frame in frames:
            forecast += _ask(world, frame.pose, direction, grid).returns
        shape = (grid.rows, grid.columns)
        seen, told = (_over_columns(each.reshape(shape)) for each in (count, forecast))
        share = np.divide(seen, told, out=np.zeros(shape), where=told > 0)
        return cls(grid, direction, np.minimum(share, 1).ravel())

    def view(self, world: World, pose: Pose) -> tuple[View, View]:
        """Return the image that a world shows at a pose, and the same if nothing were dropped.

        The first is masked by the predicted drop, as in the papers: empty unless a return is likelier than none.
        """
        told = _ask(world, pose, self.direction, self.grid)
        chance = told.returns * self.share
        kept = np.where(chance > 0.5, told.median_m, np.inf)
        return View(kept, told.intensity, chance), View(told.median_m, told.intensity, chance)


def _ask(world: World, pose: Pose, direction: Floats, grid: Panorama) -> Forecast:
    return world.expected(beams_from(pose, direction), limits_m=(0.0, grid.max_range_m))


def _over_columns(image: Floats) -> Floats:
    """Return the mean of each pixel and its neighbours in the row, all around."""
    from scipy.ndimage import uniform_filter1d

    return uniform_filter1d(image, SHARE_COLUMNS, axis=1, mode="wrap")
