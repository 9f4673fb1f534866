# SPDX-License-Identifier: Apache-2.0
"""The points model: every return is kept as it is (Browning 2012 §3.3.1, "Nearest Neighbors"; the baseline of
Tallavajhula 2018 §4.3.2), or every beam, with or without a return (Browning 2012 §4.2, in the spirit of light fields).

The world is what was measured, so its memory grows with the log: 48 bytes per return, or 54 per beam, and normals are
fitted to all at once. Rows are sorted by position, so the order and the chunks of the log change nothing.

Range noise is that of the surface model, as in the paper: unless it is given, a surface is fitted to the log for it.

Equations: docs/models.md §4.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import Positive
from hedgerow.base.progress import Progress, counted
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.moments import require_same_map
from hedgerow.models.steps.normals import estimate_normals
from hedgerow.models.steps.surface_noise import NoiseParameters, learn_noise
from hedgerow.models.surface import SurfaceParameters, fit_surface
from hedgerow.world.elements import Points, RememberedBeams, Triangles
from hedgerow.world.surface_noise import NOISELESS, SurfaceNoise


class PointsParameters(NoiseParameters):
    """Parameters of the points model."""

    reach_m: Positive = 0.01
    """A beam sees points within this distance of its line (d_max in Browning 2012). Larger values fatten objects,
    smaller ones open holes."""
    pick: Literal["nearest", "first", "beam"] = "nearest"
    """What gives the range: the point nearest to the beam's line (Browning 2012), the first along it (Tallavajhula
    2018), or the nearest remembered beam, of which no return is repeated too (Browning 2012 §4.2)."""
    beam_length_m: Positive = 20.0
    """For pick beam: two beams are as far apart as their rays are, root mean square over this length."""
    normal_radius_m: Positive = 0.4
    """Radius of the neighbourhood that the normal of a point is fitted to."""


def learn_points(task: LearningTask, parameters: PointsParameters) -> tuple[Points | RememberedBeams]:
    """Learn a world of points, or of beams."""
    triangles = Triangles.plain(np.zeros((0, 3, 3)))
    if not parameters.is_given:
        triangles = fit_surface(task.chunks, SurfaceParameters(), progress=task.start("fitting the surface"))
    noise = learn_noise(task, triangles, parameters)
    collect = collect_beams if parameters.pick == "beam" else collect_points
    return (collect(task.chunks, parameters, noise=noise, progress=task.start("keeping points")),)


def collect_points(
    chunks: LogChunks,
    parameters: PointsParameters | None = None,
    *,
    noise: SurfaceNoise = NOISELESS,
    progress: Progress | None = None,
) -> Points:
    """Collect all returns of a log.

    Each return of a pulse is a point of its own: a second return lies on something as real as the first.

    Args:
        chunks: of the log, map frame.
        parameters: how beams see the points. Default: those of the model.
        noise: of the ranges.
        progress: called with the number of beams read.

    Returns:
        Points sorted by x, then y, then z, with unit normals on the side of the sensor.

    Raises:
        InputError: the log is empty, has no return, or its chunks have different map origins.
    """
    chosen = PointsParameters() if parameters is None else parameters
    position_m, toward, intensity, label = _collect(chunks, _returns_of, progress)
    return Points(
        position_m=position_m,
        normal=estimate_normals(position_m, toward, kernel_m=chosen.normal_radius_m),
        intensity=intensity,
        label=label,
        reach_m=chosen.reach_m,
        pick="first" if chosen.pick == "first" else "nearest",
        noise=noise,
    )


def collect_beams(
    chunks: LogChunks,
    parameters: PointsParameters | None = None,
    *,
    noise: SurfaceNoise = NOISELESS,
    progress: Progress | None = None,
) -> RememberedBeams:
    """Collect all beams of a log, each with its first return or none.

    Args:
        chunks, parameters, noise, progress: see `collect_points`.

    Returns:
        Beams sorted by origin, then direction. The normal of a beam without return points back along it.

    Raises:
        InputError: the log is empty, has no return, or its chunks have different map origins.
    """
    chosen = PointsParameters() if parameters is None else parameters
    origin_m, direction, range_m, intensity, label = _collect(chunks, _beams_of, progress)
    hit = np.isfinite(range_m)
    normal = -direction
    position_m = origin_m[hit] + range_m[hit, None].astype(np.float64) * direction[hit]
    normal[hit] = estimate_normals(position_m, -direction[hit], kernel_m=chosen.normal_radius_m)
    return RememberedBeams(
        origin_m=origin_m,
        direction=direction,
        range_m=range_m,
        normal=normal,
        intensity=intensity,
        label=label,
        length_m=chosen.beam_length_m,
        noise=noise,
    )


def _collect(chunks: LogChunks, columns_of: Any, progress: Progress | None) -> list[NDArray[Any]]:
    """Return the columns that `columns_of` takes from each chunk, one after the other, in an order of their own."""
    parts: list[Sequence[NDArray[Any]]] = []
    map_origin_m: NDArray[np.float64] | None = None
    n_beams, any_hit = 0, False
    for log in counted(chunks(), progress):
        map_origin_m = log.map_origin_m if map_origin_m is None else map_origin_m
        require_same_map(map_origin_m, log.map_origin_m)
        parts.append(columns_of(log))
        n_beams += len(log)
        any_hit |= bool(log.returns.hit.any())
    if n_beams == 0:
        raise InputError("log", "is empty; there is nothing to learn from")
    if not any_hit:
        raise InputError("log", f"none of its {n_beams} beams has a return; there are no points to keep")
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    parts.clear()
    # Down to the last column, so that even of rows in one place the order does not depend on the chunks.
    keys = [key for column in columns for key in (column.T if column.ndim == 2 else [column])]
    order = np.lexsort(keys[::-1])
    return [column[order] for column in columns]


def _returns_of(log: Log) -> Sequence[NDArray[Any]]:
    """Return positions, unit vectors to the sensor, intensities (NaN: unknown) and labels (0: unknown)."""
    hit = log.returns.hit
    toward = -log.beams.direction[np.nonzero(hit)[0]]
    n = len(toward)
    intensity, label = log.returns.intensity, log.returns.label
    return (
        log.points(),
        toward,
        np.full(n, np.nan, dtype=np.float32) if intensity is None else intensity[hit],
        np.zeros(n, dtype=np.uint16) if label is None else label[hit],
    )


def _beams_of(log: Log) -> Sequence[NDArray[Any]]:
    """Return origins, directions, and range (inf: none), intensity and label of the first returns."""
    returns, n = log.returns, len(log)

    def first(column: NDArray[Any] | None, unknown: Any) -> NDArray[Any]:
        given = np.full(n, unknown) if column is None else column.reshape(n, -1)[:, 0]
        return np.where(np.isfinite(returns.first_m), given, unknown)

    return (
        log.beams.origin_m,
        log.beams.direction,
        returns.first_m,
        first(returns.intensity, np.float32(np.nan)),
        first(returns.label, np.uint16(0)),
    )
