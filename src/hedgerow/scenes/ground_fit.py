# SPDX-License-Identifier: Apache-2.0
"""The ground under a cloud of points: a height field that plants and walls do not pull up.

Points are first reduced to columns of half a metre (`PointGrid`), so that memory does not grow with their number. The
lowest of each column start the fit, but for those that nothing nearby supports (reflections below the ground). The
surface is a sum of Gaussians of bounded support on grids, coarse ones first and finer ones for what is left
(Tallavajhula 2018 §4.3.1.2 and Table 4.1: radius 5 m, regularisation 0.001; his library refines in layers likewise).
Points above the surface lose weight from round to round; in the end what lies within a band around it decides.

    ground = fit_ground(log.points())
    height_m = ground.height_above(points_m)
    scene_ground = ground.terrain()
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from hedgerow.base import arrays
from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Parameters, Positive
from hedgerow.errors import InputError
from hedgerow.scenes.point_grid import GridTable, PointGrid, find, step
from hedgerow.scenes.point_source import all_points
from hedgerow.scenes.terrain import MAX_POINTS, Terrain

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.log import Log
    from hedgerow.world.learned import LearnedWorld

_LAYER_M = 0.1
"""Height of a cell in which points are summed up."""
_SUPPORT_M, _SUPPORT_CELLS, _SUPPORT_N = 0.3, 2, 2
"""A low point needs so many others, within so many cells, that lie as high but for this and the slope."""
_COARSE = 4
"""Cells along a side of those in which the steepest slope is looked at."""
_BAND_M = (-0.3, 0.12)
"""Points so far below and above the surface are the ground in the last rounds."""


class GroundSettings(Parameters):
    """How the ground is fitted."""

    radius_m: Positive = 5.0
    """Half the support of a basis function [m] (Tallavajhula 2018 Table 4.1)."""
    regularisation: Positive = 0.001
    """Weight of small coefficients, as a share of the mean weight of the data (Table 4.1)."""
    refinements: int = Field(default=1, ge=0, le=4)
    """Further layers of basis functions, each of half the radius: ruts and banks."""
    max_side_m: Positive = 10.0
    """Longest side of a ground triangle [m]: wider gaps in the data stay holes (Table 4.1)."""
    cell_m: Positive = 0.5
    """Side of the columns that points are reduced to [m]."""
    spacing_m: Positive = 0.5
    """Grid of the result [m]."""
    max_slope: Positive = 0.8
    """Steepest ground, rise over run: what stands out more than that is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """A fitted ground: heights on a regular grid, and where data supports them."""

    x_m: Array
    """(nx,) evenly spaced, ascending [m]."""
    y_m: Array
    """(ny,) [m]."""
    z_m: Array
    """(ny, nx) heights, map frame [m]; finite everywhere."""
    known: NDArray[np.bool_]
    """(ny, nx) whether data lies around, with no gap wider than `max_side_m`."""
    sigma_m: float
    """Spread of the ground points about the surface: 1.48 times the median of their distances [m]."""

    def height_m(self, x_m: ArrayLike, y_m: ArrayLike) -> Array:
        """Return the heights at places of any shape [m]; beyond the grid, those of its border."""
        x = np.clip(np.asarray(x_m, dtype=np.float64), self.x_m[0], self.x_m[-1])
        y = np.clip(np.asarray(y_m, dtype=np.float64), self.y_m[0], self.y_m[-1])
        return self._surface().height_m(x, y)

    def height_above(self, points_m: Array) -> Array:
        """Return how high (N, 3) points are above the ground [m]."""
        return points_m[:, 2] - self.height_m(points_m[:, 0], points_m[:, 1])

    def is_known(self, x_m: ArrayLike, y_m: ArrayLike) -> NDArray[np.bool_]:
        """Tell at which places data supports the ground; none is beyond the grid."""
        x, y = np.asarray(x_m, dtype=np.float64), np.asarray(y_m, dtype=np.float64)
        step_x, step_y = self.x_m[1] - self.x_m[0], self.y_m[1] - self.y_m[0]
        i, j = np.rint((x - self.x_m[0]) / step_x), np.rint((y - self.y_m[0]) / step_y)
        inside = (i >= 0) & (i < len(self.x_m)) & (j >= 0) & (j < len(self.y_m))
        i, j = np.where(inside, i, 0).astype(np.int64), np.where(inside, j, 0).astype(np.int64)
        return inside & self.known[j, i]

    def terrain(self, *, material: str = "soil", label: str = "ground") -> Terrain:
        """Return it as terrain; holes are filled smoothly."""
        return Terrain(self.x_m, self.y_m, self.z_m, ((material, label),))

    def triangles(self) -> Array:
        """Return (T, 3, 3) corners of the triangles that data supports, map frame [m]; holes are left out."""
        mesh = self._surface().mesh()
        keep = self.known.ravel()[mesh.triangles].all(axis=1)
        return mesh.vertices_m[mesh.triangles[keep]]

    def cropped(self, size_m: tuple[float, float], middle_m: tuple[float, float]) -> "Ground":
        """Return the part within a rectangle.

        Raises:
            InputError: nothing of the ground lies in it; names the field.
        """
        keep_x = np.abs(self.x_m - middle_m[0]) <= size_m[0] / 2 + 1e-9
        keep_y = np.abs(self.y_m - middle_m[1]) <= size_m[1] / 2 + 1e-9
        if keep_x.sum() < 2 or keep_y.sum() < 2:
            reach = f"({self.x_m[0]:.1f}, {self.y_m[0]:.1f}) to ({self.x_m[-1]:.1f}, {self.y_m[-1]:.1f})"
            raise InputError("size_m", f"nothing of the ground lies there; its points reach from {reach}")
        z_m, known = self.z_m[np.ix_(keep_y, keep_x)], self.known[np.ix_(keep_y, keep_x)]
        return Ground(self.x_m[keep_x], self.y_m[keep_y], z_m, known, self.sigma_m)

    def _surface(self) -> Terrain:
        return Terrain(self.x_m, self.y_m, self.z_m)


