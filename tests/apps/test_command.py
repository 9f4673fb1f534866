# SPDX-License-Identifier: Apache-2.0
"""Programs as commands: what they are given, what is read of them, and every way in which they fail."""

import os
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.apps import open_app
from hedgerow.apps.app import run
from hedgerow.apps.command import open_command
from hedgerow.apps.drive import DriveTruth, sweep_poses
from hedgerow.errors import FileError
from hedgerow.log import Log

PROGRAM = """
import json, sys, time
log, out, what, x = sys.argv[1:5]
if what == "crash":
    sys.exit("it broke")
if what == "signal":
    import os; os.kill(os.getpid(), 9)
if what == "hang":
    import subprocess
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open(sys.argv[5], "w").write(str(child.pid)); time.sleep(600)
texts = {"J": json.dumps({"J": float(x), "extra": 1}), "number": x, "nan": '{"J": NaN}', "inf": '{"J": Infinity}',
         "broken": '{"J": ', "empty": "", "other": '{"K": 1}', "text": '{"J": "low"}', "list": "[1]",
         "bool": '{"J": true}',
         "sums": json.dumps({"tp": 3, "fp": 1, "fn": 0, "path": 0}), "deep": "[" * 100000}
if what in texts:
    open(out, "w").write(texts[what])
"""
TOML = """
command = "{{python}} program.py {{log}} {{out}} {{what}} {{x}} {pid}"
log_format = "{log_format}"
timeout_s = {timeout_s}
{more}
[parameters]
what = {{ kind = "choice", choices = {choices} }}
x = {{ kind = "float", low = -10, high = 10 }}
"""
CHOICES = ["J", "number", "nan", "inf", "broken", "empty", "other", "text", "list", "bool", "sums", "deep"]
CHOICES += ["crash", "signal", "hang", "nothing"]


def make_app(folder: Path, *, timeout_s: float = 60, more: str = "", log_format: str = "parquet") -> Any:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    path = folder / "app.toml"
    text = TOML.format(pid=folder / "pid", log_format=log_format, timeout_s=timeout_s, more=more, choices=CHOICES)
    path.write_text(text, encoding="utf-8")
    return open_app(str(path))


def drive_log(n_sweeps: int = 4) -> Log:
    """Beams down at a plane, sweeps 0.1 s and 1 m apart."""
    sweep = np.repeat(np.arange(n_sweeps), 50)
    angle = np.tile(np.arange(50) / 50 * 2 * np.pi, n_sweeps)
    direction = np.stack([np.cos(angle), np.sin(angle), np.full(len(angle), -0.5)], axis=1)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return Log.from_arrays(
        origins=np.stack([sweep, 0 * sweep, 0 * sweep + 2.0], axis=1),
        directions=direction,
        ranges=-2 / direction[:, 2],
        times=sweep * 0.1 + angle / 100,
        sweeps=sweep,
        max_range_m=50,
    )


def outcome(app, what: str, x: float = 1.5):
    return run(app, drive_log(), {"what": what, "x": x}, None)


def test_j_is_read_from_json(tmp_path):
    app = make_app(tmp_path)
    assert outcome(app, "J").sums == {"J": 1.5, "n": 1.0}
    assert outcome(app, "number", -2.25).sums == {"J": -2.25, "n": 1.0}


def test_sums_are_read_from_json_and_reduced_by_the_formula(tmp_path):
    app = make_app(tmp_path, more='objective = "-2 * tp / (2 * tp + fp + fn)"')
    found = outcome(app, "sums")
    values = {name: np.array(each) for name, each in found.sums.items()}
    assert app.objectives["J"].reduce(values) == pytest.approx(-6 / 7)
    assert outcome(app, "other").failure == "broken output: the JSON has no fn, fp, tp"


