# SPDX-License-Identifier: Apache-2.0
"""Range images: which beam of a sweep is which pixel, and how alike two images are (SSIM).

The re-simulation papers compare images that they resample from points (`reproduce/novel_views/panorama.py` does it as
they do). Where every beam is known there is no need to: a row is a ring, a column a step of azimuth, and each pixel is
the one true beam that is nearest to the middle of its column. Pixels without a beam, such as those that the carrier
hides, are 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Beams

COLUMNS = 1030
"""Columns of the images of LiDAR4D 2024; sweeps with fewer beams in a ring have as many as these."""
WINDOW = 7
"""Pixels on a side of the windows of SSIM."""
_K1, _K2 = 0.01, 0.03  # Wang et al. 2004


@dataclass(frozen=True, slots=True, eq=False)
class Pixels:
    """Which beams of a sweep are the pixels of an image."""

    shape: tuple[int, int]
    """Rows and columns."""
    beam: NDArray[np.intp]
    """(P,) rows of the sweep, one for each pixel that has a beam."""
    place: NDArray[np.intp]
    """(P,) where in the image, counted row by row."""

    def image(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the image of (P,) values of the pixels; 0 where there is no beam."""
        flat = np.zeros(self.shape[0] * self.shape[1])
        flat[self.place] = values
        return flat.reshape(self.shape)


def pixels_of(beams: Beams, columns: int = COLUMNS) -> Pixels | None:
    """Return the pixels of one sweep: rings from the highest down, columns clockwise from the back.

    Args:
        beams: of one sweep.
        columns: how many at most; less where the rings have fewer beams, in the median.

    Returns:
        None if there are too few rings or beams for an image, such as in a log without rings.
    """
    rings, row = np.unique(beams.ring, return_inverse=True)
    counts = np.bincount(row, minlength=len(rings))
    columns = min(columns, int(np.median(counts))) if len(counts) else 0
    if len(rings) < WINDOW or columns < WINDOW:
        return None
    by_ring = np.split(beams.direction[np.argsort(row, kind="stable"), 2], counts.cumsum()[:-1])
    height = np.array([np.median(each) for each in by_ring])
    row = np.argsort(np.argsort(-height, kind="stable"))[row]
    turned = (0.5 - np.arctan2(beams.direction[:, 1], beams.direction[:, 0]).astype(np.float64) / (2 * np.pi)) * columns
    column = np.minimum(turned.astype(np.intp), columns - 1)
    place = row * columns + column
    order = np.lexsort((np.abs(turned - column - 0.5), place))
    first = order[np.flatnonzero(np.diff(place[order], prepend=-1))]
    return Pixels((len(rings), columns), first, place[first])


def structural_similarity(real: NDArray[np.float64], answer: NDArray[np.float64], peak: float) -> float:
    """Return the mean SSIM of two images, 1 if they are alike (Wang et al. 2004), as scikit-image computes it.

    Windows of 7 x 7 pixels count alike, variances are those of samples, and windows lie within the image.

    Args:
        real, answer: images, 7 x 7 or more.
        peak: the range of values, larger than 0.
    """
    from scipy.ndimage import uniform_filter

    def mean(image: NDArray[np.float64]) -> NDArray[np.float64]:
        edge = WINDOW // 2
        return uniform_filter(image, WINDOW)[edge:-edge, edge:-edge]

    sample = WINDOW**2 / (WINDOW**2 - 1)
    mean_real, mean_answer = mean(real), mean(answer)
    var_real = sample * (mean(real * real) - mean_real**2)
    var_answer = sample * (mean(answer * answer) - mean_answer**2)
    covariance = sample * (mean(real * answer) - mean_real * mean_answer)
    c1, c2 = (_K1 * peak) ** 2, (_K2 * peak) ** 2
    above = (2 * mean_real * mean_answer + c1) * (2 * covariance + c2)
    below = (mean_real**2 + mean_answer**2 + c1) * (var_real + var_answer + c2)
    return float((above / below).mean())
