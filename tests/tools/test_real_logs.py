# SPDX-License-Identifier: Apache-2.0
"""Re-packed recordings become logs, and are cut into parts that share nothing."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

TOOLS = Path(__file__).parents[2] / "tools"
LOADER = """
import numpy as np

class Log:
    frames = [5, 6, 7, 8]

    def __init__(self, folder):
        pass

    def sweep(self, i):
        column = np.arange(8)
        angle = column / 8
        directions = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
        ranges = np.where(column == 0, np.inf, 10.0 * column)
        return dict(origin=np.full((8, 3), float(i)), dir=directions, range=ranges, ring=0 * column, col=column)
"""
GRIDS = """
import numpy as np

def sweep(name, i):
    assert name == "grid"
    directions = np.tile([1.0, 0, 0], (6, 1))
    return dict(origin=np.zeros((6, 3)), dir=directions, range=np.arange(6.0) + 1, refl=np.arange(6))
"""


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("real_logs", TOOLS / "real_logs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["real_logs"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["real_logs"]


def read(tool, folder, choice, **options):
    return list(tool.logs(folder, choice, max_range_m=options.pop("max_range_m", 80.0), sensor="x", **options))


def test_parts_by_sweep_and_by_column_share_no_beam_and_miss_none(tool, tmp_path):
    (tmp_path / "load.py").write_text(LOADER)
    for by_column in (False, True):
        parts = [
            read(tool, tmp_path, tool.Choice(by_column=by_column, **{key: 4})) for key in ("skip_every", "only_every")
        ]
        beams = [
            [(log.beams.sweep[i], log.beams.direction[i, 1]) for log in logs for i in range(len(log))] for logs in parts
        ]
        assert len(beams[1]) == 8 and len(beams[0]) == 24
        assert not set(beams[0]) & set(beams[1])


def test_sweeps_keep_their_numbers_and_pulses_count_through(tool, tmp_path):
    (tmp_path / "load.py").write_text(LOADER)
    logs = read(tool, tmp_path, tool.Choice("1:3"))
    assert [log.beams.sweep[0] for log in logs] == [6, 7]
    np.testing.assert_array_equal(np.concatenate([log.beams.pulse for log in logs]), np.arange(16))


def test_what_is_beyond_or_below_the_limits_did_not_return(tool, tmp_path):
    (tmp_path / "load.py").write_text(LOADER)
    (log,) = read(tool, tmp_path, tool.Choice("0:1"), min_range_m=15.0, max_range_m=35.0)
    np.testing.assert_array_equal(log.returns.first_m, [np.inf, np.inf, 20, 30, *[np.inf] * 4])
    assert (log.min_range_m, log.max_range_m) == (15, 35)


def test_one_of_several_recordings_is_a_grid_of_rings_by_columns(tool, tmp_path):
    (tmp_path / "load.py").write_text(GRIDS)
    np.savez(tmp_path / "grid.npz", range_mm=np.zeros((1, 2, 3)))
    (log,) = read(tool, tmp_path, tool.Choice(only_every=3, by_column=True), recording="grid")
    np.testing.assert_array_equal(log.beams.ring, [0, 1])
    np.testing.assert_array_equal(log.returns.first_m, [3, 6])
    np.testing.assert_array_equal(log.returns.intensity, [2, 5])


def test_columns_that_the_carrier_hides_are_left_out(tool, tmp_path):
    (tmp_path / "load.py").write_text(LOADER.replace("0 * angle], axis=1)", "0 * angle - 0.1], axis=1) / 1.01**0.5"))
    (log,) = read(tool, tmp_path, tool.Choice("0:1"), hidden_share=0.5)
    assert len(log) == 7  # column 0 never returns
    assert np.isfinite(log.returns.first_m).all()
    (log,) = read(tool, tmp_path, tool.Choice("0:1"))
    assert len(log) == 8


def test_a_folder_without_loader_is_refused(tool, tmp_path):
    with pytest.raises(SystemExit, match="has no load"):
        tool.loader(tmp_path)
