# SPDX-License-Identifier: Apache-2.0
"""Small learned worlds, some tiles wide, and beams through them."""

from typing import Any

import numpy as np
from random_scenes import rotation

from hedgerow import Beams
from hedgerow.world import Gaussians, LabelCounts, LearnedWorld, Points, Provenance, SurfaceNoise, Triangles

NOISE = SurfaceNoise(0.015, 0.0014)


def gaussians(n, seed=0, extent=40.0, centre=(0.0, 0.0, 0.0), permeable=True, **settings):
    """Gaussians scattered over a square, half a metre wide, a metre or two high."""
    rng = np.random.default_rng(seed)
    sigma = rng.uniform(0.05, 0.6, size=(n, 3))
    axes = np.stack([rotation(rng) for _ in range(n)]) if n else np.zeros((0, 3, 3))
    columns = {
        "stop": (rng.uniform(0.2, 0.9, n) if permeable else np.zeros(n)).astype(np.float32),
        "intensity": rng.uniform(0, 1, n).astype(np.float32),
        "intensity_sigma": rng.uniform(0, 0.1, n).astype(np.float32),
        "label": rng.integers(1, 9, n).astype(np.uint16),
    }
    mean = np.asarray(centre) + np.c_[rng.uniform(-extent, extent, (n, 2)), rng.uniform(0, 2, n)]
    covariance = np.einsum("nij,nj,nkj->nik", axes, sigma**2, axes)
    return Gaussians.plain(mean, covariance, **(columns | settings))


def triangles(n, seed=1, extent=40.0, centre=(0.0, 0.0, 0.0), permeable=True, **settings: Any):
    """Triangles of a metre or two scattered over a square."""
    rng = np.random.default_rng(seed)
    middle = np.asarray(centre) + np.c_[rng.uniform(-extent, extent, (n, 2)), rng.uniform(0, 2, n)]
    corners = middle[:, None] + rng.normal(scale=1.2, size=(n, 3, 3))
    columns = {
        "permeability": (rng.uniform(0.2, 0.9, n) if permeable else np.zeros(n)).astype(np.float32),
        "intensity": rng.uniform(0, 1, n).astype(np.float32),
        "label": rng.integers(1, 9, n).astype(np.uint16),
    }
    settings = {"noise": NOISE} | columns | settings
    return Triangles.plain(corners, **settings)


def points(n, seed=2, extent=40.0, centre=(0.0, 0.0, 0.0), **settings):
    """Points on the walls of a square and everywhere else, with any normals."""
    rng = np.random.default_rng(seed)
    position = np.asarray(centre) + np.c_[rng.uniform(-extent, extent, (n, 2)), rng.uniform(0, 2, n)]
    normal = rng.normal(size=(n, 3))
    normal = (normal / np.linalg.norm(normal, axis=1, keepdims=True)).astype(np.float32)
    columns = {
        "intensity": rng.uniform(0, 1, n).astype(np.float32),
        "label": rng.integers(1, 9, n).astype(np.uint16),
        "noise": NOISE,
    }
    return Points.plain(position, normal, **(columns | settings))


def mixtures(n, seed=4, n_labels=8):
    """Label counts of elements with none to three labels each."""
    rng = np.random.default_rng(seed)
    each = rng.integers(0, 4, n)
    label = [np.sort(rng.choice(np.arange(1, n_labels + 1), size, replace=False)) for size in each]
    flat = np.concatenate([*label, []]).astype(np.uint16)
    return LabelCounts.from_rows(each, flat, rng.integers(1, 50, len(flat)))


def world(*tables, kind="test", max_range_m=60.0, **settings):
    provenance = Provenance(sensor="hdl-64e", log="drive", n_beams=1234)
    return LearnedWorld(*tables, kind=kind, max_range_m=max_range_m, provenance=provenance, **settings)


def rays(n, seed=3, origin=(0.0, 0.0, 1.0), sweeps=1, step=(0.0, 0.0, 0.0)):
    """Nearly level rays all around, some sweeps of them, the sensor moving on by `step` after each."""
    rng = np.random.default_rng(seed)
    azimuth, up = rng.uniform(-np.pi, np.pi, n), rng.uniform(-0.1, 0.1, n)
    sweep = np.sort(rng.integers(0, sweeps, n))
    directions = np.c_[np.cos(azimuth) * np.cos(up), np.sin(azimuth) * np.cos(up), np.sin(up)]
    origins = np.asarray(origin) + sweep[:, None] * np.asarray(step)
    return Beams.from_arrays(origins=origins, directions=directions, sweeps=sweep)


def same(a, b):
    """Whether two tables hold the same bytes and settings."""
    mine, theirs = a.columns(), b.columns()
    return (
        type(a) is type(b)
        and a.settings() == b.settings()
        and mine.keys() == theirs.keys()
        and all(_same(mine[name], theirs[name]) for name in mine)
    )


def _same(a, b):
    if isinstance(a, LabelCounts):
        return a.equal(b)
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def modes(*tables):
    """The most frequent label of each element."""
    return np.concatenate([t.label.most_common() if isinstance(t.label, LabelCounts) else t.label for t in tables])
