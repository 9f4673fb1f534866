# SPDX-License-Identifier: Apache-2.0
"""Risk in words and rows, for the terminal and the page."""

import math

from hedgerow.base.intervals import Interval
from hedgerow.metrics import Comparison
from hedgerow.metrics.catalogue import METRICS
from hedgerow.risk.score import RiskScore, RiskScores

Rows = tuple[tuple[str, ...], list[list[str]]]
MEANINGS: dict[str, str] = {
    "risk": "mean over the settings of |J simulated - J real|, J over all scenes (Tallavajhula 2018 eq. 2.5)",
    "95 % interval": "bootstrap over scenes and settings",
    "median, 90 %, largest loss": "of |J simulated - J real| over the settings",
    "bias": "mean of J simulated - J real; below 0 the simulator is optimistic",
    "own floor": "the same mean for the simulator against itself under another seed",
    "loss at best": "|J simulated - J real| at the setting that is best in simulation (Tallavajhula 2018 Fig. 2.8)",
    "regret": "J real at the setting that is best in simulation, less the best J real of all settings",
    "rank agreement": "Spearman's correlation of J simulated and J real over the settings; 1 is the same order",
    "failed": "share of the runs that failed in simulation",
    "settings": "how many settings count: they ran well in both, on half of the scenes or more",
}
"""What each row means."""


def summary(scores: RiskScores, meaning: str = "") -> str:
    """Say what was run, and what reality is against itself."""
    unit = f" [{scores.unit}]" if scores.unit else ""
    what = f"{scores.app}: J is {scores.objective}{unit}" + (f", {meaning}" if meaning else "")
    run = f"{scores.n_settings} settings, {scores.n_scenes} scenes, {len(scores.seeds)} seeds"
    floor = "not known" if scores.floor is None else f"{_number(scores.floor.value)} ({scores.floor.how})"
    return f"{what}; {run}\nfloor of reality against itself: {floor}; {scores.failures:.1%} of the real runs failed"


def risk_rows(scores: RiskScores) -> Rows:
    """Return a column for each simulator."""
    names = list(scores.scores)
    rows = [[label, *(_cell(label, scores.scores[name]) for name in names)] for label in MEANINGS]
    return ("", *names), rows


def _cell(label: str, each: RiskScore) -> str:
    match label:
        case "risk":
            return _number(each.risk)
        case "95 % interval":
            return _span(each.interval)
        case "median, 90 %, largest loss":
            return ", ".join(map(_number, (each.median_loss, each.loss_90, each.largest_loss)))
        case "bias":
            return f"{_number(each.bias)} ({_span(each.bias_interval)})"
        case "own floor":
            return "-" if each.floor is None else _number(each.floor.value)
        case "loss at best":
            return _number(each.loss_at_best)
        case "regret":
            return _number(each.regret)
        case "rank agreement":
            return "-" if math.isnan(each.rank_agreement) else f"{each.rank_agreement:.2f}"
        case "failed":
            kinds = ", ".join(f"{kind} {share:.1%}" for kind, share in each.failure_kinds.items())
            return f"{each.failures:.1%}" + (f" ({kinds})" if kinds else "")
        case _:
            return str(each.n_settings)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3g}"


def _span(span: Interval | None) -> str:
    return "-" if span is None else f"{_number(span[0])} to {_number(span[1])}"


def rank_words(scores: RiskScores, observed: Comparison) -> str:
    """Say which metrics of observations put the simulators in the order of their risk, and which do not."""
    names = sorted(scores.scores, key=lambda name: scores.scores[name].risk)
    if len(names) < 2:
        return "with one simulator there is no order to compare"
    alike: list[str] = []
    unlike: list[str] = []
    for key, metric in METRICS.items():
        values = [observed[name][key] if key in observed[name].values else None for name in names]
        if metric.better is None or any(value is None for value in values):
            continue
        numbers = [float(value) * (-1 if metric.better == "high" else 1) for value in values if value is not None]
        (alike if numbers == sorted(numbers) else unlike).append(metric.label)
    return (
        f"metrics that put the simulators in the order of their risk ({', '.join(names)}): "
        f"{', '.join(alike) or 'none'}; others: {', '.join(unlike) or 'none'}"
    )
