# SPDX-License-Identifier: Apache-2.0
"""Points on surfaces of known shape, and the surfaces learned from them."""

import numpy as np
from numpy.testing import assert_array_equal

from hedgerow import Log
from hedgerow.models.surface import SurfaceParameters, fit_surface


def seen(position, sensor, *, noise_m=0.0, seed=0, **columns):
    """A log of points as a sensor at one place would have recorded them."""
    ray = position - np.asarray(sensor, dtype=float)
    true_m = np.linalg.norm(ray, axis=1)
    measured_m = true_m + noise_m * np.random.default_rng(seed).normal(size=len(ray))
    return Log.from_arrays(origins=sensor, directions=ray / true_m[:, None], ranges=measured_m, **columns)


def plane(rng, n=40_000, size=4.0, slope=(0.0, 0.0), height=0.0):
    xy = rng.uniform(-size, size, (n, 2))
    return np.c_[xy, xy @ np.asarray(slope) + height]


def hills(rng, n=40_000, size=6.0):
    xy = rng.uniform(-size, size, (n, 2))
    return np.c_[xy, 0.4 * np.sin(xy[:, 0]) * np.cos(xy[:, 1])]


def learn(log, **parameters):
    threads = parameters.pop("threads", 0)
    return fit_surface(lambda: [log], SurfaceParameters(**parameters), threads=threads)


def in_order(triangles):
    """Columns with rows in an order of their own: by corners."""
    rows = np.lexsort(triangles.corners_m.reshape(-1, 9).T)
    return plain_columns(triangles[rows])


def plain_columns(triangles):
    """Columns as arrays, those of the labels by themselves."""
    columns = triangles.columns()
    label = columns.pop("label")
    return columns | {"first": label.first, "label": label.label, "count": label.count}


def assert_same(one, other):
    mine, theirs = in_order(one), in_order(other)
    for name, column in mine.items():
        assert_array_equal(column, theirs[name])
