# SPDX-License-Identifier: Apache-2.0
"""hedgerow convert: takes logs from one format to another."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Flag, Settings, WriteAs, amounts, parse_settings

if TYPE_CHECKING:
    from hedgerow.frames import Trajectory


@app.command(usage="Usage: hedgerow convert [OPTIONS] SOURCE TARGET")
def convert(
    source: Path | None = None,
    target: Path | None = None,
    /,
    *,
    trajectory: Path | None = None,
    sensor: str | None = None,
    topic: str | None = None,
    static: Flag = False,
    sweeps: str | None = None,
    read_as: Annotated[str | None, Parameter(name="--from")] = None,
    write_as: WriteAs = None,
    settings: Settings = None,
    formats: Flag = False,
) -> None:
    """Convert a log from one format to another, sweep by sweep; nothing half written.

    Parameters
    ----------
    source
        the log to read: a file, or a folder such as a KITTI drive
    target
        what to write; the suffix picks the format
    trajectory
        poses of the sensor (TUM or KITTI text), where the log has none
    sensor
        name of the lidar in the catalogue, where the log does not say
    topic
        topic of the clouds or packets in a bag that has several
    static
        the sensor stood still, where the log has no poses
    sweeps
        which sweeps: FIRST:LAST[:STEP], the last one not included
    read_as
        format of the source, if suffix and content do not tell
    settings
        set a further parameter of the reader or the writer: NAME=VALUE; may be repeated; --formats lists them
    formats
        list the formats, what each can do and needs, and its parameters
    """
    from hedgerow.errors import InputError

    if formats:
        _print_formats()
        return
    if source is None or target is None:
        raise InputError("convert", "expected the log to read and the file or folder to write")
    said = {name: value for name, value in (("sensor", sensor), ("topic", topic), ("static", static)) if value}
    _convert(source, target, trajectory, said, sweeps, read_as, write_as, settings or [])


def _convert(
    source: Path,
    target: Path,
    trajectory: Path | None,
    said: dict[str, Any],
    sweeps: str | None,
    read_as: str | None,
    write_as: str | None,
    settings: list[str],
) -> None:
    from hedgerow.base.progress import progress_bar
    from hedgerow.inputs import require_kind
    from hedgerow.io import open_log
    from hedgerow.io.convert import convert as copy
    from hedgerow.io.describe import count, recovery_text
    from hedgerow.io.formats import format_of
    from hedgerow.io.options import split_options, write_options

    options, writing = split_options(parse_settings(settings) | said)
    made = format_of(target, write_as, reading=False)  # refuse it before anything is read
    write_options(writing, made.write_options, made.name)
    if read_as is None:
        require_kind(source, ("log",), "convert")
    written: Trajectory | None = None
    if trajectory is not None and "trajectory" not in format_of(source, read_as, reading=True).options:
        from hedgerow.io import read_trajectory

        written = read_trajectory(trajectory)
    else:
        options["trajectory"] = trajectory
    opened = open_log(source, format=read_as, **options)
    chosen, total = _chosen(sweeps), len(opened.sweeps)
    with progress_bar("converting", total if chosen is None else len(set(opened.sweeps.tolist()) & set(chosen))) as bar:
        done = copy(opened, target, format=write_as, sweeps=chosen, trajectory=written, progress=bar, **writing)
    sent, n_sweeps = done.written, count(done.n_sweeps, "sweep")
    out.print(f"read {source}: {n_sweeps}, {amounts(sent.n_beams, sent.n_returns, sent.n_misses)}")
    lost = sent.n_misses_left_out
    out.print(f"wrote {target}: {n_sweeps}, {amounts(sent.n_beams - lost, sent.n_returns, sent.n_misses - lost)}")
    if done.n_left_out:
        out.print(f"left out: {count(done.n_left_out, 'point')} without a finite place, or out of range")
    text = recovery_text(done.metadata)
    if text:
        out.print(f"missing returns: {text}")


def _chosen(text: str | None) -> range | None:
    from hedgerow.errors import InputError

    if text is None:
        return None
    words = text.split(":")
    try:
        first, last, step = [int(word) if word else None for word in [*words, "", ""][:3]]
    except ValueError:
        raise InputError(f"--sweeps {text}", "expected FIRST:LAST[:STEP]") from None
    if len(words) > 3 or (step is not None and step < 1):
        raise InputError(f"--sweeps {text}", "expected FIRST:LAST[:STEP] with a step above 0")
    if len(words) == 1 and first is not None:
        return range(first, first + 1)
    return range(first or 0, 2**31 if last is None else last, step or 1)


def _print_formats() -> None:
    from hedgerow.io.formats import EXTRA, FORMATS
    from hedgerow.io.options import ReadOptions, WriteOptions

    rows = [
        [each.name, "yes" if each.reads else "", "yes" if each.writes else "", ", ".join(each.packages), each.about]
        for each in FORMATS
    ]
    print_table(("format", "reads", "writes", "packages", "what it is"), rows)
    out.print(f"packages: pip install 'hedgerow[{EXTRA}]'\n")
    reading = [(row, [each.name for each in FORMATS if row.name in each.options]) for row in ReadOptions.rows()]
    writing = [(row, [each.name for each in FORMATS if row.name in each.write_options]) for row in WriteOptions.rows()]
    for title, options in (("option for reading", reading), ("option for writing", writing)):
        print_table((title, "for", "meaning"), [[row.name, ", ".join(names), row.meaning] for row, names in options])
