# SPDX-License-Identifier: Apache-2.0
"""The navigation experiment in small: a walled yard with two trees and a meadow."""

import numpy as np
import pytest

from hedgerow.apps.navigation import Motion, NavigationSettings, navigate
from hedgerow.apps.planner import CostGrid, GridSettings
from hedgerow.errors import InputError
from hedgerow.frames import Pose
from hedgerow.reproduce import cost_maps
from hedgerow.reproduce.cost_maps import share, words
from hedgerow.reproduce.yard import SeenCells, collision_check, count_seen, map_truth, viewpoints
from hedgerow.sensor import Sensor

SETTINGS = NavigationSettings(grid=GridSettings(n_cells=90), max_time_s=60.0, snapshot_s=2.0)


@pytest.fixture(scope="module")
def truth(yard):
    return map_truth(yard, CostGrid.around((1, 0), SETTINGS.grid))


def test_from_above_all_things_stand_where_they_were_put(yard, truth):
    grid = CostGrid.around((1, 0), SETTINGS.grid)
    x, y = grid.centre_m(np.argwhere(truth.grass)).T
    assert np.abs([x, y]).max() < 5.9  # blades of 0.6 m lean over the meadow's edge
    assert truth.grass.sum() > 0.9 * 400  # 10 m by 10 m
    x, y = grid.centre_m(np.argwhere(truth.tree)).T
    assert np.minimum(np.hypot(x - 10, y + 6), np.hypot(x - 2, y - 14)).max() < 4
    row, column = grid.cell_of("wall", (-20.25, 3))
    assert truth.height_m[row, column] == pytest.approx(10, abs=1e-4)
    assert 0.3 < truth.height_m[truth.grass].max() <= 0.61


def test_more_rays_a_time_do_not_change_what_stands_there(yard, truth, monkeypatch):
    monkeypatch.setattr("hedgerow.reproduce.yard._RAYS_AT_ONCE", 1000)
    again = map_truth(yard, CostGrid.around((1, 0), SETTINGS.grid))
    for mine, theirs in zip(truth, again, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("place", "hit"),
    [((-18.7, 0), True), ((-18.5, 0), False), ((10, -6.8), True), ((10, -7.2), False), ((0, 0), False)],
)
def test_a_vehicle_touches_walls_and_trunks_but_not_grass(yard, place, hit):
    # 1.4 m from its middle to the front, 0.9 m to the side; the trunk is 0.17 m thick.
    assert collision_check(yard)(Pose.from_xyz_rpy((*place, 0))) is hit


def test_views_are_taken_along_the_way_but_not_beside_trees(yard, truth):
    grid = CostGrid.around((1, 0), SETTINGS.grid)
    assert viewpoints(yard, truth, grid) == [Motion(-13.0, 0.0, 0.0), Motion(2.0, 0.0, 0.0)]
    truth.height_m[grid.cell_of("pole", (3.1, 1.1))] += 5
    try:
        assert viewpoints(yard, truth, grid) == [Motion(-13.0, 0.0, 0.0)]
    finally:
        truth.height_m[grid.cell_of("pole", (3.1, 1.1))] -= 5


def test_a_level_slice_sees_no_grass_and_lasers_that_look_up_see_more_of_the_trees(yard, truth):
    places = viewpoints(yard, truth, CostGrid.around((1, 0), SETTINGS.grid))
    seen = {n: count_seen(yard, Sensor.named(n), truth, places, SETTINGS, 1) for n in ("lms-291", "vlp-16", "hdl-64e")}
    assert sum(seen["lms-291"].grass) == 0
    assert share(seen["hdl-64e"], "grass", (0, 1)) > share(seen["vlp-16"], "grass", (0, 1)) > 0.2
    assert share(seen["vlp-16"], "tall", (1,)) > 2 * share(seen["hdl-64e"], "tall", (1,))
    # All look at the same cells, and only at those ahead: from 13 m west the whole meadow, from its middle a half.
    assert len({(each.n_grass, each.n_tall) for each in seen.values()}) == 1
    n_ahead = 1.0 * truth.grass.sum() + truth.grass[:, 47:].sum()
    assert sum(seen["vlp-16"].n_grass) == n_ahead


