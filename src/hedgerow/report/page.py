# SPDX-License-Identifier: Apache-2.0
"""The report: one HTML file with tables, plots and pictures, without links to anything outside it."""

import base64
import io
import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Any, cast

import numpy as np

from hedgerow import __version__
from hedgerow.errors import InputError
from hedgerow.evaluate import Comparison, Scores
from hedgerow.evaluate.bearing import BearingHistogram, Directions
from hedgerow.evaluate.catalogue import METRICS
from hedgerow.evaluate.sources import HasSweeps, Recording, Simulated, answers_of
from hedgerow.io.atomic import atomic_file
from hedgerow.log import Log, Returns
from hedgerow.report.bearing_plot import Window, bearing_histograms, busiest_window
from hedgerow.report.plots import likelihood_histograms, range_histograms
from hedgerow.report.sweep_plot import range_images, sweeps_from_above

_PACKAGES = ("numpy", "scipy", "matplotlib", "pyarrow")


def write_report(
    path: str | Path,
    scores: Scores | Comparison,
    real: HasSweeps,
    simulated: Simulated | Mapping[str, Simulated],
    *,
    title: str = "",
    sweep: int | None = None,
    seed: int = 0,
    commands: Sequence[str] = (),
) -> None:
    """Write a comparison as one HTML file that can be mailed, printed, and read on a phone.

    Args:
        path: the file to write, replaced as a whole.
        scores: what `compare` gave.
        real: the real log, in memory or on the disk.
        simulated: what it was compared with, as given to `compare`; for the pictures.
        title: headline.
        sweep: number of the sweep to draw. Default: the middle one.
        seed: for firing at worlds.
        commands: how all this was made, a line each.

    Raises:
        InputError: no such sweep, or names that differ from those of the scores.
        FileError: the file cannot be written.
    """
    from jinja2 import Environment

    comparison = Comparison.of(scores)
    sweeps = _pictured(real, _named(comparison, simulated), sweep, seed)
    source = (resources.files("hedgerow.report") / "report.html.j2").read_text(encoding="utf-8")
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(source)
    text = page.render(
        title=title or f"{', '.join(comparison)} against reality",
        facts=_facts(comparison, sweeps["real"], seed),
        table=comparison.table().to_html(),
        notes=comparison.notes,
        several=len(comparison) > 1,
        figures=_figures(comparison, sweeps),
        meanings=[
            (METRICS[row.key].label, METRICS[row.key].meaning, METRICS[row.key].source)
            for row in comparison.table().rows
        ],
        commands=commands,
        versions=_versions(),
        data=_for_script(comparison),
    )
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _named(comparison: Comparison, simulated: Simulated | Mapping[str, Simulated]) -> dict[str, Simulated]:
    if isinstance(simulated, Mapping):
        named = dict(cast("Mapping[str, Simulated]", simulated))
    else:
        named = {next(iter(comparison)): simulated}
    if named.keys() != comparison.scores.keys():
        raise InputError(f"simulated: has {', '.join(named)}, but the scores are of {', '.join(comparison)}")
    return named


def _pictured(real: HasSweeps, named: Mapping[str, Simulated], sweep: int | None, seed: int) -> dict[str, Log]:
    """One sweep of the real log and of every simulation."""
    number = _middle(real) if sweep is None else sweep
    seen = _one_sweep("real", real, number)
    drawn = {"real": seen}
    for name, source in named.items():
        if isinstance(source, HasSweeps) and not hasattr(source, "fire"):
            source = _one_sweep(name, source, number)
        [answer] = answers_of(name, source, [seen], seed)
        drawn[name] = seen.with_returns(Returns(answer.range_m))
    return drawn


def _middle(real: HasSweeps) -> int:
    numbers = np.asarray(cast("Any", real).sweeps)
    if len(numbers) == 0:
        raise InputError("real: the log has no beams; there is nothing to draw")
    return int(numbers[len(numbers) // 2])


def _one_sweep(name: str, source: Recording, number: int) -> Log:
    # A log on the disk reads the sweep alone; one in memory selects it.
    log: Log = cast("Any", source).select(sweep=number) if isinstance(source, Log) else cast("Any", source).read(number)
    if len(log) == 0:
        raise InputError(f"{name}: has no sweep {number} to draw")
    return log


def _figures(comparison: Comparison, sweeps: Mapping[str, Log]) -> list[tuple[str, str]]:
    """Data addresses and captions of all plots that apply."""
    number = sweeps["real"].beams.sweep[0]
    candidates = [
        (sweeps_from_above(sweeps), "png", f"Sweep {number} from above; a red cross marks the sensor."),
        (range_images(sweeps), "png", f"Sweep {number} as the sensor sees it."),
        (range_histograms(comparison), "svg", "How far the beams reach: share of all beams by first range."),
        (*_bearings(comparison, sweeps), ),
        (likelihood_histograms(comparison), "svg",
         "How likely each world finds the real beams; more weight to the right is better."),
    ]  # fmt: skip
    return [(_embedded(figure, kind), caption) for figure, kind, caption in candidates if figure is not None]


def _bearings(comparison: Comparison, sweeps: Mapping[str, Log]) -> tuple[Any, str, str]:
    first = next(iter(comparison.scores.values())).histograms
    if first.real_bearing is not None:
        window = busiest_window(first.real_bearing)
        simulated = {name: each.histograms.simulated_bearing for name, each in comparison.scores.items()}
        known = {name: each for name, each in simulated.items() if each is not None}
        caption = f"Ring {window.ring}: histograms of bearing and range of all sweeps, and of the middle bearing alone."
        return bearing_histograms(first.real_bearing, known, window), "png", caption
    directions = Directions(1.0)
    coarse = {name: BearingHistogram(directions, 0.25) for name in sweeps}
    for name, log in sweeps.items():
        coarse[name].add(directions.of(log.beams), log.returns.first_m)
    finite = sweeps["real"].returns.first_m[np.isfinite(sweeps["real"].returns.first_m)]
    if len(finite) == 0:
        return None, "png", ""
    window = Window(None, (-180.0, 180.0), (0.0, float(np.percentile(finite, 97)) + 0.25))
    caption = f"Sweep {sweeps['real'].beams.sweep[0]}: beams by bearing and range, all rings; below, those along x."
    return bearing_histograms(coarse.pop("real"), coarse, window), "png", caption


def _embedded(figure: Any, kind: str) -> str:
    buffer = io.BytesIO()
    # Without a date the same data gives the same file.
    figure.savefig(buffer, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else {"Software": None})
    mime = {"png": "image/png", "svg": "image/svg+xml"}[kind]
    return f"data:{mime};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _facts(comparison: Comparison, real: Log, seed: int) -> list[tuple[str, str]]:
    first = next(iter(comparison.scores.values()))
    ranges = first.histograms.real_ranges
    far = f"{real.max_range_m:g} m" if np.isfinite(real.max_range_m) else "no limit"
    return [
        ("sensor", real.sensor or "unknown"),
        ("standing", "yes" if first.static else "no"),
        ("beams", f"{first.n_beams:,} in {first.n_sweeps:,} sweeps"),
        ("without return", f"{ranges.n_no_return / ranges.n:.1%}"),
        ("range limits", f"{real.min_range_m:g} m to {far}"),
        ("seed", str(seed)),
        ("made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")),
    ]


def _versions() -> str:
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    return f"hedgerow {__version__}, Python {platform.python_version()}, {packages}, {platform.system()}"


def _for_script(comparison: Comparison) -> str:
    # "<" may not appear in a script element as it is.
    return json.dumps(comparison.to_dict(), allow_nan=False).replace("<", "\\u003c")
