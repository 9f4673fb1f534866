# SPDX-License-Identifier: Apache-2.0
"""Learned elements answer a pulse once, along its axis; meshes answer each sub-ray; one receiver gets both."""

import numpy as np
import pytest
from scipy import stats
from small_worlds import gaussians, rays, triangles, world

from hedgerow import Beams, Log, Returns, Scene, Sensor
from hedgerow.pulse.receiver import BeamSettings, resolve_pulse
from hedgerow.sensor.config import Beam
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.pulsed import PhysicsWorld, pulse_log_likelihood

WIDE = Beam(spot="circular", wavelength_nm=905, divergence_horizontal_mrad=20, divergence_vertical_mrad=20)
SETTINGS = BeamSettings(beam=WIDE, mode="strongest")


def scene_of(*tables: Gaussians | Triangles) -> Scene:
    scene = Scene((0, 0, 0))
    for table in tables:
        table.add_to(scene)
    return scene


def scene_of_world(made: LearnedWorld) -> Scene:
    """Its tables in a scene of the same origin, so that float32 rounds alike."""
    return made.scene_of(lambda: Scene(made.header.origin_m))


def wall(x_m: float, half_m: float = 50.0, low_y_m: float | None = None) -> np.ndarray:
    y = -half_m if low_y_m is None else low_y_m
    return np.array([[x_m, y, -half_m], [x_m, half_m, -half_m], [x_m, half_m, half_m], [x_m, y, half_m]])


def add_wall(scene: Scene, corners: np.ndarray, **how: object) -> None:
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], **how)  # pyright: ignore[reportArgumentType]


def ahead(n: int) -> Beams:
    return Beams.from_arrays(origins=np.zeros((n, 3)), directions=np.tile([1.0, 0, 0], (n, 1)))


@pytest.mark.parametrize("law", ["permeability", "extinction", "depth"])
def test_a_learned_world_gives_the_same_returns_whatever_the_width_of_the_pulse(law):
    table = gaussians(800, law=law)
    beams = rays(4000)
    made = world(table, max_range_m=60.0)
    alone = made.fire(beams, 5)
    placed = PhysicsWorld(scene_of_world(made), SETTINGS, max_range_m=60.0).fire(beams, 5)
    assert np.array_equal(alone.returns.range_m, placed.returns.range_m)
    assert alone.returns.element is not None
    assert placed.returns.element is not None
    assert np.array_equal(alone.returns.element, placed.returns.element)
    assert 0.05 < alone.returns.hit.mean() < 1


def test_learned_triangles_stop_as_many_wide_pulses_as_rays():
    table = triangles(600)
    beams = rays(6000)
    made = world(table, max_range_m=60.0)
    alone = made.fire(beams, 5)
    placed = PhysicsWorld(scene_of_world(made), SETTINGS, max_range_m=60.0).fire(beams, 5)
    # Coins are the same, so the same triangles answer; the noise of the range is drawn from another stream.
    assert alone.returns.element is not None
    assert placed.returns.element is not None
    assert np.array_equal(alone.returns.element, placed.returns.element)
    both = alone.returns.hit
    pooled = stats.ks_2samp(alone.returns.range_m[both], placed.returns.range_m[both]).pvalue  # pyright: ignore
    assert pooled > 1e-6  # false alarms: one in a million, with a fixed seed


def test_a_permeable_bush_before_a_wall_stops_its_share_of_pulses_not_of_sub_rays():
    # With nine coins per pulse, almost every pulse would have some light from the bush.
    bush = Gaussians.plain(np.array([[10.0, 0, 0]]), 0.01 * np.eye(3)[None], stop=np.array([0.7], np.float32))
    scene = scene_of(bush)
    add_wall(scene, wall(20.0))
    n = 20_000
    log = PhysicsWorld(scene, SETTINGS, max_range_m=60.0).fire(ahead(n), 3)
    first = log.returns.range_m
    assert np.isfinite(first).all()
    stopped = int((first < 15).sum())
    assert stats.binomtest(stopped, n, 0.3).pvalue > 1e-6  # false alarms: one in a million, with a fixed seed
    assert np.allclose(first[first > 15], 20.0, atol=0.05)  # the wall's own returns: rays up to 10 mrad off the axis


def test_a_mesh_before_a_learned_element_takes_the_sub_rays_that_it_meets():
    solid = Gaussians.plain(np.array([[10.0, 0, 0]]), 0.0001 * np.eye(3)[None])
    scene = scene_of(solid)
    add_wall(scene, wall(5.0, low_y_m=0.001))  # covers the left half of the spot, not the axis
    settings = SETTINGS.model_copy(update={"mode": "all", "cutoff_m": 1.0})
    log = PhysicsWorld(scene, settings, max_range_m=60.0).fire(ahead(10), 3)
    range_m = log.returns.range_m
    assert np.allclose(range_m[:, 0], 5.0, atol=0.01)
    assert np.allclose(range_m[:, 1], 10.0, atol=0.1)


