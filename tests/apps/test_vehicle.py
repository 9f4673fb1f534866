# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from pydantic import ValidationError

from hedgerow.apps.navigation import Command, Motion, VehicleSettings, follow, move, stand_on, within_limits
from hedgerow.errors import InputError

CAR = VehicleSettings()


def drive(path, at: Motion, n_steps: int, step_s: float = 0.1):
    """Follow a path; give all places."""
    places = [at]
    for _ in range(n_steps):
        places.append(move(places[-1], follow(places[-1], path, CAR), step_s))
    return np.array(places)


def test_it_follows_a_circle():
    angle = np.linspace(0, 1.5 * np.pi, 400)
    path = 20 * np.column_stack([np.sin(angle), 1 - np.cos(angle)])
    places = drive(path, Motion(0, 0, 0), 440)
    radius_m = np.hypot(places[:, 0], places[:, 1] - 20)
    # Between look-aheads of 2 m the chord is 2^2 / (8 * 20) = 2.5 cm inside; points of the path are 24 cm apart.
    assert np.abs(radius_m - 20).max() < 0.05
    driven_m = np.hypot(*np.diff(places[:, :2], axis=0).T).sum()
    assert driven_m == pytest.approx(44 * 2.0 / (1 + 0.75 / 20), rel=0.01)  # its outer side drives 2 m/s


def test_it_comes_back_to_a_straight_line():
    path = np.column_stack([np.arange(0, 40, 0.5), np.zeros(80)])
    places = drive(path, Motion(0, 3, 0.5), 150)
    assert np.abs(places[-50:, 1]).max() < 0.02
    assert np.abs(places[-50:, 2]).max() < 0.02


@pytest.mark.parametrize("yaw_rad", [np.pi - 0.01, -np.pi + 0.01, 3 * np.pi - 0.01])
def test_it_turns_on_the_spot_the_short_way(yaw_rad):
    command = follow(Motion(0, 0, yaw_rad), [[5.0, 0.0]], CAR)
    assert command.speed_mps == 0
    assert command.yaw_rate_radps == (-1.0 if yaw_rad % (2 * np.pi) < np.pi else 1.0)


@pytest.mark.parametrize("curvature", [0.0, 0.05, -0.5, 3.0])
def test_no_side_is_faster_than_the_vehicle_and_the_yaw_rate_is_limited(curvature):
    speed, rate = within_limits(curvature, CAR)
    assert speed + abs(rate) * CAR.track_m / 2 <= CAR.max_speed_mps + 1e-12
    assert abs(rate) <= CAR.max_yaw_rate_radps + 1e-12
    assert rate == pytest.approx(curvature * speed)
    at_a_limit = np.isclose(speed + abs(rate) * CAR.track_m / 2, 2.0) or np.isclose(abs(rate), 1.0)
    assert at_a_limit


def test_one_long_step_along_an_arc_ends_where_many_short_ones_do():
    command = Command(1.5, 0.4)
    end = move(Motion(1, 2, 0.3), command, 5.0)
    at = Motion(1, 2, 0.3)
    for _ in range(500):
        at = move(at, command, 0.01)
    np.testing.assert_allclose(end, at, atol=1e-11)
    # A quarter circle of radius 2, in closed form.
    np.testing.assert_allclose(move(Motion(0, 0, 0), Command(2, 1), np.pi / 2), (2, 2, np.pi / 2), atol=1e-12)


def test_at_the_end_of_the_path_it_stands():
    assert follow(Motion(1, 1, 0), [[1.0, 1.0]], CAR) == (0, 0)


@pytest.mark.parametrize("yaw_rad", [0.0, 0.7, 2.5, -1.9])
def test_on_a_slope_its_axes_lie_in_the_slope(yaw_rad):
    normal = np.array([-0.2, 0.1, 1.0]) / np.sqrt(1.05)
    pose = stand_on(lambda x, y: 3 + 0.2 * x - 0.1 * y, Motion(10, -4, yaw_rad), CAR)
    np.testing.assert_allclose(pose.position_m, (10, -4, 5.4), atol=1e-12)
    axes = pose.matrix()[:3, :3]
    np.testing.assert_allclose(axes[:, 2], normal, atol=1e-12)
    assert np.arctan2(axes[1, 0], axes[0, 0]) == pytest.approx(yaw_rad)


def test_missing_ground_and_paths_are_refused():
    with pytest.raises(InputError, match="terrain_height"):
        stand_on(lambda x, y: x * np.nan, Motion(0, 0, 0), CAR)
    with pytest.raises(InputError, match="path_m"):
        follow(Motion(0, 0, 0), np.zeros((0, 2)), CAR)


@pytest.mark.parametrize("wrong", [{"max_speed_mps": 0.0}, {"track_m": -1.0}, {"lookahead_m": np.inf}, {"wheels": 4}])
def test_bad_settings_are_refused_by_name(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        VehicleSettings(**wrong)
