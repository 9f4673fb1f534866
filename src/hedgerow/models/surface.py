# SPDX-License-Identifier: Apache-2.0
"""The surface models, solid and permeable: a triangle mesh through the points of a log (Browning 2012 §3.3.2).

The points are thinned, get normals by robust plane fits, and define an implicit surface by robust implicit
moving least squares (Oztireli, Guennebaud and Gross 2009), evaluated on the nodes of a sparse grid near the points and
cut by marching cubes (Lorensen and Cline 1987). A node depends only on points within reach of it, so the log is
worked through in square tiles with a halo; the meshes of the tiles fit together without seams, as if made at once.

Where a node has fewer than `min_neighbours` points within the kernel but enough within `reach_m`, the wider radius
serves: the far corner of a cube that a slanting surface cuts can be √3 node spacings away, and without its value
slopes get holes (with 0.3 m and 0.4 m: 3 to 10 % of any slope above 20°, however dense the points). `min_close` and
`max_gap_m` keep the surface from growing beyond its points all the same.

Equations: docs/models.md §10.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hedgerow import _core
from hedgerow.base.parameters import Positive, Share
from hedgerow.base.progress import Progress, counted, of_beams, one
from hedgerow.errors import InputError
from hedgerow.models.steps import thinning
from hedgerow.models.steps.kept import another_model, require_kept, wide_enough_m
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.normals import fit_normals
from hedgerow.models.steps.permeability import CountParameters, count_passes, count_permeability, drop_passed
from hedgerow.models.steps.surface_noise import NoiseParameters, learn_noise
from hedgerow.world.elements import Triangles
from hedgerow.world.labels import LabelCounts
from hedgerow.world.simplified import simplify_triangles

_NEIGHBOURS = 8
"""A kernel that holds so many returns around most of them makes a surface without many holes."""
PointFilter = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""From (M, 3) points, map frame, to the mask of those to use."""


class SurfaceParameters(NoiseParameters, CountParameters):
    """Parameters of a surface that is permeable, or part of another model: those of the mesh, and of counting."""

    node_m: Positive = 0.3
    """Spacing of the grid's nodes, and so about the size of the triangles."""
    kernel_m: Positive = 0.4
    """Radius within which points define normals and surface. Larger values are smoother and round off corners."""
    reach_m: Positive | None = None
    """Radius used where kernel_m holds too few points. Default: √3 node_m, or kernel_m if that is larger."""
    min_neighbours: int = Field(default=3, ge=1)
    """Minimum number of thinned points within reach of a grid node; other nodes are left out."""
    min_close: int = Field(default=6, ge=0, le=8)
    """A grid cube gets triangles only if at least this many of its eight nodes have enough points within kernel_m."""
    max_gap_m: Positive | None = None
    """Triangles farther than this from every point are removed. Default: 0.6 kernel_m. Smaller values open holes where
    points are sparse, larger ones let edges grow into free space."""
    sigma_residual: Positive = 0.5
    """Distance from the surface, as a share of kernel_m, beyond which points lose weight."""
    sigma_normal: Positive = 0.8
    """Difference of unit normals from the surface's beyond which points lose weight."""
    rounds: int = Field(default=4, ge=0, le=100)
    """Maximum number of reweighting iterations; 0 is plain implicit moving least squares."""
    voxel_m: Positive | None = None
    """Points are first thinned to one per voxel of this side. Default: an eighth of kernel_m."""
    upward: float = Field(default=0.2, ge=0, le=1)
    """How far the direction to the sensor is tilted up when normals are oriented, so that ground seen at grazing angles
    (below 11° for 0.2) faces up."""
    simplify: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the triangles that simplification of the mesh takes away, where that moves the surface least. Needs the
    package fast-simplification (pip install 'hedgerow[simplify]')."""
    tile_m: float = Field(default=24.0, gt=0)
    """Side of the tiles that are processed one by one; inf for a single tile. Does not change the surface."""
    budget_mb: Positive = 1024.0
    """Memory for thinned points; more go to temporary files."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kernel_m > 32 * self.node_m:
            raise InputError("kernel_m", f"is {self.kernel_m:g}, more than 32 times node_m, {self.node_m:g}")
        if self.tile_m < 2 * self.halo_m + self.node_m:
            raise InputError("tile_m", f"is {self.tile_m:g}, expected at least {2 * self.halo_m + self.node_m:g}")
        return self

    @property
    def thinning_voxel_m(self) -> float:
        """Side of the voxels that points are thinned in [m]."""
        return self.kernel_m / 8 if self.voxel_m is None else self.voxel_m

    @property
    def farthest_m(self) -> float:
        """Distance up to which points shape a node [m]."""
        return self.reach_m if self.reach_m is not None else max(self.kernel_m, math.sqrt(3) * self.node_m)

    @property
    def largest_gap_m(self) -> float:
        """Largest distance of a triangle from the nearest point [m]."""
        return 0.6 * self.kernel_m if self.max_gap_m is None else self.max_gap_m

    @property
    def halo_m(self) -> float:
        """Distance from a tile up to which points shape it [m]; some only by the normals of others."""
        return max(self.farthest_m, self.largest_gap_m, self.kernel_m) + self.kernel_m + 2 * self.thinning_voxel_m

    @property
    def nodes_per_tile(self) -> int | None:
        """Tiles end at nodes; None if there is only one."""
        return None if math.isinf(self.tile_m) else round(self.tile_m / self.node_m)


