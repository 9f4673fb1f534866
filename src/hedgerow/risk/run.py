# SPDX-License-Identifier: Apache-2.0
"""Runs a program with every setting on every scene of every source, in one process or in several.

A piece of work is one scene of one source under one seed with some of the settings: the scene is made once, here, and
handed to a process with them. What is in the table already is not run again. The table does not depend on the number of
processes, nor on where it was interrupted, but for the seconds.
"""

import multiprocessing
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

from hedgerow.apps.app import App, Outcome, run
from hedgerow.apps.space import Setting
from hedgerow.base.arguments import as_whole
from hedgerow.errors import InputError
from hedgerow.parallel.engine import Engine, Shared, current_engine
from hedgerow.risk.sources import Scene, Source
from hedgerow.risk.table import DRAWN, RiskTable, Runs

MAX_JOBS = 1024
_AHEAD = 2  # pieces that wait for each process: enough that none is idle, few enough for memory
_PIECES = 4  # for each process, if there are settings enough


class Piece(NamedTuple):
    """Settings that are to be tried on one scene."""

    source: Source
    path: str
    seed: int
    scene: str
    settings: list[int]
    """Their numbers."""


class Done(NamedTuple):
    """What came of a piece."""

    piece: Piece
    outcomes: list[tuple[Outcome, float]]
    """With the seconds that each took."""


def evaluate(
    app: App,
    table: RiskTable,
    sources: Sequence[Source],
    *,
    seeds: Sequence[int] = (0,),
    path: str = DRAWN,
    jobs: int = 1,
    progress: Callable[[int], object] | None = None,
    keep: Callable[[], object] | None = None,
) -> None:
    """Run what a table lacks, and put it there.

    Args:
        app: the program.
        table: holds the settings; it is filled as runs end, so that what is done is there after an interrupt.
        sources: what to run on; those that are not random run once.
        seeds: of the simulations.
        path: whose settings.
        jobs: number of processes.
        progress: called with the number of runs done so far.
        keep: called after each piece of work, to store the table now and then.

    Raises:
        InputError: a scene cannot be made, or a process ended without an answer.
    """
    as_whole("jobs", jobs, 1, MAX_JOBS)
    settings = table.settings[path]
    for source in sources:
        table.of(source.name, path).grow(_seeds_of(source, seeds), len(settings))
    pieces = list(_pieces(table, sources, seeds, path, jobs))
    done = 0
    with _worker(app, jobs) as work:
        for each in work(pieces, settings):
            runs = table.of(each.piece.source.name, path)
            _put(runs, each)
            done += len(each.outcomes)
            if progress is not None:
                progress(done)
            if keep is not None:
                keep()


def count_missing(table: RiskTable, sources: Sequence[Source], seeds: Sequence[int], path: str = DRAWN) -> int:
    """Return how many runs a table lacks."""
    n_settings = len(table.settings[path])
    total = 0
    for source in sources:
        runs = table.of(source.name, path)
        runs.grow(_seeds_of(source, seeds), n_settings)
        wanted = [runs.seeds.index(seed) for seed in _seeds_of(source, seeds)]
        total += int((~runs.ran[wanted, :n_settings]).sum())
    return total


def _seeds_of(source: Source, seeds: Sequence[int]) -> Sequence[int]:
    return seeds if source.is_random else (0,)


def _put(runs: Runs, done: Done) -> None:
    seed, scene = runs.seeds.index(done.piece.seed), runs.scenes.index(done.piece.scene)
    for setting, (outcome, seconds) in zip(done.piece.settings, done.outcomes, strict=True):
        runs.put((seed, setting, scene), outcome, seconds)


