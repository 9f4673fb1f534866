# SPDX-License-Identifier: Apache-2.0
"""Rows as a benchmark measures them, with figures that are made up; and a stand-in for the process that measures."""

from pathlib import Path

import hedgerow
from hedgerow.bench.journal import Row, machine
from hedgerow.bench.process import peak_mb
from hedgerow.bench.steps import STEPS

VALUES = {
    **{"beams": 1_000_000, "seconds": 2.0, "processor_s": 3.5, "open_s": 0.5, "start_s": 1.5},
    **{"own_mb": 100.0, "worker_mb": [50.0]},
}


def made_row(part, settings, **values):
    return Row(part, settings, VALUES | values, 0.5, "2026-01-02T03:04:05+00:00", hedgerow.__version__, machine())


def measure_here(step, arguments, *, threads=None):
    """Run a step in this process: quick, for tests of what is around it."""
    plain = {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}
    return STEPS[step](**plain) | {"own_mb": peak_mb()}
