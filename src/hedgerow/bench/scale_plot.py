# SPDX-License-Identifier: Apache-2.0
"""scale.png: time and memory by beams and by tiles, workers side by side, and speed by processors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.bench import beams, processors, tiles, workers
from hedgerow.bench.chain import memory_mb
from hedgerow.bench.journal import Row

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377")
_GREY = "#888888"


def draw_scale(rows: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Draw the rows of each part; a panel whose part was not measured says so.

    Raises:
        FileError: it cannot be written.
    """
    figure = new_figure(15, 8)
    panels = figure.subplots(2, 3)
    _draw_beams(panels[0][0], panels[1][0], rows[beams.PART])
    _draw_tiles(panels[0][1], panels[1][1], rows[tiles.PART])
    _draw_workers(panels[0][2], rows[workers.PART])
    _draw_processors(panels[1][2], rows[processors.PART])
    save_figure(figure, path)


def _draw_beams(time: Any, memory: Any, rows: Sequence[Row]) -> None:
    for step, colour in zip(beams.STEPS, _COLOURS, strict=True):
        some = [row for row in beams.in_order(rows) if row.text("step") == step]
        x = [row.values["beams"] for row in some]
        time.plot(x, [_per_million_s(row) for row in some], "o-", color=colour, label=step)
        time.plot(x, [_per_million_s(row, "processor_s") for row in some], ".:", color=colour, alpha=0.6)
        memory.plot(x, [memory_mb(row) for row in some], "o-", color=colour, label=step)
    _finish(
        time,
        rows,
        "Time by beams, which the site grows with; dotted: processor time",
        "beams",
        "seconds per million beams",
    )
    _finish(memory, rows, "Memory by beams", "beams", "peak memory [MB]")


def _draw_tiles(time: Any, memory: Any, rows: Sequence[Row]) -> None:
    found = tiles.pairs(rows)
    x = [drive.number("tiles") for _, drive in found]
    time.plot(x, [_per_million_s(drive) for _, drive in found], "o-", color=_COLOURS[0], label="driving, per M beams")
    spent = [_per_million_s(drive, "processor_s") for _, drive in found]
    time.plot(x, spent, ".:", color=_COLOURS[0], alpha=0.6, label="the same, processor time")
    time.plot(x, [drive.values["open_s"] for _, drive in found], "s--", color=_COLOURS[1], label="opening the world")
    whole = [write.values["elements"] * tiles.BYTES_EACH / 1e6 for write, _ in found]
    memory.plot(x, [memory_mb(drive) for _, drive in found], "o-", color=_COLOURS[0], label="process, driving")
    memory.plot(x, [drive.values["tiles_mb"] for _, drive in found], "s--", color=_COLOURS[1], label="tiles held")
    memory.plot(x, [memory_mb(write) for write, _ in found], "^-", color=_COLOURS[2], label="process, writing")
    memory.plot(x, whole, ":", color=_GREY, label="the whole world, by estimate")
    _finish(time, rows, "Time by tiles: the same sweeps, a larger world", "tiles of the world", "seconds")
    _finish(memory, rows, "Memory by tiles", "tiles of the world", "memory [MB]")


def _draw_workers(axes: Any, rows: Sequence[Row]) -> None:
    found = workers.best(rows)
    contenders, width = list(workers.CONTENDERS), 0.2
    for k, who in enumerate(contenders):
        for place, job in enumerate(workers.JOBS):
            row = found.get((job, who))
            if row is None:
                continue
            x, work_s, apart_s = place + (k - 1.5) * width, row.values["seconds"], _apart_s(row)
            label = who if place == 0 else None
            axes.bar(x, work_s, width, color=_COLOURS[k], label=label)
            axes.bar(x, apart_s, width, bottom=work_s, color=_COLOURS[k], alpha=0.3)
            axes.annotate(f"{work_s:.1f}", (x, work_s), ha="center", va="bottom", fontsize=7)
    axes.set_xticks(range(len(workers.JOBS)), workers.JOBS)
    axes.margins(y=0.35)
    _label(axes, rows, "Workers: work; pale, start-up and opening", "", "seconds")


def _draw_processors(axes: Any, rows: Sequence[Row]) -> None:
    ordered = processors.in_order(rows)
    for kind, colour in zip(processors.KINDS, _COLOURS, strict=False):
        some = [row for row in ordered if row.text("kind") == kind]
        x = [row.number("n") for row in some]
        axes.plot(x, [processors.real_time(row) for row in some], "o-", color=colour, label=f"ours, {kind}")
    if rows:
        point = (processors.PAPER_PROCESSORS, processors.PAPER_REAL_TIME)
        axes.plot(*point, "*", markersize=12, color=_COLOURS[2], label="Goodin 2018 §3.3, HDL-64E")
        line = [(n, processors.PAPER_REAL_TIME * n / point[0]) for n in (1, point[0])]
        axes.plot(*zip(*line, strict=True), ":", color=_COLOURS[2], label="the same, if it scales evenly")
        axes.axhline(1.0, color=_GREY, linewidth=0.8)
    _finish(axes, rows, "Speed by processors", "processors", "times real time")


def _per_million_s(row: Row, which: str = "seconds") -> float:
    return row.values[which] / row.values["beams"] * 1e6


def _apart_s(row: Row) -> float:
    return row.values.get("start_s", 0.0) + row.values.get("open_s", 0.0)


def _finish(axes: Any, rows: Sequence[Row], title: str, x: str, y: str) -> None:
    if rows:
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if low > 0:
            axes.set_ylim(low / 2, high * 5)  # or small differences look large; above is room for the legend
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(_in_full)
            axis.set_minor_formatter("")
        axes.grid(True, which="both", linewidth=0.3, alpha=0.6)
    _label(axes, rows, title, x, y)


def _in_full(value: float, place: int) -> str:
    """Write a number of an axis as people do."""
    return f"{value / 1e6:g} M" if value >= 1e6 else f"{value:,g}"


def _label(axes: Any, rows: Sequence[Row], title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if rows:
        axes.legend(fontsize=8, ncol=2, loc="upper left")
    else:
        axes.set_axis_off()
        axes.text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes.transAxes, color=_GREY)
