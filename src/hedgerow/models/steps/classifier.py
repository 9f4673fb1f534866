# SPDX-License-Identifier: Apache-2.0
"""Surface or volume: what each point of a log belongs to, by the shape of its surroundings (Browning 2012 §3.3.4).

Around each point, the smallest eigenvalue of the covariance over the sum of all three says how spherical the points
lie: 0 on a plane or a line, 1/3 in a ball. A bilateral filter smooths these scores without blurring the foot of a
hedge into the ground, and a threshold decides. Points are first thinned to one per voxel, so that neither range nor
a parked sensor changes what a neighbourhood looks like.

The hybrid model learns its triangles from the surface and its Gaussians from the volume. Called a volume, a patch of
road only costs memory; called a surface, grass becomes a wall. So what is in doubt is a volume.

Equations: docs/models.md §12.
"""

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow import _core
from hedgerow.base import arrays
from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.base.progress import Progress, counted, of_beams, one
from hedgerow.base.settings_file import read_toml
from hedgerow.errors import FileError
from hedgerow.log import Log
from hedgerow.models.steps import thinning
from hedgerow.models.steps.log_chunks import LogChunks
from hedgerow.models.steps.moments import require_points
from hedgerow.models.steps.normals import local_spectra

Score = Annotated[float, Field(ge=0, le=1 / 3)]
MAX_SCORE = 1 / 3
"""Sphericalness of a ball."""

_TILE_M = 32.0  # does not change the answer: tiles with a halo give the bytes that the whole gives
_BUDGET_BYTES = 1e9
_BITS = 21  # per axis, three to a key; thinning refuses points that span more voxels


def _read_defaults() -> dict[str, Any]:
    path = resources.files("hedgerow.models.steps") / "classifier_defaults.toml"
    return read_toml(path, "file of classifier parameters")["parameters"]


_SHIPPED = _read_defaults()


class ClassifierParameters(Parameters):
    """Parameters of the classifier of surface and volume; classifier_defaults.toml says what they were trained on."""

    voxel_m: Positive = _SHIPPED["voxel_m"]
    """Points are first thinned to one per voxel of this side, at their mean."""
    radius_m: Positive = _SHIPPED["radius_m"]
    """Radius of the neighbourhood whose shape is a point's score (d in Browning 2012)."""
    default_score: Score = _SHIPPED["default_score"]
    """Score of points with fewer than min_neighbours (s_d)."""
    min_neighbours: int = Field(default=_SHIPPED["min_neighbours"], ge=1)
    """Minimum number of thinned points within the radius, the point itself included, to compute a score (N_min)."""
    smooth_neighbours: int = Field(default=_SHIPPED["smooth_neighbours"], ge=1, le=2**31)
    """Maximum number of nearest points that a score is smoothed over, the point itself included (N_f)."""
    smooth_radius_m: Positive = _SHIPPED["smooth_radius_m"]
    """Radius that scores are smoothed over (d_f)."""
    distance_weight: NotNegative = _SHIPPED["distance_weight"]
    """How fast the smoothing weight falls with distance: exp(-a_d distance²/d_f²) (a_d)."""
    score_weight: NotNegative = _SHIPPED["score_weight"]
    """How fast the smoothing weight falls with the difference of scores: exp(-a_s difference²/(1/3)²) (a_s)."""
    volume_score: Score = _SHIPPED["volume_score"]
    """Points with at least this smoothed score belong to a volume (s_vol)."""

    @property
    def halo_m(self) -> float:
        """Distance up to which points change the class of a point [m]."""
        return self.radius_m + self.smooth_radius_m + 2 * self.voxel_m


def read_classifier(path: str | Path) -> ClassifierParameters:
    """Read parameters that `hedgerow tune classifier` wrote.

    Raises:
        FileError: missing, not TOML, or not such parameters; names the field.
    """
    content = read_toml(Path(path), "file of classifier parameters")
    if "parameters" not in content:
        raise FileError(f"{path}: no parameters of a classifier ('parameters'); see hedgerow tune classifier")
    return ClassifierParameters.parse_from(content["parameters"], path, "parameters")


