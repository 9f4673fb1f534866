# SPDX-License-Identifier: Apache-2.0
"""Intensities in the 16 bits that LAS has for them: one scale per file, written in its header and undone on reading.

LAS 1.4 wants 65,536 divided by the dynamic range of the sensor. Where the log says what made it, that is known:

    simulated in a scene    1 is a white wall, retro-reflectors reach 10: up to 16, in steps of 1/4096
    a Velodyne's packets    0 to 255, calibrated reflectivity: steps of 1/257, whole numbers are exact

Elsewhere (KITTI, bags, arrays, learned worlds) most numbers of the first sweep tell, not its brightest: whole numbers
above 1 are counts and stay as they are; shares of 1 get all 16 bits, or the scale of scenes if some already are above
1; fractions of counts that of a Velodyne.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Log

MOST = 65535
SHARE, REFLECTANCE, COUNT_8, COUNT_16 = 65535.0, 4096.0, 257.0, 1.0
"""What intensities are multiplied by: up to 1, up to 16, up to 255, up to 65535."""


def scale_of(log: Log) -> float | None:
    """Return what to multiply the intensities of a log with, by the first sweep of it; None if it has none."""
    intensity = log.returns.intensity
    if intensity is None:
        return None
    declared = _declared(log.metadata)
    if declared is not None:
        return declared
    known = intensity[np.isfinite(intensity)]
    brightest = float(known.max(initial=0))
    if brightest > 1 and not np.any(known % 1):
        return COUNT_16
    if not len(known) or float(np.quantile(known, 0.9)) <= 1:
        return SHARE if len(known) and brightest <= 1 else REFLECTANCE
    return COUNT_8 if brightest <= MOST / COUNT_8 else COUNT_16


def _declared(metadata: dict[str, Any]) -> float | None:
    """Return the scale for logs whose origin says in what unit intensities are."""
    world = metadata.get("world")
    if isinstance(world, dict):
        kind: object = world.get("kind")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # JSON
        return REFLECTANCE if kind == "scene" else None
    is_velodyne = metadata.get("read_from") == "pcap" and "profile" not in metadata  # Ousters have one, of 8 or 16 bits
    return COUNT_8 if is_velodyne else None


class Scaler:
    """Makes whole numbers of intensities, and counts what does not fit."""

    def __init__(self, scale: float) -> None:
        """Remember the scale."""
        self.scale = scale
        self.n_above = 0
        self.n_unknown = 0

    def scaled(self, intensity: NDArray[np.float32]) -> NDArray[np.uint16]:
        """Return (N,) what the file holds."""
        value = np.rint(intensity.astype(np.float64) * self.scale)
        unknown, above = np.isnan(value), value > MOST
        self.n_unknown += int(np.count_nonzero(unknown | (value < 0)))
        self.n_above += int(np.count_nonzero(above))
        return np.clip(np.where(unknown, 0, value), 0, MOST).astype(np.uint16)

    def losses(self) -> list[str]:
        """Say what did not fit."""
        said: list[str] = []
        if self.n_above:
            said.append(f"{self.n_above:,} intensities above {MOST / self.scale:.4g} clipped to it")
        if self.n_unknown:
            said.append(f"{self.n_unknown:,} returns of unknown or negative intensity got 0")
        return said
