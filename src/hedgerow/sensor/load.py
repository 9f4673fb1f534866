# SPDX-License-Identifier: Apache-2.0
"""Finding, reading and checking sensor files; errors name the file and the field in one sentence."""

import difflib
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from hedgerow.base.settings_file import read_toml
from hedgerow.errors import FileError, InputError, ParameterError, shown

if TYPE_CHECKING:
    from hedgerow.sensor.config import SensorConfig

_MAKERS = ("velodyne", "ouster", "hesai", "livox", "sick", "neato")


def catalogue_names() -> list[str]:
    """Return the names of all sensors in the catalogue, sorted."""
    return sorted(entry.name.removesuffix(".toml") for entry in _catalogue().iterdir() if entry.name.endswith(".toml"))


def is_catalogue_name(name: str) -> bool:
    """Tell whether the catalogue has a sensor that goes by this name."""
    return _plain(name) in {_plain(known) for known in catalogue_names()}


def read_catalogue(name: str) -> "SensorConfig":
    """Read a sensor of the catalogue; case, blanks, dashes, underscores and the maker's name do not matter.

    Raises:
        InputError: no such sensor; names the nearest ones and all.
    """
    names = {_plain(known): known for known in catalogue_names()}
    wanted = _plain(name)
    if wanted not in names:
        near = [names[plain] for plain in difflib.get_close_matches(wanted, names, n=3)]
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError(
            "sensor",
            f"{shown(name)} is not in the catalogue; {guess}it has {', '.join(names.values())}; "
            "Sensor.load reads a file of your own",
        )
    return read_sensor_file(_catalogue() / f"{names[wanted]}.toml")


def read_sensor_file(path: Traversable) -> "SensorConfig":
    """Read and check a sensor file.

    Raises:
        FileError: missing, not TOML, or a field is wrong; names the file and the field.
    """
    return check_sensor(read_toml(path, "sensor file"), str(path))


def check_sensor(content: Mapping[str, Any], where: str) -> "SensorConfig":
    """Check the content of a sensor file.

    Args:
        content: tables and values as TOML gives them.
        where: what to call it in the error.

    Raises:
        FileError: a field is wrong; names it.
    """
    from hedgerow.sensor.config import SensorConfig

    try:
        return SensorConfig.parse(dict(content), "a sensor")
    except ParameterError as error:
        raise FileError(f"{where}: {'.'.join(map(str, error.location))}: {error.said}") from None


def _catalogue() -> Traversable:
    return resources.files("hedgerow.sensor") / "catalogue"


def _plain(name: str) -> str:
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    for maker in _MAKERS:
        plain = plain.removeprefix(maker)
    return plain
