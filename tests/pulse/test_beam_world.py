# SPDX-License-Identifier: Apache-2.0
"""Pulses with width against closed forms: walls, edges, light, noise; and what must not change the answer."""

from typing import Any

import numpy as np
import pytest
from beam_reference import ahead, axis, light_cone, sub_ray_directions, wall
from pydantic import ValidationError
from scipy.stats import chi2

from hedgerow import Beams, InputError, Pose, Scene, SceneWorld, SurfaceNoise
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.stencil import make_stencil
from hedgerow.sensor import Sensor
from hedgerow.world import World
from hedgerow.world.pulsed import PhysicsWorld

FALSE_ALARM = 1e-6  # per test; every seed is fixed, so a pass stays a pass


def fire(scene, beams, seed=0, **settings):
    return PhysicsWorld(scene, BeamSettings(**settings)).fire(beams, seed).returns


@pytest.mark.parametrize("incidence_deg", [0, 20, 45, 70, 80])
@pytest.mark.parametrize("spot", ["circular", "rectangular", "elliptical"])
@pytest.mark.parametrize("n", [1, 9, 30])
def test_range_and_intensity_of_a_flat_wall_at_any_incidence(incidence_deg, spot, n):
    beam = light_cone(spot, 20.0, 20.0 if spot == "circular" else 5.0, aperture_mm=30.0)
    angle = np.radians(incidence_deg)
    direction = axis([np.cos(angle), np.sin(angle), 0.1])
    returns = fire(
        wall(10.0, y=(-9e3, 9e3), reflectance=0.6),
        Beams.from_arrays(origins=(0, 0, 0), directions=[direction]),
        beam=beam,
        sub_rays=n,
        mode="strongest",
        cutoff_m=500.0,
    )
    directions, shift = sub_ray_directions(direction, make_stencil(spot, n).points.astype(float), beam)
    cosine = directions[:, 0]
    range_m = (10.0 - shift[:, 0]) / cosine
    # Light weighs by the cosine: the mean range is that of the spot on the wall, its intensity the mean cosine.
    assert returns.range_m[0] == pytest.approx((cosine * range_m).sum() / cosine.sum(), rel=2e-6)
    assert returns.intensity is not None
    assert returns.intensity[0] == pytest.approx(0.6 * cosine.mean(), rel=2e-6)
    # Up to second order in the divergence this is the axis alone.
    slope = np.tan(np.arccos(direction[0])) * 0.01
    assert returns.range_m[0] == pytest.approx(10 / direction[0], rel=slope**2 + 1e-4)


@pytest.mark.parametrize("aperture_mm", [0.0, 40.0])
def test_an_edge_across_the_spot_cuts_off_the_share_that_geometry_says(aperture_mm):
    beam, n = light_cone("circular", 10.0, aperture_mm=aperture_mm), 400
    radius_m = aperture_mm * 5e-4 + 10 * np.tan(0.005)
    for place in (-1.1, -0.9, -0.5, 0.0, 0.3, 0.8, 0.99, 1.01):
        scene = wall(10.0, y=(-5, place * radius_m), reflectance=1.0, lambertian=False)
        settings: dict[str, Any] = {"beam": beam, "sub_rays": 25, "sampling": "stratified"}
        intensity = fire(scene, ahead(n), seed=5, **settings).intensity
        assert intensity is not None
        light = np.nan_to_num(intensity)
        x = np.clip(place, -1, 1)
        covered = 0.5 + (x * np.sqrt(1 - x * x) + np.arcsin(x)) / np.pi
        # Of 25 cells at most 10 are cut by the edge, each covered or not: 400 pulses know the share to 0.2 * sqrt(10)
        # / 25 / sqrt(400) = 0.0016 at most, so 5 sigma are 0.008.
        assert light.mean() == pytest.approx(covered, abs=0.008)
        assert (light > 0).any() == (place > -1)


