# SPDX-License-Identifier: Apache-2.0
"""Parameters of a model tuned by scores: the right ones are found, tables are taken up again, nonsense is refused."""

import math
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.log import Log
from hedgerow.metrics import tune
from hedgerow.metrics.candidates import Candidate, CandidateTable
from hedgerow.metrics.tune import tune_by_score

NOISE_M = 0.03
SIGMA = {"sigma0_m": (0.005, 0.5)}
SET = {"sigma_a_m": 0.0, "node_m": 0.5, "kernel_m": 0.8}


def wall_log(n_sweeps: int = 9, n: int = 1500) -> Log:
    """A wall 10 m ahead, each sweep from another height; ranges spread by 3 cm, a tenth of the beams do not return."""
    rng = np.random.default_rng(0)
    sweep = np.repeat(np.arange(n_sweeps), n)
    direction = np.column_stack([np.ones(len(sweep)), rng.uniform(-0.3, 0.3, (len(sweep), 2))])
    length = np.linalg.norm(direction, axis=1)
    range_m = 10 * length + NOISE_M * rng.normal(size=len(sweep))
    return Log.from_arrays(
        origins=np.column_stack([0 * sweep, 0 * sweep, 0.05 * sweep]),
        directions=direction / length[:, None],
        ranges=np.where(rng.random(len(sweep)) < 0.1, np.inf, range_m),
        times=sweep * 0.1,
        sweeps=sweep,
        max_range_m=50,
    )


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune") / "wall.parquet"
    hr.write_log(wall_log(), path)
    return hr.open_log(path)


def tuned(
    recording,
    objective: Any = "likelihood",
    vary=SIGMA,
    model="permeable-surface",
    fixed=SET,
    generations=3,
    **more: Any,
):
    return tune_by_score(recording, model, vary, objective, fixed=fixed, generations=generations, **more)


@pytest.mark.parametrize("objective", ["likelihood", "crps"])
def test_a_proper_score_finds_the_noise_of_the_sensor(recording, objective):
    found = tuned(recording, objective)
    # 5 candidates a generation over two decades: to about a quarter.
    assert NOISE_M / 1.3 < found.best.parameters["sigma0_m"] < 1.3 * NOISE_M
    assert found.best.loss == min(each.loss for each in found.candidates)
    assert (found.n_learned, found.n_scored) == (6, 3)


def test_the_error_of_observations_is_least_without_noise(recording):
    found = tuned(recording, "observation")
    assert (
        found.best.parameters["sigma0_m"] < NOISE_M / 2
    )  # no proper score: the truth spreads, its best guess does not
    scores = found.best.scores
    assert found.best.loss == pytest.approx(scores["observation_error_m"] + 2 * (1 - scores["f1"]), rel=1e-12)


def test_the_model_s_own_values_are_among_the_candidates(recording):
    found = tuned(recording, fixed=SET | {"sigma0_m": 0.1}, generations=0)
    assert found.start is not None and found.start.parameters == {"sigma0_m": 0.1}
    assert found.best.loss <= found.start.loss
    assert tuned(recording, generations=0).start is None  # fitted to the log unless it is set: no number


def test_whole_numbers_stay_whole_and_bounds_may_be_below_zero():
    whole = tune._Range.parse("n", (1, 300))
    assert [whole.value(place) for place in (0, 0.5, 1)] == [1, 17, 300]
    assert all(isinstance(whole.value(place), int) for place in np.linspace(0, 1, 7))
    level = tune._Range.parse("x", (-1.0, 3.0))
    assert level.value(0.25) == 0 and level.place(0.0) == 0.25
    decades = tune._Range.parse("y", (0.01, 1.0))
    assert decades.value(0.5) == pytest.approx(0.1, rel=1e-3)
    assert decades.place(decades.value(0.3)) == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_table_is_taken_up_again_and_extended(recording, tmp_path, monkeypatch, suffix):
    table = tmp_path / f"table.{suffix}"
    first = tuned(recording, table=table, generations=1)
    learned = []

    def spied(self, chosen, candidate=tune._Scorer.candidate):
        learned.append(chosen)
        return candidate(self, chosen)

    monkeypatch.setattr(tune._Scorer, "candidate", spied)
    again = tuned(recording, table=table, generations=1)
    assert learned == [] and again.best == first.best and again.candidates == first.candidates
    longer = tuned(recording, table=table, generations=2)
    assert len(learned) == len(longer.candidates) - len(first.candidates) > 0
    assert longer.candidates[: len(first.candidates)] == first.candidates


