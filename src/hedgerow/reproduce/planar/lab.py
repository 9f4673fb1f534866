# SPDX-License-Identifier: Apache-2.0
"""What the planar experiments share: a room, poses in it, readings of the hidden scanner, models trained on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hedgerow.log import Log
from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.parametric import BeamMixture, GaussianModel, PReg
from hedgerow.planar.regression import Observations
from hedgerow.planar.site import PlanarSite, nominal_states, scan_beams
from hedgerow.planar.training import Tried, train_gaussian, train_mixture, train_np_reg, train_p_reg
from hedgerow.planar.world import readings_of
from hedgerow.reproduce.planar.hidden_sensor import BEARING_RAD, N_BEARINGS, SCALE, HiddenSensor, HiddenWorld
from hedgerow.world.scene import Scene

Floats = NDArray[np.float64]

ROOM = PlanarSite.parse(
    {
        "object": [
            {"points_m": [[0, 0], [4.2, 0], [4.2, 2.4], [3.0, 2.4], [3.0, 3.6], [0, 3.6]], "closed": True},
            {"points_m": [[1.2, 0], [1.2, 0.9]]},
            {"points_m": [[2.0, 2.2], [2.6, 2.2], [2.6, 2.8], [2.0, 2.8]], "closed": True},
        ]
    },
    "the room",
)
"""Straight walls, an inner wall and a box, as the paper's room of planks."""
POSES = {"training": 100, "validation": 30, "test": 30}
"""Numbers of poses (Tallavajhula 2018 §3.5.1)."""
READINGS = 70
"""At each pose; the paper's M."""
NP_GRIDS = ((0.003, 0.01, 0.03, 0.1), (0.1, 0.3, 1.0))
"""Bandwidths that are tried for NP-Reg: a histogram is blurred by the bandwidth in range."""


def random_poses(site: PlanarSite, n: int, random: np.random.Generator, clear_m: float = 0.25) -> Floats:
    """Return (n, 3) poses inside a closed site, at least `clear_m` from all segments, headings in all directions."""
    segments = site.segments()
    low, high = segments.reshape(-1, 2).min(axis=0), segments.reshape(-1, 2).max(axis=0)
    found: list[Floats] = []
    while len(found) < n:
        place = cast("Floats", random.uniform(low, high))
        if is_inside(place, segments) and distance_m(place, segments) >= clear_m:
            found.append(np.append(place, random.uniform(0, 2 * np.pi)))
    return np.array(found)


def is_inside(place: Floats, segments: Floats) -> bool:
    """Tell whether a ray from here meets the segments an odd number of times: inside walls, outside boxes."""
    (ax, ay), (bx, by) = segments[:, 0].T, segments[:, 1].T
    crosses = (ay > place[1]) != (by > place[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        x = ax + (place[1] - ay) / (by - ay) * (bx - ax)
    return bool((crosses & (x > place[0])).sum() % 2)


def distance_m(place: Floats, segments: Floats) -> float:
    """Return the distance to the nearest segment."""
    start, way = segments[:, 0], segments[:, 1] - segments[:, 0]
    along = np.clip(((place - start) * way).sum(axis=1) / (way**2).sum(axis=1), 0, 1)
    return float(np.linalg.norm(start + along[:, None] * way - place, axis=1).min())


def record(scene: Scene, poses: Floats, n_each: int, seed: int, sensor: HiddenSensor) -> Log:
    """Take `n_each` scans from every pose with the hidden scanner; a sweep for each scan."""
    number = np.arange(len(poses) * n_each)
    beams = scan_beams(np.repeat(poses, n_each, axis=0), BEARING_RAD, sweep=number, time_s=0.2 * number)
    return HiddenWorld(scene, sensor).fire(beams, seed)


@dataclass(frozen=True)
class Data:
    """Readings of the hidden scanner in the room."""

    training: Observations
    validation: Observations
    test: Observations
    again: Observations
    """The test poses once more: what no model can beat."""
    poses: dict[str, Floats]


def collect(
    n_training: int,
    seed: int,
    sensor: HiddenSensor,
    n_each: int = READINGS,
    moved: Callable[[Floats], Floats] | None = None,
) -> Data:
    """Read the room from poses of all three kinds; `moved` gives the poses that are believed, if not the true ones."""
    random = np.random.default_rng(seed)
    scene = ROOM.scene()
    poses = {name: random_poses(ROOM, n, random) for name, n in POSES.items()}
    poses["training"] = poses["training"][:n_training]
    found: dict[str, Observations] = {}
    for k, (name, where) in enumerate([*poses.items(), ("again", poses["test"])]):
        log = record(scene, where, n_each, seed + 100 * (k + 1), sensor)
        found[name] = believed(log, where, n_each, moved)
    return Data(**found, poses=poses)


def believed(log: Log, poses: Floats, n_each: int, moved: Callable[[Floats], Floats] | None) -> Observations:
    """Return the readings of a log with features from the believed poses."""
    if moved is None:
        return readings_of(log, ROOM.scene(), N_BEARINGS, SCALE.high_m)
    where = moved(poses)
    beams = [scan_beams(each, BEARING_RAD, sweep=i) for i, each in enumerate(where)]
    states = [nominal_states(ROOM.scene(), each, N_BEARINGS, SCALE.high_m) for each in beams]
    value = log.returns.first_m.astype(np.float64).reshape(len(poses), n_each, N_BEARINGS).transpose(0, 2, 1)
    feature = np.concatenate([each.feature for each in states])
    group = np.concatenate([each.group for each in states])
    seen = ~np.isnan(feature).any(axis=1)
    return Observations(feature[seen], value.reshape(-1, n_each)[seen], group[seen])


@dataclass(frozen=True)
class Models:
    """Trained models, with what was tried."""

    p_reg: PReg
    np_reg: NPReg
    gaussian: GaussianModel
    mixture: BeamMixture
    tried: dict[str, Tried]


def train(data: Data, *, bearing_offset: bool = False, most_states: int = 300) -> Models:
    """Train all models on one set of readings; bandwidths by the validation poses."""
    p_reg, tried = train_p_reg(data.training, data.validation, SCALE)
    np_reg, np_tried = train_np_reg(
        data.training,
        data.validation,
        SCALE,
        grids=NP_GRIDS,
        bearing_offset=bearing_offset,
        most_states=most_states,
    )
    gaussian, k_tried = train_gaussian(data.training, SCALE)
    shown: dict[str, Any] = {f"P-Reg, {name}": each for name, each in tried.items()}
    return Models(
        p_reg, np_reg, gaussian, train_mixture(data.training, SCALE), shown | {"NP-Reg": np_tried, "Gaussian": k_tried}
    )
