# SPDX-License-Identifier: Apache-2.0
"""How far vegetation scatters the ranges of a log, for the vegetation response (Mattes 2021 §3.1 and Table 1).

Returns on vegetation are picked by a box or by their label. What such a return should have measured is taken from its
neighbours: the mean range of the other picked returns of the same sweep and ring within an angle. The difference of
measured and expected range has a mean and a variance. A simulated scene without any noise has them too, because plants
are rough; so its own are measured in the same way and subtracted, and the rest is what the response has to add. All
sums add over sweeps.

A mean of n neighbours scatters by itself: noise of variance s² shows as s² (1 + 1/n) in the difference of a range to
it, which Mattes 2021 does not say. So every difference is also summed divided by the root of that factor.

Noise with a mean other than 0 moves the neighbours as well, so that no difference to neighbours can show it, which
Mattes 2021 does not say. If the same beams were fired at the scene, the mean is therefore taken beam by beam, measured
minus simulated range.

A world is fired at as the log was made: with the pulses of the log's sensor, with the noise of that sensor, and with
the log's own seed, if it says one. Else the scatter of thin rays, or of a quieter sensor, would be subtracted. If the
log says that it was fired at this very scene, all but the response is the same, and the deviation, too, is taken beam
by beam: in a wood neighbours are metres apart, and centimetres drown in the difference of two such variances.

Equations: docs/models.md §22.
"""

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import tomli_w
from numpy.typing import NDArray

import hedgerow
from hedgerow.base.atomic import atomic_file
from hedgerow.base.labels import with_finer
from hedgerow.base.progress import counted
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.sensor import Sensor
from hedgerow.simulate import replay
from hedgerow.world import World
from hedgerow.world.store.header import plain

_SAME_ORIGIN_M, _SAME_DIRECTION = 0.001, 1e-4
_APART_RAD = 10.0
"""Added between rings, so that no window reaches from one into the next."""


@dataclass(frozen=True)
class Selection:
    """Which returns are vegetation: in a box, of some labels, or both."""

    box_m: tuple[float, float, float, float, float, float] | None = None
    """Lowest x, y, z and highest x, y, z, map frame [m]."""
    labels: tuple[int, ...] = ()
    """Each stands for the finer ones that fold into it, too (`base.labels`)."""

    def __post_init__(self) -> None:
        """Refuse what selects nothing or everything."""
        if self.box_m is None and not self.labels:
            raise InputError("selection", "give a box or a label, else every return would be vegetation")
        if self.box_m is not None:
            low, high = np.array(self.box_m[:3]), np.array(self.box_m[3:])
            if len(self.box_m) != 6 or not np.isfinite(self.box_m).all() or (low >= high).any():
                raise InputError(
                    "box", f"expected x0 y0 z0 x1 y1 z1 with each first below its second, found {self.box_m}"
                )
        wrong = [label for label in self.labels if not 0 <= label <= 65535]
        if wrong:
            raise InputError("label", f"expected 0 to 65535, found {wrong[0]}")

    def rows(self, log: Log, name: str) -> NDArray[np.intp]:
        """Return which pulses have a first return that is selected.

        Raises:
            InputError: a label is asked for and the log `name` has none.
        """
        range_m = log.returns.first_m
        chosen = np.isfinite(range_m)
        if self.labels:
            if log.returns.label is None:
                raise InputError(name, "has no labels; select by a box instead")
            label = log.returns.label if log.returns.label.ndim == 1 else log.returns.label[:, 0]
            chosen &= np.isin(label, sorted(with_finer(self.labels)))
        rows = np.flatnonzero(chosen)
        if self.box_m is None:
            return rows
        points = log.beams.origin_m[rows] + range_m[rows].astype(np.float64)[:, None] * log.beams.direction[rows]
        return rows[((points >= self.box_m[:3]) & (points <= self.box_m[3:])).all(axis=1)]


