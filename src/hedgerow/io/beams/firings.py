# SPDX-License-Identifier: Apache-2.0
"""FiringSource: recordings in which every firing of the sensor is known, missing returns included.

Packets of Velodyne and Ouster lidars are this, and clouds that keep a cell for every firing. A reader gives the
firings of one sweep in the frame of the sensor; here they get their poses and become a log.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Numbers
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io.beams.motion import move_to_map, require_span
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import Settings, SweepSource, pulse_ids
from hedgerow.log import MEASURED, MISSING, Beams, Log, Returns

_NS_PER_S = 1_000_000_000
_FAR_OUT_M = 1e4  # poses farther from the origin are outer coordinates, as in UTM


@dataclass(frozen=True, slots=True, eq=False)
class Firings:
    """P firings of one sweep in the sensor frame, in the order in which they were fired."""

    origin_m: NDArray[np.float64]
    """(P, 3) from where ranges count."""
    direction: NDArray[np.float64]
    """(P, 3) of unit length."""
    range_m: NDArray[np.floating]
    """(P, R) in any order; inf is no return."""
    ring: NDArray[np.integer]
    """(P,)"""
    time_ns: NDArray[np.int64]
    """(P,)"""
    intensity: NDArray[np.floating] | NDArray[np.integer] | None = None
    """(P, R) as the sensor reports it."""
    label: NDArray[np.uint16] | None = None
    """(P, R) semantic classes."""
    colour: NDArray[np.uint32] | None = None
    """(P, R) 0xRRGGBB."""


class FiringSource(SweepSource):
    """A recording of complete sweeps."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        trajectory: Trajectory,
        numbers: Sequence[int],
        load: Callable[[int], Firings],
    ) -> None:
        """Remember where the sweeps are.

        Args:
            path: of the recording.
            settings: sensor name, limits, map origin, arrays, returns per pulse, metadata.
            trajectory: T_map_sensor.
            numbers: of the sweeps, ascending.
            load: gives the firings of a sweep by its number.

        Raises:
            FileError: there are no sweeps.
        """
        if not len(numbers):
            raise FileError(f"{path}: holds no sweeps")
        super().__init__(path, settings, trajectory)
        self._numbers = np.array(numbers, np.int32)
        self._load = load
        self._path_in_map = trajectory

    @property
    def sweeps(self) -> NDArray[np.int32]:
        """Sweep numbers that occur, ascending."""
        return self._numbers

    def iter_sweeps(self, sweeps: Numbers | None = None) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log) in ascending order, with one sweep in memory at a time."""
        for number in self.selected_sweeps(sweeps):
            try:
                yield number, self._sweep(number)
            except InputError as error:
                raise FileError(f"{self.path}, sweep {number}: {error}") from error

    def _sweep(self, number: int) -> Log:
        firings = self._load(number)
        time_ns = firings.time_ns
        if len(time_ns):
            name = f"{self.path}, sweep {number}"
            require_span(name, self._path_in_map, int(time_ns.min()), int(time_ns.max()))
        range_m, columns = _nearest_first(firings, self.settings)
        keep = range_m[:, 0] >= np.float32(self.min_range_m)
        origin_m, direction = move_to_map(self._path_in_map, time_ns, firings.origin_m, firings.direction)
        of_sweep = np.full(len(time_ns), number, np.int32)
        ring = firings.ring.astype(np.uint16)
        beams = Beams(origin_m, direction, time_ns, ring, of_sweep, pulse_ids(number, len(time_ns)))
        if self.n_per_pulse == 1:
            range_m, columns = range_m[:, 0], {name: each[:, 0] for name, each in columns.items()}
        # Before the log is made: it refuses ranges outside its limits.
        return self.settings.log(beams[keep], Returns(range_m, **columns)[keep])


def _nearest_first(firings: Firings, settings: Settings) -> tuple[NDArray[np.float32], dict[str, Any]]:
    """Return (P, R) ranges within the far limit, each once and nearest first, and what stands beside them."""
    range_m = firings.range_m.astype(np.float32)
    range_m[~(range_m <= settings.max_range_m)] = np.inf
    order = np.argsort(range_m, axis=1, kind="stable")
    range_m = np.take_along_axis(range_m, order, axis=1)
    # With two returns asked for, a sensor that got one tells it twice.
    range_m[:, 1:][range_m[:, 1:] == range_m[:, :-1]] = np.inf
    missing = np.isinf(range_m)
    columns: dict[str, Any] = {}
    for name in MEASURED:
        values: NDArray[Any] | None = getattr(firings, name)
        if values is not None:
            blank = MISSING[name]
            columns[name] = np.where(missing, blank, np.take_along_axis(values.astype(blank.dtype), order, axis=1))
    return range_m, columns


def require_trajectory(path: Path, options: ReadOptions, start_ns: int, end_ns: int) -> Trajectory:
    """Return T_map_sensor from the options, for recordings that hold no poses.

    Args:
        path: of the recording, for the error.
        options: `trajectory`, or `static`.
        start_ns, end_ns: how long a sensor that stands still does so.

    Raises:
        FileError: the options give neither.
    """
    if options.static:
        if options.trajectory is not None:
            raise InputError("static", "a trajectory is given as well; leave one of them out")
        ends = [max(start_ns - _NS_PER_S, 0), end_ns + _NS_PER_S]
        return Trajectory.from_poses(ends, [options.mount_pose] * 2)
    trajectory = options.sensor_trajectory()
    if trajectory is None:
        raise FileError(f"{path}: holds no poses; give a trajectory, or static=true if the sensor stood still")
    return trajectory


def subtract_map_origin(trajectory: Trajectory, options: ReadOptions) -> tuple[Trajectory, NDArray[np.float64]]:
    """Return a trajectory in map coordinates and the map origin, which is near the first pose if that is far out."""
    origin_m = np.zeros(3)
    if options.map_origin_m is not None:
        origin_m = np.array(options.map_origin_m, np.float64)
    elif np.abs(trajectory.position_m[0]).max() > _FAR_OUT_M:
        origin_m = np.array([*np.round(trajectory.position_m[0, :2], -3), 0.0])
    moved = Trajectory(trajectory.time_ns, trajectory.position_m - origin_m, trajectory.quaternion_xyzw)
    return moved, origin_m
