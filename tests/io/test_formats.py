# SPDX-License-Identifier: Apache-2.0
"""The suffix picks the format; what it cannot pick is refused with the list of what it can."""

import subprocess
import sys
from dataclasses import replace

import pytest

from hedgerow.errors import FileError, InputError, MissingPackage
from hedgerow.frames import Trajectory
from hedgerow.io import (
    TRAJECTORY_FORMATS,
    open_log,
    read_log,
    read_trajectory,
    write_log,
    write_trajectory,
)
from hedgerow.io.formats import FORMATS, load_reader, load_writer
from hedgerow.io.options import ReadOptions, WriteOptions, read_options, split_options
from hedgerow.io.source import LogSource

LINE = Trajectory.line((0, 0, 0), (3, 4, 0), 2)


@pytest.mark.parametrize("name", ["drive.parquet", "drive.log", "drive", "drive.PARQUET"])
def test_every_parquet_suffix_round_trips(tmp_path, log_maker, name):
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


def test_every_row_of_the_tables_leads_to_its_functions():
    for each in FORMATS:
        assert each.reads or each.writes
        assert not each.reads or callable(load_reader(each))
        assert not each.writes or callable(load_writer(each))
        assert set(each.options) <= set(ReadOptions.model_fields)
        assert set(each.write_options) <= set(WriteOptions.model_fields)
        assert each.writes or not each.write_options
    for row in TRAJECTORY_FORMATS.values():
        assert callable(row.read)
        assert callable(row.write)


def test_no_two_formats_claim_a_suffix():
    claimed = [suffix for each in FORMATS for suffix in each.suffixes]
    assert len(claimed) == len(set(claimed))


def test_no_option_is_for_reading_and_for_writing():
    assert not set(ReadOptions.model_fields) & set(WriteOptions.model_fields)
    assert split_options({"organised": True, "static": True}) == ({"static": True}, {"organised": True})
    with pytest.raises(InputError, match=r"colour: there is no such option; there are trajectory, .*, organised"):
        split_options({"colour": 1})


def test_an_absent_package_is_named_with_the_pip_line(monkeypatch, tmp_path):
    needy = replace(FORMATS[0], packages=("no_such_package",))
    with pytest.raises(MissingPackage, match=r"needs the package no_such_package.*pip install 'hedgerow\[formats\]'"):
        load_reader(needy)
    with pytest.raises(MissingPackage, match="needs the package no_such_package"):
        load_writer(needy)


def test_option_that_a_format_does_not_take_is_refused(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "x.parquet")
    with pytest.raises(InputError, match="trajectory: parquet does not take this option; it takes none"):
        open_log(tmp_path / "x.parquet", trajectory="poses.tum")
    with pytest.raises(InputError, match="colour: there is no such option; there are trajectory, mount"):
        open_log(tmp_path / "x.parquet", colour=3)


def test_option_of_a_wrong_value_is_refused():
    with pytest.raises(InputError, match="max_range_m: input should be greater than 0, found -1"):
        read_options({"max_range_m": -1}, ("max_range_m",), "x")
    with pytest.raises(InputError, match="mount: list should have at least 6 items"):
        read_options({"mount": [1, 2]}, ("mount",), "x")


def test_old_name_of_an_option_still_works():
    assert read_options({"compensated": True}, ("deskewed",), "x").deskewed is True
    with pytest.raises(InputError, match="deskewed: x does not take this option"):
        read_options({"compensated": True}, (), "x")


def test_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"x")
    with pytest.raises(FileError, match=r"the folder holds no log that is known \(looked for parquet: part-"):
        open_log(tmp_path)


def test_zip_archive_with_another_suffix_is_told_by_its_first_bytes(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(FileError, match=r"x.parquet: is a zip archive, not parquet; unpack it first"):
        open_log(tmp_path / "x.parquet")


def test_opened_parquet_log_is_a_log_source(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "x.parquet")
    source = open_log(tmp_path / "x.parquet")
    assert isinstance(source, LogSource)
    assert source.n_beams == len(log_maker())
    assert [number for number, _ in source.iter_sweeps(range(1, 9))] == [1, 2]


def test_unknown_suffix_is_refused_with_the_known_ones(tmp_path, log_maker):
    with pytest.raises(FileError, match=r"x.xyz: unknown kind of file, suffix .xyz; known are .*.log.*.parquet"):
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


def test_only_what_can_be_written_is_offered_for_writing(tmp_path, log_maker):
    listed = r"\.bag, \.las, \.laz, \.log, \.mcap, \.parquet, \.pcd, \.ply, and folders: kitti, pcd-folder \(say.*--to"
    with pytest.raises(FileError, match=rf"suffix \.xyz; known are {listed}"):
        write_log(log_maker(), tmp_path / "x.xyz")
    for name in ("x.db3", "x.pcap"):
        with pytest.raises(FileError, match=rf"cannot be written; use {listed}"):
            write_log(log_maker(), tmp_path / name)
    (tmp_path / "x.xyz").write_text("")
    with pytest.raises(
        FileError, match=r"known are \.bag, .*\.pcap, .*, and folders: kitti-360, kitti-raw, kitti, pcd-fo"
    ):
        open_log(tmp_path / "x.xyz")


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


@pytest.mark.parametrize("name", ["scanner_m", "map_origin_m"])
def test_positions_beyond_every_map_are_refused(name):
    assert read_options({name: [4e6, 5e6, -1e8]}, (name,), "x")
    with pytest.raises(InputError, match=rf"{name}\[1\]: input should be .* 100000000"):
        read_options({name: [0, 1e12, 0]}, (name,), "x")


def test_a_mount_beyond_every_map_is_refused():
    with pytest.raises(InputError, match="farther than 100,000,000 m"):
        _ = read_options({"mount": [1e12, 0, 0, 0, 0, 0]}, ("mount",), "x").mount_pose
