# SPDX-License-Identifier: Apache-2.0
"""All benchmarks, one table. Ratios are measured in one run with the contenders taking turns.

python benchmarks/run.py [NAME ...]     NAME: a word of ALL; default: all of them
"""

import importlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
BUILD = HERE.parent / "build" / "bench"
ALL = [
    "triangles",
    "gaussians",
    "beam",
    "growth",
    "beams",
    "learning",
    "refined",
    "memory",
    "live",
    "crowd",
    "risk",
    "planar",
    "compose",
    "segmentation",
]


def build_raw_loops():
    """Compile benchmarks/raw into build/bench; quick if nothing changed."""
    cmake = [str(Path(sys.executable).parent / "cmake")]
    configure = [*cmake, "-S", HERE / "raw", "-B", BUILD, f"-DPython_EXECUTABLE={sys.executable}"]
    for command in (configure, [*cmake, "--build", BUILD]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
    sys.path.insert(0, str(BUILD))


def main(names):
    build_raw_loops()
    table = Table(title="Hedgerow benchmarks", title_justify="left")
    for heading in ("what", "measured", "goal", ""):
        table.add_column(heading)
    found = []
    console = Console(width=140)
    for name in names:
        console.print(f"running {name} ...", highlight=False)
        for result in importlib.import_module(name).results():
            table.add_row(result.what, result.value, result.goal, {True: "yes", False: "NO", None: ""}[result.met])
            found.append(asdict(result))
    console.print(table)
    console.print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores; busy machines fall short")
    out = HERE.parent / "out" / "bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:] or ALL)
