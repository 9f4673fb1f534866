# SPDX-License-Identifier: Apache-2.0
"""How many rays go together is a matter of speed alone: packets of sixteen answer as packets of eight do."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from hedgerow import Beams, _core
from hedgerow.world import Scene

LAWS = ("permeability", "extinction_per_m", "depth")


def answers(law: str, *, placed: bool) -> dict[str, np.ndarray]:
    """Fire at and look through a cloud of Gaussians, with beams that fill packets of neither width."""
    rng = np.random.default_rng(5)
    n, n_beams = 3000, 4099
    spread = rng.normal(size=(n, 3, 3)) * rng.uniform(0.02, 0.3, (n, 1, 1))
    stop: Any = rng.uniform(0, 0.9, n) if law == "permeability" else rng.gamma(1.0, 3.0, n)
    cloud = Scene()
    cloud.add_gaussians(rng.uniform(-8, 8, (n, 3)), spread @ spread.transpose(0, 2, 1), tau=2.7, **{law: stop})
    scene = cloud
    if placed:
        scene = Scene()
        turned = np.array([[0.0, -1.2, 0.0, 1.0], [1.2, 0.0, 0.0, 0.0], [0.0, 0.0, 1.2, 0.0], [0.0, 0.0, 0.0, 1.0]])
        scene.place(cloud, turned)
        scene.place(cloud, np.eye(4))
    azimuth = np.linspace(0, 2 * np.pi, n_beams)
    rise = 0.3 * np.sin(40 * azimuth)
    directions = np.stack([np.cos(azimuth) * np.cos(rise), np.sin(azimuth) * np.cos(rise), np.sin(rise)], axis=1)
    beams = Beams.from_arrays(origins=(0.1, 0.2, 0.3), directions=directions)
    hits = scene.fire(beams, seed=3, min_range_m=0.5, max_range_m=12.0)
    pierced = scene.pierced(beams, max_range_m=12.0)
    log_density = scene.log_likelihood(beams, hits.range_m, min_range_m=0.5, max_range_m=12.0)
    return {
        "range_m": hits.range_m,
        "element": hits.element,
        "crossed": pierced.element,
        "permeability": pierced.permeability,
        "log_density": log_density,
    }


@pytest.mark.skipif(not _core.traces_wide_packets(), reason="Embree traces packets of eight here, no wider ones")
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("placed", [False, True], ids=["own", "placed"])
def test_packets_of_sixteen_answer_as_packets_of_eight_do(law, placed, tmp_path):
    narrow = subprocess.run(
        [sys.executable, __file__, law, str(int(placed)), tmp_path / "narrow.npz"],
        env={**os.environ, "HEDGEROW_LANES": "8"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert narrow.returncode == 0, narrow.stderr
    wide = answers(law, placed=placed)
    assert 0.2 < np.isfinite(wide["range_m"]).mean() < 0.999 and len(wide["crossed"]) > 4099
    with np.load(tmp_path / "narrow.npz") as expected:
        for name, values in wide.items():
            np.testing.assert_array_equal(values, expected[name], err_msg=name)


if __name__ == "__main__":
    assert not _core.traces_wide_packets()
    found: dict[str, Any] = dict(answers(sys.argv[1], placed=sys.argv[2] == "1"))
    np.savez(sys.argv[3], **found)
