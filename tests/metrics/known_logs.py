# SPDX-License-Identifier: Apache-2.0
"""Small logs with known answers, for the tests of metrics."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from hedgerow import Log, Returns, World
from hedgerow.base.randomness import normal, uniform
from hedgerow.world import WorldSize


def fan_directions(n, spread_deg=20.0):
    """n directions about +x, in one plane."""
    azimuth = np.radians(np.linspace(-spread_deg, spread_deg, n))
    return np.c_[np.cos(azimuth), np.sin(azimuth), np.zeros(n)]


def log_of(
    ranges, directions=None, origins: ArrayLike = (0.0, 0.0, 0.0), sweeps: ArrayLike = 0, max_range_m=100.0, **more
):
    """A log of given first ranges; by default a fan of beams from the origin."""
    ranges = np.asarray(ranges, dtype=np.float64)
    directions = fan_directions(len(ranges)) if directions is None else directions
    return Log.from_arrays(
        origins=origins, directions=directions, ranges=ranges, sweeps=sweeps, max_range_m=max_range_m, **more
    )


def with_ranges(log, ranges):
    """The same beams with other first ranges."""
    return log.with_returns(Returns.from_arrays(ranges=ranges))


def drive(seed=0, n_sweeps=6, n=300, max_range_m=60.0):
    """A moving sensor in a random world: n beams a sweep, a tenth of them without return."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n_sweeps * n, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sweeps = np.repeat(np.arange(n_sweeps), n)
    origins = np.c_[2.0 * sweeps, np.zeros(len(sweeps)), np.full(len(sweeps), 1.8)]
    return log_of(random_ranges(rng, len(sweeps)), directions, origins, sweeps, max_range_m)


def random_ranges(rng, n):
    """Ranges from 2 to 40 m; a tenth are inf."""
    return np.where(rng.random(n) < 0.1, np.inf, rng.uniform(2, 40, n))


class NormalWorld(World):
    """Every beam returns from N(mean, sigma²), except a share of misses; knows its own density."""

    def __init__(self, mean_m=20.0, sigma_m=0.1, miss=0.0):
        super().__init__()
        self.mean_m, self.sigma_m, self.miss = mean_m, sigma_m, miss

    has_likelihood = True

    def returns(self, beams, shot):
        # One generator per pulse: the answer to a beam does not depend on which others are fired with it.
        draws = np.array([np.random.default_rng([shot.seed, p]).normal(size=2) for p in beams.pulse.tolist()]).reshape(
            -1, 2
        )
        missed = draws[:, 1] < norm.ppf(self.miss)
        ranges = np.where(missed, np.inf, self.mean_m + self.sigma_m * draws[:, 0])
        outside = (ranges < shot.min_range_m) | (ranges > shot.max_range_m)
        return Returns.from_arrays(ranges=np.where(outside, np.inf, ranges))

    def log_likelihood(self, log, **more):
        r = log.returns.first_m.astype(np.float64)
        with np.errstate(divide="ignore"):
            missing = np.log(self.miss)
        z = (r - self.mean_m) / self.sigma_m
        density = np.log1p(-self.miss) - 0.5 * z**2 - np.log(self.sigma_m * np.sqrt(2 * np.pi))
        return np.where(np.isinf(r), missing, density)

    def size(self):
        return WorldSize({"normal": 1}, 3, 24)


class PaintedWorld(World):
    """Beams return at 20 m but for a share of misses, with intensities from N(mean, sigma²) and labels 50 or 70."""

    has_noise = True

    def __init__(self, mean=0.5, sigma=0.1, building=0.8, miss=0.0):
        super().__init__()
        self.mean, self.sigma, self.building, self.miss = mean, sigma, building, miss

    def returns(self, beams, shot):
        ranges = np.where(uniform(shot.seed, beams.pulse, 1) < self.miss, np.inf, 20.0)
        intensity = self.mean + self.sigma * normal(shot.seed, beams.pulse, 2)
        label = np.where(uniform(shot.seed, beams.pulse, 4) < self.building, 50, 70)
        return Returns.from_arrays(ranges=ranges, intensities=intensity, labels=label)
