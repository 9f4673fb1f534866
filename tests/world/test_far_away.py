# SPDX-License-Identifier: Apache-2.0
"""Coordinates far from zero: kept exact, told, or refused; never lost without a word, never the end of the process."""

import warnings

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.base.arrays import FARTHEST_M, LAST_NS
from hedgerow.errors import HedgerowWarning, InputError
from hedgerow.world.elements import Gaussians, Points, Triangles

ECEF = np.array([4_201_000.0, 172_460.0, 4_780_100.0])
WALL = np.array([[10.0, -50, -50], [10, 50, -50], [10, 50, 50], [10, -50, 50]])
FACES = [[0, 1, 2], [0, 2, 3]]
OFFSET = np.array([0.123, 0.456, 0.789])  # no float32 holds these beside millions


def beams_at(place, n=20) -> hr.Beams:
    angle = np.linspace(-0.5, 0.5, n)
    ways = np.stack([np.cos(angle), np.sin(angle), np.zeros(n)], axis=1)
    return hr.Beams.from_arrays(origins=place, directions=ways)


def wall_at(place, **settings) -> hr.Scene:
    scene = hr.Scene(**settings)
    scene.add_mesh(WALL + place, FACES)
    return scene


def far(*place):
    return np.array(place, dtype=np.float64)


@pytest.mark.parametrize("place", [far(385e3, 54e5, 300), ECEF, far(-9e7, 9e7, 0), far(2e7, -2e7, 1e4)])
def test_a_scene_far_from_zero_chooses_its_origin_and_keeps_micrometres(place):
    place, shift = place + OFFSET, far(0, 0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene = wall_at(place + shift)
    beams = beams_at(place)
    exact_m = 10 / beams.direction[:, 0].astype(np.float64)
    # float64 steps by 1.5e-8 m at 9e7 m; float32 by 4e-6 m at 60 m from the scene's origin.
    assert np.abs(hr.SceneWorld(scene).fire(beams).returns.range_m - exact_m).max() < 2e-5
    assert np.array_equal(scene.origin_m, np.rint(scene.origin_m))


def test_a_scene_near_zero_keeps_its_origin_there():
    assert not wall_at((0, 0, 0)).origin_m.any()
    assert not wall_at((9000, 0, 0)).origin_m.any()
    assert wall_at((20_000, 0, 0)).origin_m.tolist() == [20_010, 0, 0]


def test_gaussians_and_copies_choose_the_origin_too():
    gaussians, copies = hr.Scene(), hr.Scene()
    gaussians.add_gaussians([ECEF + far(10, 0, 0)], [np.eye(3) * 1e-6])
    turn = np.eye(4)
    turn[:3, 3] = ECEF + OFFSET
    copies.place(wall_at((0, 0, 0)), turn)
    for scene, place in ((gaussians, ECEF), (copies, ECEF + OFFSET)):
        returns = hr.SceneWorld(scene).fire(hr.Beams.from_arrays(origins=place, directions=[[1.0, 0, 0]])).returns
        assert returns.range_m[0] == pytest.approx(10, abs=0.01)  # ten deviations of the Gaussian
        assert np.abs(scene.origin_m - place).max() < 11


def test_an_origin_far_from_what_the_scene_holds_is_told_with_the_loss():
    with pytest.warns(HedgerowWarning, match=r"vertices_m: 4,780 km from the scene's origin_m .* rounds to 50 cm"):
        wall_at(ECEF, origin_m=(0, 0, 0))
    scene = wall_at(ECEF)
    with pytest.warns(HedgerowWarning, match="mean_m, covariance_m2: .* rounds to 50 cm"):
        scene.add_gaussians([[0, 0, 0]], [np.eye(3)])


def test_a_large_ground_around_its_origin_is_no_loss():
    scene = hr.Scene()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scene.add_mesh([[-1e6, -1e6, 0], [1e6, -1e6, 0], [0, 1e6, 0]], [[0, 1, 2]])
    down = hr.Beams.from_arrays(origins=[0, 0, 2], directions=[[0, 0, -1.0]])
    assert hr.SceneWorld(scene).fire(down).returns.range_m[0] == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize("value", [1.01 * FARTHEST_M, 1e12, 1e19, 1e38, 1e300])
def test_what_lies_beyond_the_bound_is_refused_wherever_it_is_made(value):
    place, unit = [value, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]
    turn = np.eye(4)
    turn[0, 3] = value
    scene = hr.Scene()
    corners, normal = np.tile(np.array(place), (1, 3, 1)), np.array([[0, 0, 1]], dtype=np.float32)
    covariance = np.array([np.eye(3)])
    calls = {
        "origin_m: row 0": lambda: hr.Beams.from_arrays(origins=place, directions=[[1.0, 0, 0]]),
        "position_m: row 0": lambda: hr.Pose(np.array(place)),
        "position_m: row 1": lambda: hr.Trajectory([0.0, 1.0], [[0, 0, 0], place], [unit, unit]),  # pyright: ignore[reportArgumentType]
        "matrix: row 0": lambda: hr.Pose.from_matrix(turn),
        "origin_m: expected three": lambda: hr.Scene(place),
        "vertices_m: row 0": lambda: wall_at(place),
        "mean_m: row 0": lambda: scene.add_gaussians([place], covariance),
        "transforms: row 0": lambda: scene.place(wall_at((0, 0, 0)), turn),
        "map_origin_m: expected three": lambda: hr.LearnedWorld(kind="voxel", map_origin_m=place),
        "gaussians.mean_m: row 0": lambda: world_of(Gaussians.plain(np.array([place]), covariance)),
        "triangles.corners_m: row 0": lambda: world_of(Triangles.plain(corners)),
        "points.position_m: row 0": lambda: world_of(Points.plain(np.array([place]), normal)),
        "(range_m|ranges): row 0": lambda: hr.Returns.from_arrays(ranges=[value]),
        "range limits: ": lambda: hr.SceneWorld(scene, max_range_m=value),
    }
    for message, call in calls.items():
        with pytest.raises(InputError, match=message):
            call()


def world_of(table) -> hr.LearnedWorld:
    return hr.LearnedWorld(table, kind="voxel")


def test_what_reaches_beyond_the_bound_is_refused_too():
    scene, far_out, large = hr.Scene(), np.eye(4), np.diag([1e5, 1e5, 1e5, 1.0])
    far_out[0, 3] = FARTHEST_M - 1
    with pytest.raises(InputError, match="mean_m, covariance_m2: a corner of what is added: expected three"):
        scene.add_gaussians([[0, 0, 0]], [np.eye(3) * 1e16])
    with pytest.raises(InputError, match="transforms: a corner of what is added"):
        scene.place(wall_at((0, 0, 0)), far_out)
    with pytest.raises(InputError, match="transforms: a corner of what is added"):
        scene.place(wall_at((9000, 0, 0)), large)
    assert scene.box is None and scene.n_elements == 0


def test_copies_shrunk_a_million_times_are_refused_nested_ones_together():
    leaf, twig, branch = wall_at((0, 0, 0)), hr.Scene(), hr.Scene()
    small = np.diag([1e-4, 1e-4, 1e-4, 1.0])
    for wrong in (np.diag([1e-7, 1, 1, 1.0]), np.diag([1e-7, 1e-7, 1e-7, 1.0]), np.diag([1e9, 1, 1, 1.0])):
        with pytest.raises(InputError, match="transforms: row 0 is not invertible, or scales too much"):
            twig.place(leaf, wrong)
    twig.place(leaf, small)
    with pytest.raises(InputError, match="scales too much"):
        branch.place(twig, small)
    with pytest.raises(InputError, match="has the last row"):
        branch.place(twig, np.ones((4, 4)))
    # As far as it goes: a ray from the end of the map, in the frame of a copy shrunk a million times nearly.
    branch.place(twig, np.diag([0.05, 0.05, 0.05, 1.0]))
    away = hr.Beams.from_arrays(origins=[-FARTHEST_M, FARTHEST_M, 0], directions=[[1.0, 0, 0]] * 20)
    assert not np.isfinite(hr.SceneWorld(branch).fire(away).returns.range_m).any()


def test_beams_from_the_end_of_the_map_are_fired():
    for place in ([FARTHEST_M] * 3, [-FARTHEST_M] * 3):
        for scene in (wall_at((0, 0, 0)), wall_at(-0.999 * np.array(place))):
            returns = hr.SceneWorld(scene).fire(beams_at(place)).returns
            assert returns.range_m.shape == (20,)


def test_a_sweep_off_the_trajectory_is_refused_rather_than_extrapolated():
    sensor, trajectory = hr.Sensor.named("vlp-16"), hr.Trajectory.line((0, 0, 0), (1, 0, 0), 1.0)
    assert len(sensor.sweep_at(trajectory, 0, 0))
    for start_ns in (-(10**9), 950_000_000, LAST_NS, -LAST_NS):
        with pytest.raises(InputError, match=r"start_ns: the sweep from .* does not lie on the trajectory"):
            sensor.sweep_at(trajectory, 0, start_ns)


@pytest.mark.parametrize("time_ns", [2**63 - 1, -(2**63), LAST_NS + 1, -LAST_NS - 1])
def test_times_whose_differences_would_overflow_are_refused(time_ns):
    beams = hr.Beams.from_arrays(origins=[0, 0, 0], directions=[[1.0, 0, 0]])
    with pytest.raises(InputError, match="time_ns: row 0 is "):
        hr.Beams(**(beams.columns() | {"time_ns": np.array([time_ns])}))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"time_ns: row 0 is .* expected times within"):
        hr.Trajectory([time_ns], [[0, 0, 0]], [[0, 0, 0, 1]])  # pyright: ignore[reportArgumentType]


