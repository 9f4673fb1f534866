# SPDX-License-Identifier: Apache-2.0
"""Figures without a screen, written completely or not at all."""

from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from hedgerow.base.atomic import atomic_file
from hedgerow.errors import FileError

IMAGE_FORMATS = ("png", "pdf", "svg", "jpg")


def new_figure(width_in: float, height_in: float) -> Any:
    """Return an empty matplotlib figure of that size that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, path: str | Path, dpi: int = 110) -> None:
    """Write a figure in the format that the suffix names.

    Raises:
        FileError: unknown suffix, or the system refuses to write.
    """
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in IMAGE_FORMATS:
        raise FileError(f"{path}: unknown kind of picture; the suffix must be one of .{', .'.join(IMAGE_FORMATS)}")
    with atomic_file(path) as temporary:
        write_figure(figure, temporary, kind, dpi)


def write_figure(figure: Any, target: Path | BinaryIO, kind: str, dpi: float) -> None:
    """Write a figure as png, pdf, svg or jpg; the same figure gives the same bytes, without dates and random names."""
    matplotlib: Any = import_module("matplotlib")
    settings: dict[str, dict[str, Any]] = {
        "svg": {"metadata": {"Date": None}},
        "pdf": {"metadata": {"CreationDate": None}},
        "png": {"metadata": {"Software": None}},
        "jpg": {"pil_kwargs": {"quality": 88}},  # scattered points: a third of the bytes of png
    }
    with matplotlib.rc_context({"svg.hashsalt": "hedgerow"}):
        figure.savefig(target, format=kind, dpi=dpi, **settings[kind])
