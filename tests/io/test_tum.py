# SPDX-License-Identifier: Apache-2.0
"""TUM trajectories: exact stamps, exact numbers, errors that name the line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from hedgerow.errors import FileError, HedgerowWarning, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.trajectory import read_trajectory, read_tum, write_tum

POSE = "1 2 3 0 0 0 1"


def random_trajectory(n: int, seed: int) -> Trajectory:
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(n, 4))
    time_ns = 1_700_000_000_123_456_789 + np.cumsum(rng.integers(1, 10**9, n))
    return Trajectory(time_ns, rng.normal(size=(n, 3)) * 1e6, q / np.linalg.norm(q, axis=1, keepdims=True))


@given(st.integers(1, 30), st.integers(0, 1000))
def test_round_trip_is_exact_to_the_last_bit(tmp_path_factory, n, seed):
    path = tmp_path_factory.mktemp("tum") / "x.tum"
    trajectory = random_trajectory(n, seed)
    write_tum(trajectory, path)
    assert read_tum(path).equal(trajectory)


def test_stamps_are_read_to_the_nanosecond(tmp_path):
    path = tmp_path / "x.tum"
    stamps = ["-1.5", "0", "1e-9", "1.4e1", "1403636579.763555584", "1403636579.763555585", "1.5e9"]
    path.write_text("\n".join(f"{stamp} {POSE}" for stamp in stamps))
    expected = [-1_500_000_000, 0, 1, 14 * 10**9, 1403636579763555584, 1403636579763555585, 15 * 10**17]
    assert_array_equal(read_tum(path).time_ns, expected)


def test_times_before_zero_are_written_exactly(tmp_path):
    trajectory = Trajectory([-1, 0, 5], np.zeros((3, 3)), [[0, 0, 0, 1]] * 3)  # pyright: ignore[reportArgumentType]  # lists are converted
    write_tum(trajectory, tmp_path / "x.tum")
    assert (tmp_path / "x.tum").read_text().splitlines()[1].startswith("-0.000000001 ")
    assert read_tum(tmp_path / "x.tum").equal(trajectory)


def test_comments_empty_lines_and_tabs_are_allowed(tmp_path):
    (tmp_path / "x.tum").write_text(f"# head\n\n1 {POSE} # first\r\n2\t1\t2\t3\t0\t0\t0\t1\n\n")
    assert_array_equal(read_tum(tmp_path / "x.tum").time_ns, [10**9, 2 * 10**9])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["# head", f"1 {POSE}", "2 1 2 3 0 0 0"], r"line 3: expected 8 numbers \(timestamp tx .*\), found 7"),
        ([f"1 {POSE}", f"now {POSE}"], "line 2: 'now' is not a time stamp"),
        ([f"1 {POSE}", f"nan {POSE}"], "line 2: 'nan' is not a time stamp"),
        ([f"1 {POSE}", f"inf {POSE}"], "line 2: 'inf' is not a time stamp"),
        ([f"1 {POSE}", f"1e12 {POSE}"], "line 2: the time stamp 1e12 s is too large"),
        ([f"1 {POSE}", "2 1 2 x 0 0 0 1"], "line 2: 'x' is not a number"),
        ([f"1 {POSE}", "", "2 1 nan 3 0 0 0 1"], "line 3: position_m is .*finite"),
        ([f"1 {POSE}", "2 1 2 3 0 0 0 0.5"], "line 2: quaternion_xyzw is .*unit length"),
        ([f"2 {POSE}", "# again", f"2 {POSE}"], "line 3: time_ns is 2000000000, not later"),
        (["# nothing"], "no poses in it"),
        ([], "no poses in it"),
    ],
)
def test_bad_lines_are_refused_naming_file_and_line(tmp_path, lines, message):
    (tmp_path / "x.tum").write_text("\n".join(lines))
    with pytest.raises(FileError, match=rf"x.tum(, |: ){message}"):
        read_tum(tmp_path / "x.tum")


def test_missing_and_binary_files_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"x.tum: no such file"):
        read_tum(tmp_path / "x.tum")
    (tmp_path / "x.tum").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"x.tum: not a text file"):
        read_tum(tmp_path / "x.tum")


def test_times_are_refused_because_the_file_has_them(tmp_path):
    with pytest.raises(InputError, match="TUM poses have their own times"):
        read_tum(tmp_path / "x.tum", rate_hz=10)


def test_times_after_the_start_in_another_unit_are_warned_of(tmp_path):
    for step, unit, factor in (("100000000", "nanoseconds", "1e9"), ("100000", "microseconds", "1e6")):
        (tmp_path / "x.tum").write_text(f"0 {POSE}\n{step} {POSE}\n")
        with pytest.warns(HedgerowWarning, match=f"the times look like {unit}, .* divide them by {factor}"):
            read_trajectory(tmp_path / "x.tum")


@pytest.mark.parametrize(
    ("stamp", "unit"), [("1.7e12", "milliseconds"), ("1.7e15", "microseconds"), ("1700000000000000000", "nanoseconds")]
)
def test_unix_times_in_another_unit_are_refused_naming_it(tmp_path, stamp, unit):
    (tmp_path / "x.tum").write_text(f"{stamp} {POSE}\n")
    with pytest.raises(FileError, match=f"x.tum, line 1: the time stamp .* s is too large; it looks like {unit}"):
        read_trajectory(tmp_path / "x.tum")


def test_a_stamp_of_a_million_digits_is_refused_at_once(tmp_path):
    (tmp_path / "x.tum").write_text(f"1e999999 {POSE}\n")
    with pytest.raises(FileError, match="too large"):
        read_trajectory(tmp_path / "x.tum")
