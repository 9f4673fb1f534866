# SPDX-License-Identifier: Apache-2.0
"""The vegetation response on planes with known places, and on worlds of every kind."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pydantic import ValidationError
from scipy import stats

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.vegetation import NEAREST_M, VegetationSettings
from hedgerow.scenes import mesh
from hedgerow.world import Gaussians, LearnedWorld, Points, Scene, SceneWorld, Triangles
from hedgerow.world.pulsed import PhysicsWorld

GRASS, SHRUB, WALL = 70, 71, 50
MEADOW, LEAVES = 101, 103  # fold into 70
N = 20_000
FALSE_ALARM = 1e-3  # of each statistical test, over all seeds; the seeds are fixed


def plane(scene, x_m, label, **more):
    # Off centre: on the edge between its two triangles a beam would meet both.
    scene.add_mesh(*mesh.rectangle((x_m, -40, -50), (0, 100, 0), (0, 0, 100)), label=label, **more)


def planes(*places, **limits):
    """A world of walls across the x axis: (x [m], label)."""
    scene = Scene()
    for x_m, label in places:
        plane(scene, x_m, label)
    return SceneWorld(scene, **limits)


def along_x(n=N, **more):
    return hr.Beams.from_arrays(origins=(0, 0, 0), directions=[[1.0, 0, 0]] * n, **more)


def respond(world, **settings):
    return world.with_vegetation(VegetationSettings.model_validate({"labels": (GRASS,)} | settings))


def test_noise_before_nothing_is_normal():
    log = respond(planes((10, GRASS)), mean_m=0.3, sigma_m=0.8).fire(along_x(), seed=1)
    assert stats.kstest(log.returns.range_m, stats.norm(10.3, 0.8).cdf).pvalue > FALSE_ALARM
    assert (log.returns.label == GRASS).all()


def test_noise_before_a_wall_is_a_normal_number_cut_at_the_wall():
    mean_m, sigma_m, wall_m = -0.1, 1.0, 10.7
    log = respond(planes((10, GRASS), (wall_m, WALL)), mean_m=mean_m, sigma_m=sigma_m).fire(along_x(), seed=2)
    range_m = log.returns.range_m
    law = stats.norm(10 + mean_m, sigma_m)
    wall = np.float32(wall_m)
    assert range_m.max() == wall
    # What would have gone past the wall ends on it; the rest is the normal law below the wall.
    assert stats.binomtest(int((range_m == wall).sum()), N, law.sf(wall_m)).pvalue > FALSE_ALARM
    before = range_m[range_m < wall]
    assert stats.kstest(before, lambda x: law.cdf(x) / law.cdf(wall_m)).pvalue > FALSE_ALARM
    assert stats.kstest(before, law.cdf).pvalue < 1e-9  # the test can tell


def test_the_second_return_is_the_wall_exactly_and_elsewhere_the_first_again():
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((10, -5, -5), (0, 10, 0), (0, 0, 10)), label=GRASS, reflectance=0.9)
    plane(scene, 12, WALL, reflectance=0.25)
    directions = np.array([[1.0, 0, 0], [0.8, 0.6, 0], [-1, 0, 0]])
    beams = hr.Beams.from_arrays(origins=(0, 0, 0), directions=directions)
    returns = respond(SceneWorld(scene), dual=True).fire(beams, seed=3).returns
    assert returns.range_m[0, 1] == 12
    assert_array_equal(returns.label, [[GRASS, WALL], [WALL, WALL], [0, 0]])
    assert returns.element is not None
    assert_array_equal(returns.element // 2, [[0, 1], [1, 1], [-1, -1]])  # two triangles each
    assert returns.intensity is not None
    assert_array_equal(returns.intensity[0], np.array([0.9, 0.25], np.float32))
    assert_allclose(returns.range_m[1], 15, rtol=1e-6)  # float32
    assert returns.range_m[1, 0] == returns.range_m[1, 1]
    assert np.isinf(returns.range_m[2]).all() and np.isnan(returns.intensity[2]).all()


def test_vegetation_before_nothing_has_no_second_return():
    returns = respond(planes((10, GRASS)), dual=True).fire(along_x(100), seed=1).returns
    assert np.isfinite(returns.range_m[:, 0]).all() and np.isinf(returns.range_m[:, 1]).all()
    assert returns.element is not None and returns.label is not None
    assert (returns.element[:, 1] == -1).all() and (returns.label[:, 1] == 0).all()
    assert returns.intensity is not None
    assert np.isnan(returns.intensity[:, 1]).all()


def test_vegetation_behind_vegetation_is_not_solid():
    world = planes((10, GRASS), (10.2, SHRUB), (11, WALL))
    returns = respond(world, labels=(GRASS, SHRUB), dual=True).fire(along_x(1000), seed=1).returns
    assert (returns.range_m[:, 1] == 11).all() and returns.range_m[:, 0].max() == 11
    solid = respond(world, labels=(GRASS,), dual=True).fire(along_x(1000), seed=1).returns
    assert solid.label is not None
    assert (solid.range_m[:, 1] == np.float32(10.2)).all() and (solid.label[:, 1] == SHRUB).all()


def test_a_label_stands_for_the_finer_ones_that_fold_into_it():
    world = planes((10, MEADOW), (10.5, LEAVES), (11, WALL))
    returns = respond(world, labels=(GRASS,), dual=True).fire(along_x(1000), seed=1).returns
    assert returns.label is not None
    assert returns.range_m[:, 0].std() > 0.3 and (returns.range_m[:, 1] == 11).all()
    # A finer label stands for itself: leaves are solid then.
    alone = respond(world, labels=(MEADOW,), dual=True).fire(along_x(1000), seed=1).returns
    assert (alone.range_m[:, 1] == 10.5).all()


def test_a_finer_label_has_the_noise_of_its_parent_unless_it_has_its_own():
    world = planes((10, MEADOW))
    parent, own = ({GRASS: 0.5}, {GRASS: 0.5, MEADOW: 0.0})
    of_parent = respond(world, labels=(GRASS,), sigma_m=parent).fire(along_x(1000), seed=1).returns.range_m
    of_its_own = respond(world, labels=(GRASS, MEADOW), sigma_m=own).fire(along_x(1000), seed=1).returns.range_m
    assert stats.kstest(of_parent, stats.norm(10, 0.5).cdf).pvalue > FALSE_ALARM
    assert (of_its_own == 10).all()


def test_anything_behind_counts_if_that_is_asked_for():
    world = planes((10, GRASS), (10.2, SHRUB), (11, WALL))
    both = {"labels": (GRASS, SHRUB), "dual": True}
    returns = respond(world, behind="any", **both).fire(along_x(), seed=1).returns
    shrub_m = np.float32(10.2)
    assert returns.label is not None
    assert (returns.range_m[:, 1] == shrub_m).all() and (returns.label[:, 1] == SHRUB).all()
    assert returns.range_m[:, 0].max() == shrub_m
    held_back = int((returns.range_m[:, 0] == shrub_m).sum())
    assert stats.binomtest(held_back, N, stats.norm(10, 1).sf(10.2)).pvalue > FALSE_ALARM
    # Before something solid alone, both are the same.
    lone = planes((10, GRASS), (11, WALL))
    solid, anything = (respond(lone, dual=True, behind=which).fire(along_x(500), seed=1) for which in ("solid", "any"))
    assert_array_equal(solid.returns.range_m, anything.returns.range_m)


def test_anything_behind_a_surface_with_noise_is_not_that_surface():
    scene = Scene()
    plane(scene, 10, GRASS, noise=hr.SurfaceNoise(0.02, 0.0))
    plane(scene, 12, GRASS)
    returns = respond(SceneWorld(scene), dual=True, behind="any").fire(along_x(2000), seed=1).returns
    assert (returns.range_m[:, 1] == 12).all()


def test_a_post_on_the_axis_does_not_pull_a_leaf_behind_it_nearer():
    """A narrow, dim post with noise hides the axis of a pulse; bright leaves behind it are the strongest return."""
    scene = Scene()
    scene.add_mesh(
        *mesh.rectangle((9, -0.002, -1), (0, 0.004, 0), (0, 0, 2)),
        label=WALL,
        reflectance=0.01,
        noise=hr.SurfaceNoise(0.3, 0.0),
    )
    plane(scene, 10.5, GRASS, reflectance=0.9)
    sensor = hr.Sensor.named("vlp-16")
    world = PhysicsWorld(scene, BeamSettings(cutoff_m=0.1))
    plain = world.fire(along_x(500), seed=1, sensor=sensor).returns
    assert (plain.label == GRASS).all()
    moved = respond(world, sigma_m=0.05).fire(along_x(500), seed=1, sensor=sensor).returns.range_m - plain.range_m
    assert moved.min() > -0.05 * 5  # five deviations; the post is 1.5 m nearer
    dual = respond(world, sigma_m=0.05, dual=True).fire(along_x(500), seed=1, sensor=sensor).returns.range_m
    assert (dual[:, 1] >= dual[:, 0]).all()


def test_an_unknown_word_for_behind_is_refused():
    with pytest.raises(ValidationError, match="behind"):
        VegetationSettings.model_validate({"behind": "everything"})


def test_single_and_dual_agree_on_the_first_return():
    world = planes((10, GRASS), (10.5, WALL))
    single, dual = (respond(world, dual=dual).fire(along_x(2000), seed=5).returns for dual in (False, True))
    assert_array_equal(dual.range_m[:, 0], single.range_m)


def test_ranges_stay_within_the_limits_of_the_sensor():
    world = planes((2, GRASS), min_range_m=1.5, max_range_m=3.0)
    returns = respond(world, sigma_m=1.0).fire(along_x(), seed=1).returns
    kept = returns.hit
    assert returns.range_m[kept].min() == 1.5 and returns.range_m[kept].max() <= 3.0
    law = stats.norm(2, 1)
    for count, share in (((returns.range_m == 1.5).sum(), law.cdf(1.5)), ((~kept).sum(), law.sf(3.0))):
        assert stats.binomtest(int(count), N, share).pvalue > FALSE_ALARM
    assert returns.label is not None and returns.element is not None
    assert (returns.label[~kept] == 0).all() and (returns.element[~kept] == -1).all()
    assert returns.intensity is not None
    assert np.isnan(returns.intensity[~kept]).all()


def test_a_wall_beyond_the_farthest_range_is_no_second_return():
    world = planes((2, GRASS), (4, WALL), max_range_m=3.0)
    assert np.isinf(respond(world, dual=True).fire(along_x(50), seed=1).returns.range_m[:, 1]).all()


def test_without_a_minimum_ranges_still_stay_above_zero():
    range_m = respond(planes((0.5, GRASS)), sigma_m=2.0).fire(along_x(500), seed=1).returns.range_m
    assert range_m.min() == np.float32(NEAREST_M)


def test_each_label_has_its_own_noise():
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((10, 0, -5), (0, 5, 0), (0, 0, 10)), label=GRASS)
    scene.add_mesh(*mesh.rectangle((10, -5, -5), (0, 5, 0), (0, 0, 10)), label=SHRUB)
    directions = np.repeat([[0.995, 0.0999, 0], [0.995, -0.0999, 0]], N // 2, axis=0)
    beams = hr.Beams.from_arrays(origins=(0, 0, 0), directions=directions)
    plain = SceneWorld(scene).fire(beams).returns.range_m
    settings = {"labels": (GRASS, SHRUB), "mean_m": {GRASS: 0.2, SHRUB: -0.5}, "sigma_m": {GRASS: 0.1, SHRUB: 0.4}}
    added = respond(SceneWorld(scene), **settings).fire(beams, seed=1).returns.range_m - plain
    assert stats.kstest(added[: N // 2], stats.norm(0.2, 0.1).cdf).pvalue > FALSE_ALARM
    assert stats.kstest(added[N // 2 :], stats.norm(-0.5, 0.4).cdf).pvalue > FALSE_ALARM


def test_the_label_of_a_placement_decides():
    leaf, board = Scene(), Scene()
    plane(leaf, 0, GRASS)
    plane(board, 0, WALL)
    scene = Scene()
    for child, x_m, label in ((board, 10, GRASS), (leaf, 11, -1), (leaf, 12, WALL), (board, 13, -1)):
        matrix = np.eye(4)
        matrix[0, 3] = x_m
        scene.place(child, matrix, label=label)
    returns = respond(SceneWorld(scene), dual=True, sigma_m=3.0).fire(along_x(200), seed=1).returns
    assert (returns.label == [GRASS, WALL]).all()
    assert (returns.range_m[:, 1] == 12).all() and returns.range_m[:, 0].max() == 12


def test_solid_gaussians_behind_are_found():
    scene = Scene()
    plane(scene, 10, GRASS)
    scene.add_gaussians([[14.0, 0, 0]], [np.eye(3) * 0.04], label=WALL)
    returns = respond(SceneWorld(scene), dual=True, sigma_m=0.5).fire(along_x(), seed=1).returns
    assert returns.label is not None and returns.element is not None
    assert (returns.label[:, 1] == WALL).all() and (returns.element[:, 1] == 2).all()
    assert stats.kstest(returns.range_m[:, 1], stats.norm(14, 0.2).cdf).pvalue > FALSE_ALARM


def test_permeable_things_behind_stop_as_many_as_they_should():
    scene = Scene()
    plane(scene, 10, GRASS)
    plane(scene, 12, WALL, permeability=0.3)
    second = respond(SceneWorld(scene), dual=True).fire(along_x(), seed=1).returns.range_m[:, 1]
    assert stats.binomtest(int((second == 12).sum()), N, 0.7).pvalue > FALSE_ALARM


def test_a_range_that_its_own_element_draws_past_the_wall_is_held_there_too():
    scene = Scene()
    scene.add_gaussians([[10.0, 0, 0]], [np.eye(3) * 0.25], label=GRASS)
    plane(scene, 10.3, WALL)
    plane(scene, 15, WALL)
    beams = along_x(5000)
    assert SceneWorld(scene).fire(beams, seed=1).returns.range_m.max() > 11  # the tail of the Gaussian
    single = respond(SceneWorld(scene), sigma_m=0.0).fire(beams, seed=1).returns
    assert single.range_m.max() == np.float32(10.3)
    dual = respond(SceneWorld(scene), sigma_m=0.0, dual=True).fire(beams, seed=1).returns
    assert_array_equal(dual.range_m[:, 0], single.range_m)
    assert (dual.range_m[:, 1] == np.float32(10.3)).all()


def test_threads_and_slices_change_no_byte_and_seeds_do():
    rng = np.random.default_rng(0)
    scene = Scene()
    scene.add_mesh(*mesh.leaves(rng.normal((10, 0, 0), 1.5, (3000, 3)), 0.2, rng), label=GRASS, permeability=0.3)
    plane(scene, 12, WALL)
    world = respond(SceneWorld(scene), dual=True)
    directions = np.c_[np.ones(6000), rng.uniform(-0.1, 0.1, (6000, 2))]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    beams = hr.Beams.from_arrays(origins=(0, 0, 0), directions=directions)
    one, two = (world.fire(beams, seed=3, threads=threads).returns for threads in (1, 2))
    for name in ("range_m", "intensity", "label", "element"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
    assert world.fire(beams[1000:1100], seed=3).returns.equal(one[1000:1100])
    assert not np.array_equal(world.fire(beams, seed=4).returns.range_m, one.range_m)


def test_noise_of_the_sensor_is_another_number():
    n = N
    response = respond(planes((10, GRASS)), sigma_m=1.0)
    log = response.fire(along_x(n), seed=1, sensor=hr.Sensor.named("hdl-64e"))
    noisy = hr.Sensor.named("hdl-64e").degrade(log, seed=1, quantise=False)
    added = noisy.returns.range_m - log.returns.range_m
    assert abs(np.corrcoef(added, log.returns.range_m)[0, 1]) < 4 / np.sqrt(n)  # four standard errors


def test_the_log_says_what_was_added_and_can_be_stored(tmp_path):
    log = respond(planes((10, GRASS), max_range_m=50.0), labels=(GRASS, SHRUB), dual=True).fire(along_x(20), seed=9)
    assert log.metadata["vegetation"]["labels"] == [GRASS, SHRUB] and log.metadata["seed"] == 9
    hr.write_log(log, tmp_path / "dual.parquet")
    assert hr.read_log(tmp_path / "dual.parquet").equal(log)


def learned(*extra):
    wall = np.array([[[12, -9, -9], [12, 9, -9], [12, 0, 20]]], dtype=float)
    return LearnedWorld(
        Triangles.plain(wall, label=np.array([WALL], np.uint16)),
        Gaussians.plain(np.array([[10.0, 0, 0]]), np.eye(3)[None] * 0.01, label=np.array([GRASS], np.uint16)),
        *extra,
        kind="test",
    )


def test_learned_worlds_respond():
    returns = respond(learned(), sigma_m=5.0, dual=True).fire(along_x(500), seed=1).returns
    assert (returns.label == [GRASS, WALL]).all()
    assert (returns.range_m[:, 1] == 12).all() and returns.range_m[:, 0].max() == 12


def test_worlds_that_cannot_be_looked_through_are_refused(tmp_path):
    points = Points.plain(np.array([[5.0, 0, 0]]), np.array([[-1, 0, 0]], np.float32))
    with pytest.raises(InputError, match="world: remembers points"):
        respond(learned(points))
    learned().save(tmp_path / "site.world")
    with pytest.raises(InputError, match="a TiledWorld has no scene"):
        respond(hr.load_world(tmp_path / "site.world", resident_tiles=2))
    with pytest.raises(InputError, match="5 returns per pulse"):
        respond(PhysicsWorld(planes((10, GRASS)).scene, BeamSettings(mode="all"))).fire(along_x(3))


class WithoutLabels(SceneWorld):
    def returns(self, beams, shot):
        return hr.Returns(super().returns(beams, shot).range_m)


def test_a_world_without_labels_is_refused():
    with pytest.raises(InputError, match="have no labels"):
        respond(WithoutLabels(planes((10, GRASS)).scene)).fire(along_x(3))


def test_wrong_settings_are_refused_by_name():
    for name, value in (
        ("labels", ()),
        ("labels", (70_000,)),
        ("mean_m", float("nan")),
        ("sigma_m", -1.0),
        ("sigma_m", float("nan")),
        ("sigma_m", {SHRUB: 1.0}),
        ("colour", "green"),
    ):
        settings: dict[str, Any] = {"labels": (GRASS,), name: value}
        with pytest.raises(ValidationError, match=name):
            VegetationSettings(**settings)


def test_settings_load_from_toml_with_changes(tmp_path):
    path = tmp_path / "bushes.toml"
    path.write_text("[vegetation]\nlabels = [70, 71]\nmean_m = 0.1\nsigma_m = {70 = 0.5, 71 = 2}\n[source]\nn = 3\n")
    expected = VegetationSettings(labels=(70, 71), mean_m=0.1, sigma_m={70: 0.5, 71: 2.0}, dual=True)
    assert VegetationSettings.load(path, dual=True) == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[grass]\n", "no table"),
        ("vegetation = 3\n", "no table"),
        ("[vegetation\n", "not valid TOML"),
        ("[vegetation]\nsigma_m = -1.0\n", "vegetation.sigma_m"),
        ("[vegetation]\nsigma = 1.0\n", "vegetation.sigma"),
        ("[vegetation]\nlabels = [70]\nmean_m = {71 = 0.5}\n", "mean_m"),
    ],
)
def test_wrong_files_of_settings_are_refused_by_name(tmp_path, text, part):
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(FileError, match=part) as error:
        VegetationSettings.load(tmp_path / "wrong.toml")
    assert "wrong.toml" in str(error.value)
    with pytest.raises(FileError, match="no such file of vegetation settings"):
        VegetationSettings.load(tmp_path / "none.toml")
