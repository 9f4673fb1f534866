# SPDX-License-Identifier: Apache-2.0
"""The large-scale experiment in small: 24 m of trail between bushes, seen by a VLP-16."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow import Log, write_log
from hedgerow.io.parquet.reader import LogFile
from hedgerow.parallel import engine
from hedgerow.reproduce import large_scale, large_scale_site
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.reproduce.large_scale_pictures import Frame, highest
from hedgerow.reproduce.large_scale_site import Survey
from hedgerow.reproduce.mobile import SCENE_AGAIN
from hedgerow.scenes.site import open_scene
from hedgerow.scenes.trail import Polyline
from hedgerow.sensor import Sensor
from hedgerow.simulate import Simulation

SWEEPS = 5
LONG_TEXT = large_scale_site.scene_text
WAY = "along_trail = true, from_m = 5, to_m = 29, speed_mps = 5"
SCENE = f"""sensor = "vlp-16"
terrain = {{ kind = "noise", size_m = [50, 40], spacing_m = 0.5, relief_m = 1, wavelength_m = 20 }}
trail = {{ path_m = [[-20, 0], [0, 1], [20, 0]], width_m = 3 }}
plants.bush = {{ kind = "shrub" }}
scatter.bushes = {{ what = "bush", density_per_m2 = 0.05, trail_distance_m = [2.6, 60] }}
trajectories.first = {{ {WAY} }}
trajectories.second = {{ {WAY}, offset_m = 1 }}
"""


@pytest.fixture(scope="module")
def small():
    """Make the site small, for all tests of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_scale_site, "LENGTH_M", 24.0)
        patch.setattr(large_scale_site, "SENSOR", "vlp-16")
        patch.setattr(large_scale_site, "scene_text", lambda length_m: SCENE)
        patch.setattr(large_scale, "SCORED", 3)
        patch.setattr(large_scale, "DRAWN", 2)
        patch.setattr(engine, "_WORTH_KEEPING_S", 0.0)
        yield patch


@pytest.fixture(scope="module")
def stopped(small, tmp_path_factory):
    """A run that ends after its passes were recorded, and what was fired until then."""
    folder = tmp_path_factory.mktemp("out")
    fired: list[int] = []
    fire = Simulation.sweep

    def counted(simulation, number):
        fired.append(number)
        return fire(simulation, number)

    def stop(trial):
        raise KeyboardInterrupt

    small.setattr(Simulation, "sweep", counted)
    learn = large_scale._Trial._learn
    small.setattr(large_scale._Trial, "_learn", stop)
    with pytest.raises(KeyboardInterrupt):
        large_scale.run(folder, SWEEPS, say=lambda line: None)
    small.setattr(large_scale._Trial, "_learn", learn)
    return folder, fired


@pytest.fixture(scope="module")
def passes(stopped):
    """The logs that it left."""
    folder, _ = stopped
    return {name: LogFile(folder / "large-scale.work" / name).read() for name in ("first", "second", "scene-again")}


@pytest.fixture(scope="module")
def outcome(stopped, passes):
    """What comes of it when it goes on, and how much of it was fired anew."""
    folder, fired = stopped
    fired.clear()
    found = large_scale.run(folder, SWEEPS, say=lambda line: None)
    return folder, found, list(fired)


def row(outcome, table, metric):
    """What the paper and we have for a metric."""
    return next((paper, ours) for name, paper, ours in outcome.tables[table].rows if name.startswith(metric))


def test_the_second_pass_has_other_beams_beside_the_first(passes):
    first, second, again = passes.values()
    n = Sensor.named("vlp-16").pulses_per_sweep
    assert len(first) == len(second) == SWEEPS * n
    apart_m = np.linalg.norm((first.beams.origin_m - second.beams.origin_m)[:, :2], axis=1)
    assert_allclose(apart_m, large_scale_site.ASIDE_M, atol=0.1)  # the trail bends
    start_m = second.beams.origin_m[::n, :2]
    assert_allclose(np.linalg.norm(np.diff(start_m, axis=0), axis=1), 24 / (SWEEPS - 1), rtol=0.05)  # evenly spread
    assert np.array_equal(second.beams.origin_m, again.beams.origin_m)
    hit = second.returns.hit
    assert (second.returns.first_m != again.returns.first_m)[hit].mean() > 0.9


