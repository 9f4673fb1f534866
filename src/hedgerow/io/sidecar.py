# SPDX-License-Identifier: Apache-2.0
"""hedgerow.json: what a folder of clouds written by Hedgerow says beyond its format, so that it reads back whole.

It also marks the folder as ours: an old folder is replaced only if it has one, so that a mistyped path never costs
anybody a data set.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np

import hedgerow
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.io import tum
from hedgerow.io.source import Settings
from hedgerow.io.whole_file import read_text
from hedgerow.log import Log

NAME = "hedgerow.json"
MOTION = "motion.tum"
"""Poses within the sweeps, finer than one for each."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The settings of a log and how its sweeps turn."""

    kind: str
    """Name of the format."""
    sensor: str
    min_range_m: float
    max_range_m: float | None
    """None if there is no limit."""
    map_origin_m: tuple[float, float, float]
    start_azimuth_deg: float = 180.0
    """Where a sweep starts."""
    clockwise: bool = True
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    spans_ns: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """First and last time of each sweep, by its number."""

    @classmethod
    def of(cls, log: Log, kind: str) -> "Sidecar":
        """Take over the settings of a log; how it turns comes from its metadata, else from the catalogue."""
        x, y, z = log.map_origin_m.tolist()
        limit = log.max_range_m if np.isfinite(log.max_range_m) else None
        start_deg, clockwise = _turn_of(log)
        return cls(kind, log.sensor, log.min_range_m, limit, (x, y, z), start_deg, clockwise, dict(log.metadata))

    def settings(self, arrays: list[str]) -> Settings:
        """Return what all sweeps have in common."""
        limit = float("inf") if self.max_range_m is None else self.max_range_m
        origin_m = np.array(self.map_origin_m)
        return Settings(self.sensor, self.min_range_m, limit, origin_m, dict(self.metadata), 1, arrays)

    def write(self, folder: Path) -> None:
        """Write it into a folder.

        Raises:
            InputError: the metadata do not fit into JSON.
        """
        content = {"hedgerow": hedgerow.__version__} | asdict(self)
        try:
            text = json.dumps(content, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError("metadata", f"does not fit into JSON ({error}); use text, finite numbers, lists") from None
        (folder / NAME).write_text(text, encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Sidecar | None":
        """Read it from a folder; None if there is none.

        Raises:
            FileError: it is damaged.
        """
        path = folder / NAME
        if not path.exists():
            return None
        try:
            content: dict[str, Any] = json.loads(read_text(path))
            content.pop("hedgerow")
            x, y, z = map(float, content.pop("map_origin_m"))
            spans = {key: (int(first), int(last)) for key, (first, last) in content.pop("spans_ns").items()}
            return cls(map_origin_m=(x, y, z), spans_ns=spans, **content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path}: is damaged ({type(error).__name__}: {str(error)[:100]})") from error


def read_motion(folder: Path) -> Trajectory | None:
    """Read the poses within the sweeps, T_map_sensor; None if there are none.

    Raises:
        FileError: they are damaged.
    """
    path = folder / MOTION
    return tum.read_trajectory(path) if path.exists() else None


def require_ours(path: Path) -> None:
    """Raise FileError if there is a folder that Hedgerow has not written."""
    if path.is_dir() and any(path.iterdir()) and not (path / NAME).exists():
        raise FileError(f"{path}: the folder is there and Hedgerow did not write it (no {NAME}); choose another name")


def _turn_of(log: Log) -> tuple[float, bool]:
    from hedgerow.sensor import Sensor

    noted = cast("dict[str, Any]", log.metadata.get("turn", {}))  # by clouds.py
    if set(noted) == {"start_deg", "clockwise"}:
        return float(noted["start_deg"]), bool(noted["clockwise"])
    try:
        pattern = Sensor.named(log.sensor).config.pattern
    except InputError:
        return 180.0, True
    return float(getattr(pattern, "start_azimuth_deg", 180.0)), pattern.turns == "clockwise"
