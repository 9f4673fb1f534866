# SPDX-License-Identifier: Apache-2.0
"""Pacing against a clock that only moves when told to: nothing here depends on how fast the machine is."""

import pytest

from hedgerow.live.inbox import FairInbox
from hedgerow.live.stream import Pacer


class Clock:
    """Time that passes by sleeping and by working."""

    def __init__(self):
        self.now_s, self.slept_s = 100.0, []

    def __call__(self):
        return self.now_s

    def sleep(self, seconds):
        self.slept_s.append(seconds)
        self.now_s += seconds


def run(work_s, period_s=0.1, clock=None):
    """Send a sweep after each amount of work; return the pacer, the clock and when each was sent."""
    clock = clock or Clock()
    pacer = Pacer(period_s, clock=clock, sleep=clock.sleep)
    sent_s = []
    for each in work_s:
        clock.now_s += each
        pacer.wait()
        sent_s.append(clock.now_s - 100)
        pacer.sent()
    return pacer, clock, sent_s


def test_a_quick_simulation_sends_each_sweep_when_the_sensor_ends_it():
    pacer, clock, sent_s = run([0.03] * 20)
    assert sent_s == pytest.approx([0.1 * (k + 1) for k in range(20)])
    assert clock.slept_s == pytest.approx([0.07] * 20)
    held = pacer.report()
    assert (held.n_sweeps, held.share) == (20, pytest.approx(1))
    assert held.latency_s == pytest.approx(0, abs=1e-9)  # sums of 0.1
    assert held.text().startswith("10.00 sweeps/s, 100.0% of real time, latency 0.0 ms")


def test_a_slow_simulation_never_sleeps_and_says_what_share_it_holds():
    pacer, clock, sent_s = run([0.25] * 8)
    assert clock.slept_s == []
    assert sent_s == pytest.approx([0.25 * (k + 1) for k in range(8)])  # none is left out
    held = pacer.report()
    assert held.share == pytest.approx(0.4)
    assert held.latency_s == pytest.approx(0.15 * 4.5)  # late by 0.15, 0.30, ... 1.20
    assert "4.00 sweeps/s, 40.0% of real time" in held.text()


def test_after_one_delay_it_catches_up():
    pacer, _, sent_s = run([0.02, 0.38, *[0.02] * 6])
    assert sent_s == pytest.approx([0.1, 0.48, 0.5, 0.52, 0.54, 0.6, 0.7, 0.8])
    assert pacer.report().share == pytest.approx(1)
    assert pacer.report().latency_95_s == pytest.approx(0.28 - 0.35 * 0.08)  # 0.28 and 0.20 are the two worst of eight


def test_the_pace_of_late_is_that_since_it_was_last_told():
    pacer, clock, _ = run([0.02] * 4)
    assert pacer.report_latest(1.0) is None
    just_before = pacer.report_latest(0.4 - 1e-9)
    assert just_before is not None and just_before.n_sweeps == 4
    assert pacer.report_latest(0.0) is None  # nothing was sent since
    for _ in range(3):
        clock.now_s += 0.5
        pacer.wait()
        pacer.sent()
    lately = pacer.report_latest(1.0)
    assert lately is not None
    assert (lately.n_sweeps, lately.share) == (3, pytest.approx(0.2))
    assert pacer.report().n_sweeps == 7


def test_an_inbox_keeps_the_order_and_drops_the_oldest_when_full():
    inbox = FairInbox(3)
    assert [inbox.put(1, item) for item in "abcde"] == [None, None, None, "a", "b"]
    assert [inbox.take() for _ in range(3)] == ["c", "d", "e"]
    inbox.put(1, "f")
    inbox.close()
    assert inbox.take() is None


def test_clients_take_turns_in_an_inbox_and_lose_only_their_own():
    inbox = FairInbox(3)
    flood = [inbox.put(1, f"flood {k}") for k in range(1000)]
    assert flood[-1] == "flood 996"
    assert inbox.put(2, "good 0") is None
    assert inbox.put(3, "other") is None
    assert [inbox.take() for _ in range(3)] == ["flood 997", "good 0", "other"]
    assert inbox.put(2, "good 1") is None
    inbox.put(1, "flood 1000")
    assert [inbox.take() for _ in range(3)] == ["flood 998", "good 1", "flood 999"]
    inbox.put(2, "good 2")
    inbox.forget(1)
    assert inbox.take() == "good 2"
