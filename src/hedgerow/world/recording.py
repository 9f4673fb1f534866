# SPDX-License-Identifier: Apache-2.0
"""RecordingScene: a scene that remembers what it is made of, so that it can be saved as a world of assets.

A native scene keeps no tables. A site that is to be saved is built of these instead: the same calls, and afterwards
`composed_world` makes of each placed scene an asset, and of each copy a row of the table of instances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.world.assets import Asset, instances_of
from hedgerow.world.elements import Gaussians, Instances, Law, Triangles
from hedgerow.world.labels import LabelCounts
from hedgerow.world.learned import BEAM, LearnedWorld
from hedgerow.world.scene import Scene
from hedgerow.world.store.header import Provenance, plain
from hedgerow.world.store.tiles import tile_of
from hedgerow.world.surface_noise import NOISELESS, SurfaceNoise

Part = Triangles | Gaussians


@dataclass(frozen=True, slots=True, eq=False)
class _Copies:
    """Copies of another scene, as they were placed."""

    scene: "RecordingScene"
    matrices: NDArray[np.float64]
    label: NDArray[np.int32]
    object: NDArray[np.uint32]


class RecordingScene(Scene):
    """A scene that keeps the tables of what is added to it, and what is placed in it."""

    def __init__(self, origin_m: ArrayLike | None = None) -> None:
        """Make an empty scene."""
        super().__init__(origin_m)
        self.parts: list[Part] = []
        self.copies: list[_Copies] = []

    def add_mesh(self, vertices_m: ArrayLike, triangles: ArrayLike, **how: Any) -> None:
        """Add triangles, as `Scene.add_mesh` does; one group of noise."""
        super().add_mesh(vertices_m, triangles, **how)
        corners = np.asarray(triangles, dtype=np.int64).reshape(-1, 3)
        n = len(corners)
        noise = how.get("noise", NOISELESS)
        assert isinstance(noise, SurfaceNoise)  # scene files know one for each material
        if n == 0:
            return
        table = Triangles(
            corners_m=np.asarray(vertices_m, dtype=np.float64)[corners],
            permeability=_column(how.get("permeability", 0.0), n, np.float32),
            intensity=_column(how.get("reflectance", 0.5), n, np.float32),
            intensity_sigma=_column(how.get("intensity_sigma", 0.0), n, np.float32),
            label=LabelCounts.of(how.get("label", 0), n),
            object=_column(how.get("object", 0), n, np.uint32),
            noise=noise,
            answer=how.get("answer", "sub_ray"),
            lambertian=bool(how.get("lambertian", True)),
        )
        self.parts.append(table)

    def add_gaussians(self, mean_m: ArrayLike, covariance_m2: ArrayLike, **how: Any) -> None:
        """Add Gaussians, as `Scene.add_gaussians` does."""
        super().add_gaussians(mean_m, covariance_m2, **how)
        mean: NDArray[np.float64] = np.asarray(mean_m, dtype=np.float64).reshape(-1, 3)
        n = len(mean)
        if n == 0:
            return
        laws: dict[str, Law] = {"extinction_per_m": "extinction", "depth": "depth", "permeability": "permeability"}
        given = next((name for name in laws if how.get(name) is not None), "permeability")
        table = Gaussians(
            mean_m=mean,
            covariance_m2=np.asarray(covariance_m2, dtype=np.float64),
            stop=_column(how.get(given, 0.0), n, np.float32),
            intensity=_column(how.get("intensity", 0.5), n, np.float32),
            intensity_sigma=_column(how.get("intensity_sigma", 0.0), n, np.float32),
            label=LabelCounts.of(how.get("label", 0), n),
            object=_column(how.get("object", 0), n, np.uint32),
            law=laws[given],
            tau=float(how.get("tau", 3.5)),
            min_sigma_m=float(how.get("min_sigma_m", 0.001)),
        )
        self.parts.append(table)

    def place(
        self,
        scene: Scene,
        transforms: ArrayLike,
        *,
        label: ArrayLike = -1,
        object: ArrayLike | None = None,
        first_element: int | None = None,
    ) -> None:
        """Place another such scene, as `Scene.place` does."""
        super().place(scene, transforms, label=label, object=object, first_element=first_element)
        assert isinstance(scene, RecordingScene)  # whoever records makes all scenes so
        matrices = np.asarray(transforms, dtype=np.float64).reshape(-1, 4, 4)
        n = len(matrices)
        owner = _column(0 if object is None else object, n, np.uint32)
        self.copies.append(_Copies(scene, matrices, _column(label, n, np.int32), owner))


def _column(values: ArrayLike, n: int, dtype: Any) -> NDArray[Any]:
    column: NDArray[Any] = np.asarray(values, dtype=dtype)
    return np.broadcast_to(column, (n,)).copy()


@dataclass
class _Collected:
    """Assets and their copies, as they are found on the way through a scene."""

    assets: list[Asset] = field(default_factory=list[Asset])
    number: dict[int, int] = field(default_factory=dict[int, int])
    """Of the asset that a scene has become, by the scene's identity."""
    asset: list[NDArray[np.int32]] = field(default_factory=list[NDArray[np.int32]])
    transform: list[NDArray[np.float64]] = field(default_factory=list[NDArray[np.float64]])
    label: list[NDArray[np.int32]] = field(default_factory=list[NDArray[np.int32]])
    object: list[NDArray[np.uint32]] = field(default_factory=list[NDArray[np.uint32]])

    def add(
        self,
        number: int,
        matrices: NDArray[np.float64],
        label: NDArray[np.int32],
        object: NDArray[np.uint32],
    ) -> None:
        self.asset.append(np.full(len(matrices), number, dtype=np.int32))
        self.transform.append(matrices)
        self.label.append(label)
        self.object.append(object)

    def walk(
        self,
        scene: RecordingScene,
        name: str,
        matrices: NDArray[np.float64],
        label: NDArray[np.int32],
        object: NDArray[np.uint32],
    ) -> None:
        """Add copies of a scene: of its own elements as one asset, and of what is placed in it likewise."""
        if scene.parts:
            if id(scene) not in self.number:
                self.number[id(scene)] = len(self.assets)
                self.assets.append(Asset(name, tuple(scene.parts)))
            self.add(self.number[id(scene)], matrices, label, object)
        for k, inner in enumerate(scene.copies):
            both = np.einsum("nij,mjk->nmik", matrices, inner.matrices).reshape(-1, 4, 4)
            shape = (len(matrices), len(inner.matrices))
            inside = np.where(label[:, None] >= 0, label[:, None], inner.label)
            owner = np.where(object[:, None] > 0, object[:, None], inner.object)
            self.walk(inner.scene, f"{name}.{k}", both, *(np.broadcast_to(a, shape).ravel() for a in (inside, owner)))

    def instances(self, class_of_object: NDArray[np.uint16]) -> Instances:
        asset, owner = np.concatenate(self.asset), np.concatenate(self.object)
        order = np.argsort(asset, kind="stable")  # those of one asset side by side are placed in one go
        known = np.minimum(owner, len(class_of_object) - 1)
        return instances_of(
            self.assets,
            asset[order],
            np.concatenate(self.transform)[order],
            label=np.concatenate(self.label)[order],
            class_label=np.where(owner < len(class_of_object), class_of_object[known], 0)[order],
            object=owner[order],
        )


