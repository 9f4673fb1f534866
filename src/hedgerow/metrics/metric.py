# SPDX-License-Identifier: Apache-2.0
"""What a metric is: a number with a name and a unit, and the sums over sweeps that it is computed from.

A family of metrics is computed from the same sums. Its file has a class that accumulates them and a `Metric` for each
number that it gives; its row in `catalogue.FAMILIES` names both. Most metrics look at one simulation beside the real
log: their class is a `PairSums`, and `Family.of_pairs` keeps one for each simulation. Those that compare whole logs
(clouds, histograms) need the sums of the real log once for all simulations: their class is a `Sums`.

Sums of parts of a log merge, so that a log can be compared in parts.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.pair import RealSweep, SweepPair

CLIMATOLOGY = "climatology"
"""Column of what is known without any world (climatology.py)."""
REALITY_AGAIN = "reality again"
"""Column of another recording of the same place, or the same scene once more."""
AGAIN_NAMES = (REALITY_AGAIN, "scene again")
"""Columns that are taken for reality again, in small letters."""


@dataclass(frozen=True, slots=True)
class Value:
    """One metric of one simulation."""

    value: float | None
    """In metres, shares or plain numbers; None where the data leaves it undefined."""
    n: int | None = None
    """How many beams or returns it is computed from; None for what is not measured on beams."""


def ratio_value(part: float, whole: int) -> Value:
    """Return part / whole, undefined for a whole of nothing."""
    return Value(part / whole if whole else None, whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """How one number is shown."""

    label: str
    meaning: str
    """In a few words."""
    source: str = ""
    """Paper by author and year, with its section or equation."""
    better: Literal["low", "high"] | None = None
    """Which way perfection lies; None if neither."""
    near: Literal["reality", "one"] | None = None
    """What values are to be near instead, from either side: those of reality compared with itself once more, since
    what is won by being surer than reality is no gain; or 1. None: the more `better`, the better."""
    unit: str = ""
    """As shown; empty for plain numbers."""
    scale: float = 1
    """Stored values (metres, shares) times this are shown in the unit."""
    decimals: int
    counts: str = ""
    """What `Value.n` counts; empty if nothing is."""

    def text(self, value: float | None) -> str:
        """Write a value as a table shows it; a dash if it is undefined."""
        return "-" if value is None else f"{value * self.scale:,.{self.decimals}f}"


class PairSums(Protocol):
    """What one family of metrics accumulates over the sweeps of one simulation and of the real log."""

    def __init__(self, settings: CompareSettings) -> None:
        """Start with nothing."""
        ...

    def add(self, pair: SweepPair) -> None:
        """Add one sweep."""
        ...

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log."""
        ...

    def values(self) -> dict[str, Value]:
        """Return the metrics by key; those that do not apply to the data are left out."""
        ...

    def notes(self) -> list[str]:
        """Say what was left out and why, one sentence each."""
        ...


class Sums(Protocol):
    """What one family of metrics accumulates over the sweeps of a real log and of all its simulations."""

    def add(self, real: RealSweep, pairs: Mapping[str, SweepPair]) -> None:
        """Add one sweep, with its simulations by name."""
        ...

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log and the same simulations."""
        ...

    def values(self) -> Mapping[str, dict[str, Value]]:
        """Return the metrics of each simulation, by its name and by key; those that do not apply are left out."""
        ...

    def notes(self) -> Mapping[str, list[str]]:
        """Say by simulation what was left out and why, one sentence each."""
        ...


class SumsOfPairs:
    """One `PairSums` for each simulation."""

    def __init__(self, start: Callable[[CompareSettings], PairSums], settings: CompareSettings, names: Iterable[str]):
        """Start with nothing for each of the names."""
        # Any: all are of the class that `start` gives, so they merge with each other.
        self.by_name: dict[str, Any] = {name: start(settings) for name in names}

    def add(self, real: RealSweep, pairs: Mapping[str, SweepPair]) -> None:
        """Add one sweep, with its simulations by name."""
        for name, sums in self.by_name.items():
            sums.add(pairs[name])

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log and the same simulations."""
        for name, sums in self.by_name.items():
            sums.merge(other.by_name[name])

    def values(self) -> dict[str, dict[str, Value]]:
        """Return the metrics of each simulation."""
        return {name: sums.values() for name, sums in self.by_name.items()}

    def notes(self) -> dict[str, list[str]]:
        """Return the notes of each simulation."""
        return {name: sums.notes() for name, sums in self.by_name.items()}


@dataclass(frozen=True, slots=True)
class Family:
    """One row of the table of metrics."""

    start: Callable[[CompareSettings, Iterable[str]], Any]
    """Gives empty `Sums` for simulations of these names; Any, as sums merge only with those of their own class."""
    metrics: Mapping[str, Metric]
    """What is computed from the sums, by key, in the order of the tables."""
    heading: str
    """Under which long tables show them."""

    @classmethod
    def of_pairs(
        cls, start: Callable[[CompareSettings], PairSums], metrics: Mapping[str, Metric], heading: str
    ) -> Self:
        """Make a row of a class that looks at one simulation at a time."""
        return cls(lambda settings, names: SumsOfPairs(start, settings, names), metrics, heading)
