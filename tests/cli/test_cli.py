# SPDX-License-Identifier: Apache-2.0
"""The command line as a person meets it: in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_runner import assert_refused, run
from lane import lane_trajectory, lane_world

import hedgerow as hr
from hedgerow import cli
from hedgerow.cli import app
from hedgerow.cli.app import VERBS
from hedgerow.world import Triangles


@pytest.fixture
def log_file(tmp_path):
    log = hr.Log.from_arrays(
        origins=(0, 0, 0), directions=[[1, 0, 0], [0, 1, 0]], ranges=[5.0, np.inf], max_range_m=100, sensor="vlp-16"
    )
    hr.write_log(log, tmp_path / "drive.parquet")
    return tmp_path / "drive.parquet"


def test_every_command_has_one_place_in_the_help():
    placed = [verb for verbs in VERBS.values() for verb in verbs]
    assert sorted(placed) == sorted(set(app) - {"-h", "--help", "--version"})


def test_every_verb_is_a_file_and_every_file_but_a_few_is_a_verb():
    files = {path.stem for path in Path(cli.__file__).parent.glob("*.py")}
    assert files - {"__init__", "app", "options", "compare_options", "server_options", "worker_options"} == {
        verb for verbs in VERBS.values() for verb in verbs
    }


def test_help_lists_the_commands_and_version_says_which():
    done = run("--help")
    assert done.returncode == 0
    for command in ("demo", "info", "sensors"):
        assert command in done.stdout
    assert run("--version").stdout.strip() == hr.__version__


def test_help_loads_no_heavy_package():
    code = (
        "import sys; sys.argv = ['hedgerow', '--help']\n"
        "from hedgerow.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "heavy = ('numpy', 'scipy', 'matplotlib', 'pyarrow', 'pydantic')\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


def test_info_describes_a_log(log_file):
    done = run("info", log_file)
    assert done.returncode == 0
    assert "vlp-16" in done.stdout
    assert "2 in 1 sweep" in done.stdout
    assert "50.0 % of the beams" in done.stdout


def test_info_describes_a_trajectory(tmp_path):
    hr.write_trajectory(hr.Trajectory.line((0, 0, 0), (10, 0, 0), 2.0), tmp_path / "poses.tum")
    done = run("info", tmp_path / "poses.tum")
    assert done.returncode == 0
    assert "10.000 m" in done.stdout


def test_info_describes_a_world(tmp_path):
    wall = Triangles.plain(np.array([[[5.0, -1, 0], [5, 1, 0], [5, 0, 2]]]))
    hr.LearnedWorld(wall, kind="surface", max_range_m=50).save(tmp_path / "wall.world")
    done = run("info", tmp_path / "wall.world")
    assert done.returncode == 0
    assert "1 triangle" in done.stdout
    assert "limits 0 to 50 m" in done.stdout
    (tmp_path / "wall.world" / "tiles.parquet").unlink()
    assert_refused(run("info", tmp_path / "wall.world"), "tiles.parquet")


def test_info_refuses_what_is_not_there_empty_truncated_or_of_another_kind(tmp_path, log_file):
    assert_refused(run("info", tmp_path / "none.parquet"), "none.parquet", "no such file")
    (tmp_path / "empty.parquet").write_bytes(b"")
    assert_refused(run("info", tmp_path / "empty.parquet"), "empty.parquet")
    (tmp_path / "half.parquet").write_bytes(log_file.read_bytes()[:-100])
    assert_refused(run("info", tmp_path / "half.parquet"), "half.parquet")
    (tmp_path / "log.docx").write_text("hello")
    assert_refused(run("info", tmp_path / "log.docx"), ".docx", ".parquet")
    (tmp_path / "nan.tum").write_text("0 0 0 0 0 0 0 1\n1 nan 0 0 0 0 0 1\n")
    assert_refused(run("info", tmp_path / "nan.tum"), "nan.tum", "2")


def test_info_takes_what_it_asks_for(tmp_path, log_file):
    laspy = pytest.importorskip("laspy")
    las = laspy.create(point_format=1, file_version="1.2")
    las.x, las.y, las.z, las.gps_time = [1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [10.0, 11.0]
    las.write(tmp_path / "clip.las")
    hr.write_trajectory(hr.Trajectory.line((0, 0, 20), (3, 0, 20), 0.2), tmp_path / "poses.tum")
    assert_refused(run("info", tmp_path / "clip.las"), "scanner_m=[x, y, z] or a trajectory")
    still = run("info", tmp_path / "clip.las", "--set", "scanner_m=[0,0,10]")
    assert still.returncode == 0 and "10.050 to 10.198 m" in still.stdout
    moved = run("info", tmp_path / "clip.las", "--trajectory", tmp_path / "poses.tum")
    assert moved.returncode == 0 and "2 in 1 sweep" in moved.stdout
    assert_refused(run("info", log_file, "--set", "scanner_m=[0,0,10]"), "scanner_m", "parquet")
    assert_refused(run("info", "hdl-64e", "--set", "static=true"), "only for logs, and hdl-64e is a sensor")


def test_sensors_lists_the_whole_catalogue_within_100_columns():
    done = run("sensors")
    assert done.returncode == 0
    for name in hr.Sensor.names():
        assert name in done.stdout
    assert "range [m]" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_sensors_name_shows_one_and_draws_its_pattern(tmp_path):
    done = run("sensors", "VLP_16", cwd=tmp_path)
    assert done.returncode == 0
    assert "-15.00 to 15.00 degrees" in done.stdout
    assert (tmp_path / "vlp-16.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_sensors_refuses_unknown_names_rates_and_pictures(tmp_path):
    assert_refused(run("sensors", "vlp-61", cwd=tmp_path), "vlp-61", "vlp-16")
    assert_refused(run("sensors", "vlp-16", "--rate-hz", "99", cwd=tmp_path), "rate_hz", "99")
    assert_refused(run("sensors", "vlp-16", "-o", tmp_path / "scan.gif"), "scan.gif", ".png")
    assert_refused(run("sensors", "vlp-16", "-o", tmp_path / "no" / "scan.png"), "no")
    assert_refused(run("sensors", "missing.toml", cwd=tmp_path), "missing.toml")
    assert list(tmp_path.iterdir()) == []


def test_wrong_words_are_refused_with_a_hint():
    assert_refused(run("fly"), "fly", "--help")
    assert_refused(run("info"), "--help")
    assert_refused(run("sensors", "vlp-16", "--rate-hz", "fast"), "fast")


@pytest.fixture(scope="module")
def lane_logs(tmp_path_factory):
    """Two short drives down the lane: one to learn from, one to compare with."""
    folder = tmp_path_factory.mktemp("lane")
    sensor, world = hr.Sensor.named("vlp-16"), lane_world()
    beams = sensor.drive(lane_trajectory(), n_sweeps=6)
    for name, even in (("train", True), ("test", False)):
        some = beams[(beams.sweep % 2 == 0) == even]
        hr.write_log(world.fire(some, seed=3, sensor=sensor), folder / f"{name}.parquet")
    return folder


def test_learn_then_compare_gives_a_table_json_and_a_report(lane_logs, tmp_path):
    for model in ("voxel", "surface"):
        done = run("learn", lane_logs / "train.parquet", "-o", tmp_path / f"{model}.world", "--model", model)
        assert done.returncode == 0, done.stderr
        assert f"learned a {model} world" in done.stdout
    worlds = [tmp_path / "voxel.world", tmp_path / "surface.world"]
    out = ("--report", tmp_path / "out.html", "--json", tmp_path / "out.json")
    done = run("compare", lane_logs / "test.parquet", *worlds, *out)
    assert done.returncode == 0, done.stderr
    assert "Hits found" in done.stdout
    scores = json.loads((tmp_path / "out.json").read_text())
    assert scores["voxel"]["metrics"]["nll"]["value"] < scores["surface"]["metrics"]["nll"]["value"]
    page = (tmp_path / "out.html").read_text()
    assert "<html" in page
    assert "hedgerow compare" in page


def test_learn_keeps_to_the_budget_of_a_refined_world(lane_logs, tmp_path):
    words = ("learn", lane_logs / "train.parquet", "-o", tmp_path / "a.world", "--model", "refined", "--budget", 1500)
    done = run(*words, "--set", "rounds=2")
    assert done.returncode == 0, done.stderr
    assert hr.load_world(tmp_path / "a.world").size().elements in (750, 1500)  # half may be left unused
    assert_refused(run(*words[:4], "--model", "voxel", "--budget", 9), "budget: model voxel has no such parameter")


def test_learn_refuses_bad_models_settings_and_targets_and_leaves_nothing(lane_logs, tmp_path):
    log, target = lane_logs / "train.parquet", tmp_path / "site.world"
    assert_refused(run("learn", log, "-o", target, "--model", "voxels"), "voxels", "topdown")
    assert_refused(run("learn", log, "-o", target, "--model", "voxel", "--set", "side=1"), "side", "side_m")
    assert_refused(run("learn", log, "-o", target, "--model", "voxel", "--set", "side_m"), "NAME=VALUE")
    assert_refused(run("learn", log, "-o", target, "--model", "voxel", "--preset", "euler"), "euler", "browning-2012")
    assert_refused(run("learn", tmp_path / "none.parquet", "-o", target), "none.parquet")
    assert_refused(run("learn", log, "-o", tmp_path / "no" / "site.world", "--model", "voxel"), "no")
    assert_refused(run("learn", log), "--output")
    assert list(tmp_path.iterdir()) == []


def test_compare_refuses_what_is_no_world_and_no_log(lane_logs, tmp_path):
    (tmp_path / "empty").mkdir()
    assert_refused(run("compare", lane_logs / "test.parquet", tmp_path / "empty"), "empty")
    assert_refused(run("compare", lane_logs / "test.parquet", tmp_path / "none.world"), "none.world")
    assert_refused(run("compare", lane_logs / "test.parquet"), "--help")


def test_models_lists_all_and_the_parameters_of_one():
    done = run("models")
    assert all(name in done.stdout for name in ("points", "surface", "permeable-surface", "voxel", "topdown", "hybrid"))
    assert "deschaud-2012" in done.stdout
    assert "side_m" in run("models", "voxel").stdout
    assert "preset deschaud-2012: through_voxel=True, tau=2.0" in run("models", "voxel").stdout
    assert_refused(run("models", "pixels"), "pixels", "voxel")


def test_reproduce_lists_its_experiments_and_refuses_others(tmp_path):
    assert "static-targets" in run("reproduce").stdout
    assert_refused(run("reproduce", "moon-landing", "-o", tmp_path / "out"), "moon-landing", "voxel-size")
    assert list(tmp_path.iterdir()) == []


def test_tune_classifier_writes_parameters_that_learn_takes(lane_logs, tmp_path):
    done = run("tune", "classifier", lane_logs / "train.parquet", "-o", tmp_path / "mine.toml", "--generations", "1")
    assert done.returncode == 0, done.stderr
    assert "volume_score" in (tmp_path / "mine.toml").read_text()
    for class_name in ("volume", "surface"):
        row = next(line.split() for line in done.stdout.splitlines() if line.startswith(class_name))
        assert int(row[1].replace(",", "")) > 0 and 0 <= float(row[-1]) <= 1
    tuned = ("--set", f"classifier={tmp_path / 'mine.toml'}")
    done = run("learn", lane_logs / "train.parquet", "-o", tmp_path / "site.world", "--model", "hybrid", *tuned)
    assert done.returncode == 0, done.stderr


def test_tune_takes_the_old_name_of_its_option_too():
    _, bound, _ = app.parse_args(["tune", "classifier", "a.parquet", "-o", "b.toml", "--rounds", "3"])
    assert bound.arguments["generations"] == 3


def test_convert_goes_between_formats_and_says_what_it_wrote(log_file, tmp_path):
    done = run("convert", log_file, tmp_path / "drive.ply")
    assert done.returncode == 0, done.stderr
    read, wrote = done.stdout.splitlines()
    assert read == f"read {log_file}: 1 sweep, 2 beams, 1 return, 1 miss"
    assert wrote == f"wrote {tmp_path / 'drive.ply'}: 1 sweep, 1 beam, 1 return, 0 misses"
    assert done.stderr.startswith(f"hedgerow: warning: {tmp_path / 'drive.ply'}: 1 of 2 beams left out")
    done = run("convert", tmp_path / "drive.ply", tmp_path / "again.log", "--set", "max_range_m=50")
    assert done.returncode == 0, done.stderr
    assert "missing returns: not recovered, every beam has a return" in done.stdout
    assert hr.open_log(tmp_path / "again.log").max_range_m == 50


def test_convert_says_how_many_points_had_no_place(tmp_path):
    sequence = tmp_path / "00"
    (sequence / "velodyne").mkdir(parents=True)
    for number in range(3):
        cloud = np.random.default_rng(number).uniform(-20, 20, (30, 4)).astype("<f4")
        cloud[:number, 0] = np.nan
        cloud.tofile(sequence / "velodyne" / f"{number:06d}.bin")
    (sequence / "poses.txt").write_text("1 0 0 0 0 1 0 0 0 0 1 0\n" * 3)
    (sequence / "times.txt").write_text("0\n0.1\n0.2\n")
    (sequence / "calib.txt").write_text("Tr: 0 -1 0 0 0 0 -1 0 1 0 0 0\n")
    done = run("convert", sequence, tmp_path / "x.parquet")
    assert done.returncode == 0, done.stderr
    assert (
        "3 sweeps, 87 beams, 87 returns, 0 misses\nleft out: 3 points without a finite place, or out of range\n"
        in done.stdout
    )


def test_convert_lists_the_formats():
    done = run("convert", "--formats")
    assert done.returncode == 0
    for word in ("parquet", "kitti-raw", "las", "laspy", "trajectory", "pip install 'hedgerow[formats]'"):
        assert word in done.stdout


def test_convert_refuses_what_it_cannot_do(log_file, tmp_path):
    assert_refused(run("convert", log_file), "expected the log to read and the file or folder to write")
    assert_refused(run("convert", log_file, tmp_path / "x.xyz"), "unknown kind of file, suffix .xyz")
    assert_refused(run("convert", log_file, tmp_path / "x.ply", "--to", "pdf"), "there is no such format")
    assert_refused(run("convert", log_file, tmp_path / "x", "--to", "kitti-raw"), "kitti-raw cannot be written")
    assert_refused(run("convert", log_file, tmp_path / "x.ply", "--sweeps", "a:b"), "--sweeps a:b: expected FIRST:LAST")
    assert_refused(run("convert", log_file, tmp_path / "x.ply", "--sweeps", "5:9"), "none of the sweeps asked for")
    assert_refused(run("convert", log_file, tmp_path / "x.ply", "-s", "colour=red"), "there is no such option")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["drive.parquet"]
