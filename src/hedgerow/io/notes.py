# SPDX-License-Identifier: Apache-2.0
"""What Hedgerow notes in JSON beside points: the settings of a log, which no format of points can say.

PCD, PLY and LAS files have them in their header (`HeaderNotes`, one line), folders of clouds in a hedgerow.json
(`Sidecar`). Anybody may have changed them since, so every value is checked by type and range.
"""

import json
from pathlib import Path
from typing import Annotated, Any, Self, cast

import numpy as np
from pydantic import ConfigDict, Field, model_validator

import hedgerow
from hedgerow.base.parameters import Finite, NotNegative, Positive, StrictParameters
from hedgerow.errors import FileError, InputError, one_line, shown
from hedgerow.io.beams.clouds import find_sensor
from hedgerow.io.source import Settings, read_text
from hedgerow.log import Log, require_limits

SIDECAR = "hedgerow.json"
_MOST_BYTES = 100_000_000  # of a sidecar: a million sweeps
_MOST_NESTED = 50
_MOST_SAID = 160

Nanoseconds = Annotated[int, Field(ge=-(2**62), le=2**62)]
Coordinate = Annotated[float, Field(ge=-1e12, le=1e12, allow_inf_nan=False)]


class LogNotes(StrictParameters):
    """The settings of a log."""

    sensor: str = Field(max_length=200)
    """Name of the lidar; empty if unknown."""
    min_range_m: NotNegative
    """Nothing nearer is seen."""
    max_range_m: Positive | None
    """Nothing farther is seen; null if there is no limit."""
    map_origin_m: list[Coordinate] = Field(min_length=3, max_length=3)
    """What to add to map coordinates to get outer ones."""
    metadata: dict[str, Any]
    """Whatever else belongs to the log."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.sensor.isprintable():
            raise InputError("sensor", f"holds control characters, found {shown(self.sensor)}")
        require_limits(self.min_range_m, float("inf") if self.max_range_m is None else self.max_range_m)
        return self

    def settings(self, arrays: list[str]) -> Settings:
        """Return what all sweeps have in common."""
        limit = float("inf") if self.max_range_m is None else self.max_range_m
        origin_m = np.array(self.map_origin_m, np.float64)
        return Settings(self.sensor, self.min_range_m, limit, origin_m, dict(self.metadata), 1, arrays)

    @classmethod
    def from_json(cls, text: str, path: object) -> Self:
        """Read notes.

        Args:
            text: what stands in the file.
            path: of the file, for the error.

        Raises:
            FileError: they are damaged.
        """
        try:
            found: object = json.loads(text)
            _require_shallow(found)
            if not isinstance(found, dict):
                raise InputError("it", "expected a table of values by name")
            values = cast("dict[str, Any]", found)
            values.pop("hedgerow", None)  # the version that wrote it
            return cls.parse(values, "it")
        except (InputError, ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, InputError) else "no JSON"
            raise FileError(f"{path}: what Hedgerow noted there is damaged ({one_line(reason, _MOST_SAID)})") from None


class HeaderNotes(LogNotes):
    """The line in the header of one file; a format may add fields of its own."""

    model_config = ConfigDict(extra="allow")

    n_per_pulse: int = Field(default=1, ge=1, le=255)
    """Returns that a pulse can have."""


class CloudMark(StrictParameters):
    """What tells whether the cloud of a sweep is still as it was written."""

    sweep: int = Field(ge=-(2**31), lt=2**31)
    """Number of the sweep in the log."""
    n_points: int = Field(ge=0, lt=2**40)
    crc32: int = Field(ge=0, lt=2**32)
    """Of the bytes of its files, one after the other."""


class Sidecar(LogNotes):
    """What a folder of clouds says beyond its format: the settings of a log, and how its sweeps turn."""

    kind: str = Field(max_length=40)
    """Name of the format."""
    start_azimuth_deg: Finite = Field(default=180.0, ge=-1000, le=1000)
    """Where a sweep starts."""
    clockwise: bool = True
    spans_ns: dict[str, Annotated[list[Nanoseconds], Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict[str, list[int]]
    )
    """First and last time of each sweep, by the number of its file."""
    clouds: dict[str, CloudMark] = Field(default_factory=dict[str, CloudMark])
    """By the names of their files, without suffix; those that lie in hedgerow.parquet with all their beams."""

    @model_validator(mode="after")
    def _check_spans(self) -> Self:
        for name, (first, last) in self.spans_ns.items():
            if first > last:
                raise InputError("spans_ns", f"sweep {name[:20]!r} ends before it begins")
        return self

    @classmethod
    def of(cls, log: Log, kind: str) -> "Sidecar":
        """Take over the settings of a log; how it turns comes from its metadata, else from the catalogue."""
        start_deg, clockwise = _turn_of(log)
        turn = {"start_azimuth_deg": start_deg, "clockwise": clockwise}
        return cls.parse({"kind": kind} | values_of(log) | turn, SIDECAR)

    def write(self, folder: Path) -> None:
        """Write it into a folder.

        Raises:
            InputError: the metadata do not fit into JSON.
        """
        text = to_json({"hedgerow": hedgerow.__version__} | self.model_dump())
        (folder / SIDECAR).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Sidecar | None":
        """Read it from a folder; None if there is none.

        Raises:
            FileError: it is damaged.
        """
        path = folder / SIDECAR
        if not path.exists():
            return None
        if path.stat().st_size > _MOST_BYTES:
            raise FileError(f"{path}: has {path.stat().st_size:,} bytes; Hedgerow writes no such file")
        return cls.from_json(read_text(path), path)


def values_of(log: Log) -> dict[str, Any]:
    """Return the settings of a log by the names that they have in notes."""
    return {
        "sensor": log.sensor,
        "min_range_m": log.min_range_m,
        "max_range_m": log.max_range_m if np.isfinite(log.max_range_m) else None,
        "map_origin_m": log.map_origin_m.tolist(),
        "metadata": dict(log.metadata),
    }


def to_json(values: dict[str, Any]) -> str:
    """Write notes down.

    Raises:
        InputError: the metadata do not fit into JSON.
    """
    try:
        _require_shallow(values)
        return json.dumps(values, allow_nan=False)
    except (TypeError, ValueError) as error:
        reason = one_line(str(error), _MOST_SAID)
        raise InputError("metadata", f"does not fit into JSON ({reason}); use text, finite numbers, lists") from None


def _require_shallow(values: object) -> None:
    """Refuse what is nested too deeply for the functions that copy and write it, which call themselves."""
    layer = [values]
    for _ in range(_MOST_NESTED):
        inner: list[object] = []
        for each in layer:
            if isinstance(each, dict):
                inner += cast("dict[str, object]", each).values()
            elif isinstance(each, list):
                inner += cast("list[object]", each)
        layer = inner
        if not layer:
            return
    raise InputError("metadata", f"nested more than {_MOST_NESTED} deep")


def _turn_of(log: Log) -> tuple[float, bool]:
    """Return the azimuth at which sweeps start [degrees], and whether they turn clockwise."""
    noted: object = log.metadata.get("turn")  # by beams/clouds.py
    if isinstance(noted, dict):
        turn = cast("dict[str, Any]", noted)
        start_deg, clockwise = turn.get("start_deg"), turn.get("clockwise")
        if isinstance(start_deg, int | float) and abs(start_deg) <= 1000 and isinstance(clockwise, bool):
            return float(start_deg), clockwise
    sensor = find_sensor(log.sensor)
    if sensor is None:
        return 180.0, True
    pattern = sensor.config.pattern
    return float(getattr(pattern, "start_azimuth_deg", 180.0)), pattern.turns == "clockwise"
