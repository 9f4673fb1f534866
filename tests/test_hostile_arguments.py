# SPDX-License-Identifier: Apache-2.0
"""Every public call, with one argument after the other replaced by what it cannot be: an InputError, or it works.

A wrong argument is the caller's mistake, never a bare TypeError, AttributeError, ValueError or OverflowError from
within, and never the end of the process. Names that Python itself refuses, such as unknown keywords, are left out.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError, HedgerowWarning
from hedgerow.sensor.drive import Aim
from hedgerow.world.elements import Gaussians, Points, Triangles
from hedgerow.world.pulsed import PhysicsWorld

HOSTILE: dict[str, Any] = {
    "none": None,
    "text": "x",
    "no text": "",
    "nul": "a\0b",
    "bytes": b"x",
    "true": True,
    "fraction": 1.5,
    "minus one": -1,
    "zero": 0,
    "2**62": 2**62,
    "2**63 - 1": 2**63 - 1,
    "-2**63": -(2**63),
    "10**30": 10**30,
    "10**5000": 10**5000,
    "1e12": 1e12,
    "1e19": 1e19,
    "1e300": 1e300,
    "nan": float("nan"),
    "inf": float("inf"),
    "minus inf": float("-inf"),
    "denormal": 5e-324,
    "complex": 1j,
    "no list": [],
    "ragged": [[1.0], [1.0, 2.0]],
    "list of none": [None, None],
    "list of text": ["a", "b", "c"],
    "map": {},
    "map of text": {"a": "b"},
    "set": {1, 2},
    "object": object(),
    "function": lambda: None,
    "generator": (number for number in range(3)),
    "time": datetime(2026, 1, 1),
    "path": Path("nowhere/at/all"),
    "nan array": np.full((2, 3), np.nan),
    "huge array": np.full((2, 3), 1e300),
    "far array": np.full((2, 3), 1e19),
    "object array": np.array([object(), None]),
    "times": np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]"),
    "4-D": np.zeros((1, 1, 1, 1)),
    "0-D": np.float64(3.5),
    "bool array": np.array([True, False]),
    "strided": np.zeros((8, 12))[::-2, ::-3],
}


@dataclass(frozen=True)
class Call:
    """A public call with arguments that it takes."""

    what: Callable[..., Any]
    arguments: dict[str, Any]


def _scene() -> hr.Scene:
    scene = hr.Scene()
    scene.add_mesh([[5, -5, -5], [5, 5, -5], [5, 5, 5], [5, -5, 5]], [[0, 1, 2], [0, 2, 3]])
    return scene


ORIGINS, DIRECTIONS = np.zeros((2, 3)), np.array([[1.0, 0, 0], [0, 1.0, 0]])
BEAMS = hr.Beams.from_arrays(origins=ORIGINS, directions=DIRECTIONS)
RETURNS = hr.Returns.from_arrays(ranges=[5.0, np.inf])
LOG = hr.Log(BEAMS, RETURNS, max_range_m=100.0)
POSE = hr.Pose()
TRAJECTORY = hr.Trajectory.line((0, 0, 0), (2, 0, 0), 2.0)
SENSOR = hr.Sensor.named("rplidar-a1") if hr.Sensor.is_name("rplidar-a1") else hr.Sensor.named("vlp-16")
WORLD = hr.SceneWorld(_scene())
PULSED = PhysicsWorld(_scene())
MEANS, COVARIANCES = np.array([[5.0, 0, 0]]), np.array([np.eye(3) * 0.01])
TABLE = Gaussians.plain(MEANS, COVARIANCES)
LEARNED = hr.LearnedWorld(TABLE, kind="voxel")
SIMULATION = hr.simulate(WORLD, SENSOR, TRAJECTORY)


def _methods() -> dict[str, Call]:
    """What is called on objects that are right themselves."""
    near, far = np.zeros(2, np.float32), np.full(2, 9, np.float32)
    firing: dict[str, Any] = {"beams": BEAMS, "seed": 0, "sensor": None, "limits_m": (0.0, 9.0), "noise": False}
    driving: dict[str, Any] = {"trajectory": TRAJECTORY, "mount": POSE, "start_s": 0.0, "encoder": "exact"}
    driving |= {"cone": False, "seed": 0, "threads": 1, "n_sweeps": 1}
    limits = {"min_range_m": 0.0, "max_range_m": 50.0, "threads": 1}
    return {
        "Beams.concatenate": Call(hr.Beams.concatenate, {"parts": [BEAMS]}),
        "Beams.select": Call(BEAMS.select, {"sweep": 0, "ring": 0}),
        "Beams[]": Call(BEAMS.__getitem__, {"index": slice(None)}),
        "Beams.equal": Call(BEAMS.equal, {"other": BEAMS}),
        "Log.concatenate": Call(hr.Log.concatenate, {"parts": [LOG]}),
        "Log.select": Call(LOG.select, {"sweep": 0, "ring": 0}),
        "Log[]": Call(LOG.__getitem__, {"index": slice(None)}),
        "Log.with_returns": Call(LOG.with_returns, {"returns": RETURNS}),
        "Log.equal": Call(LOG.equal, {"other": LOG}),
        "Pose.transform": Call(POSE.transform, {"points": [0, 0, 0]}),
        "Pose @": Call(POSE.__matmul__, {"inner": POSE}),
        "Trajectory.at": Call(TRAJECTORY.at, {"time_ns": [0]}),
        "Trajectory.pose_at": Call(TRAJECTORY.pose_at, {"time": 0.0}),
        "Trajectory @": Call(TRAJECTORY.__matmul__, {"mount": POSE}),
        "Trajectory.equal": Call(TRAJECTORY.equal, {"other": TRAJECTORY}),
        "Sensor.sweep": Call(SENSOR.sweep, {"pose": POSE, "number": 0, "encoder": "exact", "cone": False, "seed": 0}),
        "Sensor.drive": Call(SENSOR.drive, driving),
        "Sensor.drive by time": Call(SENSOR.drive, {"trajectory": TRAJECTORY, "duration_s": 0.5}),
        "Sensor.drive_sweeps": Call(SENSOR.drive_sweeps, driving),
        "Sensor.sweep_at": Call(
            SENSOR.sweep_at,
            {"trajectory": TRAJECTORY, "number": 0, "start_ns": 0, "mount": POSE, "aim": Aim(), "threads": 1},
        ),
        "Sensor.degrade": Call(SENSOR.degrade, {"log": LOG, "seed": 0, "dropout": 0.5}),
        "Sensor.is_name": Call(SENSOR.is_name, {"name": "vlp-16"}),
        "Sensor.of": Call(SENSOR.of, {"log": LOG}),
        "Simulation.sweep": Call(SIMULATION.sweep, {"number": 0}),
        "World.fire": Call(WORLD.fire, firing | {"threads": 1}),
        "PhysicsWorld.fire": Call(PULSED.fire, firing),
        "PhysicsWorld.fire_detailed": Call(PULSED.fire_detailed, {"beams": BEAMS, "seed": 0, "sensor": SENSOR}),
        "LearnedWorld.fire": Call(LEARNED.fire, firing),
        "World.with_vegetation": Call(WORLD.with_vegetation, {"settings": None}),
        "World.log_likelihood": Call(WORLD.log_likelihood, {"log": LOG, "min_sigma_m": 0.001, "threads": 1}),
        "LearnedWorld.log_likelihood": Call(LEARNED.log_likelihood, {"log": LOG, "min_sigma_m": 0.001, "threads": 1}),
        "LearnedWorld.pdf": Call(
            LEARNED.pdf, {"beam": BEAMS[:1], "range_m": [1.0, 2.0], "sensor": None, "min_sigma_m": 0.001}
        ),
        "Scene.fire": Call(WORLD.scene.fire, {"beams": BEAMS, "seed": 0, **limits}),
        "Scene.pierced": Call(WORLD.scene.pierced, {"beams": BEAMS, "max_range_m": 9.0, "threads": 1}),
        "Scene.count": Call(
            WORLD.scene.count, {"beams": BEAMS, "range_m": far, "max_range_m": 9.0, "window_m": 0.5, "threads": 1}
        ),
        "Scene.log_likelihood": Call(
            WORLD.scene.log_likelihood, {"beams": BEAMS, "range_m": far, "min_sigma_m": 0.001, **limits}
        ),
        "Scene.first_behind": Call(
            WORLD.scene.first_behind, {"beams": BEAMS, "near_m": near, "far_m": far, "labels": [1], "seed": 0}
        ),
    }


def _makers() -> dict[str, Call]:
    """What makes objects out of arguments, and the functions of the package."""
    simulating: dict[str, Any] = {"world": WORLD, "sensor": SENSOR, "trajectory": TRAJECTORY, "seed": 0, "sweeps": 1}
    simulating |= {"start_s": 0.0, "noise": None, "aim": None, "mount": None, "anyway": False}
    plain = {"origins": ORIGINS, "directions": DIRECTIONS, "times": 0, "rings": 0, "sweeps": 0}
    returned = {"ranges": [5.0, np.inf], "intensities": [1.0, 0.0], "labels": [1, 0]}
    limits = {"min_range_m": 0.0, "max_range_m": 100.0}
    return {
        "Beams": Call(hr.Beams, dict(BEAMS.columns())),
        "Beams.from_arrays": Call(hr.Beams.from_arrays, plain | {"pulses": [0, 1]}),
        "Returns": Call(hr.Returns, dict(RETURNS.columns())),
        "Returns.from_arrays": Call(hr.Returns.from_arrays, returned),
        "Log": Call(
            hr.Log,
            {"beams": BEAMS, "returns": RETURNS, "sensor": "", "map_origin_m": np.zeros(3), "metadata": {}, **limits},
        ),
        "Log.from_arrays": Call(
            hr.Log.from_arrays, plain | returned | limits | {"sensor": "", "map_origin_m": (0, 0, 0)}
        ),
        "Pose": Call(hr.Pose, {"position_m": np.zeros(3), "quaternion_xyzw": np.array([0, 0, 0, 1.0])}),
        "Pose.from_xyz_rpy": Call(hr.Pose.from_xyz_rpy, {"xyz_m": (0, 0, 0), "rpy_rad": (0, 0, 0)}),
        "Pose.from_matrix": Call(hr.Pose.from_matrix, {"matrix": np.eye(4)}),
        "Trajectory": Call(
            hr.Trajectory,
            {"time_ns": [0, 1], "position_m": np.zeros((2, 3)), "quaternion_xyzw": np.tile([0, 0, 0, 1.0], (2, 1))},
        ),
        "Trajectory.from_poses": Call(hr.Trajectory.from_poses, {"times": [0.0, 1.0], "poses": [POSE, POSE]}),
        "Trajectory.standing": Call(hr.Trajectory.standing, {"pose": POSE, "duration_s": 1.0}),
        "Trajectory.line": Call(hr.Trajectory.line, {"start_m": (0, 0, 0), "end_m": (1, 0, 0), "speed_mps": 1.0}),
        "Trajectory.circle": Call(
            hr.Trajectory.circle,
            {"centre_m": (0, 0, 0), "radius_m": 1.0, "speed_mps": 1.0, "turns": 1.0, "poses_per_turn": 8},
        ),
        "Sensor": Call(hr.Sensor, {"config": SENSOR.config, "rate_hz": SENSOR.rate_hz}),
        "Sensor.named": Call(hr.Sensor.named, {"name": "vlp-16", "rate_hz": 10.0}),
        "Sensor.load": Call(hr.Sensor.load, {"path": "none.toml", "rate_hz": None}),
        "SurfaceNoise": Call(
            hr.SurfaceNoise, {"sigma0_m": 0.0, "sigma_a_m": 0.0, "max_incidence_rad": 1.0, "sigma_per_m": 0.0}
        ),
        "Scene": Call(hr.Scene, {"origin_m": (0, 0, 0)}),
        "Scene.add_mesh": Call(lambda **given: _fired(_add("add_mesh", given)), _MESH),
        "Scene.add_gaussians": Call(lambda **given: _fired(_add("add_gaussians", given)), _GAUSSIANS),
        "Scene.place": Call(
            lambda **given: _fired(_add("place", given)),
            {"scene": _scene(), "transforms": np.eye(4), "label": -1, "first_element": None},
        ),
        "SceneWorld": Call(hr.SceneWorld, {"scene": _scene(), **limits}),
        "PhysicsWorld": Call(PhysicsWorld, {"scene": _scene(), "settings": None, **limits}),
        "LearnedWorld": Call(
            lambda table, **given: hr.LearnedWorld(table, **given),
            {"table": TABLE, "kind": "voxel", "parameters": {}, "map_origin_m": (0, 0, 0), "tile_m": 32.0, **limits},
        ),
        "simulate": Call(hr.simulate, simulating),
        "simulate at": Call(hr.simulate, {"world": WORLD, "sensor": SENSOR, "trajectory": TRAJECTORY, "at_s": [0.0]}),
        "Simulation": Call(
            hr.Simulation, {"world": WORLD, "sensor": SENSOR, "trajectory": TRAJECTORY, "start_ns": np.array([0])}
        ),
        "replay": Call(hr.replay, {"world": WORLD, "log": LOG, "seed": 0}),
        "compare": Call(hr.compare, {"real": LOG, "simulated": WORLD, "seed": 0}),
        "learn": Call(hr.learn, {"source": LOG, "model": "points"}),
        "load_world": Call(hr.load_world, {"path": "none.world", "resident_tiles": None, "max_bytes": None}),
        "open_log": Call(hr.open_log, {"path": "none.parquet", "format": None}),
        "read_log": Call(hr.read_log, {"path": "none.parquet", "sweeps": None, "format": None}),
        "write_log": Call(hr.write_log, {"log": LOG, "path": "none.parquet", "format": None, "trajectory": TRAJECTORY}),
        "write_trajectory": Call(hr.write_trajectory, {"trajectory": TRAJECTORY, "path": "none.tum"}),
        "read_trajectory": Call(hr.read_trajectory, {"path": "none.tum", "times": None, "rate_hz": None}),
    }


_MESH: dict[str, Any] = {
    "vertices_m": np.array([[5.0, -5, -5], [5, 5, -5], [5, 5, 5]]),
    "triangles": [[0, 1, 2]],
    "permeability": 0.0,
    "label": 0,
    "reflectance": 0.5,
    "intensity_sigma": 0.0,
    "lambertian": True,
    "noise": hr.SurfaceNoise(),
    "noise_group": 0,
}
_GAUSSIANS: dict[str, Any] = {
    "mean_m": MEANS,
    "covariance_m2": COVARIANCES,
    "permeability": None,
    "extinction_per_m": None,
    "depth": None,
    "tau": 3.5,
    "label": 0,
    "intensity": 0.5,
    "intensity_sigma": 0.0,
    "min_sigma_m": 0.001,
}


def _add(method: str, given: dict[str, Any]) -> hr.Scene:
    scene = hr.Scene()
    getattr(scene, method)(**given)
    return scene


def _fired(scene: hr.Scene) -> hr.Log:
    """What is accepted can be fired at."""
    return hr.SceneWorld(scene).fire(BEAMS)


CALLS = _makers() | _methods()
CASES = [(name, argument) for name, call in CALLS.items() for argument in call.arguments]


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_work_with_right_arguments(name, tmp_path, monkeypatch):
    """Or the hostile ones would prove nothing."""
    monkeypatch.chdir(tmp_path)
    try:
        CALLS[name].what(**CALLS[name].arguments)
    except HedgerowError as error:
        assert "none." in str(error) or "no such" in str(error), error  # a file that is not there


@pytest.mark.parametrize(("name", "argument"), CASES, ids=[f"{name} {argument}" for name, argument in CASES])
def test_a_hostile_argument_is_refused_in_one_sentence_or_taken(name, argument, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call = CALLS[name]
    wrong: list[str] = []
    for said, value in HOSTILE.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # nor does NumPy complain on the terminal
                warnings.simplefilter("ignore", HedgerowWarning)
                call.what(**(call.arguments | {argument: value}))
        except HedgerowError as error:
            text = str(error)
            if "\n" in text or len(text) > 400 or not text.isprintable():
                wrong.append(f"{said}: sentence of {len(text)} characters: {text[:200]}")
        except Exception as error:  # anything else is a bug; all of them at once
            wrong.append(f"{said}: {type(error).__name__}: {str(error)[:160]}")
    assert not wrong, f"{name}({argument}=...):\n" + "\n".join(wrong)


@pytest.mark.parametrize("table", [Triangles, Gaussians, Points])
def test_a_world_of_a_table_with_a_wrong_column_is_refused(table):
    """What a table may hold is checked when a world is made of it."""
    right = {
        Triangles: (np.zeros((2, 3, 3)),),
        Gaussians: (MEANS.repeat(2, axis=0), COVARIANCES.repeat(2, axis=0)),
        Points: (ORIGINS, DIRECTIONS.astype(np.float32)),
    }[table]
    for said, value in HOSTILE.items():
        if isinstance(value, np.ndarray) and value.shape == (2, 3) and value.dtype.kind == "f":
            with pytest.raises(HedgerowError):
                hr.LearnedWorld(table.plain(value, *right[1:]), kind="voxel")
                pytest.fail(said)
