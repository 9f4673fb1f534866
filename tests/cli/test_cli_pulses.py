# SPDX-License-Identifier: Apache-2.0
"""Options of firing that fire, serve and view share, and errors of the reported pose."""

import numpy as np
import pytest
import tomli_w
from small_scenes import small_scene

import hedgerow as hr
from hedgerow.cli import app
from hedgerow.cli.options import NOMINAL, PulseOptions, parse_pose_errors
from hedgerow.errors import HedgerowError
from hedgerow.inputs import open_place
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.sensor.config import Detection
from hedgerow.sensor.drive import Aim
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians


@pytest.fixture
def scene(tmp_path):
    return small_scene(tmp_path / "own.toml")


@pytest.fixture
def learned(tmp_path):
    middle = np.array([[8.0, y, 2.0] for y in np.linspace(-4, 4, 40)])
    world = LearnedWorld(Gaussians.plain(middle, np.tile(np.eye(3) * 0.04, (40, 1, 1))), kind="voxel")
    world.save(tmp_path / "wall.world")
    hr.write_trajectory(hr.Trajectory.line((0, 0, 2), (2, 0, 2), 4.0), tmp_path / "poses.tum")
    return tmp_path / "wall.world"


def fire(scene, output, *words):
    with pytest.raises(SystemExit) as ended:
        app(["fire", str(scene), "-o", str(output), "--sweeps", "1", *words], exit_on_error=False, print_error=False)
    assert ended.value.code == 0
    return hr.read_log(output)


def refusal(*words):
    with pytest.raises(HedgerowError) as caught:
        app(list(map(str, words)), exit_on_error=False, print_error=False)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_option_reaches_the_simulation(tmp_path, scene):
    words = ["--sensor", "os1-128", "--seed", "3"]  # round spots, as the circle of the paper wants, and dual returns
    more = ["--sampling", "paper", "--cutoff-m", "0.3", "--dual", "--encoder", "uniform", "--cone"]
    log = fire(scene, tmp_path / "out.parquet", *words, *more)
    place, sensor = open_place(scene, "fire"), hr.Sensor.named("os1-128")
    settings = BeamSettings(sampling="paper", cutoff_m=0.3, mode="strongest+last")
    world, trajectories, _ = place.open(sensor, settings=settings)
    aim = Aim("uniform", cone=True, seed=3)
    expected = hr.simulate(world, sensor, trajectories["drive"], seed=3, sweeps=1, aim=aim).sweep(0)
    assert log.returns.n_per_pulse == 2
    assert log.returns.equal(expected.returns) and log.beams.equal(expected.beams)
    assert log.metadata["aim"] == {"encoder": "uniform", "cone": True, "seed": 3}
    plain = fire(scene, tmp_path / "plain.parquet", *words)
    assert log.beams.equal(plain.beams)  # as the log of a real sensor: nominal


def test_nothing_said_is_nothing_set():
    assert NOMINAL.beam_settings() is None and NOMINAL.aim(3) is None
    assert PulseOptions(sub_rays=5, mode="last").beam_settings() == BeamSettings(sub_rays=5, mode="last")


def test_encoder_and_cone_are_for_learned_worlds_too(tmp_path, learned):
    words = ["--sensor", "vlp-16", "--trajectory", str(tmp_path / "poses.tum")]
    plain = fire(learned, tmp_path / "plain.parquet", *words)
    aimed = fire(learned, tmp_path / "aimed.parquet", *words, "--encoder", "uniform", "--cone")
    assert plain.returns.hit.any() and plain.beams.equal(aimed.beams)
    assert not np.array_equal(plain.returns.range_m, aimed.returns.range_m)
    for more in (["--sampling", "paper"], ["--cutoff-m", "1"], ["--dual"], ["--sub-rays", "3"]):
        said = refusal("fire", learned, "-o", tmp_path / "x.parquet", *words, *more)
        assert "only for scenes" in said and "wall.world is a learned world" in said
    assert not (tmp_path / "x.parquet").exists()


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["--sampling", "random"], "sampling: input should be 'fixed', 'stratified' or 'paper'"),
        (["--sampling", "paper", "--sub-rays", "5"], "sampling: Goodin 2018 gives numbers for 9 sub-rays"),
        (["--cutoff-m", "-1"], "cutoff_m: input should be greater than or equal to 0"),
        (["--encoder", "loose"], "encoder: expected 'exact', 'rounded' or 'uniform'"),
        (["--dual", "--mode", "first"], "--dual: is --mode strongest+last; leave out --mode first"),
        (["--dual", "--sensor", "lms-291"], "--dual: lms-291 has no dual returns (its modes: first)"),
        (["--pose-errors", "browning"], "browning is no preset"),
        (["--pose-errors", "heading=1"], "heading: --pose-errors has no such parameter; it has position_sigma_m"),
        (["--sway-deg", "-1"], "tilt_sigma_deg: input should be greater than or equal to 0"),
    ],
)
def test_fire_refuses_in_one_sentence_and_writes_nothing(tmp_path, scene, more, part):
    assert part in refusal("fire", scene, "-o", tmp_path / "out.parquet", *more)
    assert not (tmp_path / "out.parquet").exists()


