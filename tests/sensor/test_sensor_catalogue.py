# SPDX-License-Identifier: Apache-2.0
"""The catalogue: every file loads, names are found, published numbers come out, rings are numbered as drivers do."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.errors import InputError
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Spinning

WANTED = [
    "hdl-32e", "hdl-64e", "hdl-64e-s2", "lms-291", "mid-360", "neato-xv-11", "os1-128", "os1-64", "vlp-16", "vlp-32c",
    "vlp-32mr", "vls-128", "xt32",
]  # fmt: skip


def ring_elevations_deg(sensor: Sensor) -> np.ndarray:
    """Elevation of each ring [deg]; every laser of a spinning sensor keeps its own."""
    ring, first = np.unique(sensor.pattern.ring, return_index=True)
    assert ring.tolist() == list(range(sensor.n_rings))
    return np.rad2deg(np.arcsin(sensor.pattern.direction[first, 2].astype(float)))


def test_the_catalogue_has_these_sensors():
    assert Sensor.names() == WANTED


@pytest.mark.parametrize("name", WANTED)
def test_every_file_is_named_as_its_sensor_and_makes_a_sound_pattern(name):
    sensor = Sensor.named(name)
    pattern = sensor.pattern
    assert sensor.name == name
    assert len(pattern) == sensor.pulses_per_sweep * pattern.n_sweeps
    assert (np.diff(pattern.time_ns) >= 0).all()
    assert pattern.time_ns[0] == 0
    assert pattern.time_ns[-1] < pattern.period_ns
    assert set(pattern.ring.tolist()) == set(range(sensor.n_rings))
    # float32 rounds each component by at most 6e-8
    assert_allclose(np.linalg.norm(pattern.direction.astype(float), axis=1), 1, atol=1.1e-7)
    assert np.abs(pattern.origin_m).max() < 0.5


@pytest.mark.parametrize("name", WANTED)
def test_the_rotor_turns_the_way_the_file_says(name):
    sensor = Sensor.named(name)
    rotor = sensor.pattern.rotor_rad[sensor.pattern.ring == 0]
    steps = np.diff(rotor[:20])
    assert (steps > 0).all() if sensor.config.pattern.turns == "counter-clockwise" else (steps < 0).all()


@pytest.mark.parametrize("spelling", ["hdl-64e", "HDL-64E", "hdl_64e", "hdl 64E", "HDL64E", "Velodyne HDL-64E"])
def test_case_dashes_blanks_and_maker_do_not_matter(spelling):
    assert Sensor.named(spelling).name == "hdl-64e"


def test_maker_prefix_works_for_all_makers():
    assert Sensor.named("ouster_os1-64").name == "os1-64"
    assert Sensor.named("Hesai XT32").name == "xt32"
    assert Sensor.named("livox mid360").name == "mid-360"
    assert Sensor.named("SICK LMS291").name == "lms-291"
    assert Sensor.named("xv11").name == "neato-xv-11"


def test_unknown_sensor_names_the_nearest_and_all():
    with pytest.raises(InputError, match=r"'hdl-65e' is not in the catalogue; did you mean hdl-64e") as caught:
        Sensor.named("hdl-65e")
    assert all(name in str(caught.value) for name in WANTED)


def test_the_same_sensor_is_built_once():
    assert Sensor.named("vlp-16").pattern is Sensor.named("vlp-16").pattern


def test_wrong_rate_is_refused_with_the_possible_ones():
    with pytest.raises(InputError, match=r"rate_hz: hdl-64e turns at 5 to 15 Hz, found 20"):
        Sensor.named("hdl-64e", rate_hz=20)
    with pytest.raises(InputError, match=r"rate_hz: os1-64 turns at 10 or 20 Hz, found 15"):
        Sensor.named("os1-64", rate_hz=15)
    with pytest.raises(InputError, match="rate_hz"):
        Sensor.named("vlp-16", rate_hz=float("nan"))


@pytest.mark.parametrize(("rate_hz", "packets"), [(5, 6250), (10, 3125), (15, 2083)])
def test_hdl_64e_fires_the_packets_of_goodin_2018(rate_hz, packets):
    # 250000 / (8 w) packets of 32 in a turn, whole ones only; one in four from the lower block (Goodin 2018 §3.5.2).
    sensor = Sensor.named("hdl-64e", rate_hz)
    assert sensor.pulses_per_sweep == 32 * packets
    assert sensor.pulses_per_sweep == {5: 200_000, 10: 100_000, 15: 66_656}[rate_hz]
    lower = sensor.pattern.ring < 32
    assert lower.sum() == 32 * (packets // 4)
    # "about 10^6 points per second" (Goodin 2018 §3.3)
    assert_allclose(sensor.pulses_per_sweep / sensor.sweep_s, 1e6, rtol=2e-4)


@pytest.mark.parametrize("rate_hz", [5, 7.5, 10, 15])
def test_hdl_64e_steps_follow_equations_6_and_7_of_goodin_2018(rate_hz):
    pattern = Sensor.named("hdl-64e", rate_hz).pattern
    upper = np.rad2deg(-pattern.rotor_rad[pattern.ring == 63])
    lower = np.rad2deg(-pattern.rotor_rad[pattern.ring == 0])
    upper_step = 360 / (250000 / (8 * rate_hz) - 1)
    lower_step = 360 / (250000 / (32 * rate_hz) - 1)
    # three packets one step apart, the fourth slot is the lower block's
    assert_allclose(np.diff(upper)[:5], upper_step * np.array([1, 1, 2, 1, 1]), rtol=1e-9)
    assert_allclose(np.diff(lower), lower_step, rtol=1e-6)


@pytest.mark.parametrize(("rate_hz", "published"), [(5, 266_667), (10, 133_333), (15, 88_889)])
def test_hdl_64e_s2_fires_the_published_points_per_turn(rate_hz, published):
    # 1.333 million per second (Deschaud 2012: 1.33) over the rate. A turn has whole cycles of 64 pulses here, so up to
    # one cycle is missing.
    pulses = Sensor.named("hdl-64e-s2", rate_hz).pulses_per_sweep
    assert published - 64 < pulses <= published
    assert pulses % 64 == 0


@pytest.mark.parametrize(
    ("name", "published_per_s"),
    [
        ("hdl-64e-s2", 1.333e6),  # Deschaud 2012: 1.33 million
        ("hdl-32e", 694_444),  # 32 per 46.08 us, "about 700,000"
        ("vlp-16", 289_352),  # 16 per 55.296 us, "about 300,000"
        ("vlp-32c", 578_704),  # 32 per 55.296 us, "about 600,000"
        ("vls-128", 2.4e6),  # 128 per 53.33 us
        ("os1-64", 655_360),  # half of the data sheet's 1,310,720, which are at 20 Hz
        ("os1-128", 1_310_720),  # half of the data sheet's 2,621,440
        ("xt32", 640_000),
        ("mid-360", 200_000),
        ("lms-291", 361 * 37.5),
        ("neato-xv-11", 1800),
    ],
)
def test_pulse_rates_are_the_published_ones(name, published_per_s):
    sensor = Sensor.named(name)
    # less than one cycle of the lasers per turn is missing: at most 64 of 133,312 or 16 of 28,928 pulses
    assert_allclose(sensor.pulses_per_sweep / sensor.sweep_s, published_per_s, rtol=6e-4)


@pytest.mark.parametrize("name", ["hdl-64e", "hdl-64e-s2", "hdl-32e", "vlp-16", "vlp-32c", "vls-128"])
def test_velodyne_rings_count_from_the_lowest_laser(name):
    # velodyne_pointcloud's calibration numbers lasers by ascending vertical angle
    assert (np.diff(ring_elevations_deg(Sensor.named(name))) > 0).all()


@pytest.mark.parametrize("name", ["os1-64", "os1-128", "xt32"])
def test_ouster_and_hesai_rings_count_from_the_highest_laser(name):
    assert (np.diff(ring_elevations_deg(Sensor.named(name))) < 0).all()


def test_vlp_16_ring_order_is_the_drivers():
    # velodyne_pointcloud, VLP16db.yaml: laser ids 0, 2, 4 ... 14, 1, 3 ... 15 are rings 0 to 15
    first_cycle = Sensor.named("vlp-16").pattern.ring[:16]
    assert first_cycle.tolist() == [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]


def test_beams_of_a_column_cross_where_their_lenses_are():
    # VLP-16 manual, Table 9-1: heights on the axis of beams that cross 41.9 mm from it; listed to 0.1 mm
    for name, focus_mm in (("vlp-16", 41.9), ("hdl-32e", 28.96), ("vlp-32c", 42.4), ("vls-128", 58.63)):
        pattern = Sensor.named(name).config.pattern
        assert isinstance(pattern, Spinning)
        group = pattern.group[0]
        expected = -focus_mm * np.tan(np.deg2rad(group.elevation_deg))
        assert group.up_mm is not None
        assert_allclose(group.up_mm, expected, atol=0.0501 if name != "vlp-16" else 0.08)


def test_hdl_32e_has_the_even_steps_of_its_manual():
    # -30.67 to 10.67 in 31 steps of 1.333, rounded to 0.01 degrees
    expected = -30 - 2 / 3 + np.arange(32) * 4 / 3
    assert_allclose(ring_elevations_deg(Sensor.named("hdl-32e")), expected, atol=0.0051)


def test_planar_scanners_have_one_ring():
    for name in ("lms-291", "neato-xv-11"):
        assert Sensor.named(name).n_rings == 1


def test_figures_of_goodin_2018_are_in_the_catalogue():
    hdl32, lms = Sensor.named("hdl-32e").config, Sensor.named("lms-291").config
    assert (hdl32.range.min_m, hdl32.range.max_m, hdl32.beam.spot) == (1.0, 70.0, "rectangular")  # Table 2
    assert (hdl32.beam.divergence_horizontal_mrad, hdl32.beam.divergence_vertical_mrad) == (3.3, 0.7)
    assert (lms.range.max_m, lms.beam.spot, lms.signal.cutoff_m, lms.signal.mode) == (80.0, "circular", 1.6, "first")
    assert lms.beam.divergence_horizontal_mrad == 12.9  # Table 3
    for name in ("hdl-64e", "hdl-32e", "vlp-16"):
        signal = Sensor.named(name).config.signal
        assert (signal.mode, signal.cutoff_m) == ("strongest", 1.0)


def test_the_vlp_32mr_fires_as_the_vlp_32c_and_sees_less_far():
    one, other = Sensor.named("vlp-32c"), Sensor.named("vlp-32mr")
    for column in ("direction", "origin_m", "time_ns", "ring"):
        np.testing.assert_array_equal(getattr(one.pattern, column), getattr(other.pattern, column))
    assert other.max_range_m < one.max_range_m


CALIBRATION = Path(__file__).parents[3] / "shared" / "data" / "packets_nebula" / "calibration" / "VLP32MR.yaml"


@pytest.mark.skipif(not CALIBRATION.is_file(), reason="needs the recordings in ../shared/data")
def test_the_vlp_32mr_has_the_angles_of_its_calibration_file():
    words = CALIBRATION.read_text()
    elevation, azimuth = (
        np.rad2deg([float(found) for found in re.findall(rf"{name}: (\S+),", words)])
        for name in ("vert_correction", "rot_correction")
    )
    pattern = Sensor.named("vlp-32mr").config.pattern
    assert isinstance(pattern, Spinning)
    assert_allclose(pattern.group[0].elevation_deg, elevation, atol=5e-4)  # three decimals
    assert_allclose(pattern.group[0].azimuth_deg or [], azimuth, atol=5e-4)