class SolidSurfaceParameters(SurfaceParameters):
    """Parameters of the solid surface model."""

    max_passed: Share = 0.5
    """Triangles that more than this share of the beams passed are removed: they are traces of moving objects, or extend
    into free space. 1 keeps all, as Browning 2012 does."""


def learn_surface(task: LearningTask, parameters: SolidSurfaceParameters) -> tuple[Triangles]:
    """Learn solid triangles, without those that most beams passed."""

    def advice() -> str:
        return kernel_advice(task, parameters)

    triangles = fit_surface(task.chunks, parameters, progress=task.start("fitting the surface"))
    if parameters.max_passed < 1:
        counts = count_passes(task, (triangles,), parameters.window_m, advice=advice)
        priors = {"prior_hits": parameters.prior_hits, "prior_passes": parameters.prior_passes}
        triangles = drop_passed(triangles, counts, parameters.max_passed, **priors)
    if len(triangles) == 0:
        require_kept(0, task.summary.n_returns, advice)
    return (with_noise(task, triangles, parameters),)


def learn_permeable_surface(task: LearningTask, parameters: SurfaceParameters) -> tuple[Triangles, ...]:
    """Learn permeable triangles."""
    triangles = fit_surface(task.chunks, parameters, progress=task.start("fitting the surface"))
    tables = (with_noise(task, triangles, parameters),)
    return count_permeability(task, tables, parameters, advice=lambda: kernel_advice(task, parameters))


def kernel_advice(task: LearningTask, parameters: SurfaceParameters) -> str:
    """Say which kernel suits the spacing of the points, if a larger one would help; else which model."""
    kernel_m = better_kernel_m(task, parameters)
    if kernel_m is None:
        return another_model()
    larger = f"kernel_m={kernel_m:g} and node_m={node_of(parameters, kernel_m):g}"
    return f"take {larger}, or the model topdown, which keeps all of them"


def better_kernel_m(task: LearningTask, parameters: SurfaceParameters) -> float | None:
    """Return the kernel_m that suits the spacing of the points; None if that is no larger than it is."""
    kernel_m = wide_enough_m(task.chunks, _NEIGHBOURS)
    return None if kernel_m is None or kernel_m <= parameters.kernel_m else kernel_m


def node_of(parameters: SurfaceParameters, kernel_m: float) -> float:
    """Return the node_m that has the same proportion to another kernel_m."""
    return round(parameters.node_m / parameters.kernel_m * kernel_m, 1)


def with_noise(task: LearningTask, triangles: Triangles, parameters: SurfaceParameters) -> Triangles:
    """Return the triangles with their range noise."""
    return replace(triangles, noise=learn_noise(task, triangles, parameters))


