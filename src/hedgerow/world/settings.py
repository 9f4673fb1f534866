# SPDX-License-Identifier: Apache-2.0
"""Settings of the tables of elements (law, tau, noise and so on) as plain values in `world.toml`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, cast

from hedgerow.errors import InputError
from hedgerow.world.check import TABLES, checked, no_rows
from hedgerow.world.elements import Elements
from hedgerow.world.header import typed
from hedgerow.world.noise import SurfaceNoise

_NOISE = {"sigma0_m": float, "sigma_a_m": float, "max_incidence_rad": float, "sigma_per_m": float}
_ADDED = {"sigma_per_m": 0.0}
"""What older files lack, and what they meant without it."""


def settings_of(table: Elements) -> dict[str, Any]:
    """Return the settings as plain values."""
    plain = {
        name: asdict(value) if isinstance(value, SurfaceNoise) else value for name, value in table.settings().items()
    }
    return {name: float(value) if isinstance(value, int) else value for name, value in plain.items()}


def settings_from(name: str, content: Any) -> tuple[Elements, int]:
    """Return a table without elements that has these settings, and the number of elements that is told beside them.

    Raises:
        InputError: a setting is missing, unknown or wrong; names it.
    """
    where = f"tables.{name}"
    if not isinstance(content, Mapping):
        raise InputError(where, f"expected a section, found {content!r}")
    columns: dict[str, Any] = dict(no_rows(name))
    like = TABLES[name](**columns)
    types: dict[str, type] = {each: type(value) for each, value in settings_of(like).items()}
    entries = typed(f"{where}.", cast("Mapping[str, Any]", content), types | {"n": int})
    n = entries.pop("n")
    if "noise" in entries:
        entries["noise"] = SurfaceNoise(**typed(f"{where}.noise.", _ADDED | entries["noise"], _NOISE))
    return checked(TABLES[name](**columns, **entries)), n
