# SPDX-License-Identifier: Apache-2.0
"""What is compared: sweeps of logs, files, streams or fired worlds, one real and simulated pair at a time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import first_row
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log
from hedgerow.simulate import SAME_ORIGIN_M, replay, require_same_map
from hedgerow.world import World

# Where the compared ranges come from: sweeps of a log, of a file, of a stream, or a world that is fired at.
#
# Everything is taken sweep by sweep, so that neither a long log nor its simulation has to fit into memory. Only the
# first return of a pulse is compared, within the range limits of the real log: what a simulation returns outside them
# counts as no return, since the real sensor could not have seen it.


SAME_DIRECTION = 1e-4
SIZES = ("elements", "parameters", "bytes")


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


@dataclass(frozen=True, slots=True)
class Answer:
    """What one simulation says to the beams of one sweep."""

    range_m: NDArray[np.float32]
    """(N,) first ranges within the limits; inf is no return."""
    log_density: NDArray[np.float64] | None
    """(N,) of what was really measured; None if the simulation cannot tell."""


def sweeps_of(name: str, source: Recording) -> Iterator[Log]:
    """Give the logs of all sweeps, one at a time.

    Raises:
        InputError: not a source of logs, or a sweep comes in two pieces.
    """
    seen: set[int] = set()
    for log in _logs(name, source):
        for number, sweep in log.iter_sweeps():
            if number in seen:
                raise InputError(name, f"sweep {number} comes twice; each log of a stream must hold whole sweeps")
            seen.add(number)
            yield sweep


def answers_of(name: str, source: Simulated, sweeps: Iterable[Log], seed: int) -> Iterator[Answer]:
    """Give the answer of a simulation to each real sweep, in step with them.

    Raises:
        InputError: a recorded simulation has other beams, fewer or more sweeps.
    """
    if isinstance(source, World):
        yield from (_fired(name, source, real, seed) for real in sweeps)
        return
    recorded = sweeps_of(name, source)
    for real in sweeps:
        simulated = next(recorded, None)
        if simulated is None:
            raise InputError(name, f"ends before sweep {real.beams.sweep[0]} of the real log")
        require_same_beams(name, real, simulated)
        yield Answer(within(simulated.returns.first_m, real), None)
    extra = next(recorded, None)
    if extra is not None:
        raise InputError(name, f"goes on with sweep {extra.beams.sweep[0]} after the real log has ended")


def size_of(source: Simulated) -> dict[str, float]:
    """Return elements, parameters and bytes of a world that knows its size; {} for others."""
    size = source.size() if isinstance(source, World) else None
    return {} if size is None else {key: float(getattr(size, key)) for key in SIZES}


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


def _fired(name: str, world: World, real: Log, seed: int) -> Answer:
    require_same_map(name, world, real)
    simulated = replay(world, real, seed=seed)
    density: NDArray[np.float64] | None = None
    # Without a maximal range neither "no return" nor the density floor means anything; scores say so.
    if world.has_likelihood and np.isfinite(real.max_range_m):
        density = world.log_likelihood(real)
        if density.shape != (len(real),) or np.isnan(density).any():
            raise InputError(name, f"log_likelihood gave NaN or not one number per beam (shape {density.shape})")
    return Answer(simulated.returns.first_m, density)


def within(range_m: NDArray[np.float32], real: Log) -> NDArray[np.float32]:
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


# Distance to the nearest of many points, and the hash by which equal points are found.


_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)

_WORTH_THREADS = 10_000  # fewer points are looked up before threads have started


class Nearest:
    """Finds the distance to the nearest of some points."""

    def __init__(self, points_m: NDArray[np.float64], *, distinct: bool = False) -> None:
        """Index (M, 3) points, M of 1 or more; unless they are known to be distinct, duplicates are dropped.

        A k-d tree cannot divide equal points: thousands of them in one leaf make every look-up slow.
        """
        if not distinct:
            _, first = np.unique(mixed(points_m.view(np.uint64)), return_index=True)
            points_m = points_m if len(first) == len(points_m) else points_m[np.sort(first)]
        from scipy.spatial import cKDTree

        # Neither balanced nor compact: several times as fast where beams repeat and points lie in dense lines, and no
        # slower on other sweeps.
        self._tree = cKDTree(points_m, balanced_tree=False, compact_nodes=False)

    def distance_m(self, points_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (K,) distances of (K, 3) points, on all cores [m]."""
        distance_m, _ = self._tree.query(points_m, workers=-1 if len(points_m) >= _WORTH_THREADS else 1)
        return np.asarray(distance_m)


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash (N, 3) words to (N,) numbers; of ten million points no two collide, but for a chance of 3 in a million."""
    out = np.zeros(len(words), dtype=np.uint64)
    for column, multiplier in zip(words.T, _MULTIPLIERS, strict=True):
        out = (out ^ column) * multiplier
        out ^= out >> np.uint64(29)
    out *= _MULTIPLIERS[0]
    return out ^ (out >> np.uint64(32))


# One sweep, real and simulated, with what several metrics need computed once.


class RealSweep:
    """What was measured in one sweep; shared by all simulations of it."""

    def __init__(self, log: Log) -> None:
        """Take the first returns of a log of one sweep."""
        self.log = log
        self.beams = log.beams
        self.range_m = log.returns.first_m
        self.hit: NDArray[np.bool_] = np.isfinite(self.range_m)

    @cached_property
    def points_m(self) -> NDArray[np.float64]:
        """(M, 3) first returns, map frame."""
        return points(self.beams, self.range_m, self.hit)

    @cached_property
    def nearest(self) -> Nearest:
        """Looks up distances to these points."""
        return Nearest(self.points_m)


class Pair:
    """A real sweep and one simulation of it."""

    def __init__(self, real: RealSweep, answer: Answer) -> None:
        """Put the answer beside the sweep; both have one row per beam."""
        self.real = real
        self.range_m = answer.range_m
        self.log_density = answer.log_density
        self.hit: NDArray[np.bool_] = np.isfinite(self.range_m)

    @cached_property
    def points_m(self) -> NDArray[np.float64]:
        """(M, 3) simulated first returns, map frame."""
        return points(self.real.beams, self.range_m, self.hit)


def points(beams: Beams, range_m: NDArray[np.float32], hit: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the (M, 3) points of the beams that hit, map frame [m]."""
    along: NDArray[Any] = range_m[hit].astype(np.float64)[:, None] * beams.direction[hit]
    return beams.origin_m[hit] + along