@dataclass(frozen=True, eq=False)
class VolumeMap:
    """Which voxels of a site hold surface; all else is volume, also what was never seen."""

    voxel_m: float
    low: NDArray[np.int64]
    """(3,) lowest voxel that was seen, of a grid anchored at the map's zero."""
    surface: NDArray[np.int64]
    """(S,) the voxels that hold surface, as numbers relative to `low`, ascending."""
    n_volume: int
    """How many voxels hold volume."""

    def __call__(self, position_m: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return (N,) whether points (N, 3), map frame, belong to a volume."""
        position_m = arrays.require("position_m", position_m, np.float64, ("N", 3))
        arrays.require_finite("position_m", position_m)
        if not len(self.surface):
            return np.ones(len(position_m), dtype=np.bool_)
        voxel = np.floor(position_m / self.voxel_m) - self.low
        inside: NDArray[np.bool_] = np.asarray(((voxel >= 0) & (voxel < 1 << _BITS)).all(axis=1))
        key = _keys(np.where(inside[:, None], voxel, 0).astype(np.int64))
        at = np.minimum(np.searchsorted(self.surface, key), len(self.surface) - 1)
        return ~(inside & (self.surface[at] == key))


def classify(
    position_m: NDArray[np.float64], parameters: ClassifierParameters | None = None, *, threads: int = 0
) -> NDArray[np.bool_]:
    """Tell which points belong to a volume.

    Args:
        position_m: (N, 3) float64, map frame; UTM coordinates are fine.
        parameters: None for the defaults.
        threads: 0 for all; the result does not depend on it.

    Returns:
        (N,) True for volume, False for surface; the same for all points of a voxel.

    Raises:
        InputError: wrong shape, not finite, or the points lie too far apart.
    """
    chosen = ClassifierParameters() if parameters is None else parameters
    position_m = arrays.require("position_m", position_m, np.float64, ("N", 3))
    arrays.require_finite("position_m", position_m)
    thinned, thinned_of = thinning.thin(
        position_m, np.zeros(position_m.shape, np.float32), chosen.voxel_m, threads=threads
    )
    return _are_volume(thinned, chosen, threads)[thinned_of]


def sphericalness(eigenvalue: NDArray[np.float32], count: NDArray[np.uint32], parameters: ClassifierParameters) -> Any:
    """Return the (N,) float32 scores, not smoothed, of (N, 3) eigenvalues, ascending, of (N,) points each."""
    total = eigenvalue.sum(axis=1)
    known = (count >= parameters.min_neighbours) & (total > 0)
    default = np.float32(parameters.default_score)
    return np.where(known, eigenvalue[:, 0] / np.where(total > 0, total, 1), default).astype(np.float32)


def smooth_scores(
    position_m: NDArray[np.float64], score: NDArray[np.float32], parameters: ClassifierParameters, threads: int = 0
) -> NDArray[np.float32]:
    """Return the (N,) scores of (N, 3) thinned points after the bilateral filter (Browning 2012 eq. 7 and 8)."""
    bilateral = _core.Bilateral(
        radius_m=parameters.smooth_radius_m,
        n_neighbours=parameters.smooth_neighbours,
        distance_weight=parameters.distance_weight,
        score_weight=parameters.score_weight,
        score_range=MAX_SCORE,
    )
    return _core.smooth_scores(position_m, score, bilateral, threads)


def learn_volume_map(
    chunks: LogChunks,
    parameters: ClassifierParameters | None = None,
    *,
    threads: int = 0,
    progress: Progress | None = None,
) -> VolumeMap:
    """Learn where a log saw surfaces and where volumes, from all its returns.

    Args:
        chunks: of the log; read once. How it is cut and in which order it comes changes nothing.
        parameters: None for the defaults.
        threads: 0 for all; the result does not depend on it.
        progress: called after each tile of the site with the number of beams it is worth.

    Returns:
        The map, to be called with points.

    Raises:
        InputError: no beams, no returns, or the points span more kilometres than a grid can.
    """
    chosen = ClassifierParameters() if parameters is None else parameters
    tile_m = max(_TILE_M, 4 * chosen.halo_m)
    voxels: list[NDArray[np.int32]] = []
    is_volume: list[NDArray[np.bool_]] = []
    with thinning.ThinnedPointStore(
        voxel_m=chosen.voxel_m, tile_m=tile_m, halo_m=chosen.halo_m, budget_bytes=_BUDGET_BYTES, threads=threads
    ) as store:
        n_beams = _read(chunks, store)
        tiles = store.tiles()
        for tile in counted(tiles, of_beams(progress, n_beams, len(tiles)), one):
            thinned = store.points(tile)
            # Points of the halo belong to other tiles; the same sum as in the store, or voxels get lost.
            own = (np.floor((thinned["voxel"][:, :2] + 0.5) * chosen.voxel_m / tile_m) == tile).all(axis=1)
            if own.any():
                voxels.append(thinned["voxel"][own])
                is_volume.append(_are_volume(thinned, chosen, threads)[own])
    return _map(np.concatenate(voxels), np.concatenate(is_volume), chosen.voxel_m)


def _map(voxel: NDArray[np.int32], is_volume: NDArray[np.bool_], voxel_m: float) -> VolumeMap:
    low, high = voxel.min(axis=0).astype(np.int64), voxel.max(axis=0).astype(np.int64)
    thinning.require_spread(np.asarray([low, high], dtype=np.float64) * voxel_m, voxel_m)
    return VolumeMap(voxel_m, low, np.sort(_keys(voxel[~is_volume] - low)), int(is_volume.sum()))


def select_volume_beams(log: Log, volume_map: VolumeMap) -> Log:
    """Return the beams of a log whose first return lies in a volume; those without a return are dropped, too."""
    first_m = log.returns.first_m
    chosen = np.nonzero(np.isfinite(first_m))[0]
    along_m = first_m[chosen].astype(np.float64)[:, None] * log.beams.direction[chosen]
    return log[chosen[volume_map(log.beams.origin_m[chosen] + along_m)]]


def _are_volume(thinned: thinning.ThinnedPoints, parameters: ClassifierParameters, threads: int) -> NDArray[np.bool_]:
    position_m = thinning.positions_m(thinned, parameters.voxel_m)
    eigenvalue, count = local_spectra(position_m, parameters.radius_m, threads=threads)
    score = sphericalness(eigenvalue, count, parameters)
    return smooth_scores(position_m, score, parameters, threads) >= np.float32(parameters.volume_score)


def _read(chunks: LogChunks, store: thinning.ThinnedPointStore) -> int:
    n_beams = n_points = 0
    for log in chunks():
        n_beams += len(log)
        points = thinning.points_of(log)
        n_points += len(points["position_m"])
        if len(points["position_m"]):
            # Without labels and intensities: a voxel must stay one point.
            store.add({name: points[name] for name in ("position_m", "toward")})
    require_points(n_beams, n_points)
    return n_beams


def _keys(voxel: NDArray[Any]) -> NDArray[np.int64]:
    """Number (N, 3) int64 voxels, counted from the lowest."""
    return voxel[:, 0] | voxel[:, 1] << _BITS | voxel[:, 2] << 2 * _BITS
