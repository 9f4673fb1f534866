# SPDX-License-Identifier: Apache-2.0
"""From test_cli: run, assert_refused."""

import subprocess
import sys


def run(*words, cwd=None):
    command = [sys.executable, "-c", "from hedgerow.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


def assert_refused(done, *parts):
    """Exit code 2, one sentence on standard error, no traceback, nothing on standard output."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("hedgerow: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for part in parts:
        assert part in done.stderr
