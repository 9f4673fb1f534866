# SPDX-License-Identifier: Apache-2.0
"""How far vegetation scatters the ranges of a log, for the vegetation response (004 §3.1 and Table 1).

Returns on vegetation are picked by a box or by their label. What such a return should have measured is taken from its
neighbours: the mean range of the other picked returns of the same sweep and ring within an angle. The difference of
measured and expected range has a mean and a variance. A simulated scene without any noise has them too, because plants
are rough; so its own are measured in the same way and subtracted, and the rest is what the response has to add.

Noise with a mean other than 0 moves the neighbours as well, so that no difference to neighbours can show it, which 004
does not say. If the same beams were fired at the scene, the mean is therefore taken beam by beam, measured minus
simulated range.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import tomli_w

import hedgerow
from hedgerow.errors import InputError
from hedgerow.io.atomic import atomic_file
from hedgerow.log import Log
from hedgerow.physics.scatter import Offset, Scatter, Selection, offset_of, scatter_of
from hedgerow.physics.vegetation import VegetationSettings
from hedgerow.progress import counted
from hedgerow.simulate import replay
from hedgerow.world import World
from hedgerow.world.header import plain


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
        elif self.offset is None:
            notes.append("the simulated beams are others, so the mean is 004's difference to neighbours, always near 0")
        return notes

    @property
    def _excess_m2(self) -> float:
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
    seed: int = 0,
    progress: Callable[[int], object] | None = None,
) -> Calibration:
    """Measure how vegetation scatters the ranges of a log, sweep by sweep.

    Args:
        log: a `Log`, or a `LogFile` of any size.
        selection: which first returns are vegetation; the same rule picks those of the simulation.
        simulated: what the scene produces without noise: a log, or a world at which the log's beams are fired. Default:
            nothing is subtracted.
        window_rad: neighbours are within this angle on the same ring [rad].
        seed: for firing.
        progress: called with the number of beams done.

    Raises:
        InputError: no return is selected or none has a neighbour, in the log or the simulation; or there are no labels.
    """
    if not 0 < window_rad < np.pi / 2:
        raise InputError("window", f"expected an angle above 0 and below 90°, found {np.degrees(window_rad):g}°")
    measured, own, offset = Scatter(), Scatter(), Offset()
    for sweep, answer in counted(_in_step(log, simulated, seed), progress, _beams_of_the_log):
        rows = np.zeros(0, np.intp) if sweep is None else selection.rows(sweep, "log")
        answered = np.zeros(0, np.intp) if answer is None else selection.rows(answer, "simulation")
        if answer is not None:
            own += scatter_of(answer, answered, window_rad)
        if sweep is not None:
            measured += scatter_of(sweep, rows, window_rad)
        if sweep is not None and answer is not None:
            offset += offset_of(sweep, rows, answer, answered)
    _require_found("log", measured, selection, window_rad)
    if simulated is None:
        return Calibration(selection, window_rad, measured)
    _require_found("simulation", own, selection, window_rad)
    return Calibration(selection, window_rad, measured, own, offset if offset.n else None)


def _beams_of_the_log(step: tuple[Log | None, Log | None]) -> int:
    return 0 if step[0] is None else len(step[0])


def _in_step(log: HasSweeps, simulated: HasSweeps | World | None, seed: int) -> Iterator[tuple[Log | None, Log | None]]:
    """Give the sweeps of the log, each with what was simulated; the longer of two logs goes on alone."""
    if isinstance(simulated, World):
        for _, sweep in log.iter_sweeps():
            answer = replay(simulated, sweep, seed=seed)
            yield sweep, answer[answer.returns.first_m < np.inf]
        return
    others: Iterator[tuple[int, Log]] = iter(()) if simulated is None else simulated.iter_sweeps()
    for pair in zip_longest(log.iter_sweeps(), others):
        sweep, other = (None if each is None else each[1] for each in pair)
        yield sweep, other


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
