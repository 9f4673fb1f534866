# SPDX-License-Identifier: Apache-2.0
"""Programs and sources of which everything is known: J is a function of the setting, plus a bias, plus noise."""

import zlib
from typing import Any

import numpy as np
from small_logs import make_log

from hedgerow.apps import Outcome, Space, fail, number, ratio, whole
from hedgerow.risk.measure import measure
from hedgerow.risk.sources import FunctionSource, Role, Scene
from hedgerow.risk.table import RiskTable

LOG = make_log()


class Quadratic:
    """J = (x - 0.3)^2 + what the scene adds; fails where asked to."""

    def __init__(self) -> None:
        self.name = "quadratic"
        self.space = Space.of(x=number(0, 1), k=whole(1, 4))
        self.objectives = {"J": ratio("J", "n", "m"), "twice": ratio("twice", "n")}

    def run(self, log, parameters, truth):
        truth.check(parameters)
        if truth.fails(parameters):
            return fail("lost", "here")
        j = (parameters["x"] - truth.optimum) ** 2 + truth.offset(parameters)
        return Outcome({"J": j, "twice": 2 * j, "n": 1.0})


class Offset:
    """What a scene adds to J: a bias, noise of the scene, and noise of the scene and setting."""

    def __init__(self, key, bias=0.0, scene_noise=0.0, run_noise=0.0, failing=0.0, optimum=0.3, crash_at=None):
        self.key, self.bias, self.run_noise, self.failing, self.optimum = key, bias, run_noise, failing, optimum
        self.scene = scene_noise * np.random.default_rng(key).normal()
        self.crash_at = crash_at

    def _rng(self, parameters):
        return np.random.default_rng([*self.key, zlib.crc32(repr(parameters).encode())])

    def fails(self, parameters):
        return parameters["x"] < self.failing

    def check(self, parameters):
        if self.crash_at is not None and abs(parameters["x"] - self.crash_at) < 1e-12:
            raise KeyboardInterrupt

    def offset(self, parameters):
        return self.bias + self.scene + self.run_noise * self._rng(parameters).normal()


def source(
    name: str, n_scenes: int = 6, role: Role = "simulated", is_random: bool = True, number: int = 0, **offset: Any
) -> FunctionSource:
    """A source whose scenes have their noise keyed by source, scene and seed."""
    key = zlib.crc32(name.encode())

    def make(scene, seed):
        return Scene(LOG, Offset([key, number, seed if is_random else 0, int(scene[1:])], **offset))

    return FunctionSource(name, [f"s{i}" for i in range(n_scenes)], make, role, is_random)


def real(n_scenes: int = 6, number: int = 0, **offset: Any) -> FunctionSource:
    return source("real", n_scenes, "real", False, number, **offset)


def measured(*sources: FunctionSource, settings: int = 20, seeds=(0,), **more: Any) -> RiskTable:
    return measure(Quadratic(), list(sources), settings=settings, seeds=seeds, **more)
