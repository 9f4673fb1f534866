# SPDX-License-Identifier: Apache-2.0
"""The report: one HTML file with tables, plots and pictures, without links to anything outside it.

It begins with plain sentences, for those who do not want to read a table first, and ends with the commands that learn
the worlds again.
"""

import json
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from pathlib import Path
from typing import Any, cast

import numpy as np

from hedgerow import __version__
from hedgerow.base.atomic import atomic_file, require_place
from hedgerow.base.parameters import Parameters
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics import Comparison, Scores
from hedgerow.metrics.beside import HasSweeps
from hedgerow.metrics.catalogue import METRICS
from hedgerow.metrics.inputs import Simulated
from hedgerow.metrics.metric import AGAIN_NAMES
from hedgerow.metrics.scores import is_floor
from hedgerow.report.differences import differences_to_best
from hedgerow.report.pictures import one_sweep, pictures_of_sweep, plots, without_floors
from hedgerow.world.store.header import WorldHeader, plain

_PACKAGES = ("numpy", "scipy", "matplotlib", "pyarrow")
_SENTENCES = (
    (
        ("hits_found", "{} % of the real returns are returns in simulation too"),
        ("misses_found", "{} % of the beams without return have none there either"),
    ),
    (
        ("beam_error_median_m", "of the beams that returned in both, half end within {} cm of where they really did"),
        ("cloud_distance_average_m", "all points together lie {} cm from the real ones on average"),
    ),
)


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
        commands: how all this was made, a line each; those that learn the worlds are put before them.

    Raises:
        InputError: no such sweep, or names that differ from those of the scores.
        FileError: the file cannot be written.
    """
    require_place(path)
    comparison = Comparison.of(scores)
    models = without_floors(comparison)
    named = _named(models, simulated)
    sweeps = one_sweep(real, named, sweep, seed)
    text = render(
        "report.html.j2",
        title=title or headline(models),
        facts=_facts(comparison, sweeps["real"], seed),
        short=[(name, what_it_is(named[name]), in_short(comparison[name])) for name in models],
        calibrations=comparison.calibrations(),
        pictures=pictures_of_sweep(sweeps),
        table=comparison.table().to_html(),
        notes=comparison.notes,
        several=len(models) > 1,
        floors=[name for name in comparison if name not in models.scores],
        has_again=any(name.casefold() in AGAIN_NAMES for name in comparison),
        differences=differences_to_best(models),
        plots=plots(comparison, sweeps),
        meanings=[
            (METRICS[row.key].label, METRICS[row.key].meaning, METRICS[row.key].source)
            for row in comparison.table().rows
        ],
        commands=[*_learned(named), *commands],
        data=for_script(comparison.to_dict()),
    )
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def render(template: str, **values: Any) -> str:
    """Fill a template of this folder; every page has the same style and says which versions made it."""
    from jinja2 import Environment

    folder = resources.files("hedgerow.report")
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
        (folder / template).read_text(encoding="utf-8")
    )
    return page.render(style=(folder / "style.css").read_text(encoding="utf-8"), versions=_versions(), **values)


def _named(comparison: Comparison, simulated: Simulated | Mapping[str, Simulated]) -> dict[str, Simulated]:
    if isinstance(simulated, Mapping):
        named = dict(cast("Mapping[str, Simulated]", simulated))
    else:
        named = {next(iter(comparison)): simulated}
    named = {name: source for name, source in named.items() if not is_floor(name)}
    if named.keys() != comparison.scores.keys():
        raise InputError("simulated", f"has {', '.join(named)}, but the scores are of {', '.join(comparison)}")
    return named


def _learned(named: Mapping[str, Simulated]) -> list[str]:
    found = (learn_command(name, source) for name, source in named.items())
    return [command for command in found if command is not None]


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


def for_script(values: Any) -> str:
    """Return values as JSON that may stand in a script element, where "<" may not."""
    return json.dumps(values, allow_nan=False).replace("<", "\\u003c")


def in_short(scores: Scores) -> str:
    """Return the numbers that matter most as up to two sentences; empty if none of them applies."""
    sentences: list[str] = []
    for parts in _SENTENCES:
        known = [(text, METRICS[key].text(scores[key])) for key, text in parts if scores[key] is not None]
        if known:
            sentence = ", and ".join(text.format(value) for text, value in known)
            sentences.append(f"{sentence[0].upper()}{sentence[1:]}.")
    return " ".join(sentences)


def headline(comparison: Comparison) -> str:
    """Return a title that names what was compared; of many names, the first two."""
    names = list(comparison)
    if len(names) > 3:
        names = [*names[:2], f"{len(names) - 2} more"]
    named = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{named} against reality"


def what_it_is(source: Any) -> str:
    """Say in a few words what a simulation is.

    Args:
        source: a world or a log, in memory or on the disk.
    """
    header = getattr(source, "header", None)
    if not isinstance(header, WorldHeader):
        return "a world made in Python" if hasattr(source, "fire") else "a simulated log"
    come = header.provenance
    if not come.n_beams:
        return f"a {header.kind} world, made by hedgerow {come.hedgerow}"
    sensor = f" of {come.sensor}" if come.sensor else ""
    return (
        f"a {header.kind} world, learned from {come.log or 'a log in memory'} ({come.n_beams:,} beams{sensor}) by "
        f"hedgerow {come.hedgerow}"
    )


def learn_command(name: str, source: Any) -> str | None:
    """Return the command that learns a world again; None if it was not learned from a file by a known model.

    Args:
        name: what to call the world.
        source: a world or a log.
    """
    from hedgerow.models.registry import MODELS

    header = getattr(source, "header", None)
    if not isinstance(header, WorldHeader) or not header.provenance.log or header.kind not in MODELS:
        return None
    words = ["hedgerow", "learn", header.provenance.log, "-o", f"{name.removesuffix('.world')}.world"]
    words += ["--model", header.kind]
    for key, value in _changed_parameters(header.parameters, MODELS[header.kind].parameters()):
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return shlex.join(words)


def _changed_parameters(saved: dict[str, Any], defaults: Parameters) -> Iterator[tuple[str, Any]]:
    """Give the saved parameters that differ from the defaults; those of a group as GROUP.NAME.

    Names of an earlier version that the model no longer has are left out: it would refuse them.
    """
    usual = plain("parameters", defaults.model_dump(mode="json"))
    for name, value in saved.items():
        if name not in type(defaults).model_fields:
            continue
        group: object = getattr(defaults, name)
        if isinstance(group, Parameters) and isinstance(value, dict):
            for inner, each in _changed_parameters(cast("dict[str, Any]", value), group):
                yield f"{name}.{inner}", each
        elif value != usual.get(name):
            yield name, value
