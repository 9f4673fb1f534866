# SPDX-License-Identifier: Apache-2.0
"""The native engine against the ordered reference, and what must not change its answers."""

import numpy as np
import pytest
from random_scenes import NOISE, SHIFT, add, beams_of, fan, mixed_scene, random_parts, rotation
from scipy.stats import chi2, ks_2samp, kstest, norm

from hedgerow import Beams
from hedgerow.world import Scene, SceneWorld, SurfaceNoise

FALSE_ALARM = 1e-6  # per test; every seed below is fixed, so a pass stays a pass


def repeated(direction, n, origin=(0.0, 0.0, 0.0)):
    return Beams.from_arrays(origins=origin, directions=np.broadcast_to(direction, (n, 3)))


def chi_square(observed, expected_probability):
    """p-value of counts against probabilities, cells with fewer than 5 expected pooled."""
    expected = expected_probability * observed.sum()
    rare = expected < 5
    o = np.append(observed[~rare], observed[rare].sum())
    e = np.append(expected[~rare], expected[rare].sum())
    o, e = (o[:-1], e[:-1]) if e[-1] < 5 else (o, e)
    return chi2.sf(((o - e) ** 2 / e).sum(), max(len(o) - 1, 1))


def two_sample_chi_square(a, b):
    """p-value that two samples of element numbers come from one distribution."""
    values = np.unique(np.concatenate([a, b]))
    counts = np.array([[np.sum(x == v) for v in values] for x in (a, b)], dtype=float)
    counts = counts[:, counts.sum(0) >= 10]
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), max(counts.shape[1] - 1, 1))


@pytest.mark.parametrize("seed", range(6))
def test_fire_returns_the_elements_and_ranges_of_the_ordered_walk(seed):
    scene, reference = mixed_scene(seed)
    rng = np.random.default_rng(100 + seed)
    n = 20_000
    tested = 0
    for direction in fan(8, rng):
        hits = scene.fire(repeated(direction, n), seed=seed, max_range_m=9.0)
        element, range_m = reference.fire(np.zeros(3), direction, n, rng, max_range_m=9.0)
        assert two_sample_chi_square(hits.element, element) > FALSE_ALARM / 50
        for number in np.unique(element[element >= 0]):
            ours, theirs = hits.range_m[hits.element == number], range_m[element == number]
            if min(len(ours), len(theirs)) > 100:
                assert ks_2samp(ours, theirs).pvalue > FALSE_ALARM / 500
                tested += 1
    assert tested > 20  # the scenes do overlap the rays


@pytest.mark.parametrize("seed", range(6))
def test_element_and_no_return_shares_follow_from_the_permeabilities(seed):
    scene, reference = mixed_scene(seed)
    n = 50_000
    for direction in fan(6, np.random.default_rng(200 + seed)):
        hits = scene.fire(repeated(direction, n), seed=seed + 1)
        probability, reaching = np.zeros(scene.n_elements + 1), 1.0
        for _, _, passing, number in reference.crossings(np.zeros(3), direction):
            probability[number] = reaching * (1 - passing)
            reaching *= passing
        probability[-1] = reaching
        # Nothing here lies nearer than the sampled spread of a Gaussian, so no return is lost to the limits.
        observed = np.bincount(np.where(hits.element < 0, scene.n_elements, hits.element), minlength=len(probability))
        assert observed[probability == 0].sum() == 0
        used = probability > 0
        assert chi_square(observed[used], probability[used]) > FALSE_ALARM


