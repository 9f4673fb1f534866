# SPDX-License-Identifier: Apache-2.0
"""Drive: all that one recording depends on, in plain values, so that any process can make any sweep of it.

    drive = Drive("trail", sensor="hdl-32e", seed=7)
    simulation, summary = drive.open()              # builds the scene, or loads the world
    planned = plan_drive(drive, engine)             # or opens it on all workers
    record_in_parts(drive, "drive", engine, n_sweeps=planned.n_sweeps)  # a folder of Parquet parts

A sweep has the same bytes whoever fires it. A part is some neighbouring sweeps, about a million pulses; the cut follows
from sensor and trajectory alone. Workers build the scene, or load the world, once.
"""

import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.base.atomic import atomic_folder
from hedgerow.base.places import as_place
from hedgerow.errors import FileError, warn
from hedgerow.frames import Trajectory
from hedgerow.inputs import Opened, Place, open_place
from hedgerow.io.parquet.writer import PART_PATTERN, write_part
from hedgerow.io.source import Written
from hedgerow.log import Log
from hedgerow.parallel import log_parts
from hedgerow.parallel.engine import Engine
from hedgerow.parallel.kept import keep
from hedgerow.parallel.results import Results, digest_of
from hedgerow.pulse.receiver import BeamSettings
from hedgerow.pulse.vegetation import VegetationSettings
from hedgerow.sensor import Sensor
from hedgerow.sensor.drive import Aim
from hedgerow.sensor.pose_errors import PoseErrors
from hedgerow.simulate import Simulation, simulate

if TYPE_CHECKING:
    from hedgerow.base.progress import StepProgress


@dataclass(frozen=True)
class Drive:
    """What is driven through what, and how; names and paths as in `hedgerow fire`."""

    scene: str
    changes: tuple[tuple[str, Any], ...] = ()
    """Values of parameters or fields of the scene, by name."""
    scene_seed: int | None = None
    sensor: str | None = None
    rate_hz: float | None = None
    trajectory: str | None = None
    pose_rate_hz: float | None = None
    sweeps: int | None = None
    start_s: float = 0.0
    every_s: float | None = None
    """Time from the start of one sweep to that of the next, with `sweeps`. Default: they follow one another."""
    seed: int = 0
    noise: bool | None = None
    beam: BeamSettings | None = None
    aim: Aim | None = None
    sway: PoseErrors | None = None
    """How the true poses differ from those of the trajectory."""
    pose_errors: PoseErrors | None = None
    """How the reported poses differ from the true ones."""
    response: str | None = None
    """File of a vegetation response."""
    anyway: bool = False
    memory_bytes: int | None = None
    """Memory for the tiles of a learned world. Default: all of it is loaded."""
    stamp: str = ""
    """Tells the files that are named here from later ones under the same paths."""

    @cached_property
    def place(self) -> Place:
        """The scene or learned world, checked but not built."""
        return open_place(self.scene, "fire", dict(self.changes), self.scene_seed)

    @cached_property
    def lidar(self) -> Sensor:
        """The sensor."""
        return self.place.sensor(self.sensor, self.rate_hz)

    @cached_property
    def chosen(self) -> Trajectory | str:
        """The trajectory, or its name in the scene."""
        return self.place.choose_trajectory(self.trajectory, self.pose_rate_hz)

    def changed(self, *, beam: BeamSettings | None, sway: PoseErrors | None) -> "Drive":
        """Return it with another beam and sway; what was read of files is not read again."""
        other = replace(self, beam=beam, sway=sway)
        for name in ("place", "lidar", "chosen"):
            other.__dict__[name] = getattr(self, name)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Travel as plain values, without what was opened."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def open(self, progress: "StepProgress | None" = None, *, loop: bool = False) -> tuple[Simulation, str]:
        """Build the scene or load the world; return the simulation, and a line that says what was done.

        Args:
            progress: called with (step, amount done, amount in all).
            loop: whether the trajectory is driven again and again: then its own length says how many sweeps it has.

        Raises:
            InputError, FileError: something is missing or wrong; says what.
        """
        opened = self.place.open(self.lidar, settings=self.beam, progress=progress, memory_bytes=self.memory_bytes)
        return self.through(opened, loop=loop), opened.summary

    def through(self, opened: Opened, *, loop: bool = False) -> Simulation:
        """Return the simulation through what its place was opened as; drives of one scene can share it.

        Raises:
            InputError, FileError: as `open`.
        """
        scatter = None if self.response is None else VegetationSettings.load(self.response)
        way = opened.trajectories[self.chosen] if isinstance(self.chosen, str) else self.chosen
        when: dict[str, Any] = {"sweeps": None if loop else self.sweeps, "start_s": self.start_s}
        if self.every_s is not None:
            when = {"at_s": [self.start_s + number * self.every_s for number in range(self.sweeps or 1)]}
        return simulate(
            opened.world.with_vegetation(scatter),
            self.lidar,
            way if self.sway is None else self.sway.displace(way),
            seed=self.seed,
            noise=self.noise,
            aim=self.aim,
            pose_errors=self.pose_errors,
            anyway=self.anyway,
            **when,
        )


