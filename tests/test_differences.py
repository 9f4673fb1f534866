# SPDX-License-Identifier: Apache-2.0
"""The table of differences in docs/models.md: every option that it names can be set."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedgerow.apps.navigation import NavigationSettings
from hedgerow.apps.planner import GridSettings
from hedgerow.metrics.catalogue import METRICS
from hedgerow.models.presets import with_preset
from hedgerow.models.registry import MODELS
from hedgerow.planar.copula import NeighbourCopula
from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.regression import Observations, Scale
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.reproduce.experiment import find_experiment
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import Aim
from hedgerow.sensor.pose_errors import PoseErrors

PAGE = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## 31. Differences from the papers") :]


LINES = [[cell.strip() for cell in line[1:-1].split("|")] for line in SECTION.splitlines() if line.startswith("| ")]
ROWS = [cells for cells in LINES if cells[0] not in ("where", "---")]


def learn(model: str, preset: str | None = None, **parameters: Any) -> None:
    """Check parameters as hr.learn does, without a log."""
    MODELS[model].parse(with_preset(model, preset, parameters))


def compare_keys(key: str) -> None:
    assert key in METRICS


NAMES = {
    "Aim": Aim,
    "BeamSettings": BeamSettings,
    "GridSettings": GridSettings,
    "NPReg": NPReg,
    "NeighbourCopula": NeighbourCopula,
    "NavigationSettings": NavigationSettings,
    "PoseErrors": PoseErrors,
    "Sensor": Sensor,
    "VegetationSettings": VegetationSettings,
    "compare_keys": compare_keys,
    "learn": learn,
    "scale": Scale(high_m=4.5, step_m=0.001),
    "training": Observations(np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([1.0, 2.0])),
}


def parse_command(text: str) -> None:
    """Parse a command as the command line does, without running it."""
    from hedgerow.cli.app import app, load_verbs

    load_verbs()
    words = shlex.split(text)[1:]
    app.parse_args(words, exit_on_error=False, print_error=False)
    if words[0] == "reproduce":
        find_experiment(words[1])


@pytest.mark.parametrize("cells", ROWS, ids=[f"{each[0]} {each[1][:40]}" for each in ROWS])
def test_every_option_of_a_row_can_be_set(cells):
    assert len(cells) == 5, "a row has five cells"
    codes = re.findall(r"`([^`]+)`", cells[4])
    assert codes or cells[4].startswith("none")
    for code in codes:
        if code.startswith("hedgerow "):
            parse_command(code)
        else:
            eval(code, dict(NAMES))


def test_all_papers_have_a_table():
    for paper in ("Browning 2012", "Deschaud 2012", "Goodin 2018", "Mattes 2021", "Tallavajhula 2018"):
        assert f"### {paper}" in SECTION
