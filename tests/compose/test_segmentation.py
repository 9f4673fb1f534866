# SPDX-License-Identifier: Apache-2.0
"""Segmentation of clouds of which everything is known: objects, classes, patches, frames, labels, worlds, streams."""

import numpy as np
import pytest
from plant_clouds import ball, ground_points, log_of, shrub, stem, tree, wall

import hedgerow as hr
from hedgerow.base.labels import LABELS
from hedgerow.compose.boxes import area_m2, fit_frame, outline, simplified
from hedgerow.compose.segmentation import RETURNS, SegmentSettings, checksum_of, segment
from hedgerow.compose.shape_classes import SHRUBS, TREES, by_height
from hedgerow.errors import InputError
from hedgerow.scenes.annotation import cell_numbers, contains
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.learned import LearnedWorld


@pytest.fixture
def rng():
    return np.random.default_rng(2)


def parted(*clouds, **options):
    """Segment clouds laid together; return the segmentation, and for each cloud the object most of it belongs to."""
    found = segment(log_of(np.concatenate(clouds)), **options)
    ends = np.cumsum([len(cloud) for cloud in clouds])
    owners = np.split(found.object[RETURNS], ends[:-1])
    return found, [int(np.bincount(owner).argmax()) for owner in owners]


def share_in(found, start, stop, number):
    return float(np.mean(found.object[RETURNS][start:stop] == number))


def test_each_plant_is_one_object_of_the_class_of_its_height(rng):
    plants = {
        "low-shrub": shrub(rng, -12, -6, 1.1, 1.4),
        "small-shrub": shrub(rng, -12, 6, 2.1, 2.0),
        "medium-shrub": shrub(rng, -6, -6, 3.8, 3.4),
        "small-tree": tree(rng, 0, 6, 5.9, 3.0),
        "medium-tree": tree(rng, 4, -6, 9.4, 4.0),
        "large-tree": tree(rng, 10, 5, 13.4, 5.0),
    }
    found, owner = parted(ground_points(rng, (34.0, 24.0)), *plants.values())
    assert owner[0] == 0
    assert len(found.objects) == 6
    for name, number in zip(plants, owner[1:], strict=True):
        assert found[number].class_name == name
        assert found[number].label == LABELS[name].number
        assert found[number].polygon_m is None
    small = found[owner[2]]
    assert (small.x_m, small.y_m) == pytest.approx((-12, 6), abs=0.15)
    # The lowest leaves lie within the band that counts as ground: they lift it by some centimetres.
    assert small.z_m == pytest.approx(0, abs=0.08)
    assert small.height_m == pytest.approx(2.1, abs=0.15)
    # Means of voxels lie up to half a voxel inside the outermost points, on both sides.
    assert small.length_m == pytest.approx(2.0, abs=0.35)


def test_nearly_all_points_of_a_plant_are_its_own_and_ground_is_ground(rng):
    ground, plant = ground_points(rng), tree(rng, 2, 3)
    found, owner = parted(ground, plant)
    n = len(ground)
    assert share_in(found, n, n + len(plant), owner[1]) > 0.97
    assert found.is_ground[RETURNS][:n].mean() > 0.995
    assert not found.is_ground[RETURNS][n:][plant[:, 2] > 0.3].any()
    assert found[owner[1]].n_points == np.sum(found.object[RETURNS] == owner[1])


def test_trees_whose_crowns_touch_are_parted_at_their_stems(rng):
    first, second = tree(rng, -1.8, 0, 9, 4.2), tree(rng, 1.8, 0, 8, 4.2)
    ground = ground_points(rng)
    found, owner = parted(ground, first, second)
    assert owner[1] != owner[2]
    n, m = len(ground), len(ground) + len(first)
    assert share_in(found, n, m, owner[1]) > 0.85
    assert share_in(found, m, m + len(second), owner[2]) > 0.85


