# SPDX-License-Identifier: Apache-2.0
"""Ground that is made of patches: squares of learned grass, edge to edge over hills, each stored once.

A mesh of the ground, and elements of the grass on it, grow with the area. Patches do not: the site has a few of them,
and a table of where copies lie. A square cannot follow hills without gaps, since four corners need not lie in a plane;
a triangle can. So a patch is cut along its diagonal into two halves, each an asset: one solid triangle of ground, and
the Gaussians above it. A half is placed by the affine transform that takes its corners to the heights of the ground
there. Neighbours share corners, so the ground has no gap; stems stay upright.

    assets = [half for k, square in enumerate(squares) for half in patch_halves(f"grass-{k}", square, 8.0, ground)]
    asset, transform = lay_patches(corner_z_m, (0.0, 0.0), 8.0, which, turn)
    copies = instances_of(assets, asset, transform)
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians, Triangles

HALVES = 2
"""Assets of a patch: the half towards -x and -y, then the other one."""
_CORNERS = np.array([[[-1, -1], [1, -1], [-1, 1]], [[1, 1], [-1, 1], [1, -1]]]) / 2.0
"""Corners of the two halves of a square of side 1, the right angle first."""


def cut_squares(elements: Gaussians, side_m: float, n: int) -> list[Gaussians]:
    """Cut Gaussians that lie around (0, 0) on level ground at height 0 into n by n squares, each in a frame of its own.

    An element belongs to the square of its mean; what lies outside is left out.

    Args:
        elements: what was learned, map frame.
        side_m: of a square [m].
        n: squares along a side.

    Returns:
        Squares by y, then x, each around (0, 0).
    """
    column, row = np.floor(elements.mean_m[:, :2] / side_m + n / 2).astype(np.int64).T
    squares: list[Gaussians] = []
    for y in range(n):
        for x in range(n):
            back = np.eye(4)
            back[:2, 3] = -(np.array([x, y]) + 0.5 - n / 2) * side_m
            squares.append(elements[(column == x) & (row == y)].transformed(back))
    return squares


def patch_halves(name: str, elements: Gaussians, side_m: float, ground: Triangles) -> tuple[Asset, Asset]:
    """Make the two assets of a patch.

    Args:
        name: of the patch; the assets are called NAME.0 and NAME.1.
        elements: what stands in a square around (0, 0), its ground at height 0.
        side_m: of the square [m].
        ground: one triangle that says what the ground is like; where it lies does not matter.

    Raises:
        InputError: an element lies outside the square, or the ground is not one triangle.
    """
    if len(ground) != 1:
        raise InputError("ground", f"expected one triangle that says what the ground is like, found {len(ground)}")
    if (np.abs(elements.mean_m[:, :2]) > side_m / 2 * (1 + 1e-9)).any():
        raise InputError("elements", f"lie outside of the square of {side_m:g} m; cut them first")
    upper = elements.mean_m[:, 0] + elements.mean_m[:, 1] > 0
    halves: list[Asset] = []
    for number, mine in enumerate((~upper, upper)):
        corners_m = np.concatenate([side_m * _CORNERS[number], np.zeros((3, 1))], axis=1)[None]
        parts = (replace(ground, corners_m=corners_m), *([elements[mine]] if mine.any() else []))
        halves.append(Asset(f"{name}.{number}", parts, {"patch": name, "side_m": side_m}))
    return halves[0], halves[1]


def lay_patches(
    corner_z_m: Array, low_m: tuple[float, float], side_m: float, which: NDArray[np.integer], turn: NDArray[np.integer]
) -> tuple[NDArray[np.int32], Array]:
    """Lay patches edge to edge over a grid of squares.

    Args:
        corner_z_m: (ny + 1, nx + 1) heights of the ground at the corners of the squares [m].
        low_m: x and y of the first corner [m].
        side_m: of a square [m].
        which: (ny, nx) number of the patch in each square.
        turn: (ny, nx) how many quarters it is turned, anticlockwise.

    Returns:
        (2 N,) which asset, where patch k has the assets 2 k and 2 k + 1; and (2 N, 4, 4) where it lies.
    """
    ny, nx = which.shape
    if corner_z_m.shape != (ny + 1, nx + 1) or turn.shape != which.shape:
        raise InputError("corner_z_m", f"expected ({ny + 1}, {nx + 1}) heights for ({ny}, {nx}) squares")
    row, column = (each.ravel() for each in np.indices(which.shape))
    x, y = low_m[0] + (column + 0.5) * side_m, low_m[1] + (row + 0.5) * side_m
    quarter = np.array([[[1, 0], [0, 1]], [[0, -1], [1, 0]], [[-1, 0], [0, -1]], [[0, 1], [-1, 0]]], dtype=np.float64)
    rotation = quarter[turn.ravel() % 4]
    z = {(i, j): corner_z_m[j : ny + j, i : nx + i].ravel() for i in (0, 1) for j in (0, 1)}
    assets: list[NDArray[np.int32]] = []
    places: list[Array] = []
    for half in range(HALVES):
        # Where the right angle lies once the patch is turned: 0 or 1 along x and along y.
        i, j = (np.einsum("nij,j->ni", rotation, _CORNERS[half, 0]) > 0).astype(np.int64).T
        right, beside, across = _choose(z, i, j), _choose(z, 1 - i, j), _choose(z, i, 1 - j)
        slope = np.stack([(2 * i - 1) * (right - beside), (2 * j - 1) * (right - across)], axis=1) / side_m
        place = np.tile(np.eye(4), (nx * ny, 1, 1))
        place[:, :2, :2] = rotation
        place[:, 2, :2] = np.einsum("ni,nij->nj", slope, rotation)
        place[:, :3, 3] = np.stack([x, y, (beside + across) / 2], axis=1)
        assets.append((HALVES * which.ravel() + half).astype(np.int32))
        places.append(place)
    return np.concatenate(assets), np.concatenate(places)


def _choose(z: dict[tuple[int, int], Array], i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
    """Return for each square the height of its corner i along x and j along y."""
    return np.where(i == 0, np.where(j == 0, z[0, 0], z[0, 1]), np.where(j == 0, z[1, 0], z[1, 1]))
