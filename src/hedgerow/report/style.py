# SPDX-License-Identifier: Apache-2.0
"""Look of the plots: reality is black, each simulation has one colour in all of them; sizes for screen and phone."""

from collections.abc import Iterable
from typing import Any

WIDE_IN = 10.0
"""For screens and paper."""
NARROW_IN = 4.4
"""For phones: letters stay readable where the figure is 360 pixels wide."""
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


def columns_for(n_panels: int, width_in: float) -> int:
    """Return how many panels to draw side by side, so that no row is left nearly empty."""
    if width_in < WIDE_IN:
        return 1 if n_panels <= 3 else 2
    return n_panels if n_panels <= 3 else 2 if n_panels == 4 else 3


def add_bar(figure: Any, shown: Any, axes: Any, label: str, width_in: float) -> None:
    """Add a colour bar: to the right, or below where there is no room beside."""
    beside = width_in >= WIDE_IN
    shape = {"shrink": 0.8} if beside else {"shrink": 0.9, "aspect": 30}
    figure.colorbar(shown, ax=axes, label=label, location="right" if beside else "bottom", pad=0.01, **shape)
