# SPDX-License-Identifier: Apache-2.0
"""Encoder steps and the beam's cone (Deschaud 2012 §IV), by closed form and by statistics with fixed seeds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from hedgerow.frames import Pose
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Spinning
from hedgerow.sensor.drive import Aim, apply_aim
from hedgerow.sensor.scan.pattern import Pattern

ALARM = 1e-3  # false-alarm rate of each statistical test; the seeds are fixed, so each either always passes or never


def azimuth_rad(beams) -> np.ndarray:
    return np.arctan2(beams.direction[:, 1].astype(float), beams.direction[:, 0].astype(float))


def offsets(name, **options):
    """Offsets of drawn rays from the axis of their beam: to the left and upward, as tangents."""
    sensor = Sensor.named(name)
    axis = sensor.sweep().direction.astype(float)
    ray = sensor.sweep(cone=True, **options).direction.astype(float)
    left = np.stack([-axis[:, 1], axis[:, 0], np.zeros(len(axis))], axis=1)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    up = np.cross(axis, left)
    along = np.einsum("ij,ij->i", ray, axis)
    return np.einsum("ij,ij->i", ray, left) / along, np.einsum("ij,ij->i", ray, up) / along, sensor


def test_rounded_encoder_puts_every_pulse_on_a_count():
    sensor = Sensor.named("hdl-64e-s2")
    exact, rounded = sensor.sweep(), sensor.sweep(encoder="rounded")
    step = np.deg2rad(0.09)
    pattern = sensor.config.pattern
    assert isinstance(pattern, Spinning)
    offset = np.deg2rad(np.array(pattern.group[0].azimuth_deg))
    counts = (azimuth_rad(rounded) - np.tile(offset, len(rounded) // 64)) / step
    assert_allclose(counts, np.rint(counts), atol=2e-4)  # float32 directions: 1e-7 rad of a 1.6 mrad step
    moved = (azimuth_rad(rounded) - azimuth_rad(exact) + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(moved).max() <= step / 2 + 2e-7
    assert_allclose(rounded.direction[:, 2], exact.direction[:, 2], atol=0)


def test_rounded_encoder_turns_the_origins_too():
    sensor = Sensor.named("hdl-64e-s2")
    exact, rounded = sensor.sweep(), sensor.sweep(encoder="rounded")
    turn = azimuth_rad(rounded) - azimuth_rad(exact)
    before = np.arctan2(exact.origin_m[:, 1], exact.origin_m[:, 0])
    after = np.arctan2(rounded.origin_m[:, 1], rounded.origin_m[:, 0])
    # the origin is 26 mm off the axis in float32: 2e-9 m of 0.026 m
    assert_allclose((after - before - turn + np.pi) % (2 * np.pi), np.pi, atol=1e-6)


def test_uniform_encoder_error_is_uniform_within_one_step_of_the_count():
    sensor = Sensor.named("hdl-64e-s2")
    rounded, drawn = sensor.sweep(encoder="rounded"), sensor.sweep(encoder="uniform", seed=3)
    error = (azimuth_rad(drawn) - azimuth_rad(rounded) + np.pi) % (2 * np.pi) - np.pi
    share = error / np.deg2rad(0.09) + 0.5
    assert stats.kstest(share[:20_000], "uniform").pvalue > ALARM


def test_exact_encoder_of_a_planar_scanner_has_nothing_to_round():
    sensor = Sensor.named("lms-291")  # encoder_step_deg = 0
    assert sensor.sweep(encoder="uniform", seed=1).equal(sensor.sweep())


@pytest.mark.parametrize("name", ["os1-64", "mid-360"])
def test_round_cone_is_filled_uniformly(name):
    left, up, sensor = offsets(name, seed=5)
    half_h = np.tan(sensor.config.beam.divergence_horizontal_mrad * 1e-3 / 2)
    half_v = np.tan(sensor.config.beam.divergence_vertical_mrad * 1e-3 / 2)
    squared = (left / half_h) ** 2 + (up / half_v) ** 2
    # uniform in an ellipse: the scaled radius squared and the angle are uniform
    # float32 directions move the offset by 1e-7 of a half axis of 2.5e-4 or more
    assert squared.max() < 1.002
    assert stats.kstest(np.clip(squared[:15_000], 0, 1), "uniform").pvalue > ALARM
    angle = np.arctan2(up / half_v, left / half_h) / (2 * np.pi) + 0.5
    assert stats.kstest(angle[:15_000], "uniform").pvalue > ALARM


def test_rectangular_cone_is_filled_uniformly():
    left, up, _ = offsets("vlp-16", seed=5)
    half_h, half_v = np.tan(0.003 / 2), np.tan(0.0015 / 2)
    assert np.abs(left).max() < half_h * 1.0005
    assert np.abs(up).max() < half_v * 1.0005
    assert stats.kstest(left / half_h / 2 + 0.5, "uniform").pvalue > ALARM
    assert stats.kstest(up / half_v / 2 + 0.5, "uniform").pvalue > ALARM
    # independent of each other: the correlation of 28,928 pairs has a standard deviation of 1 / sqrt(28928) = 0.006
    assert abs(np.corrcoef(left, up)[0, 1]) < stats.norm.isf(ALARM / 2) / np.sqrt(len(left))


def test_truncated_cone_starts_in_the_aperture():
    # OS1: 10 mm aperture and 2.27 mrad; a ray leaves the aperture at the same relative place where it meets the spot
    sensor = Sensor.named("os1-64")
    ideal, drawn = sensor.sweep(), sensor.sweep(cone=True, seed=2)
    shift = drawn.origin_m - ideal.origin_m
    tilt = drawn.direction.astype(float) / np.einsum("ij,ij->i", drawn.direction, ideal.direction)[:, None]
    tilt -= ideal.direction
    assert np.linalg.norm(shift, axis=1).max() < 0.005 + 1e-6
    assert_allclose(shift / 0.005, tilt / np.tan(0.00227 / 2), atol=3e-4)  # float32: 1e-7 of 1.1e-3


def test_cone_of_a_beam_straight_up_is_drawn_too():
    n = 1000
    up = np.tile(np.array([0, 0, 1], dtype=np.float32), (n, 1))
    pattern = Pattern(np.zeros((n, 3), np.float32), up, np.arange(n), np.zeros(n, np.uint16), np.zeros(n), 1e9, 1)
    beam = Sensor.named("vlp-16").config.beam
    _, direction = apply_aim(pattern, slice(None), np.arange(n), Aim(cone=True), beam, 0.0)
    assert_allclose(np.linalg.norm(direction, axis=1), 1, atol=2e-7)
    assert np.abs(direction[:, 0]).max() > 5e-4  # the spot has an extent both ways
    assert np.abs(direction[:, 1]).max() > 1e-3


def test_aim_options_are_off_by_default():
    sensor = Sensor.named("vlp-16")
    assert sensor.sweep(Pose()).equal(sensor.sweep(Pose(), encoder="exact", cone=False, seed=77))


def test_other_seeds_give_other_rays():
    sensor = Sensor.named("vlp-16")
    assert not sensor.sweep(cone=True, seed=1).equal(sensor.sweep(cone=True, seed=2))
    assert sensor.sweep(cone=True, seed=1).equal(sensor.sweep(cone=True, seed=1))
