# SPDX-License-Identifier: Apache-2.0
"""The root scene in small: what it holds, and that the root shows by its intensity."""

import numpy as np
import pytest

from hedgerow.reproduce import root_scene
from hedgerow.reproduce.beam_histograms import least_and_most_spread
from hedgerow.scenes.site import load_site, open_scene


@pytest.fixture(scope="module")
def small():
    return load_site("root", set={"tussocks": 60, "trees": 2, "root_spacing_m": 0.01})


def test_the_settings_of_the_full_scene_are_those_of_its_file():
    file = open_scene("root").file
    assert root_scene._settings(root_scene.PAPER_PLANTS) == file.parameters


def test_both_lidars_see_the_root_brighter_than_the_trail(small):
    for name in root_scene.SENSORS:
        log = root_scene.scan(small, name, seed=1).log
        assert log.returns.label is not None and log.returns.intensity is not None
        points, label = log.points(), log.returns.label[log.returns.hit]
        intensity = log.returns.intensity[log.returns.hit]
        on_step = (np.abs(points[:, 0]) < 1) & (np.abs(points[:, 1]) < 1.5)
        trail = label == small.labels["trail"]
        root = on_step & (label == small.labels["trunk"])
        assert root.sum() > 100
        assert np.median(intensity[root]) > 2 * np.median(intensity[trail])  # it faces the sensor


def test_the_experiment_writes_its_table_and_its_picture(tmp_path):
    outcome = root_scene.run(tmp_path, size=20, say=lambda line: None)
    assert "| triangles, all copies counted | 604,488,350 |" in outcome.text
    assert "| grass and trees | 24,564 | 20 |" in outcome.text
    assert [path.name for path in outcome.pictures] == ["root-scene.jpg"]
    assert outcome.pictures[0].stat().st_size > 10_000


def test_the_beams_that_spread_least_and_most_are_found():
    edges = np.linspace(0, 1, 11)
    image = np.zeros((10, 4))
    image[5, 0] = 10  # one range
    image[[2, 8], 1] = 5  # two
    image[:, 2] = 1  # all, which is less wide
    image[[0, 9], 3] = 1  # the widest, too few to count
    assert least_and_most_spread(image, edges) == (0, 1)
