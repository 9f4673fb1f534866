# SPDX-License-Identifier: Apache-2.0
"""Where the compared ranges come from: sweeps of a log, of a file, of a stream, or a world that is fired at.

Everything is taken sweep by sweep, so that neither a long log nor its simulation has to fit into memory. Only the first
return of a pulse is compared, within the range limits of the real log: what a simulation returns outside them counts as
no return, since the real sensor could not have seen it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import first_row
from hedgerow.base.box import distance_text
from hedgerow.errors import InputError, warn
from hedgerow.log import Log
from hedgerow.metrics.catalogue import SIZE_METRICS
from hedgerow.metrics.pair import SimulatedSweep
from hedgerow.simulate import SAME_ORIGIN_M, replay, require_same_map
from hedgerow.world import World
from hedgerow.world.forecast import Forecast
from hedgerow.world.reach import beams_away_m

SAME_DIRECTION = 1e-4
"""Directions that differ by less in each coordinate are the same."""


@runtime_checkable
class HasSweeps(Protocol):
    """A log in memory or on the disk."""

    def iter_sweeps(self) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log)."""
        ...


Stream = Iterable[Log] | Iterable[tuple[int, Log]]
Recording = HasSweeps | Stream | Callable[[], Stream]
"""Log, LogFile, or a stream of logs, each of whole sweeps, or a function that gives one."""
Simulated = Recording | World
"""A log of the same beams, or a world that they are fired at."""


def sweeps_of(name: str, source: Recording) -> Iterator[Log]:
    """Give the logs of all sweeps, one at a time.

    Raises:
        InputError: not a source of logs, or a sweep comes in two parts.
    """
    seen: set[int] = set()
    for log in _logs(name, source):
        for number, sweep in log.iter_sweeps():
            if number in seen:
                raise InputError(name, f"sweep {number} comes twice; each log of a stream must hold whole sweeps")
            seen.add(number)
            yield sweep


def simulate_sweeps(
    name: str, source: Simulated, sweeps: Iterable[Log], seed: int, draws: int | None = None
) -> Iterator[SimulatedSweep]:
    """Give the answer of a simulation to each real sweep, in step with them.

    Args:
        name: of the simulation.
        source: a world, or a recorded simulation.
        sweeps: of the real log.
        seed: for firing.
        draws: of forecasts, for worlds that must draw them; 0: no forecasts of these. None: no forecasts at all.

    Raises:
        InputError: a recorded simulation has other beams, fewer or more sweeps.
    """
    if isinstance(source, World):
        yield from _fire_sweeps(name, source, sweeps, seed, draws)
        return
    recorded = sweeps_of(name, source)
    for real in sweeps:
        simulated = next(recorded, None)
        if simulated is None:
            raise InputError(name, f"ends before sweep {real.beams.sweep[0]} of the real log")
        require_same_beams(name, real, simulated)
        yield SimulatedSweep(limit_ranges(simulated.returns.first_m, real), None)
    extra = next(recorded, None)
    if extra is not None:
        raise InputError(name, f"goes on with sweep {extra.beams.sweep[0]} after the real log has ended")


def size_of(source: Simulated) -> dict[str, float]:
    """Return elements, parameters and bytes of a world that knows its size; {} for others."""
    size = source.size() if isinstance(source, World) else None
    return {} if size is None else {key: float(getattr(size, key)) for key in SIZE_METRICS}


def _logs(name: str, source: Recording) -> Iterator[Log]:
    if isinstance(source, HasSweeps):
        yield from (log for _, log in source.iter_sweeps())
        return
    stream = source() if callable(source) else source
    if not isinstance(cast("object", stream), Iterable):
        raise InputError(name, f"expected a log, logs or a world with fire(), found {type(source).__name__}")
    for item in stream:
        log = cast("object", item[1] if isinstance(item, tuple) else item)
        if not isinstance(log, Log):
            raise InputError(name, f"expected a stream of logs, found {type(log).__name__} in it")
        yield log


def _fire_sweeps(
    name: str, world: World, sweeps: Iterable[Log], seed: int, draws: int | None
) -> Iterator[SimulatedSweep]:
    """Fire sweep after sweep; warn at the end if none of them came near the world."""
    nearest_m, reach_m = np.inf, 0.0
    for real in sweeps:
        yield _fire(name, world, real, seed, draws)
        nearest_m = min(nearest_m, beams_away_m(world, real.beams.origin_m))
        reach_m = max(reach_m, real.max_range_m)
    if reach_m < nearest_m < np.inf:
        warn(
            f"{name}: no beam of the log could reach this world, which is {distance_text(nearest_m)} away, and the log "
            f"ends at {distance_text(reach_m)}; are both in one map?"
        )


def _fire(name: str, world: World, real: Log, seed: int, draws: int | None) -> SimulatedSweep:
    require_same_map(name, world, real)
    simulated = replay(world, real, seed=seed)
    density: NDArray[np.float64] | None = None
    # Without a maximal range neither "no return" nor the density floor means anything; scores say so.
    if world.has_likelihood and np.isfinite(real.max_range_m):
        density = world.log_likelihood(real)
        if density.shape != (len(real),) or np.isnan(density).any():
            raise InputError(name, f"log_likelihood gave NaN or not one number per beam (shape {density.shape})")
    has_limit = bool(np.isfinite(real.max_range_m))
    forecast = _forecast(world, real, seed, draws) if draws is not None and has_limit else None
    return SimulatedSweep(simulated.returns.first_m, density, forecast)


def _forecast(world: World, real: Log, seed: int, draws: int) -> Forecast | None:
    """Return what a world expects of a sweep; None if it would have to draw, and no draws are wanted."""
    try:
        return world.forecast(real, draws=draws, seed=seed)
    except InputError as error:
        # Worlds that know their own distribution ask for no draws; of the others only they know that they need some.
        if draws == 0 and error.field == "draws":
            return None
        raise


def limit_ranges(range_m: NDArray[np.float32], real: Log) -> NDArray[np.float32]:
    """Return the ranges, with those outside the limits of the real log replaced by inf, no return."""
    inside = (range_m >= real.min_range_m) & (range_m <= real.max_range_m)
    return np.where(inside, range_m, np.float32(np.inf))


def require_same_beams(name: str, real: Log, simulated: Log) -> None:
    """Raise InputError, naming the sweep and the beam, if two logs of one sweep do not hold the same beams."""
    where = f"sweep {real.beams.sweep[0]}"
    if len(simulated) != len(real):
        raise InputError(
            name, f"{where} has {len(simulated)} beams, the real log {len(real)}; fire the real log's own beams"
        )
    apart = np.abs(simulated.beams.origin_m - real.beams.origin_m).max(axis=1) > SAME_ORIGIN_M
    turned = np.abs(simulated.beams.direction - real.beams.direction).max(axis=1) > SAME_DIRECTION
    for wrong, what in ((apart, "origin_m"), (turned, "direction")):
        if wrong.any():
            row = first_row(wrong)
            raise InputError(
                name,
                f"{where}, beam {row} has {what} {getattr(simulated.beams, what)[row].tolist()}, the real log "
                f"{getattr(real.beams, what)[row].tolist()}; both must hold the same beams in the same order",
            )
