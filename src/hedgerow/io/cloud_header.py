# SPDX-License-Identifier: Apache-2.0
"""What a single file of points written by Hedgerow says about its log: one line of JSON in its header."""

import json
from typing import Any

import numpy as np

from hedgerow.errors import FileError
from hedgerow.io.columns import Columns, Viewpoints
from hedgerow.io.options import ReadOptions
from hedgerow.io.source import Settings
from hedgerow.log import Log

MARK = "hedgerow "
"""Begins the comment that holds it."""


def header_text(log: Log, **more: Any) -> str:
    """Return the line for a log."""
    content = {
        "sensor": log.sensor,
        "min_range_m": log.min_range_m,
        "max_range_m": log.max_range_m if np.isfinite(log.max_range_m) else None,
        "map_origin_m": log.map_origin_m.tolist(),
        "n_per_pulse": log.returns.n_per_pulse,
        "metadata": log.metadata,
    }
    return json.dumps(content | more)


def header_of(text: str | None, path: object) -> dict[str, Any]:
    """Read the line back; {} if there is none.

    Raises:
        FileError: it is damaged.
    """
    if text is None:
        return {}
    try:
        content: dict[str, Any] = json.loads(text)
        float(content["min_range_m"])
        content["map_origin_m"] = [float(each) for each in content["map_origin_m"]]
        if len(content["map_origin_m"]) != 3 or not isinstance(content["metadata"], dict):
            raise ValueError("map_origin_m or metadata")
        return content
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: what Hedgerow wrote into its header is damaged ({str(error)[:100]})") from None


def settings_of(header: dict[str, Any], columns: Columns, options: ReadOptions, name: str) -> Settings:
    """Put together what the header, the first points and the options say."""
    far = header.get("max_range_m") if options.max_range_m is None else options.max_range_m
    origin_m = options.map_origin_m or header.get("map_origin_m") or _near(columns)
    most = int(columns["return_number"].max(initial=1)) if "return_number" in columns else 1
    note = {"read_from": name, "recovery": {"method": "none", "summary": "not recovered, every beam has a return"}}
    return Settings(
        sensor=options.sensor or header.get("sensor", ""),
        min_range_m=float(options.min_range_m if options.min_range_m is not None else header.get("min_range_m", 0.0)),
        max_range_m=float("inf") if far is None else float(far),
        map_origin_m=np.array(origin_m, np.float64),
        metadata=header.get("metadata", {}) | note,
        n_per_pulse=max(1, min(int(header.get("n_per_pulse", most)), 255)),
        arrays=[each for each in ("intensity", "label") if each in columns],
    )


def viewpoints_of(options: ReadOptions) -> Viewpoints:
    """Return what the options say about where beams began."""
    scanner = None if options.scanner_m is None else np.array(options.scanner_m)
    return Viewpoints(scanner, options.sensor_trajectory())


def _near(columns: Columns) -> list[float]:
    """Return a round place near the first point if it is far out, as in UTM; else 0."""
    if not len(columns["x"]):
        return [0.0, 0.0, 0.0]
    first = [float(columns[axis][0]) for axis in "xyz"]
    return [round(each, -3) for each in first[:2]] + [0.0] if max(map(abs, first)) > 1e4 else [0.0, 0.0, 0.0]
