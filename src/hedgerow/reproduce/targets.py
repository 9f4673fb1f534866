# SPDX-License-Identifier: Apache-2.0
"""The six targets of 000 §6.1: where they stand in the scene static-targets, and which pulses of a sweep meet them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.frames import Pose
from hedgerow.physics.site import Site
from hedgerow.sensor import Sensor

DISTANCE_M = 8.0


@dataclass(frozen=True)
class Target:
    """A target and where to look for it."""

    name: str
    low_m: float
    """Beams that pass the target's distance between these heights are kept [m]."""
    high_m: float
    half_width_m: float = 0.5

    @property
    def trajectory(self) -> str:
        """Name of the scene's pass that looks at it."""
        return self.name.lower().replace(" ", "-")


TARGETS = (
    Target("Plane", 1.2, 2.2),
    Target("High-density tree", 1.0, 2.2),
    Target("Medium-density tree", 1.0, 2.2),
    Target("Low-density tree", 1.0, 2.2),
    Target("Tall grass", 0.1, 0.8),
    Target("Short grass", -0.1, 0.1),
)


def look_at(site: Site, target: Target, sensor: Sensor) -> tuple[Pose, NDArray[np.bool_]]:
    """Return where the sensor stands, and which pulses of a sweep go through the target."""
    passage = site.trajectories[target.trajectory]
    pose = Pose(passage.position_m[0], passage.quaternion_xyzw[0])
    ahead, left = pose.transform(np.eye(3)[:2]) - pose.position_m
    beams = sensor.sweep(pose)
    forward = beams.direction @ ahead
    reach = DISTANCE_M / np.where(forward > 0.1, forward, np.inf)
    there = beams.origin_m - pose.position_m + reach[:, None] * beams.direction
    across, height = there @ left, there[:, 2] + pose.position_m[2]
    inside = (np.abs(across) < target.half_width_m) & (height > target.low_m) & (height < target.high_m)
    return pose, inside & (forward > 0.1)
