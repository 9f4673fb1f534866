# SPDX-License-Identifier: Apache-2.0
"""Pictures of logs whose beams and sweep numbers are not those of the real log."""

import numpy as np

import hedgerow as hr
from hedgerow.report.pictures import one_sweep, pictures_of_sweep


def turn(number, x_m=0.0, phase_deg=0.0, rings=3, range_m=10.0):
    """One turn of a sensor, with one range for all beams."""
    n = 180
    azimuth = np.radians(np.tile(np.arange(n) * 2.0 + phase_deg, rings))
    elevation = np.radians(np.repeat(np.arange(rings) * 2.0, n))
    direction = np.c_[np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    ring = np.repeat(np.arange(rings), n)
    return hr.Log.from_arrays(
        origins=(x_m, 0.0, 2.0),
        directions=direction,
        ranges=np.full(n * rings, range_m),
        rings=ring,
        sweeps=number,
        max_range_m=100.0,
    )


def test_the_sweep_beside_is_drawn_whatever_its_number_with_its_own_beams():
    real = hr.Log.concatenate([turn(0), turn(1, x_m=8.0), turn(2, x_m=16.0)])
    other = hr.Log.concatenate([turn(70, x_m=8.2, phase_deg=0.7, range_m=12.0), turn(71, x_m=16.2)])
    drawn = one_sweep(real, {"other": other}, None, 0)
    assert drawn["real"].sweeps.tolist() == [1]
    assert drawn["other"].sweeps.tolist() == [70] and (drawn["other"].returns.first_m == 12.0).all()
    assert pictures_of_sweep(drawn)[1].wide.startswith("data:image/png")  # the range image


def test_beams_without_rings_are_drawn_where_they_have_partners():
    real = turn(0)
    blind = hr.Log.from_arrays(
        origins=(0.0, 0.0, 2.0),
        directions=real.beams.direction[::2],
        ranges=np.full(len(real) // 2, 12.0),
        max_range_m=100.0,
    )
    drawn = one_sweep(real, {"blind": blind}, 0, 0)["blind"]
    assert drawn.beams.equal(real.beams)
    np.testing.assert_array_equal(np.isfinite(drawn.returns.first_m), np.arange(len(real)) % 2 == 0)
