# SPDX-License-Identifier: Apache-2.0
"""Planar experiments in small: what plays reality stays hidden, scenes are as told, experiments run to their words."""

import ast
from pathlib import Path

import numpy as np
import pytest

import hedgerow
from hedgerow.errors import FileError
from hedgerow.planar.regression import Scale
from hedgerow.reproduce.experiment import find_experiment
from hedgerow.reproduce.planar import detection, registration
from hedgerow.reproduce.planar.hidden_sensor import SCALE, HiddenSensor
from hedgerow.reproduce.planar.lab import ROOM, distance_m, is_inside, random_poses
from hedgerow.reproduce.planar.real import crps, match_by_range

SOURCE = Path(hedgerow.__file__).parent


def test_no_model_and_no_program_imports_what_plays_reality():
    for path in SOURCE.rglob("*.py"):
        imported = {
            name
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom | ast.Import)
            for name in [getattr(node, "module", None) or "", *(each.name for each in node.names)]
        }
        if any("hidden_sensor" in name for name in imported):
            assert path.is_relative_to(SOURCE / "reproduce" / "planar"), path


def test_the_hidden_scanner_has_dead_bearings_biases_and_more_spread_far_away():
    sensor = HiddenSensor()
    n = 4000
    pulse = 360 * np.arange(n, dtype=np.int64) + 10
    near, far = (sensor.read(np.tile([range_m, 0.0], (n, 1)), pulse, 1) for range_m in (1.0, 4.0))
    assert np.isinf(sensor.read(np.tile([1.0, 0.0], (n, 1)), pulse + 34, 1)).all()  # bearing 44
    bias = sensor.bias_m()[10] + 0.004
    # 4,000 readings of 3 mm: 0.05 mm, and rounding to whole millimetres
    assert near[np.isfinite(near)].mean() - 1 == pytest.approx(bias, abs=6e-4)
    assert np.std(far[np.isfinite(far)]) > 4 * np.std(near[np.isfinite(near)])
    assert np.isinf(far).mean() > 5 * np.isinf(near).mean()
    assert abs(sensor.without_bias().bias_m()).max() == 0


def test_neighbours_of_the_hidden_scanner_err_together():
    pulse = np.arange(20_000, dtype=np.int64)
    error = HiddenSensor(dead=()).without_bias().read(np.tile([2.0, 0.0], (len(pulse), 1)), pulse, 2) - 2.0
    both = np.isfinite(error[1:]) & np.isfinite(error[:-1])
    found = np.corrcoef(error[1:][both], error[:-1][both])[0, 1]
    expected = 2 * 0.35 * 0.8 / (0.8**2 + 2 * 0.35**2)
    assert found == pytest.approx(expected, abs=0.03)


def test_poses_lie_in_the_room_and_away_from_its_walls():
    poses = random_poses(ROOM, 50, np.random.default_rng(1))
    assert all(is_inside(pose[:2], ROOM.segments()) for pose in poses)
    assert min(distance_m(pose[:2], ROOM.segments()) for pose in poses) >= 0.25
    assert not is_inside(np.array([2.3, 2.5]), ROOM.segments())  # in the box


def test_drives_stay_in_the_corridor_and_go_around_its_corner():
    for seed in range(5):
        pose = registration.drive(seed).pose
        assert all(is_inside(each[:2], registration.CORRIDOR.segments()) for each in pose)
        assert min(distance_m(each[:2], registration.CORRIDOR.segments()) for each in pose) > 0.25
        assert pose[-1, 1] > 2.0


def test_scenes_of_the_detector_have_one_target_and_differ():
    sites = detection.choose_scenes(6, 500, seed=1)
    for site in sites:
        (target,) = site.segments("target")
        assert np.linalg.norm(target[1] - target[0]) == pytest.approx(0.61)
        lengths = np.linalg.norm(np.diff(site.segments("obstacle"), axis=1)[:, 0], axis=1)
        assert (np.abs(lengths - 0.61) > 0.12).all()
    places = np.array([site.segments("target")[0].mean(axis=0) for site in sites])
    assert np.linalg.norm(places[:, None] - places, axis=2)[np.triu_indices(6, 1)].min() > 0.05


def test_histograms_match_where_forecasts_put_together_are_what_was_read():
    scale = Scale(high_m=4.0, step_m=0.1)
    forecast = np.zeros((42, 4))
    forecast[[10, 20, 30, 30], np.arange(4)] = 1  # 1, 2, 3 and 3 m
    nominal = np.array([1.5, 1.5, 3.2, 3.2])
    swapped = np.array([2.0, 1.0, 3.0, 3.0])  # wrong each, right together
    assert match_by_range(forecast, swapped, nominal, scale) == pytest.approx(0, abs=1e-12)
    nearer = np.array([1.0, 2.0, 2.5, 2.5])  # half of the readings half a metre nearer
    assert match_by_range(forecast, nearer, nominal, scale) == pytest.approx(0.25)


def test_the_crps_of_a_certain_forecast_is_its_error():
    scale = Scale(high_m=1.0, step_m=0.01)
    forecast = np.zeros((102, 2))
    forecast[[50, 101], [0, 1]] = 1  # 0.5 m; and null
    assert crps(forecast, np.array([0.7, np.inf]), scale) == pytest.approx(0.1, abs=0.006)


@pytest.mark.parametrize(("name", "size", "said"), [("magnetic-probe", 20, "NP-Reg"), ("planar-grass", 20, "grass")])
def test_quick_experiments_run(name, size, said, tmp_path):
    outcome = find_experiment(name).run(tmp_path, size, 1, lambda line: None)
    assert said in outcome.to_markdown()
    assert all(path.stat().st_size > 10_000 for path in outcome.pictures)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("planar-observation", 10),
        ("planar-detection", 4),
        ("planar-registration", 2),
        ("planar-particle-filter", 2),
        ("noisy-state", 10),
    ],
)
def test_long_experiments_run(name, size, tmp_path):
    outcome = find_experiment(name).run(tmp_path, size, 1, lambda line: None)
    assert "|" in outcome.to_markdown()


def test_real_logs_need_their_folder(tmp_path):
    with pytest.raises(FileError, match="give --data"):
        find_experiment("planar-real").run(tmp_path, 10, 1, lambda line: None, tmp_path)


def test_the_scale_is_that_of_the_paper():
    assert SCALE.n_bins == 4501
