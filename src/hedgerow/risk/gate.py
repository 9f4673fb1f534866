# SPDX-License-Identifier: Apache-2.0
"""The gate of a nightly build: is a simulator good enough, and no worse than last time?"""

from hedgerow.apps.app import App
from hedgerow.base.intervals import interval
from hedgerow.errors import InputError
from hedgerow.risk.bootstrap import losses, mean_loss, resample
from hedgerow.risk.objectives import pair
from hedgerow.risk.score import RiskScores, choose_objective
from hedgerow.risk.table import DRAWN, RiskTable


def check_bounds(scores: RiskScores, max_risk: float | None = None, max_regret: float | None = None) -> list[str]:
    """Return a sentence for each simulator whose risk or regret is above its bound, or is not known."""
    failed: list[str] = []
    for name, each in scores.scores.items():
        for what, value, bound in (("risk", each.risk, max_risk), ("regret", each.regret, max_regret)):
            if bound is not None and not value <= bound:  # NaN fails
                failed.append(f"{name}: {what} {value:.4g} is above {bound:.4g}")
    return failed


def check_last(table: RiskTable, last: RiskTable, app: App, objective: str | None = None) -> list[str]:
    """Return a sentence for each simulator whose risk is above that of the last table, beyond noise.

    Both tables are resampled alike, so what they share cancels; a simulator is worse if the interval of the difference
    lies above 0. With one simulator in each, the names may differ.

    Raises:
        InputError: the last table is of another program, other settings or scenes, or has no such simulator.
    """
    _, wanted = choose_objective(app, objective)
    _require_alike(table, last)
    names, before = table.names("simulated"), last.names("simulated")
    if len(names) == len(before) == 1:
        matches = {names[0]: before[0]}
    else:
        matches = {name: name for name in names if name in before}
    if not matches:
        raise InputError("--not-worse-than", f"has {', '.join(before)}, but now there is {', '.join(names)}")
    n = min(len(table.settings[DRAWN]), len(last.settings[DRAWN]))
    n_least = min(n, len(table.of(table.real).scenes))
    failed: list[str] = []
    for name, old in matches.items():
        pairs = {
            "now": pair(table.of(table.real), table.of(name), wanted, n),
            "last": pair(last.of(last.real), last.of(old), wanted, n),
        }
        difference = float(mean_loss(losses(pairs["now"]) - losses(pairs["last"])))
        span = interval(difference, resample(pairs).difference["now", "last"], n_least)
        if span is None or not span[0] <= 0:
            said = "no interval" if span is None else f"95 % interval {span[0]:.3g} to {span[1]:.3g}"
            failed.append(f"{name}: risk is {difference:.3g} above that of last time ({said})")
    return failed


def _require_alike(table: RiskTable, last: RiskTable) -> None:
    here, there = table.header, last.header
    pairs = (
        ("another program", here.app, there.app),
        ("other parameters", here.space.to_dict(), there.space.to_dict()),
        ("other fixed values", here.fixed, there.fixed),
        ("settings drawn otherwise", (here.sampler, here.seed), (there.sampler, there.seed)),
        ("other scenes", table.of(table.real).scenes, last.of(last.real).scenes),
    )
    for what, now, before in pairs:
        if now != before:
            raise InputError("--not-worse-than", f"the table has {what}, so that the two cannot be compared")
