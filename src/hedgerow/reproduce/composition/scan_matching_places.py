# SPDX-License-Identifier: Apache-2.0
"""Where scan matching is tried: section 2 of the scene that we know all of, and the second half of a real drive.

Each place was mapped by some sweeps and is judged by others. Worlds of it: learned directly from the mapping sweeps;
composed of primitives that were learned elsewhere; composed of meshes in the same boxes, on the same ground. The noise
of that ground is what the mapping sweeps show. A place is judged by pairs of sweeps that follow each other, spread
along the way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow import io
from hedgerow.apps.drive import sweep_poses
from hedgerow.compose.primitives import extract_primitives
from hedgerow.compose.segmentation import RETURNS, segment
from hedgerow.errors import FileError, InputError
from hedgerow.frames import Trajectory
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.composition.meshes import FOLDER as MESHES
from hedgerow.reproduce.composition.meshes import foreign_meshes
from hedgerow.reproduce.composition.moving import is_moving
from hedgerow.reproduce.composition.sections import SENSOR, Section, open_section
from hedgerow.reproduce.composition.sites import (
    Ground,
    Things,
    compose_section,
    of_library,
    of_plants,
    way_of,
    write_boxes,
)
from hedgerow.reproduce.composition.trial import BESIDE_M, MODEL, Sizes, learn_library, on_ground
from hedgerow.reproduce.experiment import Print
from hedgerow.reproduce.recording import NOISE_M, REALITY, record_drive
from hedgerow.risk.sources import Drive, RecordedSource, SimulatedSource, Source, digest
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation
from hedgerow.scenes.primitive import Library
from hedgerow.sensor import Sensor
from hedgerow.world.learned import LearnedWorld
from hedgerow.world.world import World

DIRECT, PRIMITIVES, FOREIGN = "learned directly", "primitives", "meshes from elsewhere"
OWN = "meshes, truth's own generator"
PLANTS = "procedural plants"
"""What meshes are called where there are none from elsewhere, and the truth is no scene of ours."""
DRIVE, TABLE = "drive.parquet", "risk.parquet"
APART_M = 1.0
"""Way between the two sweeps of a pair; 650 m in 116.5 s and 300 packets a scan make 0.9 m in Tallavajhula 2018."""
PATH_SWEEPS = 25
"""Of the path that is drawn, one after the other."""
MESH_NOISE_M = 0.02
"""Of ranges on meshes from elsewhere; Tallavajhula 2018 §4.3.2 adds Gaussian noise of a width not stated."""
_GROUP = 4
"""Of the sweeps of the real drive: the first two of each group map, the last two are a pair."""


@dataclass(frozen=True, eq=False)
class Place:
    """A place to match scans at, in reality and in several worlds."""

    name: str
    about: str
    drive: Drive
    """The pairs that judge."""
    again: Drive | None
    """The same beams in reality, with another seed."""
    worlds: Mapping[str, World]
    path: Log
    """Sweeps that follow each other."""
    trajectory: Trajectory | None
    identity: str
    """Changes with what was recorded and how worlds were made."""

    def sources(self) -> list[Source]:
        """Return reality, reality again, and the worlds."""
        again = [] if self.again is None else [RecordedSource(self.again, "again", "again", self.identity)]
        worlds = [SimulatedSource(name, self.drive, world, self.identity) for name, world in self.worlds.items()]
        return [RecordedSource(self.drive, identity=self.identity), *again, *worlds]

    def path_poses(self) -> Trajectory:
        """Return the true poses of the path's sweeps."""
        return sweep_poses(self.path, self.trajectory)


