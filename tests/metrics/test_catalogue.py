# SPDX-License-Identifier: Apache-2.0
"""The table of metrics: every family gives the metrics of its row, and no two rows share a key."""

import numpy as np
import pytest
from known_logs import NormalWorld, log_of

from hedgerow import Returns
from hedgerow.metrics import CompareSettings, accumulate
from hedgerow.metrics.catalogue import FAMILIES, HEADINGS, METRICS, SIZE_METRICS
from hedgerow.metrics.learned_cloud import LearnedCloud
from hedgerow.metrics.near_learned import EDGES_M


class PaintedWorld(NormalWorld):
    """The same, with intensities and labels."""

    def returns(self, beams, shot):
        ranges = super().returns(beams, shot).first_m
        n = len(ranges)
        return Returns.from_arrays(ranges=ranges, intensities=np.full(n, 0.5), labels=np.full(n, 70))


@pytest.fixture(scope="module")
def sums():
    """A sensor that stands still, and a world that knows all there is to know: every metric applies."""
    ranges = np.random.default_rng(0).normal(20, 0.1, 40)
    ranges[[1, 3]] = np.inf
    columns = {"intensities": np.full(40, 0.4), "labels": np.full(40, 70)}
    real = log_of(ranges, np.tile([[1.0, 0, 0]], (40, 1)), sweeps=np.arange(40) // 2)
    # One return in each band of the distance to the one that was learned.
    ranges[4 : 4 + len(EDGES_M) - 1] = 10 - np.array(EDGES_M[:-1]) - 0.01
    real = real.with_returns(Returns.from_arrays(ranges=ranges, **columns))
    learned = LearnedCloud(np.array([[10.0, 0, 0]]), 0.03)
    return accumulate(real, {"normal": PaintedWorld()}, CompareSettings(novel_view=True), learned=learned)


@pytest.mark.parametrize("row", range(len(FAMILIES)))
def test_a_family_gives_the_metrics_of_its_row(sums, row):
    given = list(FAMILIES[row].metrics)
    assert list(sums.sums[row].values()["normal"]) == [key for key in given if "ssim" not in key]  # needs an image


def test_every_metric_stands_under_a_heading():
    assert HEADINGS.keys() == METRICS.keys()
    assert all(HEADINGS.values())


def test_no_key_comes_twice():
    assert len(METRICS) == sum(len(family.metrics) for family in FAMILIES) + len(SIZE_METRICS)
