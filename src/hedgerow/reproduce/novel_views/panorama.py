# SPDX-License-Identifier: Apache-2.0
"""Images as the re-simulation papers make them of points: LiDAR4D 2024, and LiDAR-RT 2025 and GS-LiDAR 2025 after it.

A sweep is one cloud in the frame of one pose. A point at azimuth a and elevation e falls into the pixel

    column = round((180 - a) / 360 * 1030), row = round((2.0 - e) / 26.9 * 66)    [degrees]

and the nearest point of a pixel counts; points beyond the edges and from 80 m on are dropped. Rows are even, those of
the HDL-64E are not: some rows lie between two lasers and are empty everywhere, others are met by one laser here and
there. Pixel (0, 0) looks back, 2.0 degrees up; a cloud is rebuilt along the middles of the pixels.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose
from hedgerow.log import Beams
from hedgerow.metrics.range_image import Pixels

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Image:
    """What was measured or is answered, pixel by pixel, row by row."""

    range_m: Floats
    """(P,) of the nearest point; inf is empty."""
    intensity: Floats
    """(P,) of that point; NaN is empty."""
    direction: Floats | None = None
    """(P, 3) towards that point, sensor frame; that of the middle of the pixel where it is empty."""


@dataclass(frozen=True)
class Panorama:
    """The grid of the images; that of KITTI-360 by default."""

    rows: int = 66
    columns: int = 1030
    top_deg: float = 2.0
    height_deg: float = 26.9
    max_range_m: float = 80.0

    @property
    def n_pixels(self) -> int:
        """Of an image."""
        return self.rows * self.columns

    @property
    def pixels(self) -> Pixels:
        """All pixels, each with a beam."""
        every = np.arange(self.n_pixels)
        return Pixels((self.rows, self.columns), every, every)

    @cached_property
    def middles(self) -> Floats:
        """(P, 3) unit directions of the middles of the pixels, sensor frame."""
        row, column = np.divmod(np.arange(self.n_pixels), self.columns)
        azimuth = np.pi - column / self.columns * 2 * np.pi
        elevation = np.deg2rad(self.top_deg - row / self.rows * self.height_deg)
        flat = np.cos(elevation)
        return np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])

    def pixel_of(self, points_m: Floats) -> NDArray[np.intp]:
        """Return the (N,) pixel of each of (N, 3) points in the sensor frame; -1 outside."""
        x, y, z = points_m.T
        elevation_deg = np.rad2deg(np.arctan2(z, np.hypot(x, y)))
        row = np.rint((self.top_deg - elevation_deg) / self.height_deg * self.rows)
        column = np.rint((np.pi - np.arctan2(y, x)) / (2 * np.pi) * self.columns)
        inside = (row >= 0) & (row < self.rows) & (column >= 0) & (column < self.columns)
        return np.where(inside, row * self.columns + column, -1).astype(np.intp)

    def image(self, cloud: NDArray[np.floating]) -> Image:
        """Return the image of (N, 4) points with intensities, sensor frame."""
        points = cloud[:, :3].astype(np.float64)
        range_m = np.linalg.norm(points, axis=1)
        pixel = self.pixel_of(points)
        kept = np.flatnonzero((pixel >= 0) & (range_m > 0) & (range_m < self.max_range_m))  # not NaN either
        order = kept[np.lexsort((range_m[kept], pixel[kept]))]
        nearest = order[np.flatnonzero(np.diff(pixel[order], prepend=-1))]
        image = Image(np.full(self.n_pixels, np.inf), np.full(self.n_pixels, np.nan), self.middles.copy())
        assert image.direction is not None
        place = pixel[nearest]
        image.range_m[place], image.intensity[place] = range_m[nearest], cloud[nearest, 3]
        image.direction[place] = points[nearest] / range_m[nearest, None]
        return image


def beams_from(pose: Pose, direction: Floats, *, ring: NDArray[np.integer] | int = 0, sweep: int = 0) -> Beams:
    """Return beams from one pose, T_map_sensor, in (N, 3) directions of the sensor frame."""
    turned = Pose(np.zeros(3), pose.quaternion_xyzw).transform(direction)
    return Beams.from_arrays(
        origins=pose.position_m, directions=turned, rings=ring, sweeps=sweep, times=np.full(len(turned), 0.1 * sweep)
    )