def test_ctrl_c_keeps_what_was_done_and_the_search_goes_on_to_the_same_end(recording, tmp_path):
    table = tmp_path / "table.parquet"

    def stop(candidate, number):
        if number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(recording, table=table, say=stop, generations=1)
    assert pq.read_table(table).num_rows == 3
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]
    resumed, whole = tuned(recording, table=table, generations=1), tuned(recording, generations=1)
    assert [each.loss for each in resumed.candidates] == [each.loss for each in whole.candidates]


def test_the_same_seed_gives_the_same_candidates(recording):
    first, again, other = (tuned(recording, seed=seed, generations=0) for seed in (1, 1, 2))
    assert [(each.parameters, each.loss) for each in first.candidates] == [
        (each.parameters, each.loss) for each in again.candidates
    ]
    assert first.candidates[1].parameters != other.candidates[1].parameters


def test_only_the_slice_is_learned_and_scored(recording):
    found = tuned(recording, generations=0, from_s=0.2, to_s=0.55)
    assert (found.n_learned, found.n_scored) == (3, 1)  # sweeps 2 to 5


def test_what_is_too_long_to_hold_is_read_again(recording, monkeypatch):
    held = tuned(recording, generations=0)
    monkeypatch.setattr(tune, "_HELD_BEAMS", 2000)
    read = tuned(recording, generations=0)
    assert [each.loss for each in read.candidates] == [each.loss for each in held.candidates]


def test_candidates_that_cannot_be_learned_lose(recording):
    found = tuned(recording, model="voxel", fixed={}, vary={"min_points": (1, 10_000)}, generations=0)
    failed = [each for each in found.candidates if each.failure]
    assert failed and all(math.isinf(each.loss) for each in failed)
    assert "points" in failed[0].failure
    with pytest.raises(InputError, match="no candidate could be learned"):
        tuned(recording, model="voxel", fixed={}, vary={"min_points": (900_000, 1_000_000)}, generations=0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"vary": {}}, "names no parameter"),
        ({"vary": {"sigma": (0.1, 1.0)}}, "no such parameter"),
        ({"vary": {"sigma0_m": (1.0, 0.1)}}, "LOW below HIGH"),
        ({"vary": {"sigma0_m": (-1.0, 0.1)}}, "sigma0_m"),
        ({"model": "voxels"}, "there is no 'voxels'"),
        ({"objective": "rmse"}, "expected one of observation, crps, likelihood"),
        ({"from_s": 5.0, "to_s": 4.0}, "from_s < to_s"),
        ({"to_s": 0.15}, "has 2 sweeps from 0 to 0.15 s"),
        ({"table": "table.txt"}, r"named \*.parquet or \*.csv"),
        ({"generations": -1}, "generations"),
    ],
)
def test_what_cannot_be_tuned_is_refused(recording, more, said):
    with pytest.raises(InputError, match=said):
        tuned(recording, **more)


def test_tables_of_another_tuning_or_of_something_else_are_refused(recording, tmp_path):
    table = tmp_path / "table.parquet"
    CandidateTable(["sigma0_m"], {"seed": 1}, table).add(Candidate({"sigma0_m": 0.1}, 1.0))
    with pytest.raises(InputError, match="belongs to another tuning"):
        tuned(recording, table=table)
    hr.write_log(wall_log(1, 10), tmp_path / "log.parquet")
    with pytest.raises(FileError, match="no table of candidates"):
        tuned(recording, table=tmp_path / "log.parquet")
    (tmp_path / "damaged.csv").write_bytes(b'plan,loss\n"\0')
    with pytest.raises(FileError, match=r"damaged\.csv"):
        tuned(recording, table=tmp_path / "damaged.csv")
