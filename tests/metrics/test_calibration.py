# SPDX-License-Identifier: Apache-2.0
"""The gate: a calibrated world passes; worlds that are made too sure, too unsure or that return too rarely fail."""

import json

import numpy as np
import pytest
from known_logs import log_of

from hedgerow import Returns
from hedgerow.base.randomness import normal, uniform
from hedgerow.metrics import compare
from hedgerow.metrics.calibration import calibration_faults
from hedgerow.metrics.metric import Value
from hedgerow.world import World
from hedgerow.world.elements import Gaussians
from hedgerow.world.learned import LearnedWorld

LIMIT_M = 60.0
N = 20_000


def fence(sigma_m=0.5, stop=(0.3, 0.6, 0.9)):
    """Gaussians at 10, 20 and 30 m on three sets of beams, `sigma_m` deep; each lets some of its beams through."""
    mean_m = np.array([[10.0, 0, 0], [0, 20.0, 0], [-30.0, 0, 0]])
    covariance = np.eye(3) * sigma_m**2
    return LearnedWorld(
        Gaussians.plain(
            mean_m, np.repeat(covariance[None], 3, axis=0), stop=np.array([1 - each for each in stop], dtype=np.float32)
        ),
        kind="voxel",
    )


def beams_at_fence():
    directions = np.array([[1.0, 0, 0], [0, 1.0, 0], [-1.0, 0, 0]])[np.arange(N) % 3]
    return log_of(np.full(N, 5.0), directions, max_range_m=LIMIT_M).beams


@pytest.fixture(scope="module")
def real():
    """What a true world gives once."""
    return fence().fire(beams_at_fence(), seed=77, limits_m=(0, LIMIT_M))


def test_a_calibrated_world_passes(real):
    scores = compare(real, fence())
    # Spread of the world that made the log: 1, give or take 0.01, its deviation over seeds of 20,000 beams.
    assert scores["spread"] == pytest.approx(1, abs=0.04)
    assert scores.is_calibrated is True
    assert scores.calibration is not None and scores.calibration.faults == ()
    assert scores.calibration.sentence.startswith("calibrated: spread ")


def test_a_world_made_too_sure_fails(real):
    sharp = compare(real, fence(sigma_m=0.02, stop=(0.0, 1.0, 1.0)))
    assert sharp.is_calibrated is False
    found = sharp.calibration
    assert found is not None and found.verdict == "too sure"
    assert found.sentence.startswith("too sure: spread ") and "unreliable" in found.sentence
    assert "of the beams are said to return" in found.sentence


def test_a_world_made_too_unsure_fails():
    real = Blurred(0.5, 0.0).fire(log_of(np.full(N, 20.0)).beams, seed=5, limits_m=(0, 100.0))
    scores = compare(real, Blurred(2.0, 0.0), draws=32)
    assert scores.is_calibrated is False
    assert scores.calibration is not None and scores.calibration.verdict == "too unsure"


def test_a_world_that_returns_too_rarely_is_unreliable(real):
    scores = compare(real, fence(stop=(0.2, 0.5, 0.85)))
    assert scores["spread"] == pytest.approx(1, abs=0.1)
    assert scores.calibration is not None and scores.calibration.verdict == "unreliable"


class Blurred(World):
    """Ranges from N(20, sigma²), but for a share of misses; known by draws alone."""

    has_noise = True

    def __init__(self, sigma_m, miss):
        super().__init__()
        self.sigma_m, self.miss = sigma_m, miss

    def returns(self, beams, shot):
        ranges = 20 + self.sigma_m * normal(shot.seed, beams.pulse, 2)
        return Returns.from_arrays(ranges=np.where(uniform(shot.seed, beams.pulse, 1) < self.miss, np.inf, ranges))


def test_few_draws_leave_reliability_undecided():
    world = Blurred(0.1, 0.3)
    real = world.fire(log_of(np.full(N, 20.0)).beams, seed=5, limits_m=(0, 100.0))
    few = compare(real, world, draws=8)
    assert few.is_calibrated is None
    assert few.calibration is not None and few.calibration.sentence.startswith("not judged: spread ")
    assert "set draws=64" in few.calibration.sentence


@pytest.mark.parametrize(
    ("spread", "error", "n_faults"),
    [(1.0, 0.01, 0), (0.9, 0.02, 0), (1.1, 0.0, 0), (0.899, 0.0, 1), (1.101, 0.0, 1), (1.0, 0.021, 1), (0.5, 0.2, 2)],
)
def test_the_bounds_of_the_gate(spread, error, n_faults):
    assert len(calibration_faults({"spread": Value(spread, 9), "reliability_error": Value(error, 9)})) == n_faults


def test_what_is_always_right_has_no_spread_and_no_fault():
    assert calibration_faults({"spread": Value(None, 9), "reliability_error": Value(0.0, 9)}) == []


def test_logs_and_floors_are_not_judged(real):
    both = compare(real, {"log": real, "fence": fence()}, floors=True)
    assert list(both.calibrations()) == ["fence"]
    assert both["log"].is_calibrated is None
    found = json.loads(both.to_json())
    assert found["log"]["calibration"] is None
    assert found["fence"]["calibration"] == {"passes": True, "verdict": "calibrated", "faults": []}
