# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from pydantic import ValidationError

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.models.steps import thinning
from hedgerow.models.steps.classifier import (
    ClassifierParameters,
    classify,
    learn_volume_map,
    select_volume_beams,
    sphericalness,
)

UTM_M = np.array([512_000.0, 5_403_200.0, 448.0])  # whole voxels, as a map origin would be


def plane(rng, n=20_000, side_m=10.0, noise_m=0.015):
    return np.c_[rng.uniform(0, side_m, (n, 2)), noise_m * rng.normal(size=n)]


def blob(rng, n=4_000, centre=(0.0, 0.0, 0.0), radius_m=1.5):
    way = rng.normal(size=(n, 3))
    way *= rng.random((n, 1)) ** (1 / 3) / np.linalg.norm(way, axis=1, keepdims=True)
    return np.asarray(centre) + radius_m * way


def tree_over_ground(rng):
    return np.concatenate([plane(rng), blob(rng, centre=(5, 5, 4))])


def seen_from_above(points, n_sweeps=4):
    origin = np.array([5.0, 5.0, 30.0])
    way = points - origin
    range_m = np.linalg.norm(way, axis=1)
    sweep = np.arange(len(points)) % n_sweeps
    return Log.from_arrays(
        origins=np.tile(origin, (len(points), 1)), directions=way / range_m[:, None], ranges=range_m, sweeps=sweep
    )


@pytest.fixture
def rng():
    return np.random.default_rng(5)


# Random clouds, a fixed seed: the rim of the plane and the skin of the blob may err, 2 % of points are allowed to.
def test_plane_is_surface(rng):
    assert classify(plane(rng)).mean() < 0.02


def test_slanting_plane_is_surface(rng):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    assert classify(plane(rng) @ turn).mean() < 0.02


def test_blob_is_volume(rng):
    assert classify(blob(rng)).mean() > 0.98


def test_tree_above_ground_is_split_into_crown_and_ground(rng):
    is_volume = classify(tree_over_ground(rng))
    assert (~is_volume[:20_000]).mean() > 0.95
    assert is_volume[20_000:].mean() > 0.95


def test_sphericalness_is_the_smallest_eigenvalue_over_the_sum():
    eigenvalue = np.array([[1, 1, 1], [0, 1, 1], [1, 2, 5], [1, 2, 5], [0, 0, 0]], dtype=np.float32)
    count = np.array([9, 9, 9, 4, 9], dtype=np.uint32)
    chosen = ClassifierParameters(min_neighbours=5, default_score=0.25)
    assert sphericalness(eigenvalue, count, chosen).tolist() == pytest.approx([1 / 3, 0, 1 / 8, 0.25, 0.25])


def classify_slowly(points, chosen):
    """The definition (Browning 2012 eq. 7 and 8), pair by pair."""
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    score = np.full(len(points), chosen.default_score)
    for i, near in enumerate(distance <= chosen.radius_m):
        if near.sum() >= chosen.min_neighbours:
            spread = np.linalg.eigvalsh(np.cov(points[near].T, bias=True))
            score[i] = spread[0] / spread.sum()
    smooth = np.empty(len(points))
    for i in range(len(points)):
        near = np.argsort(distance[i])[: chosen.smooth_neighbours]
        near = near[distance[i, near] <= chosen.smooth_radius_m]
        by_distance = chosen.distance_weight * (distance[i, near] / chosen.smooth_radius_m) ** 2
        weight = np.exp(-by_distance - chosen.score_weight * (3 * (score[near] - score[i])) ** 2)
        smooth[i] = (weight * score[near]).sum() / weight.sum()
    return smooth


@pytest.mark.parametrize("seed", range(3))
def test_classes_follow_the_definition(seed):
    rng = np.random.default_rng(seed)
    points = np.concatenate([plane(rng, 400, 3.0), blob(rng, 300, (1.5, 1.5, 0.8), 1.0)])
    # Voxels so small that every point stays alone, whatever the thinning.
    chosen = ClassifierParameters(
        voxel_m=1e-4,
        radius_m=0.4,
        min_neighbours=6,
        default_score=0.2,
        smooth_neighbours=12,
        smooth_radius_m=0.5,
        distance_weight=1.5,
        score_weight=2.0,
        volume_score=0.1,
    )
    expected = classify_slowly(points, chosen)
    clear = np.abs(expected - 0.1) > 1e-4  # float32 sums of some ten terms of at most 1/3, and 1e-10 m by thinning
    assert clear.mean() > 0.99
    assert np.array_equal(classify(points, chosen)[clear], (expected >= 0.1)[clear])
    assert 0.2 < (expected >= 0.1).mean() < 0.8


def test_utm_coordinates_do_not_change_the_answer(rng):
    points = tree_over_ground(rng)
    near, far = classify(points), classify(points + UTM_M)
    # Coordinates of 5e6 m step by 1e-9 m: only scores within rounding of the threshold may tip.
    assert (near != far).mean() < 1e-3


def test_density_does_not_matter(rng):
    points = tree_over_ground(rng)
    assert np.array_equal(classify(np.repeat(points, 7, axis=0))[::7], classify(points))


