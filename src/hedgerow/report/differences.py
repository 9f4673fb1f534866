# SPDX-License-Identifier: Apache-2.0
"""Differences of proper scores to the world with the best CRPS, with their intervals, as text."""

from dataclasses import dataclass

from hedgerow.metrics import Comparison
from hedgerow.metrics.catalogue import METRICS
from hedgerow.metrics.paired import PairedDifference
from hedgerow.metrics.scores import DIFFERENCES, is_floor


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One score of all worlds but the reference."""

    label: str
    cells: tuple[tuple[str, str], ...]
    """Name and text of each."""


@dataclass(frozen=True, slots=True)
class DifferenceTable:
    """Rows of scores."""

    reference: str
    rows: tuple[DifferenceRow, ...]


def differences_to_best(scores: Comparison, *, seed: int = 0) -> DifferenceTable | None:
    """Return the differences to the world of the lowest CRPS; None without two forecasts, or without intervals.

    Few sweeps have no interval, and a difference without one says no more than the table of scores.
    """
    known = [(value, name) for name in scores if not is_floor(name) and (value := scores[name]["crps_m"]) is not None]
    if len(known) < 2:
        return None
    reference = min(known)[1]
    found = scores.differences(reference, seed=seed)
    if all(each.interval is None for some in found.values() for each in some.values()):
        return None
    rows: list[DifferenceRow] = []
    for key in DIFFERENCES:
        cells = [(name, _text(key, each[key])) for name, each in found.items() if not is_floor(name) and key in each]
        if cells:
            unit = f" [{METRICS[key].unit}]" if METRICS[key].unit else ""
            rows.append(DifferenceRow(METRICS[key].label + unit, tuple(cells)))
    return DifferenceTable(reference, tuple(rows))


def _text(key: str, difference: PairedDifference) -> str:
    metric = METRICS[key]
    value = f"{difference.difference * metric.scale:+.{metric.decimals}f}"
    if difference.interval is None:
        return value
    low, high = (f"{end * metric.scale:+.{metric.decimals}f}" for end in difference.interval)
    return f"{value} ({low} to {high})"
