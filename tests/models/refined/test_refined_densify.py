# SPDX-License-Identifier: Apache-2.0
"""Beams between the beams of a single sweep."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from hedgerow import Log, learn
from hedgerow.models.refined import model
from hedgerow.models.refined.densify import densify, find_ring_neighbours


def ring(azimuth_deg, ranges, elevation_deg: float | NDArray[np.float64] = 0.0, **more):
    azimuth, elevation = np.radians(azimuth_deg), np.radians(elevation_deg)
    flat = np.cos(elevation)
    ranges = np.broadcast_to(ranges, azimuth.shape)
    directions = np.stack(
        [flat * np.cos(azimuth), flat * np.sin(azimuth), np.broadcast_to(np.sin(elevation), azimuth.shape)], axis=1
    )
    return Log.from_arrays(origins=(0.0, 0.0, 0.0), directions=directions, ranges=ranges, **more)


def azimuths_deg(log):
    return np.degrees(np.arctan2(log.beams.direction[:, 1], log.beams.direction[:, 0]))


def test_beams_stay_within_half_of_the_way_to_their_neighbours():
    log = ring(np.arange(0, 60, 0.5), 10.0)
    turned = [densify(log, np.random.default_rng(seed)) for seed in range(50)]
    off_deg = np.concatenate([azimuths_deg(each) - azimuths_deg(log) for each in turned])
    assert np.abs(off_deg).max() <= 0.2501 and off_deg.min() < -0.24 and off_deg.max() > 0.24
    assert abs(off_deg.mean()) < 6 * off_deg.std() / np.sqrt(off_deg.size)  # six sigma: false alarm 2e-9


def test_ranges_between_returns_of_a_wall_are_those_of_the_wall():
    azimuth_deg = np.arange(-60, 60, 0.4)
    log = ring(azimuth_deg, 5.0 / np.cos(np.radians(azimuth_deg)))
    turned = densify(log, np.random.default_rng(1))
    x_m = turned.returns.first_m * turned.beams.direction[:, 0]
    assert_allclose(x_m, 5.0, atol=2e-4)  # the inverse range is a cosine, not a line: 0.2 degrees squared of 5 m
    assert (np.abs(turned.returns.first_m - log.returns.first_m) > 1e-3).mean() > 0.5


def test_ranges_that_disagree_are_kept_and_missing_returns_stay_missing():
    ranges = np.array([5.0, 5.0, 9.0, 9.0, np.inf, np.inf, 9.0])
    turned = densify(ring(np.arange(7.0), ranges), np.random.default_rng(2))
    assert_allclose(turned.returns.first_m, ranges, atol=5e-4)


def test_neighbours_are_of_the_same_ring_and_not_beyond_a_hole():
    azimuth_deg = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 12.0, 12.0])
    rings = np.array([0, 1] * 4)
    before, after = find_ring_neighbours(ring(azimuth_deg, 5.0, 10.0 * rings, rings=rings))
    assert_array_equal(before, [0, 1, 0, 1, 2, 3, 6, 7])
    assert_array_equal(after, [2, 3, 4, 5, 4, 5, 6, 7])


def test_beams_without_neighbours_stay_as_they_are():
    log = ring(np.array([3.0]), np.array([5.0]))
    turned = densify(log, np.random.default_rng(3))
    assert_allclose(turned.beams.direction, log.beams.direction, atol=1e-7)
    assert_array_equal(turned.returns.first_m, [5.0])
    assert len(densify(log[:0], np.random.default_rng(3))) == 0


def test_a_world_of_one_sweep_predicts_the_beams_between_better(monkeypatch):
    """Posts before the sky: every fourth beam is held out, and is more likely if the others were turned in between."""
    elevation_deg, azimuth_deg = (
        each.ravel() for each in np.meshgrid(np.arange(-10, 10, 0.5), np.arange(-40, 40, 0.25), indexing="ij")
    )
    rng = np.random.default_rng(1)
    wall_m = 20 / (np.cos(np.radians(azimuth_deg)) * np.cos(np.radians(elevation_deg)))
    ranges = np.where(azimuth_deg % 6 < 2, wall_m + rng.normal(0, 0.02, wall_m.shape), np.inf)
    rings = np.round(2 * elevation_deg + 20).astype(int)
    log = ring(azimuth_deg, ranges, elevation_deg, rings=rings, max_range_m=60.0)
    held_out = np.arange(len(log)) % 4 == 3

    def likelihood() -> float:
        world = learn(log[~held_out], "refined")
        return float(np.maximum(world.log_likelihood(log[held_out]), -10).mean())

    turned = likelihood()
    monkeypatch.setattr(model, "densify", lambda sweep, _: sweep)
    assert turned > likelihood() + 0.1  # 0.26 against 0.02; other noise: 0.16 and 0.38 against 0.06 and 0.07
