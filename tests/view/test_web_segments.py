# SPDX-License-Identifier: Apache-2.0
"""Segments mended by hand: clicks, classes, parts of a cloud, joined objects, and the file that is written again."""

import io
import sys
import time

import numpy as np
import pytest
from chromium import Browser, find_chromium
from numpy.testing import assert_allclose, assert_array_equal

import hedgerow as hr
from hedgerow.compose.segment_file import load_segmentation, save_segmentation
from hedgerow.compose.segmentation import segment
from hedgerow.errors import FileError, InputError
from hedgerow.view.web.segments import (
    CHOSEN,
    CLASS_COLOURS,
    Camera,
    SegmentCloud,
    SegmentEdit,
    box_corners_m,
    object_colour,
    open_edit,
)
from hedgerow.world import Gaussians, LearnedWorld

BUSHES_M = ((5.0, 5.0), (14.0, 6.0))


def ball(rng, n):
    """Points of the unit ball: round bushes have one top."""
    direction = rng.normal(size=(n, 3))
    return direction * (rng.random(n) ** (1 / 3) / np.linalg.norm(direction, axis=1))[:, None]


def meadow():
    """Flat ground of 20 by 12 m with two bushes of 2 m, as Gaussians."""
    rng = np.random.default_rng(2)
    x, y = (each.ravel() for each in np.meshgrid(np.arange(0, 20, 0.4), np.arange(0, 12, 0.4)))
    ground = np.stack([x, y, 0 * x], axis=1)
    bushes = [np.array([*place, 1.0]) + ball(rng, 300) * (0.9, 0.9, 0.95) for place in BUSHES_M]
    mean = np.concatenate([ground, *bushes])
    sigma = np.where((np.arange(len(mean)) < len(ground))[:, None], [0.2, 0.2, 0.01], [0.1, 0.1, 0.1])
    table = Gaussians.plain(mean, np.einsum("ni,ij->nij", sigma**2, np.eye(3)))
    return LearnedWorld(table, kind="test", max_range_m=50.0)


@pytest.fixture(scope="module")
def found():
    world = meadow()
    return world, segment(world)


@pytest.fixture
def edit(found, tmp_path):
    world, segmentation = found
    return SegmentEdit(segmentation, SegmentCloud.of(world, 1_000_000), tmp_path / "site.segments.parquet")


def look_down_at(edit, x_m, y_m):
    return edit.pick(np.array([x_m, y_m, 30.0]), np.array([0.0, 0.0, -1.0]))


def number_at(edit, place_m):
    return int(edit.owner[edit.cloud.row[look_down_at(edit, *place_m)]])


def test_a_click_shows_the_object_under_the_cursor_and_its_box(edit):
    edit.show_at(look_down_at(edit, *BUSHES_M[0]))
    shown = edit.object
    assert shown is not None
    assert_allclose([shown.x_m, shown.y_m], BUSHES_M[0], atol=0.3)  # a voxel
    corners_m = box_corners_m(shown)
    assert_allclose(np.ptp(corners_m[:, 2]), shown.height_m)
    assert_allclose(corners_m[:, :2].mean(axis=0), [shown.x_m, shown.y_m])
    sides_m = np.linalg.norm(corners_m[1] - corners_m[0]), np.linalg.norm(corners_m[2] - corners_m[0])
    assert_allclose(sides_m, [shown.length_m, shown.width_m])
    assert edit.box_lines_m().shape == (12, 2, 3)
    # Each corner ends three of the edges.
    corner, count = np.unique(edit.box_lines_m().reshape(-1, 3).round(6), axis=0, return_counts=True)
    assert len(corner) == 8 and (count == 3).all()
    edit.show_at(look_down_at(edit, 10.0, 10.0))
    assert edit.object is None and len(edit.box_lines_m()) == 0
    edit.show_at(look_down_at(edit, 500.0, 0.0))
    assert edit.object is None


