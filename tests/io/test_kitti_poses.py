# SPDX-License-Identifier: Apache-2.0
"""KITTI odometry poses: matrices in rows, times from elsewhere."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hedgerow.base import rotation
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.trajectory import read_kitti, write_kitti

IDENTITY = "1 0 0 0 0 1 0 0 0 0 1 0"


def test_rows_are_the_upper_part_of_the_matrix(tmp_path):
    # First pose of many KITTI sequences, then 90 degrees about z at (1, 2, 3).
    (tmp_path / "00.txt").write_text(f"{IDENTITY}\n0 -1 0 1 1 0 0 2 0 0 1 3\n")
    trajectory = read_kitti(tmp_path / "00.txt", rate_hz=10)
    assert_array_equal(trajectory.time_ns, [0, 100_000_000])
    expected = Pose.from_xyz_rpy((1, 2, 3), (0, 0, np.pi / 2))
    assert_allclose(trajectory.pose_at(100_000_000).matrix(), expected.matrix(), atol=1e-15)


def test_round_trip_with_times_file(tmp_path):
    rng = np.random.default_rng(3)
    q = rng.normal(size=(20, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    trajectory = Trajectory(np.cumsum(rng.integers(1, 10**9, 20)), rng.normal(size=(20, 3)), q)
    write_kitti(trajectory, tmp_path / "00.txt", times=tmp_path / "times.txt")
    again = read_kitti(tmp_path / "00.txt", times=tmp_path / "times.txt")
    assert_array_equal(again.time_ns, trajectory.time_ns)
    assert_array_equal(again.position_m, trajectory.position_m)
    # Through matrices and back: a few roundings of 2e-16.
    assert_allclose(rotation.to_matrix(again.quaternion_xyzw), rotation.to_matrix(q), atol=1e-14)


def test_times_file_in_scientific_notation_is_exact(tmp_path):
    (tmp_path / "00.txt").write_text(f"{IDENTITY}\n" * 3)
    (tmp_path / "times.txt").write_text("0.000000e+00\n1.037359e-01\n2.073488e-01\n")
    trajectory = read_kitti(tmp_path / "00.txt", times=tmp_path / "times.txt")
    assert_array_equal(trajectory.time_ns, [0, 103_735_900, 207_348_800])


def test_times_as_an_array(tmp_path):
    (tmp_path / "00.txt").write_text(f"{IDENTITY}\n" * 2)
    assert_array_equal(read_kitti(tmp_path / "00.txt", times=[0.5, 1.0]).time_ns, [5 * 10**8, 10**9])


def test_rotations_rounded_in_the_file_are_mended(tmp_path):
    matrix = Pose.from_xyz_rpy((0, 0, 0), (0.3, 0.2, 0.1)).matrix()[:3]
    (tmp_path / "00.txt").write_text(" ".join(f"{value:.4f}" for value in matrix.ravel()))
    trajectory = read_kitti(tmp_path / "00.txt", rate_hz=1)
    assert_allclose(np.linalg.norm(trajectory.quaternion_xyzw, axis=1), 1, atol=1e-15)
    assert_allclose(trajectory.pose_at(0).matrix()[:3], matrix, atol=1e-4)  # four decimals


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([IDENTITY, "1 2 3"], "line 2: expected 12 numbers .*, found 3"),
        ([IDENTITY, "", IDENTITY.replace("1", "one", 1)], "line 3: 'one' is not a number"),
        ([IDENTITY, IDENTITY.replace("0", "nan", 1)], "line 2: matrix is .*finite"),
        ([IDENTITY, "2 0 0 0 0 1 0 0 0 0 1 0"], "line 2: matrix holds no rotation"),
        ([IDENTITY, "1 0 0 0 0 1 0 0 0 0 -1 0"], "line 2: matrix holds no rotation"),
        ([], "no poses in it"),
    ],
)
def test_bad_lines_are_refused_naming_file_and_line(tmp_path, lines, message):
    (tmp_path / "00.txt").write_text("\n".join(lines))
    with pytest.raises(FileError, match=rf"00.txt(, |: ){message}"):
        read_kitti(tmp_path / "00.txt", rate_hz=10)


@pytest.mark.parametrize("options", [{}, {"rate_hz": 10, "times": [0.0, 1.0]}])
def test_times_must_come_from_exactly_one_place(tmp_path, options):
    with pytest.raises(InputError, match=r"give either times= .* or rate_hz="):
        read_kitti(tmp_path / "00.txt", **options)


def test_bad_times_are_refused(tmp_path):
    (tmp_path / "00.txt").write_text(f"{IDENTITY}\n" * 3)
    with pytest.raises(InputError, match=r"00.txt: 3 poses but 2 times"):
        read_kitti(tmp_path / "00.txt", times=[0.0, 1.0])
    with pytest.raises(InputError, match="rate_hz: expected a finite number above 0"):
        read_kitti(tmp_path / "00.txt", rate_hz=0)
    (tmp_path / "times.txt").write_text("0\n2\n1\n")
    with pytest.raises(FileError, match=r"times.txt, line 3: the time stamp is not later"):
        read_kitti(tmp_path / "00.txt", times=tmp_path / "times.txt")
