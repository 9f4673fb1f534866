# SPDX-License-Identifier: Apache-2.0
"""What a Parquet log says about itself: one JSON text under the key `hedgerow` in the file's metadata.

    {"format": 1, "hedgerow": "0.1.0", "sensor": "hdl-64e", "min_range_m": 0.9, "max_range_m": 120.0,
     "map_origin_m": [0.0, 0.0, 0.0], "returns_per_pulse": 1, "part": 0, "seed": 7, "metadata": {}}

`max_range_m` is null where there is no limit. `seed` is the log's `metadata["seed"]`, or null. `part` counts the files
of a folder from 0; the last of them also says under the key `hedgerow_parts` how many there are, so that a missing
file is noticed.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import hedgerow
from hedgerow.errors import FileError, InputError
from hedgerow.log import Log

KEY = b"hedgerow"
PARTS_KEY = b"hedgerow_parts"
FORMAT = 1
"""Raised by one when older readers would misread the file."""


@dataclass(frozen=True, slots=True)
class Header:
    """The settings of a log, and which part of it a file holds."""

    sensor: str
    min_range_m: float
    max_range_m: float
    map_origin_m: tuple[float, float, float]
    returns_per_pulse: int
    part: int = 0
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    hedgerow: str = hedgerow.__version__
    """Version that wrote it."""

    @classmethod
    def of(cls, log: Log) -> "Header":
        """Take over the settings of a log."""
        x, y, z = log.map_origin_m.tolist()
        limits = log.min_range_m, log.max_range_m
        return cls(log.sensor, *limits, (x, y, z), log.returns.n_per_pulse, metadata=log.metadata)

    def settings(self) -> "Header":
        """Return what all parts of one log have in common."""
        return replace(self, part=0)

    def to_json(self) -> bytes:
        """Write it down.

        Raises:
            InputError: the free metadata does not fit into JSON.
        """
        content = {"format": FORMAT} | asdict(self)
        content["max_range_m"] = None if self.max_range_m == float("inf") else self.max_range_m
        content["seed"] = self.metadata.get("seed")
        content["metadata"] = {key: value for key, value in self.metadata.items() if key != "seed"}
        try:
            return json.dumps(content, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise InputError("metadata", f"does not fit into JSON ({error}); use text, finite numbers, lists") from None

    @classmethod
    def from_json(cls, path: Path, text: bytes | None) -> "Header":
        """Read it back.

        Raises:
            FileError: it is absent, damaged or of a newer format.
        """
        if text is None:
            raise FileError(f"{path}: a Parquet file but no Hedgerow log (no 'hedgerow' metadata); use Log.from_arrays")
        try:
            content: dict[str, Any] = json.loads(text)
            written_as = int(content.pop("format"))
            if written_as > FORMAT:
                version = content.get("hedgerow")
                raise FileError(
                    f"{path}: log format {written_as}, written by Hedgerow {version}, is newer than the {FORMAT} that "
                    f"Hedgerow {hedgerow.__version__} reads; upgrade with: pip install -U hedgerow"
                )
            seed = content.pop("seed")
            if seed is not None:
                content["metadata"]["seed"] = seed
            limit = content.pop("max_range_m")
            x, y, z = map(float, content.pop("map_origin_m"))
            return cls(max_range_m=float("inf") if limit is None else float(limit), map_origin_m=(x, y, z), **content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileError(f"{path}: the 'hedgerow' metadata is damaged ({error!r})") from error
