# SPDX-License-Identifier: Apache-2.0
"""Call one kernel of the native core with hostile arguments of the right type, one after the other.

    python hostile_calls.py KERNEL [FIRST_CASE]

Prints the name of each case before it is called, so that who watches knows which one killed the process. A kernel may
refuse (TypeError, ValueError, MemoryError) or answer; it may not die, hang or take much memory. The table KERNELS has
every function of the core.
"""

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core

Arguments = dict[str, Any]
MOST_S = 20
MOST_MB = 4000
FLOATS = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e30, -1e19, 1e12, 1e-45, 0.0, -1.0)
WHOLE = (0, 1, -1, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63))
NUMBERS = (0, -1, 1, 7, 2**31 - 1, 2**40, 2**63 - 1, -(2**63), 0.5, -0.5, 1e-30, 1e30, np.nan, np.inf, -np.inf)
N = 40


def _unit(rng: np.random.Generator, n: int) -> NDArray[np.float32]:
    direction = rng.normal(size=(n, 3))
    return (direction / np.linalg.norm(direction, axis=1, keepdims=True)).astype(np.float32)


def beam_arguments() -> Arguments:
    rng = np.random.default_rng(1)
    return {
        "origin_m": rng.normal(size=(N, 3)),
        "direction": _unit(rng, N),
        "pulse": np.arange(N),
        "ring": (np.arange(N) % 4).astype(np.uint16),
        "sweep": (np.arange(N) // 20).astype(np.int32),
        "scene_origin_m": (0.0, 0.0, 0.0),
    }


def mesh_arguments() -> Arguments:
    rng = np.random.default_rng(2)
    n = 12
    return {
        "vertices": rng.normal(0, 3, (n + 2, 3)).astype(np.float32),
        "triangles": np.stack([np.arange(n), np.arange(n) + 1, np.arange(n) + 2], axis=1).astype(np.uint32),
        "permeability": np.full(n, 0.3, np.float32),
        "label": np.full(n, 7, np.uint16),
        "reflectance": np.full(n, 0.5, np.float32),
        "intensity_sigma": np.full(n, 0.1, np.float32),
        "lambertian": True,
        "noise_group": np.zeros(n, np.uint8),
        "noise": [_core.SurfaceNoise(sigma0_m=0.01, sigma_a_m=0.001, min_cosine=0.1, sigma_per_m=0.0)],
        "answer": _core.Answer.sub_ray,
        "labels": None,
    }


def gaussian_arguments(law: "_core.StopLaw") -> Arguments:
    rng = np.random.default_rng(3)
    n = 15
    whitening = np.tile(np.array([2, 0, 2, 0, 0, 2], np.float32), (n, 1))
    return {
        "mean_m": rng.normal(0, 3, (n, 3)).astype(np.float32),
        "whitening": whitening,
        "stop": np.full(n, 0.5, np.float32),
        "label": np.full(n, 3, np.uint16),
        "intensity": np.full(n, 0.5, np.float32),
        "intensity_sigma": np.full(n, 0.1, np.float32),
        "law": law,
        "tau": 3.5,
        "answer": _core.Answer.pulse,
        "labels": None,
    }


def make_scene(mesh: bool = True) -> "_core.Scene":
    scene = _core.Scene()
    if mesh:
        scene.add_mesh(**mesh_arguments())
    scene.add_gaussians(**gaussian_arguments(_core.StopLaw.extinction))
    return scene


def limits(min_m: float = 0.1, max_m: float = 50.0) -> "_core.RangeLimits":
    return _core.RangeLimits(min_m=min_m, max_m=max_m)


def ask_all(scene: "_core.Scene", beams: "_core.BeamArrays", *, placed: bool = False) -> None:
    """Everything that can be asked of a scene; refining takes none with placed scenes."""
    scene.build()
    n = len(beams)
    range_m = np.linspace(0.5, 9, n).astype(np.float32)
    scene.fire(beams, limits=limits(), seed=1, threads=1, progress=None)
    scene.pierced(beams, max_range_m=50.0, threads=1, progress=None)
    boxes_m = np.tile([0.0, -1, -1, 9, 1, 1], (scene.n_elements, 1))
    for boxes in (None, boxes_m):
        scene.count(beams, range_m=range_m, max_range_m=50.0, window_m=0.5, boxes_m=boxes, threads=1, progress=None)
    scene.log_likelihood(beams, range_m=range_m, limits=limits(), min_sigma_m=0.01, threads=1, progress=None)
    for measured in (None, range_m):
        scene.forecast(beams, range_m=measured, limits=limits(), min_sigma_m=0.01, threads=1, progress=None)
    if not placed:
        ray_sums(beams, range_m, scene=scene, **ray_model())
        loss_gradient(beams, range_m, scene=scene, **ray_model(), **loss_weights())
    near = np.zeros(n, np.float32)
    _core.first_behind(
        scene,
        beams,
        near_m=near,
        far_m=range_m,
        passed_labels=np.array([3], np.uint16),
        seed=1,
        threads=1,
        progress=None,
    )
    fire_pulses(beams, scene=scene, **pulse_arguments())


def ray_model() -> Arguments:
    return {"min_m": 0.1, "max_m": 50.0, "min_sigma_m": 0.01, "outlier_share": 0.01}


def loss_weights() -> Arguments:
    return {"error_nat_per_m": 1.0, "lost_hit_nat": 1.0, "false_hit_nat": 1.0}


def ray_sums(
    beams: "_core.BeamArrays", range_m: NDArray[np.float32], scene: "_core.Scene | None" = None, **model: Any
) -> None:
    limit = limits(model.pop("min_m"), model.pop("max_m"))
    ray = _core.RayModel(limits=limit, **model)
    _core.ray_sums(scene or make_scene(), beams, range_m=range_m, model=ray, threads=1, progress=None)


def loss_gradient(
    beams: "_core.BeamArrays", range_m: NDArray[np.float32], scene: "_core.Scene | None" = None, **given: Any
) -> None:
    limit = limits(given.pop("min_m"), given.pop("max_m"))
    weights = _core.LossWeights(**{name: given.pop(name) for name in loss_weights()})
    ray = _core.RayModel(limits=limit, **given)
    _core.loss_gradient(
        scene or make_scene(), beams, range_m=range_m, model=ray, weights=weights, threads=1, progress=None
    )


def pulse_arguments() -> Arguments:
    return {
        "points": np.linspace(-0.5, 0.5, 10).reshape(5, 2).astype(np.float32),
        "cells": np.zeros((0, 4), np.float32),
        "share": np.full(5, 0.2, np.float32),
        "half_m": (0.01, 0.01),
        "tangent": (0.001, 0.001),
        "part_sigma": 0.2,
        "falloff_m": 1.0,
        "falloff": 2.0,
        "unknown_intensity": 0.5,
        "min_m": 0.1,
        "max_m": 50.0,
        "mode": _core.ReturnMode.waveform,
        "processing": _core.Processing.light,
        "cutoff_m": 0.3,
        "threshold": 0.01,
        "max_returns": 3,
        "fwhm_m": 0.5,
        "step_m": 0.1,
        "detector_threshold": 0.01,
        "softness": 0.5,
        "second_threshold": 1.0,
        "second_ratio": 0.1,
        "separation_m": 0.5,
        "false_alarms": 0.1,
        "seed": 1,
        "sub_rays": True,
        "first_sample": 0,
        "n_samples": 20,
    }


def fire_pulses(beams: "_core.BeamArrays", scene: "_core.Scene | None" = None, **given: Any) -> None:
    def take(*names: str) -> Arguments:
        return {name: given[name] for name in names}

    settings = _core.PulseSettings(
        spot=_core.Spot(round=True, **take("points", "cells", "share", "half_m", "tangent", "part_sigma")),
        light=_core.LightModel(**take("falloff_m", "falloff", "unknown_intensity")),
        limits=_core.RangeLimits(**take("min_m", "max_m")),
        receiver=_core.Receiver(**take("mode", "processing", "cutoff_m", "threshold", "max_returns")),
        digitiser=_core.Digitiser(**take("fwhm_m", "step_m")),
        detector=_core.Detector(
            threshold=given["detector_threshold"],
            **take("softness", "second_threshold", "second_ratio", "separation_m", "false_alarms"),
        ),
        seed=given["seed"],
    )
    details = _core.PulseDetails(**take("sub_rays", "first_sample", "n_samples"))
    _core.fire_pulses(scene or make_scene(), beams, settings, details, threads=1, progress=None)


def pulse_log_likelihood(beams: "_core.BeamArrays", **given: Any) -> None:
    spot = {name: given.pop(name) for name in ("points", "cells", "share", "half_m", "tangent", "part_sigma")}
    limits = _core.RangeLimits(min_m=given.pop("min_m"), max_m=given.pop("max_m"))
    how = {"spot": _core.Spot(round=True, **spot), "limits": limits, "threads": 1, "progress": None}
    _core.pulse_log_likelihood(make_scene(), beams, **given, **how)


def pulse_likelihood_arguments() -> Arguments:
    wanted = ("points", "cells", "share", "half_m", "tangent", "part_sigma", "min_m", "max_m")
    return _ranges() | {"min_sigma_m": 0.001} | {name: pulse_arguments()[name] for name in wanted}


def beams() -> "_core.BeamArrays":
    return _core.BeamArrays(**beam_arguments())


def asked_with(**arguments: Any) -> None:
    bound = _core.BeamArrays(**arguments)
    ask_all(make_scene(), bound)
    ask_all(make_scene(mesh=False), bound)
    cloud = _core.PointCloud(**cloud_arguments())
    see_points(bound, [cloud], min_m=0.1, max_m=50.0)


def add_mesh(**arguments: Any) -> None:
    scene = _core.Scene()
    scene.add_mesh(**arguments)
    ask_all(scene, beams())


def add_gaussians(**arguments: Any) -> None:
    scene = _core.Scene()
    scene.add_gaussians(**arguments)
    ask_all(scene, beams())


def add_labelled(**arguments: Any) -> None:
    scene, given = _core.Scene(), gaussian_arguments(_core.StopLaw.permeability)
    given["labels"] = _core.LabelArrays(**arguments)
    scene.add_gaussians(**given)
    ask_all(scene, beams())


def noisy(**noise: Any) -> None:
    add_mesh(**mesh_arguments() | {"noise": [_core.SurfaceNoise(**noise)]})


def place(transforms: Any, label: Any, first_element: Any) -> None:
    scene = make_scene()
    scene.place(make_scene(), transforms=transforms, label=label, first_element=first_element)
    ask_all(scene, beams(), placed=True)


def cloud_arguments() -> Arguments:
    rng = np.random.default_rng(4)
    return {
        "position": rng.normal(0, 3, (N, 3)).astype(np.float32),
        "normal": _unit(rng, N),
        "intensity": np.full(N, 0.5, np.float32),
        "label": np.full(N, 3, np.uint16),
        "reach_m": 0.2,
        "first": 0,
    }


def see_points(bound: "_core.BeamArrays", clouds: Any, *, min_m: float, max_m: float, **noise: float) -> None:
    surface = {"sigma0_m": 0.01, "sigma_a_m": 0.001, "min_cosine": 0.1, "sigma_per_m": 0.0} | noise
    for pick in _core.Pick:
        _core.see_points(
            clouds,
            bound,
            limits=limits(min_m, max_m),
            pick=pick,
            noise=_core.SurfaceNoise(**surface),
            threads=1,
            progress=None,
        )


def cloud_seen(**arguments: Any) -> None:
    see_points(beams(), [_core.PointCloud(**arguments)], min_m=0.1, max_m=50.0)


def place_pattern(**given: Any) -> None:
    mount = _core.Mount(position_m=given.pop("position_m"), quaternion_xyzw=given.pop("quaternion_xyzw"))
    repeats = _core.Repeats(**{name: given.pop(name) for name in ("start_ns", "period_ns", "first", "count")})
    _core.place_pattern(mount=mount, repeats=repeats, threads=1, **given)


def pattern_arguments() -> Arguments:
    rng = np.random.default_rng(5)
    return {
        "pattern_origin_m": np.zeros((N, 3), np.float32),
        "pattern_direction": _unit(rng, N),
        "pattern_time_ns": np.arange(N) * 1000,
        "knot_time_ns": np.array([0, 10**6, 2 * 10**6]),
        "knot_position_m": rng.normal(size=(3, 3)),
        "knot_quaternion_xyzw": np.tile([0.0, 0.0, 0.0, 1.0], (3, 1)),
        "position_m": (0.0, 0.0, 1.0),
        "quaternion_xyzw": (0.0, 0.0, 0.0, 1.0),
        "start_ns": 0,
        "period_ns": 1e5,
        "first": 0,
        "count": 3,
    }


def voxel_arguments() -> Arguments:
    rng = np.random.default_rng(6)
    return {
        "side_m": 0.5,
        "origin_m": rng.normal(size=(N, 3)),
        "direction": _unit(rng, N),
        "range_m": rng.uniform(1, 5, N).astype(np.float32),
        "intensity": np.full(N, 0.5, np.float32),
        "label": np.full(N, 3, np.uint16),
    }


def voxel_sums(side_m: float, **given: Any) -> None:
    sums = _core.VoxelSums(side_m)
    sums.add(**given, threads=1, progress=None)
    other = _core.VoxelSums(side_m)
    other.merge(sums)
    sums.table(min_count=1)


def table_arguments() -> Arguments:
    rng = np.random.default_rng(7)
    return {
        "key": rng.integers(-5, 5, (N, 3)).astype(np.int32),
        "count": np.full(N, 3),
        "first": rng.integers(-99, 99, (N, 3)),
        "second": rng.integers(0, 99, (N, 6)),
        "n_intensity": np.full(N, 2),
        "intensity": np.full((N, 2), 1),
        "intensity_squared": np.full((N, 2), 1),
        "label_row": np.arange(N),
        "label": np.full(N, 3, np.uint16),
        "label_count": np.full(N, 2),
    }


def add_table(**given: Any) -> None:
    sums = _core.VoxelSums(0.5)
    sums.add_table(**given)
    sums.add_table(**given)
    sums.table(min_count=1)


def cluster(points: Any, **settings: Any) -> None:
    for start in _core.ClusterStart:
        _core.cluster(points, _core.ClusterSettings(start=start, **settings), threads=1, progress=None)


def thin_arguments() -> Arguments:
    rng = np.random.default_rng(8)
    return {
        "position_m": rng.uniform(0, 2, (N, 3)),
        "toward": _unit(rng, N),
        "intensity": np.full(N, 0.5, np.float32),
        "label": np.full(N, 3, np.uint16),
        "voxel_m": 0.3,
    }


def thin(**given: Any) -> None:
    rows, _ = _core.thin(**given, threads=1)
    _core.merge_thinned(rows, 1)


def surface_arguments() -> Arguments:
    x, y = np.meshgrid(np.arange(0, 1.5, 0.15), np.arange(0, 1.5, 0.15))
    position_m = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], axis=1)
    n = len(position_m)
    up = np.tile(np.array([0, 0, 1], np.float32), (n, 1))
    full = np.full(n, 0.5, np.float32)
    thinned, _ = _core.thin(position_m, up, full, np.full(n, 3, np.uint16), 0.1, 1)
    m = len(thinned)
    return {
        "thinned": thinned,
        "position_m": position_m[:m],
        "normal": up[:m],
        "weight": np.ones(m, np.float32),
        "node_m": 0.2,
        "kernel_m": 0.4,
        "reach_m": 0.8,
        "min_neighbours": 3,
        "min_close": 1,
        "sigma_residual_m": 0.1,
        "sigma_normal": 0.5,
        "rounds": 2,
        "max_gap_m": 0.5,
        "x_begin": -4,
        "x_end": 12,
        "y_begin": -4,
        "y_end": 12,
    }