@dataclass(frozen=True)
class Scatter:
    """Sums over differences of measured and expected range; those of two sweeps add."""

    n_selected: int = 0
    n: int = 0
    """Returns that had neighbours."""
    n_neighbours: int = 0
    """Neighbours of all of them."""
    sum_m: float = 0.0
    squares_m2: float = 0.0
    scaled_m: float = 0.0
    scaled_squares_m2: float = 0.0
    """Of differences divided by the root of 1 + 1/n."""

    def __add__(self, other: "Scatter") -> "Scatter":
        """Add what two sweeps gave."""
        return Scatter(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def mean_m(self) -> float:
        """Mean difference, measured minus expected [m]."""
        return self.sum_m / self.n

    @property
    def variance_m2(self) -> float:
        """Variance of the difference, as in Mattes 2021 Table 1 [m²]."""
        return max(0.0, self.squares_m2 / self.n - self.mean_m**2)

    @property
    def own_variance_m2(self) -> float:
        """Variance without what the neighbours' mean adds [m²]."""
        return max(0.0, self.scaled_squares_m2 / self.n - (self.scaled_m / self.n) ** 2)


def scatter_of(log: Log, rows: NDArray[np.intp], window_rad: float) -> Scatter:
    """Compare the first ranges of some pulses of one sweep with those of their neighbours.

    Args:
        log: one sweep.
        rows: which pulses are vegetation.
        window_rad: neighbours are at most this far off, on the same ring, in angle [rad].
    """
    beams, range_m = log.beams[rows], log.returns.first_m[rows].astype(np.float64)
    # In firing order; logs without times fall back to the azimuth.
    azimuth = np.arctan2(beams.direction[:, 1], beams.direction[:, 0])
    order = np.lexsort((azimuth, beams.time_ns, beams.ring))
    direction, ring, range_m = beams.direction[order].astype(np.float64), beams.ring[order], range_m[order]
    # The angle along the ring, from one selected beam to the next: a chord and its arc differ by 1e-4 at 3 degrees.
    step = np.linalg.norm(np.diff(direction, axis=0), axis=1) + _APART_RAD * (np.diff(ring) != 0)
    along = np.concatenate([[0.0], np.cumsum(step)])[: len(rows)]
    first, end = np.searchsorted(along, along - window_rad), np.searchsorted(along, along + window_rad, side="right")
    n = end - first - 1
    total = np.concatenate([[0.0], np.cumsum(range_m)])
    has = n > 0
    n, others = n[has], (total[end] - total[first])[has] - range_m[has]
    difference = range_m[has] - others / n
    scaled = difference * np.sqrt(n / (n + 1))
    return Scatter(
        n_selected=len(rows),
        n=len(n),
        n_neighbours=int(n.sum()),
        sum_m=float(difference.sum()),
        squares_m2=float(difference @ difference),
        scaled_m=float(scaled.sum()),
        scaled_squares_m2=float(scaled @ scaled),
    )


@dataclass(frozen=True)
class Offset:
    """Sums over measured minus simulated range of the same beams, where both hit vegetation."""

    n: int = 0
    sum_m: float = 0.0
    squares_m2: float = 0.0

    def __add__(self, other: "Offset") -> "Offset":
        """Add what two sweeps gave."""
        return Offset(self.n + other.n, self.sum_m + other.sum_m, self.squares_m2 + other.squares_m2)

    @property
    def mean_m(self) -> float:
        """Mean difference [m]."""
        return self.sum_m / self.n

    @property
    def variance_m2(self) -> float:
        """Variance of the difference [m²]."""
        return max(0.0, self.squares_m2 / self.n - self.mean_m**2)


def offset_of(sweep: Log, rows: NDArray[np.intp], answer: Log, answered: NDArray[np.intp]) -> Offset:
    """Compare beam by beam; pulses are matched by their ids, and nothing is said if one of them points elsewhere."""
    _, mine, theirs = np.intersect1d(sweep.beams.pulse[rows], answer.beams.pulse[answered], return_indices=True)
    real, other = rows[mine], answered[theirs]
    moved = np.abs(sweep.beams.origin_m[real] - answer.beams.origin_m[other]).max(initial=0)
    turned = np.abs(sweep.beams.direction[real] - answer.beams.direction[other]).max(initial=0)
    if moved > _SAME_ORIGIN_M or turned > _SAME_DIRECTION:
        return Offset()
    difference = sweep.returns.first_m[real].astype(np.float64) - answer.returns.first_m[other]
    return Offset(len(difference), float(difference.sum()), float(difference @ difference))


@runtime_checkable
class HasSweeps(Protocol):
    """A log in memory (`Log`) or on the disk (`LogFile`)."""

    def iter_sweeps(self) -> Iterator[tuple[int, Log]]:
        """Give (sweep number, its log)."""
        ...


@dataclass(frozen=True)
class Calibration:
    """What was found; `mean_m` and `sigma_m` are what the response should add."""

    selection: Selection
    window_rad: float
    measured: Scatter
    simulated: Scatter | None = None
    offset: Offset | None = None
    """Beam by beam, if the simulated beams are the measured ones."""
    own_scene: bool = False
    """Whether the log was fired at the simulated scene itself, with the same random numbers."""

    @property
    def mean_m(self) -> float:
        """Mean of the noise [m]."""
        if self.offset is not None:
            return self.offset.mean_m
        return self.measured.mean_m - (self.simulated.mean_m if self.simulated else 0.0)

    @property
    def sigma_m(self) -> float:
        """Standard deviation of the noise [m]; 0 if the simulation scatters more than what was measured."""
        return float(np.sqrt(max(0.0, self._excess_m2)))

    @property
    def notes(self) -> list[str]:
        """Sentences on what to know before using the figures."""
        notes: list[str] = []
        if self._excess_m2 < 0:
            notes.append("the simulation scatters more by itself than was measured, so the deviation was clipped to 0")
        if self.simulated is None:
            notes.append("nothing was simulated, so the deviation includes what the shape of the plants makes")
        elif self.own_scene:
            notes.append("the log was fired at this scene, so the deviation is that of measured minus simulated range")
        elif self.offset is None:
            notes.append("the simulated beams are others, so the mean is the difference to neighbours, always near 0")
        return notes

    @property
    def _excess_m2(self) -> float:
        if self.own_scene and self.offset is not None:
            return self.offset.variance_m2
        return self.measured.own_variance_m2 - (self.simulated.own_variance_m2 if self.simulated else 0.0)

    def settings(self) -> VegetationSettings:
        """Return settings of the response; after a selection by box alone, labels are the default ones."""
        found = VegetationSettings(mean_m=self.mean_m, sigma_m=self.sigma_m)
        return found.model_copy(update={"labels": self.selection.labels}) if self.selection.labels else found

    def save(self, path: str | Path, *, source: str = "") -> None:
        """Write the settings to a TOML file, with what they come from; `VegetationSettings.load` reads it.

        Raises:
            FileError: the system refuses to write.
        """
        parts = {"measured": self.measured, "simulated": self.simulated, "beam_by_beam": self.offset}
        figures = {
            name: {"n": part.n, "mean_m": part.mean_m, "variance_m2": part.variance_m2}
            for name, part in parts.items()
            if part is not None
        }
        settings = self.settings().model_dump(mode="json")
        how = {
            "log": source,
            "box_m": self.selection.box_m,
            "labels": self.selection.labels,
            "window_deg": float(np.degrees(self.window_rad)),
            "notes": self.notes,
            "hedgerow": hedgerow.__version__,
        }
        content = plain("calibration", {"vegetation": settings, "source": how | figures})
        with atomic_file(path) as temporary:
            temporary.write_text(tomli_w.dumps(content), encoding="utf-8")


def calibrate(
    log: HasSweeps,
    selection: Selection,
    *,
    simulated: HasSweeps | World | None = None,
    window_rad: float = float(np.radians(1.0)),
    seed: int | None = None,
    sensor: Sensor | None = None,
    progress: Callable[[int], object] | None = None,
) -> Calibration:
    """Measure how vegetation scatters the ranges of a log, sweep by sweep.

    Args:
        log: a `Log`, or a `LogFile` of any size.
        selection: which first returns are vegetation; the same rule picks those of the simulation.
        simulated: what the scene produces without the response: a log, or a world at which the log's beams are fired,
            with the noise of the sensor if that is known, the world has none and the log was not made without. Default:
            nothing is subtracted.
        window_rad: neighbours are within this angle on the same ring [rad].
        seed: for firing. Default: that of the log, or 0.
        sensor: what fires at a world. Default: the log's own.
        progress: called with the number of beams done.

    Raises:
        InputError: no return is selected or none has a neighbour, in the log or the simulation; or there are no labels.
    """
    if not 0 < window_rad < np.pi / 2:
        raise InputError("window", f"expected an angle above 0 and below 90°, found {np.degrees(window_rad):g}°")
    measured, own, offset, own_scene = Scatter(), Scatter(), Offset(), seed is None
    for sweep, answer in counted(_in_step(log, simulated, seed, sensor), progress, _beams_of_the_log):
        rows = np.zeros(0, np.intp) if sweep is None else selection.rows(sweep, "log")
        answered = np.zeros(0, np.intp) if answer is None else selection.rows(answer, "simulation")
        if answer is not None:
            own += scatter_of(answer, answered, window_rad)
        if sweep is not None:
            measured += scatter_of(sweep, rows, window_rad)
        if sweep is not None and answer is not None:
            offset += offset_of(sweep, rows, answer, answered)
            own_scene &= _is_scene_of(sweep, simulated)
    _require_found("log", measured, selection, window_rad)
    if simulated is None:
        return Calibration(selection, window_rad, measured)
    _require_found("simulation", own, selection, window_rad)
    return Calibration(selection, window_rad, measured, own, offset if offset.n else None, own_scene)


def _beams_of_the_log(step: tuple[Log | None, Log | None]) -> int:
    return 0 if step[0] is None else len(step[0])


def _in_step(
    log: HasSweeps, simulated: HasSweeps | World | None, seed: int | None, sensor: Sensor | None
) -> Iterator[tuple[Log | None, Log | None]]:
    """Give the sweeps of the log, each with what was simulated; the longer of two logs goes on alone."""
    if isinstance(simulated, World):
        for _, sweep in log.iter_sweeps():
            answer = _fire_again(simulated, sweep, seed, sensor)
            yield sweep, answer[answer.returns.first_m < np.inf]
        return
    others: Iterator[tuple[int, Log]] = iter(()) if simulated is None else simulated.iter_sweeps()
    for pair in zip_longest(log.iter_sweeps(), others):
        sweep, other = (None if each is None else each[1] for each in pair)
        yield sweep, other


def _fire_again(world: World, sweep: Log, seed: int | None, sensor: Sensor | None) -> Log:
    """Fire the beams of a sweep as they were fired."""
    said = sweep.metadata
    fired_by = sensor or Sensor.of(sweep)
    noise = fired_by is not None and not world.has_noise and bool(said.get("noise", True))
    chosen = int(said.get("seed", 0)) if seed is None else seed
    return replay(world, sweep, seed=chosen, sensor=fired_by, noise=noise)


def _is_scene_of(sweep: Log, simulated: object) -> bool:
    """Tell whether a sweep says that it was fired at this very scene, with the same settings."""
    if not isinstance(simulated, World):
        return False
    mine, theirs = simulated.provenance(), sweep.metadata.get("world")
    return "scene" in mine and plain("world", mine) == plain("world", theirs or {})


def _require_found(name: str, scatter: Scatter, selection: Selection, window_rad: float) -> None:
    if scatter.n_selected == 0:
        wanted = [f"lies in the box {_words(selection.box_m)} m"] if selection.box_m else []
        wanted += [f"has a label among {_words(selection.labels)}"] if selection.labels else []
        raise InputError(name, f"no first return {' and '.join(wanted)}; is that where it has vegetation?")
    if scatter.n == 0:
        raise InputError(
            name,
            f"none of the {scatter.n_selected} selected returns has another within "
            f"{np.degrees(window_rad):g}° on its ring; widen the window",
        )


def _words(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)
