# SPDX-License-Identifier: Apache-2.0
"""The receiver against the slow one, and two surfaces around the cutoff."""

import numpy as np
import pytest
from beam_reference import ahead, light_cone, received, received_rays, sub_ray_directions, wall

from hedgerow import Beams, InputError, Scene
from hedgerow.pulse.receiver import BeamSettings, Processing, resolve_pulse
from hedgerow.pulse.stencil import make_stencil
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import RETURN_MODES, ReturnMode
from hedgerow.world.pulsed import PhysicsWorld

CONE = light_cone("rectangular", 200.0)
WINDOWS: list[ReturnMode] = [mode for mode in RETURN_MODES if mode != "waveform"]
N = 150


def plates(rng, n_sub_rays, n=N, miss=0.25):
    """A small plate in the way of every sub-ray of n pulses side by side, at ranges that often lie close together."""
    points = make_stencil("rectangular", n_sub_rays).points.astype(float)
    directions, _ = sub_ray_directions([1, 0, 0], points, CONE)
    origins = np.c_[np.zeros(n), 20.0 * np.arange(n), np.zeros(n)]
    scene = Scene()
    # Few distinct distances, so that many windows end exactly with a plate, and a few alike in light.
    steps = rng.integers(0, 9, (n, n_sub_rays)) * 0.25 + rng.choice([0, 0.003], (n, n_sub_rays))
    range_m = np.where(rng.random((n, n_sub_rays)) < miss, np.inf, 4.0 + steps)
    reflectance = rng.choice([0.0, 0.2, 0.4, 0.8, 3.0], (n, n_sub_rays))
    across, up = np.array([0, 0.02, 0]), np.array([0, 0, 0.02])
    vertices, brightness, labels = [], [], []
    for i, k in np.argwhere(np.isfinite(range_m)):
        middle = origins[i] + range_m[i, k] * directions[k]
        vertices += [middle - across - up, middle + across - up, middle + across + up, middle - across + up]
        brightness += [reflectance[i, k]] * 2
        labels += [k + 1] * 2
    first = 4 * np.arange(len(vertices) // 4)
    triangles = np.stack([[first, first + 1, first + 2], [first, first + 2, first + 3]]).transpose(2, 0, 1)
    scene.add_mesh(vertices, triangles.reshape(-1, 3), reflectance=brightness, label=labels, lambertian=False)
    beams = Beams.from_arrays(origins=origins, directions=np.tile([1.0, 0, 0], (n, 1)))
    return scene, beams, range_m, reflectance


@pytest.mark.parametrize("mode", WINDOWS)
@pytest.mark.parametrize(
    ("n_sub_rays", "cutoff_m", "threshold"), [(9, 0.5, 0.0), (9, 1.0, 0.15), (25, 0.25, 0.05), (4, 0.0, 0.0)]
)
def test_returns_are_those_of_the_slow_receiver(mode, n_sub_rays, cutoff_m, threshold):
    scene, beams, range_m, reflectance = plates(np.random.default_rng(n_sub_rays), n_sub_rays)
    settings = BeamSettings(beam=CONE, sub_rays=n_sub_rays, mode=mode, cutoff_m=cutoff_m, threshold=threshold)
    fired = PhysicsWorld(scene, settings).fire_detailed(beams, sub_rays=True)
    seen, returns = fired.sub_rays, fired.log.returns
    # The plates are where they were put: float32 knows 20 N m to 1e-4.
    assert seen is not None
    np.testing.assert_allclose(seen.range_m, range_m, atol=5e-4)
    np.testing.assert_allclose(seen.intensity, np.where(np.isfinite(range_m), reflectance, np.nan), rtol=1e-6)
    shaped = {name: np.reshape(column, (N, -1)) for name, column in returns.columns().items() if column is not None}
    several = 0
    for i in range(N):
        light = np.nan_to_num(seen.intensity[i].astype(float)) / n_sub_rays
        expected = received(seen.range_m[i], light, mode, cutoff_m, threshold)
        several += len(expected) > 1
        n = len(expected)
        np.testing.assert_allclose(shaped["range_m"][i, :n], [e[0] for e in expected], rtol=3e-7)
        np.testing.assert_allclose(shaped["intensity"][i, :n], [e[1] for e in expected], rtol=1e-5, atol=1e-9)
        brightest = [e[2] for e in expected]
        assert shaped["label"][i, :n].tolist() == [k + 1 for k in brightest]
        assert shaped["element"][i, :n].tolist() == seen.element[i, brightest].tolist()
        assert np.isinf(shaped["range_m"][i, n:]).all()
    assert several > N / 4 or mode in ("first", "strongest", "last", "second")  # the case is not trivial


PAPER_MODES: list[ReturnMode] = ["first", "strongest", "last", "strongest+last"]


@pytest.mark.parametrize("mode", PAPER_MODES)
@pytest.mark.parametrize(
    ("n_sub_rays", "cutoff_m", "threshold"), [(9, 0.5, 0.0), (9, 1.0, 0.3), (25, 0.25, 0.2), (4, 0.0, 0.0)]
)
def test_the_papers_processing_is_that_of_the_slow_one(mode, n_sub_rays, cutoff_m, threshold):
    scene, beams, _, _ = plates(np.random.default_rng(n_sub_rays), n_sub_rays)
    settings = BeamSettings(
        beam=CONE, sub_rays=n_sub_rays, mode=mode, processing="paper", cutoff_m=cutoff_m, threshold=threshold
    )
    fired = PhysicsWorld(scene, settings).fire_detailed(beams, sub_rays=True)
    seen, returns = fired.sub_rays, fired.log.returns
    assert seen is not None
    shaped = {name: np.reshape(column, (N, -1)) for name, column in returns.columns().items() if column is not None}
    n_found = 0
    for i in range(N):
        intensity = np.nan_to_num(seen.intensity[i].astype(float))
        expected = received_rays(seen.range_m[i], intensity, mode, cutoff_m, threshold)
        n = len(expected)
        n_found += n
        np.testing.assert_allclose(shaped["range_m"][i, :n], [e[0] for e in expected], rtol=1e-7)
        np.testing.assert_allclose(shaped["intensity"][i, :n], [e[1] for e in expected], rtol=3e-7, atol=1e-9)
        assert shaped["label"][i, :n].tolist() == [e[2] + 1 for e in expected]
        assert np.isinf(shaped["range_m"][i, n:]).all()
    assert n_found > (1.5 * N if mode == "strongest+last" else 0.9 * N)  # the case is not trivial


@pytest.mark.parametrize("threshold", [0.0, 0.15])
def test_first_strongest_and_last_stand_in_this_order(threshold):
    scene, beams, _, _ = plates(np.random.default_rng(7), 9)
    range_m = {
        mode: PhysicsWorld(scene, BeamSettings(beam=CONE, mode=mode, cutoff_m=0.5, threshold=threshold))
        .fire(beams)
        .returns.range_m
        for mode in WINDOWS
    }
    first, strongest, last = (range_m[mode] for mode in ("first", "strongest", "last"))
    assert (first <= strongest).all()
    assert (strongest <= last).all()
    assert np.mean((first < strongest) & (strongest < last)) > 0.05
    both = range_m["strongest+last"]
    np.testing.assert_array_equal(both[:, 0], strongest)
    np.testing.assert_array_equal(np.where(np.isinf(both[:, 1]), strongest, both[:, 1]), last)
    np.testing.assert_array_equal(range_m["all"][:, 0], first)


# A plate covers the left half of the spot, a wall stands behind: 5 of 9 sub-rays (left or in the middle) on the plate.
CUTOFF_M = 1.25


def two_surfaces(offset_m, near_reflectance, far_reflectance):
    scene = wall(10.0, y=(-2e-4, 50.0), reflectance=near_reflectance, label=1)
    return wall(10.0 + offset_m, scene=scene, reflectance=far_reflectance, label=2)


def answer(scene, mode, processing: Processing = "light"):
    # So narrow a cone that the sub-rays' ranges agree to the last float32 bit on each surface.
    settings = BeamSettings(beam=light_cone("circular", 0.4), mode=mode, processing=processing, cutoff_m=CUTOFF_M)
    world = PhysicsWorld(scene, settings)
    returns = world.fire(ahead()).returns
    assert returns.intensity is not None and returns.label is not None
    return [column.reshape(-1) for column in (returns.range_m, returns.intensity, returns.label)]


@pytest.mark.parametrize("factor", [0.2, 0.99, 1.0])
@pytest.mark.parametrize("mode", WINDOWS)
def test_two_surfaces_within_the_cutoff_are_one_mixed_return(factor, mode):
    range_m, intensity, label = answer(two_surfaces(factor * CUTOFF_M, 0.3, 0.6), mode)
    light = np.array([5 * 0.3, 4 * 0.6]) / 9
    mean = light @ [10, 10 + factor * CUTOFF_M] / light.sum()
    assert range_m[0] == pytest.approx(mean, abs=1e-5)
    assert intensity[0] == pytest.approx(light.sum(), rel=1e-5)
    assert label[0] == 2  # brightest sub-ray
    assert np.isinf(range_m[1:]).all()


@pytest.mark.parametrize("factor", [1.01, 3.0])
@pytest.mark.parametrize(("near", "far", "strongest"), [(0.3, 0.6, 1), (0.6, 0.3, 0), (0.4, 0.5, 0)])
def test_two_surfaces_beyond_the_cutoff_are_told_apart(factor, near, far, strongest):
    scene = two_surfaces(factor * CUTOFF_M, near, far)
    surfaces = [(10.0, 5 * near / 9), (10 + factor * CUTOFF_M, 4 * far / 9)]
    expected = {
        "first": [0],
        "strongest": [strongest],  # by all its light: in the last case the far one has the brighter sub-rays
        "last": [1],
        "strongest+last": [0, 1] if strongest == 0 else [1],
        "all": [0, 1],
    }
    for mode, which in expected.items():
        range_m, intensity, label = answer(scene, mode)
        found = np.isfinite(range_m)
        np.testing.assert_allclose(range_m[found], [surfaces[k][0] for k in which], atol=1e-5)
        np.testing.assert_allclose(intensity[found], [surfaces[k][1] for k in which], rtol=1e-5)
        assert label[found].tolist() == [k + 1 for k in which]


@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0])
def test_the_papers_returns_of_two_surfaces_are_plain_averages_and_single_rays(factor):
    far_m, together = 10 + factor * CUTOFF_M, factor <= 1
    expected = {
        "first": ([(5 * 10 + 4 * far_m) / 9], [(5 * 0.3 + 4 * 0.6) / 9]) if together else ([10.0], [0.3]),
        "strongest": ([far_m], [0.6]),  # one ray, at its own range, however much light there is in front
        "last": ([far_m], [0.6]),
        "strongest+last": ([far_m, np.inf], [0.6, np.nan]),  # the same ray: one return
    }
    for mode, (range_m, intensity) in expected.items():
        found = answer(two_surfaces(factor * CUTOFF_M, 0.3, 0.6), mode, "paper")
        np.testing.assert_allclose(found[0], range_m, atol=1e-5)
        np.testing.assert_allclose(found[1], intensity, rtol=1e-5)
    both_m, both_intensity, label = answer(two_surfaces(factor * CUTOFF_M, 0.6, 0.3), "strongest+last", "paper")
    np.testing.assert_allclose(both_m, [10, far_m], atol=1e-5)
    np.testing.assert_allclose(both_intensity, [0.6, 0.3], rtol=1e-5)
    assert label.tolist() == [1, 2]


