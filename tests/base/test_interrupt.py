# SPDX-License-Identifier: Apache-2.0
"""Signals that end a process: none is lost, and what guards against them decides when."""

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are another matter on Windows")
START = """
import os, signal, sys, time
from hedgerow.base.interrupt import Ended, InterruptGuard, delay_interrupt, end_like_interrupt
end_like_interrupt()
def tell(number):
    os.kill(os.getpid(), number)
"""
IN_GARBAGE = """
class Closing:
    def __del__(self):
        tell(signal.{0})
        time.sleep(0.01)
try:
    Closing()
    time.sleep(5)
    print("lost")
except KeyboardInterrupt as error:
    print(type(error).__name__)
"""
GUARDED = """
try:
    with delay_interrupt():
        tell(signal.{0})
        time.sleep(0.05)
        print("whole")
except KeyboardInterrupt as error:
    print(type(error).__name__)
"""
GUARDED_TWICE = """
with InterruptGuard() as stop:
    with delay_interrupt():
        tell(signal.{0})
        time.sleep(0.05)
    print("whole", stop.asked)
try:
    stop.interrupt()
except KeyboardInterrupt as error:
    print(type(error).__name__)
"""


def said(code):
    done = subprocess.run([sys.executable, "-c", START + code], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("name", "error"), [("SIGTERM", "Ended"), ("SIGHUP", "Ended"), ("SIGINT", "KeyboardInterrupt")]
)
def test_a_signal_that_python_would_ignore_comes_again(name, error):
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as under nohup, and stays so")
    assert said(IN_GARBAGE.format(name)) == [error]


@pytest.mark.parametrize(("name", "error"), [("SIGTERM", "Ended"), ("SIGINT", "KeyboardInterrupt")])
def test_a_guard_lets_the_work_end_first(name, error):
    assert said(GUARDED.format(name)) == ["whole", error]


@pytest.mark.parametrize(("name", "error"), [("SIGTERM", "Ended"), ("SIGINT", "KeyboardInterrupt")])
def test_a_guard_within_a_guard_only_asks(name, error):
    assert said(GUARDED_TWICE.format(name)) == ["whole", "True", error]


def test_what_is_ignored_stays_ignored():
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + START + "tell(signal.SIGHUP); print('on')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.returncode) == ("on\n", 0)


def test_other_errors_that_python_ignores_are_told_as_before():
    code = START + "class Broken:\n    def __del__(self): raise ValueError('no')\nBroken()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert "ValueError: no" in done.stderr
    assert done.returncode == 0