def test_a_drive_at_the_first_and_last_times_works():
    sensor = hr.Sensor.named("vlp-16")
    for first in (-LAST_NS, LAST_NS - 10**9):
        trajectory = hr.Trajectory([first, first + 10**9], np.zeros((2, 3)), [[0, 0, 0, 1]] * 2)  # pyright: ignore[reportArgumentType]
        time_ns = sensor.drive(trajectory, n_sweeps=2).time_ns
        assert time_ns[0] == first and (np.diff(time_ns) >= 0).all()


def test_seconds_that_look_like_another_unit_are_told():
    for value, unit in ((1.7e12, "milliseconds"), (1.7e15, "microseconds"), (1.7e18, "nanoseconds")):
        with pytest.raises(InputError, match=f"this looks like {unit}, and floats are seconds"):
            hr.Beams.from_arrays(origins=[0, 0, 0], directions=[[1.0, 0, 0]], times=value)


def test_a_trajectory_of_years_is_refused_before_its_sweeps_are_planned():
    years = hr.Trajectory([0.0, 1e8], [[0, 0, 0], [1, 0, 0]], [[0, 0, 0, 1]] * 2)  # pyright: ignore[reportArgumentType]
    world, sensor = hr.SceneWorld(wall_at((0, 0, 0))), hr.Sensor.named("vlp-16")
    with pytest.raises(InputError, match="sweeps: the trajectory lasts 1,157 days, which are 1,000,000,000 sweeps"):
        hr.simulate(world, sensor, years)
    assert len(hr.simulate(world, sensor, years, sweeps=2)) == 2