def test_a_shrub_beside_a_tree_is_another_plant(rng):
    found, owner = parted(ground_points(rng), tree(rng, 0, 0, 9, 4), shrub(rng, 2.2, 0, 1.4, 1.6))
    assert owner[1] != owner[2]
    assert found[owner[2]].class_name in SHRUBS
    assert found[owner[1]].class_name == "medium-tree"


def test_a_hedge_is_a_patch_that_its_polygon_covers(rng):
    hedge = np.concatenate([shrub(rng, x, 0.2 * np.sin(x), 1.8, 1.6) for x in np.arange(-8, 8.1, 0.9)])
    found, owner = parted(ground_points(rng), hedge)
    patch = found[owner[1]]
    assert patch.class_name == "small-shrub"
    assert patch.polygon_m is not None
    cell_m = SegmentSettings().cell_m
    assert patch.cell_m == cell_m
    assert contains(patch.polygon_m, hedge[:, :2]).mean() > 0.95
    assert area_m2(patch.polygon_m) == pytest.approx(17.6 * 1.6, rel=0.25)
    cells = found.annotation().expanded()
    assert len(cells) == pytest.approx(area_m2(patch.polygon_m) / cell_m**2, abs=4)
    assert set(cells.object) == {patch.id}
    places = {tuple(each) for each in cell_numbers(cells.position_m[:, :2], cell_m, patch.yaw_rad)}
    assert len(places) == len(cells)


def test_walls_posts_and_fences_are_no_plants(rng):
    fence = wall(rng, (-10, -6), (4, -6), 1.2, per_m2=60)
    post = stem(rng, 8, 5, 4.0, 0.06)
    corner = np.concatenate([wall(rng, (-6, 4), (-1, 4)), wall(rng, (-1, 4), (-1, 8))])
    found, owner = parted(ground_points(rng), fence, post, corner)
    assert [found[number].class_name for number in owner[1:]] == ["other"] * 3
    assert len(found.objects) == 3


def test_a_wall_is_parted_from_the_shrub_that_touches_it(rng):
    ground, house, bush = ground_points(rng), wall(rng, (-6, 3), (6, 3), 3.0), shrub(rng, 0, 1.9, 1.8, 2.2)
    found, owner = parted(ground, house, bush)
    assert owner[1] != owner[2]
    assert found[owner[1]].class_name == "other"
    assert found[owner[2]].class_name == "small-shrub"


def test_grass_is_no_object(rng):
    ground = ground_points(rng)
    grass = ground_points(rng, per_m2=40)
    grass[:, 2] += rng.uniform(0, 0.45, len(grass))
    found, _ = parted(ground, grass)
    assert found.objects == ()


def test_the_same_site_elsewhere_has_the_same_objects(rng):
    clouds = [ground_points(rng), tree(rng, 2, 3), shrub(rng, -5, -4), shrub(rng, -8, 4, 1.2, 1.4)]
    there = np.array([1000.0, -2000.0, 300.0])  # whole voxels
    here, owner = parted(*clouds)
    moved, owner_there = parted(*(cloud + there for cloud in clouds))
    assert owner == owner_there
    for a, b in zip(here.objects, moved.objects, strict=True):
        assert a.class_name == b.class_name
        assert (b.x_m - 1000, b.y_m + 2000, b.z_m - 300) == pytest.approx((a.x_m, a.y_m, a.z_m), abs=2e-3)
        assert (a.length_m, a.width_m, a.height_m) == pytest.approx((b.length_m, b.width_m, b.height_m), abs=2e-3)


def test_the_same_bytes_come_twice_and_for_a_log_in_a_file(rng, tmp_path):
    log = log_of(np.concatenate([ground_points(rng), tree(rng, 2, 3), shrub(rng, -5, -4)]), n_sweeps=7)
    hr.write_log(log, tmp_path / "drive.parquet")
    first, second = segment(log), segment(hr.open_log(tmp_path / "drive.parquet"))
    assert np.array_equal(first.object[RETURNS], second.object[RETURNS])
    assert np.array_equal(first.is_ground[RETURNS], second.is_ground[RETURNS])
    assert first.ground.z_m.tobytes() == second.ground.z_m.tobytes()
    assert first.checksum == second.checksum == checksum_of(log)
    assert second.name == "drive.parquet"


