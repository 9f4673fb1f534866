# SPDX-License-Identifier: Apache-2.0
"""What several verbs share: types of options, how `--set` is read, and the comparison of `compare` and `report`.

A type with a help text means the same everywhere. Where verbs differ, the text is in the docstring of the verb.
"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hedgerow.cli.app import out

if TYPE_CHECKING:
    from hedgerow.inputs import Place
    from hedgerow.io.source import LogSource
    from hedgerow.metrics import Comparison
    from hedgerow.pulse.receiver import BeamSettings
    from hedgerow.world import World

Flag = Annotated[bool, Parameter(negative=())]
"""A switch without its opposite."""
Output = Annotated[Path, Parameter(name=["--output", "-o"])]
Folder = Annotated[Path, Parameter(name=["--folder", "-o"])]
Picture = Annotated[Path, Parameter(name=["--picture", "-o"])]
"""For verbs that write nothing but a picture."""
Settings = Annotated[list[str] | None, Parameter(name=["--set", "-s"], negative=())]
"""Sets parameters of a scene, a model or a reader; `parse_settings` reads it."""
WriteAs = Annotated[str | None, Parameter(name="--to", help="format to write, if the suffix does not tell")]
Seed = Annotated[int, Parameter(help="seed of the random numbers: same seed, same answer")]

# Of verbs that fire a sensor through a scene or a learned world.
SceneName = Annotated[
    str,
    Parameter(
        help="a shipped scene, for example trail (hedgerow scenes lists them), a scene file (.toml), or a learned world"
    ),
]
SensorName = Annotated[
    str | None,
    Parameter(help="a name of the catalogue, for example hdl-64e, or a TOML file; default: the scene's"),
]
RateHz = Annotated[float | None, Parameter(help="turns of the sensor per second; default: its usual rate")]
SubRays = Annotated[int | None, Parameter(help="rays for each pulse of a scene, 1 to 81; default: 9")]
ReturnMode = Annotated[
    str | None,
    Parameter(
        help="first, strongest, last, strongest+last, all or waveform, for scenes; default: the sensor's return mode"
    ),
]
Noise = Annotated[
    bool | None,
    Parameter(
        help="add the sensor's own range noise, range steps and drop-outs; default: to scenes, learned worlds have them"
    ),
]
Anyway = Annotated[
    bool,
    Parameter(
        negative=(),
        help="go on even if the poses are nowhere near the site, so that one of them must be in another frame",
    ),
]
SceneSeed = Annotated[int | None, Parameter(help="seed that the scene is grown with; default: the file's")]
SceneSettings = Annotated[
    Settings,
    Parameter(
        help="set a parameter of the scene, or a field of its file: NAME=VALUE; may be repeated; "
        "hedgerow scenes SCENE lists the parameters; fire takes options of the format that it writes, too"
    ),
]

# Of verbs that compare.
RealLog = Annotated[Path, Parameter(help="the real log, best one that the worlds were not learned from")]
Simulated = Annotated[
    list[Path],
    Parameter(
        negative=(),
        help="one or more learned worlds or scenes, at which the real log's beams are fired, or logs of these beams",
    ),
]
Json = Annotated[Path | None, Parameter(help="also write every number to this file")]


def parse_settings(texts: list[str] | None) -> dict[str, Any]:
    """Read the NAME=VALUE texts of `--set`; a value is JSON or else a word.

    Raises:
        InputError: a text has no name or no value.
    """
    import json

    from hedgerow.errors import InputError

    settings: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InputError(f"--set {text}", "expected NAME=VALUE")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value  # a word
        except (ValueError, RecursionError):
            raise InputError(f"--set {name}", "has too many digits, or lists too deep inside each other") from None
    return settings


def parse_beam_settings(place: "Place", sub_rays: int | None, mode: str | None) -> "BeamSettings | None":
    """Check how pulses are sampled and received; only scenes can be told.

    Raises:
        InputError: a value is wrong, or the place is a learned world, whose elements hold the width of the beam.
    """
    from hedgerow.errors import InputError
    from hedgerow.pulse.receiver import BeamSettings

    values = {"sub_rays": sub_rays, "mode": mode}
    given = {name: value for name, value in values.items() if value is not None}
    if given and place.plan is None:
        raise InputError("--sub-rays, --mode", f"only for scenes, and {place.given} is a learned world")
    return BeamSettings.parse(given, "a beam") if given else None


def amounts(n_beams: int, n_returns: int, n_misses: int) -> str:
    """Say how many beams, returns, and beams without a return there are."""
    from hedgerow.io.describe import count

    misses = f"{n_misses:,} miss{'' if n_misses == 1 else 'es'}"
    return f"{count(n_beams, 'beam')}, {count(n_returns, 'return')}, {misses}"


def command_line() -> str:
    """Return the command that is running, as it would be typed."""
    return shlex.join(["hedgerow", *sys.argv[1:]])


def require_places(*paths: Path | None) -> None:
    """Raise FileError if one of these files could not be written: before the long work, not after it."""
    from hedgerow.base.atomic import require_place

    for path in paths:
        if path is not None:
            require_place(path)


def open_and_compare(
    real: Path, simulated: list[Path], seed: int, sweep: int | None = None
) -> "tuple[LogSource, dict[str, LogSource | World], Comparison]":
    """Open a real log and what is compared with it, and compare.

    Args:
        real: the real log.
        simulated: learned worlds, scenes, or logs of the same beams.
        seed: for firing.
        sweep: number of a sweep that the real log must have.

    Returns:
        The log, the simulations by name, and their scores.

    Raises:
        InputError, FileError: something cannot be opened, or has other beams.
    """
    import hedgerow as hr
    from hedgerow.base.progress import progress_bar, step_bar
    from hedgerow.errors import InputError
    from hedgerow.inputs import PLACES, open_log, open_simulated, require_kind
    from hedgerow.sensor import Sensor

    log = open_log(real, "compare")
    if sweep is not None and sweep not in log.sweeps:
        raise InputError(
            f"--sweep {sweep}", f"{real} has no such sweep; it has {log.sweeps.min()} to {log.sweeps.max()}"
        )
    for path in simulated:
        require_kind(path, ("log", *PLACES), "compare")  # before any scene is built
    sensor = Sensor.of(log)
    with step_bar() as steps:
        sources = {short_name(path, simulated): open_simulated(path, "compare", sensor, steps) for path in simulated}
    with progress_bar("comparing", log.n_beams) as progress:
        return log, sources, hr.compare(log, sources, seed=seed, progress=progress)


def short_name(path: Path, paths: list[Path]) -> str:
    """Return the stem of a path if that tells the simulations apart, else the whole path."""
    return path.stem if [each.stem for each in paths].count(path.stem) == 1 else str(path)


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
