# SPDX-License-Identifier: Apache-2.0
"""The report says what each simulation is, how to learn it again, and the main numbers in words."""

import shlex
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.cli.options import parse_settings
from hedgerow.metrics import compare
from hedgerow.report.page import headline, in_short, learn_command, what_it_is


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    scene = hr.Scene()
    corners = [[9, -40, -20], [9, 40, -20], [9, 40, 20], [9, -40, 20]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], permeability=0.2, noise=hr.SurfaceNoise(0.02, 0.0))
    sensor = hr.Sensor.named("vlp-16")
    path = tmp_path_factory.mktemp("logs") / "a wall.parquet"
    hr.write_log(hr.SceneWorld(scene).fire(sensor.sweep(), seed=1, sensor=sensor), path)
    return path


def test_a_learned_world_tells_its_model_log_and_version(log_file):
    world = hr.learn(log_file, "voxel")
    n_beams = f"{hr.open_log(log_file).n_beams:,}"
    assert what_it_is(world) == (
        f"a voxel world, learned from a wall.parquet ({n_beams} beams of vlp-16) by hedgerow {hr.__version__}"
    )


def test_the_command_names_what_differs_from_the_defaults_and_learns_the_same_world(log_file):
    world = hr.learn(log_file, "voxel", side_m=0.7)
    words = shlex.split(learn_command("site", world))
    assert words[:7] == ["hedgerow", "learn", "a wall.parquet", "-o", "site.world", "--model", "voxel"]
    assert words[7:] == ["--set", "side_m=0.7"]
    again = hr.learn(log_file, words[6], **parse_settings(words[8:]))
    assert again.header == world.header
    command = learn_command("site", hr.learn(log_file, "voxel"))
    assert command is not None and command.endswith("--model voxel")


def test_nested_parameters_come_back_through_the_command(log_file):
    world = hr.learn(log_file, "hybrid", topdown={"tau": 3.0})
    words = shlex.split(learn_command("site.world", world))
    assert words[4] == "site.world" and words[7] == "--set" and len(words) == 9
    assert hr.learn(log_file, "hybrid", **parse_settings(words[8:])).header == world.header


def test_parameters_that_a_model_no_longer_has_are_left_out_of_the_command(log_file):
    world = hr.learn(log_file, "hybrid", topdown={"tau": 3.0})
    old = world.header.parameters | {"gone": 1, "topdown": world.header.parameters["topdown"] | {"lost": 2}}
    source = SimpleNamespace(header=replace(world.header, parameters=old))
    command = learn_command("site", source)
    assert command is not None and command.endswith("--model hybrid --set topdown.tau=3.0")


def test_what_was_not_learned_from_a_file_has_no_command(log_file):
    log = hr.read_log(log_file)
    assert learn_command("x", hr.learn(log, "voxel")) is None
    assert learn_command("x", log) is None
    assert what_it_is(hr.learn(log, "voxel")).startswith("a voxel world, learned from a log in memory (")


def test_sentences_hold_the_numbers_of_the_table():
    directions = [[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, -1.0, 0]]
    real = hr.Log.from_arrays(origins=(0, 0, 0), directions=directions, ranges=[5, 5, np.inf, np.inf], max_range_m=50)
    simulated = real.with_returns(hr.Returns.from_arrays(ranges=[5.25, np.inf, np.inf, 7]))
    scores = compare(real, simulated)
    text = in_short(scores)
    assert text.startswith("50.0 % of the real returns are returns in simulation too, and 50.0 % of the beams without")
    error_m = scores["beam_error_median_m"]
    assert error_m is not None and error_m == pytest.approx(0.25, abs=0.001)
    assert f"half end within {100 * error_m:.2f} cm" in text and text.endswith(".")
    all_hit = real.with_returns(hr.Returns.from_arrays(ranges=[5.0] * 4))
    none_hit = real.with_returns(hr.Returns.from_arrays(ranges=[np.inf] * 4))
    assert in_short(compare(all_hit, none_hit)) == "0.0 % of the real returns are returns in simulation too."


@pytest.mark.parametrize(
    ("names", "title"),
    [
        ("a", "a against reality"),
        ("ab", "a and b against reality"),
        ("abc", "a, b and c against reality"),
        ("abcde", "a, b and 3 more against reality"),
    ],
)
def test_the_headline_names_what_is_compared(names, title):
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=[[1.0, 0, 0]], ranges=[5], max_range_m=50)
    assert headline(compare(log, dict.fromkeys(names, log))) == title
