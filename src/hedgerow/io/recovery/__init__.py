# SPDX-License-Identifier: Apache-2.0
"""Missing returns of clouds that hold bare points: work out every firing of a spinning lidar.

`Recovery` (sweeps.py) puts it together: fit.py tells lasers apart by order, lasers.py and fit.py find how each of
them points, grid.py finds the stops of the rotor and the firings without a point.
"""

from hedgerow.io.recovery.sweeps import NotRecovered, Pulses, Recovery

__all__ = ["NotRecovered", "Pulses", "Recovery"]
