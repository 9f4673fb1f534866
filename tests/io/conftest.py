# SPDX-License-Identifier: Apache-2.0
"""A maker of random but valid logs for the file tests."""

from collections.abc import Callable

import numpy as np
import pytest

from hedgerow.log import Beams, Log, Returns


def make_log(
    n_sweeps: int = 3,
    per_sweep: int = 40,
    n_returns: int = 1,
    arrays: tuple[str, ...] = (),
    seed: int = 1,
    shuffled: bool = False,
) -> Log:
    rng = np.random.default_rng(seed)
    n = n_sweeps * per_sweep
    direction = rng.normal(size=(n, 3))
    sweep = np.repeat(np.arange(n_sweeps), per_sweep)
    ranges = np.sort(rng.uniform(1, 50, (n, n_returns)).astype(np.float32), axis=1)
    ranges[np.arange(n_returns) >= rng.integers(0, n_returns + 1, n)[:, None]] = np.inf
    hit = np.isfinite(ranges)
    columns = {
        "intensity": np.where(hit, rng.random((n, n_returns)), np.nan).astype(np.float32),
        "label": np.where(hit, rng.integers(0, 65536, (n, n_returns)), 0).astype(np.uint16),
        "element": np.where(hit, rng.integers(0, 2**62, (n, n_returns)), -1).astype(np.int64),
    }
    shape = (n,) if n_returns == 1 else (n, n_returns)
    beams = Beams.from_arrays(
        origins=rng.normal(size=(n, 3)) * 1e5,
        directions=direction / np.linalg.norm(direction, axis=1, keepdims=True),
        times=1_700_000_000_000_000_000 + np.arange(n) * 1_333,
        rings=rng.integers(0, 65536, n),
        sweeps=rng.permutation(sweep) if shuffled else sweep,
        pulses=np.arange(n) + 10**12,
    )
    returns = Returns(ranges.reshape(shape), **{name: columns[name].reshape(shape) for name in arrays})
    metadata = {"seed": 7, "note": "größer", "list": [1, 2.5, None]}
    return Log(beams, returns, "test", 0.5, 60.0, np.array([4e5, 5e6, 100.0]), metadata)


@pytest.fixture(scope="session")
def log_maker() -> Callable[..., Log]:
    return make_log