def fit_ground(points_m: ArrayLike, settings: GroundSettings | None = None, *, weight: Array | None = None) -> Ground:
    """Fit the ground to points.

    Args:
        points_m: (N, 3) map frame [m]; what stands on the ground may be among them.
        settings: how.
        weight: (N,) how many points each one stands for. Default 1.

    Raises:
        InputError: too few points, or an extent that no grid can hold.
    """
    settings = settings or GroundSettings()
    points = arrays.as_floats("points_m", points_m, ("N", 3))
    arrays.require_coordinates("points_m", points)
    grid = ground_grid(settings)
    for first in range(0, len(points), 1_000_000):
        some = slice(first, first + 1_000_000)
        grid.add(points[some], weight=None if weight is None else weight[some])
    return fit_ground_of(grid, settings)


def ground_grid(settings: GroundSettings | None = None) -> PointGrid:
    """Return an empty grid for points to be added to, chunk by chunk, for `fit_ground_of`."""
    cell_m = (settings or GroundSettings()).cell_m
    return PointGrid((cell_m, cell_m, _LAYER_M))


def fit_ground_of(grid: PointGrid, settings: GroundSettings | None = None) -> Ground:
    """Fit the ground to the points that were added to a `ground_grid`; see `fit_ground`."""
    settings = settings or GroundSettings()
    table = grid.table()
    rows = _lowest_supported(table, settings)
    if len(rows) < 3:
        said = f"{len(table):,} columns of points, of which {len(rows)} can be ground; expected at least 3"
        raise InputError("points", f"are too few or too scattered to fit a ground to: {said}")
    field = _Field(table.mean_m, settings)
    rows = rows[_below_steepest(table.mean_m[rows], settings)]
    coarse = [settings.radius_m * factor for factor in (8, 4, 2)]
    fine = [settings.radius_m / 2**k for k in range(settings.refinements + 1)]
    data = table.mean_m[rows]
    height_m = field.at(data)
    for radius_m in (*coarse, *fine):
        height_m = field.refine(data, height_m, radius_m, rounds=3)
    for _ in range(2):
        within = _within_band(table, field.near(table.mean_m))
        data = within if len(within) >= 3 else data
        height_m = field.at(data)
        for radius_m in fine:
            height_m = field.refine(data, height_m, radius_m, rounds=1)
    return _gridded(field, data, height_m, settings)


