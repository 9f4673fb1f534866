# SPDX-License-Identifier: Apache-2.0
"""Where the compared ranges come from: sweeps of a log, of a file, of a stream, or a world that is fired at.

Everything is taken sweep by sweep, so that neither a long log nor its simulation has to fit into memory. Only the first
return of a pulse is compared, within the range limits of the real log: what a simulation returns outside them counts as
no return, since the real sensor could not have seen it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.box import distance_text
from hedgerow.errors import InputError, warn
from hedgerow.log import Log
from hedgerow.metrics.beside import HasSweeps, NextSweep, SweepsBeside, can_look_up
from hedgerow.metrics.catalogue import SIZE_METRICS
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.drawn import draw_columns
from hedgerow.metrics.matching import has_same_beams, limit_ranges, match_sweep, require_same_beams
from hedgerow.metrics.pair import SimulatedSweep
from hedgerow.simulate import SAME_ORIGIN_M, replay, require_same_map
from hedgerow.world import World
from hedgerow.world.forecast import Forecast
from hedgerow.world.reach import beams_away_m

Stream = Iterable[Log] | Iterable[tuple[int, Log]]
Recording = HasSweeps | Stream | Callable[[], Stream]
"""Log, LogFile, or a stream of logs, each of whole sweeps, or a function that gives one."""


@dataclass(frozen=True, slots=True)
class Again:
    """Reality once more, as a column beside the simulations."""

    source: Recording | World | NextSweep
    """Another recording of the same place; the scene that the real log was recorded in; or the log itself, sweep
    after sweep, where the sensor stands."""


Simulated = Recording | World | Again
"""A log, best of the same beams, or a world that they are fired at."""


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
    name: str, source: Simulated, sweeps: Iterable[Log], seed: int, settings: CompareSettings | None = None
) -> Iterator[SimulatedSweep]:
    """Give the answer of a simulation to each real sweep, in step with them.

    Args:
        name: of the simulation.
        source: a world, or a recorded simulation.
        sweeps: of the real log.
        seed: for firing.
        settings: how many draws forecasts are of, and what beams are partners. None: as usual, without forecasts.

    Raises:
        InputError: a recorded simulation has other beams, fewer or more sweeps, and no partners can be found: it is a
            stream, which cannot be read twice, or the settings refuse that.
    """
    is_again = isinstance(source, Again)
    known = source.source if isinstance(source, Again) else source
    usual = settings or CompareSettings()
    if isinstance(known, World):
        # The scene once more: the same beams, drawn anew.
        own_seed = (seed + 1) % 2**64 if is_again else seed
        yield from _fire_sweeps(name, known, sweeps, own_seed, settings)
    elif isinstance(known, NextSweep):
        beside = SweepsBeside(known.source, usual)
        for real in sweeps:
            number = known.number_after(int(real.beams.sweep[0]))
            yield match_sweep(real, real[:0] if number is None else beside.read(number), usual, is_again=True)
    elif can_look_up(known) and usual.match_deg > 0:
        yield from _look_up(name, cast("HasSweeps", known), sweeps, usual, is_again)
    else:
        yield from _in_step(name, known, sweeps, is_again)


def _in_step(name: str, source: Recording, sweeps: Iterable[Log], is_again: bool) -> Iterator[SimulatedSweep]:
    """Take sweep after sweep of a log that must have the same beams."""
    recorded = sweeps_of(name, source)
    for real in sweeps:
        simulated = next(recorded, None)
        if simulated is None:
            raise InputError(name, f"ends before sweep {real.beams.sweep[0]} of the real log")
        require_same_beams(name, real, simulated)
        yield _recorded(real, simulated, is_again)
    extra = next(recorded, None)
    if extra is not None:
        raise InputError(name, f"goes on with sweep {extra.beams.sweep[0]} after the real log has ended")


def _look_up(
    name: str, source: HasSweeps, sweeps: Iterable[Log], settings: CompareSettings, is_again: bool
) -> Iterator[SimulatedSweep]:
    """Find the sweep beside each real one, and the partner of each beam unless both hold the same beams."""
    if len(cast("Any", source).sweeps) == 0:
        raise InputError(name, "the log has no beams; there is nothing to compare")
    beside = SweepsBeside(source, settings)
    for real in sweeps:
        simulated = beside.find(real)
        if simulated is None:
            yield match_sweep(real, real[:0], settings, is_again=is_again)
            continue
        _require_same_origin(name, simulated, real)
        if has_same_beams(real, simulated):
            yield _recorded(real, simulated, is_again)
        else:
            yield match_sweep(real, simulated, settings, is_again=is_again)


def _require_same_origin(name: str, simulated: Log, real: Log) -> None:
    theirs, ours = simulated.map_origin_m, real.map_origin_m
    # Programs that do not know where their map lies leave its origin at 0.
    if theirs.any() and not np.allclose(theirs, ours, rtol=0, atol=SAME_ORIGIN_M):
        raise InputError(name, f"its map begins at {theirs.tolist()}, that of the real log at {ours.tolist()}")


def _recorded(real: Log, simulated: Log, is_again: bool) -> SimulatedSweep:
    columns = _columns(simulated)
    return SimulatedSweep(limit_ranges(simulated.returns.first_m, real), None, is_again=is_again, columns=columns)


def _columns(log: Log) -> dict[str, NDArray[Any] | None]:
    return {name: log.returns.first(name) for name in ("intensity", "label")}


def size_of(source: Simulated) -> dict[str, float]:
    """Return elements, parameters and bytes of a world that knows its size; {} for others."""
    size = source.size() if isinstance(source, World) else None  # reality again has none of interest
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
    name: str, world: World, sweeps: Iterable[Log], seed: int, settings: CompareSettings | None
) -> Iterator[SimulatedSweep]:
    """Fire sweep after sweep; warn at the end if none of them came near the world."""
    nearest_m, reach_m = np.inf, 0.0
    for real in sweeps:
        yield _fire(name, world, real, seed, settings)
        nearest_m = min(nearest_m, beams_away_m(world, real.beams.origin_m))
        reach_m = max(reach_m, real.max_range_m)
    if reach_m < nearest_m < np.inf:
        warn(
            f"{name}: no beam of the log could reach this world, which is {distance_text(nearest_m)} away, and the log "
            f"ends at {distance_text(reach_m)}; are both in one map?"
        )


def _fire(name: str, world: World, real: Log, seed: int, settings: CompareSettings | None) -> SimulatedSweep:
    require_same_map(name, world, real)
    simulated = replay(world, real, seed=seed)
    density: NDArray[np.float64] | None = None
    # Without a maximal range neither "no return" nor the density floor means anything; scores say so.
    if world.has_likelihood and np.isfinite(real.max_range_m):
        density = world.log_likelihood(real)
        if density.shape != (len(real),) or np.isnan(density).any():
            raise InputError(name, f"log_likelihood gave NaN or not one number per beam (shape {density.shape})")
    columns = _columns(simulated)
    if settings is None:
        return SimulatedSweep(simulated.returns.first_m, density, columns=columns)
    forecast = _forecast(world, real, seed, settings.draws) if np.isfinite(real.max_range_m) else None
    drawn = None if forecast is None else forecast.drawn
    if drawn is None:
        drawn = draw_columns(world, real, simulated, settings.draws, settings.drawn_beams, seed)
    return SimulatedSweep(simulated.returns.first_m, density, forecast, columns=columns, drawn=drawn)


def _forecast(world: World, real: Log, seed: int, draws: int) -> Forecast | None:
    """Return what a world expects of a sweep; None if it would have to draw, and no draws are wanted."""
    try:
        return world.forecast(real, draws=draws, seed=seed)
    except InputError as error:
        # Worlds that know their own distribution ask for no draws; of the others only they know that they need some.
        if draws == 0 and error.field == "draws":
            return None
        raise
