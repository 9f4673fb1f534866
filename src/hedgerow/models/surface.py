# SPDX-License-Identifier: Apache-2.0
"""The surface world: a triangle mesh through the points of a log (Browning 2012 §3.3.2).

The points are thinned to grains, get normals by robust plane fits, and define an implicit surface by robust implicit
moving least squares (Oztireli, Guennebaud and Gross 2009), evaluated on the nodes of a sparse grid near the points and
cut by marching cubes (Lorensen and Cline 1987). A node depends only on points within reach of it, so the log is
worked through in square tiles with a halo, and the tiles' meshes are the pieces of the mesh made at once, without
seams.

Where a node has fewer than `min_neighbours` points within the kernel but enough within `reach_m`, the wider radius
serves: the far corner of a cube that a slanting surface cuts can be √3 node spacings away, and without its value
slopes get holes (with 0.3 m and 0.4 m: 3 to 10 % of any slope above 20°, however dense the points). `min_close` and
`max_gap_m` keep the surface from growing beyond its points all the same.

Equations: docs/models.md §10.
"""

import math
from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hedgerow import _core
from hedgerow.base.parameters import Parameters, Positive
from hedgerow.base.progress import Progress, counted, of_beams, one
from hedgerow.errors import InputError
from hedgerow.models.steps import grains as thinning
from hedgerow.models.steps.log_parts import Parts
from hedgerow.models.steps.normals import grain_normals
from hedgerow.world.elements import Triangles
from hedgerow.world.labels import LabelCounts

Keep = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""From (M, 3) points, map frame, to the mask of those to use."""


class SurfaceParameters(Parameters):
    """How a surface is learned."""

    node_m: Positive = 0.3
    """Spacing of the grid's nodes, and so about the size of the triangles."""
    kernel_m: Positive = 0.4
    """Points within it define normals and surface. Larger is smoother and rounds corners off."""
    reach_m: Positive | None = None
    """Used instead where the kernel holds too few points; None is √3 node spacings, or the kernel if that is more."""
    min_neighbours: int = Field(default=3, ge=1)
    """A node with fewer grains within reach does not exist."""
    min_close: int = Field(default=6, ge=0, le=8)
    """A cube is cut only if this many of its eight nodes have enough points within the kernel itself."""
    max_gap_m: Positive | None = None
    """A triangle farther than this from any point is dropped; None is 0.6 kernels. Less opens holes where points are
    sparse, more lets edges grow: permeability mends the second, nothing the first."""
    sigma_residual: Positive = 0.5
    """Points lose weight when they lie farther from the surface than about this share of the kernel."""
    sigma_normal: Positive = 0.8
    """Points lose weight when their unit normals differ by more than about this from the surface's."""
    rounds: int = Field(default=4, ge=0, le=100)
    """Most rounds of reweighting; 0 is plain implicit moving least squares."""
    voxel_m: Positive | None = None
    """Points in one voxel are summed up before anything else; None is an eighth of the kernel."""
    upward: float = Field(default=0.2, ge=0, le=1)
    """Tilts the direction to the sensor up before normals choose their side. Ground seen under a degree or two shows
    either side to a noisy fit; 0.2 takes what is nearly level and seen under less than 11° as seen from above."""
    noise_bend_deg: float = Field(default=10.0, gt=0, le=180)
    """Range noise is fitted where the mesh bends by less than this, as sensors have it on surfaces. 180 takes every
    residual: the noise then covers what the mesh cannot follow, for a better likelihood and less exact ranges."""
    tile_m: float = Field(default=24.0, gt=0)
    """Side of the tiles that are worked through one by one; inf for one piece. Does not change the surface."""
    budget_mb: Positive = 1024.0
    """Memory for summed-up points; more go to temporary files."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kernel_m > 32 * self.node_m:
            raise InputError("kernel_m", f"is {self.kernel_m:g}, more than 32 times node_m, {self.node_m:g}")
        if self.tile_m < 2 * self.halo_m + self.node_m:
            raise InputError("tile_m", f"is {self.tile_m:g}, expected at least {2 * self.halo_m + self.node_m:g}")
        return self

    @property
    def grain_m(self) -> float:
        """Side of the voxels that points are summed up in [m]."""
        return self.kernel_m / 8 if self.voxel_m is None else self.voxel_m

    @property
    def far_m(self) -> float:
        """How far a node can see [m]."""
        return self.reach_m if self.reach_m is not None else max(self.kernel_m, math.sqrt(3) * self.node_m)

    @property
    def gap_m(self) -> float:
        """How far a triangle may be from any point [m]."""
        return 0.6 * self.kernel_m if self.max_gap_m is None else self.max_gap_m

    @property
    def halo_m(self) -> float:
        """How far from a tile a point can have a say in it [m]: it may shape the normal of one that a node sees."""
        return max(self.far_m, self.gap_m, self.kernel_m) + self.kernel_m + 2 * self.grain_m

    @property
    def nodes_per_tile(self) -> int | None:
        """Tiles end at nodes; None if there is only one."""
        return None if math.isinf(self.tile_m) else round(self.tile_m / self.node_m)


def learn_surface(
    parts: Parts,
    parameters: SurfaceParameters | None = None,
    *,
    keep: Keep | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> Triangles:
    """Learn a solid surface from the points of a log.

    Args:
        parts: the log, in partitions; read once.
        parameters: None for the defaults.
        keep: chooses the points to use, for example those that belong to surfaces. Default: all.
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
    with thinning.GrainStore(
        voxel_m=chosen.grain_m,
        tile_m=math.inf if n_nodes is None else n_nodes * chosen.node_m,
        halo_m=chosen.halo_m,
        budget_bytes=chosen.budget_mb * 1e6,
        threads=threads,
    ) as store:
        n_beams = _read(parts, store, keep)
        meshes: list[Triangles] = []
        tiles = store.tiles()
        for tile in counted(tiles, of_beams(progress, n_beams, len(tiles)), one):
            meshes.append(_tile_surface(store.grains(tile), tile, chosen, threads))
    return Triangles.join(meshes) if meshes else Triangles.plain(np.zeros((0, 3, 3)))


