# SPDX-License-Identifier: Apache-2.0
"""Tables of elements: what learned worlds are made of, what they are stored as, and how they enter a scene.

Plain columns, one row per element, float64 positions in the map frame. A learner fills them, `LearnedWorld` fires at
them, the store writes them. Only lengths are checked here; `check.py` checks the rest when a world is made of them.

Equations: docs/models.md §2 to §4.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base.box import Box
from hedgerow.base.columns import set_fields
from hedgerow.errors import InputError
from hedgerow.world.labels import LabelCounts
from hedgerow.world.placement import placed_boxes
from hedgerow.world.scene import Answer, Scene
from hedgerow.world.surface_noise import NOISELESS, SurfaceNoise

Law = Literal["permeability", "extinction", "depth"]
Column = NDArray[Any] | LabelCounts
"""One row per element."""
_UNLABELLED = 0
_NO_OBJECTS = np.zeros(0, dtype=np.uint32)
"""Stands for no objects in a table of any length."""


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Columns of equal length."""

    def __post_init__(self) -> None:
        """Refuse columns of unequal length; a table without objects gets a column of none."""
        n = len(self)
        if getattr(self, "object", None) is _NO_OBJECTS:
            set_fields(self, {"object": np.zeros(n, dtype=np.uint32)})
        for name, column in self.columns().items():
            if len(column) != n:
                raise InputError(name, f"has {len(column)} rows, expected {n}")

    def __len__(self) -> int:
        """Count the elements."""
        return len(next(iter(self.columns().values())))

    def __getitem__(self, rows: Any) -> Self:
        """Select elements by slice, mask or positions."""
        chosen = {name: column[rows] for name, column in self.columns().items()}
        return type(self)(**(self.settings() | chosen))

    @classmethod
    def join(cls, tables: Sequence[Self]) -> Self:
        """Put the elements of several tables one after the other, with the settings of the first; at least one."""
        stacks = [table.columns() for table in tables]
        columns = {name: _join_column([stack[name] for stack in stacks]) for name in stacks[0]}
        return type(tables[0])(**(tables[0].settings() | columns))

    def columns(self) -> dict[str, Column]:
        """Return what has one row per element, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray | LabelCounts)}

    def settings(self) -> dict[str, Any]:
        """Return what is not a column, by name."""
        columns = self.columns()
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in columns}

    def centre_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) middles of the elements, map frame."""
        raise NotImplementedError

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the (N, 3) low and high corners of boxes outside of which no ray meets the element, map frame."""
        raise NotImplementedError

    def n_parameters(self) -> int:
        """Count the numbers that define the elements, as Tables 8 and 9 of Browning 2012 do (§6.2.6 there)."""
        raise NotImplementedError

    def n_elements(self) -> NDArray[np.int64]:
        """Return (N,) how many element numbers each row takes: one, but for copies of assets."""
        return np.ones(len(self), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians(Elements):
    """Stochastic volumes (Browning 2012 §3.3.3)."""

    mean_m: NDArray[np.float64]
    """(N, 3) map frame."""
    covariance_m2: NDArray[np.float64]
    """(N, 3, 3)."""
    stop: NDArray[np.float32]
    """(N,) how much it stops, by the law: permeability, extinction [1/m] or optical depth (`Scene.add_gaussians`)."""
    intensity: NDArray[np.float32]
    """(N,) mean intensity of its returns; NaN if unknown."""
    intensity_sigma: NDArray[np.float32]
    """(N,) standard deviation of it."""
    label: LabelCounts
    """(N,) how many of its points have which label; a return draws one by its share."""
    object: NDArray[np.uint32] = field(default_factory=lambda: _NO_OBJECTS)
    """(N,) number of the plant or thing that it is part of; 0 is none, and none is the default."""
    law: Law = "permeability"
    tau: float = 3.5
    """Mahalanobis distance up to which a ray meets an element."""
    min_sigma_m: float = 0.001

    @classmethod
    def plain(
        cls,
        mean_m: NDArray[np.float64],
        covariance_m2: NDArray[np.float64],
        *,
        label: ArrayLike | LabelCounts = _UNLABELLED,
        **settings: Any,
    ) -> Self:
        """Make solid Gaussians of unknown intensity and label; settings may replace any column.

        Labels may be given as whole numbers too, one per element or one for all.
        """
        n = len(mean_m)
        columns: dict[str, Any] = {
            "mean_m": mean_m,
            "covariance_m2": covariance_m2,
            "stop": np.zeros(n, dtype=np.float32),
            "intensity": np.full(n, np.nan, dtype=np.float32),
            "intensity_sigma": np.zeros(n, dtype=np.float32),
            "label": LabelCounts.of(label, n),
        }
        return cls(**(columns | settings))

    def centre_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) means, map frame."""
        return self.mean_m

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the boxes around the tau-ellipsoids."""
        # Raising eigenvalues to the floor adds at most its square to any variance.
        variance = np.einsum("nii->ni", self.covariance_m2) + self.min_sigma_m**2
        half = self.tau * np.sqrt(variance)
        return self.mean_m - half, self.mean_m + half

    def transformed(self, matrix: NDArray[np.float64]) -> Self:
        """Return the elements placed by a (4, 4) or (3, 4) affine transform; depth and extinction stay as they are."""
        turn, shift = matrix[:3, :3], matrix[:3, 3]
        placed = turn @ self.covariance_m2 @ turn.T
        symmetric = (placed + placed.transpose(0, 2, 1)) / 2
        return replace(self, mean_m=self.mean_m @ turn.T + shift, covariance_m2=symmetric)

    def n_parameters(self) -> int:
        """Count 10 each: mean 3, covariance 6, permeability (or extinction, or depth) 1."""
        return 10 * len(self)

    def add_to(self, scene: Scene) -> None:
        """Add all elements to a scene, in order."""
        stopping: dict[str, Any] = {"extinction_per_m" if self.law == "extinction" else self.law: self.stop}
        scene.add_gaussians(
            self.mean_m,
            self.covariance_m2,
            tau=self.tau,
            min_sigma_m=self.min_sigma_m,
            label=self.label,
            intensity=self.intensity,
            intensity_sigma=self.intensity_sigma,
            answer="pulse",
            object=self.object,
            **stopping,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Triangles(Elements):
    """A surface, permeable or not (Browning 2012 §3.3.2); rows share no corners, so that they can be cut into tiles."""

    corners_m: NDArray[np.float64]
    """(N, 3, 3) three corners, map frame."""
    permeability: NDArray[np.float32]
    """(N,)."""
    intensity: NDArray[np.float32]
    """(N,) mean intensity of its returns; NaN if unknown."""
    intensity_sigma: NDArray[np.float32]
    """(N,) standard deviation of it."""
    label: LabelCounts
    """(N,) how many of its points have which label; a return draws one by its share."""
    object: NDArray[np.uint32] = field(default_factory=lambda: _NO_OBJECTS)
    """(N,) number of the plant or thing that it is part of; 0 is none, and none is the default."""
    noise: SurfaceNoise = NOISELESS
    """Range noise by incidence angle."""
    answer: Answer = "pulse"
    """What of a pulse with width meets it: learned triangles the pulse, meshes each sub_ray (`Scene.add_mesh`)."""
    lambertian: bool = False
    """Whether its intensity falls with the cosine of the incidence angle, as that of a mesh's material does."""

    @classmethod
    def plain(
        cls, corners_m: NDArray[np.float64], *, label: ArrayLike | LabelCounts = _UNLABELLED, **settings: Any
    ) -> Self:
        """Make solid triangles of unknown intensity and label; settings may replace any column.

        Labels may be given as whole numbers too, one per element or one for all.
        """
        n = len(corners_m)
        columns: dict[str, Any] = {
            "corners_m": corners_m,
            "permeability": np.zeros(n, dtype=np.float32),
            "intensity": np.full(n, np.nan, dtype=np.float32),
            "intensity_sigma": np.zeros(n, dtype=np.float32),
            "label": LabelCounts.of(label, n),
        }
        return cls(**(columns | settings))

    def centre_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) means of the corners, map frame."""
        return self.corners_m.mean(axis=1)

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the boxes around the corners."""
        return self.corners_m.min(axis=1), self.corners_m.max(axis=1)

    def transformed(self, matrix: NDArray[np.float64]) -> Self:
        """Return the triangles placed by a (4, 4) or (3, 4) affine transform."""
        return replace(self, corners_m=self.corners_m @ matrix[:3, :3].T + matrix[:3, 3])

    def n_parameters(self) -> int:
        """Count 9 each (three corners, shared or not, as Browning 2012 does), or 10 if any triangle is permeable."""
        return (10 if (self.permeability > 0).any() else 9) * len(self)

    def add_to(self, scene: Scene) -> None:
        """Add all elements to a scene, in order."""
        scene.add_mesh(
            self.corners_m.reshape(-1, 3),
            np.arange(3 * len(self), dtype=np.uint32).reshape(-1, 3),
            permeability=self.permeability,
            label=self.label,
            reflectance=self.intensity,
            intensity_sigma=self.intensity_sigma,
            lambertian=self.lambertian,
            noise=self.noise,
            answer=self.answer,
            object=self.object,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Points(Elements):
    """Returns that are remembered as they were measured (Browning 2012 §3.3.1 and §4.2)."""

    position_m: NDArray[np.float64]
    """(N, 3) map frame."""
    normal: NDArray[np.float32]
    """(N, 3) of the local surface, unit length; sets the range noise."""
    intensity: NDArray[np.float32]
    """(N,) NaN if unknown."""
    label: NDArray[np.uint16]
    """(N,) 0 if unknown."""
    reach_m: float = 0.01
    """A ray sees points up to this far off its line."""
    pick: Literal["nearest", "first"] = "nearest"
    """Which point gives the range: the nearest to the ray's line (Browning 2012 §4.2), or the first along it
    (Tallavajhula 2018 §4.3.2)."""
    noise: SurfaceNoise = NOISELESS
    """Range noise by incidence angle, that of a surface (Browning 2012 §4.2)."""

    @classmethod
    def plain(cls, position_m: NDArray[np.float64], normal: NDArray[np.float32], **settings: Any) -> Self:
        """Make points of unknown intensity and label; settings may replace any column."""
        n = len(position_m)
        columns: dict[str, Any] = {
            "position_m": position_m,
            "normal": normal,
            "intensity": np.full(n, np.nan, dtype=np.float32),
            "label": np.full(n, _UNLABELLED, dtype=np.uint16),
        }
        return cls(**(columns | settings))

    def centre_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) positions, map frame."""
        return self.position_m

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the boxes around the spheres of `reach_m`."""
        return self.position_m - self.reach_m, self.position_m + self.reach_m

    def n_parameters(self) -> int:
        """Count 3 each: the position."""
        return 3 * len(self)