def fit_surface(
    chunks: LogChunks,
    parameters: SurfaceParameters | None = None,
    *,
    points_to_use: PointFilter | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Triangles:
    """Fit a solid surface to the points of a log.

    Args:
        chunks: of the log, map frame; read once.
        parameters: None for the defaults.
        points_to_use: selects points, for example those that belong to surfaces. Default: all.
        threads: 0 for all; the result does not depend on it.
        progress: called after each tile with the number of beams it is worth.

    Returns:
        Triangles of permeability 0, anticlockwise as the sensor saw them, with mean and spread of the intensity and
        the labels of the points near them. Empty if the log has no returns, or too few of them.

    Raises:
        InputError: the log is empty, or its points span more kilometres than a grid can.
    """
    chosen = SurfaceParameters() if parameters is None else parameters
    n_nodes = chosen.nodes_per_tile
    with thinning.ThinnedPointStore(
        voxel_m=chosen.thinning_voxel_m,
        tile_m=math.inf if n_nodes is None else n_nodes * chosen.node_m,
        halo_m=chosen.halo_m,
        budget_bytes=chosen.budget_mb * 1e6,
        threads=threads,
    ) as store:
        n_beams = _read(chunks, store, points_to_use)
        meshes: list[Triangles] = []
        tiles = store.tiles()
        for tile in counted(tiles, of_beams(progress, n_beams, len(tiles)), one):
            meshes.append(_tile_surface(store.points(tile), tile, chosen, threads))
    if not meshes:
        return Triangles.plain(np.zeros((0, 3, 3)))
    mesh = Triangles.join(meshes)
    return simplify_triangles(mesh, round((1 - chosen.simplify) * len(mesh)), asked_by="simplify")


def make_surface(thinned: thinning.ThinnedPoints, parameters: SurfaceParameters, *, threads: int = 0) -> Triangles:
    """Make the surface through thinned points as a single tile; see `fit_surface`."""
    return _tile_surface(thinned, None, parameters, threads)


def _read(chunks: LogChunks, store: thinning.ThinnedPointStore, points_to_use: PointFilter | None) -> int:
    n_beams = 0
    for log in chunks():
        n_beams += len(log)
        points = thinning.points_of(log)
        if points_to_use is not None:
            mask = points_to_use(points["position_m"])
            points = {name: column if column is None else column[mask] for name, column in points.items()}
        store.add(points)
    if n_beams == 0:
        raise InputError("log", "is empty; there is nothing to learn a surface from")
    return n_beams


def _tile_surface(
    thinned: thinning.ThinnedPoints, tile: thinning.Tile | None, parameters: SurfaceParameters, threads: int
) -> Triangles:
    position_m = thinning.positions_m(thinned, parameters.thinning_voxel_m)
    thinning.require_spread(position_m, parameters.thinning_voxel_m)
    normal = fit_normals(position_m, thinned, parameters.kernel_m, upward=parameters.upward, threads=threads)
    mesh = _core.make_surface(
        thinned=thinning.as_bytes(thinned),
        position_m=position_m,
        normal=normal,
        weight=thinned["count"].astype(np.float32),
        settings=_settings(tile, parameters),
        threads=threads,
    )
    return Triangles.plain(
        mesh.corners_m.reshape(-1, 3, 3),
        intensity=mesh.intensity,
        intensity_sigma=mesh.intensity_sigma,
        label=LabelCounts.from_rows(mesh.n_labels, mesh.label, mesh.label_count),
    )


def _settings(tile: thinning.Tile | None, parameters: SurfaceParameters) -> _core.SurfaceSettings:
    return _core.SurfaceSettings(
        node_m=parameters.node_m,
        kernel_m=parameters.kernel_m,
        reach_m=parameters.farthest_m,
        min_neighbours=parameters.min_neighbours,
        min_close=parameters.min_close,
        sigma_residual_m=parameters.sigma_residual * parameters.kernel_m,
        sigma_normal=parameters.sigma_normal,
        rounds=parameters.rounds,
        max_gap_m=parameters.largest_gap_m,
        cubes=_cubes(tile, parameters.nodes_per_tile),
    )


def _cubes(tile: thinning.Tile | None, n_nodes: int | None) -> _core.CubeRange:
    if tile is None or n_nodes is None:
        return _core.CubeRange(x_begin=-(2**62), x_end=2**62, y_begin=-(2**62), y_end=2**62)
    (x, y) = tile
    return _core.CubeRange(x_begin=x * n_nodes, x_end=(x + 1) * n_nodes, y_begin=y * n_nodes, y_end=(y + 1) * n_nodes)