def test_the_footprint_has_the_size_of_the_divergences():
    # A checkerboard's labels tell the fields that the spot reaches: 3.3 by 0.7 mrad at 50 m is 165 by 35 mm.
    scene, side_m = Scene(), 0.005
    y, z = (np.arange(-40, 40) * side_m, np.arange(-20, 20) * side_m)
    corner = np.stack(np.meshgrid(y, z, indexing="ij"), axis=-1).reshape(-1, 2)
    square = side_m * np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1]])
    vertices = np.c_[np.full(len(corner), 50.0), corner][:, None] + square
    first = 4 * np.arange(len(corner))
    triangles = np.concatenate([np.c_[first, first + 1, first + 2], np.c_[first, first + 2, first + 3]])
    scene.add_mesh(vertices.reshape(-1, 3), triangles)
    settings = BeamSettings(sampling="stratified", sub_rays=81)
    fired = PhysicsWorld(scene, settings).fire_detailed(ahead(300), 1, sensor=Sensor.named("hdl-64e"), sub_rays=True)
    assert fired.sub_rays is not None
    assert (fired.sub_rays.element >= 0).all()
    seen = corner[fired.sub_rays.element.ravel() % len(corner)] + side_m / 2
    size_mm = 1000 * (seen.max(axis=0) - seen.min(axis=0)) + 1000 * side_m
    np.testing.assert_allclose(size_mm, [165, 35], atol=2 * 1000 * side_m)  # whole fields


def test_a_pulse_returns_though_its_axis_misses():
    scene = wall(10.0, y=(0.01, 5), reflectance=1.0)
    assert np.isinf(SceneWorld(scene).fire(ahead()).returns.range_m[0])
    returns = fire(scene, ahead(), beam=light_cone("circular", 10.0))
    assert returns.range_m[0] == pytest.approx(10, abs=1e-3)
    assert returns.intensity is not None
    assert returns.intensity[0] == pytest.approx(4 / 9, rel=1e-3)


def test_one_sub_ray_without_width_is_what_the_scene_fires():
    scene, rng = wall(10.0, permeability=0.5, reflectance=0.3, label=4), np.random.default_rng(0)
    scene.add_gaussians(
        rng.uniform([6, -2, -2], [9, 2, 2], (40, 3)), np.tile(np.eye(3) * 0.01, (40, 1, 1)), permeability=0.4,
        intensity=0.5, intensity_sigma=0.2, label=7,
    )  # fmt: skip
    directions = axis(np.c_[np.ones(500), rng.uniform(-0.2, 0.2, (500, 2))])
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=directions)
    world = PhysicsWorld(scene, max_range_m=50.0)
    assert isinstance(world, World)
    fired = world.fire(beams, 3).returns
    # Every draw has the same key. (On a noisy mesh the two differ: there the noise belongs to the receiver.)
    assert fired.equal(SceneWorld(scene, max_range_m=50.0).fire(beams, 3).returns)
    assert fired.label is not None
    assert set(np.unique(fired.label)) == {0, 4, 7}


def test_light_falls_with_the_range_if_asked_to():
    for distance_m in (5.0, 20.0):
        scene = wall(distance_m, reflectance=0.8)
        plain = fire(scene, ahead()).intensity
        fallen = fire(scene, ahead(), range_falloff=True, falloff_range_m=10.0).intensity
        assert plain is not None and fallen is not None
        assert plain[0] == pytest.approx(0.8)
        assert fallen[0] == pytest.approx(0.8 * (10 / distance_m) ** 2, rel=1e-5)
        seen = fire(scene, ahead(), range_falloff=True, threshold=0.5).range_m[0]
        assert np.isfinite(seen) == (distance_m < 10)


def test_retro_reflectors_outshine_at_any_incidence():
    scene = wall(10.0, y=(-50, 0), reflectance=0.9, label=1)
    wall(12.0, y=(0, 50), scene=scene, reflectance=30.0, lambertian=False, label=2)
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=[axis([1, 0.0005, 0.5])])
    returns = fire(scene, beams, beam=light_cone("circular", 10.0), mode="strongest", cutoff_m=1.0)
    assert returns.label is not None
    assert returns.label[0] == 2
    assert returns.intensity is not None
    assert returns.intensity[0] == pytest.approx(30 * 5 / 9, rel=1e-5)


def test_unknown_intensities_count_but_are_not_told():
    scene = wall(10.0, y=(-50, 0), reflectance=0.1, label=1)
    wall(12.0, y=(0, 50), scene=scene, reflectance=np.nan, label=2)
    settings = {"beam": light_cone("circular", 10.0), "mode": "strongest", "cutoff_m": 1.0}
    returns = fire(scene, ahead(), **settings)
    assert returns.label is not None and returns.intensity is not None
    assert (returns.label[0], np.isnan(returns.intensity[0])) == (2, True)
    label = fire(scene, ahead(), unknown_intensity=0.01, **settings).label
    assert label is not None
    assert label[0] == 1


