# SPDX-License-Identifier: Apache-2.0
"""Annotations as segmentations: what lies in a box is its object, ground is none, overlaps go to the nearer middle."""

import numpy as np
import pytest
from cli_runner import assert_refused, run
from plant_clouds import ground_points, log_of, shrub, tree

from hedgerow.compose.box_segmentation import segment_by_boxes
from hedgerow.compose.primitives import extract_primitives
from hedgerow.compose.segmentation import RETURNS
from hedgerow.errors import InputError
from hedgerow.scenes.annotation import Annotation, cell_centres, write_annotation
from hedgerow.scenes.ground_fit import Ground
from hedgerow.scenes.primitive import Library
from hedgerow.world.elements import Gaussians
from hedgerow.world.learned import LearnedWorld


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def level_ground():
    axis = np.arange(-30.0, 31.0)
    return Ground(axis, axis, np.zeros((61, 61)), np.ones((61, 61), dtype=np.bool_), 0.01)


def boxes(*rows, **more):
    """Annotation of (class, x, y, yaw, length, width, height)."""
    return Annotation.of_boxes(
        [row[0] for row in rows],
        [row[1:3] for row in rows],
        [row[3] for row in rows],
        [row[4:] for row in rows],
        **more,
    )


def world_of(mean_m):
    return LearnedWorld(Gaussians.plain(mean_m, np.tile(0.01 * np.eye(3), (len(mean_m), 1, 1))), kind="voxel")


def test_every_plant_of_an_annotated_log_is_the_object_of_its_box(rng):
    clouds = [ground_points(rng, (34.0, 24.0)), shrub(rng, -6, -4, 2.1, 2.0), tree(rng, 6, 4, 9.4, 4.0)]
    plants = boxes(("small-shrub", -6, -4, 0.4, 3, 3, 2.3), ("medium-tree", 6, 4, 0.0, 5, 5, 9.9), object=[7, 3])
    found = segment_by_boxes(log_of(np.concatenate(clouds)), plants)
    ground, small, large = np.split(found.object[RETURNS], np.cumsum([len(each) for each in clouds])[:-1])
    assert [each.id for each in found.objects] == [3, 7]
    assert found[7].class_name == "small-shrub"
    assert (found[7].x_m, found[7].length_m, found[7].height_m) == (-6, 3, 2.3)
    # Only the lowest leaves are missing: within the 0.2 m that count as ground, which they lift by some centimetres.
    assert (small == 7)[clouds[1][:, 2] > 0.3].all()
    assert (large == 3)[clouds[2][:, 2] > 0.3].all()
    assert np.mean(ground == 0) > 0.999
    assert found.is_ground[RETURNS][: len(ground)].all()
    assert found[7].n_points == np.count_nonzero(found.object[RETURNS] == 7)


