# SPDX-License-Identifier: Apache-2.0
"""How clouds in a folder that Hedgerow wrote become sweeps again: what hedgerow.json says, and the options."""

import numpy as np

from hedgerow.errors import InputError
from hedgerow.io.clouds import Plan
from hedgerow.io.options import ReadOptions
from hedgerow.io.sidecar import Sidecar
from hedgerow.sensor import Sensor


def folder_plan(options: ReadOptions, sidecar: Sidecar, name: str) -> Plan:
    """Return the plan for a folder with a sidecar."""
    return Plan(
        sensor=known_sensor(options.sensor or sidecar.sensor),
        start_rad=float(np.deg2rad(sidecar.start_azimuth_deg)),
        clockwise=sidecar.clockwise,
        compensated=True if options.compensated is None else options.compensated,
        times_by_laser=True,
        elevation_bias_rad=float(np.deg2rad(options.elevation_bias_deg or 0.0)),
        recover=options.recover,
        metadata={"read_from": name},
    )


def known_sensor(name: str | None) -> Sensor | None:
    """Return a sensor of the catalogue, or None if it is not there."""
    try:
        return Sensor.named(name) if name else None
    except InputError:
        return None
