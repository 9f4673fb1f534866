# SPDX-License-Identifier: Apache-2.0
"""Folders of clouds that Hedgerow wrote: every beam comes back as it was, from the hedgerow.parquet beside the clouds.

Clouds hold points alone. Missing returns, second returns, rings, true origins and fine labels lie in a Parquet log
beside them, to the last bit. A mark of every cloud, its number of points and a checksum, tells whether it is still the
one that these beams belong to; a cloud that was changed since is read as anybody's, from its points, and that is said.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Numbers
from hedgerow.errors import FileError, InputError, warn
from hedgerow.frames import Trajectory
from hedgerow.io.beams.motion import extend_trajectory
from hedgerow.io.notes import CloudMark, Sidecar
from hedgerow.io.options import ReadOptions
from hedgerow.io.parquet.reader import LogFile
from hedgerow.io.parquet.reader import open_log as open_parquet
from hedgerow.io.source import Settings, SweepSource, pulse_ids, read_bytes
from hedgerow.io.trajectory import read_tum
from hedgerow.log import MISSING, Beams, Log, Returns

KEPT = "hedgerow.parquet"
"""Name of the log with all beams, in a folder of clouds."""
MOTION = "motion.tum"
"""Name of the file with the poses within the sweeps."""
_OF_POINTS = ("trajectory", "mount", "deskewed", "elevation_bias_deg", "rate_hz", "map_origin_m")
"""Options that say how to make beams of points."""

Clouds = Mapping[str, Sequence[Path]]
"""The files of each cloud, by its name without suffix; labels, where they have a file, after the points."""


def mark_of(sweep: Log, files: Sequence[Path]) -> CloudMark:
    """Return the mark of a cloud that was just written."""
    n_points = int(np.count_nonzero(sweep.returns.hit))
    return CloudMark(sweep=int(sweep.beams.sweep[0]), n_points=n_points, crc32=_checksum(files))


def read_motion(folder: Path) -> Trajectory | None:
    """Read the poses within the sweeps, T_map_sensor; None if there are none.

    Raises:
        FileError: they are damaged.
    """
    path = folder / MOTION
    return read_tum(path) if path.exists() else None


def _checksum(files: Sequence[Path]) -> int:
    crc32 = 0
    for file in files:
        crc32 = zlib.crc32(read_bytes(file), crc32)
    return crc32


def with_kept_beams(
    path: Path,
    sidecar: Sidecar | None,
    clouds: Clouds,
    options: ReadOptions,
    from_points: Callable[[], SweepSource],
) -> SweepSource:
    """Open a folder of clouds with the beams that lie beside them, if there are any; else from the points alone.

    Args:
        path: of the folder.
        sidecar: that of the folder.
        clouds: in the order of the sweeps that `from_points` gives.
        options: what reads the points, such as a trajectory, or recover=no, leaves the kept beams aside.
        from_points: opens the folder as if the beams were not there.

    Raises:
        FileError: something is damaged.
    """
    kept = path / KEPT
    asked = options.recover == "no" or any(getattr(options, name) is not None for name in _OF_POINTS)
    if asked or sidecar is None or not kept.exists():
        return from_points()
    strange = [name for name in clouds if name not in sidecar.clouds]
    if strange:
        warn(
            f"{path}: Hedgerow did not write {clouds[strange[0]][0].name} ({len(strange)} such files); "
            f"all sweeps are read from their points alone, without {KEPT}"
        )
        return from_points()
    try:
        return KeptBeams(path, open_parquet(kept), sidecar, clouds, options, from_points)
    except FileError as error:
        raise FileError(f"{error}; without {KEPT} the clouds can be read alone") from None


class KeptBeams(SweepSource):
    """A log read from the beams beside clouds."""

    def __init__(
        self,
        path: Path,
        beams: LogFile,
        sidecar: Sidecar,
        clouds: Clouds,
        options: ReadOptions,
        from_points: Callable[[], SweepSource],
    ) -> None:
        """Find out which clouds are there; see `with_kept_beams`.

        Raises:
            FileError: the beams of one are not.
        """
        own = Settings(
            beams.sensor,
            beams.min_range_m,
            beams.max_range_m,
            beams.map_origin_m,
            beams.metadata,
            beams.n_per_pulse,
            beams.arrays,
        )
        motion = read_motion(path)
        spans = [last - first for first, last in sidecar.spans_ns.values()]
        trajectory = motion and extend_trajectory(motion, max(spans, default=0) + 1)
        super().__init__(path, options.apply_to(own), trajectory)
        self._beams = beams
        self._clouds = clouds
        self._places = {name: place for place, name in enumerate(clouds)}
        self._names = {sidecar.clouds[name].sweep: name for name in clouds}
        self._marks = sidecar.clouds
        self._from_points = from_points
        lost = np.setdiff1d(list(self._names), beams.sweeps)
        if len(lost) or len(self._names) < len(clouds):
            which = f"sweep {lost[0]}" if len(lost) else "some of the sweeps"
            raise FileError(f"{beams.path}: does not hold {which} of the clouds beside it")

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return np.array(sorted(self._names), np.int32)

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        for number in self.selected_sweeps(sweeps):
            name = self._names[number]
            files, mark = self._clouds[name], self._marks[name]
            try:
                if _checksum(files) == mark.crc32:
                    yield number, self._kept(number, mark)
                    continue
                warn(
                    f"{files[0]}: was changed since Hedgerow wrote it, or its labels were; this sweep is read from its "
                    f"points alone, its missing and second returns in {KEPT} are left aside"
                )
                yield number, self._changed(number, name)
            except InputError as error:
                raise FileError(f"{self.path}, sweep {number}: {error}") from error

    def _kept(self, number: int, mark: CloudMark) -> Log:
        log = self._beams.read(number)
        if np.count_nonzero(log.returns.hit) != mark.n_points:
            raise FileError(f"{self._beams.path}: sweep {number} is not that of the cloud beside it")
        beams, returns = _within(log, self.settings)
        return self.settings.log(beams, returns)

    def _changed(self, number: int, name: str) -> Log:
        source = self._points
        log = source.read(int(source.sweeps[self._places[name]]))
        of_sweep = np.full(len(log), number, np.int32)
        beams = replace(log.beams, sweep=of_sweep, pulse=pulse_ids(number, len(log)))
        return self.settings.log(beams, _filled_up(log.returns, self.settings))

    @cached_property
    def _points(self) -> SweepSource:
        return self._from_points()


def _within(log: Log, settings: Settings) -> tuple[Beams, Returns]:
    """Apply limits: farther returns become missing ones, beams with nearer ones are left out."""
    returns = log.returns
    far = np.isfinite(returns.range_m) & (returns.range_m > np.float32(settings.max_range_m))
    if far.any():
        columns: dict[str, Any] = {
            name: None if column is None else np.where(far, MISSING.get(name, np.float32(np.inf)), column)
            for name, column in returns.columns().items()
        }
        returns = Returns(**columns)
    keep = returns.first_m >= np.float32(settings.min_range_m)
    return (log.beams, returns) if keep.all() else (log.beams[keep], returns[keep])


def _filled_up(returns: Returns, settings: Settings) -> Returns:
    """Give the returns of a cloud the arrays, and as many returns per pulse, as the other sweeps have."""
    n, more = len(returns), settings.n_per_pulse
    shape = (n,) if more == 1 else (n, more)
    first = (slice(None),) if more == 1 else (slice(None), 0)
    range_m = np.full(shape, np.float32(np.inf))
    range_m[first] = returns.first_m
    columns: dict[str, Any] = {}
    for name in settings.arrays:
        column = np.full(shape, MISSING[name])
        found = getattr(returns, name)
        if found is not None:
            column[first] = found
        columns[name] = column
    return Returns(range_m, **columns)
