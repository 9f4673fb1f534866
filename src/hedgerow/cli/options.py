# SPDX-License-Identifier: Apache-2.0
"""What several verbs share: types of options, and how `--set` is read.

A type with a help text means the same everywhere. Where verbs differ, the text is in the docstring of the verb.
"""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from hedgerow.base.places import as_place

if TYPE_CHECKING:
    from hedgerow.inputs import Place
    from hedgerow.pulse.receiver import BeamSettings
    from hedgerow.sensor import Sensor
    from hedgerow.sensor.drive import Aim
    from hedgerow.sensor.pose_errors import PoseErrors

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
DUAL = "strongest+last"


@Parameter(name="*")
@dataclass(frozen=True)
class PulseOptions:
    """How pulses are aimed, sampled and received: the same options for all verbs that fire a sensor."""

    sub_rays: Annotated[int | None, Parameter(help="rays for each pulse of a scene, 1 to 81; default: 9")] = None
    sampling: Annotated[
        str | None,
        Parameter(
            help="where in the spot these rays lie, for scenes: fixed, stratified (drawn anew for each pulse) or paper "
            "(the circle of Goodin 2018); default: fixed"
        ),
    ] = None
    mode: Annotated[
        str | None,
        Parameter(
            help="first, strongest, last, second, strongest+last, strongest+second, strongest+last-or-second, all or "
            "waveform, for scenes; default: the sensor's return mode"
        ),
    ] = None
    signal: Annotated[
        str | None,
        Parameter(
            help="ideal: all light is seen, however little; sensor: what the sensor's receiver detects, by the link "
            "budget in its file; for scenes; default: ideal"
        ),
    ] = None
    dual: Annotated[
        bool, Parameter(negative=(), help=f"short for --mode {DUAL}, of sensors that have it, for scenes")
    ] = False
    cutoff_m: Annotated[
        float | None,
        Parameter(help="range interval within which light is one return, for scenes; default: the sensor's"),
    ] = None
    encoder: Annotated[
        str,
        Parameter(
            help="where the rotor stands: exact, rounded to its encoder's counts, or uniform within a count; the log "
            "reports the nominal angle"
        ),
    ] = "exact"
    cone: Annotated[
        bool,
        Parameter(
            negative=(), help="draw the axis of each pulse from the beam's truncated cone; the log reports the nominal"
        ),
    ] = False

    def beam_settings(self) -> "BeamSettings | None":
        """Return how pulses are sampled and received; None if nothing is said of it.

        Raises:
            InputError: a value is wrong.
        """
        from hedgerow.errors import InputError
        from hedgerow.pulse.receiver import BeamSettings

        if self.dual and self.mode not in (None, DUAL):
            raise InputError("--dual", f"is --mode {DUAL}; leave out --mode {self.mode}")
        values = {
            "sub_rays": self.sub_rays,
            "sampling": self.sampling,
            "mode": DUAL if self.dual else self.mode,
            "signal": self.signal,
            "cutoff_m": self.cutoff_m,
        }
        given = {name: value for name, value in values.items() if value is not None}
        return BeamSettings.parse(given, "a beam") if given else None

    def beam_settings_for(self, place: "Place", sensor: "Sensor") -> "BeamSettings | None":
        """Return them for one place and one sensor.

        Raises:
            InputError: a value is wrong, the sensor has no dual mode, or the place is a learned world, whose elements
                hold the width of the beam.
        """
        from hedgerow.errors import InputError
        from hedgerow.pulse.receiver import resolve_pulse

        settings = self.beam_settings()
        if settings is not None and place.plan is None:
            said = f"only for scenes, and {place.given} is a learned world"
            raise InputError("--sub-rays, --sampling, --mode, --dual, --signal, --cutoff-m", said)
        self.require_dual(sensor)
        if settings is not None:
            resolve_pulse(settings, sensor)  # before the scene is built
        return settings

    def require_dual(self, sensor: "Sensor") -> None:
        """Raise InputError if dual returns are asked for of a sensor that gives none."""
        from hedgerow.errors import InputError

        modes = sensor.config.signal.modes
        if self.dual and DUAL not in modes:
            said = f"{sensor.name} has no dual returns (its modes: {', '.join(modes)}); --mode {DUAL} gives them anyway"
            raise InputError("--dual", said)

    def aim(self, seed: int) -> "Aim | None":
        """Return how pulses differ from the scan pattern; None if they do not.

        Raises:
            InputError: no such encoder.
        """
        from hedgerow.sensor.drive import Aim

        aim = Aim(self.encoder, self.cone, seed)  # pyright: ignore[reportArgumentType] - it checks the name itself
        return None if aim.is_ideal else aim


NOMINAL = PulseOptions()
"""All as the sensor has it."""
PoseErrorTexts = Annotated[
    list[str] | None,
    Parameter(
        name="--pose-errors",
        negative=(),
        help="report poses with errors: browning-2012 (2 cm, 0.1 and 0.02 degrees), a .toml file, or NAME=VALUE of one "
        "error, for example position_sigma_m=0.02; may be repeated; docs/models.md has the names",
    ),
]


def parse_pose_errors(texts: list[str] | None, seed: int) -> "PoseErrors | None":
    """Read `--pose-errors`: presets and files, and single values that are set in them, in turn.

    Args:
        texts: what was given.
        seed: of the errors, unless one of the texts says another.

    Raises:
        InputError, FileError: no such preset or file, an unknown name, or a wrong value.
    """
    from hedgerow.sensor.pose_errors import PoseErrors

    if not texts:
        return None
    values: dict[str, Any] = {"seed": seed}
    for text in texts:
        if "=" in text:
            values |= parse_settings([text], "--pose-errors")
        else:
            values |= PoseErrors.open(text).model_dump(exclude_unset=True)
    return PoseErrors.parse(values, "--pose-errors")


def parse_settings(texts: list[str] | None, option: str = "--set") -> dict[str, Any]:
    """Read the NAME=VALUE texts of `--set`, or of another option; a value is JSON or else a word.

    Raises:
        InputError: a text has no name or no value.
    """
    import json

    from hedgerow.errors import InputError

    settings: dict[str, Any] = {}
    for text in texts or []:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise InputError(f"{option} {text}", "expected NAME=VALUE")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value  # a word
        except (ValueError, RecursionError):
            raise InputError(f"{option} {name}", "has too many digits, or lists too deep inside each other") from None
    return settings


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


def short_name(path: Path, paths: list[Path]) -> str:
    """Return the stem of a path if that tells the simulations apart, else the whole path."""
    stem = as_place(path).stem
    return stem if [as_place(each).stem for each in paths].count(stem) == 1 else str(as_place(path))
