# SPDX-License-Identifier: Apache-2.0
"""World: beams in, a log out.

    log = world.fire(beams, seed=7, sensor=sensor)

There is one `fire` for every kind of world: scenes (`SceneWorld`, `PhysicsWorld`), learned worlds (`LearnedWorld`,
`TiledWorld`) and your own. A kind of world only says what comes back, in `returns`; the range limits, the vegetation
response, the sensor's noise and the log's metadata are dealt with here.
"""

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

import hedgerow
from hedgerow.base import arrays
from hedgerow.base.arguments import as_whole, require_kind
from hedgerow.base.box import Box
from hedgerow.base.progress import Progress
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError
from hedgerow.log import Beams, Log, Returns, require_limits
from hedgerow.pulse.vegetation import VegetationSettings, respond
from hedgerow.sensor import Sensor
from hedgerow.world.forecast import Forecast, forecast_by_draws
from hedgerow.world.scene import Scene, require_threads

FORECAST_DRAWS = 8
"""Draws of a world that does not know its own distribution: scores are unbiased with any number."""
_MOST_DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Shot:
    """How beams are fired: what `fire` hands to `returns` with the beams."""

    seed: int
    """Same seed, same returns."""
    min_range_m: float
    """A pulse that is stopped nearer than this gives no return."""
    max_range_m: float
    """Nor does one that is stopped farther off than this."""
    sensor: Sensor | None
    """The sensor that fires, for worlds that depend on the shape of its pulses or its return mode."""
    threads: int
    """0 for all."""
    progress: Progress | None
    """Called between batches with the number of beams done."""


@dataclass(frozen=True, slots=True)
class WorldSize:
    """How large a world is (docs/models.md §28)."""

    tables: dict[str, int]
    """Number of elements of each table."""
    parameters: int
    """Numbers that define them, counted as in Browning 2012 §6.2.6: 10 per Gaussian, 9 per triangle (10 if any triangle
    is permeable), 3 per point; intensities and labels, which Browning 2012 does not have, are left out."""
    bytes: int
    """Memory that the tables take, all columns."""

    @property
    def elements(self) -> int:
        """Number of all elements."""
        return sum(self.tables.values())


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """What came back of some beams, and which of it has the noise of a sensor already."""

    returns: Returns
    noisy: NDArray[np.bool_] | None = None
    """(N,) pulses whose ranges hold the noise of the sensor that their elements were learned from; None: what
    `World.has_noise` says holds for all."""


