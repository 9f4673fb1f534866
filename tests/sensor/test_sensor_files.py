# SPDX-License-Identifier: Apache-2.0
"""A user's own sensor file: loads like the catalogue, and errors name the file and the field in one sentence."""

from importlib import resources

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.errors import FileError, InputError
from hedgerow.sensor import Sensor

OWN = """
name = "mine"
maker = "me"
about = "two lasers"
sources = ["a drawing"]
encoder_step_deg = 0.0
beam = { spot = "circular", divergence_horizontal_mrad = 2, divergence_vertical_mrad = 2, wavelength_nm = 905 }
range = { min_m = 0.5, max_m = 50, sigma_m = 0.01, step_m = 0.001 }
signal = { mode = "first", modes = ["first", "last"], cutoff_m = 0.5 }

[pattern]
kind = "spinning"
turns = "counter-clockwise"
rings = "as listed"
slots_per_turn = 4
rates = { default_hz = 2, min_hz = 1, max_hz = 4 }

[[pattern.group]]
elevation_deg = [10, -10]
time_us = [0, 5]
"""


def write(tmp_path, text=OWN):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def refusal(tmp_path, old, new) -> str:
    """Change the good file in one place and return the message with which it is refused."""
    assert old in OWN
    with pytest.raises(FileError) as caught:
        Sensor.load(write(tmp_path, OWN.replace(old, new)))
    message = str(caught.value)
    assert "mine.toml" in message
    assert "\n" not in message
    assert "pydantic" not in message
    return message


def test_own_file_loads_and_fires(tmp_path):
    sensor = Sensor.load(write(tmp_path))
    assert (sensor.name, sensor.rate_hz, sensor.min_range_m, sensor.max_range_m) == ("mine", 2, 0.5, 50)
    beams = sensor.sweep()
    assert beams.ring.tolist() == [0, 1] * 4
    # two turns a second: slots at 0, 125, 250 and 375 ms, the second laser 5 us and 0.0036 degrees later
    assert beams.time_ns[:4].tolist() == [0, 5_000, 125_000_000, 125_005_000]
    azimuth = np.rad2deg(np.arctan2(beams.direction[:, 1], beams.direction[:, 0]))
    assert_allclose(azimuth[:4], [0, 0.0036, 90, 90.0036], atol=1e-5)


def test_own_file_takes_another_rate(tmp_path):
    assert Sensor.load(str(write(tmp_path)), rate_hz=4).sweep_s == 0.25
    with pytest.raises(InputError, match="rate_hz: mine turns at 1 to 4 Hz, found 5"):
        Sensor.load(write(tmp_path), rate_hz=5)


def test_a_catalogue_file_loads_as_an_own_file(tmp_path):
    text = (resources.files("hedgerow.sensor") / "catalogue" / "vlp-16.toml").read_text()
    assert Sensor.load(write(tmp_path, text)).sweep().equal(Sensor.named("vlp-16").sweep())


