# SPDX-License-Identifier: Apache-2.0
"""Roots that hold a step in a trail, as in Goodin 2018 §3.6: one across the trail, thinner ones along it, and earth.

The paper's mesh came from 268 photographs: 2 m along the trail, 3 m across, 0.4 m high, over 22 million triangles. This
one is made up, of the same size and as fine as asked for: the heights of a grid, as a fine survey would have them. Its
rim lies below the ground that it is set into, so that no gap shows.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Length
from hedgerow.scenes.mesh import Mesh, MeshPart, height_field
from hedgerow.scenes.plants.plant import Metres, PlantParameters
from hedgerow.scenes.terrain import fractal_noise

_ALONG = 5
"""Roots along the trail."""
_BELOW = 0.15
"""Depth of the rim, as a share of the height."""


class RootParameters(PlantParameters):
    """A step in a trail with its roots."""

    length_m: Metres = 2.0
    """Extent along the trail, x; the step faces backward, where x is least."""
    width_m: Metres = 3.0
    """Extent across the trail, y."""
    height_m: Metres = 0.4
    """Height of the step, roots included."""
    spacing_m: Length = 0.02
    """Distance between grid points; 0.00073 gives the 22 million triangles of the paper."""

    @property
    def cells(self) -> tuple[int, int]:
        """Number of cells along and across."""
        along, across = (max(4, round(size_m / self.spacing_m)) for size_m in (self.length_m, self.width_m))
        return along, across

    @property
    def n_triangles(self) -> float:
        """Two for each cell."""
        return 2.0 * self.cells[0] * self.cells[1]


def make_root(parameters: RootParameters, rng: np.random.Generator) -> tuple[MeshPart, ...]:
    """Make earth and roots, a mesh part each; together they are one closed surface."""
    parameters.require_few("spacing_m", "the ground")
    along, across = parameters.cells
    x = np.linspace(-0.5, 0.5, along + 1) * parameters.length_m
    y = np.linspace(-0.5, 0.5, across + 1) * parameters.width_m
    z, is_root = _relief(x, y, parameters, rng)
    mesh = height_field(x, y, z)
    on_root: NDArray[np.bool_] = np.asarray(is_root.ravel()[mesh.triangles].all(axis=1))
    parts = (MeshPart(_picked(mesh, ~on_root), "soil", "ground"), MeshPart(_picked(mesh, on_root), "bark", "trunk"))
    return tuple(part for part in parts if len(part.mesh.triangles))


def _relief(
    x: Array, y: Array, parameters: RootParameters, rng: np.random.Generator
) -> tuple[Array, NDArray[np.bool_]]:
    """Heights over a grid, (ny, nx), and where roots are."""
    length, width, height = parameters.length_m, parameters.width_m, parameters.height_m
    seed = int(rng.integers(1 << 62))
    xx, yy = x[None, :], y[:, None]
    front = -0.2 * length + 0.05 * length * _wander(y, width, rng)[:, None]  # where the step and the main root are
    step = _ramp((xx - front) / (0.05 * length)) * (1 - _ramp((xx / length - 0.05) / 0.43))
    step = step * (1 - _ramp((np.abs(yy) / width - 0.3) / 0.19))
    rough = fractal_noise(xx, yy, seed, wavelength_m=0.3 * height, octaves=5, roughness=0.55)
    z = height * (0.75 * step + 0.1 * (rough + 0.8))  # rough, but above the ground that it is set into
    is_root = np.zeros(z.shape, dtype=np.bool_)
    lines = [(xx - front, 0.22 * height * (1 - 0.25 * yy / width))]  # a trunk side and a thin end
    for place in np.linspace(-0.33, 0.33, _ALONG) * width:
        middle = place + 0.12 * width * _wander(x, length, rng)[None, :]
        thickness = height * rng.uniform(0.08, 0.14) * np.clip(1 - (xx - front) / length, 0.2, 1.0)
        lines.append((yy - middle, thickness))
    for beside_m, radius_m in lines:
        arch = 1 - (beside_m / radius_m) ** 2
        inside = arch > 0
        z = np.where(inside, z + radius_m * np.sqrt(np.maximum(arch, 0)), z)
        is_root |= inside
    rim = np.minimum(0.5 - np.abs(xx) / length, 0.5 - np.abs(yy) / width)
    z = z * _ramp(rim / 0.06) - _BELOW * height * (1 - _ramp(rim / 0.03))
    return z * (height / max(float(z.max()), 1e-9)), is_root


def _ramp(share: Array) -> Array:
    """From 0 to 1 without a kink, while the share goes from 0 to 1."""
    share = np.clip(share, 0, 1)
    return share * share * (3 - 2 * share)


def _wander(at_m: Array, extent_m: float, rng: np.random.Generator) -> Array:
    """A line that wanders to both sides of 0, by about 1."""
    turns = np.array([0.7, 1.6, 3.1])
    phase = rng.uniform(0, 2 * np.pi, 3)
    return (np.sin(2 * np.pi * at_m[:, None] / extent_m * turns + phase) * [0.6, 0.3, 0.1]).sum(axis=1)


def _picked(mesh: Mesh, chosen: NDArray[np.bool_]) -> Mesh:
    """Some triangles of a mesh, with the vertices that they use."""
    triangles = mesh.triangles[chosen]
    used = np.zeros(len(mesh.vertices_m), dtype=np.bool_)
    used[triangles.ravel()] = True
    number = np.cumsum(used) - 1
    return Mesh(mesh.vertices_m[used], number[triangles])