def ground_of(
    source: "Log | LogSource | LearnedWorld", settings: GroundSettings | None = None, *, thin: int = 1
) -> Ground:
    """Fit the ground to the points of a log or of a learned world, chunk by chunk.

    Args:
        source: a log, in memory or opened, or a world.
        settings: how.
        thin: take every n-th sweep.

    Raises:
        InputError: too few points, or an extent that no grid can hold.
    """
    settings = settings or GroundSettings()
    grid = ground_grid(settings)
    for chunk in all_points(source, thin=thin, side_m=settings.cell_m / 2):
        grid.add(chunk.points_m)
    return fit_ground_of(grid, settings)


def _lowest_supported(table: GridTable, settings: GroundSettings) -> NDArray[np.int64]:
    """Return the rows of the lowest cell of each column that others nearby support; climbs past those that none do."""
    column = table.columns()
    first = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    if not len(table):
        return first
    end = np.append(first[1:], len(column))
    key, at = column[first], first.copy()
    lonely = np.zeros(len(key), dtype=np.bool_)
    for _ in range(6):
        z_m = table.mean_m[np.minimum(at, len(column) - 1), 2]
        z_m = np.where(at < end, z_m, np.inf)
        lonely = _supports(key, z_m, settings) < _SUPPORT_N
        at = np.where(lonely & (at < end), at + 1, at)
        if not (lonely & (at < end)).any():
            break
    good = (at < end) & ~lonely
    return at[good]


def _supports(key: NDArray[np.int64], z_m: Array, settings: GroundSettings) -> NDArray[np.int64]:
    """Count the neighbouring columns whose lowest cell is about as high."""
    n = np.zeros(len(key), dtype=np.int64)
    reach = range(-_SUPPORT_CELLS, _SUPPORT_CELLS + 1)
    for dx, dy in [(dx, dy) for dx in reach for dy in reach if (dx, dy) != (0, 0)]:
        row = find(key, key + (step(dx, dy, 0) >> 21))
        most_m = _SUPPORT_M + settings.max_slope * settings.cell_m * np.hypot(dx, dy)
        with np.errstate(invalid="ignore"):
            n += (row >= 0) & (np.abs(z_m[row] - z_m) <= most_m)
    return n


def _below_steepest(points_m: Array, settings: GroundSettings) -> NDArray[np.bool_]:
    """Tell which points no steepest slope from a lower one passes below (Vosselman 2000)."""
    side_m = _COARSE * settings.cell_m
    index = np.floor((points_m[:, :2] - points_m[:, :2].min(axis=0)) / side_m).astype(np.int64)
    n_x, n_y = (int(each) + 1 for each in index.max(axis=0))
    if n_x * n_y > MAX_POINTS:
        return np.ones(len(points_m), dtype=np.bool_)  # the grid of the result will be refused
    low_m = np.full((n_x, n_y), np.inf)
    np.minimum.at(low_m, (index[:, 0], index[:, 1]), points_m[:, 2])
    rise_m = settings.max_slope * side_m
    for axis in (0, 1):
        ramp = rise_m * np.arange(low_m.shape[axis])[(slice(None), None) if axis == 0 else (None, slice(None))]
        up = np.minimum.accumulate(low_m - ramp, axis=axis) + ramp
        down = np.flip(np.minimum.accumulate(np.flip(low_m + ramp, axis), axis=axis), axis) - ramp
        low_m = np.minimum(up, down)
    return points_m[:, 2] <= low_m[index[:, 0], index[:, 1]] + rise_m + _SUPPORT_M


def _within_band(table: GridTable, surface_m: Array) -> Array:
    """Return (M, 3) the mean of the points of each column that lie in a band around the surface."""
    off_m = table.mean_m[:, 2] - surface_m
    rows = np.flatnonzero((off_m > _BAND_M[0]) & (off_m < _BAND_M[1]))
    if not len(rows):
        return np.zeros((0, 3))
    column = table.columns()[rows]
    first = np.flatnonzero(np.concatenate([[True], column[1:] != column[:-1]]))
    n = table.count[rows]
    sums = np.add.reduceat(np.column_stack([n, table.mean_m[rows] * n[:, None]]), first, axis=0)
    return sums[:, 1:] / sums[:, :1]


