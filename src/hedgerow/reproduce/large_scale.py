# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 §6.4, Fig. 21: 400 m off road, a Voxel world of 80 million points, compared with reality.

A physics scene plays reality (large_scale_site.py). Worlds are learned from one pass and fired along another, 1 m
beside: no beam that is compared was learned from. Everything lies on the disk: logs as Parquet parts, written by
whoever fires them, worlds in tiles, of which a stated amount is in memory. With `--workers` or `--scheduler` the
passes, the learning and the distances of the clouds are spread.

The two floors of the distance stand beside: the paper's figure, and the scene fired again along the second pass with
other random numbers, which no simulation can undercut by right.

Distances are of all points of all sweeps (metrics/cloud_in_tiles.py). The other metrics are means over beams; they are
taken on some of the sweeps, evenly spread.
"""

import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedgerow.drives import Drive, record_in_parts
from hedgerow.inputs import Opened
from hedgerow.io.parquet.reader import LogFile
from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.metrics.cloud_in_tiles import CloudDistance, cloud_distances
from hedgerow.metrics.crps import crps
from hedgerow.models import learn
from hedgerow.parallel import InProcess, Results, using
from hedgerow.parallel.engine import Engine, current_engine
from hedgerow.parallel.kept import forget, keep
from hedgerow.reproduce import large_scale_site
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.large_scale_pictures import draw_passes
from hedgerow.reproduce.large_scale_site import Survey
from hedgerow.reproduce.mobile import SCENE_AGAIN
from hedgerow.reproduce.tables import PaperTable, markdown_table
from hedgerow.simulate import Simulation, replay
from hedgerow.world import load_world
from hedgerow.world.tiled import TiledWorld

MODELS = {"Voxel": "voxel", "Top Down": "topdown"}
PAPER_CM = 4.6
"""Browning 2012 §6.4, of the Voxel model."""
SWEEPS = 62
"""A tenth of the paper's points."""
FULL = 615
"""Sweeps that return 80 million points."""
MOST_SECOND = 160
"""Sweeps of the second pass, at most: 2.5 m apart."""
TILE_BYTES = 300_000_000
"""Memory for the tiles of a world."""
SCORED = 40
"""Sweeps on which beams are compared."""
DRAWN = 8
"""Sweeps on which the CRPS is taken, and how often each beam is drawn there."""