def test_map_agrees_with_classify_on_the_thinned_points(rng):
    points = tree_over_ground(rng)
    log = seen_from_above(points)
    chosen = ClassifierParameters()
    learned = learn_volume_map(lambda: [log], chosen)
    thinned, _ = thinning.thin(log.points(), -log.beams.direction, chosen.voxel_m)
    thinned = thinning.positions_m(thinned, chosen.voxel_m)
    assert np.array_equal(learned(thinned), classify(thinned, chosen))
    assert np.array_equal(learned(log.points()), classify(log.points(), chosen))
    assert len(learned.surface) + learned.n_volume == len(thinned)


def test_tiles_do_not_show():
    rng = np.random.default_rng(2)
    # Some tiles of 32 m on both sides of zero.
    points = np.concatenate([plane(rng, 60_000, 80.0) - [40, 40, 0], blob(rng, 6000, (0, 0, 1), 2.0)])
    log = seen_from_above(points)
    chosen = ClassifierParameters(radius_m=1.0)
    is_volume = classify(log.points(), chosen)
    assert np.array_equal(learn_volume_map(lambda: [log], chosen)(log.points()), is_volume)
    assert 0.01 < is_volume.mean() < 0.99


def test_partitions_and_their_order_do_not_change_the_map(rng):
    log = seen_from_above(tree_over_ground(rng))
    whole = learn_volume_map(lambda: [log])
    cut = learn_volume_map(lambda: [part for _, part in log.iter_sweeps()][::-1])
    assert np.array_equal(whole.surface, cut.surface)
    assert (whole.low.tolist(), whole.n_volume) == (cut.low.tolist(), cut.n_volume)


def test_labels_do_not_change_the_map(rng):
    points = tree_over_ground(rng)
    log = seen_from_above(points)
    label = rng.integers(0, 5, len(points)).astype(np.uint16)
    labelled = Log.from_arrays(
        origins=log.beams.origin_m, directions=log.beams.direction, ranges=log.returns.range_m, labels=label
    )
    assert np.array_equal(learn_volume_map(lambda: [log]).surface, learn_volume_map(lambda: [labelled]).surface)


def test_unseen_places_are_volume(rng):
    log = seen_from_above(plane(rng))
    learned = learn_volume_map(lambda: [log])
    unseen = np.array([[5.0, 5, 3], [5, 5, -3], [-1, 5, 0], [1e9, 0, 0], [-1e9, 0, 0], [5, 1e6, 0]])
    assert learned(unseen).all()
    assert not learned(log.points()).all()


def test_volume_part_keeps_beams_that_return_from_the_crown_first(rng):
    log = seen_from_above(tree_over_ground(rng))
    learned = learn_volume_map(lambda: [log])
    kept = select_volume_beams(log, learned)
    assert np.array_equal(kept.beams.pulse, log.beams.pulse[learned(log.points())])
    assert (kept.points()[:, 2] > 2).mean() > 0.9


def test_volume_part_goes_by_the_first_of_two_returns_and_drops_missing_ones(rng):
    # Points in the middle of voxels, as a beam from above will meet them.
    seen = np.concatenate([tree_over_ground(rng), [[5.05, 5.05, 4.05], [1.05, 1.05, 0.05]]])
    learned = learn_volume_map(lambda: [seen_from_above(seen)])
    down = np.tile([0.0, 0, -1], (4, 1))
    # Crown then ground, ground only, nothing, ground and then below it.
    ranges = [[6.0, 10.0], [10.0, np.inf], [np.inf, np.inf], [10.0, 10.5]]
    origins = [[5.05, 5.05, 10.05], *[[1.05, 1.05, 10.05]] * 3]
    log = Log.from_arrays(origins=origins, directions=down, ranges=ranges, max_range_m=100)
    assert select_volume_beams(log, learned).beams.pulse.tolist() == [0]


def test_progress_ends_at_the_number_of_beams(rng):
    calls = []
    log = seen_from_above(tree_over_ground(rng))
    learn_volume_map(lambda: [log], progress=calls.append)
    assert calls[-1] == len(log)
    assert calls == sorted(calls)


def test_no_points_have_no_classes():
    assert classify(np.zeros((0, 3))).shape == (0,)


def test_empty_log_is_refused(rng):
    log = seen_from_above(plane(rng))[:0]
    with pytest.raises(InputError, match="log: has no beams"):
        learn_volume_map(lambda: [log])
    with pytest.raises(InputError, match="log: has no beams"):
        learn_volume_map(lambda: [])


def test_log_without_a_return_is_refused():
    log = Log.from_arrays(origins=np.zeros((3, 3)), directions=np.eye(3), ranges=[np.inf] * 3, max_range_m=100)
    with pytest.raises(InputError, match="none of its 3 beams has a return"):
        learn_volume_map(lambda: [log])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_not_finite_are_refused(bad, rng):
    points = plane(rng, 100)
    points[7, 1] = bad
    with pytest.raises(InputError, match="position_m"):
        classify(points)
    with pytest.raises(InputError, match="position_m"):
        learn_volume_map(lambda: [seen_from_above(plane(rng))])(points)


@pytest.mark.parametrize("wrong", [{"radius_m": 0}, {"volume_score": 0.34}, {"min_neighbours": 0}, {"radius": 1.0}])
def test_wrong_parameters_are_refused_by_name(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        ClassifierParameters(**wrong)
