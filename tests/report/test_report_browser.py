# SPDX-License-Identifier: Apache-2.0
"""The report on a phone and on paper, as headless Chromium shows it."""

import base64
import re
import sys

import numpy as np
import pytest
from chromium import Browser, find_chromium

import hedgerow as hr
from hedgerow.metrics import compare
from hedgerow.report import write_report

pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (Debian: apt install chromium)"),
    pytest.mark.skipif(sys.platform != "linux", reason="the flags of the software renderer are those of Linux"),
]
OUTSIDE = """[...document.querySelectorAll("body *")].filter(e => !e.closest(".wide") &&
  e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName).join(" ")"""
SHOWN = """[...document.querySelectorAll("img")].map(e => e.naturalWidth).join(" ")"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of five simulations with a long command, the widest that a phone has to take."""
    rng = np.random.default_rng(0)
    azimuth = np.linspace(-3, 3, 2000)
    directions = np.c_[np.cos(azimuth), np.sin(azimuth), np.where(np.arange(2000) % 2, 0.1, -0.1)]
    real = hr.Log.from_arrays(
        origins=(0, 0, 0), directions=directions / np.linalg.norm(directions, axis=1, keepdims=True),
        ranges=rng.uniform(4, 20, 2000), rings=np.arange(2000) % 2, max_range_m=50,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "report.html"
    simulations = {f"simulation-{i}": real for i in range(5)}
    write_report(path, compare(real, simulations), real, simulations, commands=["hedgerow " + "x" * 300])
    return path


def test_a_phone_shows_it_without_scrolling_sideways(report, tmp_path):
    with Browser(tmp_path) as browser:
        browser.send("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        browser.open(report.as_uri())
        browser.wait_for("How this was made")
        assert browser.run("document.documentElement.scrollWidth") == 390
        assert browser.run(OUTSIDE) == ""
        narrow = [int(width) for width in browser.run(SHOWN).split()]
        assert all(0 < width <= 780 for width in narrow)  # the phones' own pictures: letters twice as large


def test_paper_keeps_the_table_of_scores_on_one_page(report, tmp_path):
    with Browser(tmp_path) as browser:
        browser.open(report.as_uri())
        browser.wait_for("How this was made")
        assert max(int(width) for width in browser.run(SHOWN).split()) == 1300
        data = browser.send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
    pages = re.findall(rb"/Type\s*/Page\b", base64.b64decode(data))
    assert 3 <= len(pages) <= 9
