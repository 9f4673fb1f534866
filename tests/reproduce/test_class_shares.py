# SPDX-License-Identifier: Apache-2.0
"""The class shares of Browning 2012 Table 10, on a made cloud and in small."""

import numpy as np
import pytest

from hedgerow.log import Log
from hedgerow.reproduce import class_shares
from hedgerow.reproduce.class_shares import Classified, classify_log

ROAD, GRASS, SHRUB = 40, 101, 102


def test_shares_and_recalls_are_those_of_a_count_by_hand():
    label = np.array([ROAD] * 5 + [GRASS] * 2 + [SHRUB] * 2, np.uint16)
    called = np.array([1, 0, 0, 0, 0, 1, 0, 1, 1], bool)
    each = Classified(np.zeros((9, 3)), label, called, n_beams=10)
    assert each.percent(each.is_volume) == pytest.approx((10, 50, 40))
    assert each.percent(each.is_truly_volume) == pytest.approx((10, 50, 40))
    assert each.recalls == pytest.approx((3 / 4, 4 / 5))


def test_a_bush_over_a_road_is_told_apart_and_misses_are_counted():
    rng = np.random.default_rng(0)
    road = np.c_[rng.uniform(-3, 3, (4000, 2)), np.zeros(4000)]
    bush = rng.normal((0, 0, 1.5), 0.3, (4000, 3))
    along = np.concatenate([road, bush]) - (0, 0, 20.0)
    range_m = np.linalg.norm(along, axis=1)
    log = Log.from_arrays(
        origins=(0, 0, 20),
        directions=np.concatenate([along / range_m[:, None], [[0, 0, 1]] * 2000]),
        ranges=np.concatenate([range_m, [np.inf] * 2000]),
        labels=np.repeat([ROAD, SHRUB, 0], [4000, 4000, 2000]),
    )
    each = classify_log(log)
    assert min(each.recalls) > 0.9
    assert each.percent(each.is_volume)[0] == pytest.approx(20)


@pytest.mark.slow
def test_the_experiment_prints_paper_ours_and_truth_and_draws(tmp_path):
    said = []
    outcome = class_shares.run(tmp_path, size=1, seed=1, say=said.append)
    text = outcome.to_markdown()
    for part in ("| off-road | paper | 11.1 | 30.4 | 58.5 |", "labels of the scene", "| urban | building (50) |"):
        assert part in text
    assert outcome.pictures[0].read_bytes().startswith(b"\x89PNG")
    assert len(said) == 2