@pytest.mark.parametrize("seed", range(3))
def test_pierced_lists_what_the_reference_lists(seed):
    scene, reference = mixed_scene(seed)
    directions = fan(200, np.random.default_rng(seed))
    found = scene.pierced(beams_of((0, 0, 0), directions), max_range_m=8.0)
    for i, direction in enumerate(directions):
        expected = reference.crossings(np.zeros(3), direction.astype(np.float32).astype(float), 8.0)
        rows = slice(found.begin[i], found.begin[i + 1])
        assert found.element[rows].tolist() == [c[3] for c in expected]
        # float32 at 8 m steps by 5e-7; slanted instances and near-grazing triangles magnify that.
        np.testing.assert_allclose(found.mean_m[rows], [c[0] for c in expected], atol=2e-4)
        np.testing.assert_allclose(found.sigma_m[rows], [c[1] for c in expected], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(found.permeability[rows], [c[2] for c in expected], atol=2e-4)


def test_ranges_of_a_gaussian_are_normal_about_the_closest_approach():
    covariance = np.diag([0.04, 0.09, 0.01])
    scene = Scene()
    scene.add_gaussians([[10.0, 0, 0]], [covariance])
    hits = scene.fire(repeated([1.0, 0, 0], 100_000), seed=3)
    assert kstest(hits.range_m, norm(10, 0.2).cdf).pvalue > FALSE_ALARM


def test_ranges_of_a_slanted_wall_spread_as_the_incidence_law_says():
    scene = Scene()
    corners = [[10 + 2, -50, -50], [10 - 2, 50, -50], [10, 0, 80]]  # any big triangle across the x axis
    scene.add_mesh(corners, [[0, 1, 2]], noise=SurfaceNoise(0.015, 0.01), reflectance=0.8)
    hits = scene.fire(repeated([1.0, 0, 0], 100_000), seed=3)
    normal = np.cross(np.subtract(corners[1], corners[0]), np.subtract(corners[2], corners[0]))
    cosine = abs(normal[0]) / np.linalg.norm(normal)
    sigma = np.hypot(0.015, 0.01 * np.sqrt(1 - cosine**2) / cosine**2)
    mean = np.dot(normal, corners[0]) / normal[0]
    np.testing.assert_allclose(hits.incidence_cosine, cosine, rtol=1e-5)
    np.testing.assert_allclose(hits.intensity, 0.8 * cosine, rtol=1e-5)
    assert kstest(hits.range_m, "norm", (mean, sigma)).pvalue > FALSE_ALARM


def test_intensities_spread_about_their_mean_and_stay_unknown_where_unknown():
    scene = Scene()
    mean, covariance = [[10.0, 0, 0], [0, 10.0, 0]], [np.eye(3) * 0.01] * 2
    scene.add_gaussians(mean, covariance, intensity=[5.0, np.nan], intensity_sigma=0.7)
    scene.add_mesh([[-8, -20, -20], [-9, 20, -20], [-10, 0, 20]], [[0, 1, 2]], reflectance=3.0, lambertian=False)
    n = 50_000
    hits = scene.fire(repeated([1.0, 0, 0], n), seed=3)
    assert kstest(hits.intensity, norm(5, 0.7).cdf).pvalue > FALSE_ALARM
    # Independent of the range of the same return; 5 sigma.
    assert abs(np.corrcoef(hits.intensity, hits.range_m)[0, 1]) < 5 / np.sqrt(n)
    other = scene.fire(beams_of((0, 0, 0), [[0, 1, 0], [-1, 0, 0]]))
    assert np.isnan(other.intensity[0])
    assert other.intensity[1] == 3.0


def test_extinction_of_a_stack_of_gaussians_is_beer_lambert():
    # Optical depth adds up along the ray whatever the size of the elements: k sigma_t exp(-dist²/2) each.
    n, k, sigma = 40, 0.35, 0.25
    scene = Scene()
    mean = np.c_[np.linspace(5, 15, n), np.zeros((n, 2))]
    scene.add_gaussians(mean, np.broadcast_to(np.eye(3) * sigma**2, (n, 3, 3)), extinction_per_m=k)
    hits = scene.fire(repeated([1.0, 0, 0], 200_000), seed=1)
    expected = np.exp(-n * k * sigma)
    passed = np.mean(hits.element < 0)
    assert abs(passed - expected) < 5 * np.sqrt(expected * (1 - expected) / 200_000)  # 5 sigma: 6e-7


@pytest.mark.parametrize("dist", [0.0, 1.0, 2.0, 2.4])
def test_depth_fades_to_nothing_at_the_rim_and_is_the_same_whatever_the_way_through(dist):
    n, depth, sigma, tau = 10, 0.6, 0.3, 2.5
    scene = Scene()
    mean = np.c_[np.linspace(5, 15, n), np.full(n, dist * sigma), np.zeros(n)]
    covariance = np.array([np.diag([along, sigma, sigma]) ** 2 for along in np.linspace(0.05, 2, n)])
    scene.add_gaussians(mean, covariance, depth=depth, tau=tau)
    hits = scene.fire(repeated([1.0, 0, 0], 200_000), seed=1)
    expected = np.exp(-n * depth * (1 - dist**2 / tau**2) ** 2)
    assert abs(np.mean(hits.element < 0) - expected) < 5 * np.sqrt(expected * (1 - expected) / 200_000)  # 6e-7


@pytest.mark.parametrize("law", ["extinction_per_m", "depth"])
def test_no_extinction_stops_nothing_whatever_the_coin(law):
    # 51 M coins of 2^23 kinds: all but two in a thousand kinds, also those whose logarithm is all but zero, come up.
    scene = Scene()
    mean = np.c_[np.linspace(5, 15, 64), np.zeros((64, 2))]
    scene.add_gaussians(mean, np.broadcast_to(np.eye(3) * 0.04, (64, 3, 3)), **{law: 0.0})  # pyright: ignore[reportArgumentType]
    assert (scene.fire(repeated([1.0, 0, 0], 800_000), seed=1).element < 0).all()


def test_rigid_motion_of_world_and_sensor_changes_nothing():
    rng = np.random.default_rng(5)
    parts = random_parts(rng)
    turn, shift = rotation(rng), np.array([30.0, -20.0, 4.0])
    moved = dict(parts)
    moved["corners"] = parts["corners"] @ turn.T + shift
    moved["mean"] = parts["mean"] @ turn.T + shift
    moved["covariance"] = turn @ parts["covariance"] @ turn.T
    here, there = Scene(), Scene(shift)
    n = len(parts["corners"])
    for scene, p, offset in ((here, parts, SHIFT), (there, moved, turn @ SHIFT)):
        scene.add_mesh(p["corners"].reshape(-1, 3), np.arange(3 * n).reshape(n, 3), permeability=p["rho"])
        scene.add_gaussians(p["mean"] + offset, p["covariance"], extinction_per_m=p["extinction"])
    directions = fan(5000, rng)
    a = here.fire(beams_of((0, 0, 0), directions), seed=9)
    b = there.fire(beams_of(shift, directions @ turn.T), seed=9)
    same = a.element == b.element
    assert same.mean() > 0.999  # a coin within float32 rounding of its threshold, or a ray on an edge, may fall over
    finite = same & np.isfinite(a.range_m)
    np.testing.assert_allclose(a.range_m[finite], b.range_m[finite], atol=1e-4)  # float32 at 40 m: 4e-6, slanted


def test_an_instanced_scene_answers_like_the_same_scene_flattened():
    rng = np.random.default_rng(6)
    placed, middle = random_parts(rng), np.array([6.0, 0.0, 0.0])
    instanced, flat, child, grandchild = Scene(), Scene(), Scene((1.0, 2.0, 3.0)), Scene()
    add(grandchild, placed)
    outer, inner = np.eye(4), np.eye(4)
    inner[:3, :3] = rotation(rng)
    inner[:3, 3] = middle - inner[:3, :3] @ middle
    outer[:3, 3] = [0.5, -0.4, 0.2]
    child.place(grandchild, inner)  # nested: flattened to one level inside
    instanced.place(child, outer)
    matrix = outer @ inner
    corners = placed["corners"].reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]
    flat.add_mesh(corners, np.arange(len(corners)).reshape(-1, 3), permeability=placed["rho"], noise=NOISE)
    covariance = matrix[:3, :3] @ placed["covariance"] @ matrix[:3, :3].T
    for offset, how in (
        (0 * SHIFT, {"permeability": placed["permeability"], "tau": 2.5}),
        (SHIFT, {"extinction_per_m": placed["extinction"]}),
        (-SHIFT, {"depth": placed["extinction"], "tau": 2.7}),
    ):
        flat.add_gaussians((placed["mean"] + offset) @ matrix[:3, :3].T + matrix[:3, 3], covariance, **how)
    assert instanced.n_elements == flat.n_elements
    beams = beams_of((0, 0, 0), fan(5000, rng))
    a, b = instanced.fire(beams, seed=2), flat.fire(beams, seed=2)
    assert (a.element >= 0).mean() > 0.2
    same = a.element == b.element
    assert same.mean() > 0.999  # the same numbers, so the same coins; float32 rounding alone may differ
    finite = same & np.isfinite(a.range_m)
    np.testing.assert_allclose(a.range_m[finite], b.range_m[finite], atol=1e-3)


