# SPDX-License-Identifier: Apache-2.0
"""Trajectories in text files: TUM, KITTI, and `*.txt`, which may be either."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays, rotation
from hedgerow.base.arrays import RowError
from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory, poses_from_matrices
from hedgerow.io.source import read_text

# What the text formats for poses share: rows of numbers, exact time stamps, errors that name the line.


_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Rows:
    """The words of a text file, without empty lines and comments."""

    path: Path
    words: list[list[str]]
    lines: list[int]
    """Line number of each row, from 1."""

    def numbers(self, first: int, stop: int) -> NDArray[np.float64]:
        """Return columns `first` to `stop` - 1 as (K, stop - first) float64.

        Raises:
            FileError: a word that is no number; names the line.
        """
        words = [row[first:stop] for row in self.words]
        try:
            return np.array(words, dtype=np.float64).reshape(-1, stop - first)
        except ValueError:
            for row, line in zip(words, self.lines, strict=True):
                for word in row:
                    _require_number(self.path, line, word)
            raise

    def stamps_ns(self) -> NDArray[np.int64]:
        """Return the first column, in decimal seconds, as (K,) exact nanoseconds.

        Raises:
            FileError: a word that is no finite number of seconds; names the line.
        """
        pairs = zip(self.words, self.lines, strict=True)
        return np.array([_stamp_ns(self.path, line, row[0]) for row, line in pairs], dtype=np.int64)

    @contextmanager
    def naming_lines(self) -> Generator[None]:
        """Turn an InputError about a row into a FileError that names its line."""
        try:
            yield
        except RowError as error:
            raise FileError(f"{self.path}, line {self.lines[error.row]}: {error.name} {error.problem}") from error
        except InputError as error:
            raise FileError(f"{self.path}: {error}") from error


def read_rows(path: str | Path, n_words: int | None, what: str) -> Rows:
    """Read a text file of rows of words; `#` starts a comment.

    Args:
        path: the file.
        n_words: words in each row, or None for any number.
        what: what the words are, for the error.

    Raises:
        FileError: not readable, no rows, or a row of another length; names the line.
    """
    path = Path(path)
    rows = Rows(path, [], [])
    for line, content in enumerate(read_text(path).splitlines(), start=1):
        words = content.partition("#")[0].split()
        if not words:
            continue
        if n_words is not None and len(words) != n_words:
            raise FileError(f"{path}, line {line}: expected {n_words} numbers ({what}), found {len(words)}")
        rows.words.append(words)
        rows.lines.append(line)
    if not rows.words:
        raise FileError(f"{path}: no poses in it; expected lines of {what}")
    return rows


def stamp_text(time_ns: int) -> str:
    """Write nanoseconds as seconds with nine decimals, exactly."""
    seconds, rest = divmod(abs(time_ns), _NS_PER_S)
    return f"{'-' if time_ns < 0 else ''}{seconds}.{rest:09d}"


def _stamp_ns(path: Path, line: int, word: str) -> int:
    # Not through float64, which cannot tell nanoseconds of Unix times apart.
    try:
        stamp_ns = int((Decimal(word) * _NS_PER_S).to_integral_value())
    except (DecimalException, ValueError, OverflowError):
        raise FileError(f"{path}, line {line}: {word!r} is not a time stamp in seconds") from None
    if abs(stamp_ns) >= 2**63:
        raise FileError(f"{path}, line {line}: the time stamp {word} s is too large")
    return stamp_ns


def _require_number(path: Path, line: int, word: str) -> None:
    try:
        float(word)
    except ValueError:
        raise FileError(f"{path}, line {line}: {word!r} is not a number") from None


# TUM trajectories: text lines `timestamp tx ty tz qx qy qz qw` in seconds and metres, `#` for comments.
#
# The format of the TUM RGB-D benchmark (Sturm et al., 2012), read by evo and most SLAM tools. Stamps are kept to the
# nanosecond, numbers to the last bit.


_COLUMNS = "timestamp tx ty tz qx qy qz qw"


def read_tum(path: str | Path, *, times: object = None, rate_hz: object = None) -> Trajectory:
    """Read a trajectory.

    Raises:
        FileError: not readable, or a line that is no pose; names the line.
        InputError: times or a rate are given, which the file has itself.
    """
    if times is not None or rate_hz is not None:
        raise InputError(f"{path}", "TUM poses have their own times; leave out times= and rate_hz=")
    rows = read_rows(path, 8, _COLUMNS)
    time_ns = rows.stamps_ns()
    numbers = rows.numbers(1, 8)
    with rows.naming_lines():
        return Trajectory(time_ns, numbers[:, :3], numbers[:, 3:])


def write_tum(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory, replacing an old file.

    Raises:
        FileError: cannot be written.
    """
    lines = [f"# {_COLUMNS}"]
    poses = zip(trajectory.position_m.tolist(), trajectory.quaternion_xyzw.tolist(), strict=True)
    for time_ns, (position_m, quaternion) in zip(trajectory.time_ns.tolist(), poses, strict=True):
        lines.append(" ".join([stamp_text(time_ns), *map(repr, position_m + quaternion)]))
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


