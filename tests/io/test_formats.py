# SPDX-License-Identifier: Apache-2.0
"""The suffix picks the format; what it cannot pick is refused with the list of what it can."""

import subprocess
import sys

import pytest

from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io import (
    LOG_FORMATS,
    TRAJECTORY_FORMATS,
    open_log,
    read_log,
    read_trajectory,
    write_log,
    write_trajectory,
)

LINE = Trajectory.line((0, 0, 0), (3, 4, 0), 2)


@pytest.mark.parametrize("name", [f"drive{suffix}" for suffix in LOG_FORMATS] + ["drive.PARQUET"])
def test_every_log_suffix_round_trips(tmp_path, log_maker, name):
    write_log(log_maker(), str(tmp_path / name))
    assert read_log(str(tmp_path / name)).equal(log_maker())
    assert (tmp_path / name).is_file() == name.lower().endswith(".parquet")


@pytest.mark.parametrize("suffix", [".tum", ".txt"])
def test_tum_suffixes_round_trip(tmp_path, suffix):
    write_trajectory(LINE, tmp_path / f"x{suffix}")
    assert read_trajectory(tmp_path / f"x{suffix}").equal(LINE)


@pytest.mark.parametrize("suffix", [".kitti", ".txt"])
def test_kitti_is_read_from_its_own_suffix_and_from_txt(tmp_path, suffix):
    write_trajectory(LINE, tmp_path / "x.kitti")
    path = (tmp_path / "x.kitti").rename(tmp_path / f"y{suffix}")
    again = read_trajectory(path, times=LINE.time_ns)
    assert again.length_m == pytest.approx(5)
    with pytest.raises(InputError, match="KITTI poses hold no times"):
        read_trajectory(path)


def test_every_row_of_the_tables_names_a_module_with_the_verbs():
    from importlib import import_module

    for formats, noun in ((LOG_FORMATS, "log"), (TRAJECTORY_FORMATS, "trajectory")):
        for module in formats.values():
            assert callable(getattr(import_module(module), f"read_{noun}"))
            assert callable(getattr(import_module(module), f"write_{noun}"))


def test_unknown_suffix_is_refused_with_the_known_ones(tmp_path, log_maker):
    with pytest.raises(FileError, match=r"x.xyz: unknown kind of file, suffix .xyz; known are .parquet, .log"):
        write_log(log_maker(), tmp_path / "x.xyz")
    (tmp_path / "x.xyz").write_text("")
    with pytest.raises(FileError, match="unknown kind of file"):
        read_log(tmp_path / "x.xyz")
    with pytest.raises(FileError, match="unknown kind of file"):
        open_log(tmp_path / "x.xyz")
    with pytest.raises(FileError, match=r"unknown kind of file, suffix .xyz; known are .tum, .kitti, .txt"):
        read_trajectory(tmp_path / "x.xyz")
    with pytest.raises(FileError, match="unknown kind of file"):
        write_trajectory(LINE, tmp_path / "y.xyz")
    assert [path.name for path in tmp_path.iterdir()] == ["x.xyz"]


@pytest.mark.parametrize("read", [read_log, open_log, read_trajectory])
def test_missing_file_is_refused_whatever_its_suffix(tmp_path, read):
    with pytest.raises(FileError, match=r"x.xyz: no such file or folder"):
        read(tmp_path / "x.xyz")


def test_log_in_a_folder_that_does_not_exist_is_refused(tmp_path, log_maker):
    with pytest.raises(FileError, match="does not exist; create it first"):
        write_log(log_maker(), tmp_path / "no" / "x.parquet")


def test_importing_io_does_not_import_pyarrow_or_scipy():
    code = "import sys, hedgerow.io; sys.exit('pyarrow' in sys.modules or 'scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
