# SPDX-License-Identifier: Apache-2.0
"""Clouds: the returns of some sweeps of one layer, with a number each to colour by, thinned to what can be drawn."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.view.web.colours import Quantity
from hedgerow.view.web.stage import Stage


@dataclass(frozen=True)
class Cloud:
    """M returns."""

    point_m: NDArray[np.float32]
    """(M, 3) relative to the stage's centre."""
    value: NDArray[np.float64]
    """(M,) to colour by; NaN is unknown."""
    pulse: NDArray[np.int64]
    """(M,) id of the pulse."""
    sweep: NDArray[np.int32]
    """(M,) number of the sweep."""
    row: NDArray[np.intp]
    """(M,) which beam of its sweep."""
    range_m: NDArray[np.float32]
    """(M,) how far from the sensor."""

    def __len__(self) -> int:
        """Count the points."""
        return len(self.value)

    def kept(self, mask: NDArray[np.bool_]) -> "Cloud":
        """Return some of the points."""
        return Cloud(**{name: getattr(self, name)[mask] for name in Cloud.__dataclass_fields__})


EMPTY = Cloud(
    np.zeros((0, 3), np.float32), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.intp),
    np.zeros(0, np.float32),
)  # fmt: skip


def cloud_of(stage: Stage, layer: int, window: list[int], quantity: Quantity, partner: int | None) -> Cloud:
    """Gather the returns of some sweeps.

    Args:
        stage: where they come from.
        layer: which layer.
        window: numbers of the sweeps.
        quantity: what to colour by.
        partner: the simulation that the first layer is compared with; other layers are compared themselves.

    Raises:
        InputError: the quantity cannot be had, and why.
    """
    parts: list[Cloud] = []
    for number in window:
        log = stage.sweep(layer, number)
        if log is not None:
            beam_value = _beam_value(stage, partner if layer == 0 else layer, number, quantity)
            parts.append(_part(log, number, stage, quantity, beam_value))
    if not parts:
        return EMPTY
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Cloud.__dataclass_fields__}
    return replace(EMPTY, **columns)


def thin(clouds: list[Cloud], limit: int) -> list[Cloud]:
    """Drop points until no more than `limit` are left in all clouds together.

    Which ones go is decided by a hash of their pulse: at random over rings and azimuths, always the same ones, and the
    same beams in each cloud, so that real and simulated returns stay in pairs.
    """
    total = sum(map(len, clouds))
    if total <= limit:
        return clouds
    keys = [key_of(cloud.pulse) for cloud in clouds]
    threshold = np.partition(np.concatenate(keys), limit)[limit]
    return [cloud.kept(key < threshold) for cloud, key in zip(clouds, keys, strict=True)]


def _beam_value(stage: Stage, compared: int | None, number: int, quantity: Quantity) -> NDArray[np.float64] | None:
    if quantity not in ("range error", "log-likelihood"):
        return None
    if not compared:
        raise InputError(f"{quantity}", "needs a simulation of the first log; give a world or its log as well")
    return (stage.range_error if quantity == "range error" else stage.log_likelihood)(compared, number)


def _part(log: Log, number: int, stage: Stage, quantity: Quantity, beam_value: NDArray[np.float64] | None) -> Cloud:
    hit = log.returns.hit
    row = np.nonzero(hit)[0]
    points = log.points() + stage.shift_m(log.map_origin_m)
    return Cloud(
        (points - stage.centre_m).astype(np.float32),
        _values(log, quantity, points, row, beam_value),
        log.beams.pulse[row],
        np.full(len(row), number, dtype=np.int32),
        row,
        log.returns.range_m[hit],
    )


def _values(
    log: Log,
    quantity: Quantity,
    points: NDArray[np.float64],
    row: NDArray[np.intp],
    beam_value: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    hit, unknown = log.returns.hit, np.full(len(row), np.nan)
    if quantity == "height":
        return points[:, 2]
    if quantity == "ring":
        return log.beams.ring[row].astype(np.float64)
    if quantity in ("intensity", "label"):
        column = log.returns.intensity if quantity == "intensity" else log.returns.label
        return unknown if column is None else column[hit].astype(np.float64)
    if beam_value is not None:  # of the first return of each beam; later ones have none
        first = np.ones(len(row), dtype=bool) if hit.ndim == 1 else np.nonzero(hit)[1] == 0
        unknown[first] = beam_value[row[first]]
    return unknown


def key_of(pulse: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a (M,) random key per pulse: its bits mixed (SplitMix64's finaliser, a bijection: no two are equal)."""
    x = pulse.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
