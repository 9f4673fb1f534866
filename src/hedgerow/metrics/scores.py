# SPDX-License-Identifier: Apache-2.0
"""Scores of one simulation, and the Comparison of several: numbers, tables, JSON.

Tables are like those of the papers: simulations as columns, the best bold, the worst italic. What looks equal is
equally good, as in Browning 2012 Table 4. Two columns have a best but no worst, as in Browning 2012 Table 3.

The papers rank hits, misses, beam errors and distances by their size. These are not proper scores: a world wins them by
being surer than reality is, and reality, compared with itself once more, would lose. So here the best is the one
nearest to reality again, from either side, where that column is there, and none where it is not.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import compress, groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.metrics.bearing import BearingHistogram
from hedgerow.metrics.calibration import Calibration, judge
from hedgerow.metrics.catalogue import HEADINGS, METRICS
from hedgerow.metrics.forecast_scores import BY_SWEEP, ForecastScores
from hedgerow.metrics.intensity import IntensityScores
from hedgerow.metrics.label_scores import LabelScores
from hedgerow.metrics.likelihood import HIGHEST, LOWEST, PER_DECADE, Likelihood
from hedgerow.metrics.metric import AGAIN_NAMES, CLIMATOLOGY, Metric, Value
from hedgerow.metrics.near_learned import NearLearned
from hedgerow.metrics.paired import PairedDifference, paired_difference
from hedgerow.metrics.per_sweep import SweepSums
from hedgerow.metrics.range_histogram import RangeHistogram
from hedgerow.metrics.shares import LogShares

Mark = Literal["", "best", "worst"]
DIFFERENCES = (*BY_SWEEP, "nll")
"""Proper scores, whose differences have intervals."""
_LONG = 10  # rows; tables of more show headings


@dataclass(frozen=True, slots=True)
class Cell:
    """One number as shown."""

    text: str
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of all simulations."""

    key: str
    label: str
    """With the unit."""
    cells: tuple[Cell, ...]
    n_text: str
    """How many beams or returns."""


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Rows of metrics, one column per simulation."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def groups(self) -> list[tuple[str, tuple[Row, ...]]]:
        """Return the rows under their headings; a short table has one group without heading."""
        found = [(heading, tuple(rows)) for heading, rows in groupby(self.rows, key=lambda row: HEADINGS[row.key])]
        return found if len(self.rows) > _LONG and len(found) > 1 else [("", self.rows)]

    def to_rich(self, *, counts: bool = True) -> Any:
        """Return a table for `rich` to print; without `counts`, the numbers of beams and returns are left out."""
        from rich.table import Table
        from rich.text import Text

        style = {"": "", "best": "bold", "worst": "italic"}
        table = Table(box=None, padding=(0, 1), header_style="")
        table.add_column("")
        for name in self.columns:
            table.add_column(Text(name), justify="right")
        if counts:
            table.add_column("of", justify="right", style="dim")
        for heading, rows in self.groups():
            if heading:
                table.add_row(Text(heading, style="underline"))
            for row in rows:
                cells = [Text(cell.text, style=style[cell.mark]) for cell in row.cells]
                label = f"  {row.label}" if heading else row.label
                table.add_row(Text(label), *cells, *([Text(row.n_text)] if counts else []))
        return table

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        around = {"": "", "best": "**", "worst": "*"}
        lines = [["", *self.columns, "of"], ["---", *["---:"] * (len(self.columns) + 1)]]
        for heading, rows in self.groups():
            if heading:
                lines.append([f"*{heading}*", *[""] * (len(self.columns) + 1)])
            for row in rows:
                cells = [f"{around[cell.mark]}{cell.text}{around[cell.mark]}" for cell in row.cells]
                lines.append([row.label, *cells, row.n_text])
        escaped = ([text.replace("|", "\\|") for text in line] for line in lines)
        return "".join(f"| {' | '.join(line)} |\n" for line in escaped)

    def to_html(self) -> str:
        """Return an HTML table element; the report styles it by its class names."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(self._html_heading(heading) + "".join(map(_html_row, rows)) for heading, rows in self.groups())
        return (
            f'<table class="scores"><thead><tr><th></th>{head}<th class="of">of</th></tr></thead>\n'
            f"<tbody>\n{body}</tbody></table>\n"
        )

    def _html_heading(self, heading: str) -> str:
        cell = f'<th>{escape(heading)}</th><td colspan="{len(self.columns) + 1}"></td>'
        return f'<tr class="heading">{cell}</tr>\n' if heading else ""


def is_floor(name: str) -> bool:
    """Whether a column of this name shows what there is without a world, or reality itself: it is not ranked."""
    return name == CLIMATOLOGY or name.casefold() in AGAIN_NAMES


def score_table(columns: Mapping[str, Mapping[str, Value]], aside: Collection[str] = ()) -> ScoreTable:
    """Lay out the values of several simulations, without metrics that none of them has.

    Args:
        columns: values by key, of each simulation by name.
        aside: those that are not ranked; floors never are.
    """
    ranked = [name not in aside and not is_floor(name) for name in columns]
    none: dict[str, Value] = {}
    again = next((values for name, values in columns.items() if name.casefold() in AGAIN_NAMES), none)
    rows = [
        _row(key, metric, [values.get(key, Value(None)) for values in columns.values()], ranked, again.get(key))
        for key, metric in METRICS.items()
        if any(key in values for values in columns.values())
    ]
    return ScoreTable(tuple(columns), tuple(rows))


def _row(key: str, metric: Metric, values: Sequence[Value], ranked: Sequence[bool], again: Value | None) -> Row:
    texts = [metric.text(value.value) for value in values]
    wanted = 1.0 if metric.near == "one" else again.value if metric.near == "reality" and again else None
    among = iter(_marks(metric, list(compress(values, ranked)), list(compress(texts, ranked)), wanted))
    marks: list[Mark] = [next(among) if is_ranked else "" for is_ranked in ranked]
    label = f"{metric.label} [{metric.unit}]" if metric.unit else metric.label
    cells = tuple(Cell(text, mark) for text, mark in zip(texts, marks, strict=True))
    return Row(key, label, cells, _n_text(metric, values))


def _marks(metric: Metric, values: Sequence[Value], texts: Sequence[str], wanted: float | None) -> list[Mark]:
    """Mark the best and the worst; `wanted` is what values are to be near to, where that is known."""
    known = sorted({(value.value, text) for value, text in zip(values, texts, strict=True) if value.value is not None})
    if metric.near is not None:
        is_ranked = wanted is not None
        ordered = sorted(known, key=lambda each: abs(each[0] - (wanted or 0)))
    else:
        is_ranked = metric.better is not None
        ordered = known if metric.better == "low" else known[::-1]
    if not is_ranked or len({text for _, text in known}) < 2:
        return [""] * len(texts)
    best, worst = ordered[0][1], ordered[-1][1] if len(texts) > 2 else None
    return ["best" if text == best else "worst" if text == worst else "" for text in texts]


def _n_text(metric: Metric, values: Sequence[Value]) -> str:
    counts = sorted({value.n for value in values if value.n is not None})
    if not metric.counts or not counts:
        return ""
    span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{span} {metric.counts}"


def _html_row(row: Row) -> str:
    tags = {"": ("", ""), "best": ("<b>", "</b>"), "worst": ("<i>", "</i>")}
    cells = "".join(f"<td>{tags[cell.mark][0]}{escape(cell.text)}{tags[cell.mark][1]}</td>" for cell in row.cells)
    return f'<tr><th>{escape(row.label)}</th>{cells}<td class="of">{escape(row.n_text)}</td></tr>\n'


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
    forecast: ForecastScores | None = None
    """Reliability, and CRPS by range; None if there are no forecasts."""
    real_shares: LogShares | None = None
    """Shares of returns by elevation, and intensities."""
    simulated_shares: LogShares | None = None
    intensity: IntensityScores | None = None
    """By range and incidence; None if one of the logs has no intensities."""
    labels: LabelScores | None = None
    """By real label; None if one of the logs has none."""
    learned: NearLearned | None = None
    """By distance to the nearest learned return; None if it is not known what was learned from."""


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

    def sweep_means(self, key: str) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
        """Return the (S,) mean score of each sweep and its number of beams; None if there is none.

        Args:
            key: one of `DIFFERENCES`.
        """
        source = self.histograms.likelihood if key == "nll" else self.histograms.forecast
        sums: SweepSums | None = None if source is None or key not in self.values else source.by_sweep
        return None if sums is None else sums.means(key)

    @property
    def calibration(self) -> Calibration | None:
        """Whether the forecast passes the gate, and what is wrong (calibration.py); None if there is none."""
        return judge(self.values, self.histograms.forecast)

    @property
    def is_calibrated(self) -> bool | None:
        """Whether spread and reliability pass; None without a forecast, or if draws are too few to say."""
        found = self.calibration
        return None if found is None else found.passes

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
            "forecasts": None if found.forecast is None else found.forecast.to_dict(),
            "calibration": _calibration_dict(self.calibration),
            "returns_by_elevation": None
            if found.real_shares is None or found.simulated_shares is None
            else {"real": found.real_shares.to_dict(), "simulated": found.simulated_shares.to_dict()},
            "intensity": None if found.intensity is None else found.intensity.to_dict(),
            "labels": None if found.labels is None else found.labels.to_dict(),
            "by_distance_to_learned": None if found.learned is None else found.learned.to_dict(),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the same as JSON; undefined values are null, there is no NaN or infinity."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def _calibration_dict(found: Calibration | None) -> dict[str, Any] | None:
    return None if found is None else {"passes": found.passes, "verdict": found.verdict, "faults": list(found.faults)}


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
        """Return the papers' table: simulations as columns, the best bold, the worst italic.

        `aside` are not ranked, and neither are floors.
        """
        return score_table({name: scores.values for name, scores in self.scores.items()}, aside)

    def calibrations(self) -> dict[str, Calibration]:
        """Return what the gate says of each forecast, by name; floors are not judged."""
        found = {name: scores.calibration for name, scores in self.scores.items() if not is_floor(name)}
        return {name: each for name, each in found.items() if each is not None}

    def differences(self, reference: str, *, seed: int = 0) -> dict[str, dict[str, PairedDifference]]:
        """Return how much better or worse than one of them the others are, with 95 % intervals.

        Both are scored on the same sweeps, so what makes a sweep hard cancels; blocks of sweeps are drawn again, since
        neighbours are alike (paired.py).

        Args:
            reference: name of what the others are compared with.
            seed: of the draws.

        Returns:
            By name and by key (`DIFFERENCES`), the score less that of the reference: below 0 is better. Those that one
            of the two does not have are left out.

        Raises:
            InputError: no such name.
        """
        base = self[reference]
        found: dict[str, dict[str, PairedDifference]] = {}
        for name, scores in self.scores.items():
            if name == reference:
                continue
            both = {key: (scores.sweep_means(key), base.sweep_means(key)) for key in DIFFERENCES}
            found[name] = {
                key: paired_difference(one[0], other[0], one[1], seed=seed)
                for key, (one, other) in both.items()
                if one is not None and other is not None and np.array_equal(one[1], other[1])
            }
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all scores by name, in types that JSON knows."""
        return {name: scores.to_dict() for name, scores in self.scores.items()}

    def to_json(self, indent: int | None = 2) -> str:
        """Return the same as JSON; undefined values are null, there is no NaN or infinity."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)