def test_the_nearest_of_two_objects_behind_each_other_is_picked(edit):
    one, two = (number_at(edit, place) for place in BUSHES_M)
    assert {one, two} == {1, 2} or one != two
    origin, end = np.array([-10.0, 4.0, 1.0]), np.array([14.0, 6.0, 1.0])
    direction = (end - origin) / np.linalg.norm(end - origin)
    point = edit.pick(origin, direction)
    assert edit.owner[edit.cloud.row[point]] == one  # it goes through both


def test_a_class_is_changed_saved_and_loaded_again(edit, found):
    world, segmentation = found
    edit.show_at(look_down_at(edit, *BUSHES_M[1]))
    number = edit.shown
    edit.change_class("large-tree")
    assert not edit.is_saved and "not saved" in edit.summary()
    edit.save()
    assert edit.is_saved
    again = load_segmentation(edit.path, world)
    assert again[number].class_name == "large-tree"
    assert segmentation[number].class_name != "large-tree"
    assert [each.class_name for each in again.objects if each.id != number] == [
        each.class_name for each in segmentation.objects if each.id != number
    ]


def test_a_ball_of_a_bush_becomes_an_object_of_its_own(edit):
    first = number_at(edit, BUSHES_M[0])
    before = edit.segmentation[first].n_points
    point = look_down_at(edit, *BUSHES_M[0])
    edit.choose_ball(point, 0.7)
    places_m = edit.cloud.place_m["gaussians"]
    expected = np.linalg.norm(places_m - edit.cloud.point_m[point], axis=1) <= 0.7
    assert_array_equal(edit.chosen, expected)
    assert (edit.colours("object")[edit.chosen[edit.cloud.row]] == CHOSEN).all()
    number = edit.make_object("low-shrub")
    assert edit.shown == number and not edit.chosen.any()
    assert edit.segmentation[number].n_points == expected.sum()
    assert edit.segmentation[first].n_points < before
    assert_array_equal(edit.owner == number, expected)


def test_only_points_of_the_object_shown_are_chosen_if_asked_for(edit):
    edit.show_at(look_down_at(edit, *BUSHES_M[0]))
    edit.choose_seen(lambda places_m: places_m[:, 0] < 100, only_shown=True)
    assert_array_equal(edit.chosen, edit.owner == edit.shown)
    edit.choose_nothing()
    assert not edit.chosen.any()


def test_two_objects_are_joined_and_parted_again_by_undo(edit, found):
    _, segmentation = found
    one, two = (number_at(edit, place) for place in BUSHES_M)
    total = segmentation[one].n_points + segmentation[two].n_points
    edit.shown = one
    edit.join(two)
    assert edit.object is not None and edit.object.n_points == total
    assert number_at(edit, BUSHES_M[0]) == number_at(edit, BUSHES_M[1]) == edit.shown
    assert len(edit.segmentation.objects) == len(segmentation.objects) - 1
    edit.undo()
    assert edit.segmentation is segmentation and edit.shown == one and edit.is_saved
    edit.undo()  # there is nothing more, and nothing happens


def test_a_removed_object_leaves_points_of_none(edit):
    edit.show_at(look_down_at(edit, *BUSHES_M[0]))
    number = edit.shown
    edit.remove_object()
    assert edit.shown is None and not (edit.owner == number).any()


def test_what_cannot_be_done_is_said_in_one_sentence(edit):
    with pytest.raises(InputError, match="none is shown; click one first"):
        edit.change_class("other")
    with pytest.raises(InputError, match="nothing is chosen"):
        edit.make_object("other")
    edit.show_at(look_down_at(edit, *BUSHES_M[0]))
    with pytest.raises(InputError, match="is the one that is shown"):
        edit.join(edit.shown)
    with pytest.raises(InputError, match="none with the number 0"):
        edit.join(0)
    with pytest.raises(InputError, match="'bush' is none of"):
        edit.change_class("bush")