def test_view_refuses_what_is_not_fired_there(tmp_path, scene, learned):
    log = tmp_path / "out.parquet"
    fire(scene, log)
    assert "beams of a log are fired as it has them" in refusal("view", log, scene, "--port", "0", "--cone")
    assert "only for scenes" in refusal("view", log, "--port", "0", "--sub-rays", "3")
    small_scene(scene, "lms-291")
    assert "has no dual returns" in refusal("view", scene, "--port", "0", "--dual")


def test_pose_errors_are_presets_files_and_single_values_in_turn(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("tilt_sigma_deg = 1.5\nseed = 8\n")
    assert parse_pose_errors(None, 3) is None
    assert parse_pose_errors(["browning-2012"], 3) == PoseErrors(
        position_sigma_m=0.02, heading_sigma_deg=0.1, tilt_sigma_deg=0.02, seed=3
    )
    mixed = parse_pose_errors(["browning-2012", str(path), "mount_rpy_deg=[0, 0, 1]"], 3)
    assert mixed == PoseErrors(
        position_sigma_m=0.02, heading_sigma_deg=0.1, tilt_sigma_deg=1.5, mount_rpy_deg=(0, 0, 1), seed=8
    )


def test_fire_reports_poses_with_errors_and_keeps_ranges(tmp_path, scene):
    plain = fire(scene, tmp_path / "plain.parquet")
    wrong = fire(scene, tmp_path / "wrong.parquet", "--pose-errors", "browning-2012")
    assert np.array_equal(plain.returns.range_m, wrong.returns.range_m)
    moved_m = np.linalg.norm(wrong.beams.origin_m - plain.beams.origin_m, axis=1)
    assert 0 < moved_m.max() < 0.02 * np.sqrt(3) * 5
    assert wrong.metadata["pose_errors"]["heading_sigma_deg"] == 0.1
    # The folder of poses beside a cloud is the reported one: read back, its points are those of the log.
    words = ["--pose-errors", "browning-2012", "--to", "pcd-folder"]
    folder = fire(scene, tmp_path / "clouds", *words)
    assert np.abs(np.sort(folder.points()[:, 0]) - np.sort(wrong.points()[:, 0])).max() < 2e-3


def test_a_swaying_sensor_is_known_to_sway(tmp_path, scene):
    plain = fire(scene, tmp_path / "plain.parquet")
    sways = fire(scene, tmp_path / "sways.parquet", "--sway-deg", "2")
    assert not np.array_equal(plain.returns.range_m, sways.returns.range_m)
    ground = sways.points()[:, 2]
    assert np.abs(np.percentile(ground, 20)) < 0.1  # the points still lie on the ground


def test_a_sensor_that_detects_loses_what_is_dim(tmp_path, scene):
    mine = hr.Sensor.named("vlp-16").config
    weak = mine.model_copy(update={"signal": mine.signal.model_copy(update={"detection": Detection(range_m=6.0)})})
    (tmp_path / "weak.toml").write_text(tomli_w.dumps(weak.model_dump(mode="json", exclude_none=True)))
    words = ["--sensor", str(tmp_path / "weak.toml")]
    ideal, detected = (
        fire(scene, tmp_path / f"{name}.parquet", *words, "--signal", name) for name in ("ideal", "sensor")
    )
    plain = fire(scene, tmp_path / "plain.parquet", *words)
    assert plain.returns.equal(ideal.returns)  # the default
    n_ideal, n_detected = (int(np.isfinite(each.returns.first_m).sum()) for each in (ideal, detected))
    assert 0 < n_detected < 0.9 * n_ideal
    assert "signal" in refusal("fire", scene, "--sensor", "vlp-16", "--signal", "loud", "-o", tmp_path / "no.parquet")
    assert not (tmp_path / "no.parquet").exists()
