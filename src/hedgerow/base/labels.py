# SPDX-License-Identifier: Apache-2.0
"""Names and numbers of semantic classes: SemanticKITTI's where it has one, our own from 101 on for finer ones.

Files and mesh parts say names; returns carry numbers. Every own number folds into one of SemanticKITTI's, so that a log
with finer classes can be compared with a real one.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Label(NamedTuple):
    """One semantic class."""

    number: int
    """What a return carries, 0 to 65535."""
    semantic_kitti: int
    """SemanticKITTI's class that it belongs to; the number itself if it is one."""
    is_vegetation: bool
    """Whether a beam may pass through it in part: foliage, grass and twigs, not trunks."""


def _kitti(number: int, *, is_vegetation: bool = False) -> Label:
    return Label(number, number, is_vegetation)


LABELS: dict[str, Label] = {
    "unlabelled": _kitti(0),
    "car": _kitti(10),
    "bicycle": _kitti(11),
    "motorcycle": _kitti(15),
    "truck": _kitti(18),
    "other-vehicle": _kitti(20),
    "person": _kitti(30),
    "road": _kitti(40),
    "parking": _kitti(44),
    "sidewalk": _kitti(48),
    "other-ground": _kitti(49),
    "building": _kitti(50),
    "fence": _kitti(51),
    "other-structure": _kitti(52),
    "vegetation": _kitti(70, is_vegetation=True),
    "trunk": _kitti(71),
    "terrain": _kitti(72),
    "ground": _kitti(72),  # the same by another name
    "pole": _kitti(80),
    "traffic-sign": _kitti(81),
    "other-object": _kitti(99),
    "grass": Label(101, 70, True),
    "shrub": Label(102, 70, True),
    "leaves": Label(103, 70, True),
    "needles": Label(104, 70, True),
    "branch": Label(105, 70, True),
    "trail": Label(111, 49, False),
    "rock": Label(112, 72, False),
    "log": Label(113, 99, False),
    "wall": Label(114, 52, False),
    "target": Label(115, 99, False),
    "low-shrub": Label(121, 70, True),
    "small-shrub": Label(122, 70, True),
    "medium-shrub": Label(123, 70, True),
    "large-shrub": Label(124, 70, True),
    "small-tree": Label(125, 70, True),
    "medium-tree": Label(126, 70, True),
    "large-tree": Label(127, 70, True),
}
"""Every class that a mesh part may name; a scene file may add its own."""


SEMANTIC_KITTI = frozenset(
    [
        *[0, 1, 10, 11, 13, 15, 16, 18, 20, 30, 31, 32, 40, 44, 48, 49, 50, 51, 52, 60, 70, 71, 72, 80, 81, 99],
        *range(252, 260),
    ]
)
"""The numbers of SemanticKITTI's official table (semantic-kitti.yaml), moving things included."""


def numbers_of(labels: Mapping[str, Label]) -> dict[str, int]:
    """Return the number of each name."""
    return {name: label.number for name, label in labels.items()}


def vegetation_of(labels: Iterable[Label]) -> frozenset[int]:
    """Return the numbers of the classes that are vegetation."""
    return frozenset(label.number for label in labels if label.is_vegetation)


def with_finer(numbers: Iterable[int], labels: Mapping[str, Label] = LABELS) -> frozenset[int]:
    """Return these classes and all finer ones that fold into them: of vegetation (70) also grass, shrubs and leaves."""
    named = frozenset(numbers)
    return named | {label.number for label in labels.values() if label.semantic_kitti in named}


def to_semantic_kitti(number: NDArray[np.uint16], labels: Mapping[str, Label] = LABELS) -> NDArray[np.uint16]:
    """Fold our finer classes into SemanticKITTI's.

    Args:
        number: labels of returns, any shape; unknown numbers stay.
        labels: the classes in use.
    """
    table = np.arange(65536, dtype=np.uint16)
    for label in labels.values():
        table[label.number] = label.semantic_kitti
    folded: NDArray[Any] = table[number]
    return folded
