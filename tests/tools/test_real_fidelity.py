# SPDX-License-Identifier: Apache-2.0
"""The real beam beside each compared one, as a measure for worlds."""

import sys
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

import hedgerow as hr

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # tools are scripts beside each other, not a package
from real_fidelity import next_beams


def beams_at(azimuth_deg, ring, ranges, sweeps: ArrayLike = 0):
    azimuth = np.radians(azimuth_deg)
    directions = np.c_[np.cos(azimuth), np.sin(azimuth), 0 * azimuth]
    return hr.Log.from_arrays(
        origins=[0, 0, 0], directions=directions, ranges=ranges, rings=ring, sweeps=sweeps, max_range_m=50
    )


def test_a_beam_gets_what_the_nearest_of_its_own_ring_measured():
    learned = beams_at([0.0, 1.0, 0.5, 359.0], [0, 0, 1, 1], [10.0, np.inf, 30.0, 40.0])
    compared = beams_at([0.4, 0.6, 0.5, -0.9], [0, 0, 1, 1], [1.0, 2.0, 3.0, np.inf])
    beside = next_beams(learned, compared)
    np.testing.assert_array_equal(beside.returns.first_m, [10.0, np.inf, 30.0, 40.0])
    assert beside.beams is compared.beams
    assert beside.max_range_m == 50


def test_only_the_next_sweep_is_asked():
    learned = beams_at([0.0, 1.0, 2.0], [0, 0, 0], [10.0, 20.0, 30.0], sweeps=[0, 2, 6])
    compared = beams_at([0.0, 2.0, 0.0], [0, 0, 0], [1.0, 1.0, 1.0], sweeps=[1, 3, 5])
    np.testing.assert_array_equal(next_beams(learned, compared).returns.first_m, [10.0, 20.0, 30.0])
