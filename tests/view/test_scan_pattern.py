# SPDX-License-Identifier: Apache-2.0
"""The picture of a scan, and sensors in words."""

import subprocess
import sys

import numpy as np
import pytest

from hedgerow.errors import FileError
from hedgerow.sensor import Sensor
from hedgerow.sensor.describe import COLUMNS, catalogue_rows, details
from hedgerow.view.scan_pattern import draw_pattern


@pytest.mark.parametrize("name", ["hdl-64e", "lms-291", "mid-360"])
def test_picture_is_a_png_with_coloured_dots_in_it(tmp_path, name):
    from matplotlib.image import imread

    path = tmp_path / "scan.png"
    draw_pattern(Sensor.named(name), path)
    image = imread(path)[..., :3]
    assert image.shape == (880, 1320, 3)
    coloured = np.ptp(image, axis=2) > 0.2
    # the upper panel, without its colour bar: dots of one sweep
    assert coloured[60:400, 70:1180].mean() > 0.005


def test_picture_shows_both_blocks_of_the_hdl_64e(tmp_path):
    from matplotlib.image import imread

    path = tmp_path / "scan.png"
    draw_pattern(Sensor.named("hdl-64e"), path)
    coloured = np.ptp(imread(path)[60:400, 70:1180, :3], axis=2) > 0.2
    upper, lower = coloured[:165].mean(), coloured[175:].mean()
    assert upper > lower > 0.05  # the lower block fires a third as often


def test_picture_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"scan.png: the folder .*no/such does not exist"):
        draw_pattern(Sensor.named("neato-xv-11"), tmp_path / "no/such/scan.png")
    with pytest.raises(FileError, match=r"scan.nonsense: unknown kind of picture"):
        draw_pattern(Sensor.named("neato-xv-11"), tmp_path / "scan.nonsense")


def test_table_has_a_row_for_each_sensor():
    rows = catalogue_rows()
    assert [row["name"] for row in rows] == Sensor.names()
    assert all(tuple(row) == COLUMNS for row in rows)
    hdl = next(row for row in rows if row["name"] == "hdl-64e-s2")
    assert (hdl["rings"], hdl["pulses/s"], hdl["range [m]"]) == ("64", "1,333,120", "0.9 to 120")
    assert hdl["divergence [mrad]"] == "3.3 x 0.7"


@pytest.mark.parametrize("name", Sensor.names())
def test_details_tell_figures_and_sources(name):
    sensor = Sensor.named(name)
    told = dict(details(sensor))
    assert told["sweep"].startswith(f"{sensor.pulses_per_sweep:,} pulses")
    assert told["sources"].splitlines() == sensor.config.sources
    assert f"{sensor.rate_hz:g} Hz" in told["rate"]


def test_importing_sensors_loads_no_heavy_package():
    code = "import sys, hedgerow.sensor; print([n for n in ('pydantic', 'matplotlib', 'scipy') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
