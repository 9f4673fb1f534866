# SPDX-License-Identifier: Apache-2.0
"""Directions and times of single pulses, worked out by hand from each sensor's manual."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.sensor import Sensor

FLOAT32_DEG = 1e-5  # a float32 unit vector resolves about 4e-6 degrees


def azimuth_deg(pattern) -> np.ndarray:
    x, y, _ = pattern.direction.astype(float).T
    return np.rad2deg(np.arctan2(y, x))


def elevation_deg(pattern) -> np.ndarray:
    return np.rad2deg(np.arcsin(pattern.direction[:, 2].astype(float)))


def check(name, pulses):
    """Compare rows (pulse, ring, azimuth, elevation, time in ns) with the pattern at the default rate."""
    pattern = Sensor.named(name).pattern
    pulse, ring, azimuth, elevation, time_ns = (np.array(column) for column in zip(*pulses, strict=True))
    assert pattern.ring[pulse].tolist() == ring.tolist()
    turned = (azimuth_deg(pattern)[pulse] - azimuth + 180) % 360 - 180
    assert_allclose(turned, 0, atol=FLOAT32_DEG)
    assert_allclose(elevation_deg(pattern)[pulse], elevation, atol=FLOAT32_DEG)
    assert pattern.time_ns[pulse].tolist() == time_ns.tolist()


def test_vlp_16():
    # clockwise at 3600 deg/s: 2.304 us are 0.0082944 deg, a cycle of 55.296 us is 0.1990656 deg
    check(
        "vlp-16",
        [
            (0, 0, 0, -15, 0),
            (1, 8, -0.0082944, 1, 2304),
            (15, 15, -15 * 0.0082944, 15, 34560),
            (16, 0, -0.1990656, -15, 55296),
            (28927, 15, -(1807 * 0.1990656 + 15 * 0.0082944), 15, 1807 * 55296 + 34560),
        ],
    )


def test_vlp_16_lasers_sit_at_the_manuals_heights():
    pattern = Sensor.named("vlp-16").pattern
    assert_allclose(pattern.origin_m[:4, 2], [0.0112, -0.0007, 0.0097, -0.0022], atol=1e-7)
    assert_allclose(pattern.origin_m[:, :2], 0, atol=0)


def test_hdl_32e():
    # 1.152 us are 0.0041472 deg, a cycle of 46.08 us is 0.165888 deg
    check(
        "hdl-32e",
        [
            (0, 0, 0, -30.67, 0),
            (1, 16, -0.0041472, -9.33, 1152),
            (31, 31, -31 * 0.0041472, 10.67, 35712),
            (32, 0, -0.165888, -30.67, 46080),
        ],
    )


def test_vlp_32c_fires_in_pairs_around_its_four_columns():
    # the manual's offsets are clockwise: +1.4 there is -1.4 here. Rings: 15 lasers lie below -1.667 degrees.
    check(
        "vlp-32c",
        [
            (0, 0, -1.4, -25, 0),
            (1, 17, 4.2, -1, 0),
            (2, 15, -1.4 - 0.0082944, -1.667, 2304),
            (3, 1, 1.4 - 0.0082944, -15.639, 2304),
            (31, 16, 1.4 - 15 * 0.0082944, -1.333, 34560),
            (32, 0, -1.4 - 0.1990656, -25, 55296),
        ],
    )


def test_hdl_64e_interleaves_three_upper_packets_and_a_lower():
    upper, lower = 360 / 3124, 360 / 780.25  # eqs. 7 and 6 at 10 Hz
    spacing = (2.0 + 24.8) / 63
    check(
        "hdl-64e",
        [
            (0, 32, 0, -24.8 + 32 * spacing, 0),
            (31, 63, 0, 2.0, 31_000),
            (32, 32, -upper, -24.8 + 32 * spacing, 32_000),
            (95, 63, -2 * upper, 2.0, 95_000),
            (96, 0, 0, -24.8, 96_000),
            (127, 31, 0, -24.8 + 31 * spacing, 127_000),
            (128, 32, -4 * upper, -24.8 + 32 * spacing, 128_000),
            (224, 0, -lower, -24.8, 224_000),
        ],
    )


def test_hdl_64e_s2_fires_a_laser_of_each_block_together():
    # 48 us cycle is 0.1728 deg; pairs at 0, 1.26, 2.46, 3.66 us and then 6 us later the next four
    check(
        "hdl-64e-s2",
        [
            (0, 36, -4.0, -7.1581, 0),
            (1, 4, -7.0, -22.7379, 0),
            (2, 37, -2.25 - 0.004536, -6.8178, 1260),
            (8, 38, 0.8 - 0.0216, -6.4777, 6000),
            (64, 36, -4.0 - 0.1728, -7.1581, 48_000),
        ],
    )


def test_hdl_64e_s2_lasers_sit_beside_and_above_the_axis():
    # pulse 0 looks along the rotor at azimuth 0: left is +y
    origin_m = Sensor.named("hdl-64e-s2").pattern.origin_m
    assert_allclose(origin_m[0], [0, 0.026, 0.203], atol=1e-7)
    assert_allclose(origin_m[1], [0, 0.026, 0.115], atol=1e-7)
    # pulses 2 and 3 are lasers 1 and 33, on the right, the rotor 0.004536 deg on
    assert_allclose(origin_m[2], [-0.026 * np.sin(np.deg2rad(0.004536)), -0.026, 0.203], atol=1e-7)


def test_xt32():
    # 1.512 us are 0.0054432 deg; a column every 50 us is 0.18 deg
    check(
        "xt32",
        [
            (0, 0, 0, 15, 0),
            (1, 1, -0.0054432, 14, 1512),
            (31, 31, -31 * 0.0054432, -16, 46872),
            (32, 0, -0.18, 15, 50_000),
            (63968, 0, -1999 * 0.18, 15, 1999 * 50_000),
        ],
    )


def test_os1_64_starts_behind_and_fires_whole_columns():
    # a column is 360/1024 deg and 100 ms / 1024 = 97656.25 ns
    check(
        "os1-64",
        [
            (0, 0, 180 - 3.164, 16.611, 0),
            (1, 1, 180 - 1.055, 16.084, 0),
            (63, 63, 180 + 3.164, -16.611, 0),
            (64, 0, 180 - 3.164 - 0.3515625, 16.611, 97656),
            (64 * 512, 0, -3.164, 16.611, 50_000_000),
        ],
    )


def test_os1_range_counts_from_the_axis():
    # r d + n (cos, sin of the rotor, 0) - n d: at r = n the point is where the beams part (Ouster software guide)
    pattern = Sensor.named("os1-64").pattern
    n_m = 0.012163
    part_m = pattern.origin_m + n_m * pattern.direction
    rotor = pattern.rotor_rad
    expected = np.stack([n_m * np.cos(rotor), n_m * np.sin(rotor), np.full(len(rotor), 0.03618)], axis=1)
    assert_allclose(part_m, expected, atol=2e-9 + 4e-9)  # two float32 roundings of numbers up to 0.04


def test_lms_291_measures_half_degrees_in_a_second_turn():
    # a degree takes 1 / (75 * 360) s = 37,037 ns, a turn 13,333,333 ns
    check(
        "lms-291",
        [
            (0, 0, -90, 0, 0),
            (1, 0, -89, 0, 37_037),
            (180, 0, 90, 0, 6_666_667),
            (181, 0, -89.5, 0, 13_351_852),
            (360, 0, 89.5, 0, 19_981_481),
        ],
    )
    sensor = Sensor.named("lms-291")
    assert sensor.pulses_per_sweep == 361
    assert_allclose(sensor.sweep_s, 2 / 75)
    assert_allclose(np.diff(np.sort(azimuth_deg(sensor.pattern))), 0.5, atol=FLOAT32_DEG)


def test_neato():
    # a degree takes 1 / (5 * 360) s
    check("neato-xv-11", [(0, 0, 0, 0, 0), (1, 0, 1, 0, 555_556), (359, 0, 359, 0, 199_444_444)])


def test_mid_360_starts_with_its_row_upright_at_the_highest():
    spread = 2.75
    check(
        "mid-360",
        [
            (0, 0, -90, 47.9 + 1.5 * spread, 0),
            (1, 1, -90, 47.9 + 0.5 * spread, 0),
            (3, 3, -90, 47.9 - 1.5 * spread, 0),
        ],
    )
    pattern = Sensor.named("mid-360").pattern
    assert pattern.time_ns[4] == 20_000  # 50,000 firings a second


def test_mid_360_is_lowest_after_half_a_sweep():
    # firing 2500: 9.1125 turns of the mirror, mean elevation -4.1, spacing 2.0 times the cosine of 0.1125 turns
    pattern = Sensor.named("mid-360").pattern
    up = 2.0 * np.cos(2 * np.pi * 0.1125)
    assert_allclose(elevation_deg(pattern)[10_000:10_004], -4.1 - np.array([-1.5, -0.5, 0.5, 1.5]) * up, atol=1e-4)


# Rows of Livox's table (livox_laser_simulation, scan_mode/mid360.csv): first row of a firing, its four zenith angles
LIVOX_TABLE = [
    (1, [37.838, 40.825, 43.581, 46.152]),
    (541, [46.805, 44.297, 41.617, 38.727]),
    (1401, [47.259, 47.115, 46.957, 46.842]),
    (1961, [50.398, 50.659, 50.907, 51.142]),
    (7977, [88.1823, 87.5531, 86.9567, 86.3901]),
    (8301, [91.2349, 89.75467, 88.2918, 86.8466]),
    (8757, [88.4417, 90.27784, 92.1562, 94.0817]),
    (49701, [95.5487, 94.4634, 93.4095, 92.3856]),
    (49885, [97.1711, 95.1058, 93.1054, 91.1618]),
]


@pytest.mark.parametrize(("row", "zenith"), LIVOX_TABLE)
def test_mid_360_mean_elevation_follows_livox_table(row, zenith):
    pattern = Sensor.named("mid-360").pattern
    ours = elevation_deg(pattern)[row - 1 : row + 3].mean()
    assert_allclose(ours, 90 - np.mean(zenith), atol=2.0)  # how well the closed form fits, see rosette.py


@pytest.mark.parametrize(
    ("turns", "table_azimuths"),
    [
        (0.25, [184.22, 182.11, 180.01, 177.91]),  # row 281 of the table, near the highest
        (46.25, [188.07, 186.63, 185.19, 183.76]),  # row 49,605, near the lowest
    ],
)
def test_mid_360_row_lies_along_the_scan_line_as_in_livox_table(turns, table_azimuths):
    # a quarter turn after the row stood upright; 18.225 mirror turns in a sweep of 5000 firings
    pattern = Sensor.named("mid-360").pattern
    first = 4 * round(turns / 18.225 * 5000)
    ours = np.rad2deg(np.unwrap(np.deg2rad(azimuth_deg(pattern)[first : first + 4])))
    assert_allclose(np.diff(ours), np.diff(table_azimuths), atol=0.05)


def test_mid_360_does_not_repeat_and_fills_its_field_of_view():
    sensor = Sensor.named("mid-360")
    pattern = sensor.pattern
    assert pattern.n_sweeps == 40
    # Share of the 2 by 2 degree cells between -4 and 48 degrees that a pulse falls into, after 0.1 s and after 1 s
    az, el = azimuth_deg(pattern), elevation_deg(pattern)
    shares = []
    for n_sweeps in (1, 10):
        rows = slice(0, n_sweeps * sensor.pulses_per_sweep)
        counts, _, _ = np.histogram2d(az[rows], el[rows], bins=[180, 26], range=[[-180, 180], [-4, 48]])
        shares.append((counts > 0).mean())
    assert shares[0] < 0.95
    assert shares[1] > 0.999
    assert el.min() > -7.3  # data sheet: -7 to 52 degrees
    assert el.max() < 52.3
