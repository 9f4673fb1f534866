# SPDX-License-Identifier: Apache-2.0
"""Poses that are not exact (Tallavajhula 2018 §3.4.1, regression calibration): how far does each sensor model degrade?

Models are trained with features from poses that are off by 0, 1 or 3 cm (and as many times 0.3 degrees), and scored at
test poses that are off by as much, as regression calibration wants it, and at exact ones.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.planar.regression import Histograms
from hedgerow.planar.sensor_model import States
from hedgerow.planar.training import mean_log_loss, mean_match
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.planar.hidden_sensor import SCALE, HiddenSensor
from hedgerow.reproduce.planar.lab import collect, train
from hedgerow.reproduce.tables import markdown_table

ERRORS_M = (0.0, 0.01, 0.03)
_TURN_RAD_PER_M = np.deg2rad(0.3) / 0.01
_STATES = 300


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Train with poses of each quality; `size` is the number of training poses, 100 by default."""
    rows: list[tuple[str, ...]] = []
    exact = collect(size or 100, seed, HiddenSensor())
    for error_m in ERRORS_M:
        random = np.random.default_rng(seed + 60)

        def moved(
            poses: NDArray[np.float64], error_m: float = error_m, random: np.random.Generator = random
        ) -> NDArray[np.float64]:
            return poses + error_m * random.normal(size=poses.shape) * [1.0, 1.0, _TURN_RAD_PER_M]

        data = exact if error_m == 0 else collect(size or 100, seed, HiddenSensor(), moved=moved)
        models = train(data, most_states=150)
        named = {
            "P-Reg": models.p_reg,
            "NP-Reg": models.np_reg,
            "Gaussian": models.gaussian,
            "beam mixture": models.mixture,
        }
        for name, model in named.items():
            cells: list[str] = []
            for test in (data.test, exact.test):
                chosen = test[np.sort(np.random.default_rng(3).permutation(len(test))[:_STATES])]
                truth = Histograms(chosen, SCALE).matrix.toarray()
                match = mean_match(model, States(chosen.state, chosen.groups), truth)
                cells += [f"{100 * match:.2f}", f"{mean_log_loss(model, chosen):.2f}"]
            rows.append((f"{100 * error_m:g} cm", name, *cells))
        say(f"poses off by {100 * error_m:g} cm done")
    head = ("poses off by", "model", "match [cm]", "log loss", "match, exact test poses [cm]", "log loss there")
    return Outcome(
        text="Scores at test poses as uncertain as the training poses, and at exact ones:\n\n"
        + markdown_table(head, rows)
    )
