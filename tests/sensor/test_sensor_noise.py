# SPDX-License-Identifier: Apache-2.0
"""Random numbers keyed by pulse; range noise, range steps and drop-outs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from hedgerow.base import randomness
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns
from hedgerow.sensor import Sensor

ALARM = 1e-3  # false-alarm rate of each statistical test; the seeds are fixed


def log_at(range_m, *, min_range_m=0.0, max_range_m=np.inf, **beside) -> Log:
    """Pulses along x with these ranges, (N,) or (N, R)."""
    ranges = np.asarray(range_m, dtype=np.float32)
    beams = Beams.from_arrays(origins=[0, 0, 0], directions=np.tile([1.0, 0, 0], (len(ranges), 1)))
    return Log(beams, Returns(ranges, **beside), min_range_m=min_range_m, max_range_m=max_range_m)


def test_splitmix64_gives_the_reference_sequence():
    # Steele et al. 2014 with state 0: the first outputs of the published generator
    state = (np.arange(1, 4, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    assert [hex(word) for word in randomness._mix(state).tolist()] == [
        "0xe220a8397b1dcdaf",
        "0x6e789e6aa1b965f4",
        "0x6c45d188009454f",
    ]


def test_uniform_numbers_are_uniform_and_streams_independent():
    pulse = np.arange(20_000)
    one, two = randomness.uniform(1, pulse, 1), randomness.uniform(1, pulse, 2)
    other_seed = randomness.uniform(2, pulse, 1)
    limit = stats.norm.isf(ALARM / 2) / np.sqrt(len(pulse))
    for numbers in (one, two, other_seed):
        assert stats.kstest(numbers, "uniform").pvalue > ALARM
    assert abs(np.corrcoef(one, two)[0, 1]) < limit
    assert abs(np.corrcoef(one, other_seed)[0, 1]) < limit
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < limit


def test_normal_numbers_are_normal():
    assert stats.kstest(randomness.normal(7, np.arange(20_000), 16), "norm").pvalue > ALARM


@given(seed=st.integers(0, 2**64 - 1), first=st.integers(0, 2**40), cut=st.integers(0, 50))
def test_numbers_belong_to_the_pulse(seed, first, cut):
    pulse = first + np.arange(50)
    whole = randomness.uniform(seed, pulse, 3)
    parts = [randomness.uniform(seed, part, 3) for part in (pulse[:cut], pulse[cut:])]
    assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert ((whole > 0) & (whole < 1)).all()


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", None, True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InputError, match="seed: expected a whole number from 0 to"):
        randomness.require_seed(seed)
    with pytest.raises(InputError, match="seed"):
        Sensor.named("vlp-16").degrade(log_at([1.0]), seed)


def test_noise_has_the_sensors_sigma():
    sensor = Sensor.named("vlp-16")  # 0.03 m
    log = log_at(np.full(20_000, 20.0))
    error = sensor.degrade(log, seed=4, quantise=False).returns.range_m - 20.0
    assert stats.kstest(error / 0.03, "norm").pvalue > ALARM


def test_noise_of_a_triangulating_sensor_grows_with_the_range_squared():
    sensor = Sensor.named("neato-xv-11")
    for range_m, sigma_m in ((1.0, 0.0018), (5.0, 0.021)):  # 0.001 + 0.0008 r²
        log = log_at(np.full(20_000, range_m))
        error = sensor.degrade(log, seed=4, quantise=False).returns.range_m - range_m
        assert stats.kstest(error / sigma_m, "norm").pvalue > ALARM


def test_quantised_ranges_are_whole_steps():
    sensor = Sensor.named("lms-291")  # 10 mm
    log = log_at([1.0, 1.004, 1.006, 7.777, np.inf])
    degraded = sensor.degrade(log, noise=False).returns.range_m
    assert_allclose(degraded, [1.0, 1.0, 1.01, 7.78, np.inf], atol=1e-6)  # float32 near 8: 5e-7


def test_quantisation_moves_a_range_by_half_a_step_at_most():
    sensor = Sensor.named("vlp-32c")  # 4 mm
    ranges = np.random.default_rng(1).uniform(1, 60, 5000).astype(np.float32)
    moved = sensor.degrade(log_at(ranges), noise=False).returns.range_m - ranges
    assert np.abs(moved).max() <= 0.002 + 4e-6  # float32 near 60


def test_dropout_loses_the_asked_share_of_pulses():
    sensor, n = Sensor.named("vlp-16"), 20_000
    log = log_at(np.full(n, 10.0), intensity=np.ones(n, np.float32), label=np.full(n, 3, np.uint16))
    degraded = sensor.degrade(log, seed=8, noise=False, quantise=False, dropout=0.25)
    lost = ~degraded.returns.hit
    assert stats.binomtest(int(lost.sum()), n, 0.25).pvalue > ALARM
    assert degraded.returns.intensity is not None
    assert np.isnan(degraded.returns.intensity[lost]).all()
    assert degraded.returns.label is not None
    assert set(degraded.returns.label[lost].tolist()) == {0}
    assert set(degraded.returns.label[~lost].tolist()) == {3}


def test_dropout_of_nothing_and_of_everything():
    sensor, log = Sensor.named("vlp-16"), log_at([1.0, 2.0, 3.0])
    kept = sensor.degrade(log, noise=False, quantise=False, dropout=0)
    assert kept.equal(log)
    assert not sensor.degrade(log, dropout=1).returns.hit.any()
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="dropout: expected a share from 0 to 1"):
            sensor.degrade(log, dropout=share)


def test_misses_stay_misses_and_beams_stay_as_they_are():
    log = log_at([5.0, np.inf, 7.0])
    degraded = Sensor.named("vlp-16").degrade(log, seed=1)
    assert np.isinf(degraded.returns.range_m).tolist() == [False, True, False]
    assert degraded.beams is log.beams


def test_ranges_that_leave_the_limits_become_misses():
    n = 4000
    log = log_at(np.full(n, 100.0), min_range_m=0.9, max_range_m=100.0)
    lost = ~Sensor.named("vlp-16").degrade(log, seed=2, quantise=False).returns.hit
    assert stats.binomtest(int(lost.sum()), n, 0.5).pvalue > ALARM  # half of the noise points outward
    near = log_at(np.full(n, 0.9), min_range_m=0.9, max_range_m=100.0)
    assert (~Sensor.named("vlp-16").degrade(near, seed=2).returns.hit).any()


def test_several_returns_stay_nearest_first_with_their_labels():
    n = 3000
    ranges = np.tile(np.array([10.0, 10.02, np.inf]), (n, 1))  # closer than the noise: many swap
    labels = np.tile(np.array([1, 2, 0], dtype=np.uint16), (n, 1))
    log = log_at(ranges, label=labels)
    degraded = Sensor.named("vlp-16").degrade(log, seed=3, quantise=False)
    range_m = degraded.returns.range_m
    assert (range_m[:, 0] <= range_m[:, 1]).all()
    assert np.isinf(range_m[:, 2]).all()
    assert degraded.returns.label is not None
    assert (np.sort(degraded.returns.label[:, :2], axis=1) == [1, 2]).all()
    # swapped if the difference of two errors of 0.03 m exceeds 0.02 m
    swapped = int((degraded.returns.label[:, 0] == 2).sum())
    assert stats.binomtest(swapped, n, stats.norm.sf(0.02 / (0.03 * np.sqrt(2)))).pvalue > ALARM


def test_degrading_a_slice_gives_the_slice_of_the_degraded():
    log = log_at(np.linspace(2, 50, 1000))
    sensor = Sensor.named("vlp-16")
    whole = sensor.degrade(log, seed=6, dropout=0.1)
    assert sensor.degrade(log[300:700], seed=6, dropout=0.1).equal(whole[300:700])


def test_an_empty_log_stays_empty():
    assert len(Sensor.named("vlp-16").degrade(log_at([1.0])[0:0])) == 0
