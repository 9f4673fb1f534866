# SPDX-License-Identifier: Apache-2.0
"""What a risk evaluation costs besides the program: one that does nothing, run, stored, and scored."""

import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Result, best_seconds

from hedgerow.apps import number, program
from hedgerow.log import Log
from hedgerow.risk.measure import measure
from hedgerow.risk.score import score
from hedgerow.risk.sources import FunctionSource, Scene

N_SCENES, N_SETTINGS, N_BEAMS = 20, 100, 100_000
GOAL_MS = 2.0


@program(x=number(0, 1), y=number(0, 1))
def nothing(log, parameters, truth):
    return parameters["x"]


def make_log() -> Log:
    direction = np.random.default_rng(0).normal(size=(N_BEAMS, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return Log.from_arrays(origins=[0, 0, 0], directions=direction, ranges=np.full(N_BEAMS, 5.0), max_range_m=100)


def results():
    scene = Scene(make_log(), None)
    names = [f"s{i}" for i in range(N_SCENES)]
    sources = [
        FunctionSource("real", names, lambda name, seed: scene, "real", is_random=False),
        FunctionSource("simulated", names, lambda name, seed: scene),
    ]

    def run(jobs: int = 1):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.parquet"
            return measure(nothing, sources, settings=N_SETTINGS, seeds=[0], output=path, jobs=jobs)

    [seconds] = best_seconds(run, rounds=3)
    table = run()
    each_ms = 1e3 * seconds / table.n_runs
    what = f"risk: overhead of a run ({table.n_runs:,} runs, stored)"
    yield Result(what, f"{each_ms:.3f} ms", f"< {GOAL_MS:g} ms", each_ms < GOAL_MS)
    start_s = time.perf_counter()
    several = run(jobs=2)
    each_ms = 1e3 * (time.perf_counter() - start_s) / several.n_runs
    what = f"risk: the same in two processes, their start and logs of {N_BEAMS:,} beams included"
    yield Result(what, f"{each_ms:.3f} ms", "", None)
    [seconds] = best_seconds(lambda: score(table, nothing), rounds=3)
    yield Result("risk: scores of the table, 1,000 resamplings", f"{seconds:.2f} s", "", None)


if __name__ == "__main__":
    for result in results():
        print(result)
