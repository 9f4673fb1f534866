# SPDX-License-Identifier: Apache-2.0
"""Planar sensor models: how long predictions and scans take, exact and from a table."""

from typing import Any

import numpy as np
from measure import Result, best_seconds

from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.parametric import PReg
from hedgerow.planar.regression import Observations, Scale
from hedgerow.planar.sensor_model import States
from hedgerow.planar.tabulated import TabulatedModel

SCALE = Scale(high_m=4.5, step_m=0.001)
N_STATES, N_READINGS, N_QUERIES, N_BEARINGS = 1000, 100, 200, 360
PREDICTION_MS, SCAN_MS = 30.0, 1.0


def readings(n: int, each: int, n_groups: int) -> Observations:
    random = np.random.default_rng(0)
    state = np.column_stack([random.uniform(0.3, 4.0, n), random.uniform(0, 1.3, n)])
    value = SCALE.round(state[:, :1] + 0.01 * random.normal(size=(n, each)))
    return Observations(state, value, np.arange(n) % n_groups)


def results():
    random = np.random.default_rng(1)
    model = NPReg(readings(N_STATES, N_READINGS, 1), SCALE, bandwidth=(0.05, 0.3))
    query = States.of(np.column_stack([random.uniform(0.3, 4, N_QUERIES), random.uniform(0, 1.3, N_QUERIES)]))
    [seconds] = best_seconds(lambda: model.histogram(query), rounds=5)
    what = f"planar: NP-Reg, {N_STATES:,} states of {N_READINGS} readings, {SCALE.n_bins:,} bins, {N_QUERIES} queries"
    yield Result(what, f"{1e3 * seconds:.1f} ms", f"< {PREDICTION_MS:g} ms", 1e3 * seconds < PREDICTION_MS)
    scan = np.column_stack([random.uniform(0.3, 4, N_BEARINGS), random.uniform(0, 1.3, N_BEARINGS)])
    states = States.of(scan, np.arange(N_BEARINGS))
    widths: dict[str, Any] = {f"{name}_bandwidth": (0.3, 0.3) for name in ("null", "mean", "sigma")}
    p_reg = PReg(readings(100 * N_BEARINGS, 5, N_BEARINGS), SCALE, **widths)
    [exact] = best_seconds(lambda: p_reg.sample(states, seed=1), rounds=5)
    yield Result("planar: a scan of 360 bearings, P-Reg, exact", f"{1e3 * exact:.1f} ms", "", None)
    [exact] = best_seconds(lambda: model.sample(States.of(scan), seed=1), rounds=3)
    yield Result("planar: the same, NP-Reg of 1,000 states, exact", f"{1e3 * exact:.1f} ms", "", None)
    table = TabulatedModel(model, range_step_m=0.02, incidence_step_rad=np.pi / 24)
    pooled = States.of(scan)
    table.sample(pooled)  # makes the quantiles
    [seconds] = best_seconds(lambda: table.sample(pooled, seed=1), rounds=20)
    what = "planar: the same from a table"
    yield Result(what, f"{1e3 * seconds:.2f} ms", f"< {SCAN_MS:g} ms", 1e3 * seconds < SCAN_MS)
    error = np.abs(table.histogram(pooled) - model.histogram(pooled)).sum(axis=0) / 2
    yield Result("planar: mean total variation of table and exact", f"{float(error.mean()):.3f}", "", None)


if __name__ == "__main__":
    for result in results():
        print(result.what, result.value)