@dataclass
class Stages:
    """What each stage took, and the memory that this process had needed by then."""

    say: Print
    rows: list[tuple[str, str, str]]

    def done(self, what: str, start_s: float, more: str = "") -> None:
        """Note a stage that began at `start_s`."""
        took_s, peak_gb = time.perf_counter() - start_s, _peak_gb()
        self.rows.append((what, f"{took_s:,.0f}", "-" if peak_gb is None else f"{peak_gb:.2f}"))
        self.say(f"{what}: {took_s:.0f} s{f'; {more}' if more else ''}")


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Record two passes, the first of `size` sweeps, learn from it, fire along the other, and compare.

    What is made on the way lies in `folder`/large-scale.work, up to 20 GB at full size. It is deleted at the end; after
    Ctrl-C the same command goes on from there.
    """
    work = folder / "large-scale.work"
    work.mkdir(exist_ok=True)
    n = size or SWEEPS
    survey = Survey(work, n, min(n, MOST_SECOND), large_scale_site.LENGTH_M)
    survey.write()
    engine = current_engine()
    if engine.results is None:
        engine = InProcess(Results(work / "parts"))
    with using(engine):
        outcome = _Trial(survey, engine, seed, Stages(say, [])).run(folder)
    shutil.rmtree(work, ignore_errors=True)
    return outcome


@dataclass
class _Trial:
    survey: Survey
    engine: Engine
    seed: int
    stages: Stages

    def run(self, folder: Path) -> Outcome:
        opened = self._record()
        self._learn()
        self._fire()
        start_s = time.perf_counter()
        far = cloud_distances(self._path("second"), {name: self._path(name) for name in (*MODELS, SCENE_AGAIN)})
        self.stages.done("distances of the clouds", start_s)
        scores, scored_s = self._compare(opened), time.perf_counter()
        pictures = draw_passes(
            folder, {"Real, second pass": self._path("second"), "Voxel, simulated": self._path("Voxel")}
        )
        self.stages.done("drawing", scored_s)
        return Outcome(tuple(tables(far, *scores)), self._text(far), pictures)

    def _path(self, name: str) -> Path:
        """Where the log of a pass is, or, with the suffix .world, a world."""
        return self.survey.folder / name.lower().replace(" ", "-")

    def _record(self) -> Opened:
        """Drive through the scene three times: to learn from, to compare with, and once more."""
        start_s = time.perf_counter()
        first = self.survey.reality("first", self.seed)
        opened = first.place.open(first.lidar, settings=first.beam)
        self.stages.done("growing the scene", start_s, opened.summary)
        passes = {
            "first": first,
            "second": self.survey.reality("second", self.seed + 1),
            SCENE_AGAIN: self.survey.reality("second", self.seed + 2),
        }
        for name, drive in passes.items():
            self._write(drive, drive.through(opened), name, f"recording {name.lower()}")
        self.survey.write_line(opened.trajectories["second"])
        return opened

    def _write(self, drive: Drive, simulation: Simulation, name: str, what: str) -> None:
        start_s = time.perf_counter()
        if self.engine.is_here:  # workers open it themselves
            keep("drive", repr(drive), lambda: simulation)
        written = record_in_parts(drive, self._path(name), self.engine, n_sweeps=len(simulation))
        self.stages.done(what, start_s, f"{written.n_returns:,} points of {written.n_beams:,} beams")

    def _learn(self) -> None:
        for name, model in MODELS.items():
            start_s = time.perf_counter()
            world = learn(self._path("first"), model, preset="browning-2012")
            world.save(self._world(name))
            self.stages.done(f"learning {name}", start_s, f"{world.size().elements:,} Gaussians")

    def _world(self, name: str) -> Path:
        return self._path(name).with_suffix(".world")

    def _open(self, name: str) -> TiledWorld:
        return load_world(self._world(name), max_bytes=TILE_BYTES)

    def _fire(self) -> None:
        """Fire at the worlds along the second pass, within the memory for tiles."""
        forget()  # the scenes of the passes
        for name in MODELS:
            drive = self.survey.through(self._world(name), self.seed + 3, TILE_BYTES)
            self._write(drive, drive.open()[0], name, f"firing {name}")

    def _compare(self, opened: Opened) -> tuple[Comparison, Mapping[str, float]]:
        """Compare beam by beam, on some of the sweeps."""
        start_s = time.perf_counter()
        worlds = {name: self._open(name) for name in MODELS}
        chosen = _spread(self.survey.second_sweeps, SCORED)
        again = LogFile(self._path(SCENE_AGAIN))
        real = LogFile(self._path("second"))
        # Their clouds are compared elsewhere: here few points of them will do.
        scores = compare(
            _sweeps(real, chosen),
            {**worlds, SCENE_AGAIN: _sweeps(again, chosen)},
            seed=self.seed + 3,
            max_cloud_points=100_000,
        )
        self.stages.done("comparing beams", start_s)
        start_s = time.perf_counter()
        drawn = self._crps(real, worlds, opened)
        self.stages.done("CRPS", start_s)
        return scores, drawn

    def _crps(self, real: LogFile, worlds: Mapping[str, TiledWorld], opened: Opened) -> dict[str, float]:
        """Return the mean CRPS of each world, and of the scene drawn again and again [m]."""
        seeds = [self.seed + 10 + k for k in range(DRAWN)]
        passes = [self.survey.reality("second", seed).through(opened) for seed in seeds]
        sums = dict.fromkeys((*worlds, SCENE_AGAIN), 0.0)
        n = 0
        for number in _spread(self.survey.second_sweeps, DRAWN):
            sweep = real.read([number])
            n += len(sweep)
            draws = {
                name: np.stack([replay(world, sweep, seed=seed).returns.first_m for seed in seeds])
                for name, world in worlds.items()
            }
            draws[SCENE_AGAIN] = np.stack([each.sweep(number).returns.first_m for each in passes])
            for name, ranges_m in draws.items():
                sums[name] += float(crps(sweep.returns.first_m, ranges_m, sweep.max_range_m).sum())
        return {name: total / n for name, total in sums.items()}

    def _text(self, far: Mapping[str, CloudDistance]) -> str:
        both = markdown_table(
            ("", "simulated points", "real to simulated [cm]", "simulated to real [cm]", "nothing within 8 m"),
            [
                (name, f"{each.n_simulated:,}", f"{100 * each.to_simulated_m:.2f}", f"{100 * each.to_real_m:.2f}",
                 f"{each.n_far:,}")
                for name, each in far.items()
            ],
        )  # fmt: skip
        n_real = next(iter(far.values())).n_real
        took = markdown_table(("stage", "seconds", "peak memory so far [GB]"), self.stages.rows)
        return (
            f"**Both ways; the real second pass has {n_real:,} points**\n\n{both}\n\n"
            f"**Time, and memory of this process**\n\n{took}"
        )


def tables(far: Mapping[str, CloudDistance], scores: Comparison, drawn: Mapping[str, float]) -> list[PaperTable]:
    """Put our figures beside the paper's one."""
    columns = (*MODELS, SCENE_AGAIN)

    def ours(key: str, scale: float = 1.0) -> dict[str, float]:
        found = {name: scores[name][key] for name in columns}
        return {name: scale * value for name, value in found.items() if value is not None}

    none = dict[str, float]()
    distances = (
        (
            "Cloud to cloud, worse way [cm]",
            {"Voxel": PAPER_CM},
            {name: 100 * each.worse_m for name, each in far.items()},
        ),
        ("Cloud to cloud, average [cm]", none, {name: 100 * each.average_m for name, each in far.items()}),
        ("Sweep to sweep, worse way [cm]", none, ours("sweep_distance_m", 100)),
        ("Beam error, median [cm]", none, ours("beam_error_median_m", 100)),
        ("CRPS [cm]", none, {name: 100 * value for name, value in drawn.items()}),
        ("-log L", none, ours("nll_binned")),
    )
    rates = (("Hits found [%]", none, ours("hits_found", 100)), ("Misses found [%]", none, ours("misses_found", 100)))
    sizes = (("Gaussians", none, ours("elements")),)
    title = "large scale (Browning 2012 §6.4)"
    return [
        PaperTable(f"Distances, {title}", columns, distances, aside=(SCENE_AGAIN,)),
        PaperTable(f"Hits and misses, {title}", columns, rates, digits=1, lower_is_better=False, aside=(SCENE_AGAIN,)),
        PaperTable(f"Size, {title}", tuple(MODELS), sizes, digits=0),
    ]


def _spread(n: int, most: int) -> list[int]:
    """Choose at most so many of the numbers below n, evenly spread."""
    return sorted(set(np.linspace(0, n - 1, min(n, most)).round().astype(int).tolist()))


def _sweeps(log: LogFile, chosen: list[int]) -> Iterator[Log]:
    return (log.read([number]) for number in chosen)


def _peak_gb() -> float | None:
    """Return the most memory that this process has had; None where the system does not tell."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1024**3 if sys.platform == "darwin" else 1024**2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
