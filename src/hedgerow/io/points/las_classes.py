# SPDX-License-Identifier: Apache-2.0
"""Semantic classes in the words of LAS, both ways: ASPRS codes (LAS 1.4 R15, table 17) for our labels.

Our labels are SemanticKITTI's numbers and finer ones (`base/labels.py`). LAS has words for ground, plants, buildings
and roads; what it has no word for (vehicles, people, fences, poles, objects) gets a user code from 64 on, and what we
have no name for is unclassified. Plants are low, medium or high by their height above the ground, where the sweep has
returns labelled as ground nearby, and high otherwise. Written files keep our label in an extra dimension.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from hedgerow.base.labels import LABELS

NEVER_CLASSIFIED, UNCLASSIFIED, GROUND = 0, 1, 2
LOW_VEGETATION, MEDIUM_VEGETATION, HIGH_VEGETATION = 3, 4, 5
BUILDING, LOW_NOISE, ROAD = 6, 7, 11
VEHICLE, PERSON, FENCE, STRUCTURE, POLE, SIGN, OBJECT = 64, 65, 66, 67, 68, 69, 70  # for the user to define
MEDIUM_FROM_M, HIGH_FROM_M = 0.5, 2.0
"""Height above ground from which plants are medium and high; LAS leaves that open, this is usual."""
_OUTLIER = 1  # of SemanticKITTI, as below
_SQUARE_M = 1.0
_NEAR_M = 5.0

_OF_NAME = {
    "unlabelled": UNCLASSIFIED,
    "car": VEHICLE,
    "bicycle": VEHICLE,
    "motorcycle": VEHICLE,
    "truck": VEHICLE,
    "other-vehicle": VEHICLE,
    "person": PERSON,
    "road": ROAD,
    "parking": ROAD,
    "sidewalk": GROUND,
    "other-ground": GROUND,
    "building": BUILDING,
    "fence": FENCE,
    "other-structure": STRUCTURE,
    "vegetation": HIGH_VEGETATION,
    "trunk": HIGH_VEGETATION,
    "terrain": GROUND,
    "ground": GROUND,
    "pole": POLE,
    "traffic-sign": SIGN,
    "other-object": OBJECT,
    "grass": HIGH_VEGETATION,
    "shrub": HIGH_VEGETATION,
    "leaves": HIGH_VEGETATION,
    "needles": HIGH_VEGETATION,
    "branch": HIGH_VEGETATION,
    "trail": GROUND,
    "rock": GROUND,
    "log": OBJECT,
    "wall": STRUCTURE,
    "target": OBJECT,
    **dict.fromkeys(("low-shrub", "small-shrub", "medium-shrub", "large-shrub"), HIGH_VEGETATION),
    **dict.fromkeys(("small-tree", "medium-tree", "large-tree"), HIGH_VEGETATION),
}
_OF_SEMANTIC_KITTI = {
    **{_OUTLIER: LOW_NOISE, 60: ROAD},  # lane marking
    **dict.fromkeys((13, 16, 252, 256, 257, 258, 259), VEHICLE),  # bus, on rails, and what moves
    **dict.fromkeys((31, 32, 253, 254, 255), PERSON),  # riders, and who moves
}
"""Classes of SemanticKITTI that scenes have no name for, but its recordings have."""
_NAME_OF = {
    GROUND: "terrain",
    LOW_VEGETATION: "vegetation",
    MEDIUM_VEGETATION: "vegetation",
    HIGH_VEGETATION: "vegetation",
    BUILDING: "building",
    8: "terrain",  # model key-point
    10: "other-ground",  # rail
    ROAD: "road",
    13: "other-object",  # wires
    14: "other-object",
    15: "other-structure",  # transmission tower
    16: "other-object",  # wire-structure connector
    17: "other-structure",  # bridge deck
    19: "other-structure",  # overhead structure
    20: "terrain",  # ignored ground
    21: "terrain",  # snow
}


def _codes() -> NDArray[np.uint8]:
    table = np.full(65536, UNCLASSIFIED, np.uint8)
    for number, code in _OF_SEMANTIC_KITTI.items():
        table[number] = code
    for name, code in _OF_NAME.items():
        table[LABELS[name].number] = code
    return table


def _labels() -> NDArray[np.uint16]:
    table = np.zeros(256, np.uint16)
    for code, name in _NAME_OF.items():
        table[code] = LABELS[name].number
    table[[LOW_NOISE, 18]] = _OUTLIER  # low and high noise
    return table


_CODE_OF_LABEL, _LABEL_OF_CODE = _codes(), _labels()


def to_labels(code: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return our labels for ASPRS codes of a file that we did not write; 0 for codes without a word of ours."""
    return _LABEL_OF_CODE[code]


def to_codes(label: NDArray[np.uint16], points: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return ASPRS codes for labelled returns of one sweep.

    Args:
        label: (N,).
        points: (N, 3) where the returns are [m].
    """
    code = _CODE_OF_LABEL[label]
    plants = np.flatnonzero(code == HIGH_VEGETATION)
    is_ground = (code == GROUND) | (code == ROAD)
    if len(plants) and is_ground.any():
        height_m = heights_above(points[plants], points[is_ground])
        # Compared this way round, plants of unknown height (NaN) stay high.
        code[plants[height_m < HIGH_FROM_M]] = MEDIUM_VEGETATION
        code[plants[height_m < MEDIUM_FROM_M]] = LOW_VEGETATION
    return code


def heights_above(points: NDArray[np.float64], ground: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how high (N, 3) points are above the ground, NaN where none of it lies within about 5 m.

    The ground is flat in each square metre, at the mean of its (M, 3) points there; the points of a square take the
    nearest such square.
    """
    place_m, square = _squares(ground)
    ground_m = np.bincount(square, ground[:, 2]) / np.bincount(square)
    asked_m, asked = _squares(points)
    distances, indices = cKDTree(place_m).query(asked_m, distance_upper_bound=_NEAR_M)
    distance_m, nearest = np.asarray(distances), np.asarray(indices)
    below_m = np.append(ground_m, np.nan)[np.where(np.isfinite(distance_m), nearest, len(ground_m))]
    return points[:, 2] - below_m[asked]


def _squares(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return (S, 2) the corners of the squares that hold points, and (N,) the square of each point."""
    corner = np.floor(points[:, :2] / _SQUARE_M).astype(np.int64)
    first = corner.min(axis=0)
    east, north = (corner - first).T
    width = int(north.max()) + 1
    occupied, square = np.unique(east * width + north, return_inverse=True)
    return (np.stack([occupied // width, occupied % width], axis=1) + first) * _SQUARE_M, square
