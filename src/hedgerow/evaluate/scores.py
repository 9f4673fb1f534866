# SPDX-License-Identifier: Apache-2.0
"""Scores of one simulation, and the Comparison of several: numbers, tables, JSON."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.errors import InputError
from hedgerow.evaluate.bearing import BearingHistogram
from hedgerow.evaluate.catalogue import METRICS
from hedgerow.evaluate.likelihood import HIGHEST, LOWEST, PER_DECADE, Likelihood
from hedgerow.evaluate.range_histogram import RangeHistogram
from hedgerow.evaluate.tables import ScoreTable, score_table
from hedgerow.evaluate.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Histograms:
    """What the plots are drawn from."""

    real_ranges: RangeHistogram
    simulated_ranges: RangeHistogram
    likelihood: Likelihood | None
    """None if the simulation knows no densities."""
    real_bearing: BearingHistogram | None
    """By direction; None unless the sensor stands still."""
    simulated_bearing: BearingHistogram | None


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """How well one simulation matches a real log."""

    name: str
    values: Mapping[str, Value]
    """By key of the catalogue; what does not apply to the data is absent, and `notes` says why."""
    histograms: Histograms
    n_beams: int
    n_sweeps: int
    static: bool
    """Whether the sensor stood still."""
    settings: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    """What was left out and why, one sentence each."""

    def __getitem__(self, key: str) -> float | None:
        """Return a value by its key, in metres, shares or plain numbers; None if it is undefined for the data.

        Raises:
            InputError: no such metric; names those there are.
        """
        if key not in METRICS:
            raise InputError("score", f"no metric '{key}'; there are {', '.join(METRICS)}")
        return self.values[key].value if key in self.values else None

    def table(self) -> ScoreTable:
        """Return the scores as a table of one column."""
        return score_table({self.name: self.values})

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the histograms by direction, in types that JSON knows."""
        found = self.histograms
        return {
            "name": self.name,
            "n_beams": self.n_beams,
            "n_sweeps": self.n_sweeps,
            "static": self.static,
            "metrics": {key: {"value": each.value, "n": each.n} for key, each in self.values.items()},
            "notes": list(self.notes),
            "settings": dict(self.settings),
            "range_histogram": {
                "step_m": found.real_ranges.step_m,
                "real": found.real_ranges.counts.tolist(),
                "simulated": found.simulated_ranges.counts.tolist(),
                "real_no_return": found.real_ranges.n_no_return,
                "simulated_no_return": found.simulated_ranges.n_no_return,
            },
            "likelihood_histogram": None
            if found.likelihood is None
            else {
                "log10_edges": np.linspace(LOWEST, HIGHEST, (HIGHEST - LOWEST) * PER_DECADE + 1).round(6).tolist(),
                "counts": found.likelihood.counts.tolist(),
            },
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the same as JSON; undefined values are null, there is no NaN or infinity."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Scores of several simulations of one real log, by name."""

    scores: Mapping[str, Scores]

    @classmethod
    def of(cls, scores: "Scores | Comparison") -> "Comparison":
        """Return a comparison of one, or the comparison itself."""
        return scores if isinstance(scores, Comparison) else cls({scores.name: scores})

    def __getitem__(self, name: str) -> Scores:
        """Return the scores of one simulation.

        Raises:
            InputError: no such name.
        """
        if name not in self.scores:
            raise InputError("comparison", f"no simulation '{name}'; there are {', '.join(self.scores)}")
        return self.scores[name]

    def __iter__(self) -> Iterator[str]:
        """Give the names."""
        return iter(self.scores)

    def __len__(self) -> int:
        """Count the simulations."""
        return len(self.scores)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out and why, each note once, with the name where there are several simulations."""
        said: dict[str, list[str]] = {}
        for name, scores in self.scores.items():
            for note in scores.notes:
                said.setdefault(note, []).append(name)
        every = len(self.scores)
        return tuple(note if len(who) == every else f"{', '.join(who)}: {note}" for note, who in said.items())

    def table(self, *, aside: Collection[str] = ()) -> ScoreTable:
        """Return the papers' table: simulations as columns, the best bold, the worst italic; `aside` is neither."""
        return score_table({name: scores.values for name, scores in self.scores.items()}, aside)

    def to_dict(self) -> dict[str, Any]:
        """Return all scores by name, in types that JSON knows."""
        return {name: scores.to_dict() for name, scores in self.scores.items()}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the same as JSON; undefined values are null, there is no NaN or infinity."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)
