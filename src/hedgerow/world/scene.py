# SPDX-License-Identifier: Apache-2.0
"""Scene: meshes, Gaussians and placed copies of other scenes, and the questions that rays ask them.

A checked wrapper over the native scene (`hedgerow._core`). Positions are float64 in the map frame here and float32
relative to `origin_m` inside, so a site far from the map's zero keeps millimetres. Nothing lies beyond ±1e8 m of the
map's zero (`arrays.FARTHEST_M`), nor does anything placed reach there: beyond, float32 overflows.

Elements (triangles and Gaussians, Browning 2012 §3.3) are numbered through: first the scene's own in the order they
were added, then those of each placed scene in the order of placing, by the same rule. Equations: docs/models.md §3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow import _core
from hedgerow.base import arrays
from hedgerow.base.arguments import as_number, as_whole, require_each, require_kind
from hedgerow.base.box import Box, distance_text
from hedgerow.base.progress import Progress
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError, shown, warn
from hedgerow.log import Beams, require_limits
from hedgerow.world.element_arrays import (
    numbers_or_unknown,
    numbers_within,
    require_below,
    stop_law,
    whitening,
)
from hedgerow.world.forecast import Forecast
from hedgerow.world.labels import LabelCounts, engine_labels
from hedgerow.world.objects import ObjectIndex
from hedgerow.world.placement import nearest_m, placed_box, smallest_scale
from hedgerow.world.surface_noise import NOISELESS, SurfaceNoise

_FAR_M = 1e4
"""A scene that begins farther than this from the map's zero gets an origin of its own: float32 steps by 1 mm there."""
_COARSE_M = 0.01
"""Rounding of float32 that is worth a warning."""
_LEAST_SIGMA, _MOST_SIGMA = 1e-9, 1e8
MOST_UNFOLDED = 4_000_000
"""Copies of Gaussians, all placed scenes together, that stand in one search tree: half a gigabyte, and twice as fast as
instances. More than these are instances (docs/compose.md)."""
Answer = Literal["sub_ray", "pulse"]
"""What of a pulse with width an element meets; see `Scene.add_mesh`."""


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """First return of each pulse; without one the range is inf, the element -1, the label 0, the rest NaN."""

    range_m: NDArray[np.float32]
    intensity: NDArray[np.float32]
    """Reflectance times cosine for a triangle, mean intensity for a Gaussian."""
    label: NDArray[np.uint16]
    element: NDArray[np.int64]
    incidence_cosine: NDArray[np.float32]
    """Cosine of the incidence angle on a triangle; NaN for a Gaussian, which has no surface."""

    @classmethod
    def of(cls, answer: "_core.Hits") -> Self:
        """Take over what the engine found."""
        return cls(
            range_m=answer.range_m,
            intensity=answer.intensity,
            label=answer.label,
            element=answer.element,
            incidence_cosine=answer.incidence_cosine,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Pierced:
    """Every element along each ray, nearest first; those of beam i stand at begin[i] to begin[i + 1]."""

    begin: NDArray[np.int64]
    element: NDArray[np.int64]
    mean_m: NDArray[np.float32]
    """Where along the ray the element returns, on average."""
    sigma_m: NDArray[np.float32]
    permeability: NDArray[np.float32]
    """Probability that this ray passes the element."""


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Copies of another scene, as they were placed."""

    scene: "Scene"
    n: int
    object: NDArray[np.uint32] | None
    first_element: int | None


class Scene:
    """Meshes, Gaussians and placed scenes; frozen once it is built, fired at or placed in another scene."""

    def __init__(self, origin_m: ArrayLike | None = None, *, unfold: bool = True) -> None:
        """Make an empty scene.

        Args:
            origin_m: (3,) where its float32 frame sits in the map, best near the middle of the scene [m]. Default: 0;
                or the middle of what is added first, if all of that lies more than 10 km away.
            unfold: whether copies of Gaussians may stand in one search tree (`MOST_UNFOLDED`); else each copy is an
                instance, which is slower to fire at and far quicker to build.

        Raises:
            InputError: not three numbers within ±1e8 m.
        """
        self.origin_m: NDArray[np.float64] = arrays.as_floats(
            "origin_m", np.zeros(3) if origin_m is None else origin_m, (3,)
        )
        arrays.require_coordinates("origin_m", self.origin_m)
        self._chooses_origin = origin_m is None
        self._core = _core.Scene()
        self._core.unfold_up_to(MOST_UNFOLDED if unfold else 0)
        self._frozen = False
        self._box: Box | None = None
        self._smallest_scale = 1.0
        self._n_own = 0
        self._objects: list[tuple[int, ObjectIndex | None]] = []  # of its own elements, with the first one's number
        self._placed: list[_Placed] = []

    @property
    def box(self) -> Box | None:
        """From where to where it reaches, map frame: no ray meets anything outside; None if there is nothing."""
        return self._box

    @property
    def n_elements(self) -> int:
        """Number of triangles and Gaussians, those of placed scenes included."""
        return self._core.n_elements

    def answers(self, answer: Answer) -> bool:
        """Tell whether any element, those of placed scenes included, answers that; see `add_mesh`."""
        return self._core.answers(_native_answer(answer))

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
        answer: Answer = "sub_ray",
        object: ArrayLike = 0,
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
            answer: what of a pulse with width meets them: each sub_ray; or the pulse, once, along its axis, since they
                hold the width of the beam that they were learned from.
            object: number of the object that each belongs to; 0 is none.

        Raises:
            InputError: wrong shape or value, naming argument and row, or the scene is in use already.
        """
        self._require_open()
        vertices: NDArray[np.float64] = arrays.as_floats("vertices_m", vertices_m, ("V", 3))
        arrays.require_coordinates("vertices_m", vertices)
        n = arrays.n_rows("triangles", triangles)
        corners = arrays.as_integers("triangles", np.zeros((0, 3)) if n == 0 else triangles, (n, 3), np.uint32)
        require_below("triangles", corners, len(vertices))
        require_kind("lambertian", lambertian, (bool, np.bool_), "True or False")
        require_each("noise", groups := [noise] if isinstance(noise, SurfaceNoise) else noise, SurfaceNoise)
        group = arrays.as_integers("noise_group", noise_group, (n,), np.uint8)
        require_below("noise_group", group, len(groups))
        modes, labels = engine_labels(label, n)
        finish = {
            "permeability": numbers_within("permeability", permeability, n, 0, 1),
            "reflectance": numbers_or_unknown("reflectance", reflectance, n),
            "intensity_sigma": numbers_within("intensity_sigma", intensity_sigma, n, 0, np.inf),
        }
        objects = ObjectIndex.of_elements(arrays.as_integers("object", object, (n,), np.uint32))
        if n > 0:
            self._reach("vertices_m", Box.around(vertices))
        self._objects.append((self._n_own, objects))
        self._n_own += n
        self._core.add_mesh(
            vertices=np.ascontiguousarray(vertices - self.origin_m, dtype=np.float32),
            triangles=np.ascontiguousarray(corners),
            label=modes,
            lambertian=bool(lambertian),
            noise_group=np.ascontiguousarray(group),
            noise=[each.native() for each in groups],
            answer=_native_answer(answer),
            labels=labels,
            **finish,
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
        answer: Answer = "sub_ray",
        object: ArrayLike = 0,
    ) -> None:
        """Add Gaussians. A ray meets one if its smallest Mahalanobis distance is at most `tau`.

        Args:
            mean_m: (N, 3), map frame [m].
            covariance_m2: (N, 3, 3) [m²].
            permeability: (N,) or one number: probability that a ray that meets it passes. Default 0.
            extinction_per_m: (N,) or one number k instead: it passes with exp(-k sigma_t exp(-dist²/2)) [1/m].
            depth: (N,) or one number u instead: it passes with exp(-u (1 - dist²/tau²)²), from all sides alike, and
                with nothing cut off at `tau`.
            tau: 3.5 as in Browning 2012; Deschaud 2012 took 2.
            label: semantic class, 0 to 65535, or counts of several, by which each return draws one.
            intensity: mean intensity of its returns, 0 or more; NaN is unknown.
            intensity_sigma: standard deviation of it.
            min_sigma_m: floor of the standard deviations [m].
            answer, object: as in `add_mesh`.

        Raises:
            InputError: wrong shape or value, naming argument and row, or the scene is in use already.
        """
        self._require_open()
        mean: NDArray[np.float64] = arrays.as_floats("mean_m", mean_m, ("N", 3))
        arrays.require_coordinates("mean_m", mean)
        n = len(mean)
        for name, value in (("tau", tau), ("min_sigma_m", min_sigma_m)):
            as_number(name, value, _LEAST_SIGMA, _MOST_SIGMA)
        law, stop = stop_law(n, permeability, extinction_per_m, depth)
        covariance = arrays.as_floats("covariance_m2", np.zeros((0, 3, 3)) if n == 0 else covariance_m2, (n, 3, 3))
        modes, labels = engine_labels(label, n)
        columns = {
            "whitening": whitening(covariance, min_sigma_m),
            "intensity": numbers_or_unknown("intensity", intensity, n),
            "intensity_sigma": numbers_within("intensity_sigma", intensity_sigma, n, 0, np.inf),
        }
        objects = ObjectIndex.of_elements(arrays.as_integers("object", object, (n,), np.uint32))
        if n > 0:
            # Raising eigenvalues to the floor adds at most its square to any variance.
            half_m = tau * np.sqrt(np.einsum("nii->ni", covariance) + min_sigma_m**2)
            self._reach("mean_m, covariance_m2", Box.around(mean, half_m))
        self._objects.append((self._n_own, objects))
        self._n_own += n
        self._core.add_gaussians(
            mean_m=np.ascontiguousarray(mean - self.origin_m, dtype=np.float32),
            stop=stop,
            label=modes,
            **columns,
            law=law,
            tau=tau,
            answer=_native_answer(answer),
            labels=labels,
        )

    def place(
        self,
        scene: "Scene",
        transforms: ArrayLike,
        *,
        label: ArrayLike = -1,
        object: ArrayLike | None = None,
        first_element: int | None = None,
    ) -> None:
        """Place another scene, once for each transform; its elements are shared, not copied.

        Args:
            scene: it is frozen from now on; may itself be made of placed scenes.
            transforms: (4, 4) or (M, 4, 4) affine, from the other scene's map frame to this one's.
            label: replaces the labels of its elements; -1 keeps them. One number, or (M,).
            object: number of the object that each copy is; 0 is none. One number, or (M,). Default: as the other scene
                has it.
            first_element: number of its first element, above the scene's own and those of other placed scenes; wants
                exactly one transform. So a part of a world throws the same coins as the whole. Default: numbered
                through.

        Raises:
            InputError: wrong shape, not finite, not invertible, or the scene is in use already.
        """
        self._require_open()
        require_kind("scene", scene, Scene, "a Scene")
        matrices: NDArray[np.float64] = arrays.as_floats("transforms", transforms, (4, 4), ("M", 4, 4))
        matrices = matrices.reshape(-1, 4, 4)
        if scene is self:
            raise InputError("scene", "cannot be placed inside itself")
        scale = smallest_scale("transforms", matrices, scene._smallest_scale)
        if scene.box is not None and len(matrices) > 0:
            self._reach("transforms", placed_box(scene.box, matrices))
        self._smallest_scale = min(self._smallest_scale, scale)
        # Both scenes are float32 around their own origins; the shift between those is done here, in float64.
        local = matrices[:, :3].copy()
        local[:, :, 3] += matrices[:, :3, :3] @ scene.origin_m - self.origin_m
        labels = arrays.as_integers("label", label, (len(matrices),), np.int32)
        wrong = (labels < -1) | (labels > 65535)
        if wrong.any():
            raise arrays.RowError("label", arrays.first_row(wrong), "is not a label from 0 to 65535, or -1")
        if first_element is not None:
            said = "expected 0 or more and one transform"
            as_whole("first_element", first_element, 0, 2**62, said.removeprefix("expected "))
            if len(matrices) != 1:
                raise InputError("first_element", f"{said}, found {len(matrices)} transforms")
        objects = None if object is None else arrays.as_integers("object", object, (len(matrices),), np.uint32)
        scene._frozen = True
        self._placed.append(_Placed(scene, len(matrices), objects, first_element))
        self._core.place(
            scene._core,
            transforms=np.ascontiguousarray(local.reshape(-1, 12)),
            label=np.ascontiguousarray(labels),
            first_element=-1 if first_element is None else first_element,
        )

    def objects_of(self, element: NDArray[np.int64]) -> NDArray[np.uint32] | None:
        """Return the object that each element belongs to, in the same shape; None if nothing here is an object."""
        index = self._object_index
        return None if index is None else index.of(element)

    @property
    def has_objects(self) -> bool:
        """Whether any element belongs to an object."""
        return self._object_index is not None

    @cached_property
    def _object_index(self) -> ObjectIndex | None:
        self._frozen = True
        parts, next_element = list(self._objects), self._n_own
        for placed in self._placed:
            given, n_each = placed.first_element, placed.scene.n_elements
            first = next_element if given is None else given
            if placed.object is not None:
                parts.append((first, ObjectIndex.of_copies(n_each, placed.object)))
            else:
                inside = placed.scene._object_index
                parts += [(first + k * n_each, inside) for k in range(placed.n if inside else 0)]
            next_element += 0 if given is not None else placed.n * n_each
        return ObjectIndex.join(parts)

    def holds_width(self, element: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which elements answer pulses: they hold beam width and range noise of the sensor that taught them."""
        inside = np.searchsorted(self._pulse_stretches, element, side="right")
        return inside % 2 == 1

    @cached_property
    def _pulse_stretches(self) -> NDArray[np.int64]:
        return self.native.pulse_stretches()

    def build(self) -> None:
        """Build the acceleration structures now rather than at the first firing."""
        self._frozen = True
        self._core.build()

    def fire(
        self,
        beams: Beams,
        *,
        seed: int = 0,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Hits:
        """Find the first return of each pulse, its range drawn from the element that stops it.

        Args:
            beams: in any order; random numbers are keyed by seed and pulse, so a slice gives the slice's returns.
            seed: 0 to 2⁶⁴ - 1.
            min_range_m, max_range_m: a pulse stopped outside these gives no return [m].
            threads: 0 for all; the result does not depend on it.
            progress: called between batches; Ctrl-C is honoured there too.
        """
        require_limits(min_range_m, max_range_m)
        answer = self.native.fire(
            self.beam_arrays(beams),
            limits=_core.RangeLimits(min_m=min_range_m, max_m=max_range_m),
            seed=require_seed(seed),
            threads=require_threads(threads),
            progress=progress,
        )
        return Hits.of(answer)

    def pierced(
        self, beams: Beams, *, max_range_m: float = np.inf, threads: int = 0, progress: Progress | None = None
    ) -> Pierced:
        """List every element along each ray up to `max_range_m`, nearest first."""
        require_limits(0.0, max_range_m)
        answer = self.native.pierced(
            self.beam_arrays(beams), max_range_m=max_range_m, threads=require_threads(threads), progress=progress
        )
        return Pierced(
            begin=answer.begin,
            element=answer.element,
            mean_m=answer.mean_m,
            sigma_m=answer.sigma_m,
            permeability=answer.permeability,
        )

    def count(
        self,
        beams: Beams,
        range_m: NDArray[np.float32],
        *,
        max_range_m: float = np.inf,
        window_m: float = 0.5,
        boxes_m: NDArray[np.float64] | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Count how often each element was hit and passed, given what the beams measured.

        A triangle at t is hit if |r - t| < window, passed if r - t > window. A Gaussian is hit if the return lies in
        its tau-ellipsoid, passed if the beam goes on behind it. What lies behind the return is not counted.

        Args:
            range_m: (N,) float32 measured ranges, inf for no return within max_range_m.
            boxes_m: (E, 6) float64 low and high corner of a box of each element, map frame; only beams that cross the
                box of an element count for it. Default: all that meet it.

        Returns:
            Hits and passes, one entry per element each.
        """
        ranges = _ranges("range_m", range_m, beams)
        require_limits(0.0, max_range_m)
        as_number("window_m", window_m, 0, arrays.FARTHEST_M)
        return self.native.count(
            self.beam_arrays(beams),
            range_m=ranges,
            max_range_m=max_range_m,
            window_m=window_m,
            boxes_m=boxes_m,
            threads=require_threads(threads),
            progress=progress,
        )

    def log_likelihood(
        self,
        beams: Beams,
        range_m: NDArray[np.float32],
        *,
        min_range_m: float = 0.0,
        max_range_m: float = np.inf,
        min_sigma_m: float = 0.001,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> NDArray[np.float64]:
        """Return the log density of each measured range: a mixture of all elements on the ray (Browning 2012 §5.4).

        Args:
            range_m: (N,) float32 measured ranges, inf for no return within the limits.
            min_sigma_m: sharper elements, such as noiseless triangles, count as this wide: a density needs a bound.

        Returns:
            (N,) natural logarithm of a density [1/m], or of the probability of no return; -inf if impossible.
        """
        ranges = _ranges("range_m", range_m, beams)
        require_limits(min_range_m, max_range_m)
        as_number("min_sigma_m", min_sigma_m, 0, arrays.FARTHEST_M)
        return self.native.log_likelihood(
            self.beam_arrays(beams),
            range_m=ranges,
            limits=_core.RangeLimits(min_m=min_range_m, max_m=max_range_m),
            min_sigma_m=min_sigma_m,
            threads=require_threads(threads),
            progress=progress,
        )

    def forecast(
        self,
        beams: Beams,
        range_m: NDArray[np.float32] | None = None,
        *,
        min_range_m: float = 0.0,
        max_range_m: float,
        min_sigma_m: float = 0.001,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Forecast:
        """Return the distribution of the range of each beam, as the mixture of all elements on it has it.

        Args:
            range_m: (N,) float32 measured ranges, inf for no return; None: error_m and spread_m are not wanted.
            max_range_m: finite; no return counts as a range there.
            min_sigma_m: sharper elements, such as noiseless triangles, count as this wide.
        """
        ranges = None if range_m is None else _ranges("range_m", range_m, beams)
        require_limits(min_range_m, max_range_m)
        as_number("max_range_m", max_range_m, 0, arrays.FARTHEST_M)
        as_number("min_sigma_m", min_sigma_m, 0, arrays.FARTHEST_M)
        found = self.native.forecast(
            self.beam_arrays(beams),
            range_m=ranges,
            limits=_core.RangeLimits(min_m=min_range_m, max_m=max_range_m),
            min_sigma_m=min_sigma_m,
            threads=require_threads(threads),
            progress=progress,
        )
        scored = ranges is not None
        return Forecast(
            returns=found.returns,
            median_m=found.median_m,
            intensity=found.intensity,
            error_m=found.error_m if scored else None,
            spread_m=found.spread_m if scored else None,
        )

    def first_behind(
        self,
        beams: Beams,
        near_m: NDArray[np.float32],
        far_m: NDArray[np.float32],
        labels: Iterable[int],
        *,
        seed: int = 0,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Hits:
        """Find the first element from `near_m` to `far_m` that stops each pulse and has none of these labels.

        It finds the ground behind the grass, the wall behind the hedge (Mattes 2021 §3.1). Elements throw the coins
        that `fire` throws with the same seed: where that found vegetation, whatever stands before it and let the pulse
        pass lets it pass here too. The label of a placement counts, where it has one.

        Args:
            beams: in any order; a slice gives the slice's answers.
            near_m, far_m: (N,) float32, 0 or more; far_m may be inf. Where far_m is below near_m, nothing is found [m].
            labels: what pulses go through, each 0 to 65535.
            seed: 0 to 2⁶⁴ - 1.
            threads: 0 for all; the result does not depend on it.
            progress: called between batches with the number of beams done.

        Returns:
            As of `fire`; the range is drawn with a normal number of its own, and may lie that much outside near_m
            and far_m.

        Raises:
            InputError: wrong type, shape or value, naming the argument and the row.
        """
        near, far = _ranges("near_m", near_m, beams), _ranges("far_m", far_m, beams)
        for name, values in (("near_m", near), ("far_m", far)):
            wrong = ~(values >= 0)
            if wrong.any():
                row = arrays.first_row(wrong)
                raise arrays.RowError(name, row, f"is {values[row]}; expected 0 or more")
        require_kind("labels", labels, Iterable, "labels from 0 to 65535")
        numbers = np.unique(arrays.as_numbers("labels", list(labels)))
        answer = _core.first_behind(
            self.native,
            self.beam_arrays(beams),
            near_m=near,
            far_m=far,
            passed_labels=np.ascontiguousarray(arrays.as_integers("labels", numbers, (len(numbers),), np.uint16)),
            seed=require_seed(seed),
            threads=require_threads(threads),
            progress=progress,
        )
        return Hits.of(answer)

    def beam_arrays(self, beams: Beams) -> _core.BeamArrays:
        """Return the beams as the kernels take them, for kernels that are wrapped in modules of their own.

        Raises:
            InputError: these are no Beams.
        """
        return beam_arrays(beams, self.origin_m.tolist())

    def _reach(self, name: str, box: Box) -> None:
        """Take note of how far something reaches that is about to be added, and choose the origin if it is the first.

        Raises:
            InputError: it reaches too far.
        """
        for corner in (box.low_m, box.high_m):
            arrays.require_coordinates(f"{name}: a corner of what is added", corner)
        if self._chooses_origin and self._box is None and nearest_m(box, self.origin_m) > _FAR_M:
            self.origin_m = np.rint(box.middle_m)  # whole metres: exact in every float
        away_m = nearest_m(box, self.origin_m)
        step_m = float(np.spacing(np.float32(away_m)))
        if step_m > _COARSE_M:
            warn(
                f"{name}: {distance_text(away_m)} from the scene's origin_m {self.origin_m.tolist()}, where float32 "
                f"rounds to {100 * step_m:.0f} cm; make the scene with an origin_m near the middle of all it holds"
            )
        self._box = Box.joined([self._box, box])

    def _require_open(self) -> None:
        if self._frozen:
            raise InputError("scene", "in use already; add everything before firing at it or placing it")


def unfolds(n_copies: int) -> bool:
    """Tell whether a world unfolds its copies of assets, which have so many elements together.

    All of the world counts, whatever part of it is in memory: so a part answers as the whole does, and a large world,
    whose parts come and go, need not build a search tree over all elements around for every change.
    """
    return n_copies <= MOST_UNFOLDED


def beam_arrays(beams: Beams, scene_origin_m: Sequence[float]) -> _core.BeamArrays:
    """Return the beams as the kernels take them, not copied, for a scene whose frame sits at (3,) of the map [m]."""
    require_kind("beams", beams, Beams, "Beams; of a log, fire log.beams")
    return _core.BeamArrays(
        origin_m=beams.origin_m,
        direction=beams.direction,
        pulse=beams.pulse,
        ring=beams.ring,
        sweep=beams.sweep,
        scene_origin_m=scene_origin_m,
    )


def _native_answer(answer: str) -> _core.Answer:
    if answer not in get_args(Answer):
        raise InputError("answer", f"expected {' or '.join(get_args(Answer))}, found {shown(answer)}")
    return _core.Answer[answer]


def _ranges(name: str, values: object, beams: Beams) -> NDArray[np.float32]:
    require_kind("beams", beams, Beams, "Beams; of a log, fire log.beams")
    return arrays.require(name, values, np.float32, (len(beams),))


def require_threads(threads: int) -> int:
    """Return the number of threads; raise InputError unless it is 0 (all) to 1024."""
    return as_whole("threads", threads, 0, 1024, "0 (all) to 1024")