def make_surface(**given: Any) -> None:
    arrays = {name: given.pop(name) for name in ("thinned", "position_m", "normal", "weight")}
    cubes = _core.CubeRange(**{name: given.pop(name) for name in ("x_begin", "x_end", "y_begin", "y_end")})
    _core.make_surface(**arrays, settings=_core.SurfaceSettings(**given, cubes=cubes), threads=1)


@dataclass(frozen=True)
class Kernel:
    """A call with its good arguments, and the names of the core that it tries."""

    call: Callable[..., object]
    good: Callable[[], Arguments]
    covers: tuple[str, ...] = ()


def _ranges() -> Arguments:
    return {"range_m": np.linspace(0.5, 9, N).astype(np.float32)}


def _asked(name: str) -> Callable[..., None]:
    def call(**given: Any) -> None:
        min_m, max_m = given.pop("min_m", None), given.get("max_m")
        if min_m is not None:
            given["limits"] = limits(min_m, given.pop("max_m", max_m))
        for mesh in (True, False):
            getattr(make_scene(mesh), name)(beams(), **given, progress=None)

    return call


_LIMITS = {"min_m": 0.1, "max_m": 50.0, "threads": 1}
_ARRAYS = ("Scene", "BeamArrays", "Hits", "Pierced", "RangeLimits")
KERNELS = {
    "beams": Kernel(asked_with, beam_arguments, _ARRAYS),
    "add_mesh": Kernel(add_mesh, mesh_arguments),
    "noise": Kernel(
        noisy, lambda: {"sigma0_m": 0.01, "sigma_a_m": 0.01, "min_cosine": 0.1, "sigma_per_m": 0.001}, ("SurfaceNoise",)
    ),
    "gaussians_permeability": Kernel(
        add_gaussians, lambda: gaussian_arguments(_core.StopLaw.permeability), ("StopLaw",)
    ),
    "gaussians_extinction": Kernel(add_gaussians, lambda: gaussian_arguments(_core.StopLaw.extinction)),
    "gaussians_depth": Kernel(add_gaussians, lambda: gaussian_arguments(_core.StopLaw.depth)),
    "labels": Kernel(
        add_labelled,
        lambda: {"first": np.arange(16) * 2, "label": np.arange(30, dtype=np.uint16), "count": np.full(30, 4)},
        ("LabelArrays",),
    ),
    "place": Kernel(
        place,
        lambda: {
            "transforms": np.tile(np.eye(3, 4).ravel(), (2, 1)),
            "label": np.full(2, -1, np.int32),
            "first_element": -1,
        },
    ),
    "fire": Kernel(_asked("fire"), lambda: _LIMITS | {"seed": 1}),
    "pierced": Kernel(_asked("pierced"), lambda: {"max_range_m": 50.0, "threads": 1}),
    "count": Kernel(
        _asked("count"), lambda: _ranges() | {"max_range_m": 50.0, "window_m": 0.5, "boxes_m": None, "threads": 1}
    ),
    "log_likelihood": Kernel(_asked("log_likelihood"), lambda: _ranges() | _LIMITS | {"min_sigma_m": 0.01}),
    "forecast": Kernel(
        _asked("forecast"), lambda: _ranges() | _LIMITS | {"min_sigma_m": 0.01}, ("Scene", "BeamArrays", "Forecasts")
    ),
    "first_behind": Kernel(
        lambda **given: _core.first_behind(make_scene(), beams(), **given, progress=None) and None,
        lambda: {
            "near_m": np.zeros(N, np.float32),
            "far_m": np.full(N, 9, np.float32),
            "passed_labels": np.array([3], np.uint16),
            "seed": 1,
            "threads": 1,
        },
        ("first_behind",),
    ),
    "ray_sums": Kernel(
        lambda **given: ray_sums(beams(), **given), lambda: _ranges() | ray_model(), ("ray_sums", "RayModel", "RaySum")
    ),
    "loss_gradient": Kernel(
        lambda **given: loss_gradient(beams(), **given),
        lambda: _ranges() | ray_model() | loss_weights(),
        ("loss_gradient", "LossWeights", "LossSum"),
    ),
    "pulses": Kernel(
        lambda **given: fire_pulses(beams(), **given),
        pulse_arguments,
        (
            *("fire_pulses", "PulseSettings", "PulseDetails", "PulseAnswer", "PulseColumns", "Spot", "LightModel"),
            *("Receiver", "Digitiser", "Detector", "ReturnMode", "Processing"),
        ),
    ),
    "pulse_likelihood": Kernel(
        lambda **given: pulse_log_likelihood(beams(), **given),
        pulse_likelihood_arguments,
        ("pulse_log_likelihood", "Answer"),
    ),
    "pulses_of_the_paper": Kernel(
        lambda **given: fire_pulses(beams(), **given),
        lambda: pulse_arguments() | {"mode": _core.ReturnMode.strongest_and_last, "processing": _core.Processing.paper},
    ),
    "pulses_detected": Kernel(
        lambda **given: fire_pulses(beams(), **given),
        lambda: (
            pulse_arguments() | {"mode": _core.ReturnMode.strongest_and_second, "processing": _core.Processing.detected}
        ),
    ),
    "pulses_drawn": Kernel(
        lambda **given: fire_pulses(beams(), **given),
        lambda: (
            pulse_arguments()
            | {"points": np.zeros((0, 2), np.float32), "cells": np.tile(np.array([0, 0.5, 0, 1], np.float32), (5, 1))}
            | {"mode": _core.ReturnMode.all}
        ),
    ),
    "see_points": Kernel(
        lambda **given: see_points(beams(), [_core.PointCloud(**cloud_arguments())], **given),
        lambda: {
            "min_m": 0.1,
            "max_m": 50.0,
            "sigma0_m": 0.01,
            "sigma_a_m": 0.001,
            "min_cosine": 0.1,
            "sigma_per_m": 0.0,
        },
        ("see_points", "SeenPoints", "Pick"),
    ),
    "cloud": Kernel(cloud_seen, cloud_arguments, ("PointCloud",)),
    "place_pattern": Kernel(place_pattern, pattern_arguments, ("place_pattern", "PlacedPattern", "Mount", "Repeats")),
    "voxel_sums": Kernel(voxel_sums, voxel_arguments, ("VoxelSums", "VoxelTable")),
    "voxel_table": Kernel(add_table, table_arguments),
    "cluster": Kernel(
        cluster,
        lambda: {
            "points": np.random.default_rng(9).normal(size=(N, 3)),
            **{
                "clusters": 3,
                "split_points": 5,
                "restarts": 2,
                "iterations": 10,
                "tolerance": 1e-4,
                "max_skewness": 20.0,
                "max_kurtosis": 3.0,
                "seed": 1,
                "root": 0,
            },
        },
        ("cluster", "ClusterSettings", "ClusterStart"),
    ),
    "thin": Kernel(thin, thin_arguments, ("thin",)),
    "merge_thinned": Kernel(
        lambda **given: _core.merge_thinned(**given, threads=1) is None,
        lambda: {"thinned": surface_arguments()["thinned"]},
        ("merge_thinned",),
    ),
    "fit_normals": Kernel(
        lambda kernel_m, min_scale_m, rounds, **given: _core.fit_normals(
            **given, fit=_core.PlaneFit(kernel_m=kernel_m, min_scale_m=min_scale_m, rounds=rounds), threads=1
        ),
        lambda: {
            **{name: thin_arguments()[name] for name in ("position_m", "toward")},
            **{"weight": np.ones(N, np.float32), "kernel_m": 0.5, "min_scale_m": 0.01, "rounds": 3},
        },
        ("fit_normals", "PlaneFit"),
    ),
    "local_spectra": Kernel(
        lambda **given: _core.local_spectra(**given, threads=1),
        lambda: {"position_m": thin_arguments()["position_m"], "radius_m": 0.5},
        ("local_spectra",),
    ),
    "smooth_scores": Kernel(
        lambda position_m, score, **filter: _core.smooth_scores(position_m, score, _core.Bilateral(**filter), 1),
        lambda: {
            "position_m": thin_arguments()["position_m"],
            "score": np.linspace(0, 1, N).astype(np.float32),
            **{"radius_m": 0.5, "n_neighbours": 8, "distance_weight": 1.0, "score_weight": 1.0, "score_range": 1.0},
        },
        ("smooth_scores", "Bilateral"),
    ),
    "make_surface": Kernel(
        make_surface, surface_arguments, ("make_surface", "SurfaceSettings", "SurfaceMesh", "CubeRange")
    ),
    "draw": Kernel(
        lambda seed, pulse, element: None,
        lambda: {"seed": 1, "pulse": np.arange(N), "element": np.arange(N)},
        ("draw_coins", "draw_label_numbers", "draw_normals"),
    ),
}
FOR_BENCHMARKS = ("embree_bytes", "traces_wide_packets")


