# SPDX-License-Identifier: Apache-2.0
"""The dense forest in small: rules that place boxes, the file of them, and the picture of a cloud."""

import numpy as np
import pytest

from hedgerow.errors import InputError
from hedgerow.reproduce.composition import dense_forest
from hedgerow.reproduce.composition.cloud_picture import Look, draw_cloud, project, ramp
from hedgerow.reproduce.composition.dense_forest import ForestRules, draw_boxes, make_forest, path_corners, reach_of
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.scenes.annotation import read_annotation
from hedgerow.scenes.primitive import Library, PrimitiveFacts
from hedgerow.scenes.trail import Polyline
from hedgerow.view.render import Camera
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians
from hedgerow.world.learned import LearnedWorld

SIZES = {"large-tree": [(6, 5.5, 14), (5, 5, 12)], "medium-tree": [(4.5, 4, 9)], "low-shrub": [(1.4, 1.2, 1.1)]}
RULES = ForestRules(length_m=60, width_m=40, bend_m=3)


def primitive(name, class_name, extents):
    """A plant of 40 Gaussians that fill its box."""
    rng = np.random.default_rng(len(name))
    mean = rng.uniform([-0.4, -0.4, 0.1], [0.4, 0.4, 0.9], (40, 3)) * extents
    table = Gaussians.plain(mean, np.tile(np.eye(3) * 0.2**2, (40, 1, 1)), stop=np.full(40, 0.5, np.float32))
    length, width, height = extents
    facts = PrimitiveFacts(class_name=class_name, length_m=length, width_m=width, height_m=height)
    return Asset(name, (table,), facts.model_dump(mode="json"))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("library") / "library.world"
    assets = [primitive(f"{name}-{k}", name, each) for name, all in SIZES.items() for k, each in enumerate(all)]
    LearnedWorld(kind="library", assets=assets, max_range_m=100.0).save(path)
    return Library(path)


@pytest.fixture(scope="module")
def forest(library):
    return make_forest(library.path.parent, library, RULES, seed=3)


def line():
    return Polyline(path_corners(RULES), smooth=True)


def test_no_box_reaches_into_the_path_or_far_into_another(library):
    boxes = draw_boxes(library, RULES, line(), seed=2)
    reach = reach_of(boxes.size_m)
    assert (line().distance_m(boxes.position_m[:, :2]) - reach).min() >= RULES.path_m / 2
    trees = boxes.class_name != "low-shrub"
    xy, reach = boxes.position_m[trees, :2], reach[trees]
    apart = np.linalg.norm(xy[:, None] - xy[None], axis=2) + np.eye(len(xy)) * 1e3
    assert (apart >= (1 - RULES.overlap) * (reach[:, None] + reach[None]) - 1e-9).all()


def test_sizes_are_those_of_the_library_within_a_fifth(library):
    boxes = draw_boxes(library, RULES, line(), seed=2)
    assert set(boxes.class_name) == set(SIZES)
    for name, known in SIZES.items():
        ratio = boxes.size_m[boxes.class_name == name][:, None] / np.array(known)[None]
        is_scaled = (np.ptp(ratio, axis=2) < 1e-9) & (np.abs(ratio[..., 0] - 1) <= RULES.vary + 1e-9)
        assert is_scaled.any(axis=1).all()  # one factor for all three extents of one primitive


def test_the_same_seed_gives_the_same_forest_and_another_seed_another(library):
    one, same, other = (draw_boxes(library, RULES, line(), seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.position_m[:, :2], same.position_m[:, :2]) and np.array_equal(one.size_m, same.size_m)
    assert len(one) != len(other) or not np.array_equal(one.position_m[:, :2], other.position_m[:, :2])


def test_a_library_without_plants_is_refused(tmp_path):
    LearnedWorld(kind="library", assets=[primitive("hut", "other", (3, 3, 3))], max_range_m=100.0).save(
        tmp_path / "huts.world"
    )
    with pytest.raises(InputError, match="has no plants"):
        draw_boxes(Library(tmp_path / "huts.world"), RULES, line(), seed=1)


def test_the_forest_is_written_as_an_annotation_and_as_a_world(forest, library):
    folder = library.path.parent
    read = read_annotation(folder / "forest.csv")
    assert np.array_equal(read.class_name, forest.boxes.class_name)
    assert forest.site.n_copies["annotation"] == len(read)
    assert (folder / "forest.world").is_dir()


def test_every_return_of_a_drive_knows_its_plant_and_the_path_is_open(forest):
    log, _ = dense_forest.drive(forest, 2, seed=1)
    owner, hit = log.returns.object, log.returns.hit
    assert owner is not None
    points = log.points()
    on_plants = points[owner[hit] > 0]
    assert owner.max() <= len(forest.boxes) and len(on_plants) > 1000
    # The Gaussians of a plant, deviation 0.2 m, stay within four deviations of its box.
    assert forest.line.distance_m(on_plants[:, :2]).min() > RULES.path_m / 2 - 0.8
    said = dense_forest.text(forest, log, 1.0)
    assert f"{len(forest.boxes):,} plants on 0.24 ha" in said and "large-tree" in said


def test_a_point_straight_ahead_is_in_the_middle_and_one_to_the_left_is_left():
    camera = Camera(np.array([0.0, 0, 1]), np.array([10.0, 0, 1]), 200, 100, 90.0)
    column, row, depth = project(np.array([[5.0, 0, 1], [5.0, 5.0, 1], [5.0, 0, 2], [-5.0, 0, 1]]), camera)
    assert column[0] == 100 and row[0] == 50 and depth[0] == 5
    assert column[1] == pytest.approx(0)  # 45 degrees to the left, half of 90
    assert row[2] < 50 and depth[3] == -5


def test_the_nearer_point_covers_the_farther_one_and_the_rest_is_night():
    camera = Camera(np.array([0.0, 0, 0]), np.array([1.0, 0, 0]), 40, 40, 60.0)
    look = Look(point_m=0.5, haze_m=1e9, background=(0.0, 0.0, 0.0))
    picture = draw_cloud([[4.0, 0, 0], [8.0, 0, 0]], [[1.0, 0, 0], [0, 1.0, 0]], camera, look)
    assert picture[20, 20].tolist() == [255, 0, 0]
    assert picture[0, 0].tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="colour"):
        draw_cloud([[4.0, 0, 0]], [[1.0, 0, 0], [0, 1.0, 0]], camera, look)


def test_colours_lie_between_their_stops():
    assert ramp(np.array([0.0, 0.25, 1.0]), [(0, 0, 0), (1, 1, 1), (0, 1, 0)]).tolist() == [
        [0, 0, 0],
        [0.5, 0.5, 0.5],
        [0, 1, 0],
    ]


def test_it_is_in_the_table_of_experiments():
    assert EXPERIMENTS["dense-forest"].module == "composition.dense_forest"
