# SPDX-License-Identifier: Apache-2.0
"""The gate of a forecast: is a world as sure as it may be, and no surer?

It passes with a spread of ranges from 0.9 to 1.1 and a reliability error of at most 0.02 (forecast_scores.py). Nothing
else asks for that: most hits, least beam error and shortest distances are won by worlds that are too sure.

Reliability by few draws comes out too high. A forecast by draws that fails by it alone is not judged: more draws tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from hedgerow.metrics.forecast_scores import ForecastScores
from hedgerow.metrics.metric import Value

SPREAD = (0.9, 1.1)
"""From where to where the spread of ranges may be."""
RELIABILITY = 0.02
"""The largest reliability error."""
Verdict = Literal["calibrated", "too sure", "too unsure", "unreliable", "not judged"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the gate says of one simulation."""

    verdict: Verdict
    faults: tuple[str, ...]
    """What is wrong, in a few words each; empty if nothing is."""
    sentence: str

    @property
    def passes(self) -> bool | None:
        """Whether the forecast passes; None if that is not decided."""
        return None if self.verdict == "not judged" else self.verdict == "calibrated"


def calibration_faults(values: Mapping[str, Value]) -> list[str]:
    """Return what keeps a forecast from passing, in a few words each; [] if it passes.

    Args:
        values: scores by key. Those that are not there are no fault: what is always right has no spread.
    """
    faults: list[str] = []
    spread, error = _number(values, "spread"), _number(values, "reliability_error")
    if spread is not None and not SPREAD[0] <= spread <= SPREAD[1]:
        side = "too sure" if spread < SPREAD[0] else "too unsure"
        faults.append(f"{side}: spread {spread:.2f}, wanted {SPREAD[0]:g} to {SPREAD[1]:g}")
    if error is not None and error > RELIABILITY:
        faults.append(f"unreliable: reliability error {error:.3f}, wanted at most {RELIABILITY:g}")
    return faults


def judge(values: Mapping[str, Value], forecast: ForecastScores | None) -> Calibration | None:
    """Say whether a forecast passes; None if there is none to judge.

    Args:
        values: scores by key.
        forecast: the sums behind them.
    """
    spread, error = _number(values, "spread"), _number(values, "reliability_error")
    if forecast is None or forecast.is_again or error is None:
        return None
    faults = calibration_faults(values)
    told = f"spread {spread:.2f}, " if spread is not None else ""
    if not faults:
        return Calibration("calibrated", (), f"calibrated: {told}reliability error {error:.3f}")
    words = [*faults]
    if error > RELIABILITY:
        said, did = float(forecast.forecast.sum()) / forecast.n, float(forecast.observed.sum()) / forecast.n
        words[-1] += f" ({said:.1%} of the beams are said to return, {did:.1%} did)"
    if forecast.draws is not None and len(faults) == 1 and faults[0].startswith("unreliable"):
        return Calibration(
            "not judged",
            tuple(faults),
            f"not judged: {told}reliability error {error:.3f} by {forecast.draws} draws, which makes it too high; "
            "set draws=64 or more",
        )
    verdict: Verdict = "unreliable"
    for side in ("too sure", "too unsure"):
        if faults[0].startswith(side):
            verdict = side
    return Calibration(verdict, tuple(faults), "; ".join(words))


def _number(values: Mapping[str, Value], key: str) -> float | None:
    return values[key].value if key in values else None
