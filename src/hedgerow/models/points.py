# SPDX-License-Identifier: Apache-2.0
"""The points world: every return is kept as it is (Browning 2012 §3.3.1, "Nearest Neighbors"; the baseline of
Tallavajhula 2018 §4.3.2).

The model is the points, so its memory grows with the log: 48 bytes per return, and its normals are fitted at once.
Points are sorted by position, so the order and the partitions of the log change nothing.

Equations: docs/models.md §4.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.base.progress import Progress, counted
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.steps.log_parts import Parts
from hedgerow.models.steps.normals import estimate_normals
from hedgerow.world.elements import Points
from hedgerow.world.surface_noise import SurfaceNoise


class PointsParameters(Parameters):
    """How points are remembered and seen."""

    reach_m: Positive = 0.01
    """A beam sees points up to this far off its line (d_max in Browning 2012). More fattens objects, less opens
    holes."""
    pick: Literal["nearest", "first"] = "nearest"
    """Which point gives the range: the nearest to the beam's line (Browning 2012), or the first along it
    (Tallavajhula 2018)."""
    normal_radius_m: Positive = 0.4
    """Points within it define a point's normal."""
    sigma0_m: NotNegative = 0.015
    """Range noise at normal incidence; Browning 2012 takes what it fitted to its surfaces, for an HDL-64E this."""
    sigma_a_m: NotNegative = 0.0014
    """How the noise grows with the incidence angle; likewise."""


DEFAULTS = PointsParameters()


def learn_points(parts: Parts, parameters: PointsParameters = DEFAULTS, *, progress: Progress | None = None) -> Points:
    """Keep all returns of a log.

    Each return of a pulse is a point of its own: a second return lies on something as real as the first.

    Args:
        parts: gives the log's partitions, map frame.
        parameters: how the points are seen.
        progress: called with the number of beams read.

    Returns:
        Points sorted by x, then y, then z, with unit normals on the side of the sensor.

    Raises:
        InputError: the log is empty, has no return, or its parts have different map origins.
    """
    returns: list[tuple[NDArray[np.float64], NDArray[np.float32], NDArray[np.float32], NDArray[np.uint16]]] = []
    map_origin_m: NDArray[np.float64] | None = None
    n_beams = 0
    for log in counted(parts(), progress):
        if map_origin_m is not None and not np.array_equal(log.map_origin_m, map_origin_m):
            raise InputError("map_origin_m", f"parts have {map_origin_m.tolist()} and {log.map_origin_m.tolist()}")
        map_origin_m = log.map_origin_m
        returns.append(_returns_of(log))
        n_beams += len(log)
    if n_beams == 0:
        raise InputError("log", "is empty; there is nothing to learn from")
    position_m, toward, intensity, label = (np.concatenate(columns) for columns in zip(*returns, strict=True))
    returns.clear()
    if len(position_m) == 0:
        raise InputError("log", f"none of its {n_beams} beams has a return; there are no points to keep")
    # Down to the label, so that even of points in one place the order does not depend on the partitions.
    order = np.lexsort((label, intensity, *toward.T, position_m[:, 2], position_m[:, 1], position_m[:, 0]))
    position_m, toward = position_m[order], toward[order]
    return Points(
        position_m=position_m,
        normal=estimate_normals(position_m, toward, kernel_m=parameters.normal_radius_m),
        intensity=intensity[order],
        label=label[order],
        reach_m=parameters.reach_m,
        pick=parameters.pick,
        noise=SurfaceNoise(parameters.sigma0_m, parameters.sigma_a_m),
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