def test_the_whole_experiment_says_what_its_numbers_say(yard, tmp_path):
    said: list[str] = []
    outcome = cost_maps.run(tmp_path, 2, 1, said.append, sensors=("lms-291", "vlp-16"), yard=yard, settings=SETTINGS)
    text = outcome.to_markdown()
    assert "| goal reached | yes | yes |" in text
    assert "Here it misses most of it and the others see more." in text
    assert "All reached the goal; none touched anything solid." in text
    assert "cells known after 2 s" in text
    assert [line.split(":")[0] for line in said] == ["yard", "lms-291", "vlp-16"]
    (picture,) = outcome.pictures
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = {line.split("|")[1].strip(): line.split("|")[2:4] for line in text.splitlines() if line.startswith("|")}
    lms, vlp = (float(cell.strip(" %")) for cell in rows["share of the way over grass"])
    assert lms > vlp  # who does not see the meadow drives through it
    again = cost_maps.run(tmp_path, 2, 1, said.append, sensors=("lms-291", "vlp-16"), yard=yard, settings=SETTINGS)
    assert again.text == outcome.text


def test_the_paper_to_the_letter_fires_all_sweeps_over_100_degrees_and_closes_no_cell(yard, tmp_path, monkeypatch):
    drives = []

    def spy(world, sensor, *places, settings, **more):
        drives.append((sensor, settings))
        return navigate(world, sensor, *places, settings=settings.model_copy(update={"max_time_s": 0.3}), **more)

    monkeypatch.setattr(cost_maps, "navigate", spy)
    words = {"sensors": ("lms-291", "vlp-16"), "yard": yard, "settings": SETTINGS}
    done = cost_maps.run(tmp_path, None, 1, len, **words, paper=True)
    (lms, task), (vlp, _) = drives
    azimuth = np.arctan2(*lms.pattern.direction[:, [1, 0]].T)
    assert np.rad2deg([azimuth.min(), azimuth.max()]) == pytest.approx([-50, 50], abs=0.01)  # Goodin 2018 Table 3
    assert vlp.config == Sensor.named("vlp-16").config
    assert task.sweep_stride == 1 and not task.grid.blocks and task.grid.keep_off_m == 0 and task.grid.n_cells == 90
    assert done.pictures[0].name == "cost-maps-paper.png"
    cost_maps.run(tmp_path, None, 1, len, **words, pose_errors="browning-2012")
    assert drives[-1][1].pose_errors.heading_sigma_deg == 0.1
    assert drives[-1][1].sweep_stride == 5 and drives[-1][1].grid.blocks


def test_words_turn_round_with_the_numbers(yard):
    drive = cost_maps.Drive
    run = cost_maps._drive(yard, Sensor.named("lms-291"), SETTINGS.model_copy(update={"max_time_s": 0.5}), 1, 1)
    few, many = SeenCells((10,) * 4, (1,) * 4, (10,) * 4, (1,) * 4), SeenCells((10,) * 4, (8,) * 4, (10,) * 4, (8,) * 4)
    as_paper = words(
        [drive("lms-291", run, few, 0.0), drive("vlp-16", run, many, 0.0), drive("hdl-64e", run, few, 0.0)]
    )
    assert "Here it marks more of them at 0 to 10 m" in as_paper
    assert "Not so here" in as_paper
    other = words([drive("lms-291", run, many, 0.0), drive("vlp-16", run, few, 0.0), drive("hdl-64e", run, many, 0.0)])
    assert "Here it does not miss it" in other
    assert "it marks more of them at no distance" in other
    assert "So it is here" in other
    assert "Not at the goal: lms-291, vlp-16, hdl-64e" in other


def test_a_size_below_1_is_refused(yard, tmp_path):
    with pytest.raises(InputError, match="size"):
        cost_maps.run(tmp_path, 0, yard=yard)