def surface_of(grains: thinning.Grains, parameters: SurfaceParameters, *, threads: int = 0) -> Triangles:
    """Make the surface through grains in one piece; see `learn_surface`."""
    return _tile_surface(grains, None, parameters, threads)


def _read(parts: Parts, store: thinning.GrainStore, keep: Keep | None) -> int:
    n_beams = 0
    for log in parts():
        n_beams += len(log)
        points = thinning.points_of(log)
        if keep is not None:
            mask = keep(points["position_m"])
            points = {name: column if column is None else column[mask] for name, column in points.items()}
        store.add(points)
    if n_beams == 0:
        raise InputError("log", "is empty; there is nothing to learn a surface from")
    return n_beams


def _tile_surface(
    grains: thinning.Grains, tile: thinning.Tile | None, parameters: SurfaceParameters, threads: int
) -> Triangles:
    position_m = thinning.positions_m(grains, parameters.grain_m)
    thinning.require_spread(position_m, parameters.grain_m)
    normal = grain_normals(position_m, grains, parameters.kernel_m, upward=parameters.upward, threads=threads)
    mesh = _core.make_surface(
        grains=thinning.as_bytes(grains),
        position_m=position_m,
        normal=normal,
        weight=grains["count"].astype(np.float32),
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
        reach_m=parameters.far_m,
        min_neighbours=parameters.min_neighbours,
        min_close=parameters.min_close,
        sigma_residual_m=parameters.sigma_residual * parameters.kernel_m,
        sigma_normal=parameters.sigma_normal,
        rounds=parameters.rounds,
        max_gap_m=parameters.gap_m,
        cubes=_cubes(tile, parameters.nodes_per_tile),
    )


def _cubes(tile: thinning.Tile | None, n_nodes: int | None) -> _core.CubeRange:
    if tile is None or n_nodes is None:
        return _core.CubeRange(x_begin=-(2**62), x_end=2**62, y_begin=-(2**62), y_end=2**62)
    (x, y) = tile
    return _core.CubeRange(x_begin=x * n_nodes, x_end=(x + 1) * n_nodes, y_begin=y * n_nodes, y_end=(y + 1) * n_nodes)
