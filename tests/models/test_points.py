# SPDX-License-Identifier: Apache-2.0
"""The points world: all returns are kept, whatever the partitions; normals are those of the surface."""

import numpy as np
import pytest
from pydantic import ValidationError

from hedgerow import Beams, InputError
from hedgerow.log import Log, Returns
from hedgerow.models.points import PointsParameters, collect_points
from hedgerow.world import LearnedWorld

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
    assert (table.reach_m, table.pick, table.noise.sigma0_m, table.noise.sigma_a_m) == (0.01, "nearest", 0.015, 0.0014)


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
