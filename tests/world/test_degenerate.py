# SPDX-License-Identifier: Apache-2.0
"""Elements without volume or area, rays from inside, empty scenes, and arguments that make no sense."""

from typing import Any

import numpy as np
import pytest
from random_scenes import beams_of

from hedgerow import InputError
from hedgerow.log import Beams
from hedgerow.world import Scene, SurfaceNoise

AHEAD = beams_of((0, 0, 0), [[1, 0, 0]])
WALL = [[5, -9, -9], [5, 9, -9], [5, 0, 9]]


def test_a_gaussian_without_volume_is_a_point_of_the_least_size():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], np.zeros((1, 3, 3)), tau=3.0, min_sigma_m=0.01)
    hits = scene.fire(beams_of((0, 0, 0), [[1, 0, 0], [5, 0.029, 0], [5, 0.031, 0]]))
    assert (hits.element == [0, 0, -1]).all()
    assert hits.range_m[0] == pytest.approx(5, abs=0.06)


def test_a_pancake_is_seen_face_on_and_edge_on():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.diag([0.0, 4.0, 4.0])], tau=2.0)
    face = beams_of((0, 0, 0), [[1, 0, 0], [5, 3.99, 0], [5, 4.01, 0]])
    assert (scene.fire(face).element == [0, 0, -1]).all()
    assert scene.fire(face).range_m[0] == pytest.approx(5, abs=0.006)
    edge = beams_of([[5.0, -20, 0], [5.003, -20, 0]], [[0, 1, 0], [0, 1, 0]])
    assert (scene.fire(edge).element == [0, -1]).all()


def test_a_needle_is_met_only_within_its_width():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.diag([0.0, 0.0, 25.0])], tau=2.0, min_sigma_m=0.005)
    beams = beams_of((0, 0, 0), [[5, 0.009, 3], [5, 0.011, 3], [5, 0, 9.9], [5, 0, 10.5]])
    assert (scene.fire(beams).element == [0, -1, 0, -1]).all()


def test_a_triangle_without_area_is_never_hit_and_hides_nothing():
    scene = Scene()
    scene.add_mesh([[3, 0, 0], [3, 0, 0], [3, 0, 0], [4, -1, 0], [4, 0, 0], [4, 1, 0]], [[0, 1, 2], [3, 4, 5]])
    scene.add_mesh(WALL, [[0, 1, 2]])
    hits = scene.fire(AHEAD)
    assert hits.element[0] == 2
    assert hits.range_m[0] == pytest.approx(5, abs=1e-6)


def test_a_ray_from_inside_an_ellipsoid_meets_it_if_its_middle_is_ahead():
    scene = Scene()
    scene.add_gaussians([[0.5, 0, 0]], [np.eye(3) * 0.01], tau=30.0)
    ahead, behind = scene.fire(AHEAD, seed=1), scene.fire(beams_of((0, 0, 0), [[-1, 0, 0]]), seed=1)
    assert ahead.range_m[0] == pytest.approx(0.5, abs=0.6)
    assert behind.element[0] == -1


def test_a_range_drawn_behind_the_sensor_is_no_return():
    scene = Scene()
    scene.add_gaussians([[0.1, 0, 0]], [np.eye(3)])
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (20_000, 3)))
    range_m = scene.fire(beams, seed=2).range_m
    assert (range_m > 0).all()
    # N(0.1, 1) is below 0 with probability 0.460; 5 sigma of 20,000 draws is 0.018.
    assert np.isinf(range_m).mean() == pytest.approx(0.460, abs=0.018)


@pytest.mark.parametrize("kind", ["mesh", "gaussians"])
def test_permeability_0_always_stops_and_1_never_does(kind):
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (100_000, 3)))
    for rho, stopped in ((0.0, 1.0), (1.0, 0.0)):
        scene = Scene()
        if kind == "mesh":
            scene.add_mesh(WALL, [[0, 1, 2]], permeability=rho)
        else:
            scene.add_gaussians([[5.0, 0, 0]], [np.eye(3) * 0.01], permeability=rho)
        assert (scene.fire(beams, seed=3).element == 0).mean() == stopped


def test_extinction_0_never_stops_and_a_huge_one_always_does():
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (10_000, 3)))
    for k, stopped in ((0.0, 0.0), (1e9, 1.0)):
        scene = Scene()
        scene.add_gaussians([[5.0, 0, 0]], [np.eye(3) * 0.01], extinction_per_m=k)
        assert (scene.fire(beams, seed=3).element == 0).mean() == stopped


def test_two_gaussians_in_one_place_share_the_returns_as_two_coins_do():
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.broadcast_to([1.0, 0, 0], (100_000, 3)))
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]] * 2, [np.eye(3) * 0.01] * 2, permeability=0.5)
    share = np.bincount(scene.fire(beams, seed=5).element + 1, minlength=3) / 100_000
    np.testing.assert_allclose(share, [0.25, 0.5, 0.25], atol=0.008)  # 5 sigma


def test_an_empty_scene_returns_nothing():
    scene = Scene()
    assert np.isinf(scene.fire(AHEAD).range_m).all()
    assert scene.pierced(AHEAD).begin.tolist() == [0, 0]
    assert scene.count(AHEAD, np.array([np.inf], dtype=np.float32))[0].tolist() == []
    assert scene.log_likelihood(AHEAD, np.array([np.inf], dtype=np.float32), max_range_m=9.0)[0] == 0


