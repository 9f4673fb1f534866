# SPDX-License-Identifier: Apache-2.0
"""Timing on noisy machines: the contenders take turns, and the best of several rounds counts."""

import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 9


@dataclass
class Result:
    """One line of the table."""

    what: str
    value: str
    goal: str
    met: bool | None  # None: a figure without a goal


def best_seconds(*contenders: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Seconds of the best round of each contender; they run in turns, so that a busy moment hits all alike."""
    for contender in contenders:
        contender()  # page in, build, warm up
    best = [float("inf")] * len(contenders)
    for _ in range(rounds):
        for i, contender in enumerate(contenders):
            start = time.perf_counter()
            contender()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def at_least(what: str, ratio: float, goal: float, detail: str = "") -> Result:
    """A ratio that should not fall below its goal."""
    return Result(what, f"{ratio:.2f}{' (' + detail + ')' if detail else ''}", f">= {goal:g}", ratio >= goal)
