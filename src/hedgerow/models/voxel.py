# SPDX-License-Identifier: Apache-2.0
"""The voxel world: a Gaussian for each voxel of a regular grid that has enough points (Browning 2012 §3.3.3, "Voxel
Gaussian").

One pass of exactly mergeable sums; the sweeps may come in any order and any number of pieces.

Equations: docs/models.md §7.
"""

from typing import Annotated

from pydantic import Field

from hedgerow.base.parameters import Positive, StrictParameters
from hedgerow.models.steps.log_parts import Parts
from hedgerow.models.steps.moments import Progress, VoxelStatistics, gather
from hedgerow.world.elements import Gaussians


class VoxelParameters(StrictParameters):
    """What the voxel learner can be told."""

    side_m: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 0.3
    """Side of a voxel; 0.05 suits static targets close by."""
    min_points: Annotated[int, Field(ge=1)] = 5
    """Voxels with fewer points are left out (N_v in Browning 2012): they are dust, or too few to tell a shape."""
    tau: Positive = 3.5
    """A ray meets an element up to this Mahalanobis distance; Deschaud 2012 took 2."""
    min_sigma_m: Positive = 0.001
    """Floor of an element's standard deviations, so that flat ones stay valid."""


def learn_voxel(parts: Parts, parameters: VoxelParameters, *, progress: Progress | None = None) -> Gaussians:
    """Learn a Gaussian per voxel from all returns of a log.

    Each return of a pulse is a point of its own: a second return lies on something as real as the first.

    Args:
        parts: gives the log's partitions, map frame.
        parameters: voxel side and limits.
        progress: called with the number of beams read.

    Returns:
        Gaussians sorted by voxel, solid: permeability is counted afterwards.

    Raises:
        InputError: no beams, no returns, or no voxel with enough points; says what to do.
    """
    statistics = VoxelStatistics(parameters.side_m)
    gather(parts, statistics, progress=progress)
    return statistics.finish(min_points=parameters.min_points, tau=parameters.tau, min_sigma_m=parameters.min_sigma_m)
