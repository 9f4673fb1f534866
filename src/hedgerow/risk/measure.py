# SPDX-License-Identifier: Apache-2.0
"""measure: all runs of a program on a real log and on simulators, as a table that can be resumed and extended.

drive = Drive(hr.open_log("drive.parquet"), scene_sweeps=10)
sources = [RecordedSource(drive), SimulatedSource("site", drive, hr.load_world("site.world"))]
table = measure(open_app("odometry"), sources, settings=64, seeds=[0, 1], output="risk.parquet")
scores = score(table, app)
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import monotonic

from hedgerow.apps.app import App
from hedgerow.apps.space import Sampler
from hedgerow.base.arguments import as_whole
from hedgerow.base.randomness import require_seed
from hedgerow.errors import InputError
from hedgerow.risk.run import evaluate
from hedgerow.risk.sources import Source
from hedgerow.risk.table import DRAWN, Header, RiskTable, SourceNote, read_table, require_same_plan

_STORE_EVERY_S = 60.0


def open_table(
    app: App,
    sources: Sequence[Source],
    *,
    settings: int = 64,
    sampler: Sampler = "uniform",
    seed: int = 0,
    fixed: Mapping[str, object] | None = None,
    output: str | Path | None = None,
) -> RiskTable:
    """Return a table with its settings drawn, nothing run but what an old file holds.

    Args:
        app: the program.
        sources: reality, simulators, and what the floor of reality is measured with.
        settings: how many settings are drawn; an old table that has more keeps them.
        sampler: how, see `Space.sample`.
        seed: for that.
        fixed: values of parameters that all settings have.
        output: the old file, if there is one.

    Raises:
        InputError: no real source or several, a name twice, an unknown parameter, or an old file of another plan.
    """
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        raise InputError("sources", f"two have the same name ({', '.join(names)}); rename one")
    if [source.role for source in sources].count("real") != 1:
        raise InputError("sources", "expected one real source")
    as_whole("settings", settings, 1, 1_000_000)
    held = app.space.check(fixed or {})
    notes = {source.name: SourceNote.of(source) for source in sources}
    _require_same_scenes(notes)
    header = Header(app.name, app.space, held, sampler, require_seed(seed), notes)
    table = RiskTable(header)
    if output is not None and Path(output).exists():
        table = read_table(output)
        require_same_plan(output, table.header, header)
        table.header.sources.update(notes)
    if len(table.settings[DRAWN]) < settings:
        table.settings[DRAWN] = header.draw(settings)
    return table


def _require_same_scenes(notes: Mapping[str, SourceNote]) -> None:
    real = next(note for note in notes.values() if note.role == "real")
    for name, note in notes.items():
        if note.role == "simulated" and note.scenes != real.scenes:
            raise InputError(name, "has other scenes than the real source; both need the same")


def measure(
    app: App,
    sources: Sequence[Source],
    *,
    settings: int = 64,
    sampler: Sampler = "uniform",
    seed: int = 0,
    seeds: Sequence[int] = (0, 1),
    fixed: Mapping[str, object] | None = None,
    output: str | Path | None = None,
    jobs: int = 1,
    progress: Callable[[int], object] | None = None,
) -> RiskTable:
    """Run a program with drawn settings on all scenes of all sources.

    Args:
        seeds: of the simulations; with two or more the noise of a simulator is known.
        output: where the table is kept; what it holds is not run again, and Ctrl-C leaves what was done.
        jobs: number of processes.
        progress: called with the number of runs done.
        app, sources, settings, sampler, seed, fixed: as in `open_table`.

    Raises:
        InputError, FileError: as `open_table` and `evaluate`.
    """
    table = open_table(app, sources, settings=settings, sampler=sampler, seed=seed, fixed=fixed, output=output)
    with_store(
        table, output, lambda keep: evaluate(app, table, sources, seeds=seeds, jobs=jobs, progress=progress, keep=keep)
    )
    return table


def with_store(
    table: RiskTable, output: str | Path | None, work: Callable[[Callable[[], None] | None], object]
) -> None:
    """Do work that fills a table, and keep the table: once a minute, at the end, and at Ctrl-C or an error."""
    if output is None:
        work(None)
        return
    last_s = monotonic()

    def keep() -> None:
        nonlocal last_s
        if monotonic() - last_s > _STORE_EVERY_S:
            table.write(output)
            last_s = monotonic()

    try:
        work(keep)
    finally:
        if table.n_runs:
            table.write(output)