# KITTI odometry poses: text lines of 12 numbers, the upper 3 x 4 part of each pose matrix, row by row.
#
# The files hold no times: they come from a `times.txt` (one stamp in seconds per line) or from a fixed rate. Poses are
# taken as they are. Those of the KITTI benchmark itself are of the left camera (z forward), not of the lidar: bring
# them to REP 103 axes with the calibration before use.


def read_kitti(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory.

    Args:
        path: the poses.
        times: a `times.txt`, or (K,) times (floats are seconds, integers nanoseconds).
        rate_hz: poses per second, the first at time 0; instead of `times`.

    Raises:
        FileError: not readable, or a line that is no pose; names the line.
        InputError: not exactly one of `times` and `rate_hz`, or as many times as there are poses.
    """
    if (times is None) == (rate_hz is None):
        raise InputError(f"{path}", "KITTI poses hold no times; give either times= (times.txt or array) or rate_hz=")
    rows = read_rows(path, 12, "a 3 x 4 matrix, row by row")
    matrices = rows.numbers(0, 12).reshape(-1, 3, 4)
    time_ns = _times_ns(times, rate_hz, len(matrices))
    if len(time_ns) != len(matrices):
        raise InputError(f"{path}", f"{len(matrices)} poses but {len(time_ns)} times")
    with rows.naming_lines():
        position_m, quaternion = poses_from_matrices("matrix", matrices)
        return Trajectory(time_ns, position_m, quaternion)


def write_kitti(trajectory: Trajectory, path: str | Path, *, times: str | Path | None = None) -> None:
    """Write the poses, and the stamps to a second file `times` if that is given; old files are replaced.

    Raises:
        FileError: cannot be written.
    """
    turn = rotation.to_matrix(trajectory.quaternion_xyzw)
    matrices = np.concatenate([turn, trajectory.position_m[:, :, None]], axis=2).reshape(-1, 12)
    with atomic_file(path) as temporary:
        temporary.write_text("".join(" ".join(map(repr, row)) + "\n" for row in matrices.tolist()), encoding="utf-8")
    if times is not None:
        with atomic_file(times) as temporary:
            stamps = map(stamp_text, trajectory.time_ns.tolist())
            temporary.write_text("".join(stamp + "\n" for stamp in stamps), encoding="utf-8")


def _times_ns(times: str | Path | ArrayLike | None, rate_hz: float | None, n_poses: int) -> NDArray[np.int64]:
    if rate_hz is not None:
        if not 0 < rate_hz < np.inf:
            raise InputError("rate_hz", f"expected a finite number above 0, found {rate_hz}")
        return arrays.as_time_ns("rate_hz", np.arange(n_poses) / rate_hz, n_poses)
    if isinstance(times, str | Path):
        rows = read_rows(times, 1, "a time stamp in seconds")
        stamps = rows.stamps_ns()
        stuck = np.flatnonzero(stamps[1:] <= stamps[:-1])
        if len(stuck):
            raise FileError(
                f"{times}, line {rows.lines[stuck[0] + 1]}: the time stamp is not later than the one before"
            )
        return stamps
    given = np.asarray(times)
    return arrays.as_time_ns("times", given, given.size)


# Trajectories in `*.txt`, a suffix that TUM and KITTI share: 12 numbers in the first line make it KITTI.


def read_plain(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory in the format that the first line has; see `tum` and `kitti_poses`."""
    if is_kitti(path):
        return read_kitti(path, times=times, rate_hz=rate_hz)
    return read_tum(path, times=times, rate_hz=rate_hz)


def write_plain(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory as TUM, which keeps the times."""
    write_tum(trajectory, path)


def is_kitti(path: str | Path) -> bool:
    """Tell whether the first line with poses has 12 numbers."""
    return len(read_rows(path, None, "poses").words[0]) == 12
