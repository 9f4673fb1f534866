# SPDX-License-Identifier: Apache-2.0
"""The points model: every return is kept as it is (Browning 2012 §3.3.1, "Nearest Neighbors"; the baseline of
Tallavajhula 2018 §4.3.2).

The world is the points, so its memory grows with the log: 48 bytes per return, and normals are fitted to all at once.
Points are sorted by position, so the order and the chunks of the log change nothing.

Equations: docs/models.md §4.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.base.progress import Progress, counted
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.moments import require_same_map
from hedgerow.models.steps.normals import estimate_normals
from hedgerow.world.elements import Points
from hedgerow.world.surface_noise import SurfaceNoise


class PointsParameters(Parameters):
    """Parameters of the points model."""

    reach_m: Positive = 0.01
    """A beam sees points within this distance of its line (d_max in Browning 2012). Larger values fatten objects,
    smaller ones open holes."""
    pick: Literal["nearest", "first"] = "nearest"
    """Which point gives the range: the nearest to the beam's line (Browning 2012), or the first along it
    (Tallavajhula 2018)."""
    normal_radius_m: Positive = 0.4
    """Radius of the neighbourhood that the normal of a point is fitted to."""
    sigma0_m: NotNegative = 0.015
    """Standard deviation of the range at normal incidence; the default is what Browning 2012 fitted for an HDL-64E."""
    sigma_a_m: NotNegative = 0.0014
    """Growth of the range noise with the angle of incidence (docs/models.md §2); the default is from the same fit."""


def learn_points(task: LearningTask, parameters: PointsParameters) -> tuple[Points]:
    """Learn a world of points."""
    return (collect_points(task.chunks, parameters, progress=task.start("keeping points")),)


def collect_points(
    chunks: LogChunks, parameters: PointsParameters | None = None, *, progress: Progress | None = None
) -> Points:
    """Collect all returns of a log.

    Each return of a pulse is a point of its own: a second return lies on something as real as the first.

    Args:
        chunks: of the log, map frame.
        parameters: how beams see the points. Default: those of the model.
        progress: called with the number of beams read.

    Returns:
        Points sorted by x, then y, then z, with unit normals on the side of the sensor.

    Raises:
        InputError: the log is empty, has no return, or its chunks have different map origins.
    """
    chosen = PointsParameters() if parameters is None else parameters
    returns: list[tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.float32], NDArray[np.uint16]]] = []
    map_origin_m: NDArray[np.float64] | None = None
    n_beams = 0
    for log in counted(chunks(), progress):
        map_origin_m = log.map_origin_m if map_origin_m is None else map_origin_m
        require_same_map(map_origin_m, log.map_origin_m)
        returns.append(_returns_of(log))
        n_beams += len(log)
    if n_beams == 0:
        raise InputError("log", "is empty; there is nothing to learn from")
    position_m, toward, intensity, label = (np.concatenate(columns) for columns in zip(*returns, strict=True))
    returns.clear()
    if len(position_m) == 0:
        raise InputError("log", f"none of its {n_beams} beams has a return; there are no points to keep")
    # Down to the label, so that even of points in one place the order does not depend on the chunks.
    order = np.lexsort((label, intensity, *toward.T, position_m[:, 2], position_m[:, 1], position_m[:, 0]))
    position_m, toward = position_m[order], toward[order]
    return Points(
        position_m=position_m,
        normal=estimate_normals(position_m, toward, kernel_m=chosen.normal_radius_m),
        intensity=intensity[order],
        label=label[order],
        reach_m=chosen.reach_m,
        pick=chosen.pick,
        noise=SurfaceNoise(chosen.sigma0_m, chosen.sigma_a_m),
    )


def _returns_of(log: Log) -> tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.float32], NDArray[np.uint16]]:
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
