# SPDX-License-Identifier: Apache-2.0
"""Logs go from one format to another sweep by sweep, completely or not at all."""

import pytest
from cli_runner import assert_refused, run
from test_ros_returns import DRIVE, turning

from hedgerow.errors import FileError
from hedgerow.io import open_log, read_log, write_log
from hedgerow.io.convert import convert


def test_parquet_file_becomes_a_folder_with_the_same_content(tmp_path, log_maker):
    log = log_maker(n_returns=2, arrays=("intensity", "label"))
    write_log(log, tmp_path / "a.parquet")
    seen = []
    done = convert(open_log(tmp_path / "a.parquet"), tmp_path / "b.log", progress=seen.append)
    assert read_log(tmp_path / "b.log").equal(log)
    assert (done.n_sweeps, done.written.n_beams, done.written.n_returns) == (3, len(log), int(log.returns.hit.sum()))
    assert seen == [1, 2, 3]


def test_the_command_sends_options_to_the_reader_or_the_writer(tmp_path):
    log = turning(n_sweeps=1)
    write_log(log, tmp_path / "a.mcap", trajectory=DRIVE)
    n, n_returns = len(log), int(log.returns.hit.sum())
    options = ("--set", "organised=true", "--set", "topic=/points")
    done = run("convert", "a.mcap", "b.mcap", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    amounts = f"1 sweep, {n:,} beams, {n_returns:,} returns, {n - n_returns:,} misses"
    assert done.stdout.splitlines()[:2] == [f"read a.mcap: {amounts}", f"wrote b.mcap: {amounts}"]
    assert read_log(tmp_path / "b.mcap").returns.hit.sum() == n_returns
    assert open_log(tmp_path / "b.mcap", recover="no").metadata["topic"] == "/points"
    refused = run("convert", "b.mcap", "c.parquet", "-s", "organised=true", cwd=tmp_path)
    assert_refused(refused, "organised: writing parquet does not take this option")


def test_the_list_of_formats_has_the_options_of_both_ways():
    listed = run("convert", "--formats").stdout
    assert "option for reading" in listed and "option for writing" in listed and "organised" in listed


def test_only_the_chosen_sweeps_are_copied(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "a.parquet")
    convert(open_log(tmp_path / "a.parquet"), tmp_path / "b.parquet", sweeps=range(1, 2))
    assert read_log(tmp_path / "b.parquet").equal(log_maker().select(sweep=1))


def test_no_sweep_left_writes_nothing(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "a.parquet")
    with pytest.raises(FileError, match="holds none of the sweeps asked for; nothing was written"):
        convert(open_log(tmp_path / "a.parquet"), tmp_path / "b.parquet", sweeps=range(9, 12))
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]


def test_a_log_is_not_converted_onto_itself(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "a.parquet")
    with pytest.raises(FileError, match="is what is being read"):
        convert(open_log(tmp_path / "a.parquet"), tmp_path / "a.parquet")
    assert read_log(tmp_path / "a.parquet").equal(log_maker())