def test_what_was_recorded_before_ctrl_c_is_not_fired_again(stopped, outcome):
    _, _, fired = outcome
    # Two worlds along the second pass, and the draws of the scene on two sweeps; three passes would be 15 more.
    assert len(fired) == 2 * SWEEPS + large_scale.DRAWN * 2
    assert not (stopped[0] / "large-scale.work").exists()


def test_reality_is_nearer_to_itself_than_worlds_are(outcome):
    _, found, _ = outcome
    for metric in ("Cloud to cloud, worse", "Cloud to cloud, average", "Sweep to sweep", "CRPS"):
        paper, ours = row(found, 0, metric)
        assert 0 < ours[SCENE_AGAIN] < min(ours["Voxel"], ours["Top Down"]) < 1000
        assert paper == ({"Voxel": 4.6} if metric == "Cloud to cloud, worse" else {})
    _, hits = row(found, 1, "Hits")
    assert 50 < hits["Top Down"] <= hits[SCENE_AGAIN] <= 100
    assert row(found, 2, "Gaussians")[1]["Voxel"] > 1000


def test_time_points_and_pictures_are_told(outcome, passes):
    folder, found, _ = outcome
    n_real = int(passes["second"].returns.hit.sum())
    n_again = int(passes["scene-again"].returns.hit.sum())
    assert f"the real second pass has {n_real:,} points" in found.text
    assert f"| {SCENE_AGAIN} | {n_again:,} |" in found.text
    assert "| learning Voxel |" in found.text
    assert found.pictures == (folder / "large-scale.jpg",)
    assert found.pictures[0].read_bytes()[:3] == b"\xff\xd8\xff"


def test_a_pixel_shows_its_highest_point(tmp_path):
    down = np.tile([0.0, 0.0, -1.0], (3, 1))
    origins = [[0.1, 0.1, 9.0], [0.2, 0.1, 9.0], [0.6, 0.1, 9.0]]
    write_log(Log.from_arrays(origins=origins, directions=down, ranges=[7.0, 4.0, 8.0]), tmp_path / "a.parquet")
    top_m, n = highest(LogFile(tmp_path / "a.parquet"), Frame(np.zeros(2), (2, 3), (0.0, 9.0)))
    assert n == 3
    assert_allclose(top_m, [[5, np.nan, 1], [np.nan] * 3])


def test_scene_and_sensor_are_written_once(small, tmp_path):
    survey = Survey(tmp_path, 2, 2, 24.0)
    survey.write()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    survey.write()
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert set(before) == {"large-scale.toml", "vlp-16.toml"}
    assert Sensor.load(tmp_path / "vlp-16.toml").config == survey.sensor.config


@pytest.mark.parametrize("length_m", [60.0, 400.0])
def test_the_scene_is_right_and_as_long_as_it_says(tmp_path, length_m):
    (tmp_path / "site.toml").write_text(LONG_TEXT(length_m), encoding="utf-8")
    file = open_scene(tmp_path / "site.toml").file
    assert file.trail is not None
    assert Polyline(file.trail.path_m, smooth=file.trail.smooth).length_m > length_m + large_scale_site.BEYOND_M
    for spec in file.trajectories.values():
        assert spec.to_m is not None and spec.to_m - spec.from_m == length_m
    assert length_m / large_scale_site.SPEED_MPS >= large_scale.FULL * 0.1 or length_m < 400  # one sweep at a time


def test_it_is_in_the_table_of_experiments():
    assert str(large_scale.FULL) in EXPERIMENTS["large-scale"].about
