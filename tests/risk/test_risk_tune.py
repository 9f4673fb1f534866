# SPDX-License-Identifier: Apache-2.0
"""A model tuned on the risk of a program."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.apps import number, program, ratio
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.risk.tune import tune_model


@program(ratio("far", "n"), x=number(0.9, 1.1))
def range_share(log, parameters, truth):
    """How many beams end beyond x times 10 m: a wall of Gaussians that is too thick lets them scatter."""
    range_m = log.returns.first_m
    return {"far": float((range_m > 10 * parameters["x"]).sum()), "n": float(len(log))}


def wall_log(n_sweeps: int = 16) -> Log:
    """A wall 10 m ahead, each sweep from another height, ranges with 1 cm noise."""
    rng = np.random.default_rng(0)
    sweep = np.repeat(np.arange(n_sweeps), 400)
    direction = np.column_stack([np.ones(len(sweep)), rng.uniform(-0.4, 0.4, (len(sweep), 2))])
    length = np.linalg.norm(direction, axis=1)
    return Log.from_arrays(
        origins=np.column_stack([0 * sweep, 0 * sweep, 0.05 * sweep]),
        directions=direction / length[:, None],
        ranges=10 * length + 0.01 * rng.normal(size=len(sweep)),
        times=sweep * 0.1,
        sweeps=sweep,
        max_range_m=50,
    )


def test_likelihood_comes_first_then_risk_and_both_are_judged(tmp_path):
    hr.write_log(wall_log(), tmp_path / "wall.parquet")
    said = []
    found = tune_model(
        hr.open_log(tmp_path / "wall.parquet"),
        "voxel",
        {"side_m": (0.2, 5.0)},
        range_share,
        scene_sweeps=2,
        settings=6,
        say=said.append,
    )
    assert len(said) == len(found.steps) == 10
    assert [step.by for step in found.steps] == ["likelihood"] * 5 + ["risk"] * 5
    for by, chosen in (("likelihood", found.by_likelihood), ("risk", found.by_risk)):
        lowest = min((step for step in found.steps if step.by == by), key=lambda step: step.value)
        assert chosen == lowest.parameters
    assert set(found.test.scores) <= {"likelihood", "risk"}
    assert found.test.n_scenes == 2


def test_what_cannot_be_tuned_is_refused(tmp_path):
    hr.write_log(wall_log(8), tmp_path / "wall.parquet")
    log = hr.open_log(tmp_path / "wall.parquet")
    with pytest.raises(InputError, match="has 8 sweeps; two scenes to choose by and two to judge by take 40"):
        tune_model(log, "voxel", {"side_m": (0.1, 1.0)}, range_share)
    with pytest.raises(InputError, match="0 < LOW < HIGH, found 1 and 0"):
        tune_model(log, "voxel", {"side_m": (1, 0.1)}, range_share, scene_sweeps=1, settings=2)
