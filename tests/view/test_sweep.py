# SPDX-License-Identifier: Apache-2.0
"""The range image behind the picture of a sweep."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.view.sweep import draw_sweep, range_image


def wall_ahead(name="vlp-16"):
    """A wall across x = 10, as the sensor sees it from the origin."""
    scene = hr.Scene()
    scene.add_mesh([[10, -40, -20], [10, 40, -20], [10, 40, 20], [10, -40, 20]], [[0, 1, 2], [0, 2, 3]])
    sensor = hr.Sensor.named(name)
    return hr.SceneWorld(scene).fire(sensor.sweep(), sensor=sensor)


def test_each_pixel_shows_the_range_in_its_direction():
    image, lowest_first = range_image(wall_ahead(), step_deg=0.2)
    assert image.shape == (16, 1800)
    assert lowest_first
    azimuth = np.radians(180 - (np.arange(1800) + 0.5) * 0.2)
    ahead = np.abs(azimuth) < np.radians(60)
    expected = 10 / (np.cos(azimuth[ahead]) * np.cos(np.radians(1.0)))
    ring_of_plus_1_degree = 8  # -15 to 15 in steps of 2, lowest first
    # A pixel takes the nearest pulse, at most half a step of the sensor (0.1 deg) and of the pixel (0.1 deg) away.
    np.testing.assert_allclose(image[ring_of_plus_1_degree, ahead], expected, rtol=0.01)
    assert np.isinf(image[:, np.abs(azimuth) > np.radians(90)]).all()


def test_rings_from_the_top_are_told_apart_from_rings_from_below():
    assert range_image(wall_ahead("os1-64"))[1] is False


def test_an_empty_log_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(hr.InputError, match="no beams"):
        draw_sweep(wall_ahead()[:0], tmp_path / "sweep.png")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_without_any_return_can_be_drawn(tmp_path):
    sensor = hr.Sensor.named("vlp-16")
    draw_sweep(hr.SceneWorld(hr.Scene()).fire(sensor.sweep(), sensor=sensor), tmp_path / "sky.png")
    assert (tmp_path / "sky.png").stat().st_size > 10_000