@pytest.mark.parametrize("incidence_deg", [0, 60])
@pytest.mark.parametrize("range_m", [10.0, 40.0])
def test_noise_is_drawn_once_per_return_by_range_incidence_and_material(incidence_deg, range_m):
    n, noise = 4000, SurfaceNoise(0.01, 0.004, sigma_per_m=0.001)
    direction = [np.cos(np.radians(incidence_deg)), np.sin(np.radians(incidence_deg)), 0.0]
    scene = wall(range_m * direction[0], y=(-500, 500), noise=noise)
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=np.tile(direction, (n, 1)))
    returns = fire(scene, beams, seed=2, beam=light_cone("circular", 0.1), mode="first")
    slope = direction[1] / direction[0] ** 2
    variance = 0.01**2 + (0.001 * range_m) ** 2 + (0.004 * slope) ** 2
    squares = ((returns.range_m - range_m) ** 2).sum() / variance
    # Nine draws averaged would have a ninth of the variance.
    assert chi2.ppf(FALSE_ALARM, n) < squares < chi2.isf(FALSE_ALARM, n)


def test_the_two_returns_of_a_pulse_have_noise_of_their_own():
    scene = wall(10.0, y=(-50, 0), noise=SurfaceNoise(0.05))
    wall(15.0, scene=scene, noise=SurfaceNoise(0.02))
    settings = {"beam": light_cone("circular", 10.0), "cutoff_m": 1.0}
    both = fire(scene, ahead(2000), seed=4, mode="strongest+last", **settings).range_m
    np.testing.assert_allclose(both.std(axis=0), [0.05, 0.02], rtol=0.08)  # 5 sigma of 2000 draws
    assert abs(np.corrcoef(both[:, 0], both[:, 1])[0, 1]) < 0.12
    last = fire(scene, ahead(2000), seed=4, mode="last", **settings).range_m
    np.testing.assert_array_equal(last, both[:, 1])


def test_range_limits_hold_for_light_and_returns():
    scene = wall(2.0, y=(-50, 0), noise=SurfaceNoise(0.05))
    wall(8.0, scene=scene, noise=SurfaceNoise(0.05))
    beam = light_cone("circular", 10.0)
    world = PhysicsWorld(scene, BeamSettings(beam=beam, mode="all"), min_range_m=8.0, max_range_m=9.0)
    log = world.fire(ahead(500), 1)
    found = log.returns.hit
    assert not found[:, 1:].any()  # what is too near is not seen, and hides what is behind it
    assert 0.3 < found[:, 0].mean() < 0.7  # noise carries half of them out of sight
    assert log.returns.range_m[found].min() >= 8.0
    farther = PhysicsWorld(scene, BeamSettings(beam=beam), min_range_m=3.0, max_range_m=7.0)
    assert np.isinf(farther.fire(ahead(5)).returns.range_m).all()
    assert log.returns.element is not None
    assert (log.returns.element[~found] == -1).all()
    assert log.returns.intensity is not None
    assert np.isnan(log.returns.intensity[~found]).all()


def grass():
    """Some of everything: a ground, permeable blades, Gaussians of both laws, a placed copy."""
    rng = np.random.default_rng(1)
    noise = SurfaceNoise(0.01, 0.001, sigma_per_m=0.0005)
    scene, tuft = Scene(), Scene()
    scene.add_mesh([[-60, -60, 0], [60, -60, 0], [0, 90, 0]], [[0, 1, 2]], label=1, noise=noise)
    feet = rng.uniform(-1, 1, (200, 1, 3)) * [1, 1, 0.3]
    blades = feet + rng.normal(size=(200, 3, 3)) * 0.15
    tuft.add_mesh(blades.reshape(-1, 3), np.arange(600).reshape(-1, 3), label=2, permeability=0.3, noise=noise)
    mean, cov = rng.uniform(-1, 1, (30, 3)), np.tile(np.eye(3) * 0.02, (30, 1, 1))
    tuft.add_gaussians(mean, cov, permeability=0.6, label=3, intensity_sigma=0.1)
    tuft.add_gaussians(mean + 0.3, cov, extinction_per_m=3.0, label=4, intensity=np.nan)
    for x, y in rng.uniform(-12, 12, (40, 2)):
        matrix = np.eye(4)
        matrix[:3, 3] = x, y, 0.4
        scene.place(tuft, matrix)
    return scene


@pytest.fixture(scope="module")
def meadow():
    return grass()


