# SPDX-License-Identifier: Apache-2.0
"""Angles of incidence: planes whose normals are known, a random cloud that has none, and sensors without rings."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.metrics.incidence import incidence_deg

RINGS, STEPS = 24, 720


def scanner(with_rings=True):
    """A spinning sensor 1.8 m above the ground: 24 rings from -20 to 10 degrees, half a degree between beams."""
    elevation = np.radians(np.linspace(-20, 10, RINGS))[:, None]
    azimuth = np.radians(np.arange(STEPS) * 0.5)[None]
    direction = np.stack(
        [np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation) + 0 * azimuth], -1
    ).reshape(-1, 3)
    rings = np.repeat(np.arange(RINGS), STEPS) if with_rings else np.zeros(RINGS * STEPS, dtype=int)
    return direction, rings


def sweep_of(range_of, with_rings=True):
    direction, rings = scanner(with_rings)
    ranges = range_of(direction)
    log = hr.Log.from_arrays(
        origins=(1e5, 2e5, 1.8), directions=direction, ranges=ranges, rings=rings, max_range_m=100.0
    )
    return log, direction


def ground(direction):
    with np.errstate(divide="ignore"):
        ranges = np.where(direction[:, 2] < 0, -1.8 / direction[:, 2], np.inf)
    return np.where(ranges < 60, ranges, np.inf)


def wall(direction):
    """At x = 8 m."""
    ranges = np.where(direction[:, 0] > 0.2, 8 / np.maximum(direction[:, 0], 0.2), np.inf)
    return np.where(ranges < 30, ranges, np.inf)


@pytest.mark.parametrize(("surface", "normal"), [(ground, (0, 0, 1.0)), (wall, (1.0, 0, 0))])
def test_a_plane_is_met_at_the_angle_to_its_normal(surface, normal):
    log, direction = sweep_of(surface)
    found = incidence_deg(log.beams, log.returns.first_m)
    known = np.isfinite(found)
    exact = np.degrees(np.arccos(np.abs(direction @ np.array(normal))))
    # Centimetres of map coordinates of 200 km, and ranges in float32: hundredths of a degree.
    assert np.abs(found - exact)[known].max() < 0.1
    hit = np.isfinite(log.returns.first_m)
    assert not known[~hit].any()
    assert known[hit].mean() > 0.75  # the outermost rings have neighbours to one side only


def test_noise_of_the_range_tilts_planes_by_a_few_degrees():
    rng = np.random.default_rng(0)
    log, direction = sweep_of(lambda d: ground(d) + rng.normal(0, 0.02, len(d)))
    found = incidence_deg(log.beams, log.returns.first_m)
    exact = np.degrees(np.arccos(np.abs(direction[:, 2])))
    near = np.isfinite(found) & (log.returns.first_m < 20)
    assert near.sum() > 5000
    assert np.median(np.abs(found - exact)[near]) < 3


def test_leaves_have_no_plane():
    rng = np.random.default_rng(1)
    log, _ = sweep_of(lambda d: rng.uniform(5, 15, len(d)))
    assert np.isfinite(incidence_deg(log.beams, log.returns.first_m)).mean() < 0.05


def test_without_rings_the_nearest_returns_are_taken():
    log, direction = sweep_of(wall, with_rings=False)
    found = incidence_deg(log.beams, log.returns.first_m)
    known = np.isfinite(found)
    assert known.sum() > 1000
    assert np.abs(found - np.degrees(np.arccos(np.abs(direction[:, 0]))))[known].max() < 0.5


def test_few_or_no_returns_have_no_angle():
    log, _ = sweep_of(lambda d: np.full(len(d), np.inf))
    assert np.isnan(incidence_deg(log.beams, log.returns.first_m)).all()