def test_labels_win_over_shape(rng):
    ground, bush, plane = ground_points(rng), shrub(rng, -5, 0), wall(rng, (3, 2), (7, 2))
    cloud = np.concatenate([ground, bush, plane])
    number = {name: LABELS[name].number for name in ("ground", "car", "vegetation")}
    labels = np.repeat([number["ground"], number["car"], number["vegetation"]], [len(ground), len(bush), len(plane)])
    found = segment(log_of(cloud, labels))
    owner = found.object[RETURNS]
    n, m = len(ground), len(ground) + len(bush)
    assert found[int(np.bincount(owner[n:m]).argmax())].class_name == "other"
    assert found[int(np.bincount(owner[m:]).argmax())].class_name != "other"
    assert found.is_ground[RETURNS][:n].all()
    ignored = segment(log_of(cloud, labels), use_labels=False)
    kinds = {each.class_name for each in ignored.objects if abs(each.x_m - 5) < 1}
    assert kinds == {"other"}


def test_labels_of_our_own_classes_decide_the_class(rng):
    ground, plant = ground_points(rng), shrub(rng, 0, 0, 2.0)
    labels = np.repeat([0, LABELS["large-tree"].number], [len(ground), len(plant)])
    found = segment(log_of(np.concatenate([ground, plant]), labels))
    assert [each.class_name for each in found.objects] == ["large-tree"]


def test_a_world_has_an_object_for_each_element_in_the_order_of_its_tables(rng):
    x, y = np.meshgrid(np.arange(-10.0, 10.0), np.arange(-8.0, 8.0))
    corner = np.stack([x, y, 0 * x], axis=-1).reshape(-1, 1, 3)
    lower, upper = (
        corner + np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]]),
        corner + np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0.0]]),
    )
    plants = [tree(rng, -4, 0, 9.0), shrub(rng, 5, 2, 2.1)]
    mean = np.concatenate([plant[rng.choice(len(plant), 500)] for plant in plants])
    world = LearnedWorld(
        Triangles.plain(np.concatenate([lower, upper])),
        Gaussians.plain(mean, np.tile(0.01 * np.eye(3), (len(mean), 1, 1))),
        kind="hybrid",
    )
    found = segment(world)
    assert {name: len(rows) for name, rows in found.object.items()} == {"triangles": len(lower) * 2, "gaussians": 1000}
    assert found.is_ground["triangles"].all()
    places = world.tables["gaussians"].centre_m()  # in the order of its tiles
    is_tree = places[:, 0] < 0
    owner = found.object["gaussians"]
    numbers = [int(np.bincount(owner[rows]).argmax()) for rows in (is_tree, ~is_tree)]
    assert [found[number].class_name for number in numbers] == ["medium-tree", "small-shrub"]
    assert np.mean(owner[is_tree] == numbers[0]) > 0.95
    assert found.checksum == checksum_of(world)


def test_mended_by_hand(rng):
    ground, first, second = ground_points(rng), shrub(rng, -5, 0), shrub(rng, 5, 0)
    cloud = np.concatenate([ground, first, second])
    found, owner = parted(ground, first, second)
    assert found.with_class(owner[1], "other")[owner[1]].class_name == "other"
    without = found.without(owner[1])
    assert owner[1] not in without.object[RETURNS]
    assert len(without.objects) == len(found.objects) - 1
    chosen = (cloud[:, 0] > 5) & (found.object[RETURNS] == owner[2])
    cut = found.with_object({RETURNS: cloud}, {RETURNS: chosen}, "low-shrub")
    new = cut.objects[-1]
    assert (new.class_name, new.n_points) == ("low-shrub", int(chosen.sum()))
    assert np.array_equal(cut.object[RETURNS] == new.id, chosen)
    assert cut[owner[2]].n_points == found[owner[2]].n_points - new.n_points
    with pytest.raises(InputError, match="none of low-shrub"):
        found.with_class(owner[1], "cactus")
    with pytest.raises(InputError, match="none with the number 99"):
        found.with_class(99, "other")
    with pytest.raises(InputError, match="no point"):
        found.with_object({RETURNS: cloud}, {RETURNS: np.zeros(len(cloud), dtype=bool)}, "other")


