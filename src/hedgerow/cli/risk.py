# SPDX-License-Identifier: Apache-2.0
"""hedgerow risk: does a robot program behave on simulated logs as on real ones?"""

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import (
    Flag,
    Json,
    RealLog,
    Seed,
    Settings,
    Simulated,
    command_line,
    parse_settings,
    require_places,
    short_name,
)
from hedgerow.cli.worker_options import Scheduler, WorkerCount, WorkerMemory, WorkerOptions, open_engine

if TYPE_CHECKING:
    from hedgerow.apps.app import App
    from hedgerow.metrics import Comparison
    from hedgerow.risk.score import RiskScores
    from hedgerow.risk.sources import Source
    from hedgerow.risk.table import RiskTable

_Program = Annotated[
    str, Parameter(help="segmentation, cost-map, odometry, scan-matching, a Python object module:name, or an app.toml")
]
_MOST = 1_000_000


@Parameter(name="*")
@dataclass(frozen=True)
class _Plan:
    """What is run."""

    settings: Annotated[int, Parameter(help="how many settings of the program's parameters are drawn")] = 64
    sampler: Annotated[
        Literal["uniform", "sobol"],
        Parameter(help="uniform: independent draws; sobol: scrambled Sobol points, which fill the space more evenly"),
    ] = "uniform"
    seed: Seed = 0
    seeds: Annotated[
        int, Parameter(help="how many seeds each world is fired with; two or more show how much is noise")
    ] = 2
    scene_sweeps: Annotated[int, Parameter(help="sweeps of a scene; the log is cut into groups of so many")] = 10
    fixed: Annotated[Settings, Parameter(help="fix a parameter of the program: NAME=VALUE; may be repeated")] = None
    again: Annotated[
        Path | None,
        Parameter(help="another real recording, for the floor of reality; default: even against odd sweeps"),
    ] = None
    trajectory: Annotated[
        Path | None,
        Parameter(help="poses of the sensor, for the truth; default: the log's, or level frames along its path"),
    ] = None
    jobs: Annotated[int, Parameter(help="number of processes")] = 1


@Parameter(name="*")
@dataclass(frozen=True)
class _Gate:
    """What fails a build."""

    max_risk: Annotated[float | None, Parameter(help="exit with 1 if a risk is above this")] = None
    max_regret: Annotated[float | None, Parameter(help="exit with 1 if a regret is above this")] = None
    not_worse_than: Annotated[
        Path | None,
        Parameter(help="table of an earlier run; exit with 1 if a risk is above the one then, beyond noise"),
    ] = None


@app.command
def risk(
    program: _Program,
    real: RealLog,
    simulated: Simulated,
    /,
    *,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    plan: _Plan = _Plan(),  # noqa: B008 - frozen
    objective: str | None = None,
    develop: str | None = None,
    steps: int = 30,
    observe: Flag = False,
    page: Path | None = None,
    json: Json = None,
    gate: _Gate = _Gate(),  # noqa: B008 - frozen
    workers: WorkerCount = 0,
    scheduler: Scheduler = None,
    worker_memory: WorkerMemory = None,
) -> None:
    """Run a robot program on a real log and on simulations of it, with many settings of its parameters.

    Risk is how far its error in simulation is from that in reality, mean over the settings (Tallavajhula 2018). With a
    bound that is broken the exit code is 1: a gate for nightly builds. See docs/risk.md.

    Parameters
    ----------
    output
        Parquet file that keeps every run; if it exists, only what it lacks is run, and Ctrl-C loses nothing
    objective
        which of the program's objectives; default: its first
    develop
        also tune the program on each simulator by itself: random, coordinate, or module:name
    steps
        how many settings that tries
    observe
        also print the metrics of hedgerow compare beside the risk
    page
        also write tables and plots to this HTML file
    """
    from hedgerow.apps.registry import open_app
    from hedgerow.parallel import using
    from hedgerow.risk.develop import open_strategy, paths_of
    from hedgerow.risk.score import choose_objective, score
    from hedgerow.risk.table import read_table

    require_places(output, page, json)
    chosen = open_app(program)
    _, wanted = choose_objective(chosen, objective)
    last = None if gate.not_worse_than is None else read_table(gate.not_worse_than)
    strategy = None if develop is None else (develop, open_strategy(develop), steps)
    _require_counts(plan, steps)
    spread = WorkerOptions(workers, scheduler, worker_memory)
    spread.memory()
    sources = _open_sources(chosen, real, simulated, plan)
    with open_engine(output, spread) if spread.is_spread else nullcontext() as engine, using(engine):
        table = _run(chosen, sources, plan, output, objective, strategy)
    scores = score(table, chosen, objective)
    observed = _observe(sources) if observe else None
    _print(table, scores, chosen, objective, observed)
    paths = paths_of(table, wanted)
    _print_paths(paths)
    _write(json, page, table, scores, chosen, observed, paths)
    failed = _check(table, scores, chosen, objective, gate, last)
    if failed:
        sys.exit(1)


