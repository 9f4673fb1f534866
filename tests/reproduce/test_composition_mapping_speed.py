# SPDX-License-Identifier: Apache-2.0
"""Maps of a fast drive: how clouds are thinned and compared, and how much of the section is driven."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow import Log
from hedgerow.reproduce.composition import mapping_speed
from hedgerow.reproduce.composition.mapping_speed import Map, MapScore, choose_section, score_map, text, thin
from hedgerow.reproduce.experiment import EXPERIMENTS


def log_of(points_m):
    """Points seen from a metre above, the first of object 2, and one beam that returned nothing."""
    points_m = np.asarray(points_m, dtype=np.float64)
    origins = np.vstack([points_m, [[0.0, 0, 50]]]) + np.array([0, 0, 1.0])
    down = np.tile([0.0, 0, -1.0], (len(origins), 1))
    log = Log.from_arrays(origins=origins, directions=down, ranges=np.append(np.ones(len(points_m)), np.inf))
    owner = np.where(np.arange(len(origins)) == 0, 2, 1) * log.returns.hit
    return log.with_returns(replace(log.returns, object=owner.astype(np.uint32)))


def test_one_point_of_each_voxel_stays():
    points = np.array([[0.01, 0.01, 0.01], [0.02, 0.04, 0.03], [0.06, 0.01, 0.01], [-0.01, 0.01, 0.01]])
    kept, first = thin(points, 0.05)
    assert sorted(first.tolist()) == [0, 2, 3]
    assert np.array_equal(kept, points[first])
    assert len(thin(np.zeros((0, 3)))[0]) == 0


def test_a_map_that_is_shifted_and_half_empty_scores_as_it_should():
    line = np.stack([np.arange(40.0), np.zeros(40), np.zeros(40)], axis=1)
    truth = Map.of(log_of(line), np.array(["", "", "low-shrub"]))
    assert truth.is_plant.sum() == 1
    same = score_map("same", log_of(line), truth)
    assert same.to_truth_m == same.from_truth_m == 0 and same.found == 1 and same.f1 == 1
    shifted = score_map("shifted", log_of(line + np.array([0, 0.2, 0])), truth)
    assert shifted.to_truth_m == pytest.approx(0.2) and shifted.found == 0
    half = score_map("half", log_of(line[1::2]), truth)
    assert half.to_truth_m == 0 and half.from_truth_m == pytest.approx(0.5)  # every second point is 1 m off
    assert half.found == pytest.approx(0.5)
    assert np.isnan(half.f1)  # other beams
    assert half.plants_m == pytest.approx(1.0)  # the plant is the first point, which is missing


def test_the_driven_part_of_the_section_follows_from_the_speed(tmp_path):
    section, span = choose_section(tmp_path, 100, seed=1)
    assert section.length_m == pytest.approx(65)
    assert span == (0.0, pytest.approx(22.35 / 49, abs=0.01))  # 100 sweeps at 10 Hz and 5 mph, 2.235 m/s


def test_the_table_shows_every_map():
    class Trial:
        judged = [0] * 1000

    rows = [MapScore("composed", 5, 0.1, 0.3, 0.4, 0.5, 0.9), MapScore("fast", 3, 0.0, 0.2, 0.2, 0.7, np.nan)]
    said = text(rows, Trial(), 100, 29)  # pyright: ignore[reportArgumentType]
    assert "100 sweeps at 5 mph (10 s), 29 at 17 mph (3 s)" in said
    assert "| composed | 5 | 0.100 | 0.300 | 0.200 | 0.400 | 50.0 | 0.900 |" in said
    assert said.splitlines()[-1].endswith("| 70.0 | - |")


def test_it_is_in_the_table_of_experiments():
    assert EXPERIMENTS["mapping-speed"].module == "composition.mapping_speed"


@pytest.mark.slow
def test_a_second_slow_drive_is_nearest_to_the_first(tmp_path):
    outcome = mapping_speed.run(tmp_path, 12, say=lambda line: None)
    table = [line.strip("| ").split(" | ") for line in outcome.text.splitlines() if line.startswith("|")]
    average = {row[0]: float(row[4]) for row in table[2:]}
    assert min(average, key=lambda name: average[name]) == "slow drive again"
