# SPDX-License-Identifier: Apache-2.0
"""Every example runs as it stands and prints something."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
DRIVE = ROOT.parent / "shared/data/kitti_raw_sample/2011_09_26/2011_09_26_drive_0005_sync"


def test_there_are_examples():
    assert [path.name[:2] for path in EXAMPLES] == [f"{i + 1:02}" for i in range(len(EXAMPLES))]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path):
    recording = [DRIVE] if "kitti" in path.stem and DRIVE.is_dir() else []  # without one that example says so and ends
    done = subprocess.run([sys.executable, path, *recording], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout
