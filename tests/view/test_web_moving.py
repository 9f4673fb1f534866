# SPDX-License-Identifier: Apache-2.0
"""Fewer points while a camera moves, and playing that waits; with browsers that are not real."""

import asyncio
import inspect
import threading
import time

import pytest
from sessions import fan, session_of

from hedgerow.view.web import viewer as module
from hedgerow.view.web.frame import MOVING_POINTS, Choice
from hedgerow.view.web.server import WebServer

pytest.importorskip("viser", reason="viser is not installed: pip install 'hedgerow[view]'")
N = 60_000


class Camera:
    def on_update(self, callback):
        self.move = lambda: asyncio.run(callback(self))


class Client:
    """Answers when it is allowed to."""

    def __init__(self, error=None):
        self.camera, self.error = Camera(), error
        self.answers = threading.Semaphore(0)
        self.asked = 0

    def get_render(self, height, width, timeout):
        self.asked += 1
        assert self.answers.acquire(timeout=10)
        if self.error is not None:
            raise self.error


@pytest.fixture
def make(monkeypatch):
    """Makes viewers of three sweeps and a browser that joins."""
    servers = []

    def viewer_and_client(error=None, **choice):
        started = WebServer(port=0)
        servers.append(started)
        server = started.viser
        joined = []
        monkeypatch.setattr(server, "on_client_connect", joined.append)
        viewer = module.Viewer(server, session_of(fan(n=N, sweeps=3)), Choice(**choice))
        client = Client(error)
        for callback in joined:
            callback(client)
        viewer.draw()
        return viewer, client

    yield viewer_and_client
    for server in servers:
        server.close()


def drawn(viewer):
    return sum(len(each.points) for each in viewer.drawing.cloud(0).slices.values() if each.visible)


def until(fact):
    end = time.monotonic() + 10
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.parametrize(("points", "moving"), [(20_000, N // 4), (N // 2, N // 2), (N, N), (0, N)])
def test_a_fixed_number_is_drawn_while_the_camera_moves_and_all_when_it_stands(make, monkeypatch, points, moving):
    monkeypatch.setattr(module, "REST_AFTER_S", 100.0)
    viewer, client = make(moving_points=points)
    assert drawn(viewer) == N
    client.camera.move()
    assert not viewer.idle
    viewer.draw()
    assert drawn(viewer) == moving
    monkeypatch.setattr(module, "REST_AFTER_S", 0.0)
    viewer.change("detail")
    viewer.draw()
    assert drawn(viewer) == N


def test_the_loop_draws_all_points_again_by_itself(make):
    viewer, client = make(moving_points=20_000)
    loop = threading.Thread(target=viewer.run)
    loop.start()
    try:
        client.camera.move()
        until(lambda: drawn(viewer) == N // 4)
        until(lambda: drawn(viewer) == N)
        assert not viewer.moving
    finally:
        viewer.stop()
        loop.join(10)
    assert not loop.is_alive()


def test_the_loop_goes_on_after_something_that_cannot_be_drawn(make, caplog):
    viewer, _ = make()
    loop = threading.Thread(target=viewer.run)
    loop.start()
    try:
        viewer.choice.quantity = "no such thing"  # as a browser could say that is none
        viewer.change("clouds")
        until(lambda: caplog.messages)
        viewer.choice.quantity = "height"
        viewer.change("clouds")
        until(lambda: viewer.idle)
        assert loop.is_alive() and "could not draw: KeyError" in caplog.messages[0]
    finally:
        viewer.stop()
        loop.join(10)


def test_the_first_message_of_a_moving_camera_is_told_and_later_ones_are_not(make, monkeypatch):
    monkeypatch.setattr(module, "REST_AFTER_S", 100.0)
    viewer, client = make()
    client.camera.move()
    viewer.draw()
    client.camera.move()
    assert viewer.moving and viewer.idle


def test_playing_goes_on_when_the_browser_has_drawn_and_not_before(make):
    viewer, client = make()
    loop = threading.Thread(target=viewer.run)
    loop.start()
    try:
        viewer.panel.play(True)
        until(lambda: client.asked == 1)
        time.sleep(0.3)  # three sweeps, if it did not wait
        assert (client.asked, viewer.choice.position) == (1, 1)
        client.answers.release()
        until(lambda: client.asked == 2)
        assert viewer.choice.position == 2
    finally:
        viewer.stop()
        client.answers.release(10)
        loop.join(10)
    assert not loop.is_alive()


@pytest.mark.parametrize("error", [TimeoutError(), RuntimeError("it was closed")])
def test_playing_goes_on_without_a_browser_that_is_hidden_or_closed(make, error):
    viewer, client = make(error)
    client.answers.release(100)
    loop = threading.Thread(target=viewer.run)
    loop.start()
    try:
        viewer.panel.play(True)
        until(lambda: client.asked > 2)
    finally:
        viewer.stop()
        loop.join(10)
    assert not loop.is_alive()


def test_the_command_and_the_viewer_agree_on_the_number():
    from hedgerow.cli.view import view

    assert inspect.signature(view).parameters["points_moving"].default == MOVING_POINTS