@dataclass(frozen=True, slots=True, eq=False)
class RememberedBeams(Elements):
    """Beams that are remembered with what they measured, no return included (Browning 2012 §4.2)."""

    origin_m: NDArray[np.float64]
    """(N, 3) map frame."""
    direction: NDArray[np.float32]
    """(N, 3) unit length."""
    range_m: NDArray[np.float32]
    """(N,) of the first return; inf if there was none."""
    normal: NDArray[np.float32]
    """(N, 3) of the surface at the return, unit length; sets the range noise. Without a return it does not matter."""
    intensity: NDArray[np.float32]
    """(N,) NaN if unknown."""
    label: NDArray[np.uint16]
    """(N,) 0 if unknown."""
    length_m: float = 20.0
    """Two beams are as far apart as their rays are, root mean square over this length."""
    noise: SurfaceNoise = NOISELESS
    """Range noise by incidence angle, that of a surface."""

    def centre_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) origins, map frame."""
        return self.origin_m

    def ends_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) places of the returns, map frame; the origin where there is none."""
        reach_m = np.where(np.isfinite(self.range_m), self.range_m, 0).astype(np.float64)
        return self.origin_m + reach_m[:, None] * self.direction

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the boxes around origin and return."""
        ends_m = self.ends_m()
        return np.minimum(self.origin_m, ends_m), np.maximum(self.origin_m, ends_m)

    def n_parameters(self) -> int:
        """Count 6 each: origin 3, direction 2, range 1."""
        return 6 * len(self)


@dataclass(frozen=True, slots=True, eq=False)
class Instances(Elements):
    """Copies of the world's assets, each at a place of its own; the elements of an asset are stored once."""

    asset: NDArray[np.int32]
    """(N,) which asset, from 0."""
    transform: NDArray[np.float64]
    """(N, 3, 4) from the asset's frame to the map."""
    label: NDArray[np.int32]
    """(N,) replaces the labels of its elements; -1 keeps them."""
    class_label: NDArray[np.uint16]
    """(N,) number of the class that it is of, for example large-tree; 0 is none."""
    object: NDArray[np.uint32]
    """(N,) number of the object that it is; 0 is none."""
    n_each: NDArray[np.int64]
    """(N,) how many elements the asset has."""
    low_m: NDArray[np.float64]
    """(N, 3) corner of the box outside of which no ray meets it, map frame."""
    high_m: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        asset: NDArray[np.integer],
        transform: NDArray[np.float64],
        boxes: Sequence[Box],
        n_elements: Sequence[int],
        *,
        label: ArrayLike = -1,
        class_label: ArrayLike = 0,
        object: ArrayLike = 0,
    ) -> Self:
        """Make copies of assets whose boxes, in their own frames, and numbers of elements are these.

        Args:
            asset: (N,) which one.
            transform: (N, 4, 4) or (N, 3, 4).
            boxes: one for each asset.
            n_elements: likewise.
            label, class_label, object: (N,), or one for all.
        """
        n = len(asset)
        matrices = transform[:, :3, :]
        low, high = np.array([each.low_m for each in boxes]), np.array([each.high_m for each in boxes])
        low_m, high_m = placed_boxes(low.reshape(-1, 3)[asset], high.reshape(-1, 3)[asset], matrices)
        return cls(
            asset=asset.astype(np.int32),
            transform=np.ascontiguousarray(matrices, dtype=np.float64),
            label=np.broadcast_to(np.asarray(label, dtype=np.int32), n).copy(),
            class_label=np.broadcast_to(np.asarray(class_label, dtype=np.uint16), n).copy(),
            object=np.broadcast_to(np.asarray(object, dtype=np.uint32), n).copy(),
            n_each=np.asarray(n_elements, dtype=np.int64)[asset],
            low_m=low_m,
            high_m=high_m,
        )

    def centre_m(self) -> NDArray[np.float64]:
        """Return the (N, 3) places of the assets' origins, map frame."""
        return self.transform[:, :, 3]

    def bounds_m(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the boxes around the copies."""
        return self.low_m, self.high_m

    def n_parameters(self) -> int:
        """Count 7 each: which asset, and its pose; the assets are counted once."""
        return 7 * len(self)

    def n_elements(self) -> NDArray[np.int64]:
        """Return (N,) how many elements each copy has."""
        return self.n_each

    def matrices(self) -> NDArray[np.float64]:
        """Return the (N, 4, 4) transforms."""
        square = np.tile(np.eye(4), (len(self), 1, 1))
        square[:, :3] = self.transform
        return square

    def place_in(self, scene: Scene, assets: Sequence[Scene]) -> None:
        """Place the copies in a scene, in order; those of one asset that stand in a row in one call."""
        matrices = self.matrices()
        changes = np.flatnonzero(np.diff(self.asset) != 0) + 1
        for start, end in pairwise([0, *changes.tolist(), len(self)] if len(self) else []):
            rows = slice(start, end)
            asset = assets[int(self.asset[start])]
            scene.place(asset, matrices[rows], label=self.label[rows], object=self.object[rows])


def _join_column(columns: Sequence[Column]) -> Column:
    counts = [column for column in columns if isinstance(column, LabelCounts)]
    if counts:
        return LabelCounts.concatenate(counts)
    return np.concatenate([column for column in columns if not isinstance(column, LabelCounts)])
