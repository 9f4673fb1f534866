# SPDX-License-Identifier: Apache-2.0
"""Waveforms: the signal, its peaks and their widths against closed forms and a finely sampled sum."""

import numpy as np
import pytest
from beam_reference import ahead, axis, light_cone, peaks_of, recorded, sub_ray_directions, wall
from pydantic import ValidationError

from hedgerow import Beams, InputError, Scene, SurfaceNoise
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.stencil import make_stencil
from hedgerow.pulse.waveform import WaveformSettings, range_of_ns
from hedgerow.world.pulsed import PhysicsWorld

NARROW = light_cone("circular", 0.4)
FWHM_M = range_of_ns(5.0)


def fire(scene, beams=None, beam=NARROW, max_range_m=60.0, waveforms=False, **more):
    settings = BeamSettings(beam=beam, mode="waveform", **more)
    world = PhysicsWorld(scene, settings, max_range_m=max_range_m)
    return world.fire_detailed(ahead() if beams is None else beams, sub_rays=True, waveforms=waveforms)


def test_range_of_a_nanosecond():
    assert range_of_ns(2.0) == 0.299792458  # there and back


@pytest.mark.parametrize("distance_m", np.linspace(9.0, 9.3, 8))
@pytest.mark.parametrize(("pulse_ns", "sample_ns"), [(5.0, 1.0), (3.0, 0.2), (8.0, 2.0), (2.0, 1.0)])
def test_a_wall_is_one_peak_at_its_range_wherever_the_samples_fall(distance_m, pulse_ns, sample_ns):
    waveform = WaveformSettings(pulse_ns=pulse_ns, sample_ns=sample_ns)
    fired = fire(wall(distance_m, reflectance=0.7, label=3), waveform=waveform)
    returns = fired.log.returns
    # A parabola through the logarithms of a Gaussian is exact; float32 and its logarithm know it to 1e-5 of a sample.
    assert returns.range_m[0, 0] == pytest.approx(distance_m, abs=2e-5)
    assert returns.intensity is not None
    assert returns.intensity[0, 0] == pytest.approx(0.7, rel=1e-4)
    assert returns.label is not None
    assert returns.label[0].tolist() == [3, 0, 0, 0, 0]
    assert np.isinf(returns.range_m[0, 1:]).all()
    # Straight lines between samples: good to a part of the squared step.
    assert fired.echo_width_ns is not None
    assert fired.echo_width_ns[0, 0] == pytest.approx(pulse_ns, rel=0.25 * (sample_ns / pulse_ns) ** 2 + 1e-3)
    assert np.isnan(fired.echo_width_ns[0, 1:]).all()


def two_surfaces(offset_m, near=0.5, far=0.5):
    scene = wall(10.0, y=(-2e-4, 50.0), reflectance=near, label=1)
    return wall(10.0 + offset_m, scene=scene, reflectance=far, label=2)


@pytest.mark.parametrize("factor", [0.3, 0.6, 0.8, 1.0, 1.3, 2.0, 4.0])
@pytest.mark.parametrize(("near", "far"), [(0.4, 0.5), (0.2, 0.6)])  # 5 and 4 of 9 sub-rays: the first are alike
@pytest.mark.parametrize("sample_ns", [1.0, 0.1])
def test_two_echoes_merge_if_closer_than_the_pulse(factor, near, far, sample_ns):
    scene = two_surfaces(factor * FWHM_M, near, far)
    fired = fire(scene, waveform=WaveformSettings(sample_ns=sample_ns))
    at_m = np.arange(7.0, 16.0, 2e-3)
    peaks = peaks_of(recorded([10.0, 10 + factor * FWHM_M], [5 * near / 9, 4 * far / 9], at_m, FWHM_M), at_m)
    found = np.isfinite(fired.log.returns.range_m[0])
    assert found.sum() == len(peaks)
    # Two echoes are no single Gaussian. A parabola over a step of 0.15 m is off by centimetres on their flat top.
    near_enough = {"atol": 0.03, "rtol": 0} if sample_ns == 1.0 else {"atol": 5e-4, "rtol": 0}
    np.testing.assert_allclose(fired.log.returns.range_m[0, found], [peak[0] for peak in peaks], **near_enough)
    assert fired.log.returns.intensity is not None
    np.testing.assert_allclose(fired.log.returns.intensity[0, found], [peak[1] for peak in peaks], rtol=0.01)
    if 5 * near == 4 * far:  # equal echoes have two maxima if they are further apart than 2 sigma, 0.85 widths
        assert len(peaks) == (1 if factor < 0.85 else 2)
    if len(peaks) == 2:
        assert fired.log.returns.label is not None
        assert fired.log.returns.label[0, :2].tolist() == [1, 2]