@pytest.mark.parametrize("sampling", ["fixed", "stratified"])
@pytest.mark.parametrize("mode", ["strongest", "all", "waveform"])
def test_threads_slices_and_order_do_not_matter(meadow, mode, sampling):
    sensor = Sensor.named("vlp-16")
    beams = sensor.sweep(Pose((0.0, 0.0, 1.5)))[:9000]  # pyright: ignore[reportArgumentType]  # a tuple is converted
    world = PhysicsWorld(meadow, BeamSettings(mode=mode, sampling=sampling))
    whole = world.fire_detailed(beams, 9, sensor=sensor, threads=1, sub_rays=True)
    assert whole.log.returns.hit.reshape(len(beams), -1)[:, 0].mean() > 0.3
    two = world.fire_detailed(beams, 9, sensor=sensor, threads=2, sub_rays=True)
    assert two.log.equal(whole.log)
    assert two.sub_rays is not None and whole.sub_rays is not None
    np.testing.assert_array_equal(two.sub_rays.range_m, whole.sub_rays.range_m)
    chosen = np.random.default_rng(3).permutation(len(beams))[:777]
    assert world.fire(beams[chosen], 9, sensor=sensor).returns.equal(whole.log.returns[chosen])
    assert world.fire(beams[100:2000], 9, sensor=sensor).returns.equal(whole.log.returns[100:2000])
    assert not world.fire(beams, 10, sensor=sensor).returns.equal(whole.log.returns)


def test_settings_reach_every_channel(meadow):
    # A corner of its own in front of each laser: half its spot meets the near wall, half the far one.
    sensor = Sensor.named("hdl-64e")
    beams = sensor.sweep()
    ring = np.unique(beams.ring)
    beams = beams[[np.nonzero(beams.ring == r)[0][0] for r in ring]]
    assert len(ring) == 64
    scene = Scene()
    for direction in beams.direction.astype(float):
        left = axis([-direction[1], direction[0], 0.0])
        up = np.cross(direction, left)
        for range_m, sides in ((20.0, (-0.001, 0.04)), (25.0, (-0.06, 0.06))):
            middle = range_m * direction
            corners = [middle + a * left + b * up for a, b in zip(np.repeat(sides, 2), (-0.02, 0.02) * 2, strict=True)]
            scene.add_mesh(corners, [[0, 1, 2], [1, 3, 2]])
    settings = BeamSettings(mode="all", cutoff_m=2.0, threshold=0.1, max_returns=3)
    fired = PhysicsWorld(scene, settings).fire_detailed(beams, sensor=sensor, sub_rays=True)
    assert fired.sub_rays is not None
    assert fired.sub_rays.range_m.shape == (64, 9)
    returns = fired.log.returns
    np.testing.assert_allclose(returns.range_m[:, :2], np.tile([20.0, 25.0], (64, 1)), atol=1e-3)
    assert returns.intensity is not None
    np.testing.assert_allclose(returns.intensity[:, :2], 0.5 * np.tile([6, 3], (64, 1)) / 9, rtol=1e-3)
    assert np.isinf(returns.range_m[:, 2]).all()


def test_the_log_says_how_it_was_made(meadow):
    sensor = Sensor.named("lms-291")
    log = PhysicsWorld(meadow, BeamSettings(sub_rays=4)).fire(sensor.sweep(), 5, sensor=sensor)
    assert (log.sensor, log.min_range_m, log.max_range_m) == ("lms-291", 1.0, 80.0)
    assert log.metadata["seed"] == 5
    assert BeamSettings(**log.metadata["world"]["beam"]) == BeamSettings(sub_rays=4)
    assert log.returns.range_m.shape == (len(log),)


def test_no_beams_give_no_returns(meadow):
    log = PhysicsWorld(meadow, BeamSettings(mode="strongest+last")).fire(ahead(3)[:0])
    assert log.returns.range_m.shape == (0, 2)


@pytest.mark.parametrize(
    "wrong",
    [{"sub_rays": 0}, {"sub_rays": 82}, {"mode": "third"}, {"cutoff_m": -1.0}, {"threshold": np.nan},
     {"max_returns": 1}, {"sampling": "random"}, {"cutoff": 1.0}, {"falloff_range_m": 0.0}],
)  # fmt: skip
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        BeamSettings(**wrong)


def test_wrong_calls_are_refused(meadow):
    world = PhysicsWorld(meadow)
    with pytest.raises(InputError, match="threads: expected 0"):
        world.fire(ahead(), threads=-1)
    with pytest.raises(InputError, match="seed: expected"):
        world.fire(ahead(), -1)
    with pytest.raises(InputError, match="range limits"):
        PhysicsWorld(meadow, min_range_m=5.0, max_range_m=2.0).fire(ahead())
    with pytest.raises(InputError, match="waveforms: only mode waveform"):
        world.fire_detailed(ahead(), waveforms=True)