class World(ABC):
    """Something to fire beams at.

    To write a world of your own, derive from this and give `returns`: for each beam the range at which it ends, or inf,
    and an intensity, label and element if you know them. Draw random numbers from `shot.seed` and `beams.pulse`, so
    that a part of the beams gets the same answers as all of them. `fire`, `hr.simulate` and `hr.compare` then work.

        class Ground(hr.World):
            def returns(self, beams, shot):
                down = -beams.direction[:, 2]
                range_m = np.where(down > 0, beams.origin_m[:, 2] / np.maximum(down, 1e-9), np.inf)
                seen = (range_m >= shot.min_range_m) & (range_m <= shot.max_range_m)
                return hr.Returns(np.where(seen, range_m, np.inf).astype(np.float32))
    """

    has_noise: bool = False
    """Whether its ranges already have the noise of a sensor, as those learned from a log do."""
    has_likelihood: bool = False
    """Whether `log_likelihood` answers."""
    axis_answers: bool = True
    """Whether a return comes from what the axis of its pulse met, as with single rays; not so with pulses of width."""
    vegetation: VegetationSettings | None = None
    """How vegetation scatters ranges, if it does; see `with_vegetation`."""

    def __init__(self, *, min_range_m: float = 0.0, max_range_m: float = np.inf) -> None:
        """Set the range limits that hold where no sensor is named [m]."""
        require_limits(min_range_m, max_range_m)
        self.min_range_m = min_range_m
        self.max_range_m = max_range_m

    @abstractmethod
    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Return what comes back of each beam from within the limits, without the sensor's noise.

        Args:
            beams: N of them, map frame, in any order.
            shot: seed, range limits, and what else the beams are fired with.

        Returns:
            (N,) returns, or (N, R) of them, nearest first.
        """

    def fire(
        self,
        beams: Beams,
        seed: int = 0,
        *,
        sensor: Sensor | None = None,
        limits_m: tuple[float, float] | None = None,
        noise: bool | None = False,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Log:
        """Fire the beams through the world.

        Args:
            beams: map frame, in any order.
            seed: same seed, same answer, on any number of threads and for any slice of the beams.
            sensor: sets the log's sensor name and range limits and, in a `PhysicsWorld`, the shape of the pulses.
            limits_m: range limits instead of the sensor's [m]. Default without a sensor: the world's own.
            noise: whether to add the sensor's range noise, range steps and drop-outs. None: unless the world has them
                already.
            threads: 0 for all.
            progress: called between batches with the number of beams done.

        Returns:
            The beams with their returns: (N,), or (N, R) in return modes that give several, nearest first.

        Raises:
            InputError: no beams, a wrong seed, number of threads or limits; noise is wanted without a sensor; or what
                the kind of world refuses.
        """
        require_kind("beams", beams, Beams, "Beams; of a log, fire log.beams, or hr.replay(world, log)")
        shot = self._shot(seed, sensor, limits_m, threads, progress)
        return self._log(beams, self.answered(beams, shot), shot, noise)

    def answered(self, beams: Beams, shot: Shot) -> Answered:
        """Return what `returns` does, and which of it has noise, for worlds in which only some elements hold it."""
        return Answered(self.returns(beams, shot))

    @property
    def box(self) -> Box | None:
        """From where to where it reaches, map frame: no beam meets anything outside; None if it does not know."""
        return None

    @property
    def classes(self) -> dict[str, int]:
        """Numbers of the classes that labels of its returns are of, by name; empty if it does not know."""
        return {}

    @property
    def map_origin_m(self) -> NDArray[np.float64]:
        """(3,) what to add to map coordinates to get the outer frame; 0 if the world does not know [m]."""
        return np.zeros(3)

    def provenance(self) -> dict[str, Any]:
        """Return what a log says of the world that it was fired at; must fit into JSON."""
        return {"kind": type(self).__name__}

    def size(self) -> WorldSize | None:
        """Count elements, parameters and bytes, where that means something."""
        return None

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the log density of each pulse's first return, or of its absence, within the log's own limits.

        Returns:
            (N,) natural logarithms; -inf where the world says that this cannot be.

        Raises:
            InputError: this world knows no densities; or the log has missing returns but no maximal range.
        """
        raise InputError("world", f"a {type(self).__name__} does not know how likely a range is")

    def expected(
        self,
        beams: Beams,
        *,
        sensor: Sensor | None = None,
        limits_m: tuple[float, float] | None = None,
        draws: int = FORECAST_DRAWS,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Forecast:
        """Return what to expect of each beam: probability of a return, median range, mean intensity.

        Args:
            beams: map frame, in any order.
            sensor, limits_m: as in `fire`; the far limit must be finite.
            draws: how many answers are drawn where the world does not know its own distribution.
            threads: 0 for all.
            progress: called between batches with the number of beams done.

        Returns:
            The same every time: exact along the beam for worlds of elements, else from draws of fixed seeds.

        Raises:
            InputError: as `fire`; or there is no far limit.
        """
        require_kind("beams", beams, Beams, "Beams; of a log, log.beams")
        return self._forecast(beams, self._shot(0, sensor, limits_m, threads, progress), None, draws)

    def forecast(
        self,
        log: Log,
        *,
        draws: int = FORECAST_DRAWS,
        seed: int = 0,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Forecast:
        """Return what is expected of the beams of a log within its limits, and how far what was measured is from it.

        Args:
            log: beams with measured ranges.
            draws: how many answers are drawn where the world does not know its own distribution.
            seed: of these draws.
            threads: 0 for all.
            progress: called between batches with the number of beams done.

        Raises:
            InputError: the log has no maximal range.
        """
        require_kind("log", log, Log, "a Log")
        limits_m = (log.min_range_m, log.max_range_m)
        shot = self._shot(seed, Sensor.of(log), limits_m, threads, progress)
        return self._forecast(log.beams, shot, np.ascontiguousarray(log.returns.first_m), draws)

    def _forecast(self, beams: Beams, shot: Shot, range_m: NDArray[np.float32] | None, draws: int) -> Forecast:
        """Estimate it from draws; worlds that know their distribution say so here."""
        as_whole("draws", draws, 2, _MOST_DRAWS)
        require_far_limit(shot.max_range_m)
        seeds = np.random.SeedSequence(shot.seed).generate_state(draws, np.uint64).tolist()

        def draw(number: int) -> Returns:
            own = replace(shot, seed=int(seeds[number]), progress=None)
            return self._log(beams, self.answered(beams, own), own, noise=False).returns

        return forecast_by_draws(draw, draws, shot.max_range_m, range_m)

    def with_vegetation(self, settings: VegetationSettings | None) -> Self:
        """Return this world with vegetation that scatters ranges (Mattes 2021); elements are shared.

        Raises:
            InputError: it has no labelled scene to look for solid things in.
        """
        if settings is None:
            return self
        require_kind("settings", settings, VegetationSettings, "VegetationSettings")
        self.labelled_scene()
        new = copy.copy(self)
        new.vegetation = settings
        new.has_likelihood = False  # the elements do not know of that scatter
        return new

    def labelled_scene(self) -> Scene:
        """Return the scene in which all that beams can meet has a label.

        Raises:
            InputError: there is none.
        """
        remedy = "give a SceneWorld, or a learned world loaded whole"
        raise InputError("world", f"a {type(self).__name__} has no scene to look for solid things in; {remedy}")

    def _shot(
        self,
        seed: int,
        sensor: Sensor | None,
        limits_m: tuple[float, float] | None,
        threads: int,
        progress: Progress | None,
    ) -> Shot:
        require_kind("sensor", sensor, (Sensor, NoneType), "a Sensor; for example hr.Sensor.named('vlp-16')")
        low, high = self._limits(sensor) if limits_m is None else _pair(limits_m)
        require_limits(low, high)
        return Shot(require_seed(seed), low, high, sensor, require_threads(threads), progress)

    def _limits(self, sensor: Sensor | None) -> tuple[float, float]:
        limits = self if sensor is None else sensor
        return limits.min_range_m, limits.max_range_m

    def _log(self, beams: Beams, answered: Answered, shot: Shot, noise: bool | None) -> Log:
        """Put beams and returns together, with metadata, and apply vegetation response and sensor noise."""
        require_kind("noise", noise, (bool, np.bool_, NoneType), "True, False or None")
        wanted = (shot.sensor is not None and not self.has_noise) if noise is None else bool(noise)
        log = Log(
            beams,
            answered.returns,
            sensor="" if shot.sensor is None else shot.sensor.name,
            min_range_m=shot.min_range_m,
            max_range_m=shot.max_range_m,
            map_origin_m=self.map_origin_m,
            metadata=self._metadata(shot, wanted),
        )
        if self.vegetation is not None:
            log = self._scatter(log, self.vegetation, shot)
        if not wanted:
            return log
        if shot.sensor is None:
            raise InputError("noise", "is that of a sensor; name the sensor, or fire without noise")
        degraded = shot.sensor.degrade(log, shot.seed)
        if noise is not None or answered.noisy is None:
            return degraded
        return replace(degraded, returns=log.returns.where(answered.noisy, degraded.returns))

    def _scatter(self, log: Log, settings: VegetationSettings, shot: Shot) -> Log:
        scene = self.labelled_scene()

        def first_behind(some: Beams, near_m: NDArray[np.float32], far_m: NDArray[np.float32]) -> dict[str, Any]:
            passed = settings.passed_labels
            found = scene.first_behind(some, near_m, far_m, passed, seed=shot.seed, threads=shot.threads)
            columns = {name: getattr(found, name) for name in ("range_m", "intensity", "label", "element")}
            return columns | objects_column(scene, found.element)

        native = scene.native
        sigma = (native.max_sigma_m, native.max_sigma_per_m) if self.axis_answers else (0.0, 0.0)
        return replace(log, returns=respond(log, settings, shot.seed, first_behind, sigma))

    def _metadata(self, shot: Shot, noise: bool) -> dict[str, Any]:
        said: dict[str, Any] = {
            "hedgerow": hedgerow.__version__,
            "world": self.provenance(),
            "seed": shot.seed,
            "noise": noise,
        }
        if shot.sensor is not None:
            said["sensor"] = shot.sensor.provenance
        if self.classes:
            said["classes"] = self.classes
        if self.vegetation is not None:
            said["vegetation"] = self.vegetation.model_dump(mode="json")
        return said


class SceneWorld(World):
    """A scene seen by single rays: beams without width, one return each."""

    has_likelihood = True

    def __init__(self, scene: Scene, *, min_range_m: float = 0.0, max_range_m: float = np.inf) -> None:
        """Wrap a scene; the range limits hold where no sensor is named."""
        require_kind("scene", scene, Scene, "a Scene")
        super().__init__(min_range_m=min_range_m, max_range_m=max_range_m)
        self.scene = scene

    @property
    def box(self) -> Box | None:
        """From where to where the scene reaches, map frame; None if it is empty."""
        return self.scene.box

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Return the first return of each beam: range, intensity, label and element."""
        hits = self.scene.fire(
            beams,
            seed=shot.seed,
            min_range_m=shot.min_range_m,
            max_range_m=shot.max_range_m,
            threads=shot.threads,
            progress=shot.progress,
        )
        columns = {"range_m": hits.range_m, "intensity": hits.intensity, "label": hits.label, "element": hits.element}
        return Returns.without_checks(columns | objects_column(self.scene, hits.element))

    def log_likelihood(
        self, log: Log, *, min_sigma_m: float = 0.001, threads: int = 0, progress: Progress | None = None
    ) -> NDArray[np.float64]:
        """Return the log density of each pulse's first return, or of its absence, within the log's own limits."""
        require_end_of_range(log)
        return self.scene.log_likelihood(
            log.beams,
            np.ascontiguousarray(log.returns.first_m),
            min_range_m=log.min_range_m,
            max_range_m=log.max_range_m,
            min_sigma_m=min_sigma_m,
            threads=threads,
            progress=progress,
        )

    def labelled_scene(self) -> Scene:
        """Return the scene."""
        return self.scene

    def _forecast(self, beams: Beams, shot: Shot, range_m: NDArray[np.float32] | None, draws: int) -> Forecast:
        if self.vegetation is not None:
            return super()._forecast(beams, shot, range_m, draws)
        require_far_limit(shot.max_range_m)
        return self.scene.forecast(
            beams,
            range_m,
            min_range_m=shot.min_range_m,
            max_range_m=shot.max_range_m,
            threads=shot.threads,
            progress=shot.progress,
        )


def objects_column(scene: Scene, element: NDArray[np.int64]) -> dict[str, NDArray[np.uint32]]:
    """Return the column of objects for returns from these elements; empty if the scene has no objects."""
    found = scene.objects_of(element)
    return {} if found is None else {"object": found}


def require_far_limit(max_range_m: float) -> None:
    """Raise InputError if there is no far limit: a forecast counts no return as a range there."""
    if not np.isfinite(max_range_m):
        raise InputError("max_range_m", "a forecast needs a finite range limit; name a sensor, or set the log's")


def require_end_of_range(log: Log) -> None:
    """Raise InputError if the log has missing returns but no maximum range: "no return" would mean nothing then."""
    require_kind("log", log, Log, "a Log")
    if not np.isfinite(log.max_range_m) and not log.returns.hit.all():
        raise InputError("log", "has missing returns but no max_range_m; say within what range nothing came back")


def _pair(limits_m: object) -> tuple[float, float]:
    limits: NDArray[np.float64] = arrays.as_floats("limits_m", cast("ArrayLike", limits_m), (2,))
    return float(limits[0]), float(limits[1])
