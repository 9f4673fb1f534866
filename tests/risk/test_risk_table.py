# SPDX-License-Identifier: Apache-2.0
"""The table of runs: read back, resumed, extended, and the same for any number of processes."""

import pytest
from fake_programs import Quadratic, measured, real, source

from hedgerow.apps import Space, choice, number
from hedgerow.errors import FileError, InputError
from hedgerow.risk.measure import measure, open_table
from hedgerow.risk.run import evaluate
from hedgerow.risk.sources import FunctionSource
from hedgerow.risk.table import DRAWN, read_table


def but_times(table):
    return table.to_arrow().drop_columns(["seconds"])


def sources(**offset):
    noise = {"scene_noise": 0.1, "run_noise": 0.1}
    return [
        real(4, **noise, **offset),
        source("sim", 4, failing=0.2, **noise, **offset),
        source("log", 4, is_random=False),
    ]


def test_a_table_reads_back_as_it_was(tmp_path):
    path = tmp_path / "risk.parquet"
    table = measured(*sources(), seeds=(3, 1), output=path)
    again = read_table(path)
    assert again.to_arrow().equals(table.to_arrow())
    assert again.header.to_json() == table.header.to_json()
    assert again.settings == table.settings
    assert again.n_runs == 20 * 4 * (1 + 2 + 1)
    rows = again.to_arrow().to_pylist()
    failed = [row for row in rows if row["failure"]]
    assert failed and all(row["sum.J"] is None and row["failure"] == "lost: here" for row in failed)
    assert all(row["parameter.x"] < 0.2 and row["source"] == "sim" for row in failed)


@pytest.mark.parametrize("stop", [0, 7, 19])
def test_an_interrupted_table_that_is_resumed_equals_an_uninterrupted_one(tmp_path, stop):
    whole = measured(*sources(), seeds=(0, 1))
    path = tmp_path / "risk.parquet"
    at = Quadratic().space.sample(20)[stop]["x"]
    for crash_at, expected in ((at, KeyboardInterrupt), (None, None)):
        given = [sources()[0], sources(crash_at=crash_at)[1], sources()[2]]
        if expected is None:
            measured(*given, seeds=(0, 1), output=path)
        else:
            with pytest.raises(expected):
                measured(*given, seeds=(0, 1), output=path)
            assert 0 < read_table(path).n_runs < whole.n_runs
    assert but_times(read_table(path)).equals(but_times(whole))


def test_more_settings_seeds_and_sources_are_added_to_a_table(tmp_path):
    path = tmp_path / "risk.parquet"
    measured(*sources()[:2], settings=8, seeds=(0,), output=path)
    measured(*sources(), settings=20, seeds=(0, 1), output=path)
    assert but_times(read_table(path)).equals(but_times(measured(*sources(), settings=20, seeds=(0, 1))))
    measured(*sources(), settings=8, seeds=(0,), output=path)
    assert len(read_table(path).settings[DRAWN]) == 20


def test_nothing_that_was_run_is_run_again(tmp_path):
    path = tmp_path / "risk.parquet"
    measured(*sources(), output=path)

    def refuse(scene, seed):
        raise AssertionError("made again")

    again = [FunctionSource(each.name, each.scenes, refuse, each.role, each.is_random) for each in sources()]
    measured(*again, output=path)


@pytest.mark.parametrize("jobs", [3])
def test_the_table_is_the_same_for_any_number_of_processes(tmp_path, jobs):
    path = tmp_path / "risk.parquet"
    seen = []
    several = measure(Quadratic(), sources(), settings=20, seeds=(0, 1), jobs=jobs, output=path, progress=seen.append)
    assert but_times(several).equals(but_times(measured(*sources(), seeds=(0, 1))))
    assert seen[-1] == several.n_runs
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "the seed of the settings was 0, and is 1 now"),
        ({"sampler": "sobol"}, "the sampler was uniform"),
        ({"fixed": {"k": 2}}, "the values of --set"),
    ],
)
def test_runs_of_another_plan_are_not_mixed_in(tmp_path, change, said):
    path = tmp_path / "risk.parquet"
    measured(*sources(), output=path)
    before = path.read_bytes()
    with pytest.raises(InputError) as refused:
        measured(*sources(), output=path, **change)
    assert said in str(refused.value)
    assert path.read_bytes() == before


def test_a_source_that_changed_is_not_mixed_in(tmp_path):
    path = tmp_path / "risk.parquet"
    measured(*sources(), output=path)
    sim = sources()[1]
    changed = FunctionSource(sim.name, sim.scenes, sim.make, identity="other")
    with pytest.raises(InputError, match="the source sim had other content"):
        measured(sources()[0], changed, output=path)
    other = Quadratic()
    other.space = Space.of(x=number(0, 2), k=other.space.parameters["k"])
    with pytest.raises(InputError, match="the parameters was"):
        measure(other, sources(), output=path)


def test_choices_of_any_type_read_back(tmp_path):
    app = Quadratic()
    app.space = Space.of(x=number(0, 1), kind=choice("a", 2, True, 0.5))
    path = tmp_path / "risk.parquet"
    table = measure(app, [real(), source("sim")], settings=20, output=path)
    assert read_table(path).settings == table.settings
    assert {type(each["kind"]) for each in table.settings[DRAWN]} == {str, int, bool, float}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([source("sim")], "expected one real source"),
        ([real(), real()], "two have the same name"),
        ([real(), source("sim", 5)], "sim: has other scenes than the real source"),
    ],
)
def test_sources_that_do_not_fit_are_refused(given, said):
    with pytest.raises(InputError) as refused:
        measured(*given)
    assert said in str(refused.value)


def test_what_is_no_table_of_risk_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    with pytest.raises(FileError, match="no such file"):
        read_table(path)
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(FileError, match="not a table of risk, or damaged"):
        read_table(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(FileError, match="is no table of risk"):
        read_table(path)


def test_a_table_without_its_columns_is_refused(tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "risk.parquet"
    measured(*sources(), output=path)
    for column in ("scene", "setting", "failure"):
        pq.write_table(pq.read_table(path).drop_columns([column]), tmp_path / "less.parquet")
        with pytest.raises(FileError, match="damaged"):
            read_table(tmp_path / "less.parquet")


class Deadly(Quadratic):
    def run(self, log, parameters, truth):
        import os

        os._exit(1)


def test_a_process_that_ends_is_one_sentence():
    given = sources()
    app = Deadly()
    table = open_table(app, given, settings=4)
    with pytest.raises(InputError, match="a process ended without an answer"):
        evaluate(app, table, given, jobs=2)
