# SPDX-License-Identifier: Apache-2.0
"""Application risk of all models on a real drive: every second sweep is learned from, the others are judged.

Three programs (segmentation, cost map, odometry) run on the real sweeps that no model saw, and on the same beams fired
at the world of each model. Which model has the lowest risk, and is it the one that the metrics of observations prefer?
(Tallavajhula 2018 Table 4.4 does this for scan matching, with a learned model and meshes of the terrain.)

The data is not shipped: `--data` is a folder with drive.parquet, made for example by tools/real_logs.py. To be quick,
every second beam is used.
"""

import tempfile
from pathlib import Path

import hedgerow.io as io
from hedgerow.apps.app import App
from hedgerow.apps.registry import open_app
from hedgerow.errors import FileError, InputError
from hedgerow.io.source import LogSource
from hedgerow.log import Log
from hedgerow.metrics import Comparison, compare
from hedgerow.models import learn
from hedgerow.models.registry import MODELS
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table
from hedgerow.risk.measure import measure
from hedgerow.risk.score import RiskScores, score
from hedgerow.risk.sources import Drive, RecordedSource, SimulatedSource
from hedgerow.world import LearnedWorld

PROGRAMS = ("segmentation", "cost-map", "odometry")
SCENE_SWEEPS = 2
_OBSERVED = {"beam_error_median_m": "beam error, median [cm]", "nll": "-log L of the density"}
_JOBS = 2


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, data: Path | None = None
) -> Outcome:
    """Learn every second of `size` sweeps with all models, and measure the risk of three programs on the others."""
    path = None if data is None else data / "drive.parquet"
    if path is None or not path.exists():
        raise FileError(f"{path or '--data'}: risk-3d needs a folder with drive.parquet, a real log; give --data")
    n_sweeps = size or 24
    recording = io.open_log(path)
    numbers = recording.sweeps.tolist()[:n_sweeps]
    if len(numbers) < 4 * SCENE_SWEEPS:
        raise InputError("--size", f"{len(numbers)} sweeps are too few; two scenes take {4 * SCENE_SWEEPS}")
    worlds = _learn(recording.read(numbers[0::2])[::2], say)
    with tempfile.TemporaryDirectory() as work:
        io.write_log(recording.read(numbers[1::2])[::2], Path(work) / "judged.parquet")
        judged = io.open_log(Path(work) / "judged.parquet")
        observed = compare(judged, dict(worlds), seed=seed)
        drive = Drive(judged, SCENE_SWEEPS)
        scores: dict[str, RiskScores] = {}
        for name in PROGRAMS:
            say(f"running {name}")
            scores[name] = _risk(open_app(name), drive, worlds, max(8, n_sweeps // 3), seed)
    return Outcome(text=_text(scores, observed, judged, len(numbers)))


def _learn(training: Log, say: Print) -> dict[str, LearnedWorld]:
    worlds: dict[str, LearnedWorld] = {}
    for name in MODELS:
        say(f"learning {name}")
        worlds[name] = learn(training, name)
    return worlds


def _risk(app: App, drive: Drive, worlds: dict[str, LearnedWorld], n_settings: int, seed: int) -> RiskScores:
    simulated = [SimulatedSource(name, drive, world) for name, world in worlds.items()]
    sources = [RecordedSource(drive), *simulated]
    table = measure(app, sources, settings=n_settings, seed=seed, seeds=[seed], jobs=_JOBS)
    return score(table, app, seed=seed)


def _text(scores: dict[str, RiskScores], observed: Comparison, judged: LogSource, n_sweeps: int) -> str:
    head = ["model"]
    for name in PROGRAMS:
        head += [f"{name}: risk", "regret", "rank"]
    rows: list[list[str]] = []
    for model in MODELS:
        row = [model]
        for name in PROGRAMS:
            each = scores[name].scores[model]
            span = "" if each.interval is None else f" ({each.interval[0]:.3f} to {each.interval[1]:.3f})"
            row += [f"{each.risk:.3f}{span}", f"{each.regret:.3f}", f"{each.rank_agreement:.2f}"]
        rows.append([*row, *(_observed(observed, model, key) for key in _OBSERVED)])
    first = scores[PROGRAMS[0]]
    said = (
        f"{n_sweeps} sweeps of {judged.sensor or 'a lidar'}, every second learned; {first.n_scenes} scenes of "
        f"{SCENE_SWEEPS} other sweeps, {first.n_settings} settings. In brackets the 95 % interval."
    )
    lines = [line for name in PROGRAMS for line in _winner(name, scores[name])]
    return "\n\n".join([said, markdown_table((*head, *_OBSERVED.values()), rows), "\n".join(lines)])


def _observed(observed: Comparison, model: str, key: str) -> str:
    value = observed[model][key]
    return "-" if value is None else f"{value * (100 if key.endswith('_m') else 1):.2f}"


def _winner(program: str, scores: RiskScores) -> list[str]:
    """Say which model has the lowest risk, which it is decided against, and where the refined world stands."""
    order = sorted(scores.scores, key=lambda name: scores.scores[name].risk)
    best = order[0]
    beaten = [
        other
        for each in scores.differences
        for one, other in ((each.first, each.second), (each.second, each.first))
        if one == best and each.decided
    ]
    floor = "" if scores.floor is None else f"; reality against itself {scores.floor.value:.3f} ({scores.floor.how})"
    return [
        f"- {program}: {best} has the lowest risk, decided against {', '.join(beaten) or 'none'}; refined is number "
        f"{order.index('refined') + 1} of {len(order)}{floor}"
    ]
