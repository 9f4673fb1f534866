# SPDX-License-Identifier: Apache-2.0
"""The viewer as a browser shows it: headless Chromium with a software renderer."""

import io
import sys
import threading
import time

import numpy as np
import pytest
from chromium import Browser, find_chromium
from sessions import fan, layer, session_of, wall_world

from hedgerow.view.web.frame import Choice
from hedgerow.view.web.server import WebServer

pytest.importorskip("viser", reason="viser is not installed: pip install 'hedgerow[view]'")
pytestmark = [
    pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed (Debian: apt install chromium)"),
    pytest.mark.skipif(sys.platform != "linux", reason="the flags of the software renderer are those of Linux"),
]
REAL_BLUE = (86, 180, 233)


@pytest.fixture
def page(tmp_path):
    """A log and a world behind it, in the browser."""
    from hedgerow.view.web.viewer import Viewer

    started = WebServer(port=0)
    server = started.viser
    session = session_of(fan(n=4000, sweeps=2, every=10), world=wall_world(x_m=14.0))
    viewer = Viewer(server, session, Choice(quantity="layer", moving_points=20_000))
    viewer.panel.size.value = 0.3
    loop = threading.Thread(target=viewer.run)
    loop.start()
    try:
        with Browser(tmp_path, width=1000, height=500) as browser:
            browser.open(started.url)
            yield browser, server, viewer
    finally:
        viewer.stop()
        loop.join(20)
        started.close()


def pixels(browser):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(browser.screenshot())).convert("RGB")).astype(int)


def of_colour(image, rgb, tolerance=12):
    """(K, 2) pixels, column and row, of a colour, left of the panel."""
    rows, columns = np.nonzero((np.abs(image[:, :560] - rgb) <= tolerance).all(axis=2))
    return np.c_[columns, rows]


def until_drawn(browser, rgb, n=200):
    found = np.zeros((0, 2))
    for _ in range(60):
        found = of_colour(pixels(browser), rgb)
        if len(found) > n:
            return found
        browser.run("new Promise(done => setTimeout(done, 200))")
    raise AssertionError(f"{len(found)} pixels of colour {rgb}")


def test_the_clouds_are_drawn_and_a_click_shows_the_density_of_a_beam(page):
    browser, server, _ = page
    browser.wait_for("sweep 0: 7,600 points")  # nine of ten real beams and all simulated ones
    found = until_drawn(browser, REAL_BLUE)
    x, y = found[len(found) // 2].tolist()
    browser.click(x, y)
    browser.wait_for("log density")
    assert "sweep 0, beam" in browser.run("document.body.innerText")
    line = server.scene.get_handle_by_name("/beam/line").points[0]
    # The real wall stands at 10 m, the simulated one at 14; the line ends a twentieth behind the farther return.
    assert line[1, 0] == pytest.approx(1.05 * 14, abs=0.05)
    assert browser.errors == []


def test_while_the_camera_is_dragged_fewer_points_are_drawn_and_then_all_again(page):
    browser, _, viewer = page
    viewer.session.layers[0] = layer(fan(n=60_000, sweeps=2), "large")
    viewer.session.layers.pop()
    viewer.choice.position = 1  # the first sweep is cached
    viewer.change("clouds")
    browser.wait_for("sweep 1: 60,000 points")

    def drawn():
        return sum(len(each.points) for each in viewer.drawing.cloud(0).slices.values() if each.visible)

    def mouse(kind, x, **more):
        browser.send("Input.dispatchMouseEvent", type=kind, x=x, y=250, button="left", **more)

    mouse("mousePressed", 100, clickCount=1)
    seen, end = [], time.monotonic() + 20
    while 15_000 not in seen and time.monotonic() < end:
        mouse("mouseMoved", 100 + len(seen) % 200, buttons=1)
        seen.append(drawn())
    mouse("mouseReleased", 100, clickCount=1)
    assert 15_000 in seen  # a quarter: half would be more than the 20,000 that were allowed
    while drawn() < 60_000 and time.monotonic() < end:
        time.sleep(0.05)
    assert drawn() == 60_000
