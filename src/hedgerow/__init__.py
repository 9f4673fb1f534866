# SPDX-License-Identifier: Apache-2.0
"""Hedgerow: a lidar simulator for worlds that a laser sees partly through.

Public names only; each is imported when first used, so that `import hedgerow` stays quick.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedgerow.errors import FileError, HedgerowError, InputError, MissingPackage
    from hedgerow.frames import Pose, Trajectory
    from hedgerow.io import open_log, read_log, read_trajectory, write_log, write_trajectory
    from hedgerow.log import Beams, Log, Returns
    from hedgerow.metrics import Comparison, Scores, compare
    from hedgerow.models import learn
    from hedgerow.sensor import Sensor
    from hedgerow.simulate import Simulation, replay, simulate
    from hedgerow.world import LearnedWorld, Scene, SceneWorld, SurfaceNoise, World, load_world

__version__ = "0.1.0"

_HOME = {
    "Beams": "log",
    "Comparison": "metrics",
    "FileError": "errors",
    "HedgerowError": "errors",
    "InputError": "errors",
    "LearnedWorld": "world",
    "Log": "log",
    "MissingPackage": "errors",
    "Pose": "frames",
    "Returns": "log",
    "Scene": "world",
    "SceneWorld": "world",
    "Scores": "metrics",
    "Sensor": "sensor",
    "Simulation": "simulate",
    "SurfaceNoise": "world",
    "Trajectory": "frames",
    "World": "world",
    "compare": "metrics",
    "learn": "models",
    "load_world": "world",
    "open_log": "io",
    "read_log": "io",
    "read_trajectory": "io",
    "replay": "simulate",
    "simulate": "simulate",
    "write_log": "io",
    "write_trajectory": "io",
}

__all__ = [
    "Beams",
    "Comparison",
    "FileError",
    "HedgerowError",
    "InputError",
    "LearnedWorld",
    "Log",
    "MissingPackage",
    "Pose",
    "Returns",
    "Scene",
    "SceneWorld",
    "Scores",
    "Sensor",
    "Simulation",
    "SurfaceNoise",
    "Trajectory",
    "World",
    "compare",
    "learn",
    "load_world",
    "open_log",
    "read_log",
    "read_trajectory",
    "replay",
    "simulate",
    "write_log",
    "write_trajectory",
]


class _Package(ModuleType):
    """`hr.simulate` is the function: the import system may not put the module of the same name in its place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOME:
        raise AttributeError(f"module 'hedgerow' has no attribute '{name}'")
    return getattr(import_module(f"hedgerow.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
