# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the core with hostile arguments of the right type: it refuses or answers, it never dies or hangs.

`make asan` runs these under AddressSanitizer and UBSan, where reading or writing outside an array dies too.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_calls import FOR_BENCHMARKS, KERNELS

from hedgerow import _core

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of memory and time are another matter on Windows")
SCRIPT = Path(__file__).with_name("hostile_calls.py")


def test_every_name_of_the_core_is_tried():
    covered = {name for kernel in KERNELS.values() for name in kernel.covers} | set(FOR_BENCHMARKS)
    public = {name for name in dir(_core) if callable(getattr(_core, name)) and not name.startswith("_")}
    assert public <= covered


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernel_refuses_or_answers(kernel):
    done = subprocess.run([sys.executable, str(SCRIPT), kernel], capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    tried = [line for line in lines if not line.startswith("  ")]
    assert done.returncode == 0 and tried[-1] == "end", f"died at {tried[-1:]}: {done.stderr[-2000:]}"
    assert len(tried) > 20
    # Under AddressSanitizer refused memory is told there, beside the MemoryError.
    assert [line for line in done.stderr.splitlines() if "AddressSanitizer failed to allocate" not in line] == []


def test_refusals_name_the_argument():
    done = subprocess.run([sys.executable, str(SCRIPT), "beams"], capture_output=True, text=True, timeout=600)
    assert "  ValueError: origin_m: must be finite and not so large" in done.stdout
    assert "  TypeError: direction: must be C-contiguous" in done.stdout
    assert "  TypeError: ring: must have shape (40,), not (39,)" in done.stdout