def test_a_box_is_turned_by_its_yaw_and_ends_at_its_top_and_sides():
    yaw = np.pi / 6
    along, across = np.array([np.cos(yaw), np.sin(yaw)]), np.array([-np.sin(yaw), np.cos(yaw)])
    foot = np.array([3.0, -2.0])
    places = [(1.9, 0.0, 1), (2.1, 0.0, 1), (0.0, 0.4, 1), (0.0, 0.6, 1), (0.0, 0.0, 2.9), (0.0, 0.0, 3.1), (0, 0, 0.1)]
    points = np.array([[*(foot + x * along + y * across), z] for x, y, z in places])
    found = segment_by_boxes(
        log_of(points), boxes(("medium-shrub", *foot, yaw, 4, 1, 3)), ground=level_ground(), use_labels=False
    )
    # Inside, beyond its end, inside, beyond its side, below the top, above it, ground.
    np.testing.assert_array_equal(found.object[RETURNS], [1, 0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(found.is_ground[RETURNS], [False] * 6 + [True])


def test_where_boxes_overlap_the_nearer_middle_in_units_of_its_box_takes_the_element():
    # 1.2 m from the middle of the large box (0.3 of its half length) and 0.8 m from that of the small one (0.8 of it).
    points = np.array([[1.2, 0, 2.0], [1.9, 0, 1.0]])
    both = boxes(("large-tree", 0, 0, 0.0, 8, 8, 4.0), ("low-shrub", 2, 0, 0.0, 2, 2, 2.0))
    found = segment_by_boxes(log_of(points), both, ground=level_ground(), use_labels=False)
    np.testing.assert_array_equal(found.object[RETURNS], [1, 2])
    # The order of the rows does not matter.
    turned = segment_by_boxes(log_of(points), both[::-1], ground=level_ground(), use_labels=False)
    assert [turned[int(k)].class_name for k in turned.object[RETURNS]] == ["large-tree", "low-shrub"]


def test_a_patch_takes_what_lies_in_its_cells_and_is_cut_into_them():
    polygon = np.array([[0.0, 0.0], [6.0, 0.0], [6.0, 4.0], [0.0, 4.0]])
    patch = boxes(("small-shrub", 3, 2, 0.0, 6, 4, 2.0), polygon_m=[polygon], cell_m=[2.0])
    x, y = np.meshgrid(np.arange(-1.75, 8, 0.5), np.arange(-1.75, 6, 0.5))
    world = world_of(np.column_stack([x.ravel(), y.ravel(), np.ones(x.size)]))
    mean = world.tables["gaussians"].centre_m()  # rows are ordered by tile
    found = segment_by_boxes(world, patch, ground=level_ground())
    inside = (mean[:, 0] > 0) & (mean[:, 0] < 6) & (mean[:, 1] > 0) & (mean[:, 1] < 4)
    np.testing.assert_array_equal(found.object["gaussians"] == 1, inside)
    library = extract_primitives(world, found)
    assert len(library.assets) == len(cell_centres(polygon, 2.0)) == 6
    assert {asset.n_elements for asset in library.assets} == {16}


def test_primitives_of_an_annotation_have_its_frame_and_extents():
    mean = np.array([[5.0, 1.0, 3.5], [5.5, 1.0, 3.0], [5.0, 1.5, 4.0], [20.0, 1.0, 3.0]])
    plants = Annotation.of_boxes(["small-tree"], [[5.0, 1.0, 2.0]], [np.pi / 2], [[2.0, 1.5, 4.5]])
    world = world_of(mean)
    asset = extract_primitives(world, segment_by_boxes(world, plants, ground=level_ground())).assets[0]
    assert asset.about["class_name"] == "small-tree"
    assert (asset.about["length_m"], asset.about["width_m"], asset.about["height_m"]) == (2.0, 1.5, 4.5)
    # Turned back by a quarter, from the foot at (5, 1, 2): x of the map is -y of the primitive.
    np.testing.assert_allclose(asset.parts[0].centre_m(), [[0, 0, 1.5], [0, -0.5, 1], [0.5, 0, 2]], atol=1e-12)


def test_an_annotation_of_another_site_is_refused_in_a_sentence():
    with pytest.raises(InputError, match="annotation: no element lies in any of its boxes; is it of another site"):
        segment_by_boxes(
            log_of(np.array([[0.0, 0, 1]])), boxes(("low-shrub", 25, 0, 0.0, 1, 1, 1)), ground=level_ground()
        )
    with pytest.raises(InputError, match="annotation: has no boxes"):
        segment_by_boxes(log_of(np.array([[0.0, 0, 1]])), boxes(("low-shrub", 0, 0, 0, 1, 1, 1))[:0])


def test_the_command_extracts_what_a_hand_annotated(tmp_path, rng):
    mean = np.concatenate([ground_points(rng, (20.0, 20.0))[::20], shrub(rng, 4, 3, 2.1, 2.0)[::5]])
    world_of(mean).save(tmp_path / "site.world")
    write_annotation(tmp_path / "plants.csv", boxes(("small-shrub", 4, 3, 0.0, 2.4, 2.4, 2.3)))
    extract = ("primitives", "extract", "site.world", "--annotation", "plants.csv")
    done = run(*extract, "-o", "lib.world", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "wrote lib.world"
    library = Library(tmp_path / "lib.world")
    assert [facts.class_name for facts in library.facts] == ["small-shrub"]
    assert library.facts[0].extents_m.tolist() == [2.4, 2.4, 2.3]
    refused = run(*extract, "--segments", "none.parquet", "-o", "two.world", cwd=tmp_path)
    assert_refused(refused, "annotation", "give either --segments or --annotation")
    assert not (tmp_path / "two.world").exists()
