# SPDX-License-Identifier: Apache-2.0
"""The vegetation response experiment in small."""

import numpy as np
import pytest

from hedgerow.reproduce import vegetation_response as experiment
from hedgerow.sensor import Sensor


@pytest.fixture(scope="module")
def world():
    return experiment.bushes_and_grass(seed=1)


def test_noise_on_bushes_is_found_again(world):
    beams = experiment.beams_ahead(Sensor.named("vlp-32mr"), 4)
    each = experiment.recover_noise(world, beams, experiment.BUSH, 0.3, 0.5, seed=2)
    n = each.found.measured.n
    assert n > 20_000
    # Five standard errors, and what is held back at the ground (below 1 %, up to 1 m each).
    assert abs(each.found.mean_m - 0.3) < 5 * 0.5 / np.sqrt(n) + each.clipped_share
    assert abs(each.found.sigma_m - 0.5) < 5 * 0.5 / np.sqrt(n) + each.clipped_share
    assert each.clipped_share < 0.01


def test_low_grass_is_held_back_by_the_ground(world):
    beams = experiment.beams_ahead(Sensor.named("vlp-32mr"), 2)
    each = experiment.recover_noise(world, beams, experiment.GRASS, 0.0, 1.0, seed=2)
    assert each.clipped_share > 0.1 and each.found.sigma_m < 0.9 and each.found.mean_m < -0.05


def test_the_experiment_gives_both_tables_and_a_picture(tmp_path):
    said = []
    outcome = experiment.run(tmp_path, size=1, seed=1, say=said.append)
    text = outcome.to_markdown()
    for part in ("1.594", "0.587", "bushes, real", "low grass, simulated", "| dual | 0.158 | 4.2 |", "| 3.2 |"):
        assert part in text
    assert outcome.pictures[0].read_bytes().startswith(b"\x89PNG")
    assert len(said) == 2 + len(experiment.INJECTED)
