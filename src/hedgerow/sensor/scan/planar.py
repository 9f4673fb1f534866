# SPDX-License-Identifier: Apache-2.0
"""One sweep of a planar scanner: a single laser and a turning mirror, in one ring.

A scanner such as the LMS-291 reaches its finer steps over several turns of the mirror: the first turn measures whole
degrees, the next the half degrees between them. Pulses come in the order in which they are fired, so the azimuths of
an interlaced sweep are not sorted.
"""

from typing import TYPE_CHECKING

import numpy as np

from hedgerow.sensor.scan.pattern import Pattern, directions, sense

if TYPE_CHECKING:
    from hedgerow.sensor.config import Planar


def build(config: "Planar", rate_hz: float) -> Pattern:
    """Compute one sweep with the mirror at `rate_hz` turns per second."""
    # The small term keeps 180/0.5 from losing the last pulse to rounding; a full circle does not repeat its first.
    n_steps = int(config.extent_deg / config.step_deg + 1e-6) + 1
    step = np.arange(n_steps)
    turn = step % config.interlace
    order = np.lexsort((step, turn))
    turned_deg = step[order] * config.step_deg
    time_s = (turned_deg / 360 + turn[order]) / rate_hz
    azimuth = np.deg2rad(config.first_azimuth_deg + sense(config.turns) * turned_deg)
    return Pattern(
        origin_m=np.zeros((n_steps, 3), dtype=np.float32),
        direction=directions(azimuth, np.zeros(n_steps)),
        time_ns=np.rint(time_s * 1e9).astype(np.int64),
        ring=np.zeros(n_steps, dtype=np.uint16),
        rotor_rad=azimuth,
        period_ns=config.interlace * 1e9 / rate_hz,
        n_sweeps=1,
    )