def _require_counts(plan: _Plan, steps: int) -> None:
    from hedgerow.base.arguments import as_whole

    for name, value in (("--settings", plan.settings), ("--seeds", plan.seeds), ("--steps", steps)):
        as_whole(name, value, 1, _MOST)
    as_whole("--scene-sweeps", plan.scene_sweeps, 1, _MOST)
    as_whole("--jobs", plan.jobs, 1, 1024)


def _open_sources(chosen: "App", real: Path, simulated: list[Path], plan: _Plan) -> "list[Source]":
    """Open the real log and what is compared with it; refuse wrong kinds before anything is built."""
    from hedgerow.base.progress import step_bar
    from hedgerow.inputs import PLACES, open_log, open_simulated, require_kind
    from hedgerow.io import read_trajectory
    from hedgerow.risk.sources import Drive, RecordedSource, SimulatedSource, digest
    from hedgerow.sensor import Sensor

    chosen.space.check(parse_settings(plan.fixed))
    log = open_log(real, "risk")
    for path in simulated:
        require_kind(path, ("log", *PLACES), "risk")
    again = None if plan.again is None else open_log(plan.again, "risk")
    poses = None if plan.trajectory is None else read_trajectory(plan.trajectory)
    needs_ground = bool(getattr(chosen, "needs_ground", True))
    drive = Drive(log, plan.scene_sweeps, trajectory=poses, ground=needs_ground)
    identity = digest(real)
    sources: list[Source] = [RecordedSource(drive, identity=identity)]
    if again is not None and plan.again is not None:
        other = Drive(again, plan.scene_sweeps, ground=needs_ground)
        sources.append(RecordedSource(other, "again", "again", digest(plan.again)))
    elif plan.scene_sweeps >= 4:  # two sweeps or more in each half
        for number, name in enumerate(("real, even sweeps", "real, odd sweeps")):
            sources.append(RecordedSource(drive.half(number), name, "half", identity))
    sensor = Sensor.of(log)
    with step_bar() as steps:
        for path in simulated:
            opened = open_simulated(path, "risk", sensor, steps)
            sources.append(SimulatedSource(short_name(path, simulated), drive, opened, digest(path)))
    return sources