def _pieces(table: RiskTable, sources: Sequence[Source], seeds: Sequence[int], path: str, jobs: int) -> Iterator[Piece]:
    """Give the work that is left; scenes are split where there are too few for the processes."""
    n_settings = len(table.settings[path])
    n_scenes = sum(len(source.scenes) * len(_seeds_of(source, seeds)) for source in sources)
    jobs = max(jobs, getattr(current_engine(), "n_workers", 1))
    parts = 1 if jobs == 1 else min(max(1, -(-_PIECES * jobs // max(n_scenes, 1))), max(n_settings, 1))
    for source in sources:
        runs = table.of(source.name, path)
        # Scenes outside, seeds inside: the real beams of a scene are read once for all seeds.
        for number, scene in enumerate(runs.scenes):
            for seed in _seeds_of(source, seeds):
                left = (~runs.ran[runs.seeds.index(seed), :n_settings, number]).nonzero()[0].tolist()
                for part in range(parts):
                    chosen = left[part::parts]
                    if chosen:
                        yield Piece(source, path, seed, scene, chosen)


_Work = Callable[[Iterable[Piece], Sequence[Setting]], Iterator[Done]]


@contextmanager
def _worker(app: App, jobs: int) -> Generator[_Work]:
    """Give a function that does pieces of work: here, in processes that end with the block, or on workers."""
    engine = current_engine()
    if not engine.is_here:
        yield lambda pieces, settings: _on_workers(engine, app, pieces, settings)
        return
    if jobs == 1:

        def here(pieces: Iterable[Piece], settings: Sequence[Setting]) -> Iterator[Done]:
            for piece, scene in _made(pieces):
                for number in piece.settings:  # one at a time: an interrupt loses no more
                    yield Done(piece._replace(settings=[number]), run_settings(app, scene, [settings[number]]))

        yield here
        return
    before = set(multiprocessing.active_children())
    # Not forked: the threads of the core would not be there.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(app,))
    try:
        yield lambda pieces, settings: _in_processes(pool, pieces, settings, _AHEAD * jobs)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - before:
            child.terminate()
        raise
    else:
        pool.shutdown()


def _made(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Scene]]:
    """Give each piece with its scene, which is made once for pieces that follow each other."""
    last: tuple[tuple[str, int, str], Scene] | None = None
    for piece in pieces:
        key = piece.source.name, piece.seed, piece.scene
        if last is None or last[0] != key:
            last = key, piece.source.scene(piece.scene, piece.seed)
        yield piece, last[1]


def _in_processes(
    pool: ProcessPoolExecutor, pieces: Iterable[Piece], settings: Sequence[Setting], most: int
) -> Iterator[Done]:
    running: dict[Future[list[tuple[Outcome, float]]], Piece] = {}
    for piece, scene in _made(pieces):
        chosen = [settings[number] for number in piece.settings]
        running[pool.submit(_run_in_process, scene, chosen)] = piece
        if len(running) >= most:
            yield from _finished(running, FIRST_COMPLETED)
    while running:
        yield from _finished(running, FIRST_COMPLETED)


@dataclass(frozen=True, slots=True)
class _SettingsOnScene:
    """A part for a worker."""

    scene: Shared[Scene]
    settings: tuple[Setting, ...]
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _RunSettings:
    """Runs a program on one part."""

    app: App

    def __repr__(self) -> str:
        return f"{type(self.app).__name__} {self.app.name}"

    def __call__(self, part: _SettingsOnScene) -> list[tuple[Outcome, float]]:
        return run_settings(self.app, part.scene.value, part.settings)


def _on_workers(engine: Engine, app: App, pieces: Iterable[Piece], settings: Sequence[Setting]) -> Iterator[Done]:
    handed_out: deque[Piece] = deque()

    def parts() -> Iterator[_SettingsOnScene]:
        for piece, scene in _made(pieces):
            handed_out.append(piece)
            chosen = tuple(settings[number] for number in piece.settings)
            yield _SettingsOnScene(engine.share(scene), chosen, f"{piece.source.name}, scene {piece.scene}")

    for outcomes in engine.map(_RunSettings(app), parts()):
        yield Done(handed_out.popleft(), outcomes)


def _finished(running: dict["Future[list[tuple[Outcome, float]]]", Piece], until: str) -> Iterator[Done]:
    done, _ = wait(running, return_when=until)
    for future in done:
        piece = running.pop(future)
        try:
            yield Done(piece, future.result())
        except BrokenProcessPool:
            said = "a process ended without an answer; have the program run as a command, which may crash"
            raise InputError(f"{piece.source.name}, scene {piece.scene}", said) from None


_app: App | None = None
"""Of a process that was started to run it."""


def _begin(app: App) -> None:
    """Begin a process: Ctrl-C is for the one that started it, which then tells this one to end."""
    global _app
    _app = app
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that commands are ended, too


def _run_in_process(scene: Scene, settings: list[Setting]) -> list[tuple[Outcome, float]]:
    if _app is None:
        raise RuntimeError("the process was not begun")
    return run_settings(_app, scene, settings)


def run_settings(app: App, scene: Scene, settings: Iterable[Setting]) -> list[tuple[Outcome, float]]:
    """Run a program with several settings on one scene; give the outcome and the seconds of each."""
    answers: list[tuple[Outcome, float]] = []
    for setting in settings:
        start_s = perf_counter()
        outcome = run(app, scene.log, setting, scene.truth)
        answers.append((outcome, perf_counter() - start_s))
    return answers
