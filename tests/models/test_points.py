# SPDX-License-Identifier: Apache-2.0
"""The points world: all returns are kept, whatever the partitions; normals are those of the surface."""

import numpy as np
import pytest
from pydantic import ValidationError

from hedgerow import Beams, InputError, learn, load_world
from hedgerow.log import Log, Returns
from hedgerow.models.points import PointsParameters, collect_beams, collect_points
from hedgerow.world import LearnedWorld, SurfaceNoise

UTM = np.array([412_345.0, 5_612_345.0, 250.0])


def wall_log(n=4000, seed=0, shift=(0.0, 0.0, 0.0), **more):
    """A wall 8 m ahead, tilted by 30 degrees about the vertical, seen with 5 mm of noise; a third misses."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(-0.15, 0.15, (n, 2))
    direction = np.c_[np.ones(n), np.tan(angles)]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    normal = np.array([-np.cos(np.pi / 6), np.sin(np.pi / 6), 0])
    range_m = 8 * normal[0] / (direction @ normal) + rng.normal(0, 0.005, n)
    range_m[rng.random(n) < 1 / 3] = np.inf
    log = Log.from_arrays(
        origins=np.zeros(3) + shift,
        directions=direction,
        ranges=range_m,
        intensities=rng.uniform(0, 1, n),
        labels=rng.integers(1, 5, n),
        sweeps=np.sort(rng.integers(0, 7, n)),
        max_range_m=50.0,
        **more,
    )
    return log, normal


def parts(*logs):
    return lambda: iter(logs)


def test_all_returns_are_kept_with_intensity_and_label():
    log, _ = wall_log()
    table = collect_points(parts(log))
    hit = log.returns.hit
    assert log.returns.intensity is not None and log.returns.label is not None
    expected = np.c_[log.points(), log.returns.intensity[hit], log.returns.label[hit]]
    found = np.c_[table.position_m, table.intensity, table.label]
    np.testing.assert_array_equal(found, expected[np.lexsort(expected[:, 2::-1].T)])
    assert (table.reach_m, table.pick, table.noise) == (0.01, "nearest", SurfaceNoise())


def test_partitions_in_any_order_give_the_same_points():
    log, _ = wall_log()
    whole = collect_points(parts(log))
    sweeps = [part for _, part in log.iter_sweeps()][::-1]
    cut = collect_points(parts(*sweeps))
    for name, column in whole.columns().items():
        other = cut.columns()[name]
        assert isinstance(column, np.ndarray) and isinstance(other, np.ndarray)  # no histograms
        assert column.tobytes() == other.tobytes()


def test_normals_are_those_of_the_wall_on_the_side_of_the_sensor():
    log, normal = wall_log()
    table = collect_points(parts(log))
    # 0.005 m of noise over a radius of 0.4 m with about 600 points: 0.005 / 0.2 / sqrt(600) = 0.06 degrees; at the
    # rim of the wall some times that.
    degrees = np.degrees(np.arccos(np.clip(table.normal @ normal, -1, 1)))
    assert np.median(degrees) < 0.3
    assert degrees.max() < 3
    np.testing.assert_allclose(np.linalg.norm(table.normal, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("pick", ["nearest", "first"])
def test_firing_the_training_beams_gives_the_training_ranges_back(pick):
    log, _ = wall_log()
    table = collect_points(parts(log), PointsParameters(pick=pick, reach_m=0.0005, sigma0_m=0.0, sigma_a_m=0.0))
    sim = LearnedWorld(table, kind="points", max_range_m=50.0).fire(log.beams)
    hit = log.returns.hit
    # Each beam passes through its own point; a neighbour within half a millimetre may take its place.
    assert sim.returns.hit[hit].all()
    error = np.abs(sim.returns.range_m[hit] - log.returns.range_m[hit])
    assert np.quantile(error, 0.95) < 1e-4
    assert error.max() < 0.05  # ten sigmas of the wall's noise


def test_utm_coordinates_keep_millimetres():
    near, _ = wall_log()
    far, _ = wall_log(shift=UTM)
    settings = PointsParameters(reach_m=0.0005, sigma0_m=0.0, sigma_a_m=0.0)
    sim = LearnedWorld(collect_points(parts(far), settings), kind="points", max_range_m=50.0).fire(far.beams)
    hit = near.returns.hit
    error = np.abs(sim.returns.range_m[hit] - near.returns.range_m[hit])
    assert np.quantile(error, 0.95) < 1e-3


def test_all_returns_of_a_pulse_are_points():
    beams = Beams.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0], [0, 1, 0]])
    log = Log(beams, Returns(np.array([[3.0, 5.0], [4.0, np.inf]], np.float32)))
    table = collect_points(parts(log))
    np.testing.assert_array_equal(table.position_m, [[0, 4, 0], [3, 0, 0], [5, 0, 0]])
    assert np.isnan(table.intensity).all()
    assert (table.label == 0).all()


def test_one_point_faces_its_sensor():
    log = Log.from_arrays(origins=(0, 0, 0), directions=[[0.6, 0.8, 0]], ranges=[5.0])
    np.testing.assert_allclose(collect_points(parts(log)).normal, [[-0.6, -0.8, 0]], atol=1e-6)


def test_duplicate_points_are_kept():
    log = Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]] * 100, ranges=[5.0] * 100)
    table = collect_points(parts(log))
    assert len(table) == 100
    assert np.isfinite(table.normal).all()
    assert LearnedWorld(table, kind="points").fire(log.beams).returns.hit.all()


def test_progress_counts_beams():
    log, _ = wall_log()
    seen = []
    collect_points(parts(*(part for _, part in log.iter_sweeps())), progress=seen.append)
    assert len(seen) == 7
    assert seen[-1] == len(log)


def test_logs_without_points_are_refused():
    log, _ = wall_log()
    with pytest.raises(InputError, match="log: is empty"):
        collect_points(parts())
    with pytest.raises(InputError, match="log: is empty"):
        collect_points(parts(log[:0]))
    missed = log[~log.returns.hit]
    with pytest.raises(InputError, match=rf"none of its {len(missed)} beams has a return"):
        collect_points(parts(missed))
    with pytest.raises(InputError, match="map_origin_m: differs between chunks"):
        collect_points(parts(log, wall_log(map_origin_m=UTM)[0]))


@pytest.mark.parametrize("wrong", [{"reach_m": 0}, {"pick": "last"}, {"sigma0_m": -1}, {"reach": 1}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        PointsParameters(**wrong)


def grid_log(x_m=0.0, n=60, max_range_m=50.0):
    """A level fan of beams from (x, 0, 0) at a wall at x = 10, 3 m wide; those beside it do not return."""
    angle = np.linspace(-0.4, 0.4, n)
    direction = np.c_[np.cos(angle), np.sin(angle), np.zeros(n)]
    range_m = (10 - x_m) / direction[:, 0]
    range_m[np.abs(range_m * direction[:, 1]) > 1.5] = np.inf
    return Log.from_arrays(
        origins=(x_m, 0, 0),
        directions=direction,
        ranges=range_m,
        intensities=np.linspace(0, 1, n),
        labels=np.arange(n) + 1,
        max_range_m=max_range_m,
    )


def beam_world(log, **parameters):
    chosen = PointsParameters(pick="beam", sigma0_m=0.0, sigma_a_m=0.0, **parameters)
    return LearnedWorld(collect_beams(parts(log), chosen), kind="points", max_range_m=log.max_range_m)


def test_remembered_beams_repeat_themselves_no_returns_too():
    log = grid_log()
    fired = beam_world(log).fire(log.beams).returns
    np.testing.assert_allclose(fired.range_m, log.returns.range_m, atol=1e-5)
    assert 0.2 < np.isinf(fired.range_m).mean() < 0.8
    hit = log.returns.hit
    assert fired.intensity is not None and fired.label is not None and log.returns.label is not None
    np.testing.assert_array_equal(fired.label[hit], log.returns.label[hit])
    assert (fired.label[~hit] == 0).all() and np.isnan(fired.intensity[~hit]).all()


def test_the_return_of_the_nearest_beam_is_projected_onto_the_ray():
    log = grid_log()
    moved = Beams.from_arrays(origins=(2.0, 0.01, 0), directions=log.beams.direction)
    fired = beam_world(log).fire(moved).returns.range_m
    place_m = np.array([2.0, 0.01, 0])
    # By the definition: the root mean square distance between the rays over 20 m, summed up numerically.
    t = np.linspace(0, 20, 2001)[:, None, None]
    for beam in range(0, len(moved), 7):
        own = place_m + t[:, 0] * moved.direction[beam]
        theirs = t * log.beams.direction
        near = ((theirs - own[:, None]) ** 2).sum(axis=2).mean(axis=0).argmin()
        expected = np.inf
        if log.returns.hit[near]:
            expected = (log.returns.range_m[near] * log.beams.direction[near] - place_m) @ moved.direction[beam]
        assert fired[beam] == pytest.approx(expected, abs=1e-4)


def test_a_remembered_beam_is_sure_of_its_answer_and_has_noise():
    log = grid_log()
    table = collect_beams(parts(log), noise=SurfaceNoise(0.02))
    world = LearnedWorld(table, kind="points", max_range_m=50.0)
    likelihood = world.log_likelihood(log)
    hit = log.returns.hit
    np.testing.assert_allclose(likelihood[hit], -np.log(0.02 * np.sqrt(2 * np.pi)), atol=0.01)
    np.testing.assert_array_equal(likelihood[~hit], 0)
    many = Beams.from_arrays(origins=(0, 0, 0), directions=np.repeat(log.beams.direction[hit][:1], 20_000, axis=0))
    spread = world.fire(many, 4).returns.range_m.std()
    assert spread == pytest.approx(0.02, rel=5 / np.sqrt(2 * 20_000))  # five deviations


def test_a_world_of_beams_is_saved_and_read_as_it_was(tmp_path):
    world = beam_world(grid_log(), beam_length_m=12.0)
    world.save(tmp_path / "beams.world")
    again = load_world(tmp_path / "beams.world")
    moved = Beams.from_arrays(origins=(1.0, 0, 0), directions=grid_log().beams.direction)
    assert again.fire(moved, 3).returns.equal(world.fire(moved, 3).returns)
    assert again.size().tables == {"beams": 60} and again.size().parameters == 360
    with pytest.raises(InputError, match=r"remembers beams.*open it as a whole"):
        load_world(tmp_path / "beams.world", max_bytes=10**9)


def test_noise_of_points_is_fitted_to_the_log_unless_it_is_given():
    rng = np.random.default_rng(0)
    y, z = rng.uniform(-2, 2, (2, 60_000))
    point_m = np.c_[np.full(60_000, 8.0), y, z]
    direction = point_m / np.linalg.norm(point_m, axis=1, keepdims=True)
    range_m = np.linalg.norm(point_m, axis=1) + rng.normal(0, 0.03, 60_000)
    log = Log.from_arrays(origins=(0, 0, 0), directions=direction, ranges=range_m, max_range_m=50.0)
    fitted, given = learn(log, "points"), learn(log, "points", preset="browning-2012")
    noise = fitted.tables["points"].settings()["noise"]
    # The mesh follows some of the noise: what is left is a little less.
    assert noise.sigma0_m == pytest.approx(0.03, rel=0.1)
    said = given.tables["points"].settings()["noise"]
    assert (said.sigma0_m, said.sigma_a_m) == (0.015, 0.0014)
