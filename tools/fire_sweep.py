# SPDX-License-Identifier: Apache-2.0
"""Prove an installed wheel: fire one HDL-64E sweep at a known world, then see which native libraries did it.

Run by tools/check_wheel.sh and cibuildwheel in an environment that holds the wheel and nothing else.
"""

import re
import sys
from pathlib import Path

import numpy as np

import hedgerow
from hedgerow.frames import Pose
from hedgerow.sensor import Sensor
from hedgerow.world import Scene, SceneWorld

HEIGHT_M = 2.0
HALF_PERMEABLE_M = 1.0


def sweep_over_two_planes() -> str:
    """Fire down on a plane that lets half of the rays through to a solid one below; both ranges are known."""
    corners = 500.0 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    triangles = [[0, 1, 2], [0, 2, 3]]
    scene = Scene()
    scene.add_mesh(corners, triangles)
    scene.add_mesh(corners + np.array([0, 0, HALF_PERMEABLE_M]), triangles, permeability=0.5)
    sensor = Sensor.named("hdl-64e")
    beams = sensor.sweep(Pose.from_xyz_rpy([0, 0, HEIGHT_M]))
    log = SceneWorld(scene).fire(beams, seed=1, sensor=sensor)

    sine_down = -beams.direction[:, 2].astype(float)
    fall_m = log.returns.first_m * sine_down
    seen = sine_down > np.sin(np.radians(5))  # both planes well within the sensor's range
    upper = np.isclose(fall_m[seen], HEIGHT_M - HALF_PERMEABLE_M, atol=1e-3)
    lower = np.isclose(fall_m[seen], HEIGHT_M, atol=1e-3)
    if not (upper | lower).all():
        sys.exit(f"{np.sum(~(upper | lower))} of {seen.sum()} returns are not on a plane")
    # A fair coin thrown n times strays by six standard errors once in 5e8 runs.
    if abs(upper.mean() - 0.5) > 6 * 0.5 / np.sqrt(seen.sum()):
        sys.exit(f"the half permeable plane stopped {upper.mean():.3f} of the rays")
    return f"{len(beams)} pulses, {upper.mean():.1%} of {seen.sum()} stopped by the half permeable plane"


def native_libraries() -> list[Path]:
    """Return the Embree and TBB libraries that this process has loaded; Linux tells, other systems do not."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    names = re.findall(r"(/\S*/lib(?:embree|tbb)\S*)", maps.read_text())
    return sorted({Path(name) for name in names})


def main() -> None:
    """Fire, then refuse libraries from anywhere but the environment itself."""
    print(f"wheel: hedgerow {hedgerow.__version__}: {sweep_over_two_planes()}")
    libraries = native_libraries()
    foreign = [str(path) for path in libraries if not path.is_relative_to(sys.prefix)]
    if foreign:
        sys.exit(f"loaded from outside the wheel: {', '.join(foreign)}")
    if sys.platform == "linux" and len(libraries) < 2:
        sys.exit(f"expected Embree and TBB among the loaded libraries, found {libraries}")
    print("wheel: native libraries:", ", ".join(path.name for path in libraries) or "not listed on this system")


if __name__ == "__main__":
    main()
