# SPDX-License-Identifier: Apache-2.0
"""compare as a whole: worlds, streams, files, partitions, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_logs import NormalWorld, drive, log_of, random_ranges, with_ranges

import hedgerow as hr
from hedgerow import InputError
from hedgerow.metrics import CompareSettings, accumulate, compare, score
from hedgerow.metrics.bearing import BearingDistances
from hedgerow.metrics.catalogue import METRICS
from hedgerow.world.elements import Gaussians
from hedgerow.world.learned import LearnedWorld


def other(log, seed=9):
    return with_ranges(log, random_ranges(np.random.default_rng(seed), len(log)))


def assert_equal_scores(a, b, rel=1e-12):
    assert a.values.keys() == b.values.keys()
    for key, value in a.values.items():
        assert value.n == b.values[key].n, key
        assert value.value == pytest.approx(b.values[key].value, rel=rel, abs=1e-15), key


def test_a_world_is_scored_as_the_log_it_fires():
    real = drive(0)
    world = NormalWorld(20.0, 5.0, miss=0.1)
    fired = compare(real, world, seed=4)
    as_log = compare(real, world.fire(real.beams, seed=4))
    for key in as_log.values:
        assert fired[key] == as_log[key]
    nll = fired["nll"]
    assert nll is not None and nll > 0
    assert compare(real, world, seed=5)["beam_error_mean_m"] != fired["beam_error_mean_m"]


def test_the_size_of_a_world_is_among_its_scores():
    scores = compare(log_of([20.0, 21.0]), NormalWorld())
    assert [scores[key] for key in ("elements", "parameters", "bytes")] == [1, 3, 24]
    assert scores.values["elements"].n is None


def test_a_learned_world_is_scored_with_its_size():
    gaussians = Gaussians.plain(np.array([[10.0, 0, 0], [12.0, 0, 0]]), np.tile(np.eye(3) * 0.04, (2, 1, 1)))
    scores = compare(log_of([9.9, 10.1], [[1.0, 0, 0]] * 2), LearnedWorld(gaussians, kind="voxel"))
    assert (scores["elements"], scores["parameters"]) == (2, 20)
    n_bytes = scores["bytes"]
    assert n_bytes is not None and n_bytes > 0
    # Two ranges 0.1 m off the middle of a normal of sigma 0.2 m.
    assert scores["nll"] == pytest.approx(0.5**2 / 2 + np.log(0.2 * np.sqrt(2 * np.pi)) - np.log(0.999), abs=1e-4)


def test_a_world_of_another_map_is_refused():
    gaussians = Gaussians.plain(np.array([[10.0, 0, 0]]), np.eye(3)[None] * 0.04)
    world = LearnedWorld(gaussians, kind="voxel", map_origin_m=(480_000, 5_400_000, 0))
    with pytest.raises(InputError, match="simulated: the world's map begins at"):
        compare(log_of([9.9]), world)
    same = log_of([9.9], map_origin_m=(480_000, 5_400_000, 0))
    assert compare(same, world).values["hits_found"].n == 1


def test_a_native_world_is_fired_and_scored():
    sensor = hr.Sensor.named("vlp-16")
    scene = hr.Scene()
    corners = [[10, -40, -20], [10, 40, -20], [10, 40, 20], [10, -40, 20]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], noise=hr.SurfaceNoise(0.02, 0.0))
    world = hr.SceneWorld(scene)
    real = world.fire(sensor.sweep(), 1, sensor=sensor)
    scores = compare(real, world, seed=2)
    n = scores.values["beam_error_mean_m"].n
    # Noise near the maximal range may take a return over it: a handful of grazing beams.
    hits_found, misses_found = scores["hits_found"], scores["misses_found"]
    assert hits_found is not None and hits_found > 0.999
    assert misses_found is not None and misses_found > 0.999
    # |difference of two N(0, 0.02²)|: mean 0.02 * 2 / sqrt(pi), standard deviation 0.02 * sqrt(2 - 4 / pi).
    assert n is not None
    assert scores["beam_error_mean_m"] == pytest.approx(0.04 / np.sqrt(np.pi), abs=5 * 0.0171 / np.sqrt(n))
    uniform = np.where(real.returns.hit, 1 / (real.max_range_m - real.min_range_m), 1)
    by_hand = -np.log(0.999 * np.exp(world.log_likelihood(real)) + 0.001 * uniform).mean()
    assert scores["nll"] == pytest.approx(by_hand, rel=1e-12)


def test_a_log_compared_with_itself_is_perfect():
    real = drive(1)
    scores = compare(real, real)
    expected = {"high": 1.0, "low": 0.0}
    for key in scores.values:
        better = METRICS[key].better
        assert better is not None
        assert scores[key] == expected[better], key


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), n_parts=st.integers(1, 4))
def test_sweeps_in_any_order_and_partition_give_the_same_scores(seed, n_parts):
    rng = np.random.default_rng(seed)
    real = drive(seed % 1000, n_sweeps=5, n=60)
    simulated = other(real, seed)
    whole = compare(real, simulated)
    parts = [np.sort(part) for part in np.array_split(rng.permutation(5), n_parts)]
    streams = [[log.select(sweep=part) for part in parts] for log in (real, simulated)]
    assert_equal_scores(whole, compare(*streams))
    sums = [
        accumulate(real.select(sweep=part), {"simulated": simulated.select(sweep=part)}, CompareSettings())
        for part in parts
    ]
    for each in sums[1:]:
        sums[0].merge(each)
    assert_equal_scores(whole, score(sums[0], {})["simulated"])


def test_static_parts_merge_and_a_moved_part_ends_it():
    n = 40
    ranges = np.random.default_rng(0).normal(10, 0.01, n)
    still = log_of(ranges, np.tile([[1.0, 0, 0]], (n, 1)), sweeps=np.arange(n))
    names = {"simulated": with_ranges(still, ranges[::-1])}
    first, second = (
        accumulate(still.select(sweep=part), {k: v.select(sweep=part) for k, v in names.items()}, CompareSettings())
        for part in (range(15), range(15, n))
    )
    first.merge(second)
    assert score(first, {})["simulated"]["bhattacharyya"] == compare(still, names)["simulated"]["bhattacharyya"]
    away = log_of([10.0], [[1.0, 0, 0]], [[5.0, 0, 0]], sweeps=99)
    first.merge(accumulate(away, {"simulated": away}, CompareSettings()))
    assert not score(first, {})["simulated"].static
    assert len(first.of(BearingDistances).real.entries()[0]) == 0  # nothing is kept that a moving sensor has no use for


def test_files_are_compared_sweep_by_sweep(tmp_path):
    real = drive(2)
    simulated = other(real)
    hr.write_log(real, tmp_path / "real.parquet")
    hr.write_log(simulated, tmp_path / "simulated.parquet")
    files = [hr.open_log(tmp_path / name) for name in ("real.parquet", "simulated.parquet")]
    assert_equal_scores(compare(real, simulated), compare(*files))
    assert_equal_scores(compare(real, simulated), compare(files[0].iter_sweeps(), simulated))
    assert_equal_scores(compare(real, simulated), compare(lambda: [real], lambda: [simulated]))


def test_several_simulations_score_as_each_alone():
    real = drive(3)
    named = {"a": other(real, 1), "b": other(real, 2), "normal": NormalWorld(20, 4)}
    together = compare(real, named)
    assert list(together) == ["a", "b", "normal"]
    for name, source in named.items():
        assert_equal_scores(together[name], compare(real, source))


def test_progress_tells_the_beams_done():
    real = drive(4, n_sweeps=3, n=50)
    told = []
    compare(real, real, progress=told.append)
    assert told == [50, 100, 150]


def test_an_empty_real_log_is_refused():
    with pytest.raises(InputError, match="real: the log has no beams"):
        compare(drive()[:0], drive()[:0])
    with pytest.raises(InputError, match="real: the log has no beams"):
        compare([], NormalWorld())


def test_a_real_log_without_any_return_is_refused():
    real = log_of([np.inf, np.inf])
    with pytest.raises(InputError, match="real: none of its 2 beams returned"):
        compare(real, NormalWorld())


def test_other_beams_are_refused_with_the_first_that_differs():
    real = drive(5)
    with pytest.raises(InputError, match=r"simulated: sweep 5 has 299 beams, the real log 300"):
        compare(real, real[:-1], match_deg=0)
    turned = real.beams.direction.copy()
    turned[[310, 311]] = turned[[311, 310]]
    swapped = log_of(real.returns.first_m, turned, real.beams.origin_m, real.beams.sweep, 60.0)
    with pytest.raises(InputError, match=r"simulated: sweep 1, beam 10 has direction"):
        compare(real, swapped, match_deg=0)
    shifted = log_of(real.returns.first_m, real.beams.direction, real.beams.origin_m + 0.01, real.beams.sweep, 60.0)
    with pytest.raises(InputError, match=r"sweep 0, beam 0 has origin_m"):
        compare(real, {"shifted": shifted}, match_deg=0)


def test_streams_of_unequal_length_are_refused():
    real = drive(6)
    with pytest.raises(InputError, match="simulated: ends before sweep 5"):
        compare(real, [real.select(sweep=range(5))])
    with pytest.raises(InputError, match="simulated: goes on with sweep 5"):
        compare([real.select(sweep=range(5))], [real])


def test_a_sweep_in_two_parts_is_refused():
    real = drive(7)
    with pytest.raises(InputError, match="real: sweep 0 comes twice"):
        compare([real[:100], real[100:]], NormalWorld())


def test_range_limits_that_change_are_refused():
    parts = [drive(8, n_sweeps=1), log_of([5.0], sweeps=7, max_range_m=30.0)]
    with pytest.raises(InputError, match="range limits change"):
        compare(parts, NormalWorld())


@pytest.mark.parametrize(
    ("simulated", "message"),
    [
        (3, "simulated: expected a log, logs or a world"),
        ("site.world", "simulated: expected a log, logs or a world"),
        ([1, 2], "simulated: expected a stream of logs, found int"),
        ({}, "simulated: names no simulation"),
        ({"real": NormalWorld()}, "simulated: 'real' is what the real log is called"),
    ],
)
def test_what_is_no_simulation_is_refused(simulated, message):
    with pytest.raises(InputError, match=message):
        compare(drive(n_sweeps=1), simulated)


def test_a_world_in_the_place_of_the_real_log_is_refused():
    with pytest.raises(InputError, match="real: is a world"):
        compare(NormalWorld(), drive())  # pyright: ignore[reportCallIssue, reportArgumentType]  # wrong on purpose


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"outlier_share": 0.0}, "outlier_share: .* greater than 0"),
        ({"bearing_step": 1}, "bearing_step: compare has no such parameter; did you mean bearing_step_deg"),
        ({"range_step_m": float("nan")}, "range_step_m"),
    ],
)
def test_wrong_settings_are_refused_by_name(wrong, message):
    with pytest.raises(InputError, match=message):
        compare(drive(n_sweeps=1), NormalWorld(), **wrong)
