# SPDX-License-Identifier: Apache-2.0
"""Settings of a table of elements (law, tau, noise and so on) as plain values in files, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from hedgerow.errors import InputError, shown
from hedgerow.world.check import TABLES, check_table, no_rows
from hedgerow.world.elements import Elements
from hedgerow.world.store.header import typed
from hedgerow.world.surface_noise import SurfaceNoise

_LONGEST_CHOICE = 40  # of the names of laws and picks
_NOISE = {"sigma0_m": float, "sigma_a_m": float, "max_incidence_rad": float, "sigma_per_m": float}
_ADDED = {"sigma_per_m": 0.0}
"""What older files lack, and what they meant without it."""
_ADDED_SETTINGS = {"answer": "pulse", "lambertian": False}
"""Likewise for tables: what was learned answered pulses, and its intensity had no incidence angle in it."""


def settings_of(table: Elements) -> dict[str, Any]:
    """Return the settings of a table (law, tau, noise and so on) as plain values."""
    plain: dict[str, Any] = {
        name: asdict(value) if isinstance(value, SurfaceNoise) else value for name, value in table.settings().items()
    }
    whole = {name for name, value in plain.items() if isinstance(value, int) and not isinstance(value, bool)}
    return {name: float(value) if name in whole else value for name, value in plain.items()}


def settings_from(name: str, content: Any, where: str = "") -> tuple[Elements, int]:
    """Return a table without elements that has these settings, and the number of elements that is told beside them.

    Raises:
        InputError: a setting is missing, unknown or wrong; names it.
    """
    where = where or f"tables.{name}"
    if not isinstance(content, Mapping):
        raise InputError(where, f"expected a section, found {shown(content)}")
    columns: dict[str, Any] = dict(no_rows(name))
    like = TABLES[name](**columns)
    types: dict[str, type] = {each: type(value) for each, value in settings_of(like).items()}
    added = {each: value for each, value in _ADDED_SETTINGS.items() if each in types}
    entries = typed(f"{where}.", added | dict(cast("Mapping[str, Any]", content)), types | {"n": int})
    n = entries.pop("n")
    for each, value in entries.items():
        if isinstance(value, str) and len(value) > _LONGEST_CHOICE:
            raise InputError(f"{where}.{each}", f"there is no {shown(value)}")
    if "noise" in entries:
        entries["noise"] = SurfaceNoise(**typed(f"{where}.noise.", _ADDED | entries["noise"], _NOISE))
    return check_table(TABLES[name](**columns, **entries)), n
