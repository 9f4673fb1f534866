# SPDX-License-Identifier: Apache-2.0
"""Sensor models: densities add up, draws follow densities, known surfaces are recovered, files come back."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from hedgerow.errors import FileError, InputError
from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.parametric import BeamMixture, GaussianModel, PReg
from hedgerow.planar.regression import Observations, Scale
from hedgerow.planar.sensor_model import States, load_sensor_model
from hedgerow.planar.training import train_gaussian, train_mixture, train_np_reg, train_p_reg

SCALE = Scale(low_m=0.0, high_m=2.0, step_m=0.01)
WIDTHS: dict[str, Any] = {"null_bandwidth": (0.3, 0.3), "mean_bandwidth": (0.3, 0.3), "sigma_bandwidth": (0.3, 0.3)}


def surfaces(state, group):
    """A known sensor: share of nulls, mean and sigma by range, incidence and bearing."""
    range_m, incidence = state.T
    return 0.05 + 0.1 * incidence, range_m + 0.02 * incidence + 0.03 * group, 0.01 + 0.01 * range_m


def readings(n_states, n_each, seed, n_groups=2):
    random = np.random.default_rng(seed)
    state = np.column_stack([random.uniform(0.4, 1.6, n_states), random.uniform(0, 1.2, n_states)])
    group = np.arange(n_states) % n_groups
    null, mean, sigma = surfaces(state, group)
    value = SCALE.round(mean[:, None] + sigma[:, None] * random.normal(size=(n_states, n_each)))
    value[random.uniform(size=value.shape) < null[:, None]] = np.inf
    return Observations(state, value, group)


TRAINING = readings(300, 40, 1)
MODELS: dict[str, Any] = {
    "p-reg": PReg(TRAINING, SCALE, **WIDTHS),
    "np-reg": NPReg(TRAINING, SCALE, bandwidth=(0.05, 0.3)),
    "np-reg, densities": NPReg(TRAINING, SCALE, bandwidth=(0.05, 0.3), z_bandwidth_m=0.02),
    "np-reg, offset": NPReg(TRAINING, SCALE, bandwidth=(0.05, 0.3), bearing_offset=True),
    "gaussian": GaussianModel(SCALE, 1e-3),
    "mixture": BeamMixture(SCALE, eta=0.7, sigma_m=0.05, rate_per_m=1.5, null=0.1),
}
QUERY = States.of([[0.5, 0.2], [1.0, 0.9], [1.9, 0.1], [np.nan, np.nan]], [0, 1, 0, 1])


@pytest.mark.parametrize("name", MODELS)
def test_densities_and_the_null_probability_add_up_to_one(name):
    model, values = MODELS[name], 0.01 * np.arange(201)
    for row in range(len(QUERY)):
        states = QUERY[np.full(202, row)]
        density = model.density(states, np.append(values, np.inf))
        assert density.min() >= 0
        assert density[:-1].sum() * 0.01 + density[-1] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_draws_follow_the_density(name):
    model, n = MODELS[name], 4000
    for row in range(len(QUERY)):
        drawn = model.sample(QUERY[np.full(n, row)], seed=3, pulse=np.arange(n) + n * row)
        expected = n * model.histogram(QUERY[[row]])[:, 0]
        found = np.bincount(SCALE.bin_of(drawn), minlength=202)
        many = expected > 5
        rest = (found[~many].sum(), expected[~many].sum())
        found, expected = np.append(found[many], rest[0]), np.append(expected[many], rest[1])
        if rest[1] < 5:
            assert rest[0] < 25  # a Poisson number of mean below 5 exceeds 24 once in 1e9
            found, expected = found[:-1], expected[:-1]
        if len(found) > 1:
            # 24 such tests: a false alarm in 1 of 40,000 runs, and the seed is fixed.
            assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 1e-6


def test_the_same_seed_and_pulse_give_the_same_reading_in_any_slice():
    states = QUERY[np.arange(40) % 4]
    whole = MODELS["p-reg"].sample(states, seed=5)
    assert np.array_equal(whole[10:20], MODELS["p-reg"].sample(states[10:20], seed=5, pulse=np.arange(10, 20)))


def test_p_reg_recovers_known_surfaces_and_biases_of_bearings():
    model, tried = train_p_reg(readings(800, 60, 2), readings(200, 60, 3), SCALE)
    test = readings(200, 1, 4)
    found = model.parameters(States(test.state, test.groups))
    null, mean, sigma = surfaces(test.state, test.groups)
    # A state's mean is uncertain by 0.02 / sqrt(60) = 2.6 mm; averaged over the kernel, by less.
    assert np.sqrt(np.mean((found.mean_m - mean) ** 2)) < 0.0015
    assert np.sqrt(np.mean((found.sigma_m - sigma) ** 2)) < 0.0015
    assert np.sqrt(np.mean((found.null - null) ** 2)) < 0.02  # sqrt(.1 * .9 / 60) = 0.04 at a state
    assert set(tried) == {"null", "mean", "sigma"} and len(tried["mean"].rows) == 20


def test_p_reg_learns_from_one_reading_at_each_state():
    model, _ = train_p_reg(readings(2000, 1, 5), readings(300, 1, 6), SCALE)
    test = readings(300, 1, 7)
    found = model.parameters(States(test.state, test.groups))
    _, mean, sigma = surfaces(test.state, test.groups)
    assert np.sqrt(np.mean((found.mean_m - mean) ** 2)) < 0.005
    assert np.mean(found.sigma_m / sigma) == pytest.approx(1, abs=0.06)  # 2,000 squares: 3 %, and the kernel's bias


def test_the_error_falls_with_eightfold_training_data():
    test = readings(300, 1, 9)
    _, mean, _ = surfaces(test.state, test.groups)

    def error(n):
        model, _ = train_p_reg(readings(n, 5, n), readings(200, 5, 8), SCALE)
        return np.sqrt(np.mean((model.parameters(States(test.state, test.groups)).mean_m - mean) ** 2))

    few, many = error(150), error(1200)
    slope = 2 * np.log(few / many) / np.log(8)
    k, d = 2, 2  # a local plane leaves errors of the second order, over range and incidence
    print(f"mean squared error falls as n to the -{slope:.2f}; asymptotically -{2 * k / (2 * k + d):.2f}")
    assert many < 0.7 * few


def test_np_reg_with_offsets_of_bearings_beats_pooling_them():
    # Bearings differ by 3 cm, three times sigma, so pooling sees two peaks where there is one.
    training, validation = readings(600, 40, 10), readings(60, 40, 11)
    _, pooled = train_np_reg(training, validation, SCALE)
    _, offset = train_np_reg(training, validation, SCALE, bearing_offset=True)
    # What is left is the noise of 40 validation readings a state, which both have.
    assert min(row[1] for row in offset.rows) < 0.9 * min(row[1] for row in pooled.rows)


def test_k_of_the_gaussian_is_recovered():
    random = np.random.default_rng(12)
    state = np.column_stack([random.uniform(0.5, 1.5, 400), random.uniform(0, 1.3, 400)])
    sigma = np.sqrt(1e-3 * state[:, 0] ** 2 / np.cos(state[:, 1]))
    value = SCALE.round(state[:, :1] + sigma[:, None] * random.normal(size=(400, 30)))
    model, _ = train_gaussian(Observations(state, value), SCALE)
    assert model.k == pytest.approx(1e-3, rel=0.35)  # the grid steps by a factor of 1.78


def test_the_mixture_is_recovered():
    truth = BeamMixture(SCALE, eta=0.8, sigma_m=0.03, rate_per_m=2.0, null=0.1)
    random = np.random.default_rng(13)
    state = np.column_stack([random.uniform(0.8, 1.6, 200), np.zeros(200)])
    value = np.stack([truth.sample(States.of(state), seed=i) for i in range(100)], axis=1)
    found = train_mixture(Observations(state, value), SCALE)
    # 18,000 readings: standard errors of 0.003, 0.0002 and 0.05.
    assert found.eta == pytest.approx(0.8, abs=0.015)
    assert found.sigma_m == pytest.approx(0.03, abs=0.001)
    assert found.rate_per_m == pytest.approx(2.0, abs=0.25)
    assert found.null == pytest.approx(0.1, abs=0.01)


def test_the_exponential_ends_at_the_nominal_range_and_the_gaussian_does_not():
    model = BeamMixture(SCALE, eta=0.5, sigma_m=0.02, rate_per_m=1.0)
    states = States.of(np.tile([[1.0, 0.0]], (3, 1)))
    before, at, behind = model.density(states, [0.8, 1.03, 1.2])
    assert_allclose(before, 0.5 * np.exp(-0.8) / (1 - np.exp(-1.0)), rtol=1e-4)
    assert at > 1 and behind < 1e-9


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_comes_back(name, tmp_path):
    model = MODELS[name]
    model.save(tmp_path / "neato.parquet")
    again = load_sensor_model(tmp_path / "neato.parquet")
    assert type(again) is type(model) and again.settings() == model.settings()
    reading = np.array([0.5, 1.05, np.inf, np.inf])
    assert np.array_equal(again.density(QUERY, reading), model.density(QUERY, reading))


def test_what_is_no_model_is_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 no")
    for name, said in (
        ("none.parquet", "no such file"),
        ("other.parquet", "is no sensor model"),
        ("damaged.parquet", "or damaged"),
    ):
        with pytest.raises(FileError, match=said):
            load_sensor_model(tmp_path / name)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MODELS["p-reg"].with_bandwidth("mean", (0.1,)), "mean_bandwidth"),
        (lambda: NPReg(TRAINING, SCALE, bandwidth=(0.1, -1)), "bandwidth"),
        (lambda: GaussianModel(SCALE, 0), "k"),
        (lambda: BeamMixture(SCALE, eta=1.1, sigma_m=1, rate_per_m=1), "eta"),
        (lambda: MODELS["p-reg"].density(QUERY, [0.1, np.nan, 0.1, 0.1]), "row 1 is NaN"),
        (lambda: MODELS["p-reg"].density(States.of([[1.0, 0.0]], 7), [1.0]), "bearing 7 was not trained"),
        (lambda: train_p_reg(TRAINING, TRAINING, SCALE, grids=[(0.1,)]), "grids"),
    ],
)
def test_bad_settings_are_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()
