# SPDX-License-Identifier: Apache-2.0
"""Scores by distance to what was learned: by hand, by all pairs of points, thinned, in parts, and refused."""

import json
import pickle

import numpy as np
import pytest
from known_logs import PaintedWorld, drive, log_of, with_ranges

import hedgerow as hr
from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.learned_cloud import LearnedCloud
from hedgerow.metrics.near_learned import EDGES_M, NEAR_LEARNED_METRICS
from hedgerow.metrics.pair import points_of

AHEAD = [[1.0, 0, 0]]


def ahead(ranges, **more):
    return log_of(ranges, np.tile(AHEAD, (len(ranges), 1)), **more)


def test_hits_and_crps_are_those_of_each_band():
    learned = ahead([10.0])
    real = ahead([10.05, 10.2, 10.2, 11.5, 15.0, np.inf])
    simulated = with_ranges(real, [10.0, 10.0, np.inf, 11.5, np.inf, 10.0])
    scores = compare(real, simulated, learned=learned)
    assert [scores[f"hits_near_{band}"] for band in range(6)] == [1.0, 0.5, None, None, 1.0, 0.0]
    assert [scores.values[f"hits_near_{band}"].n for band in (0, 1, 4, 5)] == [1, 2, 1, 1]
    assert not any(key.startswith("crps_near") for key in scores.values)  # a log has no forecast


def test_crps_of_bands_adds_up_to_that_of_all_returns():
    real, learned = drive(0), drive(1)
    scores = compare(real, PaintedWorld(miss=0.1), learned=learned)
    forecast = scores.histograms.forecast
    assert forecast is not None
    table = json.loads(scores.to_json())["by_distance_to_learned"]
    returned = int(np.isfinite(real.returns.first_m).sum())
    assert sum(table["beams"]) == sum(table["crps_beams"]) == returned
    assert sum(table["crps_sum_m"]) == pytest.approx(forecast.band_crps_m[:-1].sum())


def test_bands_are_those_of_the_slow_distance_to_all_points():
    real, learned = drive(2, n_sweeps=2), drive(3, n_sweeps=3)
    scores = compare(real, real, learned=learned, learned_voxel_m=0.001)
    clouds = [points_of(log.beams, r := log.returns.first_m, np.isfinite(r)) for log in (real, learned)]
    away = np.array([np.linalg.norm(clouds[1] - point, axis=1).min() for point in clouds[0]])
    by_hand = np.histogram(away, EDGES_M)[0]
    found = scores.histograms.learned
    assert found is not None
    assert found.beams.tolist() == by_hand.tolist() == found.hits.tolist()


def test_learned_returns_are_thinned_to_voxels():
    rng = np.random.default_rng(4)
    learned = ahead(10 + 0.3 * rng.random(5000))
    settings = CompareSettings()
    cloud = LearnedCloud.of(learned, settings)
    assert 10 <= len(cloud.points_m) <= 11  # 0.3 m in voxels of 3 cm
    assert LearnedCloud.of(learned, CompareSettings(learned_voxel_m=0.1)).points_m.shape[0] <= 4
    away = cloud.nearest.distance_m(np.array([[10.15, 0, 0]]))
    assert away[0] < 0.03
    travelled = pickle.loads(pickle.dumps(cloud))
    assert travelled.nearest.distance_m(np.array([[10.15, 0, 0]])) == away


def test_reality_again_and_climatology_have_bands_too():
    real = drive(6)
    both = compare(real, {"w": PaintedWorld()}, floors=True, again=drive(6), learned=drive(7))
    for name in ("climatology", "reality again"):
        assert any(key.startswith("crps_near") for key in both[name].values)
    assert both["reality again"]["hits_near_5"] == 1.0


def test_parts_add_up_to_the_whole():
    real, world = drive(8), PaintedWorld(miss=0.1)
    cloud = LearnedCloud.of(drive(9), CompareSettings())
    whole = compare(real, world, learned=drive(9))
    parts = [
        accumulate(real.select(sweep=some), {"simulated": world}, CompareSettings(), learned=cloud)
        for some in (range(3), range(3, 6))
    ]
    parts[0].merge(parts[1])
    merged = score(parts[0], {})["simulated"]
    found = {key: value for key, value in whole.values.items() if key in NEAR_LEARNED_METRICS}
    assert len(found) >= 6
    for key, value in found.items():
        assert merged.values[key].n == value.n
        assert merged[key] == pytest.approx(value.value, rel=1e-12)


def test_without_it_there_are_no_bands():
    scores = compare(drive(0), drive(0))
    assert not NEAR_LEARNED_METRICS.keys() & scores.values.keys()
    assert scores.to_dict()["by_distance_to_learned"] is None


def test_what_is_no_learned_log_is_refused():
    real = ahead([10.0])
    with pytest.raises(hr.InputError, match="learned: is a world; give the log"):
        compare(real, real, learned=PaintedWorld())  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(hr.InputError, match="learned: none of its beams returned"):
        compare(real, real, learned=ahead([np.inf]))
    elsewhere = hr.Log.from_arrays(origins=(0, 0, 0), directions=AHEAD, ranges=[10.0], map_origin_m=(5e5, 0, 0))
    with pytest.raises(hr.InputError, match="learned: its map begins at"):
        compare(real, real, learned=elsewhere)
