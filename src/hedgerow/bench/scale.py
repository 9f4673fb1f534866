# SPDX-License-Identifier: Apache-2.0
"""`hedgerow bench scale`: how cost grows with beams, with workers, with the tiles of a world, and with processors.

Four parts, each a module of this folder: what it plans (chains of tasks) and how its rows are laid out. Rows are kept
in scale.json as they come; scale.md and scale.png are made of all that are there, of this size.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from hedgerow.bench import beams, processors, tiles, workers
from hedgerow.bench.benchmark import Asked, Measured, Print, Size, Table
from hedgerow.bench.chain import Chain
from hedgerow.bench.journal import Journal, Row, n_cores
from hedgerow.bench.scale_page import write_page
from hedgerow.bench.scale_plot import draw_scale
from hedgerow.errors import FileError, InputError

NAME = "scale"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    beams: tuple[int, ...]
    wood: bool
    """Whether the trail leads through trees, which take some seconds to grow."""
    worker_beams: int
    rounds: int
    tiles: tuple[int, ...]
    tile_sweeps: int
    gaussians_per_tile: int
    scene: str
    scene_sweeps: int
    scene_start_s: float


SIZES = {
    "full": Sizes(
        beams=(1_000_000, 10_000_000),
        wood=True,
        worker_beams=6_000_000,
        rounds=2,
        tiles=(1, 10, 100, 1000, 10_000),
        tile_sweeps=128,
        gaussians_per_tile=tiles.GAUSSIANS_PER_TILE,
        scene="courtyard",
        scene_sweeps=80,  # eight parts: as many for each of two workers
        scene_start_s=processors.START_S,
    ),
    "small": Sizes(
        beams=(200_000, 400_000),
        wood=False,
        worker_beams=200_000,
        rounds=1,
        tiles=(1, 9),
        tile_sweeps=2,
        gaussians_per_tile=200,
        scene="rods",
        scene_sweeps=20,
        scene_start_s=0.0,
    ),
}
LEAST_BEAMS, MOST_BEAMS = 100_000, 10_000_000_000
_LONG = 20_000_000
"""Beams from which on the user is told beforehand how long it will take."""
_PILOT = 1_000_000


@dataclass(frozen=True)
class Part:
    """One row of the table."""

    name: str
    chains: Callable[[Sizes, Path], list[Chain]]
    table: Callable[[Sequence[Row]], Table]


PARTS = (
    Part(
        beams.PART,
        lambda sizes, work: [beams.chain(n, work / f"beams-{n}", wood=sizes.wood) for n in sizes.beams],
        beams.table,
    ),
    Part(
        workers.PART,
        lambda sizes, work: [workers.chain(sizes.worker_beams, sizes.rounds, work / "workers", wood=sizes.wood)],
        workers.table,
    ),
    Part(
        tiles.PART,
        lambda sizes, work: [
            tiles.chain(n, sizes.tile_sweeps, sizes.gaussians_per_tile, work / f"tiles-{n}") for n in sizes.tiles
        ],
        tiles.table,
    ),
    Part(
        processors.PART,
        lambda sizes, work: [
            processors.chain(sizes.scene, sizes.scene_sweeps, sizes.scene_start_s, n_cores(), work / "processors")
        ],
        processors.table,
    ),
)
"""The parts, in the order in which they are measured and shown."""


def run(folder: Path, asked: Asked, say: Print = print) -> Measured:
    """Measure what is asked for and not there yet; write rows, tables and pictures of all that is there.

    Raises:
        InputError: no such part, or a number of beams that cannot be.
        FileError: something could not be measured or written.
    """
    chosen = _parts(asked.only)
    sizes = _sizes(asked)
    journal = Journal(folder / f"{NAME}.json", NAME)
    work = folder / f"{NAME}.parts"
    planned = [chain.of_size(asked.size) for part in chosen for chain in part.chains(sizes, work.absolute())]
    if asked.anew:
        for chain in planned:
            for task in chain.tasks:
                journal.forget(chain.part, task.settings)
    if not any(chain.missing(journal) for chain in planned):
        say(f"all rows are in {journal.path} already; --anew measures them again")
    if _is_blind(planned, journal, asked.size):
        pilot = beams.chain(_PILOT, work.absolute() / f"beams-{_PILOT}", wood=sizes.wood)
        planned.insert(0, pilot.of_size(asked.size))
    for chain in planned:
        _warn_of_length(chain, journal, asked.size, say)
        chain.run(journal, say)
    _remove_empty(work)
    return _write(folder, journal, asked.size)


def _write(folder: Path, journal: Journal, size: Size) -> Measured:
    """Lay out and draw all rows of this size."""
    rows = {part.name: journal.of(part.name, size) for part in PARTS}
    page, picture = folder / f"{NAME}.md", folder / f"{NAME}.png"
    try:
        tables = tuple(part.table(rows[part.name]) for part in PARTS if rows[part.name])
        draw_scale(rows, picture)
    except KeyError as error:  # somebody else wrote there
        raise FileError(f"{journal.path}: a row lacks {error}; delete the file, or measure --anew") from error
    write_page(page, tables, [row for some in rows.values() for row in some], picture.name)
    return Measured(tables, (journal.path, page, picture))


def _parts(only: Sequence[str]) -> list[Part]:
    names = [part.name for part in PARTS]
    for name in only:
        if name not in names:
            raise InputError("--only", f"there is no part {name}; there are {', '.join(names)}")
    if not only or workers.PART in only or processors.PART in only:
        _require_dask()
    return [part for part in PARTS if not only or part.name in only]


def _require_dask() -> None:
    if not _has_dask():
        said = "workers and processors need the package distributed, which is not installed; install it with: pip "
        raise InputError("--only", f"{said}install 'hedgerow[cluster]', or measure --only beams --only tiles")


def _has_dask() -> bool:
    return find_spec("distributed") is not None


def _sizes(asked: Asked) -> Sizes:
    if asked.size not in SIZES:
        raise InputError("--size", f"there is no size {asked.size}; there are {', '.join(SIZES)}")
    sizes = SIZES[asked.size]
    for number in asked.beams:
        if not (math.isfinite(number) and LEAST_BEAMS <= number <= MOST_BEAMS):
            raise InputError("--beams", f"expected {LEAST_BEAMS:g} to {MOST_BEAMS:g}, found {number:g}")
    if asked.beams:
        if asked.only and beams.PART not in asked.only:
            raise InputError("--beams", f"goes with --only {beams.PART}, not with {', '.join(asked.only)} alone")
        return replace(sizes, beams=tuple(sorted({round(number) for number in asked.beams})))
    return sizes


def _is_blind(planned: list[Chain], journal: Journal, size: Size) -> bool:
    """Whether the first drive is a long one, and nothing tells yet how long it will take."""
    drives = [chain for chain in planned if chain.part == beams.PART and chain.missing(journal)]
    known = beams.expected_s(journal.of(beams.PART, size), 1) is not None
    return bool(drives) and _n_beams(drives[0]) >= _LONG and not known


def _n_beams(chain: Chain) -> int:
    return int(chain.tasks[0].settings["beams"])


def _warn_of_length(chain: Chain, journal: Journal, size: Size, say: Print) -> None:
    """Say how long many beams will take, and how much disk they need."""
    missing = chain.missing(journal)
    if chain.part != beams.PART or not missing or _n_beams(chain) < _LONG:
        return
    n = _n_beams(chain)
    took_s = beams.expected_s(journal.of(beams.PART, size), n)
    if took_s is not None:
        took_s *= len(missing) / len(chain.tasks)
        said = f"{n / 1e6:g} M beams take about {took_s / 60:.0f} minutes, by what fewer took"
        say(f"{said}, and {2 * n * _BYTES_PER_BEAM / 1e9:.0f} GB of disk")


_BYTES_PER_BEAM = 30
"""Of a log on the disk; two are there at a time, the recorded and the fired one."""


def _remove_empty(folder: Path) -> None:
    """Remove the folder of files in between, unless a chain that was not asked for has left something there."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