def test_empty_parts_and_empty_placed_scenes_add_nothing():
    scene, empty = Scene(), Scene()
    scene.add_mesh(np.zeros((0, 3)), np.zeros((0, 3)))
    scene.add_gaussians(np.zeros((0, 3)), np.zeros((0, 3, 3)))
    scene.place(empty, np.eye(4))
    scene.add_mesh(WALL, [[0, 1, 2]])
    assert scene.n_elements == 1
    assert scene.fire(AHEAD).element[0] == 0


def test_zero_beams_give_zero_returns():
    none = AHEAD[:0]
    scene = Scene()
    scene.add_mesh(WALL, [[0, 1, 2]])
    assert scene.fire(none).range_m.shape == (0,)
    assert scene.pierced(none).begin.tolist() == [0]
    assert scene.count(none, np.zeros(0, dtype=np.float32))[0].tolist() == [0]
    assert scene.log_likelihood(none, np.zeros(0, dtype=np.float32)).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vertices_m": [[0, 0, np.nan]] * 3}, "vertices_m: row 0"),
        ({"vertices_m": [[0, 0]] * 3}, "vertices_m: expected shape"),
        ({"triangles": [[0, 1, 3]]}, "triangles: row 0"),
        ({"triangles": [[0, 1, -1]]}, "triangles: row 0"),
        ({"permeability": 1.5}, "permeability: row 0 is 1.5"),
        ({"permeability": [0.1, 0.2]}, "permeability: expected shape"),
        ({"label": 70_000}, "label: row 0"),
        ({"reflectance": -0.5}, "reflectance: row 0"),
        ({"noise_group": 1}, "noise_group: row 0"),
    ],
)
def test_a_bad_mesh_is_refused_by_the_name_of_the_argument(arguments, message):
    good = {"vertices_m": WALL, "triangles": [[0, 1, 2]]}
    with pytest.raises(InputError, match=message):
        Scene().add_mesh(**(good | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean_m": [[np.inf, 0, 0]]}, "mean_m: row 0"),
        ({"covariance_m2": [np.full((3, 3), np.nan)]}, "covariance_m2: row 0"),
        ({"covariance_m2": [np.eye(2)]}, "covariance_m2: expected shape"),
        ({"covariance_m2": [-np.eye(3)]}, "covariance_m2: row 0 has the negative eigenvalue"),
        ({"covariance_m2": [[[1, 1, 0], [0, 1, 0], [0, 0, 1]]]}, "covariance_m2: row 0 is not symmetric"),
        ({"permeability": -0.1}, "permeability: row 0"),
        ({"extinction_per_m": -1}, "extinction_per_m: row 0"),
        ({"permeability": 0.5, "extinction_per_m": 1.0}, "permeability, extinction_per_m: give one"),
        ({"depth": -1}, "depth: row 0"),
        ({"depth": 1.0, "extinction_per_m": 1.0}, "extinction_per_m, depth: give one"),
        ({"tau": 0}, "tau"),
        ({"min_sigma_m": 0}, "min_sigma_m"),
    ],
)
def test_a_bad_gaussian_is_refused_by_the_name_of_the_argument(arguments, message):
    good = {"mean_m": [[5, 0, 0]], "covariance_m2": [np.eye(3)]}
    with pytest.raises(InputError, match=message):
        Scene().add_gaussians(**(good | arguments))


def test_bad_transforms_are_refused():
    child = Scene()
    for transform, message in (
        (np.diag([1.0, 1, 0, 1]), "transforms: row 0 is not invertible"),
        (np.full((4, 4), np.nan), "transforms: row 0"),
        (np.eye(3), "transforms: expected shape"),
    ):
        with pytest.raises(InputError, match=message):
            Scene().place(child, transform)


def test_a_scene_cannot_hold_itself_nor_change_once_in_use():
    scene = Scene()
    with pytest.raises(InputError, match="itself"):
        scene.place(scene, np.eye(4))
    scene.fire(AHEAD)
    with pytest.raises(InputError, match="in use already"):
        scene.add_mesh(WALL, [[0, 1, 2]])
    child = Scene()
    Scene().place(child, np.eye(4))
    with pytest.raises(InputError, match="in use already"):
        child.add_mesh(WALL, [[0, 1, 2]])


def test_bad_settings_of_a_firing_are_refused():
    scene = Scene()
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"threads": -1}, "threads"),
        ({"min_range_m": 5, "max_range_m": 5}, "range limits"),
        ({"max_range_m": np.nan}, "range limits"),
    )
    for settings, message in cases:
        with pytest.raises(InputError, match=message):
            scene.fire(AHEAD, **settings)


def test_bad_noise_is_refused():
    with pytest.raises(InputError, match="sigma0_m"):
        SurfaceNoise(-1.0)
    with pytest.raises(InputError, match="sigma_per_m"):
        SurfaceNoise(sigma_per_m=-0.1)
    with pytest.raises(InputError, match="max_incidence_rad"):
        SurfaceNoise(max_incidence_rad=2.0)


def test_directions_all_but_along_an_axis_do_not_blind_their_neighbours():
    # Embree 3.13 loses a whole packet if one component lies in (-1e-18, 0); see `traceable` in cpp/trace/batch.hpp.
    scene = Scene()
    for x in range(10, 50):  # enough triangles for more than one node
        scene.add_mesh([[x, -90, -90], [x, 90, -90], [x, 0, 90]], [[0, 1, 2]])
    for small in (0.0, -0.0, 1e-19, -1e-19, -1e-30, -1e-45):
        directions = np.array([[1, small, 0], [1, -0.02, 0], [1, 0.02, small], [small, 1, 0]])
        np.testing.assert_allclose(
            scene.fire(beams_of((0, 0, 0), directions)).range_m, [10, 10.002, 10.002, np.inf], rtol=1e-6
        )
