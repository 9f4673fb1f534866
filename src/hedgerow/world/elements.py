# SPDX-License-Identifier: Apache-2.0
"""Tables of elements: what learned worlds are made of, what they are stored as, and how they enter a scene.

Plain columns, one row per element, float64 positions in the map frame. A learner fills them, `LearnedWorld` fires at
them, the store writes them. Nothing here is checked beyond shapes: `Scene` checks values when it is built.
"""

from dataclasses import dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.world.noise import NOISELESS, SurfaceNoise
from hedgerow.world.scene import Scene

Law = Literal["permeability", "extinction"]
_UNLABELLED = 0


@dataclass(frozen=True, slots=True, eq=False)
class Elements:
    """Columns of equal length."""

    def __post_init__(self) -> None:
        """Refuse columns of unequal length."""
        n = len(self)
        for name, column in self.columns().items():
            if len(column) != n:
                raise InputError(f"{name}: has {len(column)} rows, expected {n}")

    def __len__(self) -> int:
        """Count the elements."""
        return len(next(iter(self.columns().values())))

    def __getitem__(self, rows: Any) -> Self:
        """Select elements by slice, mask or positions."""
        chosen = {name: column[rows] for name, column in self.columns().items()}
        return type(self)(**(self.settings() | chosen))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the arrays with one row per element, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}

    def settings(self) -> dict[str, Any]:
        """Return what is not an array, by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in self.columns()}


@dataclass(frozen=True, slots=True, eq=False)
class Gaussians(Elements):
    """Stochastic volumes (000 §3.3.3)."""

    mean_m: NDArray[np.float64]
    """(N, 3) map frame."""
    covariance_m2: NDArray[np.float64]
    """(N, 3, 3)."""
    stop: NDArray[np.float32]
    """(N,) permeability, or extinction [1/m], as `law` says."""
    intensity: NDArray[np.float32]
    """(N,) mean intensity of its returns; NaN if unknown."""
    intensity_sigma: NDArray[np.float32]
    """(N,) standard deviation of it."""
    label: NDArray[np.uint16]
    """(N,) most frequent label of its points; 0 if unknown."""
    law: Law = "permeability"
    tau: float = 3.5
    """Mahalanobis distance up to which a ray meets an element."""
    min_sigma_m: float = 0.001

    @classmethod
    def plain(cls, mean_m: NDArray[np.float64], covariance_m2: NDArray[np.float64], **settings: Any) -> Self:
        """Make solid Gaussians of unknown intensity and label; settings may replace any column."""
        n = len(mean_m)
        columns: dict[str, Any] = {
            "mean_m": mean_m,
            "covariance_m2": covariance_m2,
            "stop": np.zeros(n, dtype=np.float32),
            "intensity": np.full(n, np.nan, dtype=np.float32),
            "intensity_sigma": np.zeros(n, dtype=np.float32),
            "label": np.full(n, _UNLABELLED, dtype=np.uint16),
        }
        return cls(**(columns | settings))

    def add_to(self, scene: Scene) -> None:
        """Add all elements to a scene, in order."""
        law = {"permeability": "permeability", "extinction": "extinction_per_m"}[self.law]
        scene.add_gaussians(
            self.mean_m,
            self.covariance_m2,
            tau=self.tau,
            min_sigma_m=self.min_sigma_m,
            label=self.label,
            intensity=self.intensity,
            intensity_sigma=self.intensity_sigma,
            **{law: self.stop},
        )


@dataclass(frozen=True, slots=True, eq=False)
class Triangles(Elements):
    """A surface, permeable or not (000 §3.3.2). Each row has its own corners, so that rows can be cut into tiles."""

    corners_m: NDArray[np.float64]
    """(N, 3, 3) three corners, map frame."""
    permeability: NDArray[np.float32]
    """(N,)."""
    intensity: NDArray[np.float32]
    """(N,) mean intensity of its returns; NaN if unknown."""
    intensity_sigma: NDArray[np.float32]
    """(N,) standard deviation of it."""
    label: NDArray[np.uint16]
    """(N,) most frequent label of its points; 0 if unknown."""
    noise: SurfaceNoise = NOISELESS
    """Range noise by incidence angle."""

    @classmethod
    def plain(cls, corners_m: NDArray[np.float64], **settings: Any) -> Self:
        """Make solid triangles of unknown intensity and label; settings may replace any column."""
        n = len(corners_m)
        columns: dict[str, Any] = {
            "corners_m": corners_m,
            "permeability": np.zeros(n, dtype=np.float32),
            "intensity": np.full(n, np.nan, dtype=np.float32),
            "intensity_sigma": np.zeros(n, dtype=np.float32),
            "label": np.full(n, _UNLABELLED, dtype=np.uint16),
        }
        return cls(**(columns | settings))

    def add_to(self, scene: Scene) -> None:
        """Add all elements to a scene, in order."""
        scene.add_mesh(
            self.corners_m.reshape(-1, 3),
            np.arange(3 * len(self), dtype=np.uint32).reshape(-1, 3),
            permeability=self.permeability,
            label=self.label,
            reflectance=self.intensity,
            intensity_sigma=self.intensity_sigma,
            lambertian=False,
            noise=self.noise,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Points(Elements):
    """Remembered returns (000 §3.3.1 and §4.2)."""

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
    """Which point gives the range: the nearest to the ray's line (000 §4.2), or the first along it (001 §4.3.2)."""
    noise: SurfaceNoise = NOISELESS