def hostile_arrays(array: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Give arrays of the same type with hostile values, shapes and layouts."""
    values = FLOATS if array.dtype.kind == "f" else WHOLE
    for value in values:
        with np.errstate(all="ignore"):
            number = np.array(value).astype(array.dtype)
        yield f"all {value}", np.full_like(array, number)
        if array.size:
            some = array.copy()
            some.ravel()[:: max(array.size // 7, 1)] = number
            yield f"some {value}", some
    bits = np.random.default_rng(10).integers(0, 256, array.nbytes, dtype=np.uint8)
    yield "random bytes", bits.view(array.dtype).reshape(array.shape)
    yield "no rows", array[:0]
    yield "one row", array[:1].copy()
    yield "one row less", array[:-1].copy()
    yield "backwards", array[::-1]
    yield "every other", np.repeat(array, 2, axis=0)[::2]
    if len(array):
        yield "same row again", np.broadcast_to(array[:1], array.shape)
        yield "of no dimension", array.ravel()[:1].reshape(())
    yield "a dimension more", array[None]
    still = array.copy()
    still.setflags(write=False)
    yield "read-only", still
    yield "unaligned", np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)


def cases(good: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Give arguments with one of them hostile, with all arrays empty, and with arrays that share their memory."""
    yield "good", good
    for name, value in good.items():
        if isinstance(value, np.ndarray):
            for what, array in hostile_arrays(value):
                yield f"{name} {what}", good | {name: array}
        elif isinstance(value, tuple):
            for number in FLOATS:
                yield f"{name} {number}", good | {name: (number, *value[1:])}
                yield f"{name} all {number}", good | {name: (number,) * len(value)}
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            for number in NUMBERS:
                yield f"{name} {number}", good | {name: number}
    arrays = {name: value for name, value in good.items() if isinstance(value, np.ndarray)}
    yield "no rows at all", good | {name: value[:0] for name, value in arrays.items()}
    yield "one row of all", good | {name: value[:1].copy() for name, value in arrays.items()}
    for a, first in arrays.items():
        for b, second in arrays.items():
            if a < b and first.dtype == second.dtype and first.shape == second.shape:
                yield f"{a} is {b}", good | {a: second}


def main(name: str, first: int) -> None:
    kernel = KERNELS[name]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):  # its shadow memory is larger than any limit
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MB << 20, MOST_MB << 20))
    for number, (what, arguments) in enumerate(cases(kernel.good())):
        if number < first:
            continue
        print(f"{number} {what}", flush=True)
        signal.alarm(MOST_S)
        try:
            kernel.call(**arguments)
        except (TypeError, ValueError, MemoryError, OverflowError) as error:
            if what in ("good", "read-only"):
                raise
            print(f"  {type(error).__name__}: {str(error).splitlines()[0][:120]}")
        signal.alarm(0)
    print("end")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