class _Field:
    """A sum of layers, each a grid of basis functions: products of two Gaussians that end at the radius."""

    def __init__(self, points_m: Array, settings: GroundSettings) -> None:
        self._settings = settings
        self.low_m: Array = points_m[:, :2].min(axis=0)
        self.high_m: Array = points_m[:, :2].max(axis=0)
        self._level_m = float(np.median(points_m[:, 2]))
        self._layers: dict[float, Array] = {}
        n = np.ceil((self.high_m - self.low_m) / settings.spacing_m) + 1
        if n.prod() > MAX_POINTS:
            said = f"the points reach over {n[0] * settings.spacing_m:,.0f} by {n[1] * settings.spacing_m:,.0f} m, "
            said += f"more than {MAX_POINTS:,} grid points; take a wider spacing, or leave out what is far away"
            raise InputError("spacing_m", said)

    def at(self, points_m: Array) -> Array:
        """Return the heights at (N, 2 or 3) places."""
        z_m = np.full(len(points_m), self._level_m)
        for radius_m, coefficients in self._layers.items():
            z_m += self._rows(points_m, radius_m) @ coefficients.ravel()
        return z_m

    def near(self, points_m: Array) -> Array:
        """Return about the heights at (N, 3) places: between points of a grid, which is quicker for many."""
        size_m = np.maximum(self.high_m - self.low_m, 1e-3)
        side_m = max(self._settings.cell_m, float(np.sqrt(size_m.prod() / MAX_POINTS)))
        n = np.maximum(np.ceil(size_m / side_m), 1)
        x, y = (float(self.low_m[k]) + float(size_m[k] / n[k]) * np.arange(float(n[k]) + 1) for k in (0, 1))
        surface = Terrain(x, y, self.on_grid(x, y))
        inside = [np.clip(points_m[:, k], axis[0], axis[-1]) for k, axis in enumerate((x, y))]
        return surface.height_m(inside[0], inside[1])

    def on_grid(self, x_m: Array, y_m: Array) -> Array:
        """Return the (ny, nx) heights on a regular grid."""
        z_m = np.full((len(y_m), len(x_m)), self._level_m)
        for radius_m, coefficients in self._layers.items():
            along_x, along_y = (self._row(each, axis, radius_m) for axis, each in enumerate((x_m, y_m)))
            z_m += along_y @ (along_x @ coefficients).T
        return z_m

    def refine(self, points_m: Array, height_m: Array, radius_m: float, rounds: int) -> Array:
        """Fit one layer to what the others leave, weighing down what lies above.

        Args:
            points_m: (N, 3) data.
            height_m: (N,) what all layers give there so far.
            radius_m: of the layer.
            rounds: how often weights are set anew.

        Returns:
            (N,) what all layers give then.
        """
        from scipy import sparse

        rows = self._rows(points_m, radius_m)
        rest_m = points_m[:, 2] - height_m
        had = self._layers.get(radius_m, np.zeros(self._shape(radius_m)))
        change = np.zeros(had.size)
        for _ in range(rounds):
            weight = _weights(rest_m - rows @ change, radius_m)
            weighted = rows.multiply(weight[:, None]).tocsr()
            matrix = (rows.T @ weighted).tocsr()
            diagonal = matrix.diagonal()
            seen = diagonal > 0
            damping = self._settings.regularisation * float(diagonal[seen].mean()) if seen.any() else 1.0
            matrix = matrix + sparse.diags(np.full(had.size, damping))
            change = _solved(matrix, weighted.T @ rest_m, change, 1 / (diagonal + damping))
        self._layers[radius_m] = had + change.reshape(had.shape)
        return height_m + rows @ change

    def _shape(self, radius_m: float) -> tuple[int, int]:
        n = np.ceil((self.high_m - self.low_m) / (radius_m / 2.5)).astype(int) + 5
        return int(n[0]), int(n[1])

    def _rows(self, points_m: Array, radius_m: float) -> Any:
        """Return the (N, C) sparse values of all basis functions at places."""
        from scipy import sparse

        x, y = (self._values(points_m[:, axis], axis, radius_m) for axis in (0, 1))
        n_y = self._shape(radius_m)[1]
        index = (x[0][:, :, None] * n_y + y[0][:, None, :]).reshape(len(points_m), -1)
        value = (x[1][:, :, None] * y[1][:, None, :]).reshape(len(points_m), -1)
        pointer = np.arange(len(points_m) + 1) * index.shape[1]
        shape = (len(points_m), self._shape(radius_m)[0] * n_y)
        return sparse.csr_matrix((value.ravel(), index.ravel(), pointer), shape=shape)

    def _row(self, places_m: Array, axis: int, radius_m: float) -> Any:
        from scipy import sparse

        index, value = self._values(places_m, axis, radius_m)
        pointer = np.arange(len(places_m) + 1) * index.shape[1]
        shape = (len(places_m), self._shape(radius_m)[axis])
        return sparse.csr_matrix((value.ravel(), index.ravel(), pointer), shape=shape)

    def _values(self, places_m: Array, axis: int, radius_m: float) -> tuple[NDArray[np.int64], Array]:
        """Return (N, 5) numbers of the basis functions around places along an axis, and their values there."""
        side_m = radius_m / 2.5
        # Centre k stands at low + (k - 2) sides; five of them reach a place, since a radius is two and a half sides.
        place = (places_m - self.low_m[axis]) / side_m + 2
        index = np.rint(place).astype(np.int64)[:, None] + np.arange(-2, 3)
        index = np.clip(index, 0, self._shape(radius_m)[axis] - 1)
        off = place[:, None] - index
        edge = np.exp(-0.5 * 2.5**2)
        return index, np.maximum(np.exp(-0.5 * off**2) - edge, 0.0)


