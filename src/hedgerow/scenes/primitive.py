# SPDX-License-Identifier: Apache-2.0
"""Primitives: plants that were learned in one place and can stand in another (Tallavajhula 2018 §4.3.1).

A primitive is an asset of a library, which is a world without instances. Its frame: the foot on the ground under it is
the origin, z is up, x lies along its principal axis in the plane. `PrimitiveFacts` is what a library says of it, stored
with the asset.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow.base.arrays import Array
from hedgerow.base.parameters import Finite, NotNegative, Parameters
from hedgerow.errors import FileError, InputError, ParameterError, shown
from hedgerow.scenes.annotation import CLASSES
from hedgerow.world.assets import Asset
from hedgerow.world.store.files import WorldFile

SECTORS = 8
"""Sides from which a primitive may have been seen: sectors of azimuth around it."""
HALF_SEEN = SECTORS // 2
"""A primitive that was seen from at most so many sides in a row is half seen."""


class PrimitiveFacts(Parameters):
    """What a library says of a primitive."""

    class_name: str
    """One of the classes of annotations."""
    length_m: NotNegative
    """Extent along its x axis."""
    width_m: NotNegative
    """Extent along its y axis."""
    height_m: NotNegative
    """Top above its foot."""
    n_beams: int = Field(default=0, ge=0)
    """Beams that returned from it while it was learned; 0 is not known."""
    seen_from: Annotated[list[int], Field(min_length=SECTORS, max_length=SECTORS)] | None = None
    """How many of them came from each side: sectors of azimuth in its own frame, the first around its x axis."""
    ground_m: Annotated[list[Finite], Field(max_length=4)] = Field(default_factory=list[float])
    """Heights of the ground at the four corners of its box, above its foot."""
    yaw_rad: Finite = 0.0
    """Direction of its x axis in the world that it was learned from."""
    foot_m: Annotated[list[Finite], Field(max_length=3)] = Field(default_factory=list[float])
    """Its foot there, map frame."""
    world: str = ""
    """Name of that world."""
    object: int = Field(default=0, ge=0)
    """Number of the object there."""

    @property
    def extents_m(self) -> Array:
        """(3,) length, width, height."""
        return np.array([self.length_m, self.width_m, self.height_m])

    @property
    def is_half_seen(self) -> bool:
        """Whether it was seen from one side only; False where that is not known."""
        return self.seen_from is not None and 0 < _arc(self.seen_from) <= HALF_SEEN

    @property
    def seen_side_rad(self) -> float:
        """Direction from which it was seen most, in its own frame; 0 where that is not known."""
        if self.seen_from is None or sum(self.seen_from) == 0:
            return 0.0
        angle = 2 * np.pi * np.arange(SECTORS) / SECTORS
        return float(np.angle(np.sum(np.array(self.seen_from) * np.exp(1j * angle))))


def _arc(counts: Sequence[int]) -> int:
    """Length of the shortest run of sectors, round the circle, that holds nine tenths of what was seen."""
    total, best = sum(counts), SECTORS
    for start in range(SECTORS):
        held = 0
        for length in range(1, SECTORS + 1):
            held += counts[(start + length - 1) % SECTORS]
            if held >= 0.9 * total:
                best = min(best, length)
                break
    return best if total else 0


def facts_of(name: str, about: Any) -> PrimitiveFacts:
    """Read what a library says of a primitive.

    Raises:
        InputError: it says nothing of use; names the field.
    """
    try:
        facts = PrimitiveFacts.parse(dict(about), f"asset {name}")
    except ParameterError as error:
        raise InputError(f"asset {name}", f"is no primitive: {error}") from None
    if facts.class_name not in CLASSES:
        raise InputError(f"asset {name}", f"has the class {shown(facts.class_name)}; expected {', '.join(CLASSES)}")
    return facts


class Library:
    """Primitives on the disk: what they are is read at once, their elements when they are asked for."""

    def __init__(self, path: str | Path) -> None:
        """Open a library.

        Raises:
            FileError: missing, damaged, newer, or a world without primitives.
        """
        self.path = Path(path)
        self._file = WorldFile(path)
        if not self._file.assets:
            raise FileError(f"{path}: has no primitives; make a library with hedgerow primitives extract")
        try:
            self.facts = [facts_of(asset.name, asset.about) for asset in self._file.assets]
        except InputError as error:
            raise FileError(f"{path}: {error}") from error

    def __len__(self) -> int:
        """Count the primitives."""
        return len(self.facts)

    @property
    def names(self) -> list[str]:
        """Name of each."""
        return [asset.name for asset in self._file.assets]

    @property
    def n_elements(self) -> list[int]:
        """Number of elements of each."""
        return [asset.n_elements for asset in self._file.assets]

    def of_class(self, class_name: str) -> list[int]:
        """Return which primitives are of a class."""
        return [number for number, facts in enumerate(self.facts) if facts.class_name == class_name]

    def read(self, number: int) -> Asset:
        """Read the elements of one. Raises FileError if its file is missing or damaged."""
        return self._file.read_asset(number)


def nearest_extents(extents_m: Array, boxes_m: Array, k: int, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """Choose for each of (B, 3) boxes one of (P, 3) primitives by their extents.

    Args:
        extents_m: length, width and height of each primitive.
        boxes_m: those of the boxes.
        k: draw among so many of the nearest (Euclidean); 1 takes the nearest, as Tallavajhula 2018 does.
        rng: draws; not needed for k = 1.
    """
    from scipy.spatial import KDTree

    k = min(k, len(extents_m))
    _, near = KDTree(extents_m).query(boxes_m, k=range(1, k + 1))
    rank = np.zeros(len(boxes_m), dtype=np.int64) if rng is None or k == 1 else rng.integers(0, k, len(boxes_m))
    return np.asarray(near)[np.arange(len(boxes_m)), rank]
