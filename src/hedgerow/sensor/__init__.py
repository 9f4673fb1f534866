# SPDX-License-Identifier: Apache-2.0
"""Lidars: where each one points and when, its beam, its range limits and its noise.

    sensor = Sensor.named("hdl-64e")          # or Sensor.load("my.toml")
    beams = sensor.drive(trajectory)          # every pulse has its own time and pose

sensor.py has the verbs, config.py every field of a sensor file, catalogue/ the sensors themselves.
"""

from hedgerow.sensor.sensor import Sensor

__all__ = ["Sensor"]
