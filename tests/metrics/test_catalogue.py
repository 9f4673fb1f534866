# SPDX-License-Identifier: Apache-2.0
"""The table of metrics: every family gives the metrics of its row, and no two rows share a key."""

import numpy as np
import pytest
from known_logs import NormalWorld, log_of

from hedgerow.metrics import CompareSettings, accumulate
from hedgerow.metrics.catalogue import FAMILIES, METRICS, SIZE_METRICS


@pytest.fixture(scope="module")
def sums():
    """A sensor that stands still and a world that knows densities: every metric applies."""
    ranges = np.random.default_rng(0).normal(20, 0.1, 40)
    ranges[[1, 3]] = np.inf
    real = log_of(ranges, np.tile([[1.0, 0, 0]], (40, 1)), sweeps=np.arange(40) // 2)
    return accumulate(real, {"normal": NormalWorld()}, CompareSettings(novel_view=True))


@pytest.mark.parametrize("row", range(len(FAMILIES)))
def test_a_family_gives_the_metrics_of_its_row(sums, row):
    assert list(sums.sums[row].values()["normal"]) == list(FAMILIES[row].metrics)


def test_no_key_comes_twice():
    assert len(METRICS) == sum(len(family.metrics) for family in FAMILIES) + len(SIZE_METRICS)