@pytest.mark.parametrize("mode", ["all", "waveform"])
def test_the_papers_processing_refuses_modes_that_the_paper_has_not(mode):
    with pytest.raises(InputError, match=f"processing: Goodin 2018 has no mode {mode}"):
        PhysicsWorld(wall(10.0), BeamSettings(mode=mode, processing="paper")).fire(ahead())


def test_the_threshold_counts_all_light_of_a_return():
    scene = two_surfaces(3.0, 0.3, 0.6)  # light 0.167 and 0.267
    for threshold, seen_m in ((0.16, 10.0), (0.2, 13.0), (0.3, np.inf)):
        settings = BeamSettings(beam=light_cone("circular", 0.4), mode="first", threshold=threshold)
        range_m = PhysicsWorld(scene, settings).fire(ahead()).returns.range_m[0]
        assert range_m == pytest.approx(seen_m, abs=1e-5)


def test_at_most_max_returns_are_given_the_nearest_first():
    scene = Scene()
    for i in range(9):
        wall(5.0 + 3 * i, y=(-50, 0.0009 * 2.5 * (i - 4)), scene=scene, label=i)
    settings = BeamSettings(beam=light_cone("rectangular", 2.0), sub_rays=81, mode="all", max_returns=3)
    returns = PhysicsWorld(scene, settings).fire(ahead()).returns
    assert returns.range_m.shape == (1, 3)
    assert np.isfinite(returns.range_m).all()
    assert (np.diff(returns.range_m) > 0).all()


def test_mode_and_cutoff_come_from_the_sensor_unless_given():
    velodyne, sick, ouster = (Sensor.named(name) for name in ("hdl-64e", "lms-291", "os1-64"))
    assert resolve_pulse(BeamSettings(), velodyne)[2:4] == ("strongest", 1.0)
    assert resolve_pulse(BeamSettings(), sick)[2:4] == ("first", 1.6)
    assert resolve_pulse(BeamSettings(), ouster)[2:4] == ("strongest", 0.75)  # not known: a pulse of 5 ns
    assert resolve_pulse(BeamSettings(mode="last", cutoff_m=0.3), sick)[2:4] == ("last", 0.3)
    assert resolve_pulse(BeamSettings(), None)[2:4] == ("first", 0.75)
