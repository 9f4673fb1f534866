# SPDX-License-Identifier: Apache-2.0
"""Learned surfaces: closed forms, a NumPy oracle of the implicit function, what triangles carry, and bad input."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError
from surface_clouds import assert_same, hills, learn, plane, seen

from hedgerow import Beams, Log, Scene
from hedgerow.errors import InputError
from hedgerow.models.steps import thinning
from hedgerow.models.steps.normals import fit_normals
from hedgerow.models.surface import SurfaceParameters, fit_surface, make_surface


def areas(corners_m):
    normal = np.cross(corners_m[:, 1] - corners_m[:, 0], corners_m[:, 2] - corners_m[:, 0])
    size = np.linalg.norm(normal, axis=1)
    return size / 2, normal / size[:, None]


def test_plane_points_give_a_flat_mesh_at_the_plane_that_faces_the_sensor():
    points = plane(np.random.default_rng(0), height=0.137)
    mesh = learn(seen(points, (0, 0, 3), noise_m=0.01))
    inner = (np.abs(mesh.corners_m[..., :2]) < 3.5).all(axis=(1, 2))
    # Noise of 0.01 m averaged by the kernel over 310 points counts as over 110: 1 mm; five times that.
    assert_allclose(mesh.corners_m[inner][..., 2], 0.137, atol=0.005)
    area, normal = areas(mesh.corners_m)
    assert normal[:, 2].min() > 0.99
    assert 64 < area.sum() < (8 + 2 * 0.5) ** 2  # all of it, and no more than a kernel and some beyond its edge


@given(st.floats(0, 90), st.floats(0, 360), st.floats(-0.3, 0.3))
@settings(max_examples=15)
def test_a_plane_of_any_slope_is_where_it_should_be_and_has_no_holes(tilt_deg, azimuth_deg, offset):
    rng = np.random.default_rng(1)
    tilt, azimuth = np.radians(tilt_deg), np.radians(azimuth_deg)
    normal = np.array([np.sin(tilt) * np.cos(azimuth), np.sin(tilt) * np.sin(azimuth), np.cos(tilt)])
    first = np.cross(normal, [0.3, 0.5, 0.8])
    first /= np.linalg.norm(first)
    frame = np.stack([first, np.cross(normal, first), normal], axis=1)
    points = plane(rng, n=10_000, size=2.0, height=offset) @ frame.T
    sensor = 6 * normal
    mesh = learn(seen(points, sensor))
    scene = Scene()
    mesh.add_to(scene)
    aim = plane(rng, n=2000, size=1.5, height=offset) @ frame.T - sensor
    range_m = np.linalg.norm(aim, axis=1)
    hits = scene.fire(Beams.from_arrays(origins=sensor, directions=aim / range_m[:, None]))
    assert_allclose(hits.range_m, range_m, atol=1e-4)  # an exact plane: only float32 is left


def test_every_triangle_has_a_point_near():
    points = plane(np.random.default_rng(17), n=1500)  # sparse: about 23 to the square metre
    mesh = learn(seen(points, (0, 0, 3)))
    middle = mesh.corners_m.mean(axis=1)
    nearest = np.array([np.linalg.norm(points - each, axis=1).min() for each in middle])
    # Thinned points lie at the mean of their points, at most a voxel's diagonal from each.
    assert nearest.max() < 0.6 * 0.4 + 0.05 * np.sqrt(3)


def test_cubes_of_close_nodes_alone_are_those_of_the_kernel_alone():
    log = seen(plane(np.random.default_rng(18), n=3000, slope=(0.7, 0.3)), (0, 0, 6))
    strict = learn(log, min_close=8)
    assert_same(strict, learn(log, reach_m=0.4))
    assert len(strict) < 0.97 * len(learn(log))  # the rest are holes in a slope


def test_sphere_comes_back_with_its_radius_closed_and_facing_out():
    rng = np.random.default_rng(2)
    out = rng.normal(size=(60_000, 3))
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    log = Log.from_arrays(origins=5 * out, directions=-out, ranges=np.full(len(out), 3.0))
    mesh = learn(log, upward=0.0)
    radius = np.linalg.norm(mesh.corners_m, axis=2)
    # The chord of a kernel of 0.4 m lies 0.4² / 2 / 6 / 2 m under a sphere of 2 m on average; linear interpolation
    # between nodes 0.3 m apart adds 0.3² / 8 / 2 at most.
    assert_allclose(radius, 2.0, atol=0.0125)
    area, normal = areas(mesh.corners_m)
    assert area.sum() == pytest.approx(4 * np.pi * 4, rel=0.02)
    assert np.einsum("ij,ij->i", normal, mesh.corners_m.mean(axis=1)).min() > 0
    edges = directed_edges(mesh.corners_m)
    assert all(edges[b, a] == 1 for a, b in edges)  # each edge once each way: no crack, no flap


def directed_edges(corners_m):
    _, number = np.unique(corners_m.reshape(-1, 3), axis=0, return_inverse=True)
    number = number.reshape(-1, 3)
    pairs = np.concatenate([number[:, [0, 1]], number[:, [1, 2]], number[:, [2, 0]]])
    return Counter(map(tuple, pairs.tolist()))


def test_no_edge_is_used_twice_in_one_direction_even_in_thickets():
    # Scattered points seen from all around cut cubes in every way there is, the ambiguous ones included.
    rng = np.random.default_rng(3)
    points = rng.uniform(-2, 2, (3000, 3))
    out = rng.normal(size=points.shape)
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    log = Log.from_arrays(origins=points + 9 * out, directions=-out, ranges=np.full(len(out), 9.0))
    mesh = learn(log, max_gap_m=1.0)
    assert len(mesh) > 3000
    assert max(directed_edges(mesh.corners_m).values()) == 1


def test_vertices_lie_where_a_slow_implicit_function_changes_sign():
    rng = np.random.default_rng(4)
    parameters = SurfaceParameters(rounds=2)
    log = seen(hills(rng, n=1500, size=2.0), (0, 0, 5), noise_m=0.03)
    points = thinning.points_of(log)
    thinned, _ = thinning.thin(points["position_m"], points["toward"], parameters.thinning_voxel_m)
    position = thinning.positions_m(thinned, parameters.thinning_voxel_m)
    normal = fit_normals(position, thinned, parameters.kernel_m, upward=parameters.upward).astype(float)
    vertices = make_surface(thinned, parameters).corners_m.reshape(-1, 3)[::7]
    node = vertices / 0.3
    for vertex in node:
        axis = int(np.argmax(np.abs(vertex - np.round(vertex))))
        ends = np.round(vertex), np.round(vertex)
        ends[0][axis], ends[1][axis] = np.floor(vertex[axis]), np.floor(vertex[axis]) + 1
        low, high = (slow_rimls(end * 0.3, position, normal, thinned["count"], parameters) for end in ends)
        assert vertex[axis] == pytest.approx(ends[0][axis] + low / (low - high), abs=2e-3)


def slow_rimls(at, position, normal, count, parameters):
    offset = at - position
    distance = np.linalg.norm(offset, axis=1)
    radius = parameters.kernel_m if (distance < parameters.kernel_m).sum() >= 3 else parameters.farthest_m
    near = distance < radius
    offset, n, spatial = offset[near], normal[near], (1 - (distance[near] / radius) ** 2)
    height = np.einsum("ij,ij->i", offset, n)
    weight, value = count[near] * spatial**4, 0.0
    for _ in range(parameters.rounds + 1):
        slope = (weight / spatial * -8 / radius**2)[:, None] * offset
        value = (weight * height).sum() / weight.sum()
        pull = (slope * height[:, None]).sum(axis=0) - value * slope.sum(axis=0)
        gradient = (pull + (weight[:, None] * n).sum(axis=0)) / weight.sum()
        residual = ((height - value) / (parameters.sigma_residual * parameters.kernel_m)) ** 2
        turned = (((n - gradient) / parameters.sigma_normal) ** 2).sum(axis=1)
        weight = count[near] * spatial**4 * np.exp(-residual - turned)
    return value


def test_triangles_carry_intensity_and_the_most_frequent_label():
    rng = np.random.default_rng(12)
    points = plane(rng)
    left = points[:, 0] < 0
    label = np.where(left, 40, 72)
    label[rng.random(len(label)) < 0.3] = 70
    intensity = np.where(left, 10.0, 20.0) + rng.normal(scale=0.5, size=len(points))
    mesh = learn(seen(points, (0, 0, 3), labels=label, intensities=intensity))
    mesh = mesh[(np.abs(mesh.corners_m[..., :2]) < 3.7).all(axis=(1, 2))]
    x = mesh.corners_m[..., 0].mean(axis=1)
    for side, expected, name in ((x < -0.5, 10.0, 40), (x > 0.5, 20.0, 72)):
        assert_allclose(mesh.intensity[side], expected, atol=0.25)  # five standard errors of some 110 points
        assert_allclose(np.median(mesh.intensity_sigma[side]), 0.5, atol=0.02)
        assert (mesh.label.most_common()[side] == name).mean() > 0.99


def test_without_intensities_and_labels_they_are_unknown():
    mesh = learn(seen(plane(np.random.default_rng(13), n=5000), (0, 0, 3)))
    assert np.isnan(mesh.intensity).all()
    assert_array_equal(mesh.intensity_sigma, 0)
    assert_array_equal(mesh.label.most_common(), 0)
    assert_array_equal(mesh.permeability, 0)


def test_only_kept_points_shape_the_surface():
    rng = np.random.default_rng(14)
    points = np.concatenate([plane(rng, n=20_000), plane(rng, n=20_000, height=2.0)])
    mesh = fit_surface(lambda: [seen(points, (0, 0, 9))], points_to_use=lambda position: position[:, 2] < 1)
    assert mesh.corners_m[..., 2].max() < 0.1


def test_second_returns_count_as_points():
    rng = np.random.default_rng(15)
    near = seen(plane(rng, height=2.0), (0, 0, 6))
    range_m = np.stack([near.returns.range_m, near.returns.range_m * 1.5], axis=1)  # at z = 0
    both = Log.from_arrays(origins=near.beams.origin_m, directions=near.beams.direction, ranges=range_m)
    height = learn(both).corners_m[..., 2]
    assert_allclose(np.unique(height.round(2)), [0, 2])


def test_ground_seen_under_one_degree_faces_up():
    rng = np.random.default_rng(16)
    x = rng.uniform(60, 75, 3000)
    points = np.c_[x, rng.uniform(-4, 4, 3000), 0.005 * rng.normal(size=3000)]
    log = seen(points, (0, 0, 1.2))
    up: list[float] = []
    for upward in (0.0, 0.2):
        corners_m = learn(log, upward=upward).corners_m
        x, y, _ = corners_m.mean(axis=1).T
        inner = (x > 61) & (x < 74) & (np.abs(y) < 3)  # at the edges there are too few points to fit a plane to
        up.append((areas(corners_m[inner])[1][:, 2] > 0).mean())
    assert up[0] < 0.8  # fits to a dozen points are off by some degrees
    assert up[1] > 0.99


def test_a_log_without_returns_has_no_surface():
    up = np.tile([0.0, 0, 1], (100, 1))
    log = Log.from_arrays(origins=(0, 0, 0), directions=up, ranges=np.full(100, np.inf), max_range_m=50)
    assert len(learn(log)) == 0


def test_one_beam_has_no_surface():
    assert len(learn(Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]], ranges=[5.0]))) == 0


def test_an_empty_log_is_refused():
    with pytest.raises(InputError, match="log: is empty"):
        fit_surface(lambda: [])


def test_points_too_far_apart_are_refused():
    log = Log.from_arrays(origins=[[0, 0, 0], [9e6, 0, 0]], directions=[[1, 0, 0]] * 2, ranges=[5.0, 5.0])
    with pytest.raises(InputError, match="span 9000 km"):
        learn(log)


@pytest.mark.parametrize(
    "wrong", [{"node": 0.3}, {"node_m": 0}, {"tile_m": 1.0}, {"kernel_m": 40.0}, {"min_neighbours": 0}, {"rounds": -1}]
)
def test_wrong_parameters_are_refused_by_name(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        SurfaceParameters(**wrong)