def test_colours_tell_objects_or_classes(edit):
    edit.segmentation = edit.segmentation.with_class(number_at(edit, BUSHES_M[0]), "other")
    one, two = (look_down_at(edit, *place) for place in BUSHES_M)
    by_object, by_class = edit.colours("object"), edit.colours("class")
    assert_array_equal(by_object[one], object_colour(number_at(edit, BUSHES_M[0])))
    assert_array_equal(by_class[one], CLASS_COLOURS["other"])
    assert (by_object[one] != by_object[two]).any()
    assert len({object_colour(number) for number in range(1, 200)}) == 199


def test_a_box_of_the_picture_holds_what_is_seen_through_it():
    # Looking along x from the origin: right is -y, down is -z.
    turn = np.array([[0, 0, 1.0], [-1, 0, 0], [0, -1, 0]])
    wxyz = np.roll(hr.base.rotation.from_matrix(turn[None])[0], 1)
    camera = Camera(np.zeros(3), wxyz, np.pi / 2, 2.0)
    places_m = np.array([[10.0, 0, 0], [10, 10, 0], [10, -10, 0], [10, 0, 9], [-10, 0, 0]])
    seen = camera.to_screen(places_m)
    assert_allclose(seen[:4], [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.05]], atol=1e-12)
    assert np.isnan(seen[4]).all()
    assert_array_equal(camera.within((0.4, 0.4), (0.8, 0.6))(places_m), [True, False, True, False, False])


def test_the_legend_counts_each_class_beside_its_colour(edit):
    edit.segmentation = edit.segmentation.with_class(number_at(edit, BUSHES_M[0]), "other")
    legend = edit.legend()
    assert "rgb(225, 85, 100)" in legend and "</span> other 1" in legend
    assert "large-tree" not in legend


def test_more_points_than_allowed_are_thinned_and_all_rows_stay(found):
    world, _ = found
    cloud = SegmentCloud.of(world, 1000)
    assert len(cloud.point_m) <= 1000
    assert len(cloud.place_m["gaussians"]) == world.size().elements


def test_segments_of_a_log_are_shown_with_its_returns(tmp_path):
    rng = np.random.default_rng(3)
    ends = np.concatenate([rng.uniform((-8, -8, 0), (8, 8, 0.01), (6000, 3)), rng.uniform(3, 4, (800, 3)) - (0, 0, 3)])
    to = ends - (0, 0, 5.0)
    log = hr.Log.from_arrays(
        origins=(0, 0, 5.0), directions=to / np.linalg.norm(to, axis=1)[:, None], ranges=np.linalg.norm(to, axis=1),
        max_range_m=50,
    )  # fmt: skip
    hr.write_log(log, tmp_path / "drive.parquet")
    save_segmentation(tmp_path / "drive.segments.parquet", segment(tmp_path / "drive.parquet"))
    edit = open_edit(tmp_path / "drive.parquet", tmp_path / "drive.segments.parquet", 100_000)
    edit.show_at(look_down_at(edit, 3.5, 3.5))
    assert edit.object is not None
    assert_allclose([edit.object.x_m, edit.object.y_m], [3.5, 3.5], atol=0.3)


def test_segments_of_another_world_are_refused(found, tmp_path):
    world, segmentation = found
    save_segmentation(tmp_path / "site.segments.parquet", segmentation)
    half = world.tables["gaussians"][::2]
    LearnedWorld(half, kind="test").save(tmp_path / "other.world")
    with pytest.raises(FileError, match=r"belongs to .* and not to other\.world"):
        open_edit(tmp_path / "other.world", tmp_path / "site.segments.parquet", 1000)


def test_the_command_wants_one_log_or_world(found, tmp_path):
    from hedgerow.cli.view import view

    world, segmentation = found
    world.save(tmp_path / "site.world")
    save_segmentation(tmp_path / "site.segments.parquet", segmentation)
    with pytest.raises(InputError, match="--segments: expected the one log or world that they belong to, found 2"):
        view([tmp_path / "site.world"] * 2, segments=tmp_path / "site.segments.parquet")
    with pytest.raises(FileError, match=r"none\.parquet"):
        view([tmp_path / "site.world"], segments=tmp_path / "none.parquet", port=0)


# ---- on the page ----------------------------------------------------------------------------------------------