def composed_world(
    scene: RecordingScene,
    *,
    names: Mapping[int, str] | None = None,
    classes: Mapping[str, int] | None = None,
    class_of_object: NDArray[np.uint16] | None = None,
    parameters: Mapping[str, Any] | None = None,
    provenance: Provenance | None = None,
    tile_m: float = 32.0,
) -> LearnedWorld:
    """Make a world of a scene: its own elements as tables, what is placed in it as assets and instances.

    Of its own elements, the most triangles and the most Gaussians that share their settings become the world's tables;
    others become assets of one tile each, so that everything is cut into tiles.

    Args:
        scene: what was built.
        names: of the assets that placed scenes become, by the identity of the scene. Default: numbered.
        classes: numbers of the classes that labels are of, by name.
        class_of_object: (K,) number of the class of each object, from object 0, none, on.
        parameters: settings, as plain values; with `beam` among them if meshes are met by sub-rays.
        provenance: where it comes from.
        tile_m: side of the tiles on the disk [m].
    """
    found = _Collected()
    tables, others = _main_tables(scene.parts)
    for k, part in enumerate(others):
        _add_tiles(found, f"part-{k}", part, tile_m)
    for k, inner in enumerate(scene.copies):
        name = (names or {}).get(id(inner.scene), f"asset-{k}")
        found.walk(inner.scene, _free(name, found.assets), inner.matrices, inner.label, inner.object)
    of_object = np.zeros(1, dtype=np.uint16) if class_of_object is None else class_of_object
    everything: list[Any] = [*tables, *([found.instances(of_object)] if found.assets else [])]
    said = dict(parameters or {})
    if not scene.answers("sub_ray"):
        said.pop(BEAM, None)
    return LearnedWorld(
        *everything,
        kind="composed",
        assets=found.assets,
        classes=classes,
        parameters=plain("parameters", said),
        provenance=provenance,
        tile_m=tile_m,
    )


def _free(name: str, assets: Sequence[Asset]) -> str:
    taken = {asset.name for asset in assets}
    return name if name not in taken else next(f"{name}_{k}" for k in range(2, 10**9) if f"{name}_{k}" not in taken)


def _main_tables(parts: Sequence[Part]) -> tuple[list[Part], list[Part]]:
    """Join parts of the same settings; return the largest of triangles and of Gaussians, and the rest."""
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(f"{type(part).__name__} {part.settings()}", []).append(part)
    joined: list[Part] = [type(group[0]).join(group) for group in groups.values()]  # pyright: ignore[reportArgumentType]
    triangles = [table for table in joined if isinstance(table, Triangles)]
    gaussians = [table for table in joined if not isinstance(table, Triangles)]
    chosen: list[Part] = [max(alike, key=len) for alike in (triangles, gaussians) if alike]
    return chosen, [table for table in joined if all(table is not each for each in chosen)]


def _add_tiles(found: _Collected, name: str, part: Part, tile_m: float) -> None:
    """Add elements that stand in the map as assets of one tile each, in the frame of its middle."""
    tile = tile_of(part.centre_m(), tile_m)
    for (x, y), rows in _by_tile(tile):
        matrix = np.eye(4)
        matrix[:2, 3] = (x + 0.5) * tile_m, (y + 0.5) * tile_m
        back = 2 * np.eye(4) - matrix  # of a shift alone
        found.assets.append(Asset(f"{name}.{x}_{y}", (part[rows].transformed(back),)))
        number = len(found.assets) - 1
        found.add(number, matrix[None], np.full(1, -1, dtype=np.int32), np.zeros(1, dtype=np.uint32))


def _by_tile(tile: NDArray[np.int64]) -> list[tuple[tuple[int, int], NDArray[np.intp]]]:
    order = np.lexsort((tile[:, 1], tile[:, 0]))
    ends = np.flatnonzero((np.diff(tile[order], axis=0) != 0).any(axis=1)) + 1
    groups = np.split(order, ends)
    return [((int(tile[rows[0], 0]), int(tile[rows[0], 1])), rows) for rows in groups if len(rows)]