def open_known(folder: Path, sizes: Sizes, n_pairs: int, seed: int, say: Print, data: Path | None) -> Place:
    """Learn section 1, map section 2, compose it, and record what judges it.

    Args:
        folder: takes scene files, logs and the library; exists.
        sizes: of the sections.
        n_pairs: of sweeps.
        seed: of all.
        say: shows how far it is.
        data: holds `meshes`, if given and there.

    Raises:
        InputError: more pairs than the section is long.
    """
    library = learn_library(folder, sizes, seed, say)
    section = open_section(folder, 2, sizes.composed, seed)
    mapping = section.record(0.0, sizes.mapped_sweeps, 10 * seed + 1)
    boxes = section.truth_annotation()
    noise_m = ground_noise_m(mapping, segment(mapping, use_labels=False).is_ground[RETURNS])
    things = {PRIMITIVES: of_library(library, scale="box")} | _foreign(folder, data) | {OWN: of_plants(scale="box")}
    worlds = _worlds(folder, things, boxes, mapping, noise_m, seed)
    n_sweeps, way = _n_sweeps(section), section.trajectory(BESIDE_M)
    pairs = [number for start in pair_starts(n_sweeps, n_pairs) for number in (start, start + 1)]
    drives: list[Drive] = []
    for name, number in (("real", 2), ("again", 3)):
        path = folder / f"{name}.parquet"
        io.write_log(_record(section, sorted(set(pairs)), 10 * seed + number), path)
        drives.append(Drive(io.open_log(path), 2, trajectory=way, ground=False, sweeps=pairs))
    about = (
        f"Section 2, {section.length_m:.0f} m, {len(boxes)} plants, {Sensor.named(SENSOR).name}, composed of "
        f"{len(library)} primitives of section 1; true boxes; {n_pairs} pairs of sweeps {APART_M:g} m apart on a "
        f"drive {BESIDE_M:g} m beside the one that mapped it. Noise of ranges on the fitted ground {noise_m:.3f} m."
    )
    say(about)
    chain = _record(section, range(n_sweeps // 4, min(n_sweeps // 4 + PATH_SWEEPS, n_sweeps)), 10 * seed + 2)
    return Place("known", about, drives[0], drives[1], worlds, chain, way, _identity(folder))


def open_real(folder: Path, data: Path, n_pairs: int, seed: int, say: Print) -> Place:
    """Learn the first half of a real drive, and compose and judge the second half.

    Nothing is labelled: plants are cut out and boxes found by `segment`. Every second beam is used; beams
    that end on something that moves are left out everywhere.

    Raises:
        InputError: too few sweeps.
        FileError: the log cannot be read.
    """
    recording = io.open_log(data / DRIVE)
    first, groups = split_drive(recording.sweeps.tolist(), n_pairs)
    log = recording.read([*first, *(number for group in groups for number in group)])[::2]
    moving = is_moving(log)
    log = log[~moving]
    say(f"{np.count_nonzero(moving):,} of {len(moving):,} beams masked as moving; learning the first half of the drive")
    library = _automatic_library(log.select(sweep=first), folder / "library.world")
    mapping = log.select(sweep=[number for group in groups for number in group[:2]])
    found = segment(mapping, use_labels=False)
    boxes, noise_m = found.annotation(PLANT_CLASSES), ground_noise_m(mapping, found.is_ground[RETURNS])
    filled = of_library(library, scale="box")
    meshes = _foreign(folder, data) or {PLANTS: of_plants(scale="box")}
    known = np.isin(boxes.class_name, filled.classes)
    worlds = _worlds(folder, {PRIMITIVES: filled} | meshes, boxes[known], mapping, noise_m, seed)
    pairs = [number for row in pair_starts(len(groups) + 1, n_pairs) for number in groups[row][2:]]
    io.write_log(log.select(sweep=sorted(pairs)), folder / "real.parquet")
    drive = Drive(io.open_log(folder / "real.parquet"), 2, ground=False, sweeps=pairs)
    chain = [number for group in groups for number in group][:PATH_SWEEPS]
    about = (
        f"{len(recording.sweeps)} real sweeps, what moves masked; the first half gave {len(library)} primitives, the "
        f"second was composed of {int(known.sum())} boxes, all found by `segment`; {int((~known).sum())} boxes are of "
        f"classes that the first half has none of. {n_pairs} pairs that neither mapped nor taught; walls, posts and "
        f"vehicles are left out of composed worlds. Noise of ranges on the fitted ground {noise_m:.3f} m."
    )
    say(about)
    return Place("real", about, drive, None, worlds, log.select(sweep=chain), None, _identity(folder))


def split_drive(numbers: list[int], n_pairs: int) -> tuple[list[int], list[list[int]]]:
    """Return the sweeps of the first half of a drive, and those of the second half in groups of four.

    Raises:
        InputError: too few sweeps.
    """
    half = len(numbers) // 2
    groups = [numbers[k : k + _GROUP] for k in range(half, len(numbers) - _GROUP + 1, _GROUP)]
    if len(groups) < n_pairs:
        raise InputError(DRIVE, f"has {len(numbers)} sweeps, and {n_pairs} pairs take {2 * _GROUP * n_pairs}")
    return numbers[:half], groups


def pair_starts(n_sweeps: int, n_pairs: int) -> list[int]:
    """Return the first sweep of each pair, evenly spread over sweeps numbered from 0.

    Raises:
        InputError: there are not so many pairs.
    """
    if not 2 <= n_pairs < n_sweeps:
        raise InputError("n_pairs", f"expected 2 to {n_sweeps - 1} of {n_sweeps} sweeps, found {n_pairs}")
    return np.linspace(0, n_sweeps - 2, n_pairs).round().astype(int).tolist()


def ground_noise_m(log: Log, is_ground: NDArray[np.bool_]) -> float:
    """Return the noise of ranges on the ground, from neighbours in a ring: what is not the same from beam to beam.

    Scans are matched by small patches of ground, so its noise matters more than anything else about it. The second
    difference of three neighbours has the slope of the ground taken out, and sqrt(6) times the noise of one; the median
    is not moved by tufts.

    Args:
        log: the sweeps.
        is_ground: (M,) whether each return is of the ground.

    Raises:
        InputError: fewer than 100 such neighbours.
    """
    beams, rows = log.beams, np.flatnonzero(log.returns.hit)
    rows = rows[np.lexsort((beams.time_ns[rows], beams.ring[rows], beams.sweep[rows]))]
    number = np.full(len(log), -1)
    number[log.returns.hit] = np.arange(len(rows))
    ground = is_ground[number[rows]]
    ring = beams.ring[rows].astype(np.int64) + (beams.sweep[rows].astype(np.int64) << 16)
    range_m = log.returns.first_m[rows].astype(np.float64)
    together = (ring[2:] == ring[:-2]) & ground[2:] & ground[1:-1] & ground[:-2]
    second_m = (range_m[2:] - 2 * range_m[1:-1] + range_m[:-2])[together]
    if len(second_m) < 100:
        raise InputError("log", f"has {len(second_m)} neighbours on the ground; its noise takes 100")
    return float(1.4826 * np.median(np.abs(second_m)) / np.sqrt(6))


def check_data(data: Path | None, n_pairs: int) -> None:
    """Refuse a folder that has nothing to use, before anything is built.

    Raises:
        FileError: neither meshes nor a drive is there, or the drive cannot be read.
        InputError: the drive is too short.
    """
    if data is None:
        return
    if (data / DRIVE).is_file():
        split_drive(io.open_log(data / DRIVE).sweeps.tolist(), n_pairs)
    elif not (data / MESHES).is_dir():
        raise FileError(f"{data}: scan-matching-risk wants the folder {MESHES} there, or a real log {DRIVE}, or both")


def _foreign(folder: Path, data: Path | None) -> dict[str, Things]:
    if data is None or not (data / MESHES).is_dir():
        return {}
    return {FOREIGN: foreign_meshes(data, folder, MESH_NOISE_M)}


def _identity(folder: Path) -> str:
    """Return a digest of what worlds are made of: logs, boxes, scene files, library."""
    made = [path for path in sorted(folder.iterdir()) if path.suffix in (".parquet", ".csv", ".toml", ".world")]
    return " ".join(f"{path.name}:{digest(path)[:12]}" for path in made if path.name != TABLE)


def _n_sweeps(section: Section) -> int:
    """Sweeps of a drive through the section, APART_M from one to the next."""
    return max(3, round(section.trajectory(BESIDE_M).length_m / APART_M) + 1)


def _record(section: Section, numbers: Iterable[int], seed: int) -> Log:
    """Record some of these sweeps, as a real sensor would."""
    way, sensor = section.trajectory(BESIDE_M), Sensor.named(SENSOR)
    duration_s = (int(way.time_ns[-1]) - int(way.time_ns[0])) / 1e9
    world = section.site.world(REALITY)
    sweeps = record_drive(world, sensor, way, _n_sweeps(section), seed, span_s=(0.0, duration_s), noise_m=NOISE_M)
    return Log.concatenate([sweeps.sweep(number) for number in numbers])


def _automatic_library(log: Log, path: Path) -> Library:
    world = learn(log, MODEL)
    extract_primitives(world, segment(world, use_labels=False), log=log).save(path)
    return Library(path)


def _worlds(
    folder: Path, things: dict[str, Things], boxes: Annotation, mapping: Log, noise_m: float, seed: int
) -> dict[str, LearnedWorld]:
    """Learn a place directly; and fill the same boxes on the same ground with different things.

    Plants grow from another seed than the truth's.
    """
    io.write_log(mapping, folder / "mapping.parquet")
    worlds = {DIRECT: learn(mapping, MODEL)}
    annotation = write_boxes(folder, "boxes", on_ground(boxes), mapping)
    ground = Ground("mapping.parquet", sigma_m=noise_m, sigma_a_m=0.0)
    for name, each in things.items():
        path = folder / f"{name.split(',')[0].replace(' ', '-')}.toml"
        worlds[name] = compose_section(path, each, annotation, ground, way_of(mapping), 7919 + seed)
    return worlds
