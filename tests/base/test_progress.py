# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: the running stage is always in sight, and nothing is shown where nobody watches."""

import io
import re
from contextlib import contextmanager

import numpy as np
import pytest
from rich.console import Console

import hedgerow as hr
from hedgerow.base.progress import counted, late_step_bar, of_beams, one, step_bar


def shown(n_stages, terminal=True):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=60, height=8)
    live = ""
    with step_bar(console) as done:
        for number in range(n_stages):
            for amount in (0, 5, 10):
                done(f"pass {number} of {n_stages}, held-out -log L [{number}.5], and so on and so forth", amount, 10)
            live = out.getvalue()
    return live, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())


def test_every_stage_leaves_one_line_and_the_last_is_in_sight():
    live, text = shown(30)
    lines = [line.strip() for line in text.replace("\r", "\n").splitlines()]
    over = [line for line in lines if re.match(r"\d+\.\d s ", line)]
    assert [re.findall(r"pass (\d+)", line)[:1] for line in over] == [[str(number)] for number in range(30)]
    assert "[29.5]" in text  # not taken for markup
    assert " 0 % " in text  # a long name does not cut it off
    assert "pass 29" in live  # though the window has eight lines


def test_nothing_is_shown_where_nobody_watches():
    assert shown(3, terminal=False)[1] == ""


def test_progress_counts_beams_after_each_sweep():
    events = []
    for sweep in counted(["aaa", "", "bb"], events.append):
        events.append(sweep)
    assert events == ["aaa", 3, "", 3, "bb", 5]


def test_progress_counts_things_and_the_beams_that_they_stand_for():
    events = []
    assert list(counted("abc", of_beams(events.append, 100, 3), one)) == ["a", "b", "c"]
    assert events == [33, 66, 100]


def test_nobody_has_to_watch():
    assert of_beams(None, 100, 3) is None
    assert list(counted(["a"], None)) == ["a"]


@pytest.mark.parametrize(("after_s", "shown"), [(0.0, True), (60.0, False)])
def test_a_late_bar_shows_only_what_takes_long(after_s, shown):
    out = io.StringIO()
    with late_step_bar(Console(force_terminal=True, width=80, file=out), after_s=after_s) as done:
        done("summing up", 5, 10)
        done("counting", 1, 10)
    assert ("summing up" in out.getvalue()) == shown


def test_learning_shows_a_bar_to_those_who_call_it_and_not_to_those_who_give_their_own(monkeypatch):
    told = []

    @contextmanager
    def bar():
        yield lambda *step: told.append(step)

    monkeypatch.setattr("hedgerow.models.registry.late_step_bar", bar)
    directions = np.tile([1.0, 0.0, 0.0], (60, 1))
    log = hr.Log.from_arrays(
        origins=np.zeros((60, 3)), directions=directions, ranges=np.linspace(5, 5.2, 60), max_range_m=9
    )
    hr.learn(log, "voxel")
    assert ("summing up voxels", 60, 60) in told
    told.clear()
    hr.learn(log, "voxel", progress=lambda *step: None)
    assert not told
