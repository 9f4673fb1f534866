# SPDX-License-Identifier: Apache-2.0
"""Sweeps spread over a log that is too long to be held."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.io.source import read_spread


@pytest.fixture
def source(tmp_path):
    """A log of 40 sweeps of 100 beams."""
    n = 4000
    directions = np.tile([1.0, 0.0, 0.0], (n, 1))
    log = hr.Log.from_arrays(
        origins=np.zeros((n, 3)), directions=directions, ranges=np.full(n, 5.0), sweeps=np.arange(n) // 100
    )
    hr.write_log(log, tmp_path / "drive.parquet")
    return hr.open_log(tmp_path / "drive.parquet")


@pytest.mark.parametrize(("most", "every"), [(4000, 1), (3999, 2), (1000, 4), (100, 64), (1, 64)])
def test_sweeps_are_spread_over_the_whole_log(source, most, every):
    assert read_spread(source, most).sweeps.tolist() == list(range(0, 40, every))