def test_a_placed_scene_may_carry_another_label():
    child, scene = Scene(), Scene()
    child.add_gaussians([[0.0, 0, 0]], [np.eye(3) * 0.01], label=7)
    left, right = np.eye(4), np.eye(4)
    left[:3, 3], right[:3, 3] = (5, 2, 0), (5, -2, 0)
    scene.place(child, [left, right], label=[-1, 40])
    hits = scene.fire(beams_of((0, 0, 0), [[5, 2, 0], [5, -2, 0]]))
    assert hits.label.tolist() == [7, 40]
    assert hits.element.tolist() == [0, 1]


def drive_beams(n_rings=16, n_columns=512, n_sweeps=3):
    azimuth = -np.arange(n_columns) * 2 * np.pi / n_columns
    elevation = np.radians(np.linspace(-20, 10, n_rings))
    a, e = np.meshgrid(azimuth, elevation, indexing="ij")
    directions = np.stack([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)], axis=-1).reshape(-1, 3)
    n = n_rings * n_columns
    return Beams.from_arrays(
        origins=(0, 0, 1),
        directions=np.tile(directions, (n_sweeps, 1)),
        rings=np.tile(np.arange(n_rings), n_columns * n_sweeps),
        sweeps=np.repeat(np.arange(n_sweeps), n),
    )


