# SPDX-License-Identifier: Apache-2.0
"""Logs in partitions, and what a first look at them refuses."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

import hedgerow as hr
from hedgerow.models.steps.log_chunks import summarise
from hedgerow.parallel.log_parts import cut_log


def log_of(ranges, *, sweeps: ArrayLike = 0, max_range_m=50.0, sensor="vlp-16"):
    n = len(ranges)
    return hr.Log.from_arrays(
        origins=(0, 0, 0),
        directions=np.broadcast_to([1.0, 0, 0], (n, 3)),
        ranges=ranges,
        sweeps=sweeps,
        max_range_m=max_range_m,
        sensor=sensor,
    )


def test_a_log_a_file_and_a_function_give_the_same_beams(tmp_path):
    log = log_of(np.linspace(1, 9, 60), sweeps=np.arange(60) // 20)
    hr.write_log(log, tmp_path / "drive.parquet")
    sources = (log, tmp_path / "drive.parquet", hr.open_log(tmp_path / "drive.parquet"), lambda: iter([log]))
    for source in sources:
        parts = cut_log(source)
        for _ in range(2):  # a second pass gives everything again
            ranges = np.concatenate([part.returns.first_m for part in parts()])
            np.testing.assert_array_equal(ranges, log.returns.first_m)


@pytest.mark.parametrize("name", ["drive.ply", "drive.las"])
def test_logs_of_other_formats_are_learned_from_as_they_are(tmp_path, name):
    log = log_of(np.linspace(1, 9, 60), sweeps=np.arange(60) // 20)
    hr.write_log(log, tmp_path / name)
    ranges = np.concatenate([part.returns.first_m for part in cut_log(tmp_path / name)()])
    np.testing.assert_allclose(ranges, log.returns.first_m, atol=0.001)  # LAS rounds to millimetres
    world = hr.learn(tmp_path / name, "points")
    assert world.header.provenance.n_beams == 60


def test_large_logs_come_in_parts_of_whole_sweeps():
    n = 1_500_000
    log = log_of(np.full(n, 5.0, dtype=np.float32), sweeps=np.arange(n) // 400_000)
    parts = list(cut_log(log)())
    assert [len(part) for part in parts] == [800_000, 700_000]
    assert [part.sweeps.tolist() for part in parts] == [[0, 1], [2, 3]]


def test_survey_counts_beams_and_returns():
    found = summarise(cut_log(log_of([1.0, np.inf, 3.0])))
    assert (found.n_beams, found.n_returns, found.max_range_m, found.sensor) == (3, 2, 50.0, "vlp-16")


@pytest.mark.parametrize(
    ("log", "message"),
    [
        (log_of([]), "log: is empty"),
        (log_of([np.inf, np.inf]), "none of its 2 beams returned"),
        (log_of([1.0, np.inf], max_range_m=np.inf), "no max_range_m"),
    ],
)
def test_logs_that_teach_nothing_are_refused(log, message):
    with pytest.raises(hr.InputError, match=message):
        summarise(cut_log(log))


def test_parts_of_different_sensors_are_refused():
    with pytest.raises(hr.InputError, match="sensor"):
        summarise(lambda: iter([log_of([1.0]), log_of([1.0], sensor="os1-64")]))