@pytest.mark.parametrize(
    ("what", "failure"),
    [
        ("crash", "crash: exit code 1; it broke"),
        ("signal", "crash: ended by signal 9"),
        ("nothing", "no output: the command ended well, but wrote nothing to {out}"),
        ("broken", "broken output: no JSON"),
        ("empty", "broken output: no JSON"),
        ("deep", "broken output: no JSON"),
        ("other", "broken output: the JSON has no J"),
        ("text", "broken output: expected sums by name or a number, found str"),
        ("bool", "broken output: expected sums by name or a number, found bool"),
        ("list", "broken output: expected sums by name or a number, found list"),
        ("nan", "not finite: J is nan"),
        ("inf", "not finite: J is inf"),
    ],
)
def test_whatever_a_command_does_wrong_is_an_outcome(tmp_path, what, failure):
    assert outcome(make_app(tmp_path), what).failure.startswith(failure)


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_a_command_that_hangs_ends_with_all_that_it_started(tmp_path):
    start_s = time.monotonic()
    assert outcome(make_app(tmp_path, timeout_s=3), "hang").failure == "time-out: after 3 s"
    assert time.monotonic() - start_s < 60
    child = int((tmp_path / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split(")")[1]:
            return
        time.sleep(0.05)
    pytest.fail("the child of the command still runs")


def test_a_command_that_is_not_there_is_a_crash(tmp_path):
    (tmp_path / "app.toml").write_text(
        'command = "no-such-program {log} {out}"\nlog_format = "parquet"', encoding="utf-8"
    )
    assert run(open_command(tmp_path / "app.toml"), drive_log(), {}, None).failure.startswith("crash: no-such-program")


def test_no_shell_runs_the_command(tmp_path):
    text = 'command = "{python} -c pass {log} {out} ; touch touched $(touch touched)"\nlog_format = "parquet"'
    (tmp_path / "app.toml").write_text(text, encoding="utf-8")
    assert run(open_command(tmp_path / "app.toml"), drive_log(), {}, None).failure.startswith("no output")
    assert not (tmp_path / "touched").exists()


COPY = """
import sys
from pathlib import Path
from typing import Any
log, out = Path(sys.argv[1]), Path(sys.argv[2])
out.write_text((log / "poses.tum").read_text())
"""


def test_a_trajectory_is_compared_with_the_true_one(tmp_path):
    (tmp_path / "copy.py").write_text(COPY, encoding="utf-8")
    text = 'command = "{python} copy.py {log} {out}"\nlog_format = "pcd-folder"\nresult = "tum"'
    (tmp_path / "app.toml").write_text(text, encoding="utf-8")
    app = open_command(tmp_path / "app.toml")
    log = drive_log()
    found = run(app, log, {}, DriveTruth(sweep_poses(log)))
    assert found.sums["poses"] == 4
    assert found.sums["relative_m"] == pytest.approx(0, abs=1e-9)
    assert list(app.objectives) == ["relative_m", "relative_rad", "absolute_m"]


@pytest.mark.parametrize(
    ("content", "failure"),
    [
        ("0 1 2", "broken output"),
        ("", "broken output"),
        ("0 nan 0 0 0 0 0 1\n", "not finite"),
        ("x" * 100, "broken output"),
    ],
)
def test_a_trajectory_that_cannot_be_read_is_an_outcome(tmp_path, content, failure):
    (tmp_path / "write.py").write_text(f"import sys; open(sys.argv[2], 'w').write({content!r})", encoding="utf-8")
    text = 'command = "{python} write.py {log} {out}"\nlog_format = "parquet"\nresult = "tum"'
    (tmp_path / "app.toml").write_text(text, encoding="utf-8")
    log = drive_log()
    assert run(open_command(tmp_path / "app.toml"), log, {}, DriveTruth(sweep_poses(log))).failure.startswith(failure)


def test_the_log_is_written_once_for_all_settings(tmp_path):
    app = make_app(tmp_path)
    log = drive_log()
    assert app._write(log, None) == app._write(log, None)
    assert app._write(drive_log(), None) != app._write(log, None)
    assert pickle.loads(pickle.dumps(app)).name == "app"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('command = "slam {log}"', "command: has no {out}"),
        ('command = "slam {log} {out} {voxel}"', "voxel: no such parameter"),
        ('command = "slam {log} {out} \'"', "command: cannot be split"),
        ('command = "slam {log} {out}"\nlog_format = "pcap"', "log_format: expected one of parquet, kitti"),
        ('command = "slam {log} {out}"\ntimeout_s = 0', "timeout_s"),
        ('command = "slam {log} {out}"\nresult = "tum"\nobjective = "a"', "objective: only for JSON"),
        (
            'command = "slam {log} {out}"\n[parameters]\nx = {kind="float", low=1, high=0}',
            "parameters.x.low: 1 is above",
        ),
        ('command = "slam {log} {out}"\n[parameters]\nx = {kind="float", low=0, high=1}', "has no {x}"),
        ('command = "slam {log} {out}"\nlogformat = "kitti"', "did you mean log_format"),
    ],
)
def test_an_app_file_that_cannot_be_is_refused(tmp_path, text, said):
    path = tmp_path / "app.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError) as refused:
        open_command(path)
    assert str(refused.value).startswith(str(path))
    assert said in str(refused.value)