def absolute(given: str | Path) -> str:
    """Name a file so that every worker finds it; names of scenes, sensors and trajectories stay as they are."""
    return str(Path(given).absolute()) if Path(given).exists() else str(given)


def stamp_of(*paths: str | Path | None) -> str:
    """Return what tells files, or the folders of worlds, from later ones under the same paths; a dash for a name."""
    return " ".join("-" if path is None else _stamp(as_place(path)) for path in paths)


def _stamp(place: Path) -> str:
    try:
        found = (place / "world.toml" if place.is_dir() else place).stat()
    except OSError:
        return "-"
    return f"{found.st_size:x}.{found.st_mtime_ns:x}"


@dataclass(frozen=True, slots=True)
class SweepRange:
    """Some neighbouring sweeps of a drive."""

    number: int
    """Of the part, from 0."""
    begin: int
    end: int
    is_last: bool

    def __len__(self) -> int:
        """Count the sweeps."""
        return self.end - self.begin

    def __str__(self) -> str:
        """Name it in a sentence."""
        return f"part {self.number + 1} (sweeps {self.begin} to {self.end - 1})"


@dataclass(frozen=True, slots=True)
class Planned:
    """What opening a drive tells of it."""

    n_sweeps: int
    summary: str
    """A line on what was built or loaded."""
    warnings: tuple[str, ...] = ()


def plan_drive(drive: Drive, engine: Engine, progress: "StepProgress | None" = None) -> Planned:
    """Open a drive where its sweeps will be fired: here, or on all workers at the same time, which keep it.

    Args:
        drive: what will be recorded.
        engine: what will fire.
        progress: called with (step, amount done, amount in all), where it is opened here.

    Raises:
        InputError, FileError: something is missing or wrong; says what.
    """
    if engine.is_here:
        simulation, summary = drive.open(progress)
        keep("drive", repr(drive), lambda: simulation)
        return Planned(len(simulation), summary)
    planned, *_ = engine.map(_Open(drive), range(engine.n_workers))
    for said in planned.warnings:
        warn(said)
    return planned


@dataclass(frozen=True, slots=True)
class _Open:
    """Opens the drive in a worker."""

    drive: Drive

    def __call__(self, worker: int) -> Planned:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            simulation, summary = self.drive.open()
        keep("drive", repr(self.drive), lambda: simulation)
        return Planned(len(simulation), summary, tuple(str(each.message) for each in caught))


def cut_drive(drive: Drive, n: int) -> list[SweepRange]:
    """Cut a drive of n sweeps into parts of about a million pulses."""
    step = max(1, log_parts.BEAMS_PER_PART // max(1, drive.lidar.pulses_per_sweep))
    return [SweepRange(k, begin, min(begin + step, n), begin + step >= n) for k, begin in enumerate(range(0, n, step))]


def record_in_parts(
    drive: Drive,
    output: str | Path,
    engine: Engine,
    *,
    n_sweeps: int,
    progress: Callable[[int], object] | None = None,
) -> Written:
    """Fire a drive into a folder of Parquet parts, each written by whoever fired it.

    Args:
        drive: what is recorded.
        output: the folder; it appears when all parts are there.
        engine: what fires. Finished parts are kept in its folder of results until the output is there.
        n_sweeps: how many it has (`plan_drive`).
        progress: called with the number of sweeps done.

    Raises:
        InputError, FileError: something is wrong, or cannot be written; says what to do.
    """
    results = engine.results
    assert results is not None
    parts, done = cut_drive(drive, n_sweeps), 0

    def count(part: SweepRange) -> None:
        nonlocal done
        done += len(part)
        if progress is not None:
            progress(done)

    total = Written()
    names: list[str] = []
    for name, counts in engine.map(_FireSweeps(drive, results), parts, count):
        names.append(name)
        total.n_beams, total.n_returns, total.n_misses = (
            a + b for a, b in zip((total.n_beams, total.n_returns, total.n_misses), counts, strict=True)
        )
    with atomic_folder(output, replaces=[PART_PATTERN]) as temporary:
        for part, name in zip(parts, names, strict=True):
            try:
                _link(results.path(name), temporary / f"part-{part.number:05d}.parquet")
            except OSError as error:
                raise FileError(f"{output}: cannot be written ({error.strerror or error})") from error
    return total


def _link(source: Path, target: Path) -> None:
    """Give a file a second name: should the output fail, the finished part is still there."""
    try:
        target.hardlink_to(source)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


@dataclass(frozen=True, slots=True)
class _FireSweeps:
    """Fires the sweeps of one part, and writes them."""

    drive: Drive
    results: Results

    def __call__(self, part: SweepRange) -> tuple[str, tuple[int, int, int]]:
        """Return the name of the file, and how many beams, returns and misses it has."""
        simulation = keep("drive", repr(self.drive), lambda: self.drive.open()[0])
        written = Written()

        def sweeps() -> Iterator[Log]:
            for number in range(part.begin, part.end):
                log = simulation.sweep(number)
                written.count(log)
                yield log

        name = f"log-{digest_of(repr(self.drive), repr(part))}.parquet"
        with self.results.writing(name) as path:
            write_part(path, sweeps(), part.number, is_last=part.is_last)
        return name, (written.n_beams, written.n_returns, written.n_misses)