def test_missing_file_and_broken_toml_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"nowhere.toml: no such sensor file"):
        Sensor.load(tmp_path / "nowhere.toml")
    with pytest.raises(FileError, match=r"mine.toml: not valid TOML: .*line 1"):
        Sensor.load(write(tmp_path, "name = = 3"))
    with pytest.raises(FileError, match="cannot be read as a sensor file"):
        Sensor.load(tmp_path)
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"binary.toml: cannot be read"):
        Sensor.load(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_m = 50, ", "", "range.max_m: missing; expected: maximum range; nothing farther is seen"),
        ('maker = "me"\n', "", "maker: missing"),
        ("max_m = 50", "max_m = 50, colour = 3", "range.colour: a sensor has no such parameter; it has min_m, max_m"),
        ("[pattern]", "[pattern]\nspeed = 3", "pattern.speed: a sensor has no such parameter"),
        ("max_m = 50", 'max_m = "far"', "range.max_m: input should be a valid number, found 'far'"),
        ("max_m = 50", "max_m = -1", "range.max_m: input should be greater than 0, found -1"),
        ("max_m = 50", "max_m = nan", "range.max_m: .* finite number"),
        ("max_m = 50", "max_m = 0.4", "range.max_m: 0.4 is not above min_m, 0.5"),
        ("step_m = 0.001", "step_m = 0.001, dropout = 1.5", "range.dropout: .* less than or equal to 1"),
        ("elevation_deg = [10, -10]", "elevation_deg = [10, -100]", r"pattern.group.0.elevation_deg.1: .* found -100"),
        ("elevation_deg = [10, -10]", "elevation_deg = []", r"pattern.group.0.elevation_deg: .* at least 1 item"),
        ("time_us = [0, 5]", "time_us = [0]", "pattern.group.0.time_us: has 1 numbers but elevation_deg has 2"),
        ("time_us = [0, 5]", "time_us = [5, 0]", "pattern.group.0.time_us: goes down"),
        ("time_us = [0, 5]", "left_mm = [1, 2, 3]", "pattern.group.0.left_mm: has 3 numbers"),
        ("slots_per_turn = 4", "", "pattern.slot_us: give either slot_us or slots_per_turn"),
        ("slots_per_turn = 4", "slot_us = 4.0", "pattern.group.0.time_us: 5 lies outside the slot of 4 us"),
        ("slots_per_turn = 4", "slots_per_turn = 4\nschedule = [1]", "pattern.schedule: group 0 is missing"),
        ("slots_per_turn = 4", "slots_per_turn = 4\nschedule = [0, 1]", "pattern.schedule: group 1 is missing"),
        ("slots_per_turn = 4", "slot_us = 300000.0", "pattern.slot_us: 300000 is longer than a turn at 4 Hz"),
        ("slots_per_turn = 4", "slot_us = 0.0001", "pattern.slot_us: gives more than 5,000,000 pulses a turn"),
        (
            "time_us = [0, 5]",
            "time_us = [0, 62500]",
            "pattern.group.0.time_us: 62500 lies outside the slot of 62500 us",
        ),
        (
            "time_us = [0, 5]",
            "closed_turn_firings_per_s = 3.0",
            "pattern.group.0.closed_turn_firings_per_s: below one firing a turn at 4 Hz",
        ),
        ("slots_per_turn = 4", "slots_per_turn = 4.5", "pattern.slots_per_turn: .* integer, found 4.5"),
        ('turns = "counter-clockwise"', 'turns = "left"', "pattern.turns: .* found 'left'"),
        ('kind = "spinning"', 'kind = "flash"', "pattern.kind: expected one of .*'flash'"),
        ('kind = "spinning"\n', "", "pattern.kind: missing"),
        ("max_hz = 4", "max_hz = 1.5", "pattern.rates.default_hz: 2 Hz is not allowed; expected 1 to 1.5 Hz"),
        (", min_hz = 1", "", "pattern.rates.allowed_hz: give either"),
        ('mode = "first"', 'mode = "strongest"', "signal.mode: 'strongest' is not among modes"),
        ('["first", "last"]', '["first", "best"]', "signal.modes.1: .* found 'best'"),
        ("divergence_vertical_mrad = 2", "divergence_vertical_mrad = 3", "beam.spot: circular, but"),
        ('sources = ["a drawing"]', "sources = []", "sources: .* at least 1 item"),
        ("encoder_step_deg = 0.0", "encoder_step_deg = true", "encoder_step_deg: .* found True"),
    ],
)
def test_refusals_name_the_field(tmp_path, old, new, message):
    import re

    assert re.search(message, refusal(tmp_path, old, new)), refusal(tmp_path, old, new)


def test_more_errors_are_counted(tmp_path):
    assert refusal(tmp_path, 'maker = "me"\nabout = "two lasers"', "").endswith("(1 more)")


def test_sensors_cannot_be_changed():
    from pydantic import ValidationError

    sensor = Sensor.named("vlp-16")
    with pytest.raises(ValidationError):
        sensor.config.range.max_m = 3
    with pytest.raises(AttributeError):
        sensor.rate_hz = 5  # pyright: ignore[reportAttributeAccessIssue]  # wrong on purpose
    with pytest.raises(ValueError, match="read-only"):
        sensor.pattern.direction[0] = 0
