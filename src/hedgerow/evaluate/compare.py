# SPDX-License-Identifier: Apache-2.0
"""compare: how far simulations are from a real log, by the metrics of papers 000 and 001 (MODELS §6).

    scores = hr.compare(real, world)                            # fires the real log's own beams
    table = hr.compare(real, {"voxel": voxel, "hybrid": hybrid}).table()

One pass over the real log, sweep by sweep; memory holds one sweep, two thinned clouds and small histograms.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import tee
from typing import Any, cast, overload

from hedgerow.errors import InputError
from hedgerow.evaluate.config import CompareSettings, settings_from
from hedgerow.evaluate.judge import judge
from hedgerow.evaluate.scores import Comparison, Scores
from hedgerow.evaluate.sources import HasSweeps, Recording, Simulated, answers_of, size_of, sweeps_of
from hedgerow.evaluate.tally import Tally
from hedgerow.log import Log
from hedgerow.world import World

Progress = Callable[[int], object]
"""Called after each sweep with the number of real beams done."""
_ALONE = "simulated"


@overload
def compare(
    real: Recording,
    simulated: Mapping[str, Simulated],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison: ...
@overload
def compare(
    real: Recording, simulated: Simulated, *, seed: int = 0, progress: Progress | None = None, **settings: Any
) -> Scores: ...
def compare(
    real: Recording,
    simulated: Simulated | Mapping[str, Simulated],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Scores | Comparison:
    """Measure how far one or several simulations are from a real log.

    Args:
        real: a log in memory or on the disk (`open_log`), or a stream of logs of whole sweeps, or a
            function that gives one.
        simulated: the same beams simulated, in the same order, as a log, file or stream; or a world, which the real
            log's beams are then fired at; or several of these by name.
        seed: for firing.
        progress: called after each sweep with the number of real beams done.
        settings: see `CompareSettings`.

    Returns:
        Scores of one simulation, or a Comparison of those that came by name. First returns are compared, within the
        range limits of the real log.

    Raises:
        InputError: the real log is empty or nothing in it returned, a simulated log has other beams, or a setting is
            unknown or out of bounds.
    """
    checked = settings_from(settings)
    if isinstance(simulated, Mapping):
        named = cast("Mapping[str, Simulated]", simulated)
        if not named:
            raise InputError("simulated", "names no simulation; give at least one")
        if "real" in named:
            raise InputError(
                "simulated", "'real' is what the real log is called in tables and plots; choose another name"
            )
        return judge(tally(real, named, checked, seed, progress), {name: size_of(each) for name, each in named.items()})
    counted = tally(real, {_ALONE: simulated}, checked, seed, progress)
    return judge(counted, {_ALONE: size_of(simulated)})[_ALONE]


def tally(
    real: Recording,
    simulated: Mapping[str, Simulated],
    settings: CompareSettings,
    seed: int = 0,
    progress: Progress | None = None,
) -> Tally:
    """Count everything that the scores of a log, or of some sweeps of it, rest on; tallies merge, `judge` scores them.

    The arguments are those of `compare`.
    """
    _require_kinds(real, simulated)
    result = Tally(settings, simulated)
    sweeps, *copies = tee(sweeps_of("real", real), 1 + len(simulated))
    answers = {
        name: answers_of(name, source, copy, seed)
        for (name, source), copy in zip(simulated.items(), copies, strict=True)
    }
    for sweep in sweeps:
        result.add(sweep, {name: next(each) for name, each in answers.items()})
        if progress is not None:
            progress(result.n_beams)
    for each in answers.values():
        _require_end(each)
    return result


def _require_end(answers: Iterator[object]) -> None:
    # With the real sweeps used up there is no answer left; this lets a simulation that goes on say so.
    next(answers, None)


def _require_kinds(real: Recording, simulated: Mapping[str, Simulated]) -> None:
    if isinstance(real, World):
        raise InputError("real", "is a world; the first argument of compare is the real log")
    for name, source in simulated.items():
        given = cast("object", source)
        if isinstance(given, str) or not (callable(given) or isinstance(given, World | HasSweeps | Iterable)):
            raise InputError(name, f"expected a log, logs or a world with fire(), found {type(source).__name__}")
    if isinstance(real, Log) and len(real) == 0:
        raise InputError("real", "the log has no beams; there is nothing to compare")
    for name, source in simulated.items():
        if isinstance(real, Log) and isinstance(source, Log) and len(source) != len(real):
            raise InputError(name, f"has {len(source)} beams, the real log {len(real)}; fire the real log's own beams")
