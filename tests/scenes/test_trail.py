# SPDX-License-Identifier: Apache-2.0
"""Trails: level across, as wide and as deep as asked for, and the ground beyond the shoulder is left alone."""

import numpy as np
import pytest

from hedgerow.errors import InputError
from hedgerow.scenes.terrain import Terrain

SLOPE = Terrain.from_function(lambda x, y: 0.05 * x + 0.3 * y, (40, 20), spacing_m=0.1)
ALONG_X = [(-30.0, 0.0), (30.0, 0.0)]


def test_a_levelled_trail_is_level_across_and_follows_the_ground_along():
    cut = SLOPE.with_trail(ALONG_X, 3.0, smooth_m=2.0, sunk_m=0.2)
    x, y = np.meshgrid(np.linspace(-10, 10, 9), np.linspace(-1.49, 1.49, 7))
    np.testing.assert_allclose(cut.height_m(x, y), 0.05 * x - 0.2, atol=1e-9)  # a line stays itself when smoothed


def test_the_ground_beyond_the_shoulder_is_untouched_and_blends_in_between():
    cut = SLOPE.with_trail(ALONG_X, 3.0, shoulder_m=1.0)
    away = np.abs(SLOPE.y_m) > 2.5 + 1e-9
    np.testing.assert_array_equal(cut.z_m[away], SLOPE.z_m[away])
    steps = np.diff(cut.height_m(0, np.linspace(-2.5, -1.5, 50)))
    assert (steps > 0).all() and steps.max() < 0.1 * 1.5 * 0.75  # smoothstep is at most 1.5 times as steep as a ramp


def test_a_trail_that_is_not_levelled_keeps_the_ground():
    cut = SLOPE.with_trail(ALONG_X, 3.0, levelled=False, sunk_m=0.1)
    y = np.linspace(-1.4, 1.4, 5)
    np.testing.assert_allclose(cut.height_m(3.0, y), SLOPE.height_m(3.0, y) - 0.1, atol=1e-9)


def test_two_ruts_lie_where_the_wheels_run():
    cut = SLOPE.with_trail(ALONG_X, 3.0, smooth_m=2.0, rut_depth_m=0.1, rut_width_m=0.4, rut_gauge_m=1.6)
    below = 0.05 * 2.0 - cut.height_m(2.0, np.array([-0.8, 0.8, 0.0, -1.2, 1.2]))
    np.testing.assert_allclose(below, [0.1, 0.1, 0, 0, 0], atol=1e-9)


def test_the_trail_is_a_piece_of_its_own_of_its_length_times_its_width():
    cut = (
        Terrain.flat((40, 20)).resampled(0.1).with_trail([(-30, -4), (0, -4), (8, 4), (30, 4)], 3.0, material="asphalt")
    )
    ground, road = cut.parts()
    assert (ground.label, road.label, road.material) == ("ground", "road", "asphalt")
    assert len(ground.mesh.triangles) + len(road.mesh.triangles) == len(cut.mesh().triangles)
    a, b, c = np.moveaxis(road.mesh.vertices_m[road.mesh.triangles][..., :2], 1, 0)
    area = np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]).sum() / 2
    length = 20 + np.hypot(8, 8) + 12
    # Triangles count as a whole: up to half a cell at each edge; the two bends overlap by less than 2 m².
    assert area == pytest.approx(3.0 * length, abs=0.05 * 2 * length + 2)


def test_a_second_trail_keeps_the_cover_of_the_first():
    cut = Terrain.flat((40, 20)).resampled(0.2)
    cut = cut.with_trail(ALONG_X, 3.0).with_trail([(0, -20), (0, 20)], 2.0, material="soil", label="trail")
    assert [part.label for part in cut.parts()] == ["ground", "road", "trail"]
    assert len(cut.cover_kinds) == 3
    again = cut.with_trail([(5, -20), (5, 20)], 2.0)
    assert again.cover_kinds == cut.cover_kinds  # a cover that is there is not added again


@pytest.mark.parametrize(
    ("path", "width_m", "how", "words"),
    [
        (ALONG_X, 0.15, {}, "width_m"),
        (ALONG_X, 3.0, {"rut_depth_m": 0.1, "rut_width_m": 0.1}, "rut_width_m"),
        (ALONG_X, 3.0, {"shoulder_m": -1}, "shoulder_m"),
        ([(0, 0)], 3.0, {}, "path_m"),
        ([(0, 0), (0, 0)], 3.0, {}, "path_m"),
        ([(0, 0, 0), (1, 0, 0)], 3.0, {}, "path_m"),
        ([(0, 0), (np.nan, 1)], 3.0, {}, "path_m"),
    ],
)
def test_a_trail_that_cannot_be_cut_is_refused(path, width_m, how, words):
    with pytest.raises(InputError, match=words):
        SLOPE.with_trail(path, width_m, **how)
