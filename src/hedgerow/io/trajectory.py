# SPDX-License-Identifier: Apache-2.0
"""Trajectories in text files: one table of formats, and a reader and a writer for each.

TUM (`*.tum`): lines `timestamp tx ty tz qx qy qz qw` in seconds and metres, `#` for comments; the format of the TUM
RGB-D benchmark (Sturm et al., 2012), read by evo and most SLAM tools.

KITTI (`*.kitti`): lines of 12 numbers, the upper 3 x 4 part of each pose matrix, row by row. The times are in a
`times.txt` (one stamp in seconds per line) or follow from a fixed rate. Poses are taken as they are; those of the KITTI
benchmark are of the left camera (z forward), not of the lidar: bring them to REP 103 axes with the calibration first.

`*.txt` may be either; its first line tells. A new format is a row in `TRAJECTORY_FORMATS` and its two functions.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal, DecimalException
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays, rotation
from hedgerow.base.arguments import as_path, as_positive, require_kind
from hedgerow.base.arrays import RowError
from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError, InputError, shown, warn
from hedgerow.frames import Trajectory, poses_from_matrices
from hedgerow.io.source import read_text

_NS_PER_S = 1_000_000_000
_TOO_LATE_S = 1e12  # beyond what any unit but a smaller one would give; `arrays.LAST_NS` is the exact bound
_SLOW_S = 3600.0
_PER_S = {"milliseconds": "1000", "microseconds": "1e6", "nanoseconds": "1e9"}
_TUM_COLUMNS = "timestamp tx ty tz qx qy qz qw"


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

    def rising_stamps_ns(self) -> NDArray[np.int64]:
        """Return the stamps as `stamps_ns` does; also raises FileError if one is not later than the one before."""
        stamps_ns = self.stamps_ns()
        stuck = np.flatnonzero(np.diff(stamps_ns) <= 0)
        if len(stuck):
            line = self.lines[int(stuck[0]) + 1]
            raise FileError(f"{self.path}, line {line}: the time stamp is not later than the one before")
        return stamps_ns

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
        seconds = Decimal(word)
        if not seconds.is_finite():
            raise ValueError
        # Before it becomes a whole number, which 1e999999 would be of a million digits.
        stamp_ns = int((seconds * _NS_PER_S).to_integral_value()) if abs(seconds) < _TOO_LATE_S else arrays.LAST_NS + 1
    except (DecimalException, ValueError, OverflowError):
        raise FileError(f"{path}, line {line}: {shown(word)} is not a time stamp in seconds") from None
    if abs(stamp_ns) > arrays.LAST_NS:
        unit = arrays.guess_time_unit(float(seconds))
        remedy = f"; it looks like {unit}, and is to be in seconds: divide the times by {_PER_S[unit]}" if unit else ""
        raise FileError(f"{path}, line {line}: the time stamp {shown(word)[1:-1]} s is too large{remedy}")
    return stamp_ns


def _warn_of_slow_poses(path: Path, time_ns: NDArray[np.int64]) -> None:
    """Warn if poses are hours apart: times after the start in a smaller unit are within bounds, but no seconds."""
    if len(time_ns) < 2:
        return
    step_s = float(np.median(np.diff(time_ns))) / _NS_PER_S
    unit = "nanoseconds" if step_s >= 1e6 else "microseconds"  # poses are seldom less than 1 ms apart
    if step_s > _SLOW_S:
        warn(
            f"{path}: poses are {step_s:,.0f} s apart; the times look like {unit}, and are taken for seconds; "
            f"divide them by {_PER_S[unit]}"
        )


def _require_number(path: Path, line: int, word: str) -> None:
    try:
        float(word)
    except ValueError:
        raise FileError(f"{path}, line {line}: {shown(word)} is not a number") from None


def read_tum(path: str | Path, *, times: object = None, rate_hz: object = None) -> Trajectory:
    """Read a trajectory in the format of the TUM RGB-D benchmark; times and rate must be None, the file has times.

    Raises:
        FileError: not readable, or a line that is no pose; names the line.
        InputError: times or a rate are given, which the file has itself.
    """
    if times is not None or rate_hz is not None:
        raise InputError(f"{path}", "TUM poses have their own times; leave out times= and rate_hz=")
    rows = read_rows(path, 8, _TUM_COLUMNS)
    time_ns = rows.stamps_ns()
    numbers = rows.numbers(1, 8)
    with rows.naming_lines():
        trajectory = Trajectory(time_ns, numbers[:, :3], numbers[:, 3:])
    _warn_of_slow_poses(rows.path, time_ns)
    return trajectory


def write_tum(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory in TUM's format, stamps to the nanosecond and numbers to the last bit; replaces an old file.

    Raises:
        FileError: cannot be written.
    """
    lines = [f"# {_TUM_COLUMNS}"]
    poses = zip(trajectory.position_m.tolist(), trajectory.quaternion_xyzw.tolist(), strict=True)
    for time_ns, (position_m, quaternion) in zip(trajectory.time_ns.tolist(), poses, strict=True):
        lines.append(" ".join([stamp_text(time_ns), *map(repr, position_m + quaternion)]))
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_kitti(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read poses of KITTI odometry, which hold no times.

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
    """Write poses of KITTI odometry, and the stamps to a second file `times` if that is given; replaces old files.

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
        per_s = as_positive("rate_hz", rate_hz)
        with np.errstate(over="ignore"):
            return arrays.as_time_ns("rate_hz", np.arange(n_poses) / per_s, n_poses)
    if isinstance(times, str | Path):
        stamps_ns = read_rows(times, 1, "a time stamp in seconds").rising_stamps_ns()
        _warn_of_slow_poses(Path(times), stamps_ns)
        return stamps_ns
    given = arrays.as_numbers("times", () if times is None else times)
    return arrays.as_time_ns("times", given, given.size)


def read_txt(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory as KITTI if its first line has 12 numbers, else as TUM."""
    return (read_kitti if is_kitti(path) else read_tum)(path, times=times, rate_hz=rate_hz)


def is_kitti(path: str | Path) -> bool:
    """Tell whether the first line with poses has 12 numbers."""
    return len(read_rows(path, None, "poses").words[0]) == 12


@dataclass(frozen=True, slots=True)
class TrajectoryFormat:
    """One row of the table."""

    about: str
    """What it is, in a few words."""
    read: Callable[..., Trajectory]
    """Called with the path, and by name with `times` and `rate_hz` as in `read_trajectory`."""
    write: Callable[[Trajectory, str | Path], None]


TRAJECTORY_FORMATS = {
    ".tum": TrajectoryFormat("TUM", read_tum, write_tum),
    ".kitti": TrajectoryFormat("KITTI", read_kitti, write_kitti),
    ".txt": TrajectoryFormat("TUM or KITTI; TUM when written, which keeps the times", read_txt, write_tum),
}
"""The formats by the suffix of the file."""


def read_trajectory(
    path: str | Path, *, times: str | Path | ArrayLike | None = None, rate_hz: float | None = None
) -> Trajectory:
    """Read a trajectory from a text file.

    Args:
        path: `*.tum`, `*.kitti`, or `*.txt` in one of these formats.
        times: only for KITTI, which has none: a times.txt, or (K,) times.
        rate_hz: only for KITTI: poses per second, instead of `times`.

    Raises:
        FileError: missing, damaged, or of an unknown kind.
        InputError: KITTI poses without times, or TUM poses with.
    """
    path = as_path("path", path)
    if not path.exists():
        raise FileError(f"{path}: no such file or folder")
    found = _format_of(path).read(path, times=times, rate_hz=rate_hz)
    return replace(found, source=str(path))


def write_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory to a text file: TUM to `*.tum` and `*.txt`, KITTI to `*.kitti`; an old one is replaced.

    Raises:
        FileError: unknown kind, or the system refuses to write.
    """
    require_kind("trajectory", trajectory, Trajectory, "a Trajectory")
    _format_of(as_path("path", path)).write(trajectory, path)


def _format_of(path: Path) -> TrajectoryFormat:
    suffix = path.suffix.lower()
    if suffix not in TRAJECTORY_FORMATS:
        known = ", ".join(TRAJECTORY_FORMATS)
        raise FileError(f"{path}: unknown kind of file, suffix {suffix or '(none)'}; known are {known}")
    return TRAJECTORY_FORMATS[suffix]
