# SPDX-License-Identifier: Apache-2.0
"""What `compare` and `report` share: options, how logs and worlds are opened and compared, how scores are written."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hedgerow.base.places import as_place
from hedgerow.cli.app import out, print_scores
from hedgerow.cli.options import Settings, command_line, parse_settings, short_name

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.metrics import Comparison
    from hedgerow.world import World

AnySimulated = Annotated[
    list[Path],
    Parameter(
        negative=(),
        help="one or more learned worlds or scenes, at which the real log's beams are fired, or logs of any format: of "
        "these beams, or of another program's, which are then matched",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class CompareOptions:
    """What is put beside the simulations, how they are compared, and how their logs are read."""

    floors: Annotated[
        bool,
        Parameter(
            negative="--no-floors",
            help="put climatology, what is known without a world, and reality again, if there is one, beside them",
        ),
    ] = True
    again: Annotated[
        Path | None,
        Parameter(
            help="another recording of the same place, or the scene that the real log was recorded in: the column "
            "reality again; default: the next sweep, where the sensor stands"
        ),
    ] = None
    learned: Annotated[
        Path | None,
        Parameter(
            help="the log that the worlds were learned from: hits and CRPS by distance of the real returns to the "
            "nearest learned one"
        ),
    ] = None
    novel_view: Annotated[
        bool, Parameter(negative=(), help="also give the scores of the lidar re-simulation papers")
    ] = False
    settings: Annotated[
        Settings,
        Parameter(help="set a setting of the comparison: NAME=VALUE, such as match_deg=0.2; may be repeated"),
    ] = None
    read_as: Annotated[
        str | None, Parameter(name="--from", help="format of the simulated logs, if suffix and content do not tell")
    ] = None
    trajectory: Annotated[
        Path | None, Parameter(help="poses of the sensor (TUM or KITTI text), where the simulated logs have none")
    ] = None
    sensor: Annotated[
        str | None, Parameter(help="name of the lidar in the catalogue, where the simulated logs do not say")
    ] = None
    topic: Annotated[str | None, Parameter(help="topic of the clouds or packets in a bag that has several")] = None

    def compare_settings(self) -> dict[str, Any]:
        """Return the settings of the comparison, checked.

        Raises:
            InputError: an unknown name, or a wrong value.
        """
        from hedgerow.metrics import CompareSettings

        given = parse_settings(self.settings) | ({"novel_view": True} if self.novel_view else {})
        CompareSettings.parse(given, "compare")
        return given

    @property
    def reading(self) -> dict[str, Any]:
        """How simulated logs are to be read; empty if nothing is said of it."""
        said = {"format": self.read_as, "trajectory": self.trajectory, "sensor": self.sensor, "topic": self.topic}
        return {name: value for name, value in said.items() if value is not None}


USUAL = CompareOptions()
"""All as it is without options."""


def open_and_compare(
    real: Path, simulated: list[Path], seed: int, options: CompareOptions, sweep: int | None = None
) -> "tuple[LogSource, dict[str, LogSource | World], Comparison]":
    """Open a real log and what is compared with it, and compare.

    Args:
        real: the real log.
        simulated: learned worlds, scenes, or logs.
        seed: for firing.
        options: what else is wanted.
        sweep: number of a sweep that the real log must have.

    Returns:
        The log, the simulations by name, and their scores; with the floors, which have no simulation.

    Raises:
        InputError, FileError: something cannot be opened, or has other beams.
    """
    import hedgerow as hr
    from hedgerow.base.progress import progress_bar
    from hedgerow.errors import InputError
    from hedgerow.inputs import open_log

    settings = options.compare_settings()
    log = open_log(real, "compare")
    if sweep is not None and sweep not in log.sweeps:
        raise InputError(
            f"--sweep {sweep}", f"{real} has no such sweep; it has {log.sweeps.min()} to {log.sweeps.max()}"
        )
    learned = None if options.learned is None else open_log(options.learned, "compare")
    log, sources, again = open_compared(real, simulated, options)
    beside: dict[str, Any] = {"floors": options.floors, "again": again, "learned": learned}
    with progress_bar("comparing", log.n_beams) as progress:
        found = hr.compare(log, sources, seed=seed, progress=progress, **beside, **settings)
    return log, sources, found


def open_compared(
    real: Path, simulated: list[Path], options: CompareOptions
) -> "tuple[LogSource, dict[str, LogSource | World], LogSource | World | None]":
    """Open a real log, the simulations that it is compared with, by name, and reality again if it is given.

    Raises:
        InputError, FileError: something cannot be opened.
    """
    from hedgerow.base.progress import step_bar
    from hedgerow.inputs import PLACES, open_log, open_simulated, require_kind
    from hedgerow.sensor import Sensor

    log = open_log(real, "compare")
    wanted = [path for path in simulated if not _is_read(path, options)]
    for path in [*wanted, *([] if options.again is None else [options.again])]:
        require_kind(path, ("log", *PLACES), "compare")  # before any scene is built
    sensor: Sensor | None = Sensor.of(log)
    with step_bar() as steps:
        sources = {
            short_name(path, simulated): open_simulated(path, "compare", sensor, steps)
            if path in wanted
            else open_log(path, "compare", **options.reading)
            for path in simulated
        }
        again = None if options.again is None else open_simulated(options.again, "compare", sensor, steps)
    return log, sources, again


def _is_read(path: Path, options: CompareOptions) -> bool:
    """Whether a simulation is a log that is read as the options say: not a world, nor a scene or its name."""
    from hedgerow.world import is_world

    place = as_place(path)
    return bool(options.reading) and place.exists() and not is_world(place) and place.suffix.lower() != ".toml"


def print_comparison(scores: "Comparison") -> None:
    """Print the table, whether forecasts are calibrated, how sure the differences are, and the notes."""
    print_scores(scores.table())
    for name, found in scores.calibrations().items():
        out.print(f"{name} is {found.sentence}")
    for line in difference_lines(scores):
        out.print(line)
    for note in scores.notes:
        out.print(f"note: {note}")


def difference_lines(scores: "Comparison") -> list[str]:
    """Say how much worse than the world of the best CRPS the others are, and how sure that is, a line a score."""
    from hedgerow.report.differences import differences_to_best

    found = differences_to_best(scores)
    if found is None:
        return []
    return [
        f"{row.label}, less that of {found.reference}: {'; '.join(f'{name} {text}' for name, text in row.cells)}"
        for row in found.rows
    ]


def write_scores(path: Path | None, scores: "Comparison") -> None:
    """Write every number of a comparison as JSON, if a path is given."""
    from hedgerow.base.atomic import atomic_file

    if path is None:
        return
    with atomic_file(path) as temporary:
        temporary.write_text(scores.to_json(), encoding="utf-8")
    out.print(f"wrote {path}")


def write_page(
    path: Path,
    scores: "Comparison",
    log: "LogSource",
    sources: "dict[str, LogSource | World]",
    seed: int,
    *,
    title: str = "",
    sweep: int | None = None,
) -> None:
    """Write a comparison as an HTML page and say so."""
    from hedgerow.report import write_report

    write_report(path, scores, log, sources, title=title, sweep=sweep, seed=seed, commands=[command_line()])
    out.print(f"wrote {path}; open it in a browser")