def test_what_cannot_be_segmented_is_refused(rng):
    with pytest.raises(InputError, match="no points"):
        segment(log_of(np.zeros((0, 3))))
    with pytest.raises(InputError, match="too few"):
        segment(log_of(np.array([[0.0, 0, 0], [30, 0, 0]])))
    with pytest.raises(InputError, match="driving"):
        segment(log_of(ground_points(rng, (5.0, 5.0))), driving=(0, 0))
    with pytest.raises(InputError, match="voxel_m"):
        SegmentSettings.parse({"voxel_m": -1}, "segment")


def test_the_x_axis_lies_near_the_driving_direction_and_points_to_the_heavier_half(rng):
    # An L-shaped body: long along 30 degrees, two thirds of its points in the far end.
    along, across = np.array([np.cos(np.pi / 6), 0.5]), np.array([-0.5, np.cos(np.pi / 6)])
    thick, thin = rng.uniform(0, 1, (2000, 1)), rng.uniform(-5, 0, (1000, 1))
    xy = np.concatenate([thick * along, thin * along]) + rng.uniform(-0.3, 0.3, (3000, 1)) * across
    frame = fit_frame(xy, (1.0, 0.0))
    assert frame.yaw_rad == pytest.approx(np.pi / 6, abs=0.03)
    assert (frame.length_m, frame.width_m) == pytest.approx((6.0, 0.6), abs=0.15)
    # Driven across it, its short axis is x.
    crosswise = fit_frame(xy, (-0.5, 0.9))
    assert abs(np.sin(crosswise.yaw_rad - np.pi / 6)) == pytest.approx(1.0, abs=0.01)
    assert crosswise.length_m == pytest.approx(0.6, abs=0.1)
    # Turned by half a turn, the frame turns with it: the sign does not hang on the driving direction.
    assert abs(np.angle(np.exp(1j * (fit_frame(-xy).yaw_rad - frame.yaw_rad - np.pi)))) < 1e-9


def test_classes_part_halfway_between_the_mean_heights_of_the_thesis():
    heights = np.array([0.8, 1.59, 1.61, 2.9, 3.0, 4.59, 4.61, 9.0])
    low, small, medium, large = SHRUBS
    assert by_height(heights, SHRUBS).tolist() == [low, low, small, small, medium, medium, large, large]
    assert by_height(np.array([3.0, 7.6, 7.7, 11.3, 11.5]), TREES).tolist() == [TREES[0]] * 2 + [TREES[1]] * 2 + [
        TREES[2]
    ]


def test_the_outline_of_an_l_leaves_its_notch_out(rng):
    xy = rng.uniform(0, 8, (20_000, 2))
    xy = xy[(xy[:, 0] < 2) | (xy[:, 1] < 2)]
    polygon = outline(xy, 0.4)
    assert area_m2(polygon) == pytest.approx(28.0, rel=0.1)
    assert not contains(polygon, np.array([[5.0, 5.0]]))[0]
    assert contains(polygon, np.array([[1.0, 7.0], [7.0, 1.0]])).all()


def test_a_simplified_line_stays_within_its_tolerance(rng):
    turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    circle = 5 * np.column_stack([np.cos(turn), np.sin(turn)])
    few = simplified(circle, 0.05)
    assert len(few) < 60
    # A chord with this sagitta takes off less than the tolerance times the length of the circle.
    assert area_m2(circle) - area_m2(few) < 0.05 * 2 * np.pi * 5


def test_leaves_alone_in_the_air_are_a_tree_above_its_hidden_foot(rng):
    found, owner = parted(ground_points(rng), ball(rng, (0, 0, 6), (2, 2, 1.8)))
    assert found[owner[1]].class_name in TREES
    assert found[owner[1]].z_m == pytest.approx(0, abs=0.1)