def test_a_merged_echo_is_wider():
    alone, merged = (fire(two_surfaces(factor * FWHM_M)).echo_width_ns for factor in (0.0, 0.6))
    assert alone is not None and merged is not None
    narrow, wide = alone[0, 0], merged[0, 0]
    assert narrow == pytest.approx(5.0, rel=0.01)
    at_m = np.arange(7.0, 14.0, 1e-3)
    [(_, _, width_m)] = peaks_of(recorded([10, 10 + 0.6 * FWHM_M], [0.5, 0.4], at_m, FWHM_M), at_m)
    assert wide == pytest.approx(width_m / range_of_ns(1.0), rel=0.01)
    assert wide > 1.15 * narrow


def test_a_slanted_wall_stretches_the_echo():
    # Range and width follow from a finely sampled sum over a square spot of many points.
    beam = light_cone("rectangular", 30.0)
    direction = axis([1, 0, 1.5])
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=[direction])
    fired = fire(wall(20.0), beams, beam, sub_rays=81)
    across = (np.arange(60) + 0.5) / 30 - 1
    many = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
    directions, _ = sub_ray_directions(direction, many, beam)
    at_m = np.arange(30.0, 42.0, 2e-3)
    signal = recorded(20 / directions[:, 0], 0.5 * directions[:, 0] / 3600, at_m, FWHM_M)
    # The dense sum has a flat top with two corners: its middle, its mean height and its width at half of that.
    top = signal >= 0.98 * signal.max()
    range_m, height = at_m[top].mean(), signal[top].mean()
    width_m = np.ptp(at_m[signal >= height / 2])
    assert fired.log.returns.range_m[0, 0] == pytest.approx(range_m, abs=0.05)  # the top is as flat over 0.3 m
    assert fired.log.returns.intensity is not None
    assert fired.log.returns.intensity[0, 0] == pytest.approx(height, rel=0.08)  # a Gaussian has a rounder top
    assert width_m > 1.2 * FWHM_M
    assert fired.echo_width_ns is not None
    assert fired.echo_width_ns[0, 0] == pytest.approx(width_m / range_of_ns(1.0), rel=0.08)


def test_the_width_of_an_echo_ends_where_the_next_begins():
    fired = fire(two_surfaces(1.0 * FWHM_M, 0.4, 0.5), waveform=WaveformSettings(sample_ns=0.1))
    assert fired.echo_width_ns is not None
    left, right = fired.echo_width_ns[0, :2]
    at_m = np.arange(7.0, 14.0, 1e-3)
    signal = recorded([10, 10 + FWHM_M], [0.2, 0.2], at_m, FWHM_M)
    above = at_m[signal >= peaks_of(signal, at_m)[0][1] / 2]
    # The valley between them is above half of both: it lies half way, and together they are as wide as the whole.
    assert left == pytest.approx(right, rel=0.03)
    assert left + right == pytest.approx((above[-1] - above[0]) / range_of_ns(1.0), rel=0.01)


def test_waveforms_are_the_sum_of_all_echoes():
    rng = np.random.default_rng(1)
    scene = Scene()
    corners = rng.uniform([8, -0.3, -0.3], [14, 0.3, 0.3], (60, 1, 3)) + rng.normal(size=(60, 3, 3)) * 0.1
    scene.add_mesh(corners.reshape(-1, 3), np.arange(180).reshape(-1, 3), reflectance=rng.uniform(0.1, 0.9, 60))
    wall(15.0, scene=scene)
    normals = np.r_[np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), [[1, 0, 0]] * 2]
    cone, stencil = light_cone("circular", 40.0), make_stencil("circular", 25).in_parts()
    directions = sub_ray_directions([1, 0, 0], stencil.points, cone)[0]
    origins = np.c_[np.zeros(40), rng.uniform(-0.1, 0.1, (40, 2))]
    beams = Beams.from_arrays(origins=origins, directions=np.tile([1.0, 0, 0], (40, 1)))
    fired = fire(scene, beams, cone, sub_rays=25, waveforms=True)
    several = 0
    assert fired.waveforms is not None
    assert fired.waveforms.samples.shape == (40, len(fired.waveforms.range_m))
    np.testing.assert_allclose(fired.waveforms.range_m, range_of_ns(1.0) * np.arange(len(fired.waveforms.range_m)))
    for i in range(40):
        assert fired.sub_rays is not None
        hits, light = fired.sub_rays.range_m[i], np.nan_to_num(fired.sub_rays.intensity[i]) / 25
        normal = normals[fired.sub_rays.element[i]]
        slope = np.hypot(normal[:, 1], normal[:, 2]) / np.abs((normal * directions).sum(axis=1))
        slant_m = np.where(np.isfinite(hits), hits, 0) * np.tan(0.02) * stencil.part_sigma * slope
        signal = recorded(hits, light, fired.waveforms.range_m, FWHM_M, slant_m)
        np.testing.assert_allclose(fired.waveforms.samples[i], signal, atol=1e-6)
        expected = np.array(peaks_of(signal, fired.waveforms.range_m)[:5])
        several += len(expected) > 1
        n = len(expected)
        assert np.isfinite(fired.log.returns.range_m[i]).sum() == n
        # The sum is float32 in the engine, and a flat peak turns its rounding into up to a millimetre.
        np.testing.assert_allclose(fired.log.returns.range_m[i, :n], expected[:, 0], atol=1e-3)
        assert fired.log.returns.intensity is not None
        np.testing.assert_allclose(fired.log.returns.intensity[i, :n], expected[:, 1], rtol=1e-4)
        assert fired.echo_width_ns is not None
        np.testing.assert_allclose(fired.echo_width_ns[i, :n] * range_of_ns(1.0), expected[:, 2], atol=2e-3)
    assert several > 20


