# SPDX-License-Identifier: Apache-2.0
"""Sections of which everything is known: their files, their plants, their boxes, and recordings of them."""

import numpy as np
import pytest

from hedgerow.compose.box_segmentation import segment_by_boxes
from hedgerow.compose.segmentation import RETURNS
from hedgerow.errors import InputError
from hedgerow.reproduce.composition.sections import LENGTH_M, open_section
from hedgerow.scenes.annotation import PLANT_CLASSES
from hedgerow.scenes.site import load_site

SCALE = 0.1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sections")


@pytest.fixture(scope="module")
def section(folder):
    return open_section(folder, 1, SCALE)


@pytest.fixture(scope="module")
def log(section):
    return section.record(0.0, 4, 5)


def test_a_section_is_a_scene_file_that_builds_again(section, log):
    assert section.length_m == SCALE * LENGTH_M[1]
    again = load_site(section.path, wavelength_nm=section.site.source["wavelength_nm"])
    assert again.n_copies == section.site.n_copies
    beams = log.beams[::50]
    assert again.world().fire(beams).returns.equal(section.site.world().fire(beams).returns)


def test_every_class_stands_in_it_and_every_plant_has_its_true_box(section):
    boxes = section.truth_annotation()
    assert set(boxes.class_name.tolist()) == set(PLANT_CLASSES)
    plants = sum(n for name, n in section.site.n_copies.items() if name != "grass")
    assert len(boxes) == plants
    np.testing.assert_array_equal(section.object_class[boxes.object], boxes.class_name)
    low_x, low_y, high_x, high_y = section.site.terrain.bounds_m
    assert (boxes.position_m[:, :2] > [low_x, low_y]).all()
    assert (boxes.position_m[:, :2] < [high_x, high_y]).all()
    trees = boxes.size_m[boxes.class_name == "large-tree", 2]
    # 13.4 m, grown a little lower or higher, times 0.85 to 1.15.
    assert ((trees > 10) & (trees < 17)).all()


def test_what_a_plant_returns_lies_in_its_box(section, log):
    boxes = section.truth_annotation()
    found = segment_by_boxes(log, boxes, use_labels=False)
    truth = log.returns.object[log.returns.hit]
    is_plant = section.object_class[truth] != ""
    above = ~found.is_ground[RETURNS]
    mine = found.object[RETURNS] == truth
    # Where crowns touch, boxes overlap and some leaves go to the neighbour.
    assert mine[is_plant & above].mean() > 0.85
    grass = ~is_plant & above
    assert (found.object[RETURNS][grass] == 0).mean() > 0.8


def test_no_plant_of_one_section_stands_in_another(folder, section):
    other = open_section(folder, 3, 35 / LENGTH_M[3])
    ours, theirs = (
        {asset.parts[0].centre_m().tobytes() for asset in each.composed.assets if asset.name.startswith(PLANT_CLASSES)}
        for each in (section, other)
    )
    assert ours
    assert not ours & theirs


def test_the_same_seed_records_the_same_bytes_and_thinning_keeps_every_nth_sweep(section, log):
    again = section.record(0.0, 4, 5, thin=3)
    assert again.sweeps.tolist() == [0, 3]
    assert again.returns.equal(log.select(sweep=[0, 3]).returns)
    assert not section.record(0.0, 4, 6, thin=4).returns.equal(log.select(sweep=0).returns)


def test_a_drive_beside_the_trail_is_beside_it(section, log):
    beside = section.record(1.0, 1, 5)
    # The same way along the trail, a metre to the left: first poses are exactly that far apart.
    off_m = beside.beams.origin_m[0, :2] - log.beams.origin_m[0, :2]
    assert np.hypot(*off_m) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda folder, _: open_section(folder, 4), "number: there is no section 4; there are 1, 2, 3"),
        (lambda folder, _: open_section(folder, 1, 0.01), "scale: expected 0.1 to 10, found 0.01"),
        (lambda _, section: section.record(0, 0, 1), "n_sweeps: expected at least 1"),
        (lambda _, section: section.record(0, 1, 1, span=(0.5, 0.2)), "span: expected two shares from 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused(folder, section, call, said):
    with pytest.raises(InputError) as refused:
        call(folder, section)
    assert said in str(refused.value)
