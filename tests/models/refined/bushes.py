# SPDX-License-Identifier: Apache-2.0
"""A world of thirty bushes, and what a sensor sees of it."""

from dataclasses import replace

import numpy as np

import hedgerow as hr
from hedgerow.models.refined.score import RayModel
from hedgerow.models.steps.permeability import scene_of
from hedgerow.world.elements import Gaussians

MODEL = RayModel(min_range_m=0.0, max_range_m=30.0, outlier_share=0.001)


def bushes():
    """Thirty Gaussians with extinction, from thin to dense, well apart."""
    rng = np.random.default_rng(7)
    y, z = np.meshgrid(np.linspace(-4, 4, 6), np.linspace(-2, 2, 5))
    mean_m = np.column_stack([rng.uniform(8, 12, 30), y.ravel(), z.ravel()])
    sigma = rng.uniform(0.1, 0.3, (30, 3))
    stop = rng.uniform(1, 12, 30).astype(np.float32)
    return Gaussians.plain(
        mean_m, sigma[:, :, None] ** 2 * np.eye(3), stop=stop, law="extinction", min_sigma_m=0.02, tau=3.5
    )


def seen(gaussians, n=60_000, n_sweeps=8, seed=1):
    """What a sensor sees of them that moves around while its beams go everywhere between them."""
    rng = np.random.default_rng(seed)
    origins = rng.uniform([-2, -6, -4], [2, 6, 4], (n, 3))
    to = rng.uniform([8, -5, -3], [12, 5, 3], (n, 3))
    directions = (to - origins) / np.linalg.norm(to - origins, axis=1, keepdims=True)
    beams = hr.Beams.from_arrays(origins=origins, directions=directions, sweeps=np.arange(n) * n_sweeps // n)
    return hr.SceneWorld(scene_of((gaussians,)), max_range_m=30.0).fire(beams, seed)


def disturbed(gaussians, seed=3):
    """The elements moved by a third of their width, twice as wide, half as dense."""
    rng = np.random.default_rng(seed)
    sigma = np.sqrt(np.einsum("nii->ni", gaussians.covariance_m2))
    mean_m = gaussians.mean_m + rng.normal(size=sigma.shape) * sigma / 3
    return replace(gaussians, mean_m=mean_m, covariance_m2=gaussians.covariance_m2 * 2, stop=gaussians.stop / 2)
