# SPDX-License-Identifier: Apache-2.0
"""The parameters of a robot program, and how settings of them are drawn.

    space = Space.of(voxel_m=log_number(0.1, 2.0), iterations=whole(1, 40), kind=choice("point", "plane"))
    for setting in space.sample(100, seed=1): ...

A setting is one value for each parameter. Settings are drawn before anything is run, so they cannot follow the real
data. The first n of a longer list of settings are the list of n: more can be added later.
"""

import difflib
import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from hedgerow.base.arguments import as_whole
from hedgerow.base.parameters import Finite, Parameters
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError, ParameterError, shown

Value = bool | int | float | str
"""Of one parameter."""
Setting = dict[str, Any]
"""A value for every parameter of a space, by name; each is a `Value`."""
Sampler = Literal["uniform", "sobol"]
SAMPLERS: tuple[Sampler, ...] = ("uniform", "sobol")
"""uniform: independent draws. sobol: scrambled Sobol points (Owen 1998), which fill the space more evenly."""
MAX_SETTINGS = 1_000_000
_MAX_SOBOL = 21_201  # dimensions that scipy has numbers for


class Parameter(Parameters):
    """One parameter of a program: its kind and its bounds, both included."""

    kind: Literal["float", "log", "integer", "choice"]
    """float: uniform between the bounds; log: its logarithm is uniform; integer: every whole number alike; choice: one
    of the choices."""
    low: Finite | None = None
    """Least value, of all kinds but choice."""
    high: Finite | None = None
    """Largest value, of all kinds but choice."""
    choices: tuple[Value, ...] = ()
    """What a choice chooses from."""
    default: Value | None = None
    """Where a search starts. Default: the middle of the bounds, or the first choice."""
    meaning: str = ""
    """What it does, in a few words."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "choice":
            self._require_choices()
        else:
            self._require_bounds()
        if self.default is not None:
            self.check("default", self.default)
        return self

    def _require_choices(self) -> None:
        if self.low is not None or self.high is not None:
            raise InputError("low, high", "a choice has no bounds; leave them out")
        if len(self.choices) < 1 or len(set(map(str, self.choices))) < len(self.choices):
            raise InputError("choices", f"expected different values to choose from, found {shown(self.choices)}")

    def _require_bounds(self) -> None:
        if self.choices:
            raise InputError("choices", f"only for kind choice, and this is {self.kind}")
        if self.low is None or self.high is None:
            raise InputError("low, high", f"a parameter of kind {self.kind} needs both")
        if self.low > self.high:
            raise InputError("low", f"{self.low:g} is above high, {self.high:g}; swap them")
        if self.kind == "log" and self.low <= 0:
            raise InputError("low", f"expected a number above 0 for kind log, found {self.low:g}")
        if self.kind == "integer" and (self.low % 1 or self.high % 1):
            raise InputError("low, high", f"expected whole numbers, found {self.low:g} and {self.high:g}")

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest value; of a choice, the numbers of its first and last choice."""
        if self.low is None or self.high is None:
            return 0.0, float(len(self.choices) - 1)
        return self.low, self.high

    def at(self, share: float) -> Value:
        """Return the value at a share of the way, 0 to 1, such that uniform shares give the distribution."""
        low, high = self.bounds
        if self.kind == "choice":
            return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]
        if self.kind == "integer":
            return int(min(low + math.floor(share * (high - low + 1)), high))
        if self.kind == "log":
            return min(max(math.exp(math.log(low) + share * math.log(high / low)), low), high)
        return low + share * (high - low)

    def share(self, value: Value) -> float:
        """Return where a value stands, 0 to 1: the middle of the shares that give it."""
        low, high = self.bounds
        if self.kind == "choice":
            return (self.choices.index(value) + 0.5) / len(self.choices)
        number = float(cast("float", value))
        if self.kind == "integer":
            return (number - low + 0.5) / (high - low + 1)
        if high == low:
            return 0.5
        return math.log(number / low) / math.log(high / low) if self.kind == "log" else (number - low) / (high - low)

    @property
    def start(self) -> Value:
        """Where a search starts."""
        return self.at(0.0 if self.kind == "choice" else 0.5) if self.default is None else self.default

    def check(self, name: str, value: object) -> Value:
        """Return a value as the parameter's own type.

        Raises:
            InputError: no such choice, no number, or out of bounds; names the parameter.
        """
        if self.kind == "choice":
            for each in self.choices:
                if each == value and isinstance(each, bool) == isinstance(value, bool):
                    return each
            raise InputError(name, f"expected one of {', '.join(map(str, self.choices))}, found {shown(value)}")
        low, high = self.bounds
        number = float(value) if not isinstance(value, bool) and isinstance(value, Real) else math.nan
        whole = self.kind == "integer"
        if not low <= number <= high or (whole and number % 1):
            what = "a whole number" if whole else "a number"
            raise InputError(name, f"expected {what} from {low:g} to {high:g}, found {shown(value)}")
        return int(number) if whole else number