class Event:
    """What viser says of a click, a box or a control."""

    client = object()

    def __init__(self, **values):
        self.__dict__.update(values)


@pytest.fixture
def page(edit):
    pytest.importorskip("viser", reason="viser is not installed: pip install 'hedgerow[view]'")
    from hedgerow.view.web.segment_viewer import SegmentViewer
    from hedgerow.view.web.server import WebServer

    with WebServer(port=0) as started:
        yield started, SegmentViewer(started.viser, edit)


def click_at(viewer, place_m):
    origin = np.array([*place_m, 30.0]) - viewer.edit.cloud.centre_m
    return Event(ray_origin=tuple(origin), ray_direction=(0.0, 0.0, -1.0))


def test_clicks_reach_the_segmentation_and_the_page_follows(page):
    started, viewer = page
    viewer._click(click_at(viewer, BUSHES_M[0]))
    number = viewer.edit.shown
    assert f"object {number}" in viewer._object.content
    assert viewer.class_name.value == viewer.edit.object.class_name
    assert started.viser.scene.get_handle_by_name("/box").points.shape == (12, 2, 3)
    viewer.class_name.value = "large-shrub"
    viewer._class_chosen(Event())
    assert viewer.edit.object.class_name == "large-shrub"
    viewer._choose_around(click_at(viewer, BUSHES_M[1]))
    assert viewer.edit.chosen.any() and "points are chosen" in viewer._chosen.content
    viewer._join(click_at(viewer, BUSHES_M[1]))
    assert viewer.edit.shown != number
    viewer.do(viewer.edit.save)
    assert viewer.save.disabled and viewer.edit.path.is_file()


def test_what_is_refused_is_told_on_the_page(page):
    _, viewer = page
    viewer.do(viewer.edit.remove_object)
    assert "none is shown" in viewer.notice.content
    viewer._click(click_at(viewer, BUSHES_M[0]))
    assert "none is shown" not in viewer.notice.content


@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (Debian: apt install chromium)")
@pytest.mark.skipif(sys.platform != "linux", reason="the flags of the software renderer are those of Linux")
def test_a_browser_shows_the_objects_and_clicks_and_boxes_find_them(page, tmp_path):
    from PIL import Image

    started, viewer = page
    viewer.size.value = 0.2
    viewer.refresh()
    one, two = (object_colour(number_at(viewer.edit, place)) for place in BUSHES_M)
    with Browser(tmp_path / "browser", width=1000, height=500) as browser:
        browser.open(started.url)
        browser.wait_for("objects")

        def pixels(rgb):
            image = np.asarray(Image.open(io.BytesIO(browser.screenshot())).convert("RGB")).astype(int)
            rows, columns = np.nonzero((np.abs(image[:, :650] - rgb) <= 12).all(axis=2))
            return np.c_[columns, rows]

        def until(is_so):
            end = time.monotonic() + 60
            while not is_so():
                assert time.monotonic() < end
                time.sleep(0.2)

        until(lambda: len(pixels(one)) > 100 and len(pixels(two)) > 100)
        browser.click(*np.median(pixels(one), axis=0).astype(int).tolist())
        browser.wait_for(f"object {number_at(viewer.edit, BUSHES_M[0])}")
        # A box around the other one, with shift held.
        low, high = pixels(two).min(axis=0) - 4, pixels(two).max(axis=0) + 4
        steps = [
            ("mousePressed", low),
            ("mouseMoved", (low + high) // 2),
            ("mouseMoved", high),
            ("mouseReleased", high),
        ]
        for kind, (x, y) in steps:
            browser.send(
                "Input.dispatchMouseEvent", type=kind, x=int(x), y=int(y), button="left", buttons=1, clickCount=1,
                modifiers=8,
            )  # fmt: skip
            time.sleep(0.3)
        until(viewer.edit.chosen.any)
        mine = viewer.edit.owner == number_at(viewer.edit, BUSHES_M[1])
        assert viewer.edit.chosen[mine].mean() > 0.95
        assert browser.errors == []