def bushes(seed=0, n=20_000):
    rng = np.random.default_rng(seed)
    scene = Scene()
    mean = rng.uniform([-20, -20, 0], [20, 20, 2], (n, 3))
    covariance = np.eye(3) * rng.uniform(0.05, 0.2, (n, 1, 1)) ** 2
    scene.add_gaussians(mean, covariance, permeability=rng.uniform(0.3, 0.95, n))
    scene.add_mesh([[-90, -90, 0], [90, -90, 0], [0, 120, 0]], [[0, 1, 2]], permeability=0.1, noise=SurfaceNoise(0.01))
    return scene


def assert_same_bytes(a, b):
    for name in ("range_m", "intensity", "label", "element", "incidence_cosine"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name


def test_bytes_are_equal_for_1_2_and_8_threads():
    scene, beams = bushes(), drive_beams()
    one = scene.fire(beams, seed=4, threads=1)
    assert_same_bytes(one, scene.fire(beams, seed=4, threads=2))
    assert_same_bytes(one, scene.fire(beams, seed=4, threads=8))
    log_density = scene.log_likelihood(beams, one.range_m, max_range_m=100.0, threads=1)
    assert log_density.tobytes() == scene.log_likelihood(beams, one.range_m, max_range_m=100.0, threads=8).tobytes()
    counts = scene.count(beams, one.range_m, threads=1)
    for a, b in zip(counts, scene.count(beams, one.range_m, threads=8), strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("size", [1, 7, 100, 8192])
def test_firing_in_batches_of_any_size_gives_the_same_returns(size):
    scene, beams = bushes(), drive_beams(n_sweeps=1)[: 8192 if size > 1 else 200]
    whole = scene.fire(beams, seed=4)
    parts = [scene.fire(beams[i : i + size], seed=4) for i in range(0, len(beams), size)]
    assert np.concatenate([p.range_m for p in parts]).tobytes() == whole.range_m.tobytes()
    assert np.concatenate([p.element for p in parts]).tobytes() == whole.element.tobytes()


def test_beams_in_any_order_give_the_same_returns():
    scene, beams = bushes(), drive_beams()
    shuffle = np.random.default_rng(0).permutation(len(beams))
    whole, mixed = scene.fire(beams, seed=4), scene.fire(beams[shuffle], seed=4)
    assert whole.range_m[shuffle].tobytes() == mixed.range_m.tobytes()


def test_another_seed_gives_other_returns():
    scene, beams = bushes(), drive_beams(n_sweeps=1)
    assert (scene.fire(beams, seed=1).range_m != scene.fire(beams, seed=2).range_m).mean() > 0.5


@pytest.mark.parametrize("kind", ["triangle", "gaussian", "instance"])
def test_5_km_from_the_map_origin_ranges_keep_2_mm(kind):
    # The scene's own frame stays at the map's zero: the worst case, float32 steps of 0.5 mm at 5 km.
    rng = np.random.default_rng(1)
    place = np.array([5000.0, -5000.0, 120.0]) + rng.uniform(-1, 1, 3)
    scene = Scene()
    wall = place + np.array([[20, -30, -30], [20, 30, -30], [20, 0, 60]])
    if kind == "triangle":
        scene.add_mesh(wall, [[0, 1, 2]])
    elif kind == "gaussian":
        scene.add_gaussians([place + np.array([20, 0, 0])], [np.diag([1e-8, 25.0, 25.0])], min_sigma_m=1e-4)
    else:
        child = Scene(place)
        child.add_mesh(wall, [[0, 1, 2]])
        scene.place(child, np.eye(4))
    directions = fan(1000, rng, 0.1)
    hits = scene.fire(beams_of(place, directions))
    error = hits.range_m - 20 / directions[:, 0]
    assert np.abs(error).max() < 2e-3


def test_a_scene_with_its_origin_nearby_keeps_micrometres_in_utm_coordinates():
    place = np.array([448_262.372, 5_412_876.918, 312.4])
    scene = Scene(place)
    scene.add_mesh(place + np.array([[20, -30, -30], [20, 30, -30], [20, 0, 60]]), [[0, 1, 2]])
    hits = scene.fire(beams_of(place, [[1.0, 0, 0]]))
    assert abs(hits.range_m[0] - 20) < 1e-5


def test_range_limits_turn_what_is_outside_into_no_return():
    scene = Scene()
    scene.add_mesh([[5, -9, -9], [5, 9, -9], [5, 0, 9]], [[0, 1, 2]])
    scene.add_mesh([[8, -9, -9], [8, 9, -9], [8, 0, 9]], [[0, 1, 2]])
    beam = beams_of((0, 0, 0), [[1, 0, 0]])
    assert scene.fire(beam, max_range_m=4.9).range_m[0] == np.inf
    # What stops the pulse too near to be seen also hides what is behind it.
    assert scene.fire(beam, min_range_m=6.0).range_m[0] == np.inf
    assert scene.fire(beam, min_range_m=4.0, max_range_m=6.0).range_m[0] == pytest.approx(5, abs=1e-6)


def test_world_fire_gives_a_log_with_everything_a_return_carries():
    scene = Scene()
    scene.add_gaussians([[5.0, 0, 0]], [np.eye(3) * 1e-4], label=4, intensity=0.3)
    log = SceneWorld(scene, max_range_m=50).fire(beams_of((0, 0, 0), [[1, 0, 0], [-1, 0, 0]]), seed=11)
    assert log.returns.label is not None
    assert log.returns.label.tolist() == [4, 0]
    assert log.returns.element is not None
    assert log.returns.element.tolist() == [0, -1]
    assert log.returns.intensity is not None
    assert log.returns.intensity[0] == np.float32(0.3)
    assert np.isinf(log.returns.range_m[1])
    assert log.max_range_m == 50
    assert log.metadata["seed"] == 11
