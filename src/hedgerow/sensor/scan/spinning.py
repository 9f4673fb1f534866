# SPDX-License-Identifier: Apache-2.0
"""One turn of a spinning multi-beam lidar, pulse by pulse in firing order.

Time is cut into slots. In each slot one group of lasers fires, laser after laser; the schedule says which group.
Most sensors have one group. The HDL-64E of Goodin 2018 has two: three slots of the upper block, then one of the
lower, which replaces every fourth slot of the upper. Firing starts anew with each turn: where a turn is not a whole
number of slots, the rest (less than one slot) stays dark. A real sensor carries it into the next turn instead, which
would shift every turn's azimuths by a fraction of a step.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.sensor.scan.pattern import Pattern, directions, sense

if TYPE_CHECKING:
    from hedgerow.sensor.config import Group, Spinning


def build(config: "Spinning", rate_hz: float) -> Pattern:
    """Compute one turn at `rate_hz` turns per second."""
    slot_s, n_slots = _slots(config, rate_hz)
    numbers = ring_numbers(config)
    parts = [_fire(config, number, slot_s, n_slots, rate_hz, numbers[number]) for number in range(len(config.group))]
    columns = zip(*parts, strict=True)
    time_s, rotor, azimuth, elevation, left_m, up_m, ring = (np.concatenate(column) for column in columns)
    order = np.argsort(time_s, kind="stable")
    rotor, azimuth = rotor[order], azimuth[order]
    direction = directions(azimuth, elevation[order])
    return Pattern(
        origin_m=_origins(config, rotor, left_m[order], up_m[order], direction),
        direction=direction,
        time_ns=np.rint(time_s[order] * 1e9).astype(np.int64),
        ring=ring[order].astype(np.uint16),
        rotor_rad=rotor,
        period_ns=1e9 / rate_hz,
        n_sweeps=1,
    )


def ring_numbers(config: "Spinning") -> list[NDArray[np.int64]]:
    """Return the ring of each laser, group by group in the order of the file."""
    elevation = np.concatenate([group.elevation_deg for group in config.group])
    if config.rings == "as listed":
        flat = np.arange(len(elevation))
    else:
        # Stable, so that lasers at the same height keep the order of the file.
        by_height = np.argsort(elevation if config.rings == "from lowest" else -elevation, kind="stable")
        flat = np.empty(len(elevation), dtype=np.int64)
        flat[by_height] = np.arange(len(elevation))
    ends = np.cumsum([len(group.elevation_deg) for group in config.group])
    return np.split(flat, ends[:-1])


def _slots(config: "Spinning", rate_hz: float) -> tuple[float, int]:
    if config.slots_per_turn is not None:
        return 1 / (rate_hz * config.slots_per_turn), config.slots_per_turn
    slot_s = (config.slot_us or 0) * 1e-6
    # The small term keeps an exact division (3125 slots of 32 us in 0.1 s) from losing its last slot to rounding.
    return slot_s, int(1 / (rate_hz * slot_s) + 1e-6)


def _fire(
    config: "Spinning", number: int, slot_s: float, n_slots: int, rate_hz: float, rings: NDArray[np.int64]
) -> tuple[NDArray[Any], ...]:
    """Return the columns of all pulses of one group in a turn, each (slots of the group x lasers,)."""
    group = config.group[number]
    slots = np.flatnonzero(np.resize(np.asarray(config.schedule) == number, n_slots))
    lasers = np.zeros(len(group.elevation_deg))
    time_s = slots[:, None] * slot_s + _column(group.time_us, lasers) * 1e-6
    turned = _turned(group, slots, slot_s, rate_hz, time_s)
    rotor = np.deg2rad(config.start_azimuth_deg) + sense(config.turns) * turned
    azimuth = rotor + np.deg2rad(_column(group.azimuth_deg, lasers))
    columns = (
        time_s,
        rotor,
        azimuth,
        np.deg2rad(_column(group.elevation_deg, lasers)),
        _column(group.left_mm, lasers) * 1e-3,
        _column(group.up_mm, lasers) * 1e-3,
        rings,
    )
    return tuple(np.broadcast_to(column, time_s.shape).ravel() for column in columns)


def _turned(
    group: "Group", slots: NDArray[np.int64], slot_s: float, rate_hz: float, time_s: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the angle that the rotor has turned since the start of the sweep, (slots, lasers) or (slots, 1) [rad]."""
    per_s = group.closed_turn_firings_per_s
    if per_s is None:
        return 2 * np.pi * rate_hz * time_s
    # Goodin 2018 eqs. 6 and 7. The small term: slot 3 at a quarter of the slots' rate is firing 0.75, slot 4 is firing
    # 1.
    firing = np.floor(slots * slot_s * per_s + 1e-6)
    return (firing * 2 * np.pi / (per_s / rate_hz - 1))[:, None]


def _column(values: list[float] | None, zeros: NDArray[np.float64]) -> NDArray[np.float64]:
    return zeros if values is None else np.asarray(values)


def _origins(
    config: "Spinning",
    rotor: NDArray[np.float64],
    left_m: NDArray[np.float64],
    up_m: NDArray[np.float64],
    direction: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return the points from which ranges count: the point of emission, less the path inside the sensor."""
    cos, sin = np.cos(rotor), np.sin(rotor)
    forward_m = config.forward_mm * 1e-3
    emission = np.stack([forward_m * cos - left_m * sin, forward_m * sin + left_m * cos, up_m], axis=-1)
    return (emission - config.range_zero_mm * 1e-3 * direction).astype(np.float32)