def _run(
    chosen: "App",
    sources: "list[Source]",
    plan: _Plan,
    output: Path | None,
    objective: str | None,
    strategy: tuple[str, Any, int] | None,
) -> "RiskTable":
    """Run what the table lacks, and the developments."""
    from hedgerow.base.progress import progress_bar
    from hedgerow.risk.develop import develop
    from hedgerow.risk.measure import open_table, with_store
    from hedgerow.risk.run import count_missing, evaluate

    table = open_table(
        chosen,
        sources,
        settings=plan.settings,
        sampler=plan.sampler,
        seed=plan.seed,
        fixed=parse_settings(plan.fixed),
        output=output,
    )
    seeds = range(plan.seeds)

    def work(keep: Any) -> None:
        with progress_bar("running", count_missing(table, sources, seeds)) as progress:
            evaluate(chosen, table, sources, seeds=seeds, jobs=plan.jobs, progress=progress, keep=keep)
        for source in sources if strategy is not None else ():
            if source.role == "simulated" and strategy is not None:
                name, call, steps = strategy
                develop(
                    *(chosen, table, sources[0], source, call),
                    name=name,
                    steps=steps,
                    objective=objective,
                    seed=plan.seed,
                    jobs=plan.jobs,
                )

    with_store(table, output, work)
    if output is not None:
        out.print(f"wrote {output}: {table.n_runs:,} runs")
    return table


def _observe(sources: "list[Source]") -> "Comparison":
    """Compare the simulators with the real log by their observations, as hedgerow compare does."""
    import hedgerow as hr
    from hedgerow.base.progress import progress_bar
    from hedgerow.risk.sources import RecordedSource, SimulatedSource

    real = next(each for each in sources if isinstance(each, RecordedSource) and each.role == "real")
    log = real.drive.recording
    named = {each.name: each.simulated for each in sources if isinstance(each, SimulatedSource)}
    with progress_bar("comparing", log.n_beams) as progress:
        return hr.compare(log, named, progress=progress)


def _print(
    table: "RiskTable", scores: "RiskScores", chosen: "App", objective: str | None, observed: "Comparison | None"
) -> None:
    from hedgerow.risk.along import along
    from hedgerow.risk.score import choose_objective, objective_by_source
    from hedgerow.risk.table import DRAWN
    from hedgerow.risk.words import risk_rows, summary

    out.print(summary(scores, choose_objective(chosen, objective)[1].meaning))
    print_table(*risk_rows(scores))
    for each in scores.differences:
        out.print(each.words())
    curves = along(
        chosen.space, table.settings[DRAWN], objective_by_source(table, choose_objective(chosen, objective)[1])
    )
    for each in curves:
        out.print(each.words())
    for note in scores.notes:
        out.print(f"note: {note}")
    if observed is not None:
        from hedgerow.cli.app import print_scores
        from hedgerow.risk.words import rank_words

        print_scores(observed.table())
        out.print(rank_words(scores, observed))


def _print_paths(paths: list[Any]) -> None:
    for path in paths:
        seen, real = path.best_so_far()
        out.print(
            f"developed on {path.source}, {len(seen)} steps: J went from {seen[0]:.4g} to {seen[-1]:.4g} there, "
            f"from {real[0]:.4g} to {real[-1]:.4g} in reality"
        )


def _write(
    json: Path | None,
    page: Path | None,
    table: "RiskTable",
    scores: "RiskScores",
    chosen: "App",
    observed: "Comparison | None",
    paths: list[Any],
) -> None:
    from json import dumps

    from hedgerow.base.atomic import atomic_file

    if json is not None:
        with atomic_file(json) as temporary:
            temporary.write_text(dumps(scores.to_dict(), indent=1), encoding="utf-8")
        out.print(f"wrote {json}")
    if page is not None:
        from hedgerow.report.risk_page import write_risk_page

        write_risk_page(page, table, scores, chosen, paths=paths, observed=observed, commands=[command_line()])
        out.print(f"wrote {page}; open it in a browser")


def _check(
    table: "RiskTable",
    scores: "RiskScores",
    chosen: "App",
    objective: str | None,
    gate: _Gate,
    last: "RiskTable | None",
) -> list[str]:
    from hedgerow.risk.gate import check_bounds, check_last

    failed = check_bounds(scores, gate.max_risk, gate.max_regret)
    if last is not None:
        failed += check_last(table, last, chosen, objective)
    for each in failed:
        out.print(f"gate: {each}")
    if not failed and (last is not None or gate.max_risk is not None or gate.max_regret is not None):
        out.print("gate: passed")
    return failed
