# SPDX-License-Identifier: Apache-2.0
"""Sensor files with hostile values: one sentence each, and no sweep that fills the memory."""

import tomllib
from importlib import resources

import numpy as np
import pytest
from hostile import changes, outcomes, try_sensor

from hedgerow.errors import FileError
from hedgerow.log import Beams, Log, Returns
from hedgerow.sensor import Sensor


@pytest.mark.parametrize("name", ["hdl-64e", "mid-360", "lms-291", "os1-64"])
def test_one_hostile_value_in_a_sensor_never_leads_to_more_than_a_sentence(tmp_path, name):
    text = (resources.files("hedgerow.sensor") / "catalogue" / f"{name}.toml").read_text(encoding="utf-8")
    files = changes(tomllib.loads(text), 40)
    faults = [(each.name, each.fault) for each in outcomes(try_sensor, files, tmp_path, most_s=30) if each.fault]
    assert not faults


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("default_hz = 1e-300", "pattern.rates.default_hz"),
        ("default_hz = 1e18", "pattern.rates.default_hz"),
        ("default_hz = nan", "pattern.rates.default_hz"),
        ("default_hz = -1", "pattern.rates.default_hz"),
    ],
)
def test_rates_that_cannot_be_are_refused(tmp_path, field, words):
    text = (resources.files("hedgerow.sensor") / "catalogue" / "vlp-16.toml").read_text(encoding="utf-8")
    changed = text.replace("default_hz = 10", field)
    assert changed != text
    (tmp_path / "own.toml").write_text(changed)
    with pytest.raises(FileError, match=rf"own.toml: {words}: "):
        Sensor.load(tmp_path / "own.toml")


@pytest.mark.parametrize(
    "said",
    [
        {"config": 3, "rate_hz": 10},
        {"config": {}},
        {"config": {}, "rate_hz": "fast"},
        {"config": {}, "rate_hz": [10]},
        {"config": {"beam": None}, "rate_hz": 10},
    ],
)
def test_what_a_log_says_of_its_sensor_may_be_damaged(said):
    beams = Beams.from_arrays(origins=[[0, 0, 0]], directions=[[1, 0, 0]])
    log = Log(beams, Returns(range_m=np.array([3.0], dtype=np.float32)), sensor="vlp-16", metadata={"sensor": said})
    with pytest.raises(FileError, match="the log's sensor vlp-16: "):
        Sensor.of(log)
