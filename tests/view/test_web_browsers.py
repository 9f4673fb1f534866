# SPDX-License-Identifier: Apache-2.0
"""What the viewer hears from browsers, with ones that are not real: answers, silence, and a camera that moves."""

import asyncio
import threading
import time

import pytest

from hedgerow.view.web.browsers import Browsers
from hedgerow.view.web.pace import START, Pace


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


class Server:
    def on_client_connect(self, callback):
        self.connect = callback


@pytest.fixture
def watched():
    server, pace, changes = Server(), Pace(), []
    return server, pace, Browsers(server, pace, lambda: changes.append(1)), changes  # pyright: ignore[reportArgumentType]  # a stand-in


def until(fact):
    end = time.monotonic() + 10
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_it_is_busy_until_the_browser_answers_and_asks_no_second_time_before(watched):
    server, pace, browsers, _ = watched
    client = Client()
    server.connect(client)
    browsers.ask()
    browsers.ask()
    until(lambda: client.asked == 1)
    assert browsers.busy
    client.answers.release()
    until(lambda: not browsers.busy)
    assert client.asked == 1
    assert pace.budget(time.monotonic()) == START  # an answer to a bare question says nothing of speed


def test_a_quick_answer_brings_more_points_and_says_so(watched):
    server, pace, browsers, changes = watched
    client = Client()
    server.connect(client)
    client.answers.release(2)
    before = len(changes)
    browsers.ask(START)
    until(lambda: not browsers.busy and len(changes) > before)
    assert client.asked == 2
    assert pace.budget(time.monotonic()) == 2 * START  # at most doubled by one answer


@pytest.mark.parametrize("error", [RuntimeError("closed"), TimeoutError("hidden")])
def test_a_browser_that_goes_away_does_not_block(watched, error):
    server, _, browsers, _ = watched
    client = Client(error)
    server.connect(client)
    client.answers.release()
    browsers.ask(START)
    until(lambda: not browsers.busy)


def test_without_a_browser_nothing_is_asked(watched):
    _, _, browsers, _ = watched
    browsers.ask(5)
    assert not browsers.busy


def test_the_first_message_of_a_moving_camera_is_told_and_later_ones_are_not(watched):
    server, pace, _, changes = watched
    client = Client()
    server.connect(client)
    before = len(changes)
    client.camera.move()
    client.camera.move()
    assert len(changes) == before + 1
    assert pace.rests_in_s(time.monotonic()) > 0


def test_the_browser_that_moved_last_is_the_one_in_use(watched):
    server, _, browsers, _ = watched
    first, second = Client(), Client()
    server.connect(first)
    server.connect(second)
    first.camera.move()
    first.answers.release()
    browsers.ask()
    until(lambda: not browsers.busy)
    assert (first.asked, second.asked) == (1, 0)