def test_a_mesh_behind_a_learned_element_that_stops_the_axis_is_not_seen():
    solid = Gaussians.plain(np.array([[10.0, 0, 0]]), 0.0001 * np.eye(3)[None])
    scene = scene_of(solid)
    add_wall(scene, wall(20.0))
    settings = SETTINGS.model_copy(update={"mode": "all", "cutoff_m": 1.0})
    log = PhysicsWorld(scene, settings, max_range_m=60.0).fire(ahead(10), 3)
    assert np.isinf(log.returns.range_m[:, 1:]).all()


# noise


def test_only_what_meshes_return_gets_the_noise_of_the_sensor():
    bush = Gaussians.plain(np.array([[10.0, 0, 0]]), 1e-6 * np.eye(3)[None], stop=np.array([0.5], np.float32))
    scene = scene_of(bush)
    add_wall(scene, wall(20.0))
    sensor = Sensor.named("vlp-16").with_range(sigma_m=0.05, step_m=0.0, dropout=0.0)
    made = PhysicsWorld(scene, BeamSettings(sub_rays=1), max_range_m=60.0)
    fired = made.fire(ahead(2000), 3, sensor=sensor, noise=None).returns.range_m
    near, far = fired[fired < 15], fired[fired > 15]
    assert 0.0005 < near.std() < 0.0015  # its own sigma of a millimetre
    assert 0.04 < far.std() < 0.06
    assert not made.has_noise
    assert PhysicsWorld(scene_of(bush)).has_noise


# likelihood


def measured(beams: Beams, range_m: np.ndarray) -> Log:
    return Log(beams, Returns(range_m.astype(np.float32)), max_range_m=60.0)


def test_the_likelihood_of_learned_elements_is_that_of_the_axis():
    table = gaussians(500)
    made = world(table, max_range_m=60.0)
    log = made.fire(rays(3000), 7)
    placed = PhysicsWorld(scene_of_world(made), SETTINGS, max_range_m=60.0)
    np.testing.assert_array_equal(made.log_likelihood(log), placed.log_likelihood(log))


def test_the_density_and_the_chance_of_no_return_make_one():
    bush = Gaussians.plain(np.array([[10.0, 0, 0]]), 0.09 * np.eye(3)[None], stop=np.array([0.6], np.float32))
    scene = scene_of(bush)
    add_wall(scene, wall(20.0, low_y_m=0.05), permeability=0.5)  # some sub-rays miss it
    optics = resolve_pulse(SETTINGS, None)
    range_m = np.linspace(0.001, 59.9, 60_000)
    # Noiseless triangles count as 10 cm wide here: the grid has ten points on that.
    density = np.exp(pulse_log_likelihood(scene, measured(ahead(len(range_m)), range_m), optics, min_sigma_m=0.01))
    none = np.exp(pulse_log_likelihood(scene, measured(ahead(1), np.array([np.inf])), optics, min_sigma_m=0.01))[0]
    total = density.sum() * (range_m[1] - range_m[0]) + none
    assert total == pytest.approx(1.0, abs=1e-3)
    assert 0 < none < 0.6


def test_the_likelihood_of_a_wall_that_fills_the_spot_is_that_of_one_ray():
    scene = Scene((0, 0, 0))
    add_wall(scene, wall(20.0))
    narrow = resolve_pulse(
        SETTINGS.model_copy(
            update={
                "beam": WIDE.model_copy(update={"divergence_horizontal_mrad": 0.01, "divergence_vertical_mrad": 0.01})
            }
        ),
        None,
    )
    range_m = np.array([19.8, 19.95, 20.0, 20.05, 20.2])
    log = measured(ahead(len(range_m)), range_m)
    ray = scene.log_likelihood(log.beams, log.returns.first_m, max_range_m=60.0, min_sigma_m=0.1)
    pulse = pulse_log_likelihood(scene, log, narrow, min_sigma_m=0.1)
    np.testing.assert_allclose(pulse, ray, rtol=1e-4)  # sub-rays tilt by 5 microradians: ranges differ below 1e-6 m


def test_forecast_and_draws_of_a_mixed_scene_agree():
    bush = Gaussians.plain(np.array([[10.0, 0, 0]]), 0.09 * np.eye(3)[None], stop=np.array([0.6], np.float32))
    scene = scene_of(bush)
    add_wall(scene, wall(20.0), permeability=0.0)
    n = 20_000
    log = PhysicsWorld(scene, SETTINGS, max_range_m=60.0).fire(ahead(n), 11)
    near = int((log.returns.first_m < 15).sum())
    # The density below 15 m, added up, is the chance that the bush stops the pulse.
    range_m = np.linspace(8, 12, 4001)
    optics = resolve_pulse(SETTINGS, None)
    share = np.exp(pulse_log_likelihood(scene, measured(ahead(len(range_m)), range_m), optics)).sum() * 0.001
    assert stats.binomtest(near, n, min(1.0, share)).pvalue > 1e-6  # false alarms: one in a million


def test_a_learned_world_holds_beam_settings_only_where_meshes_need_them():
    assert LearnedWorld(gaussians(3), kind="test").has_noise
    mesh = Triangles.plain(np.zeros((1, 3, 3)) + np.eye(3), answer="sub_ray")
    assert not LearnedWorld(mesh, kind="composed", parameters={"beam": {}}).has_noise
