# SPDX-License-Identifier: Apache-2.0
"""Colours of the plots: reality is black, each simulation has one colour in all of them."""

from collections.abc import Iterable
from typing import Any

REAL = "0.15"
NO_RETURN = "0.8"
# Okabe and Ito: told apart by colour-blind people too; yellow left out, it is too light for lines.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F")
_DASHES = ("-", "--", "-.", ":")


def line_styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return colour and dash of each simulation, in order; with more than seven the dashes change."""
    n = len(_COLOURS)
    return {
        name: {"color": _COLOURS[i % n], "linestyle": _DASHES[i // n % len(_DASHES)]} for i, name in enumerate(names)
    }


def plain_axes(axes: Any) -> None:
    """Take away the frame's upper and right side and draw a light grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
