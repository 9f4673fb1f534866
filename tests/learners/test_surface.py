# SPDX-License-Identifier: Apache-2.0
"""Learned surfaces: closed forms, a NumPy oracle of the implicit function, tiles, threads, thinning and bad input."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError

from hedgerow import Beams, Log, Scene
from hedgerow.errors import InputError
from hedgerow.learners import thinning
from hedgerow.learners.normals import grain_normals
from hedgerow.learners.surface import SurfaceParameters, learn_surface, surface_of


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
    return learn_surface(lambda: [log], SurfaceParameters(**parameters), threads=threads)


def areas(corners_m):
    normal = np.cross(corners_m[:, 1] - corners_m[:, 0], corners_m[:, 2] - corners_m[:, 0])
    size = np.linalg.norm(normal, axis=1)
    return size / 2, normal / size[:, None]


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
    # Grains lie at the mean of their points, at most a voxel's diagonal from each.
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
    grains, _ = thinning.thin(points["position_m"], points["toward"], parameters.grain_m)
    position = thinning.positions_m(grains, parameters.grain_m)
    normal = grain_normals(position, grains, parameters.kernel_m, upward=parameters.upward).astype(float)
    vertices = surface_of(grains, parameters).corners_m.reshape(-1, 3)[::7]
    node = vertices / 0.3
    for vertex in node:
        axis = int(np.argmax(np.abs(vertex - np.round(vertex))))
        ends = np.round(vertex), np.round(vertex)
        ends[0][axis], ends[1][axis] = np.floor(vertex[axis]), np.floor(vertex[axis]) + 1
        low, high = (slow_rimls(end * 0.3, position, normal, grains["count"], parameters) for end in ends)
        assert vertex[axis] == pytest.approx(ends[0][axis] + low / (low - high), abs=2e-3)


def slow_rimls(at, position, normal, count, parameters):
    offset = at - position
    distance = np.linalg.norm(offset, axis=1)
    radius = parameters.kernel_m if (distance < parameters.kernel_m).sum() >= 3 else parameters.far_m
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


def test_tiles_give_the_bytes_of_one_piece():
    beside = {"intensities": np.linspace(0, 1, 40_000), "labels": np.arange(40_000) % 5}
    log = seen(hills(np.random.default_rng(5)), (0, 0, 5), noise_m=0.02, **beside)
    whole = learn(log, tile_m=np.inf)
    for tile_m in (3.1, 6.0):
        assert_same(learn(log, tile_m=tile_m), whole)


def test_partitions_and_their_order_do_not_change_the_surface():
    log = seen(hills(np.random.default_rng(6), n=20_000), (0, 0, 5), noise_m=0.02, labels=np.arange(20_000) % 5)
    cut = [log[i::7] for i in range(7)]
    assert_same(learn_surface(lambda: reversed(cut)), learn(log))


def test_surface_does_not_depend_on_the_number_of_threads():
    log = seen(hills(np.random.default_rng(7)), (0, 0, 5), noise_m=0.02, labels=np.arange(40_000) % 5)
    one = learn(log, threads=1)
    assert one.label.mixed().mean() > 0.9
    for threads in (2, 8):
        other = learn(log, threads=threads)
        for name, column in plain_columns(one).items():
            assert_array_equal(plain_columns(other)[name], column)


def test_small_memory_goes_through_files_and_leaves_none(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(thinning, "_POINTS_AT_ONCE", 5000)
    log = seen(hills(np.random.default_rng(8), n=20_000), (0, 0, 5))
    cut = [log[i::8] for i in range(8)]
    spilled: list[int] = []
    spill = thinning.GrainStore._spill

    def watched(store):
        spill(store)
        spilled.append(len(list(Path(tmp_path).glob("*/*.grains"))))

    monkeypatch.setattr(thinning.GrainStore, "_spill", watched)
    small = learn_surface(lambda: cut, SurfaceParameters(budget_mb=0.5, tile_m=4))
    assert max(spilled) > 4
    assert list(tmp_path.iterdir()) == []
    assert_same(small, learn_surface(lambda: cut, SurfaceParameters(tile_m=4)))


def test_thinning_does_not_move_the_surface():
    points = hills(np.random.default_rng(9), n=80_000, size=3.0)
    log = seen(points, (0, 0, 5), noise_m=0.015)
    scenes = Scene(), Scene()
    learn(log).add_to(scenes[0])
    learn(log, voxel_m=0.005).add_to(scenes[1])  # nearly every point on its own
    thin, fine = (scene.fire(log.beams[::20]).range_m for scene in scenes)
    both = np.isfinite(thin) & np.isfinite(fine)
    assert both.mean() > 0.999
    assert np.abs(thin - fine)[both].mean() < 0.001  # a fifteenth of the noise of a single point
    assert np.quantile(np.abs(thin - fine)[both], 0.99) < 0.005


def test_duplicate_points_change_nothing():
    log = seen(hills(np.random.default_rng(10), n=5000, size=3.0), (0, 0, 5))
    once, often = learn(log), learn(Log.concatenate([log] * 9))
    assert len(often) == len(once)
    assert_allclose(in_order(often)["corners_m"], in_order(once)["corners_m"], atol=1e-5)  # weights of 9 round anew


def test_utm_coordinates_cost_no_precision():
    points = hills(np.random.default_rng(11), n=30_000, size=4.0)
    offset = np.array([468_000.0, 5_460_000.0, 300.0])  # whole nodes and voxels
    here = seen(points, (0, 0, 5))
    there = Log.from_arrays(
        origins=np.add(offset, (0, 0, 5)), directions=here.beams.direction, ranges=here.returns.range_m
    )
    near, far = learn(here), learn(there)
    scenes = Scene(), Scene(offset)
    near.add_to(scenes[0])
    far.add_to(scenes[1])
    apart = scenes[0].fire(here.beams).range_m - scenes[1].fire(there.beams).range_m
    # Float64 steps by 1e-9 m there, so a point in a thousand changes its voxel; the surface moves by micrometres.
    assert np.nanmax(np.abs(apart[np.isfinite(apart)])) < 2e-3
    assert np.isfinite(apart).mean() > 0.999
    assert abs(len(near) - len(far)) <= len(near) // 200


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
        assert (mesh.label.mode()[side] == name).mean() > 0.99


def test_without_intensities_and_labels_they_are_unknown():
    mesh = learn(seen(plane(np.random.default_rng(13), n=5000), (0, 0, 3)))
    assert np.isnan(mesh.intensity).all()
    assert_array_equal(mesh.intensity_sigma, 0)
    assert_array_equal(mesh.label.mode(), 0)
    assert_array_equal(mesh.permeability, 0)


def test_only_kept_points_shape_the_surface():
    rng = np.random.default_rng(14)
    points = np.concatenate([plane(rng, n=20_000), plane(rng, n=20_000, height=2.0)])
    mesh = learn_surface(lambda: [seen(points, (0, 0, 9))], keep=lambda position: position[:, 2] < 1)
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
        learn_surface(lambda: [])


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
