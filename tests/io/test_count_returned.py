# SPDX-License-Identifier: Apache-2.0
"""How many beams of some sweeps returned, told by the small columns of a Parquet log."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.io.parquet.reader import LogFile
from hedgerow.parallel.log_parts import cut_log


@pytest.mark.parametrize("per_pulse", [1, 3])
def test_counts_are_those_of_the_beams_read(tmp_path, per_pulse):
    rng = np.random.default_rng(5)
    n = 3000
    ranges = np.sort(np.where(rng.random((n, per_pulse)) < 0.4, np.inf, rng.uniform(1, 30, (n, per_pulse))), axis=1)
    direction = rng.normal(size=(n, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    log = hr.Log.from_arrays(
        origins=np.zeros((n, 3)), directions=direction, ranges=ranges[:, 0] if per_pulse == 1 else ranges,
        sweeps=np.arange(n) // 300, max_range_m=40,
    )  # fmt: skip
    path = tmp_path / "drive.parquet"
    hr.write_log(log, path)
    source = LogFile(path)
    for sweeps in ([0], [2, 5, 9], list(range(10))):
        assert source.count_returned(sweeps) == int(np.isfinite(source.read(sweeps).returns.first_m).sum())
    (part,) = cut_log(path).parts()
    found = part.look()
    assert (found.n_beams, found.n_returned) == (n, int(np.isfinite(ranges[:, 0]).sum()))
    assert found.start.max_range_m == 40 and len(found.start) == 0
