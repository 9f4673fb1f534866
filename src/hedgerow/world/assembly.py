# SPDX-License-Identifier: Apache-2.0
"""What a scene is made of: triangle meshes, Gaussian ellipsoids and placed copies of other scenes, checked.

Positions are float64 in the map frame here and float32 relative to `origin_m` inside, so a site far from the map's zero
keeps millimetres. Elements (triangles and Gaussians) are numbered through: first the scene's own in the order they were
added, then those of each placed scene in the order of placing, by the same rule. The elements are those of 000 §3.3.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core, arrays
from hedgerow.errors import InputError
from hedgerow.world.gaussians import whitening
from hedgerow.world.labels import LabelCounts, engine_labels
from hedgerow.world.noise import NOISELESS, SurfaceNoise
from hedgerow.world.per_element import between, known, require_below, stopping


class Assembly:
    """Meshes, Gaussians and placed assemblies; frozen once it is built or placed in another one."""

    def __init__(self, origin_m: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """Make an empty scene whose float32 frame sits at (3,) `origin_m` of the map, best near its middle."""
        self.origin_m: NDArray[np.float64] = arrays.as_floats("origin_m", origin_m, (3,))
        arrays.require_finite("origin_m", self.origin_m)
        self._core = _core.Scene()
        self._frozen = False

    @property
    def n_elements(self) -> int:
        """Number of triangles and Gaussians, those of placed scenes included."""
        return self._core.n_elements

    @property
    def native(self) -> _core.Scene:
        """The native scene, frozen, for kernels that are wrapped in modules of their own."""
        self.build()
        return self._core

    def add_mesh(
        self,
        vertices_m: ArrayLike,
        triangles: ArrayLike,
        *,
        permeability: ArrayLike = 0.0,
        label: ArrayLike | LabelCounts = 0,
        reflectance: ArrayLike = 0.5,
        intensity_sigma: ArrayLike = 0.0,
        lambertian: bool = True,
        noise: SurfaceNoise | Sequence[SurfaceNoise] = NOISELESS,
        noise_group: ArrayLike = 0,
    ) -> None:
        """Add triangles. What is per triangle may be one number for all.

        Args:
            vertices_m: (V, 3), map frame [m].
            triangles: (T, 3) vertex numbers; a triangle without area is never hit.
            permeability: probability that a ray passes, 0 to 1.
            label: semantic class, 0 to 65535, or counts of several, by which each return draws one.
            reflectance: share of the light sent back at normal incidence, 0 or more; NaN is unknown.
            intensity_sigma: standard deviation of the intensity.
            lambertian: whether intensity is reflectance times the cosine of the incidence angle, or reflectance alone.
            noise: range noise, or several groups of it.
            noise_group: which of the groups a triangle belongs to.

        Raises:
            InputError: wrong shape or value, naming argument and row, or the scene is in use already.
        """
        self._require_open()
        vertices: NDArray[np.float64] = arrays.as_floats("vertices_m", vertices_m, ("V", 3))
        arrays.require_finite("vertices_m", vertices)
        n = len(np.atleast_1d(triangles))
        corners = arrays.as_integers("triangles", np.zeros((0, 3)) if n == 0 else triangles, (n, 3), np.uint32)
        require_below("triangles", corners, len(vertices))
        groups = [noise] if isinstance(noise, SurfaceNoise) else list(noise)
        group = arrays.as_integers("noise_group", noise_group, (n,), np.uint8)
        require_below("noise_group", group, len(groups))
        modes, labels = engine_labels(label, n)
        self._core.add_mesh(
            vertices=np.ascontiguousarray(vertices - self.origin_m, dtype=np.float32),
            triangles=np.ascontiguousarray(corners),
            permeability=between("permeability", permeability, n, 0, 1),
            label=modes,
            reflectance=known("reflectance", reflectance, n),
            intensity_sigma=between("intensity_sigma", intensity_sigma, n, 0, np.inf),
            lambertian=lambertian,
            noise_group=np.ascontiguousarray(group),
            noise=[each.native() for each in groups],
            labels=labels,
        )

    def add_gaussians(
        self,
        mean_m: ArrayLike,
        covariance_m2: ArrayLike,
        *,
        permeability: ArrayLike | None = None,
        extinction_per_m: ArrayLike | None = None,
        depth: ArrayLike | None = None,
        tau: float = 3.5,
        label: ArrayLike | LabelCounts = 0,
        intensity: ArrayLike = 0.5,
        intensity_sigma: ArrayLike = 0.0,
        min_sigma_m: float = 0.001,
    ) -> None:
        """Add Gaussians. A ray meets one if its smallest Mahalanobis distance is at most `tau`.

        Args:
            mean_m: (N, 3), map frame [m].
            covariance_m2: (N, 3, 3) [m²].
            permeability: (N,) or one number: probability that a ray that meets it passes. Default 0.
            extinction_per_m: (N,) or one number k instead: it passes with exp(-k sigma_t exp(-dist²/2)) [1/m].
            depth: (N,) or one number u instead: it passes with exp(-u (1 - dist²/tau²)²), from all sides alike, and
                with nothing cut off at `tau`.
            tau: 3.5 as in 000; 002 took 2.
            label: semantic class, 0 to 65535, or counts of several, by which each return draws one.
            intensity: mean intensity of its returns, 0 or more; NaN is unknown.
            intensity_sigma: standard deviation of it.
            min_sigma_m: floor of the standard deviations [m].

        Raises:
            InputError: wrong shape or value, naming argument and row, or the scene is in use already.
        """
        self._require_open()
        mean: NDArray[np.float64] = arrays.as_floats("mean_m", mean_m, ("N", 3))
        arrays.require_finite("mean_m", mean)
        n = len(mean)
        if not 0 < tau < np.inf or not 0 < min_sigma_m < np.inf:
            raise InputError("tau, min_sigma_m", f"expected finite numbers above 0, found {tau}, {min_sigma_m}")
        law, stop = stopping(n, permeability, extinction_per_m, depth)
        covariance = arrays.as_floats("covariance_m2", np.zeros((0, 3, 3)) if n == 0 else covariance_m2, (n, 3, 3))
        modes, labels = engine_labels(label, n)
        self._core.add_gaussians(
            mean_m=np.ascontiguousarray(mean - self.origin_m, dtype=np.float32),
            whitening=whitening(covariance, min_sigma_m),
            stop=stop,
            label=modes,
            intensity=known("intensity", intensity, n),
            intensity_sigma=between("intensity_sigma", intensity_sigma, n, 0, np.inf),
            law=law,
            tau=tau,
            labels=labels,
        )

    def place(
        self, scene: "Assembly", transforms: ArrayLike, *, label: ArrayLike = -1, first_element: int | None = None
    ) -> None:
        """Place another scene, once for each transform; its elements are shared, not copied.

        Args:
            scene: it is frozen from now on; may itself be made of placed scenes.
            transforms: (4, 4) or (M, 4, 4) affine, from the other scene's map frame to this one's.
            label: replaces the labels of its elements; -1 keeps them. One number, or (M,).
            first_element: number of its first element, above the scene's own and those of other placed scenes; wants
                exactly one transform. So a part of a world throws the same coins as the whole. Default: numbered
                through.

        Raises:
            InputError: wrong shape, not finite, not invertible, or the scene is in use already.
        """
        self._require_open()
        matrices: NDArray[np.float64] = arrays.as_floats("transforms", transforms, (4, 4), ("M", 4, 4))
        matrices = matrices.reshape(-1, 4, 4)
        arrays.require_finite("transforms", matrices)
        flat = np.abs(np.linalg.det(matrices[:, :3, :3])) < 1e-30
        if flat.any():
            raise arrays.RowError("transforms", arrays.first_row(flat), "is not invertible")
        if scene is self:
            raise InputError("scene", "cannot be placed inside itself")
        # Both scenes are float32 around their own origins; the shift between those is done here, in float64.
        local = matrices[:, :3].copy()
        local[:, :, 3] += matrices[:, :3, :3] @ scene.origin_m - self.origin_m
        labels = arrays.as_integers("label", label, (len(matrices),), np.int32)
        wrong = (labels < -1) | (labels > 65535)
        if wrong.any():
            raise arrays.RowError("label", arrays.first_row(wrong), "is not a label from 0 to 65535, or -1")
        if first_element is not None and (first_element < 0 or len(matrices) != 1):
            raise InputError("first_element", f"expected 0 or more and one transform, found {first_element}")
        scene._frozen = True
        self._core.place(
            scene._core,
            transforms=np.ascontiguousarray(local.reshape(-1, 12)),
            label=np.ascontiguousarray(labels),
            first_element=-1 if first_element is None else first_element,
        )

    def build(self) -> None:
        """Build the acceleration structures now rather than at the first firing."""
        self._frozen = True
        self._core.build()

    def _require_open(self) -> None:
        if self._frozen:
            raise InputError("scene", "in use already; add everything before firing at it or placing it")
