# SPDX-License-Identifier: Apache-2.0
"""hedgerow tune: trains the classifier of surface and volume, or tunes a model by its scores or a program's risk."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Output, Seed, Settings, parse_settings

if TYPE_CHECKING:
    from hedgerow.log import Log
    from hedgerow.metrics.candidates import Candidate
    from hedgerow.metrics.tune import Score

tune = App(
    name="tune",
    help="Train what tells surface from volume on a labelled log, or tune a model by its scores on a training log.",
)
app.command(tune)
_MOST_TUNING_BEAMS = 5_000_000
"""Of a longer log the classifier takes sweeps spread over it: more points of the same site teach it nothing."""


@tune.command
def classifier(
    log: Path,
    /,
    *,
    output: Output,
    volume_labels: Annotated[list[int] | None, Parameter(negative=())] = None,
    seed: Seed = 0,
    generations: Annotated[int, Parameter(name=["--generations", "--rounds"])] = 20,
) -> None:
    """Train the classifier of surface and volume on a labelled log and write its parameters to a TOML file.

    Use them with hedgerow learn LOG -o SITE.world --set classifier=FILE.toml

    Parameters
    ----------
    log
        a log with labels; returns labelled 0 are left out, and of a long log sweeps spread over it are taken
    output
        the TOML file to write
    volume_labels
        labels of what is a volume, each with the finer ones that fold into it; default: 70, all vegetation
    generations
        generations of differential evolution, some ten seconds each
    """
    import tomli_w

    from hedgerow.base.atomic import atomic_file
    from hedgerow.base.progress import progress_bar
    from hedgerow.inputs import open_log
    from hedgerow.io.source import read_spread
    from hedgerow.models.steps.classifier_training import score_classifier, tune_classifier

    labels = volume_labels or [70]
    recording = read_spread(open_log(log, "tune classifier"), _MOST_TUNING_BEAMS)
    with progress_bar("tuning", generations) as progress:
        found, _ = tune_classifier(recording, labels, seed=seed, max_rounds=generations, progress=progress)
    score = score_classifier(recording, labels, found)
    with atomic_file(output) as path:
        path.write_text(tomli_w.dumps({"parameters": found.model_dump()}), encoding="utf-8")
    print_table(
        ("class", "returns", "labels", "recall"),
        [
            ["volume", f"{score.n_volume:,}", _seen(recording, labels, True), f"{score.volume_recall:.3f}"],
            ["surface", f"{score.n_surface:,}", _seen(recording, labels, False), f"{score.surface_recall:.3f}"],
        ],
    )
    out.print(f"weighted accuracy {score.weighted:.3f} on the log it was trained on; wrote {output}")


def _seen(log: "Log", volume_labels: list[int], is_volume: bool) -> str:
    """Name the labels of the log that are of a volume, or those that are not; 0 counts for neither."""
    from hedgerow.base.labels import with_finer

    assert log.returns.label is not None  # training refuses a log without labels
    seen = {int(each) for each in set(log.returns.label[log.returns.hit].tolist())} - {0}
    volume = with_finer(volume_labels)
    return ", ".join(str(each) for each in sorted(seen & volume if is_volume else seen - volume))


@Parameter(name="*")
@dataclass(frozen=True)
class _Slice:
    """What part of the log is used, and how long is searched; not for risk."""

    from_s: Annotated[float | None, Parameter(help="where the slice of the log begins [s]; default: 0")] = None
    to_s: Annotated[float | None, Parameter(help="where it ends [s]; default: 10 s after it begins")] = None
    generations: Annotated[
        int | None, Parameter(help="generations of the search, 4 candidates for each parameter in each; default: 8")
    ] = None
    output: Annotated[
        Path | None,
        Parameter(
            name=["--output", "-o"],
            help="a .parquet or .csv file that keeps every candidate; if it exists, only what it lacks is computed, "
            "and Ctrl-C loses nothing",
        ),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True)
class _Scenes:
    """How the risk of a program is measured; for risk only."""

    scene_sweeps: Annotated[int | None, Parameter(help="for risk: sweeps of a scene; default: 5")] = None
    program_settings: Annotated[
        int | None, Parameter(help="for risk: how many settings of the program's parameters are drawn; default: 24")
    ] = None
    jobs: Annotated[int | None, Parameter(help="for risk: number of processes; default: 1")] = None


@tune.command
def model(
    log: Path,
    /,
    *,
    objective: str,
    vary: Annotated[list[str], Parameter(negative=())],
    name: Annotated[str, Parameter(name="--model")] = "hybrid",
    preset: str | None = None,
    settings: Settings = None,
    seed: Seed = 0,
    part: _Slice = _Slice(),  # noqa: B008 - frozen
    scenes: _Scenes = _Scenes(),  # noqa: B008 - frozen
) -> None:
    """Tune parameters of a model on a slice of its training log; never on the log that it is judged by.

    With observation, crps or likelihood, two of three sweeps of a slice are learned from and the third is scored;
    differential evolution searches. With risk:PROGRAM see docs/risk.md.

    Parameters
    ----------
    log
        the training log, of any format
    objective
        observation (mean error of packets + 2 (1 - F1), Tallavajhula 2018), crps, likelihood, or risk:PROGRAM, for
        example risk:segmentation, or risk:PROGRAM#OBJECTIVE
    vary
        a parameter of the model and its bounds, NAME=LOW:HIGH; may be repeated; bounds above 0 are searched evenly in
        the logarithm, whole numbers stay whole
    name
        name of the model
    preset
        values of a paper in place of the defaults, as in hedgerow learn
    settings
        fix a parameter of the model: NAME=VALUE; may be repeated
    """
    from hedgerow.errors import InputError
    from hedgerow.models.presets import with_preset

    kind, _, program = objective.partition(":")
    bounds = dict(_bounds(text) for text in vary)
    fixed = with_preset(name, preset, parse_settings(settings))
    if kind == "risk" and program:
        _refuse(part, "is not for risk; leave it out")
        _tune_on_risk(log, program, name, bounds, fixed, seed, scenes)
    elif objective in ("observation", "crps", "likelihood"):
        _refuse(scenes, f"is for risk:PROGRAM, and --objective is {objective}; leave it out")
        found = _tune_on_score(log, objective, name, bounds, fixed, seed, part)
        words = ["hedgerow", "learn", str(log), "-o", "SITE.world", "--model", name]
        words += [] if preset is None else ["--preset", preset]
        for text in [*(settings or []), *(f"{key}={value}" for key, value in found.items())]:
            words += ["--set", text]
        out.print(shlex.join(words), soft_wrap=True)
    else:
        expected = "observation, crps, likelihood, or risk:PROGRAM, for example risk:segmentation"
        raise InputError(f"--objective {objective}", f"expected {expected}")


def _refuse(options: object, said: str) -> None:
    """Refuse options that would have no effect."""
    from hedgerow.errors import InputError

    for name, value in vars(options).items():
        if value is not None:
            raise InputError(f"--{name.replace('_', '-')}", said)


def _tune_on_score(
    log: Path,
    objective: "Score",
    model: str,
    bounds: dict[str, tuple[float, float]],
    fixed: dict[str, Any],
    seed: int,
    part: _Slice,
) -> dict[str, float | int]:
    """Search, say each candidate, and return the best."""
    from hedgerow.cli.options import require_places
    from hedgerow.inputs import open_log
    from hedgerow.metrics.tune import tune_by_score

    require_places(part.output)
    found = tune_by_score(
        open_log(log, "tune model"),
        model,
        bounds,
        objective,
        fixed=fixed,
        from_s=part.from_s or 0.0,
        to_s=part.to_s,
        generations=8 if part.generations is None else part.generations,
        seed=seed,
        table=part.output,
        say=lambda each, number: out.print(f"{number}: {_words(each)}"),
    )
    out.print(
        f"learned from {found.n_learned} sweeps, scored {found.n_scored} others, {len(found.candidates)} candidates"
    )
    if found.start is not None:
        out.print(f"the model's own values: {_words(found.start)}")
    out.print(f"best: {_words(found.best)}")
    return found.best.parameters


def _words(candidate: "Candidate") -> str:
    """Say what a candidate is and how it did."""
    chosen = ", ".join(f"{name}={value:g}" for name, value in candidate.parameters.items())
    if candidate.failure:
        return f"{chosen}: failed, {candidate.failure}"
    scores = ", ".join(f"{name} {value:.4g}" for name, value in candidate.scores.items())
    return f"loss {candidate.loss:.4f} with {chosen} ({scores}; {candidate.elements:,} elements)"


def _tune_on_risk(
    log: Path,
    objective: str,
    model: str,
    bounds: dict[str, tuple[float, float]],
    fixed: dict[str, Any],
    seed: int,
    scenes: _Scenes,
) -> None:
    from hedgerow.apps.registry import open_app
    from hedgerow.inputs import open_log
    from hedgerow.risk.tune import tune_model
    from hedgerow.risk.words import risk_rows

    program, _, wanted = objective.partition("#")
    found = tune_model(
        open_log(log, "tune model"),
        model,
        bounds,
        open_app(program),
        fixed=fixed,
        objective=wanted or None,
        scene_sweeps=5 if scenes.scene_sweeps is None else scenes.scene_sweeps,
        settings=24 if scenes.program_settings is None else scenes.program_settings,
        seed=seed,
        jobs=1 if scenes.jobs is None else scenes.jobs,
        say=out.print,
    )
    out.print(f"best by likelihood: {found.by_likelihood}; best by risk: {found.by_risk}")
    out.print("on sweeps that nothing was chosen by:")
    print_table(*risk_rows(found.test))
    for each in found.test.differences:
        out.print(each.words())


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    """Read NAME=LOW:HIGH; whole numbers stay whole."""
    import json

    from hedgerow.errors import InputError

    name, _, rest = text.partition("=")
    low, _, high = rest.partition(":")
    try:
        bounds: tuple[Any, Any] = json.loads(low), json.loads(high)
    except ValueError:
        bounds = None, None
    if not name or not all(isinstance(each, int | float) and not isinstance(each, bool) for each in bounds):
        raise InputError(f"--vary {text}", "expected NAME=LOW:HIGH, for example side_m=0.1:1.0")
    return name, bounds
