# SPDX-License-Identifier: Apache-2.0
"""The elements of a learned world as shapes: Gaussians as ellipsoids or splats, triangles as a mesh, points."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.view.web.colours import Limits, Quantity, colour, robust_limits
from hedgerow.world.elements import Elements, Gaussians, Points, Triangles
from hedgerow.world.learned import LearnedWorld

ELLIPSOID_SIGMAS = 1.5
"""Half axes of an ellipsoid, in standard deviations."""
MOST_ELEMENTS = 500_000
GREY = (170, 170, 170)


@dataclass(frozen=True)
class Ellipsoids:
    """N Gaussians."""

    centre_m: NDArray[np.float32]
    """(N, 3)."""
    half_m: NDArray[np.float32]
    """(N, 3) half axes."""
    wxyz: NDArray[np.float32]
    """(N, 4) orientation of the axes."""
    covariance_m2: NDArray[np.float32]
    """(N, 3, 3)."""
    opacity: NDArray[np.float32]
    """(N,) share of the beams through the middle that it stops."""
    colour: NDArray[np.uint8]
    """(N, 3)."""


@dataclass(frozen=True)
class Mesh:
    """N triangles with their own corners."""

    corner_m: NDArray[np.float32]
    """(N, 3, 3)."""
    colour: NDArray[np.uint8]
    """(N, 3)."""


@dataclass(frozen=True)
class Dots:
    """N points."""

    point_m: NDArray[np.float32]
    """(N, 3)."""
    colour: NDArray[np.uint8]
    """(N, 3)."""


Shape = Ellipsoids | Mesh | Dots


def make_shapes(
    world: LearnedWorld, centre_m: NDArray[np.float64], quantity: Quantity, limits: Limits | None, most_gaussians: int
) -> dict[str, Shape]:
    """Return the shapes of a world by table.

    Args:
        world: in memory.
        centre_m: (3,) what coordinates are relative to, map frame.
        quantity: what to colour by; elements have height, intensity and label, else they are grey.
        limits: ends of the colour bar; None for those of the elements themselves.
        most_gaussians: of more, some are left out, evenly; of other elements there may be MOST_ELEMENTS.
    """
    found: dict[str, Shape] = {}
    for name, whole in world.spread().items():
        if len(whole) == 0:
            continue
        limit = most_gaussians if isinstance(whole, Gaussians) else MOST_ELEMENTS
        # Tables lie tile by tile: even steps thin all tiles alike.
        some = whole if len(whole) <= limit else whole[np.linspace(0, len(whole) - 1, limit).astype(np.intp)]
        found[name] = _shape(some, centre_m, _coloured(some, quantity, limits))
    return found


def _shape(table: Elements, centre_m: NDArray[np.float64], rgb: NDArray[np.uint8]) -> Shape:
    if isinstance(table, Gaussians):
        half, wxyz = ellipsoid_axes(table.covariance_m2, table.min_sigma_m)
        centre = (table.mean_m - centre_m).astype(np.float32)
        return Ellipsoids(centre, half, wxyz, table.covariance_m2.astype(np.float32), _opacity(table), rgb)
    if isinstance(table, Triangles):
        return Mesh((table.corners_m - centre_m).astype(np.float32), rgb)
    return Dots((table.centre_m() - centre_m).astype(np.float32), rgb)


def ellipsoid_axes(
    covariance_m2: NDArray[np.float64], min_sigma_m: float = 0.0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the (N, 3) half axes [m] and (N, 4) orientations, w first, of Gaussians with (N, 3, 3) covariances."""
    variance, axes = np.linalg.eigh(covariance_m2)
    axes[np.linalg.det(axes) < 0, :, 0] *= -1  # a rotation, not a reflection
    half = ELLIPSOID_SIGMAS * np.sqrt(np.maximum(variance, max(min_sigma_m, 1e-6) ** 2))
    return half.astype(np.float32), np.roll(rotation.from_matrix(axes), 1, axis=-1).astype(np.float32)


def _opacity(table: Gaussians) -> NDArray[np.float32]:
    if table.law == "permeability":
        return (1 - table.stop).astype(np.float32)
    # Beer and Lambert along two mean standard deviations.
    depth_m = 2 * np.sqrt(np.einsum("nii->n", table.covariance_m2) / 3)
    return (1 - np.exp(-table.stop * depth_m)).astype(np.float32)


def element_values(worlds: list[LearnedWorld], quantity: Quantity) -> NDArray[np.float64]:
    """Return what all elements of some worlds are coloured by, in one array; empty if they lack it."""
    found = [_values(table, quantity) for world in worlds for table in world.spread().values()]
    return np.concatenate([np.zeros(0), *(values for values in found if values is not None)])


def _coloured(table: Elements, quantity: Quantity, limits: Limits | None) -> NDArray[np.uint8]:
    values = _values(table, quantity)
    if values is None:
        return colour("layer", np.zeros(len(table)), None, GREY)
    return colour(quantity, values, limits or robust_limits(quantity, values), GREY)


def _values(table: Elements, quantity: Quantity) -> NDArray[np.float64] | None:
    if quantity == "height":
        return table.centre_m()[:, 2]
    if isinstance(table, Gaussians | Triangles | Points) and quantity == "intensity":
        return table.intensity.astype(np.float64)
    if isinstance(table, Gaussians | Triangles) and quantity == "label":
        return table.label.most_common().astype(np.float64)
    if isinstance(table, Points) and quantity == "label":
        return table.label.astype(np.float64)
    return None
