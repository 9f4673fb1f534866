# SPDX-License-Identifier: Apache-2.0
"""The vegetation response on a real recording: how beams are picked, and the table where the data is at hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import real_vegetation as tool

DATA = Path(__file__).parents[3] / "shared" / "data"
BOX = (10.0, -1.0, -1.0, 12.0, 1.0, 1.0)


def test_beams_that_pass_the_box_with_its_margin_are_kept():
    directions = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 1.0, 0], [0.8, 0.6, 0], [0.9, 0.4359, 0]])
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=directions, ranges=np.full(5, 11.0))
    # The margin is 4 m: the box is 6 to 16 m ahead then, and 5 m to both sides. The fourth beam is at 4.5 m there.
    assert tool._passing(log, BOX).tolist() == [0, 3, 4]


def test_points_of_two_returns_are_those_beside_the_sensor():
    sweep = tool.TwoReturns(np.zeros((3, 3)), np.array([[0, 1.0, 0]] * 3), np.array([[8.0, 9], [8, np.inf], [30, 31]]))
    everything = np.ones(3, bool)
    assert sweep.points(0, everything)[:, 1].tolist() == [8, 8]
    assert sweep.points(1, everything)[:, 1].tolist() == [9]


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / tool.FOLDER).is_dir(), reason="needs the recordings in ../shared/data")
def test_the_response_closes_the_gap_between_a_smooth_hedge_and_a_real_one():
    place = tool.measure(DATA, "hedge", seed=1)
    assert place.calibration.simulated is not None
    real, smooth = place.calibration.measured.variance_m2, place.calibration.simulated.variance_m2
    assert smooth < 0.8 * real
    assert place.with_response.measured.variance_m2 == pytest.approx(real, rel=0.05)
