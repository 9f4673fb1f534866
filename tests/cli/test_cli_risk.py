# SPDX-License-Identifier: Apache-2.0
"""hedgerow risk: what it prints and writes, its gate, and what it refuses."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_runner import assert_refused, run

import hedgerow as hr
from hedgerow.log import Log
from hedgerow.risk.table import read_table

N_SWEEPS = 8
PROGRAM = """
import time
from pathlib import Path
from hedgerow.apps import choice, number, program, ratio

@program(ratio("error", "n", "m", "mean range, nothing more"), x=number(0, 1), kind=choice("a", "b"))
def mean_range(log, parameters, truth):
    range_m = log.returns.first_m
    return {"error": float(range_m[range_m < 50].sum()) * (1 + parameters["x"]), "n": float((range_m < 50).sum())}

@program(x=number(0, 1))
def slow(log, parameters, truth):
    time.sleep(0.2)
    return parameters["x"]
"""


def plane_log(offset_m: float = 0.0, n_sweeps: int = N_SWEEPS) -> Log:
    """A level plane seen from 2 m above, sweeps half a metre apart; ranges longer by an offset."""
    sweep = np.repeat(np.arange(n_sweeps), 200)
    angle = np.tile(np.arange(200) / 200 * 2 * np.pi, n_sweeps)
    down = np.tile(np.repeat([0.1, 0.2, 0.4, 0.8], 50), n_sweeps)
    direction = np.stack([np.cos(angle), np.sin(angle), -down], axis=1)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return Log.from_arrays(
        origins=np.stack([0.5 * sweep, 0 * sweep, 0 * sweep + 2.0], axis=1),
        directions=direction,
        ranges=-2 / direction[:, 2] + offset_m,
        times=sweep * 0.1 + angle / 100,
        sweeps=sweep,
        max_range_m=60,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("risk")
    hr.write_log(plane_log(), folder / "real.parquet")
    hr.write_log(plane_log(0.5), folder / "far.parquet")
    hr.write_log(plane_log(0.05), folder / "near.parquet")
    (folder / "mine.py").write_text(PROGRAM, encoding="utf-8")
    return folder


def risk(folder, *words, program="mine:mean_range", scenes=2):
    return run("risk", program, "real.parquet", *words, "--scene-sweeps", scenes, "--settings", 6, cwd=folder)


def test_a_known_bias_is_printed_written_and_drawn(folder):
    done = risk(folder, "far.parquet", "near.parquet", "-o", "a.parquet", "--json", "a.json", "--page", "a.html")
    assert done.returncode == 0, done.stderr
    scores = json.loads((folder / "a.json").read_text())["scores"]
    mean = 1 + np.mean([each["x"] for each in read_table(folder / "a.parquet").settings[""]])
    assert scores["far"]["risk"] == pytest.approx(0.5 * mean, rel=1e-3)  # ranges are float32
    assert scores["near"]["risk"] == pytest.approx(0.05 * mean, rel=1e-3)
    assert "near has a lower risk than far: decided" in done.stdout
    assert "mean_range: J is J [m], mean range, nothing more; 6 settings, 4 scenes, 1 seeds" in done.stdout
    assert "note: far: ran under one seed" in done.stdout
    page = (folder / "a.html").read_text()
    assert "mean_range: far, near against reality" in page
    assert page.count("<figure>") == 3
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_a_second_run_only_adds_what_is_missing(folder):
    assert risk(folder, "far.parquet", "-o", "b.parquet").returncode == 0
    done = risk(folder, "far.parquet", "near.parquet", "-o", "b.parquet", "--develop", "random", "--steps", 3)
    assert done.returncode == 0, done.stderr
    assert "wrote b.parquet: 120 runs" in done.stdout  # 6 settings on 3 sources, twice 3 steps on 2, all on 4 scenes
    assert "developed on far, 3 steps" in done.stdout


def test_the_gate_is_an_exit_code(folder):
    broken = risk(folder, "far.parquet", "--max-risk", 0.1, "--max-regret", 5)
    assert broken.returncode == 1, broken.stderr
    assert "gate: far: risk" in broken.stdout
    assert "regret" not in broken.stdout.partition("gate: ")[2]


def test_worse_than_last_time_is_exit_code_1(folder):
    assert risk(folder, "near.parquet", "-o", "last.parquet").returncode == 0
    worse = risk(folder, "far.parquet", "--not-worse-than", "last.parquet")
    assert worse.returncode == 1
    assert "above that of last time" in worse.stdout
    same = risk(folder, "near.parquet", "--not-worse-than", "last.parquet", "--max-risk", 5, "--max-regret", 1)
    assert same.returncode == 0
    assert "gate: passed" in same.stdout


def test_a_world_is_fired_under_several_seeds(folder, tmp_path):
    from small_scenes import small_scene

    small_scene(folder / "yard.toml")
    done = risk(folder, "yard.toml", "--json", "w.json", "--seeds", 2, program="segmentation")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "w.json").read_text())["scores"]["yard"]["floor"]["how"].startswith(
        "itself under another"
    )


def test_metrics_of_observations_stand_beside_risk(folder):
    done = risk(folder, "far.parquet", "near.parquet", "--observe")
    assert done.returncode == 0, done.stderr
    assert "Beam error, median" in done.stdout
    assert "metrics that put the simulators in the order of their risk (near, far): " in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("missing.toml", "real.parquet", "far.parquet"), ("missing.toml", "no such app file")),
        (("mine:mean_range", "real.parquet", "missing.world"), ("missing.world", "no such file")),
        (("mine:mean_range", "real.parquet", "far.parquet", "--set", "y=1"), ("y", "no such parameter", "x, kind")),
        (("mine:mean_range", "real.parquet", "far.parquet", "--scene-sweeps", 99), ("there are 8 sweeps",)),
        (("mine:mean_range", "real.parquet", "far.parquet", "-o", "no/x.parquet"), ("no/x.parquet", "does not exist")),
        (("mine:mean_range", "real.parquet", "far.parquet", "--not-worse-than", "real.parquet"), ("no table of risk",)),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(folder, words, said):
    assert_refused(run("risk", *words, cwd=folder), *said)


def test_a_simulated_log_of_other_beams_is_refused(folder):
    log = plane_log()
    turned = Log.from_arrays(
        origins=log.beams.origin_m + np.array([0, 0, 0.1]),
        directions=log.beams.direction,
        ranges=log.returns.first_m,
        times=log.beams.time_ns,
        sweeps=log.beams.sweep,
        max_range_m=60,
    )
    hr.write_log(turned, folder / "turned.parquet")
    assert_refused(risk(folder, "turned.parquet"), "turned: sweep 0, beam 0 has origin_m", "the same beams")
    hr.write_log(plane_log(n_sweeps=3), folder / "short.parquet")
    assert_refused(risk(folder, "short.parquet"), "short: has no sweep 3")


def test_one_scene_has_no_interval(folder):
    done = risk(folder, "far.parquet", scenes=N_SWEEPS)
    assert done.returncode == 0, done.stderr
    assert "note: one scene alone gives no interval" in done.stdout


def test_ctrl_c_keeps_what_is_done(folder):
    words = ["risk", "mine:slow", "real.parquet", "far.parquet", "-o", "slow.parquet", "--scene-sweeps", "2"]
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *words]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(8)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip().endswith("interrupted")
    if (folder / "slow.parquet").exists():  # on a busy machine it may not have begun
        assert read_table(folder / "slow.parquet").n_runs > 0
