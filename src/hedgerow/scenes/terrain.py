# SPDX-License-Identifier: Apache-2.0
"""Terrain: heights on a regular grid, from a function, from noise or from a raster, with trails cut into it.

The height between the grid points is that of the two triangles of the cell, the very ones that beams hit, so what is
placed at `height_m` stands on the mesh and not a few centimetres above it.

    ground = Terrain.from_noise(seed=3, size_m=(80, 60), relief_m=4, wavelength_m=40)
    ground = ground.with_trail([(-40, 0), (0, 5), (40, 0)], width_m=3, rut_depth_m=0.08)
    scene.add_mesh(*ground.mesh())
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.base.arrays import Array
from hedgerow.errors import InputError
from hedgerow.scenes import mesh as shapes
from hedgerow.scenes.mesh import Mesh, MeshPart

MAX_POINTS = 50_000_000
"""Most grid points; their mesh takes about 4 GB."""


@dataclass(frozen=True, eq=False)
class Terrain:
    """Heights on a regular grid, and what covers each triangle of it.

    Raises InputError where the arrays do not fit each other or are not finite.
    """

    x_m: Array
    """(nx,) coordinates of the columns, evenly spaced, ascending [m]."""
    y_m: Array
    """(ny,) coordinates of the rows, evenly spaced, ascending [m]."""
    z_m: Array
    """(ny, nx) heights [m]."""
    cover_kinds: tuple[tuple[str, str], ...] = (("soil", "ground"),)
    """Material and label of each kind of cover."""
    cover_index: NDArray[np.uint8] | None = None
    """(2, ny - 1, nx - 1) kind of cover of the lower and the upper triangle of each cell; None: all have the first."""

    def __post_init__(self) -> None:
        """Check every value once."""
        for name in ("x_m", "y_m"):
            values = arrays.as_floats(name, getattr(self, name), ("N",))
            _require_even(name, values)
            object.__setattr__(self, name, arrays.read_only(values))
        z_m = arrays.as_floats("z_m", self.z_m, (len(self.y_m), len(self.x_m)))
        arrays.require_finite("z_m", z_m)
        object.__setattr__(self, "z_m", arrays.read_only(z_m))
        if self.cover_index is not None:
            cells = (2, len(self.y_m) - 1, len(self.x_m) - 1)
            index = arrays.require("cover_index", self.cover_index, np.uint8, cells)
            object.__setattr__(self, "cover_index", index)
            if index.max() >= len(self.cover_kinds):
                known = f"there are only {len(self.cover_kinds)} cover_kinds"
                raise InputError("cover_index", f"names kind {index.max()}, but {known}; add it, or change the index")

    @classmethod
    def flat(cls, size_m: tuple[float, float], *, height_m: float = 0.0) -> Self:
        """Make level ground of (x, y) extent around (0, 0), as two triangles."""
        return cls.from_function(lambda x, y: np.full(x.shape, height_m), size_m, spacing_m=np.inf)

    @classmethod
    def from_function(
        cls,
        height: Callable[[Array, Array], ArrayLike],
        size_m: tuple[float, float],
        *,
        spacing_m: float = 0.5,
        middle_m: tuple[float, float] = (0.0, 0.0),
    ) -> Self:
        """Make terrain from a function of the place.

        Args:
            height: takes (ny, nx) arrays x and y, returns heights that broadcast to them [m].
            size_m: extent in x and y [m].
            spacing_m: the grid is at most this wide; fitted so that it ends at the border [m].
            middle_m: where the middle is [m].

        Raises:
            InputError: the size or the spacing is not positive, or the grid is too large; names which.
        """
        cells = [_cells(*each, spacing_m) for each in zip("xy", size_m, middle_m, strict=True)]
        if (cells[0] + 1) * (cells[1] + 1) > MAX_POINTS:
            raise InputError(
                "spacing_m",
                f"{spacing_m:g} m gives {cells[0] + 1:,} by {cells[1] + 1:,} grid points; "
                f"expected at most {MAX_POINTS:,}, so take a wider one",
            )
        axes = [m + np.linspace(-size / 2, size / 2, n + 1) for m, size, n in zip(middle_m, size_m, cells, strict=True)]
        x, y = np.meshgrid(*axes)
        z = arrays.as_floats("height", height(x, y), (), x.shape)
        return cls(axes[0], axes[1], np.broadcast_to(z, x.shape))

    @classmethod
    def from_noise(
        cls,
        seed: int,
        size_m: tuple[float, float],
        *,
        relief_m: float = 2.0,
        wavelength_m: float = 30.0,
        octaves: int = 5,
        roughness: float = 0.45,
        spacing_m: float = 0.5,
        middle_m: tuple[float, float] = (0.0, 0.0),
    ) -> Self:
        """Make hilly ground by adding smooth noise of shorter and shorter wavelengths; see `fractal_noise`.

        Args:
            seed: same seed, same hills.
            relief_m: from the lowest to the highest grid point [m].
            wavelength_m: spacing of the largest hills [m].
            octaves: number of wavelengths, each half the one before.
            roughness: amplitude of each wavelength as a share of the one before, 0 to 1.
            size_m, spacing_m, middle_m: as in `from_function`.
        """

        def height(x: Array, y: Array) -> Array:
            noise = fractal_noise(x, y, seed, wavelength_m=wavelength_m, octaves=octaves, roughness=roughness)
            span = np.ptp(noise)
            return (noise - noise.mean()) * (relief_m / span if span else 0.0)

        if not 0 <= relief_m < np.inf:
            raise InputError("relief_m", f"expected 0 or more, found {relief_m:g}")
        return cls.from_function(height, size_m, spacing_m=spacing_m, middle_m=middle_m)

    @classmethod
    def from_raster(
        cls,
        path: str | Path,
        *,
        metres_per_pixel: float | None = None,
        height_range_m: tuple[float, float] | None = None,
    ) -> Self:
        """Read heights from a picture (PNG of 8 or 16 bit) or a GeoTIFF; see `raster.read_raster`.

        Raises:
            FileError: the file is missing, damaged, or holds no usable heights.
            InputError: the picture needs an argument that is not given.
        """
        from hedgerow.scenes.raster import read_raster

        return cls(*read_raster(path, metres_per_pixel=metres_per_pixel, height_range_m=height_range_m))

    @property
    def bounds_m(self) -> tuple[float, float, float, float]:
        """Least x, least y, largest x, largest y [m]."""
        return float(self.x_m[0]), float(self.y_m[0]), float(self.x_m[-1]), float(self.y_m[-1])

    @property
    def spacing_m(self) -> tuple[float, float]:
        """Distance between grid points in x and in y [m]."""
        low_x, low_y, high_x, high_y = self.bounds_m
        return (high_x - low_x) / (len(self.x_m) - 1), (high_y - low_y) / (len(self.y_m) - 1)

    def contains(self, x_m: ArrayLike, y_m: ArrayLike) -> NDArray[np.bool_]:
        """Tell which places lie on the terrain."""
        low_x, low_y, high_x, high_y = self.bounds_m
        x, y = np.asarray(x_m), np.asarray(y_m)
        return (x >= low_x) & (x <= high_x) & (y >= low_y) & (y <= high_y)

    def height_m(self, x_m: ArrayLike, y_m: ArrayLike) -> Array:
        """Return the heights of the mesh at places of any shape [m].

        Raises:
            InputError: a place lies outside.
        """
        u, v, z = self._cell(x_m, y_m)
        lower = z[0] + u * (z[1] - z[0]) + v * (z[2] - z[0])
        upper = z[3] + (1 - u) * (z[2] - z[3]) + (1 - v) * (z[1] - z[3])
        return np.where(u + v <= 1, lower, upper)

    def gradient(self, x_m: ArrayLike, y_m: ArrayLike) -> tuple[Array, Array]:
        """Return how the height changes with x and with y, on the triangle below each place [m/m]."""
        u, v, z = self._cell(x_m, y_m)
        is_lower = u + v <= 1
        dx, dy = self.spacing_m
        return (
            np.where(is_lower, z[1] - z[0], z[3] - z[2]) / dx,
            np.where(is_lower, z[2] - z[0], z[3] - z[1]) / dy,
        )

    def slope_rad(self, x_m: ArrayLike, y_m: ArrayLike) -> Array:
        """Return the angle between the ground and the horizontal at places of any shape [rad]."""
        return np.arctan(np.hypot(*self.gradient(x_m, y_m)))

    def mesh(self) -> Mesh:
        """Return the whole surface: two triangles per cell, split along the same diagonal everywhere."""
        return shapes.height_field(self.x_m, self.y_m, self.z_m)

    def parts(self) -> tuple[MeshPart, ...]:
        """Return the surface as one mesh part per kind of cover, all with the same vertices."""
        mesh = self.mesh()
        if self.cover_index is None:
            return (MeshPart(mesh, *self.cover_kinds[0]),)
        index = self.cover_index.ravel()
        meshes = [Mesh(mesh.vertices_m, mesh.triangles[index == k]) for k in range(len(self.cover_kinds))]
        return tuple(
            MeshPart(each, *kind) for each, kind in zip(meshes, self.cover_kinds, strict=True) if len(each.triangles)
        )

    def draped(self, mesh: Mesh) -> Mesh:
        """Lift every vertex of a mesh made for z = 0 by the height of the ground there."""
        x, y, z = mesh.vertices_m.T
        return Mesh(np.stack([x, y, z + self.height_m(x, y)], axis=1), mesh.triangles)

    def moved(self, offset_m: ArrayLike) -> Self:
        """Return the terrain shifted by (3,) metres, for example from map coordinates to a middle at 0."""
        x, y, z = np.asarray(offset_m, dtype=np.float64)
        return replace(self, x_m=self.x_m + x, y_m=self.y_m + y, z_m=self.z_m + z)

    def resampled(self, spacing_m: float) -> Self:
        """Return the same ground on another grid, all of it with the first kind of cover."""
        low_x, low_y, high_x, high_y = self.bounds_m
        size, middle = (high_x - low_x, high_y - low_y), ((low_x + high_x) / 2, (low_y + high_y) / 2)
        fine = type(self).from_function(self._height_within, size, spacing_m=spacing_m, middle_m=middle)
        return replace(fine, cover_kinds=self.cover_kinds[:1])

    def with_trail(self, path_m: ArrayLike, width_m: float, **how: Any) -> "Terrain":
        """Return the terrain with a road or trail cut into it; see `trail.cut_trail` for the options."""
        from hedgerow.scenes.trail import cut_trail

        return cut_trail(self, path_m, width_m, **how)

    def _height_within(self, x: Array, y: Array) -> Array:
        low_x, low_y, high_x, high_y = self.bounds_m  # the last digit of a border may differ
        return self.height_m(np.clip(x, low_x, high_x), np.clip(y, low_y, high_y))

    def _cell(self, x_m: ArrayLike, y_m: ArrayLike) -> tuple[Array, Array, tuple[Array, Array, Array, Array]]:
        """Place within the cell, 0 to 1 each way, and heights of the four corners: 00, 10, 01, 11."""
        x, y = np.broadcast_arrays(np.asarray(x_m, dtype=np.float64), np.asarray(y_m, dtype=np.float64))
        outside = ~self.contains(x, y)
        if outside.any():
            first = np.flatnonzero(outside)[0]
            low_x, low_y, high_x, high_y = self.bounds_m
            raise InputError(
                "x_m, y_m",
                f"({x.flat[first]:g}, {y.flat[first]:g}) lies outside the terrain, which reaches from "
                f"({low_x:g}, {low_y:g}) to ({high_x:g}, {high_y:g})",
            )
        i, u = _split((x - self.x_m[0]) / self.spacing_m[0], len(self.x_m))
        j, v = _split((y - self.y_m[0]) / self.spacing_m[1], len(self.y_m))
        z = self.z_m
        return u, v, (z[j, i], z[j, i + 1], z[j + 1, i], z[j + 1, i + 1])


def _split(position: Array, n: int) -> tuple[NDArray[np.int64], Array]:
    cell = np.clip(np.floor(position).astype(np.int64), 0, n - 2)
    return cell, np.clip(position - cell, 0, 1)


def _cells(name: str, size_m: float, middle_m: float, spacing_m: float) -> int:
    if not 0 < size_m < np.inf or not np.isfinite(middle_m):
        raise InputError("size_m", f"the extent in {name} is {size_m:g} m; expected a finite number above 0")
    if not spacing_m > 0:
        raise InputError("spacing_m", f"expected a number above 0, found {spacing_m:g}")
    return max(1, int(min(np.ceil(size_m / spacing_m - 1e-9), 2**53)))  # more overflow; any so large is refused


def _require_even(name: str, values: Array) -> None:
    if len(values) < 2:
        raise InputError(name, f"has {len(values)} numbers; expected at least 2")
    steps = np.diff(values)
    even = (values[-1] - values[0]) / (len(values) - 1)
    if not (np.isfinite(values).all() and even > 0 and np.allclose(steps, even, rtol=1e-6, atol=1e-9 * abs(values[0]))):
        raise InputError(name, "is not ascending in even steps")


def fractal_noise(
    x_m: Array, y_m: Array, seed: int, *, wavelength_m: float, octaves: int = 5, roughness: float = 0.45
) -> Array:
    """Return smooth noise at places of any shape: Perlin's gradient noise, summed over octaves.

    The gradients come from a hash of seed, octave and lattice point, not from a stream of random numbers, so a larger
    or finer grid shows the same hills.

    Args:
        x_m, y_m: places [m].
        seed: 0 to 2⁶⁴ - 1.
        wavelength_m: lattice spacing of the first octave [m].
        octaves: how many, 1 to 16, each of half the wavelength of the one before.
        roughness: amplitude of each octave as a share of the one before, 0 to 1.

    Returns:
        Noise of mean 0; the largest octave has an amplitude of about 0.5.

    Raises:
        InputError: an argument is out of bounds.
    """
    if not 0 <= seed < 1 << 64:
        raise InputError("seed", f"expected 0 to 2**64 - 1, found {seed}")
    if not 0 < wavelength_m < np.inf or not 1 <= octaves <= 16 or not 0 <= roughness <= 1:
        raise InputError(
            "wavelength_m, octaves, roughness",
            f"expected above 0, 1 to 16 and 0 to 1, found {wavelength_m:g}, {octaves}, {roughness:g}",
        )
    total = np.zeros(np.broadcast(x_m, y_m).shape)
    for octave in range(octaves):
        scale = wavelength_m / 2**octave
        # Octaves are shifted against each other; gradient noise is 0 on its lattice, which must not coincide.
        x, y = x_m / scale + 0.37 * octave, y_m / scale + 0.71 * octave
        total += roughness**octave * _gradient_noise(x, y, seed, octave)
    return total


def _gradient_noise(x: Array, y: Array, seed: int, octave: int) -> Array:
    i, j = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    u, v = x - i, y - j
    corners = [[_pull(i + a, j + b, u - a, v - b, seed, octave) for a in (0, 1)] for b in (0, 1)]
    s, t = (w**3 * (w * (w * 6 - 15) + 10) for w in (u, v))  # Perlin's fade: no kink in the curvature
    near, far = (row[0] + s * (row[1] - row[0]) for row in corners)
    return near + t * (far - near)


def _pull(i: NDArray[np.int64], j: NDArray[np.int64], u: Array, v: Array, seed: int, octave: int) -> Array:
    """Height that the slope of lattice point (i, j) gives at the offset (u, v) from it."""
    angle = _hash(i, j, seed, octave).astype(np.float64) * (2 * np.pi / 2**64)
    return np.cos(angle) * u + np.sin(angle) * v


def _hash(i: NDArray[np.int64], j: NDArray[np.int64], seed: int, octave: int) -> NDArray[np.uint64]:
    """Mix lattice point, seed and octave with the finaliser of SplitMix64, once for each."""
    state = np.full(i.shape, seed, dtype=np.uint64)
    for part in (np.uint64(octave), i.astype(np.uint64), j.astype(np.uint64)):
        state = state ^ part
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state