class Space:
    """The parameters of a program by name."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        """Take checked parameters."""
        self.parameters = dict(parameters)

    @classmethod
    def of(cls, **parameters: Parameter) -> Self:
        """Make a space in Python; `number`, `log_number`, `whole` and `choice` make its parameters."""
        return cls(parameters)

    @classmethod
    def parse(cls, tables: object, where: str) -> Self:
        """Check a table of tables, as an app.toml holds it.

        Raises:
            ParameterError: an unknown kind, low above high, or whatever else is wrong; names the parameter.
        """
        if not isinstance(tables, Mapping):
            raise ParameterError(("parameters",), f"expected a table for each parameter, found {shown(tables)}", where)
        checked: dict[str, Parameter] = {}
        for name, table in cast("Mapping[str, object]", tables).items():
            try:
                checked[name] = Parameter.parse(table, f"parameter {name}")
            except ParameterError as error:
                raise ParameterError((name, *error.location), error.said, where) from None
        return cls(checked)

    def check(self, values: Mapping[str, object]) -> Setting:
        """Return values of some of the parameters, each checked.

        Raises:
            InputError: an unknown name, or a wrong value.
        """
        for name in values:
            if name not in self.parameters:
                near = difflib.get_close_matches(name, self.parameters, n=2)
                guess = f"did you mean {' or '.join(near)}? " if near else ""
                there = ", ".join(self.parameters) or "none"
                raise InputError(name, f"no such parameter; {guess}the program has {there}")
        return {name: self.parameters[name].check(name, value) for name, value in values.items()}

    def start(self, fixed: Mapping[str, object] | None = None) -> Setting:
        """Return the setting that a search starts from; `fixed` values replace those of the space."""
        return {name: each.start for name, each in self.parameters.items()} | self.check(fixed or {})

    def sample(
        self, n: int, *, seed: int = 0, sampler: Sampler = "uniform", fixed: Mapping[str, object] | None = None
    ) -> list[Setting]:
        """Draw settings.

        Args:
            n: how many.
            seed: same seed, same settings; the first of them do not depend on how many there are.
            sampler: uniform or sobol.
            fixed: values that all of them have.

        Raises:
            InputError: a wrong number, an unknown sampler, or a fixed value that cannot be.
        """
        held = self.check(fixed or {})
        shares = self._shares(as_whole("settings", n, 1, MAX_SETTINGS), require_seed(seed), sampler)
        return [self.at(row) | held for row in shares]

    def at(self, shares: NDArray[np.float64]) -> Setting:
        """Return the setting at (d,) shares of the way from low to high, one for each parameter."""
        pairs = zip(self.parameters.items(), shares.tolist(), strict=True)
        return {name: parameter.at(share) for (name, parameter), share in pairs}

    def shares(self, setting: Mapping[str, Value]) -> NDArray[np.float64]:
        """Return the (d,) shares of a setting."""
        return np.array([each.share(setting[name]) for name, each in self.parameters.items()])

    def _shares(self, n: int, seed: int, sampler: Sampler) -> NDArray[np.float64]:
        if sampler not in SAMPLERS:
            raise InputError("sampler", f"expected one of {', '.join(SAMPLERS)}, found {shown(sampler)}")
        d = len(self.parameters)
        if d == 0:
            return np.zeros((n, 0))
        if sampler == "uniform":
            return np.random.default_rng(seed).random((n, d))
        if d > _MAX_SOBOL:
            raise InputError("sampler", f"sobol has at most {_MAX_SOBOL} parameters; use uniform")
        from scipy.stats import qmc

        whole = 1 << (n - 1).bit_length()  # whole powers of two, which scipy does not warn of; the first n are the same
        return qmc.Sobol(d, scramble=True, seed=seed).random(whole)[:n]

    def to_dict(self) -> dict[str, Any]:
        """Return what `parse` takes."""
        return {name: each.model_dump(mode="json", exclude_defaults=True) for name, each in self.parameters.items()}


def number(low: float, high: float, default: float | None = None, meaning: str = "") -> Parameter:
    """Return a parameter that is uniform between two bounds."""
    return Parameter(kind="float", low=low, high=high, default=default, meaning=meaning)


def log_number(low: float, high: float, default: float | None = None, meaning: str = "") -> Parameter:
    """Return a parameter whose logarithm is uniform between two bounds."""
    return Parameter(kind="log", low=low, high=high, default=default, meaning=meaning)


def whole(low: int, high: int, default: int | None = None, meaning: str = "") -> Parameter:
    """Return a parameter that is a whole number between two bounds, both included."""
    return Parameter(kind="integer", low=low, high=high, default=default, meaning=meaning)


def choice(*choices: Value, default: Value | None = None, meaning: str = "") -> Parameter:
    """Return a parameter that is one of some values."""
    return Parameter(kind="choice", choices=choices, default=default, meaning=meaning)
