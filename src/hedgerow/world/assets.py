# SPDX-License-Identifier: Apache-2.0
"""Assets: named sets of elements in a frame of their own, stored once and placed many times.

A world has a list of them, and a table of instances (`Instances`) that says where copies stand. A library of primitives
is a world of assets without instances.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.box import Box
from hedgerow.errors import InputError, shown
from hedgerow.world.check import check_table
from hedgerow.world.elements import Elements, Gaussians, Instances, Triangles
from hedgerow.world.scene import Scene
from hedgerow.world.store.header import plain

_LONGEST = 80
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


@dataclass(frozen=True, eq=False)
class Asset:
    """Elements in a frame of their own. Raises InputError naming what is wrong."""

    name: str
    """Lower-case letters, digits, dashes, dots and underscores; each asset of a world has its own."""
    parts: tuple[Triangles | Gaussians, ...]
    """Its elements; they are numbered part by part."""
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is known of it, as plain values: class, box, where it was learned."""

    def __post_init__(self) -> None:
        """Check name and tables."""
        if not _NAME.fullmatch(self.name) or len(self.name) > _LONGEST:
            said = f"expected up to {_LONGEST} lower-case letters, digits, dashes, dots and underscores"
            raise InputError("asset", f"{said}, found {shown(self.name)}")
        parts: list[Triangles | Gaussians] = []
        for part in self.parts:
            if not isinstance(part, Triangles | Gaussians):  # pyright: ignore[reportUnnecessaryIsInstance]
                found = type(part).__name__
                raise InputError(f"asset {self.name}", f"expected Triangles or Gaussians, found {found}")
            checked = check_table(part)
            assert isinstance(checked, Triangles | Gaussians)
            parts.append(checked)
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "about", plain(f"asset {self.name}", dict(self.about)))

    @property
    def n_elements(self) -> int:
        """Number of its elements."""
        return sum(len(part) for part in self.parts)

    @cached_property
    def box(self) -> Box:
        """Box outside of which no ray meets it, in its own frame; a point at its origin if it is empty."""
        bounds = [part.bounds_m() for part in self.parts if len(part)]
        joined = Box.joined(Box(low.min(axis=0), high.max(axis=0)) for low, high in bounds)
        return joined or Box(np.zeros(3), np.zeros(3))

    @cached_property
    def scene(self) -> Scene:
        """Its elements as the core has them, to be placed."""
        return self.scene_of(lambda: Scene((0.0, 0.0, 0.0)))

    def scene_of(self, new_scene: Callable[[], Scene]) -> Scene:
        """Return its elements as a scene of another kind; `new_scene` makes an empty one."""
        scene = new_scene()
        for part in self.parts:
            part.add_to(scene)
        return scene

    def n_parameters(self) -> int:
        """Count the numbers that define its elements."""
        return sum(part.n_parameters() for part in self.parts)

    def n_bytes(self) -> int:
        """Count the bytes that its tables take."""
        return sum(column.nbytes for part in self.parts for column in part.columns().values())


def instances_of(
    assets: Sequence[Asset], asset: NDArray[np.integer], transform: NDArray[np.float64], **how: Any
) -> Instances:
    """Make copies of assets; see `Instances.of`."""
    boxes, n_elements = [each.box for each in assets], [each.n_elements for each in assets]
    return Instances.of(asset, transform, boxes, n_elements, **how)


def spread_instances(assets: Sequence[Asset], instances: Instances, most: int) -> dict[str, Triangles | Gaussians]:
    """Return copies of assets as tables of elements in the map, for pictures; of more than `most`, evenly thinned.

    A table holds the Gaussians or the triangles of all copies, with the settings of the first.
    """
    total = int(instances.n_each.sum())
    step = max(1, -(-total // max(1, most)))
    found: dict[str, list[Triangles | Gaussians]] = {}
    for row, matrix in enumerate(instances.transform):
        for part in assets[int(instances.asset[row])].parts:
            name = "instances of " + ("triangles" if isinstance(part, Triangles) else "Gaussians")
            some = part[row % step :: step]
            if len(some):
                found.setdefault(name, []).append(some.transformed(matrix))
    return {name: type(parts[0]).join(parts) for name, parts in found.items()}  # pyright: ignore[reportArgumentType]


def require_assets(assets: Sequence[Asset], instances: Elements | None) -> None:
    """Check that names differ, and that instances name assets that are there and know their sizes.

    Raises:
        InputError: one does not; names it.
    """
    names = [each.name for each in assets]
    for name in names:
        if names.count(name) > 1:
            raise InputError("assets", f"the name {name} comes twice; each asset needs its own")
    if not isinstance(instances, Instances) or len(instances) == 0:
        return
    wrong = (instances.asset < 0) | (instances.asset >= len(assets))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError("instances.asset", f"row {row} is {instances.asset[row]}, but there are {len(assets)} assets")
    sizes = np.array([each.n_elements for each in assets], dtype=np.int64)
    wrong = instances.n_each != sizes[instances.asset]
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        found = f"row {row} is {instances.n_each[row]}, but asset {names[instances.asset[row]]} has"
        raise InputError("instances.n_each", f"{found} {sizes[instances.asset[row]]} elements")
