# SPDX-License-Identifier: Apache-2.0
"""App: a robot program with parameters, whose error on a log can be measured; real and simulated logs alike.

    @program(voxel_m=log_number(0.1, 2.0), iterations=whole(1, 40))
    def my_odometry(log, parameters, truth):
        ...
        return {"error": total_error_m, "n": n_pairs}        # sums of this scene; or one number

A scene is a log and what is true there: labels, poses, a map; whatever the program's error needs. A run gives sums over
its scene: counts, squared errors, seconds. An objective J (low is good) is computed from the sums of a set of scenes,
since F1 of a set is no mean of F1s; so scenes can be resampled and J computed again without running anything.

A run can fail: it raises, takes too long, writes nonsense, or gives no finite number. That is an outcome, not an
error: a good simulator makes a program fail as often as reality does.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pkgutil import resolve_name
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.space import Parameter, Setting, Space
from hedgerow.errors import one_line
from hedgerow.log import Log

Sums = Mapping[str, NDArray[np.float64]]
"""Sums by name, arrays of any one shape: of one set of scenes each."""
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run on one scene."""

    sums: dict[str, float] = field(default_factory=dict[str, float])
    """Sums by name; empty if the run failed."""
    failure: str = ""
    """Why the run failed, beginning with one of FAILURES; empty if it did not."""

    @property
    def failed(self) -> bool:
        """Whether there is nothing to reduce."""
        return bool(self.failure)


FAILURES = ("crash", "time-out", "no output", "broken output", "not finite", "lost")
"""What failures begin with. lost: the program itself says that it found no answer."""


def fail(kind: str, said: str = "") -> Outcome:
    """Return the outcome of a run that failed; `kind` is one of FAILURES."""
    return Outcome({}, one_line(f"{kind}: {said}" if said else kind, _LONGEST_REASON))


@dataclass(frozen=True, slots=True)
class Objective:
    """How good a program is over a set of scenes: J, low is good."""

    reduce: Callable[[Sums], NDArray[np.float64]]
    """From sums over sets of scenes to J of each set, element by element; NaN where a set has no J."""
    unit: str = ""
    meaning: str = ""
    """What it is, in a few words."""


@runtime_checkable
class App(Protocol):
    """A robot program with parameters."""

    @property
    def name(self) -> str:
        """What to call it."""
        ...

    @property
    def space(self) -> Space:
        """Its parameters."""
        ...

    @property
    def objectives(self) -> Mapping[str, Objective]:
        """By name; the first is the one that is meant where none is named. All are computed from the same sums."""
        ...

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Run the program on one scene.

        Args:
            log: what the lidar saw, real or simulated.
            parameters: a value for every parameter of the space.
            truth: what is true in that scene; only to compute the error with.
        """
        ...


def ratio(above: str, below: str, unit: str = "", meaning: str = "") -> Objective:
    """Return the objective `above / below` of two sums, a mean; NaN where `below` is 0."""
    return Objective(_Ratio(above, below), unit, meaning)


def root_ratio(above: str, below: str, unit: str = "", meaning: str = "") -> Objective:
    """Return the objective sqrt(above / below), a root mean square; NaN where `below` is 0."""
    return Objective(_Ratio(above, below, root=True), unit, meaning)


def minus_f1(meaning: str = "minus F1 of the set") -> Objective:
    """Return -F1 of the sums tp, fp and fn: -2 tp / (2 tp + fp + fn); 0 where nothing was there nor found."""
    return Objective(_minus_f1, "", meaning)


def minus_iou(meaning: str = "minus intersection over union of the set") -> Objective:
    """Return minus the intersection over union of the sums tp, fp and fn; 0 where nothing was there nor found."""
    return Objective(_minus_iou, "", meaning)


@dataclass(frozen=True, slots=True)
class _Ratio:
    above: str
    below: str
    root: bool = False

    def __call__(self, sums: Sums) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(sums[self.below] > 0, sums[self.above] / sums[self.below], np.nan)
        return np.sqrt(mean) if self.root else mean


def _minus_f1(sums: Sums) -> NDArray[np.float64]:
    return -2 * sums["tp"] / np.maximum(2 * sums["tp"] + sums["fp"] + sums["fn"], 1e-300)


def _minus_iou(sums: Sums) -> NDArray[np.float64]:
    return -sums["tp"] / np.maximum(sums["tp"] + sums["fp"] + sums["fn"], 1e-300)


Answer = Outcome | Mapping[str, float] | float
"""What a function may return: an outcome, sums by name, or J of this scene."""
MEAN_J = {"J": ratio("J", "n", meaning="mean over the scenes")}
"""Objectives of programs that give one number for each scene."""


def outcome_of(answer: object) -> Outcome:
    """Make an outcome of what a program gave; what is no finite number is a failure."""
    if isinstance(answer, Outcome):
        return answer if answer.failed else outcome_of(answer.sums)
    if not isinstance(answer, bool) and isinstance(answer, Real):
        return outcome_of({"J": float(answer), "n": 1.0})
    if not isinstance(answer, Mapping):
        return fail("broken output", f"expected sums by name or a number, found {type(answer).__name__}")
    sums: dict[str, float] = {}
    for name, value in cast("Mapping[object, object]", answer).items():
        if isinstance(value, bool) or not isinstance(value, Real):
            return fail("broken output", f"{name} is no number")
        if not math.isfinite(value):
            return fail("not finite", f"{name} is {float(value):g}")
        sums[str(name)] = float(value)
    return Outcome(sums) if sums else fail("broken output", "no sums")


def run(app: App, log: Log, parameters: Setting, truth: Any) -> Outcome:
    """Run a program on one scene; whatever it raises is a failure, but for being interrupted or out of memory."""
    try:
        return outcome_of(app.run(log, parameters, truth))
    except MemoryError:
        raise
    except Exception as error:
        return fail("crash", f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class FunctionApp:
    """A Python function as a program; `program` makes it."""

    function: Callable[[Log, Setting, Any], Answer]
    space: Space
    objectives: Mapping[str, Objective]

    @property
    def name(self) -> str:
        """The function's."""
        return self.function.__name__

    def run(self, log: Log, parameters: Setting, truth: Any) -> Outcome:
        """Call the function."""
        return outcome_of(self.function(log, parameters, truth))

    def __call__(self, log: Log, parameters: Setting, truth: Any = None) -> Answer:
        """Call the function as it stands."""
        return self.function(log, parameters, truth)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Let it pass between processes by its name: the function is found there as this app."""
        return resolve_name, (f"{self.function.__module__}:{self.function.__qualname__}",)


def program(
    objectives: Mapping[str, Objective] | Objective | None = None, /, **parameters: Parameter
) -> Callable[[Callable[[Log, Setting, Any], Answer]], FunctionApp]:
    """Make an app of a function (log, parameters, truth) -> J, sums by name, or an Outcome.

    Args:
        objectives: how sums become J; by name, or one. Default: the function gives J, or the sums J and n.
        parameters: its parameters, by name.
    """
    given = {"J": objectives} if isinstance(objectives, Objective) else objectives or MEAN_J
    return lambda function: FunctionApp(function, Space(parameters), given)
