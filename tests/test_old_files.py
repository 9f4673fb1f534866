# SPDX-License-Identifier: Apache-2.0
"""Files that earlier code saved still open: tests/data keeps a log and a world (format 2) of November 2026."""

from pathlib import Path

import numpy as np

import hedgerow as hr

SAVED = Path(__file__).parent / "data" / "saved_2026_11"


def test_an_old_log_opens_with_all_that_is_in_it():
    log = hr.read_log(SAVED / "drive.parquet")
    assert (len(log), log.sensor, log.min_range_m, log.max_range_m) == (1447, "vlp-16", 0.9, 100.0)
    assert log.sweeps.tolist() == [0, 1] and log.returns.hit.all()
    assert log.returns.intensity is not None and log.returns.label is not None and log.returns.element is not None
    assert log.metadata == {"seed": 7}


def test_an_old_world_opens_and_answers_as_it_did():
    log, world = hr.read_log(SAVED / "drive.parquet"), hr.load_world(SAVED / "refined.world")
    assert world.size().tables == {"gaussians": 20}
    assert world.header.parameters["passes"] == 1  # a name that the model has no more
    ranges = world.fire(log.beams, seed=3).returns.range_m.astype(np.float64)
    assert np.isfinite(ranges).sum() == 1430
    assert ranges[np.isfinite(ranges)].sum() == 12283.776237487793  # as the code that saved it fired: to the last bit
