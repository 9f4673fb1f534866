# SPDX-License-Identifier: Apache-2.0
"""Transforms of placed scenes: whether the ray tracer can work with them, and how far what they place reaches.

Rays are taken into the frame of what is placed, in float32. A copy that is shrunk a billion times would have rays
whose origins overflow there, and Embree ends the process at that; so scales are bounded, those of nested copies
together.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import arrays
from hedgerow.base.box import Box

LEAST_SCALE = 1e-6
"""Nothing placed is shrunk by more, or stretched by more than its inverse."""


def nearest_m(box: Box, origin_m: NDArray[np.float64]) -> float:
    """Return how far the nearest part of a box is from a (3,) origin, along the axis on which that is most [m]."""
    return float(np.maximum(np.maximum(box.low_m - origin_m, origin_m - box.high_m), 0.0).max())


def placed_box(box: Box, matrices: NDArray[np.float64]) -> Box:
    """Return the box around a box that is placed by (M, 4, 4) transforms, M of 1 or more."""
    turn, half_m = matrices[:, :3, :3], (box.high_m - box.low_m) / 2
    return Box.around(turn @ box.middle_m + matrices[:, :3, 3], np.abs(turn) @ half_m)


def placed_boxes(
    low_m: NDArray[np.float64], high_m: NDArray[np.float64], matrices: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (M, 3) corners of the boxes around M boxes, given by their corners, each placed by one transform."""
    turn = matrices[:, :, :3]
    middle = np.einsum("nij,nj->ni", turn, (low_m + high_m) / 2) + matrices[:, :, 3]
    half = np.einsum("nij,nj->ni", np.abs(turn), (high_m - low_m) / 2)
    return middle - half, middle + half


def smallest_scale(name: str, matrices: NDArray[np.float64], inner: float) -> float:
    """Return to what share of its size (M, 4, 4) transforms shrink a thing that is itself shrunk to `inner`, at most.

    Raises:
        InputError: a transform is not finite, not affine, not invertible, or scales too much; names the row.
    """
    arrays.require_finite(name, matrices)
    if len(matrices) == 0:
        return inner
    wrong = (matrices[:, 3] != [0, 0, 0, 1]).any(axis=1)
    if wrong.any():
        row = arrays.first_row(wrong)
        raise arrays.RowError(name, row, f"has the last row {matrices[row, 3].tolist()}; expected [0, 0, 0, 1]")
    arrays.require_coordinates(name, matrices[:, :3, 3])
    turn = matrices[:, :3, :3]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        squares = np.einsum("nij,nij->n", turn, turn)
        # The determinant is the product of the three scales, two of which make at most half the sum of squares.
        least = 2 * np.abs(np.linalg.det(turn)) / squares
        wrong = ~((inner * least > LEAST_SCALE) & (squares < LEAST_SCALE**-2))
    if wrong.any():
        row = arrays.first_row(wrong)
        said = "is not invertible, or scales too much"
        raise arrays.RowError(name, row, f"{said}; expected scales from {LEAST_SCALE:g} to {1 / LEAST_SCALE:g}")
    return inner * float(least.min())
