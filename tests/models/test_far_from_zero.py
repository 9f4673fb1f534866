# SPDX-License-Identifier: Apache-2.0
"""Every model learns the same site in UTM coordinates as around zero."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from refined.bushes import bushes, seen

import hedgerow as hr
from hedgerow.models.registry import MODELS

UTM_M = np.array([300_000.0, 5_400_000.0, 120.0])  # whole voxels of 0.3 m, so that grids lie alike
QUICK: dict[str, Any] = {"refined": {"rounds": 1, "epochs": 1, "min_steps": 4}}


@pytest.fixture(scope="module")
def log():
    return seen(bushes(), 8000, 8, 2)


@pytest.mark.parametrize("model", list(MODELS))
def test_a_site_in_utm_is_learned_as_around_zero(model, log):
    moved = log.beams.columns() | {"origin_m": log.beams.origin_m + UTM_M}
    far = replace(log, beams=hr.Beams.without_checks(moved))
    here, there = (hr.learn(each, model, **QUICK.get(model, {})) for each in (log, far))
    assert there.size().elements == pytest.approx(here.size().elements, rel=0.05)
    score_here, score_there = (
        np.maximum(world.log_likelihood(each), -20).mean() for world, each in ((here, log), (there, far))
    )
    # Positions in float64 keep a nanometre there; K-means and marching cubes may still cut a tie another way.
    assert_allclose(score_there, score_here, atol=0.1)
    box = there.box
    assert box is not None and np.all(np.abs(box.middle_m - UTM_M) < 50)
