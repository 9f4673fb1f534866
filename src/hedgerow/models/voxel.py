# SPDX-License-Identifier: Apache-2.0
"""The voxel model: a Gaussian for each voxel of a regular grid that has enough points (Browning 2012 §3.3.3, "Voxel
Gaussian").

The log is read once, into sums that can be merged exactly: the sweeps may come in any order and any number of chunks.
It is read once more to count permeability.

Equations: docs/models.md §7.
"""

from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.models.steps.credit import CreditParameters, learn_permeability
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.moments import sum_voxels
from hedgerow.world.elements import Gaussians


class VoxelParameters(StrictParameters, CreditParameters):
    """Parameters of the voxel model."""

    side_m: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 0.3
    """Side of a voxel; 0.05 m suits close targets seen from one place."""
    min_points: Annotated[int, Field(ge=1)] = 5
    """Minimum number of points in a voxel (N_v in Browning 2012); voxels with fewer are left out."""
    tau: Positive = 3.5
    """Mahalanobis distance up to which a ray meets an element; Deschaud 2012 took 2."""
    min_sigma_m: Positive = 0.001
    """Minimum standard deviation of an element along any axis; keeps flat elements valid."""
    through_voxel: bool = False
    """Whether only beams whose line crosses the voxel too are counted, as in Deschaud 2012; else all that meet the
    ellipsoid are, which may reach out of its voxel. Only with credit all."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.through_voxel and self.credit != "all":
            raise InputError(
                "through_voxel", "is a rule of counting; returns that are shared out know no voxels, take credit=all"
            )
        return self


def learn_voxel(task: LearningTask, parameters: VoxelParameters) -> tuple[Gaussians, ...]:
    """Learn a permeable Gaussian per voxel."""
    gaussians = fit_voxels(task.chunks, parameters, progress=task.start("summing up voxels"))
    boxes_m = voxels_of(gaussians, parameters.side_m) if parameters.through_voxel else None
    return learn_permeability(task, (gaussians,), parameters, boxes_m=boxes_m)


def voxels_of(gaussians: Gaussians, side_m: float) -> NDArray[np.float64]:
    """Return (N, 6) low and high corners of the voxels that Gaussians were fitted in: those of their means."""
    low_m = np.floor(gaussians.mean_m / side_m) * side_m
    return np.hstack([low_m, low_m + side_m])


def fit_voxels(chunks: LogChunks, parameters: VoxelParameters, *, progress: Progress | None = None) -> Gaussians:
    """Fit a Gaussian to the points of each voxel, all returns of a log.

    Each return of a pulse is a point of its own: a second return lies on something as real as the first.

    Args:
        chunks: of the log, map frame.
        parameters: voxel side and limits.
        progress: called with the number of beams read.

    Returns:
        Gaussians sorted by voxel, solid: permeability is counted afterwards.

    Raises:
        InputError: no beams, no returns, or no voxel with enough points; says what to do.
    """
    statistics = sum_voxels(chunks, parameters.side_m, progress=progress)
    return statistics.gaussians(
        min_points=parameters.min_points, tau=parameters.tau, min_sigma_m=parameters.min_sigma_m
    )