def _solved(matrix: Any, wanted: Array, start: Array, scale: Array, rounds: int = 60, accuracy: float = 1e-3) -> Array:
    """Solve by conjugate gradients. By hand: those of SciPy add up in BLAS, in an order that hangs on its threads."""
    x = start.copy()
    rest = wanted - matrix @ x
    along = scale * rest
    energy = float((rest * along).sum())
    enough = accuracy**2 * float((wanted * wanted).sum())
    for _ in range(rounds):
        if float((rest * rest).sum()) <= enough:
            break
        ahead: Array = matrix @ along
        step_length = energy / float((along * ahead).sum())
        x += step_length * along
        rest -= step_length * ahead
        scaled = scale * rest
        before, energy = energy, float((rest * scaled).sum())
        along = scaled + energy / before * along
    return x


def _weights(off_m: Array, radius_m: float) -> Array:
    """Weigh points by their distance from the surface: what stands above counts little, what lies far below too."""
    # A coarse layer cannot follow the ground; what it leaves must not be taken for plants yet.
    above_m, below_m = 0.1 + 0.04 * radius_m, 0.4 + 0.08 * radius_m
    return np.where(off_m > 0, 1 / (1 + (off_m / above_m) ** 4), 1 / (1 + (off_m / below_m) ** 4))


def _gridded(field: _Field, data_m: Array, height_m: Array, settings: GroundSettings) -> Ground:
    from scipy import ndimage

    spacing_m = settings.spacing_m
    low, high = np.floor(field.low_m / spacing_m), np.ceil(field.high_m / spacing_m)
    high = np.maximum(high, low + 1)
    axes: list[Array] = [spacing_m * np.arange(float(low[k]), float(high[k]) + 1) for k in (0, 1)]
    near = [np.clip(axis, field.low_m[k], field.high_m[k]) for k, axis in enumerate(axes)]
    z_m = field.on_grid(near[0], near[1])
    off_m = data_m[:, 2] - height_m
    reach = int(np.ceil(settings.max_side_m / 2 / spacing_m))
    seen = np.zeros((len(axes[1]) + 2 * reach, len(axes[0]) + 2 * reach), dtype=np.bool_)
    i, j = (np.rint(data_m[:, k] / spacing_m - low[k]).astype(np.int64) + reach for k in (0, 1))
    seen[j, i] = True
    # Gaps are closed, borders stay: wider by half the longest side, then narrower by as much.
    distance: Any = ndimage.distance_transform_edt
    wide = distance(~seen) <= settings.max_side_m / 2 / spacing_m
    known = distance(np.pad(wide, 1))[1:-1, 1:-1] > settings.max_side_m / 2 / spacing_m - 1
    known = known[reach:-reach, reach:-reach]
    return Ground(axes[0], axes[1], z_m, known, float(1.4826 * np.median(np.abs(off_m))))
