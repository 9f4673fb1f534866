# SPDX-License-Identifier: Apache-2.0
"""Objectives written as a formula of sums: `-2 * tp / (2 * tp + fp + fn)`, in an app.toml.

Numbers, names of sums, + - * / **, brackets, sqrt and abs; nothing else is evaluated.
"""

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.app import Sums
from hedgerow.errors import InputError

_LONGEST = 500
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_CALLS: dict[str, Callable[[Any], Any]] = {"sqrt": np.sqrt, "abs": np.abs}


class Formula:
    """A formula of sums, checked when it is made."""

    def __init__(self, text: str) -> None:
        """Parse the formula. Raises InputError if it is none."""
        self.text = text
        try:
            self._tree = ast.parse(text[: _LONGEST + 1], mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise InputError("objective", f"{text!r} is no formula of sums, such as errors / n") from None
        if len(text) > _LONGEST:
            raise InputError("objective", f"is longer than {_LONGEST} characters")
        self.names: set[str] = set()
        self._check(self._tree)

    def __call__(self, sums: Sums) -> NDArray[np.float64]:
        """Evaluate it; NaN where a divisor is 0. Raises KeyError for a sum that is not there."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = np.asarray(self._value(self._tree, sums), dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)

    def __reduce__(self) -> tuple[type["Formula"], tuple[str]]:
        """Let it pass between processes by its text."""
        return Formula, (self.text,)

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                self._check(left)
                self._check(right)
            case ast.UnaryOp(op, operand) if type(op) in _UNARY:
                self._check(operand)
            case ast.Call(ast.Name(name), [argument], []) if name in _CALLS:
                self._check(argument)
            case ast.Constant(value) if isinstance(value, int | float) and not isinstance(value, bool):
                pass
            case ast.Name(name):
                self.names.add(name)
            case _:
                found = ast.unparse(node)
                raise InputError("objective", f"{found!r} cannot stand in a formula; use + - * / ** ( ) sqrt abs")

    def _value(self, node: ast.expr, sums: Sums) -> Any:
        match node:
            case ast.BinOp(left, op, right):
                return _BINARY[type(op)](self._value(left, sums), self._value(right, sums))
            case ast.UnaryOp(op, operand):
                return _UNARY[type(op)](self._value(operand, sums))
            case ast.Call(ast.Name(name), [argument]):
                return _CALLS[name](self._value(argument, sums))
            case ast.Constant(value):
                return float(value)  # pyright: ignore[reportArgumentType] - checked
            case ast.Name(name):
                return sums[name]
            case _:
                raise AssertionError("checked when it was made")