def ground(height_m=1.8, **finish):
    scene = Scene()
    corners = [[-500, -500, -height_m], [500, -500, -height_m], [500, 500, -height_m], [-500, 500, -height_m]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], **finish)
    return scene


@pytest.mark.parametrize("distance_m", [10.0, 30.0, 60.0, 90.0])
def test_flat_ground_is_one_echo_however_grazing(distance_m):
    for sub_rays in (9, 37):
        beams = Beams.from_arrays(origins=[[0, 0, 0]], directions=axis([[distance_m, 0.3, -1.8]]))
        fired = fire(ground(), beams, light_cone("circular", 3.0), sub_rays=sub_rays, max_range_m=300.0)
        found = fired.log.returns.range_m[0]
        assert np.isfinite(found).sum() == 1
        assert fired.echo_width_ns is not None
        # Of a uniform spot (1 sigma: a quarter of its width) on ground that is seen at this angle, and the pulse.
        away_m = np.hypot(distance_m, 1.8)
        depth_m = 2.355 * away_m * 3e-3 / 4 * distance_m / 1.8
        expected_m = np.hypot(FWHM_M, depth_m)
        # A uniform disk is no Gaussian, and what is far down the ground is farther still.
        assert fired.echo_width_ns[0, 0] * range_of_ns(1.0) == pytest.approx(expected_m, rel=0.35)


def test_a_tilted_surface_stretches_its_echo_and_keeps_its_light():
    total = []
    for tilt in (0.0, 1.2):
        along = np.array([np.tan(tilt), 0, 1.0]) * 3
        corners = [np.array([20.0, side, 0]) + sign * along for side, sign in ((-3, -1), (3, -1), (3, 1), (-3, 1))]
        scene = Scene()
        scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], lambertian=False)
        samples = fire(scene, beam=light_cone("circular", 20.0), sub_rays=37, waveforms=True).waveforms
        assert samples is not None
        total.append(samples.samples.astype(float).sum())
    assert total[1] == pytest.approx(total[0], rel=1e-3)  # a sum over samples a seventh of the pulse apart


def test_dim_peaks_are_below_the_threshold():
    scene = two_surfaces(4 * FWHM_M, 0.1, 0.6)  # peaks of 0.056 and 0.267
    assert np.isfinite(fire(scene, threshold=0.05).log.returns.range_m[0]).sum() == 2
    dim = fire(scene, threshold=0.1).log.returns
    assert dim.label is not None
    assert dim.label[0].tolist() == [2, 0, 0, 0, 0]
    assert np.isinf(fire(scene, threshold=0.3).log.returns.range_m).all()


def test_peaks_have_the_noise_of_their_surface_and_keep_their_order():
    scene = two_surfaces(2 * FWHM_M)
    noisy = Scene()
    wall(10.0, y=(-2e-4, 50.0), scene=noisy, noise=SurfaceNoise(0.05))
    wall(10.0 + 2 * FWHM_M, scene=noisy, noise=SurfaceNoise(0.02))
    returns = fire(noisy, ahead(2000)).log.returns
    np.testing.assert_allclose(returns.range_m[:, :2].std(axis=0), [0.05, 0.02], rtol=0.08)  # 5 sigma of 2000 draws
    np.testing.assert_allclose(returns.range_m[:, :2].mean(axis=0), fire(scene).log.returns.range_m[0, :2], atol=0.006)


def test_black_things_are_still_seen_without_a_threshold():
    assert fire(wall(10.0, reflectance=0.0)).log.returns.range_m[0, 0] == pytest.approx(10, abs=1e-4)


def test_nothing_gives_a_flat_record():
    fired = fire(wall(-10.0), waveforms=True)
    assert fired.waveforms is not None
    assert not fired.waveforms.samples.any()
    assert np.isinf(fired.log.returns.range_m).all()


def test_records_without_end_or_beyond_memory_are_refused():
    with pytest.raises(InputError, match="waveforms: a record needs an end"):
        fire(wall(10.0), max_range_m=np.inf, waveforms=True)
    with pytest.raises(InputError, match="take over 4 GiB; fire fewer at once"):
        fire(wall(10.0), ahead(20_000), max_range_m=10_000.0, waveforms=True)
    with pytest.raises(ValidationError, match="sample_ns: 3 is more than half of pulse_ns, 5"):
        WaveformSettings(sample_ns=3.0)
