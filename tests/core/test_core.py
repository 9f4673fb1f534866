# SPDX-License-Identifier: Apache-2.0
"""The native module by itself: its random numbers, its refusals, its manners during long calls."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

from hedgerow import _core

FALSE_ALARM = 1e-6


def test_coins_are_uniform_over_pulses_and_over_elements():
    n = 1 << 20
    count = np.arange(n, dtype=np.int64)
    for pulse, element in ((count, np.zeros_like(count)), (np.zeros_like(count), count), (count, count)):
        coins = _core.draw_coins(5, pulse, element)
        observed = np.bincount((coins * 4096).astype(int), minlength=4096)
        statistic = ((observed - n / 4096) ** 2 / (n / 4096)).sum()
        assert FALSE_ALARM < chi2.sf(statistic, 4095) < 1 - FALSE_ALARM  # too even is wrong too


def test_coins_of_neighbouring_pulses_elements_and_seeds_are_independent():
    n = 1 << 20
    pulse = np.repeat(np.arange(1024, dtype=np.int64), 1024)
    element = np.tile(np.arange(1024, dtype=np.int64), 1024)
    coins = _core.draw_coins(1, pulse, element)
    square = coins.reshape(1024, 1024)
    pairs = (
        (square[:, 1:].ravel(), square[:, :-1].ravel()),
        (square[1:].ravel(), square[:-1].ravel()),
        (coins, _core.draw_coins(2, pulse, element)),
        (coins, _core.draw_coins(1, pulse, element + (1 << 32))),
        (coins, _core.draw_coins(1, pulse + (1 << 32), element)),
    )
    for a, b in pairs:
        cells = (a * 32).astype(int) * 32 + (b * 32).astype(int)
        expected = len(a) / 1024
        statistic = ((np.bincount(cells, minlength=1024) - expected) ** 2 / expected).sum()
        assert FALSE_ALARM < chi2.sf(statistic, 1023) < 1 - FALSE_ALARM
    assert n == len(coins)


def test_coins_lie_strictly_between_0_and_1():
    coins = _core.draw_coins(3, np.arange(1 << 22, dtype=np.int64), np.zeros(1 << 22, dtype=np.int64))
    assert coins.min() > 0
    assert coins.max() < 1


def test_normals_are_normal_and_independent_of_the_coins():
    pulse = np.arange(1_000_000, dtype=np.int64)
    first, second = _core.draw_normals(9, pulse)
    coins = _core.draw_coins(9, pulse, np.zeros_like(pulse))
    for normals in (first, second):
        assert kstest(normals, "norm").pvalue > FALSE_ALARM
        assert abs(np.mean(normals**4) - 3) < 5 * np.sqrt(96 / len(pulse))  # 5 sigma: 6e-7
    correlation = np.corrcoef([first, second, coins, first**2, second**2])
    assert np.abs(correlation - np.eye(5)).max() < 5 / np.sqrt(len(pulse))


def assert_uniform(numbers, n_cells):
    expected = len(numbers) / n_cells
    statistic = ((np.bincount((numbers * n_cells).astype(int), minlength=n_cells) - expected) ** 2 / expected).sum()
    assert FALSE_ALARM < chi2.sf(statistic, n_cells - 1) < 1 - FALSE_ALARM


def test_numbers_of_labels_are_uniform_over_pulses_and_over_elements():
    count = np.arange(1 << 20, dtype=np.int64)
    for pulse, element in ((count, count * 0), (count * 0, count), (count, count), (count, count << 32)):
        assert_uniform(_core.draw_label_numbers(5, pulse, element), 4096)


def test_numbers_of_labels_are_independent_of_coins_and_normals():
    pulse = np.arange(1 << 20, dtype=np.int64)
    mine = _core.draw_label_numbers(7, pulse, pulse * 0 + 12)
    others = [_core.draw_coins(7, pulse, pulse * 0 + element) for element in (12, 11, 13, 0)]
    others += [norm.cdf(normals) for normals in _core.draw_normals(7, pulse)]
    others += [_core.draw_label_numbers(7, pulse, pulse * 0 + 13), np.append(mine[1:], mine[:1])]
    for other in others:
        both = (np.floor(mine * 32) * 32 + np.floor(other * 32).clip(0, 31) + 0.5) / 1024
        assert_uniform(both, 1024)


def test_numbers_of_labels_stay_uniform_behind_many_elements_that_let_the_ray_pass():
    pulse = np.arange(1 << 21, dtype=np.int64)
    passed = np.ones(len(pulse), dtype=bool)
    for element in range(1, 11):
        passed &= _core.draw_coins(3, pulse, pulse * 0 + element) < 0.7
    passed &= _core.draw_coins(3, pulse, pulse * 0) >= 0.3
    assert passed.sum() > 30_000
    assert_uniform(_core.draw_label_numbers(3, pulse[passed], pulse[passed] * 0), 64)


def beam_arrays(n=4) -> dict[str, Any]:
    direction = np.zeros((n, 3), dtype=np.float32)
    direction[:, 0] = 1
    return {
        "origin_m": np.zeros((n, 3)),
        "direction": direction,
        "pulse": np.arange(n, dtype=np.int64),
        "ring": np.zeros(n, dtype=np.uint16),
        "sweep": np.zeros(n, dtype=np.int32),
        "scene_origin_m": (0.0, 0.0, 0.0),
    }


FIRE: dict[str, Any] = {"limits": _core.RangeLimits(min_m=0.0, max_m=10.0), "seed": 0, "threads": 0, "progress": None}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("origin_m", np.zeros((4, 3), dtype=np.float32), "origin_m: must be of type float64"),
        ("direction", np.zeros((4, 3)), "direction: must be of type float32"),
        ("direction", np.zeros((4, 2), dtype=np.float32), r"direction: must have shape \(4, 3\), not \(4, 2\)"),
        ("direction", np.zeros((3, 4), dtype=np.float32).T, "direction: must be C-contiguous"),
        ("ring", np.zeros(3, dtype=np.uint16), r"ring: must have shape \(4,\), not \(3,\)"),
        ("sweep", np.zeros((4, 1), dtype=np.int32), r"sweep: must have shape \(4,\), not \(4, 1\)"),
    ],
)
def test_arrays_of_a_wrong_type_or_shape_are_refused_by_name(name, value, message):
    with pytest.raises(TypeError, match=message):
        _core.BeamArrays(**(beam_arrays() | {name: value}))


def test_results_are_fresh_arrays_and_inputs_are_not_copied():
    beams = beam_arrays(1000)
    for array in (value for value in beams.values() if isinstance(value, np.ndarray)):
        array.flags.writeable = False  # a copy would hide that the core only reads
    first = _core.Scene().fire(_core.BeamArrays(**beams), **FIRE)
    second = _core.Scene().fire(_core.BeamArrays(**beams), **FIRE)
    assert first.range_m.ctypes.data != second.range_m.ctypes.data
    assert first.range_m.ctypes.data == first.range_m.ctypes.data
    base = first.range_m.base
    assert first.range_m.flags.owndata or (base is not None and base.flags.owndata)


def test_beams_keep_their_arrays_and_answers_outlive_them():
    beams = beam_arrays(1000)
    held = weakref.ref(beams["origin_m"])
    native = _core.BeamArrays(**beams)
    del beams
    assert held() is not None
    range_m = _core.Scene().fire(native, **FIRE).range_m
    del native
    gc.collect()
    assert held() is None
    assert np.isinf(range_m).all()


def test_progress_counts_up_to_the_number_of_beams():
    done = []
    _core.Scene().fire(_core.BeamArrays(**beam_arrays(5_000_000)), **dict(FIRE, progress=done.append))
    assert done == sorted(done)
    assert len(done) > 1
    assert done[-1] == 5_000_000


def test_an_error_in_the_progress_call_stops_the_work_and_comes_through():
    def refuse(done):
        raise RuntimeError(f"stop at {done}")

    with pytest.raises(RuntimeError, match="stop at"):
        _core.Scene().fire(_core.BeamArrays(**beam_arrays(100)), **dict(FIRE, progress=refuse))


def test_other_python_threads_run_during_a_firing():
    ticks, stop = [], threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    _core.Scene().fire(_core.BeamArrays(**beam_arrays(3_000_000)), **FIRE)
    end = time.perf_counter()
    stop.set()
    thread.join()
    # With the GIL held there would be at most one tick at either end.
    assert sum(start < t < end for t in ticks) > 3


ENDLESS = """
import numpy as np, sys
from hedgerow import _core
n = 1_000_000
direction = np.zeros((n, 3), dtype=np.float32); direction[:, 0] = 1
arrays = {"origin_m": np.zeros((n, 3)), "direction": direction, "pulse": np.arange(n),
          "ring": np.zeros(n, np.uint16), "sweep": np.zeros(n, np.int32)}
many = {name: np.concatenate([a] * 40) for name, a in arrays.items()}
beams = _core.BeamArrays(**many, scene_origin_m=(0.0, 0.0, 0.0))
limits = _core.RangeLimits(min_m=0.0, max_m=10.0)
scene = _core.Scene()
print("ready", flush=True)
try:
    while True:
        scene.fire(beams, limits=limits, seed=0, threads=0, progress=None)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_stops_a_long_firing_between_batches():
    child = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "stopped\n"
    assert child.returncode == 0
