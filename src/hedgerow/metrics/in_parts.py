# SPDX-License-Identifier: Apache-2.0
"""compare on workers: every part of the real log is compared by whoever is free, and the sums are merged in order.

Worlds and scenes do not travel: tasks carry their paths, and each worker opens them once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hedgerow.base.progress import Progress
from hedgerow.drives import absolute, stamp_of
from hedgerow.errors import InputError
from hedgerow.inputs import open_log, open_simulated
from hedgerow.io.parquet.reader import LogFile
from hedgerow.io.source import LogSource
from hedgerow.metrics.beside import NextSweep
from hedgerow.metrics.compare import ComparisonSums, accumulate, score
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.floors import floor_columns
from hedgerow.metrics.inputs import Again, Recording, Simulated, size_of
from hedgerow.metrics.learned_cloud import LearnedCloud
from hedgerow.metrics.metric import CLIMATOLOGY, REALITY_AGAIN
from hedgerow.metrics.scores import Comparison
from hedgerow.parallel.engine import Engine, Shared
from hedgerow.parallel.kept import keep
from hedgerow.parallel.log_parts import LogPart, cut_log, map_log
from hedgerow.sensor import Sensor
from hedgerow.world import World


def compare_in_parts(
    real: str | Path,
    simulated: Mapping[str, str | Path],
    engine: Engine,
    *,
    floors: bool = False,
    again: str | Path | None = None,
    learned: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Comparison:
    """Measure how far simulations are from a real log, on the workers of an engine; see `compare`.

    Args:
        real: path of a Parquet log.
        simulated: paths of learned worlds, of scenes, or of Parquet logs, by name.
        engine: what works on the parts of the log.
        floors: whether to put climatology and, if there is one, reality again beside them; the log is then read twice.
        again: path of what reality again is: a Parquet log, or the scene that the log was recorded in.
        learned: path of the log that the worlds were learned from.
        seed: for firing.
        progress: called with the number of real beams done.
        settings: see `CompareSettings`.

    Returns:
        The same scores as `compare` gives, to the last bit.

    Raises:
        InputError, FileError: as `compare`; or a log is of a format that workers cannot read in parts.
    """
    checked = CompareSettings.parse(settings, "compare")
    named: dict[str, str | Path] = {**simulated} | ({} if again is None else {REALITY_AGAIN: again})
    paths = tuple((name, absolute(path), stamp_of(path)) for name, path in named.items())
    climatology, is_standing = None, False
    if floors:
        columns = floor_columns(open_log(real, "compare"), checked)
        climatology = columns.get(CLIMATOLOGY)
        is_standing = again is None and REALITY_AGAIN in columns
    cloud = None if learned is None else LearnedCloud.of(open_log(learned, "compare"), checked)
    work = _ComparePart(paths, seed, checked, engine.share(climatology), is_standing, engine.share(cloud))
    own = ([CLIMATOLOGY] if climatology is not None else []) + ([REALITY_AGAIN] if is_standing else [])
    names = [*simulated, *own, *([] if again is None else [REALITY_AGAIN])]
    total = ComparisonSums(checked, names)
    sizes: dict[str, dict[str, float]] = {}
    for sums, found in map_log(cut_log(real, engine), work, progress):
        total.merge(sums)
        sizes = found  # the same in all parts
    return score(total, sizes)


@dataclass(frozen=True, slots=True)
class _ComparePart:
    """Compares one part of the real log."""

    simulated: tuple[tuple[str, str, str], ...]
    """Names, paths, and the stamps that tell these files from later ones."""
    seed: int
    settings: CompareSettings
    climatology: Shared[Any]
    """Of the whole log, or None."""
    is_standing: bool
    """Whether the next sweep of the log is reality again."""
    learned: Shared[LearnedCloud | None]
    """What the worlds were learned from, or None."""

    def __call__(self, part: LogPart) -> tuple[ComparisonSums, dict[str, dict[str, float]]]:
        log = part.read()
        sensor = Sensor.of(log)
        key = f"{self.simulated} {'' if sensor is None else sensor.name}"
        opened = keep("compared", key, lambda: {n: open_simulated(p, "compare", sensor) for n, p, _ in self.simulated})
        sources: dict[str, Simulated] = {
            name: each if isinstance(each, World) else _sweeps_for(name, each, part) for name, each in opened.items()
        }
        again = sources.pop(REALITY_AGAIN, None)
        if self.climatology.value is not None:
            sources[CLIMATOLOGY] = self.climatology.value
        if self.is_standing:
            sources[REALITY_AGAIN] = Again(NextSweep(LogFile(part.path)))
        elif again is not None:
            sources[REALITY_AGAIN] = Again(cast("Recording | World", again))
        sums = accumulate(log, sources, self.settings, self.seed, learned=self.learned.value)
        return sums, {name: size_of(each) for name, each in sources.items()}


def _sweeps_for(name: str, source: LogSource, part: LogPart) -> Simulated:
    """Return what a part of the real log is compared with: the same sweeps, read at once, or the whole log."""
    if not isinstance(source, LogFile):
        raise InputError(
            name, "only a Parquet log can be read by several workers; make one with: hedgerow convert LOG LOG.parquet"
        )
    return source.read(part.sweeps) if set(part.sweeps) <= set(source.sweeps.tolist()) else source
