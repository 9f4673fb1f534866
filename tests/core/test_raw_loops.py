# SPDX-License-Identifier: Apache-2.0
"""The raw Embree loops of the benchmarks are no part of the package, but they share its headers: they must compile."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from hedgerow import _core

ROOT = Path(__file__).parents[2]
RAW = ROOT / "benchmarks" / "raw" / "raw.cpp"


def test_the_raw_loops_of_the_benchmarks_compile():
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("there is no C++ compiler here")
    nanobind = pytest.importorskip("nanobind", reason="nanobind is needed to compile")
    if not RAW.exists():
        pytest.skip("the benchmarks are not here")
    major = _core.embree_version.split(".")[0]
    check = [compiler, "-std=c++20", "-fsyntax-only", f"-DHEDGEROW_EMBREE_MAJOR={major}"]
    # -isystem, as CMake has other people's headers: their warnings are not ours.
    for folder in (nanobind.include_dir(), sysconfig.get_path("include")):
        check += ["-isystem", folder]
    headers = f"#include <embree{major}/rtcore.h>\n#include <tbb/parallel_for.h>\n#include <Python.h>\n"
    found = subprocess.run([*check, "-x", "c++", "-"], input=headers, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("the headers of Embree, TBB or Python are not here")
    done = subprocess.run([*check, "-I", str(ROOT / "cpp"), str(RAW)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
