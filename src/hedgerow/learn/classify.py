# SPDX-License-Identifier: Apache-2.0
"""Surface or volume: what each point belongs to (000 §3.3.4).

A point's score is the sphericalness s = l1 / (l1 + l2 + l3) of the covariance of the points around it, with eigenvalues
l1 <= l2 <= l3: 0 on a plane, 1/3 in a cloud. Where there are too few points around, a default stands in. A bilateral
filter smooths the scores over near points of similar score, and a threshold divides them.

The neighbourhoods are those of grains (one per voxel), not of raw points, so a density of points that changes with the
distance from the sensor, or a sensor that stands still, does not change the shape. The class of a point is that of its
voxel, which is also how the classes of a log larger than memory are kept.

The defaults were trained by `hedgerow.learn.tune`; classifier_defaults.toml says on what.
"""

import math
from functools import cache
from importlib import resources
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hedgerow import _core
from hedgerow.learn import thinning
from hedgerow.learn.normals import eigenvalues
from hedgerow.learn.parts import Parts

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Score = Annotated[float, Field(ge=0, le=1 / 3)]

SPHERE = 1 / 3
"""Largest sphericalness there is."""
VOXEL_M = 0.05
"""Side of the voxels that points are summed up in."""


class ClassifierParameters(BaseModel):
    """How points are divided into surfaces and volumes."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    radius_m: Positive
    """How far around a point the covariance is taken: d of 000."""
    min_neighbours: int = Field(ge=1)
    """With fewer grains within it, the point itself included, the default score stands in: N_min."""
    default_score: Score
    """Sphericalness where there are too few: s_d."""
    filter_neighbours: int = Field(ge=1)
    """The filter takes this many nearest grains, the point itself included: N_f."""
    filter_radius_m: Positive
    """Within this distance: d_f."""
    distance_weight: NotNegative
    """How fast the filter's weights fall with distance: alpha_d."""
    score_weight: NotNegative
    """How fast they fall with the difference of scores: alpha_s."""
    threshold: Score
    """Scores above it are volumes: s_vol."""
    voxel_m: Positive = VOXEL_M
    """Side of the voxels that points are summed up in."""

    @classmethod
    def default(cls) -> "ClassifierParameters":
        """Return the trained defaults."""
        return _defaults()


@cache
def _defaults() -> ClassifierParameters:
    import tomllib

    text = resources.files("hedgerow.learn").joinpath("classifier_defaults.toml").read_text(encoding="utf-8")
    return ClassifierParameters(**tomllib.loads(text)["parameters"])


def scores(
    position_m: NDArray[np.float64], parameters: ClassifierParameters, *, threads: int = 0
) -> NDArray[np.float32]:
    """Return the (N,) smoothed sphericalness of (N, 3) positions, taken as they are, without thinning."""
    eigenvalue, count = eigenvalues(position_m, parameters.radius_m, threads=threads)
    total = eigenvalue.sum(axis=1)
    known = (count >= parameters.min_neighbours) & (total > 0)
    raw = np.full(len(position_m), parameters.default_score, dtype=np.float32)
    np.divide(eigenvalue[:, 0], total, out=raw, where=known)
    return _core.smooth_scores(
        position_m,
        raw,
        parameters.filter_radius_m,
        parameters.filter_neighbours,
        parameters.distance_weight,
        parameters.score_weight,
        SPHERE,
        threads,
    )


def classify(
    position_m: NDArray[np.float64], parameters: ClassifierParameters | None = None, *, threads: int = 0
) -> NDArray[np.bool_]:
    """Tell which points belong to volumes.

    Args:
        position_m: (N, 3) float64, map frame.
        parameters: None for the trained defaults.
        threads: 0 for all; the result does not depend on it.

    Returns:
        (N,) mask, True for volumes.

    Raises:
        InputError: positions that are not finite, or span more kilometres than a grid can.
    """
    chosen = ClassifierParameters.default() if parameters is None else parameters
    position_m = np.ascontiguousarray(position_m, dtype=np.float64).reshape(-1, 3)
    grains, grain_of = thinning.thin(
        position_m, np.zeros_like(position_m, dtype=np.float32), chosen.voxel_m, threads=threads
    )
    smoothed = scores(thinning.positions_m(grains, chosen.voxel_m), chosen, threads=threads)
    return (smoothed > chosen.threshold)[grain_of]


class VoxelClasses:
    """Which voxels of a log belong to volumes."""

    def __init__(self, voxel: NDArray[np.int32], is_volume: NDArray[np.bool_], voxel_m: float) -> None:
        """Keep the classes of (N, 3) voxels, each named once, with (N,) `is_volume`."""
        self._voxel_m = voxel_m
        self._low: NDArray[np.int64] = voxel.min(axis=0).astype(np.int64) if len(voxel) else np.zeros(3, dtype=np.int64)
        key = self._keys(voxel.astype(np.int64))
        order = np.argsort(key)
        self._key, self._is_volume = key[order], is_volume[order]

    def __len__(self) -> int:
        """Count the voxels."""
        return len(self._key)

    def is_volume(self, position_m: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the (N,) mask of (N, 3) points in voxels of volumes; False for those in voxels never seen."""
        if not len(self):
            return np.zeros(len(position_m), dtype=np.bool_)
        key = self._keys(np.floor(position_m / self._voxel_m).astype(np.int64))
        at = np.minimum(np.searchsorted(self._key, key), len(self) - 1)
        return self._is_volume[at] & (self._key[at] == key)

    def is_surface(self, position_m: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return the opposite of `is_volume`."""
        return ~self.is_volume(position_m)

    def _keys(self, voxel: NDArray[np.int64]) -> NDArray[np.int64]:
        x, y, z = (voxel - self._low).T
        outside = ((voxel < self._low) | (voxel - self._low >= 1 << 21)).any(axis=1)
        return np.where(outside, -1, (z << 42) | (y << 21) | x)


def classify_parts(
    parts: Parts,
    parameters: ClassifierParameters | None = None,
    *,
    tile_m: float = 24.0,
    budget_mb: float = 1024.0,
    threads: int = 0,
) -> VoxelClasses:
    """Classify all points of a log in one pass; memory for the points is bounded as in `learn_surface`.

    Args:
        parts: the log, in partitions.
        parameters: None for the trained defaults.
        tile_m: side of the tiles that are worked through one by one; inf for one piece. Does not change the classes.
        budget_mb: memory for summed-up points; more go to temporary files.
        threads: 0 for all.

    Returns:
        The classes of the log's voxels, to be asked for the classes of its points.
    """
    chosen = ClassifierParameters.default() if parameters is None else parameters
    halo_m = chosen.radius_m + chosen.filter_radius_m + 2 * chosen.voxel_m
    voxels: list[Any] = [np.zeros((0, 3), dtype=np.int32)]
    classes: list[Any] = [np.zeros(0, dtype=np.bool_)]
    settings = {"tile_m": max(tile_m, 2 * halo_m), "halo_m": halo_m, "budget_bytes": budget_mb * 1e6}
    with thinning.GrainStore(voxel_m=chosen.voxel_m, threads=threads, **settings) as store:
        for log in parts():
            points = thinning.points_of(log)
            store.add({"position_m": points["position_m"], "toward": points["toward"]})
        for tile in store.tiles():
            grains = store.grains(tile)
            own = _owned(grains, tile, settings["tile_m"], chosen.voxel_m)
            smoothed = scores(thinning.positions_m(grains, chosen.voxel_m), chosen, threads=threads)
            voxels.append(grains["voxel"][own])
            classes.append(smoothed[own] > chosen.threshold)
    return VoxelClasses(np.concatenate(voxels), np.concatenate(classes), chosen.voxel_m)


def _owned(grains: thinning.Grains, tile: thinning.Tile, tile_m: float, voxel_m: float) -> NDArray[np.bool_]:
    if math.isinf(tile_m):
        return np.ones(len(grains), dtype=np.bool_)
    at = np.floor((grains["voxel"][:, :2] + 0.5) * voxel_m / tile_m)
    return (at == tile).all(axis=1)
