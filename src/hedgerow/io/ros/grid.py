# SPDX-License-Identifier: Apache-2.0
"""Organised clouds to write: a row for each laser, a column for each firing of all of them, NaN for no return."""

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.io.beams.organised import PointGrid, fill_missing
from hedgerow.io.recovery.sweeps import NotRecovered
from hedgerow.io.ros.messages import point_rows, return_kinds
from hedgerow.log import Log

_NEAR_M, _FAR_M = 5.0, 20.0


def grid_of(sweep: Log) -> NDArray[np.intp]:
    """Return which pulse is in each cell, (rings, columns): rings ascending, in the order in which each ring fired.

    Raises:
        InputError: rings have different numbers of pulses.
    """
    ring, count = np.unique(sweep.beams.ring, return_counts=True)
    if count.min() != count.max():
        raise _no_grid(sweep, f"its rings have {count.min():,} to {count.max():,} beams")
    return np.lexsort([sweep.beams.time_ns, sweep.beams.ring]).reshape(len(ring), -1)


def require_grid(sweep: Log, grid: NDArray[np.intp], direction: NDArray[np.float64]) -> None:
    """Refuse pulses that are no grid of lasers and columns; a third of a second for a VLS-128.

    Args:
        sweep: the log.
        grid: (rings, columns) the pulse in each cell.
        direction: (N, 3) of all its pulses in the frame of the sensor.

    Raises:
        InputError: they are none; nobody could tell from the other cells where an empty one points.
    """
    if len(grid) == 1:
        return
    # As if every pulse had met something, now near, now far: so the grid shows whatever the sensor saw.
    along_m = np.full((grid.shape[1], 1), _FAR_M)
    along_m[::2] = _NEAR_M
    cells = PointGrid(direction[grid] * along_m, None, None, sweep.beams.time_ns[grid], None)
    try:
        fill_missing(cells, 0, 0)
    except NotRecovered as error:
        raise _no_grid(sweep, str(error)) from None


def _no_grid(sweep: Log, why: str) -> InputError:
    what = f"sweep {sweep.beams.sweep[0]}" + (f" of this {sweep.sensor}" if sweep.sensor else "")
    return InputError("organised", f"{what} is no grid of lasers and columns ({why}); write it without organised")


def organised_rows(
    sweep: Log, points: NDArray[np.float64], grid: NDArray[np.intp], start_ns: int
) -> list[NDArray[np.void]]:
    """Return an organised cloud of the nearest returns, one of the second ones, and so on.

    Args:
        sweep: the log.
        points: (M, 3) of all its returns in the frame of the sensor, as `Log.points` orders them.
        grid: (rings, columns) the pulse in each cell.
        start_ns: time that the field `time` counts from.
    """
    returns, shape = sweep.returns, (len(sweep), sweep.returns.n_per_pulse)
    hit = returns.hit.reshape(shape)
    xyz = np.full((*shape, 3), np.nan)
    xyz[hit] = points
    intensity = np.zeros(shape) if returns.intensity is None else np.nan_to_num(returns.intensity.reshape(shape))
    kinds = return_kinds(returns)
    time_s = (sweep.beams.time_ns - start_ns) * 1e-9
    return [
        point_rows(
            xyz[:, k],
            sweep.beams.ring,
            time_s,
            intensity[:, k],
            None if returns.label is None else returns.label.reshape(shape)[:, k],
            None if kinds is None else (kinds[0][:, k], kinds[1][:, k]),
            None if returns.colour is None else returns.colour.reshape(shape)[:, k],
        )[grid]
        for k in range(shape[1])
    ]
