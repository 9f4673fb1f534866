# SPDX-License-Identifier: Apache-2.0
"""hedgerow tune: trains the classifier of surface and volume, or tunes a model on the risk of a program."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Output, Seed, Settings, parse_settings

if TYPE_CHECKING:
    from hedgerow.log import Log

tune = App(
    name="tune",
    help="Train what tells surface from volume on a labelled log, or tune a model on the risk of a program.",
)
app.command(tune)


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
        a Parquet log with labels; returns labelled 0 are left out
    output
        the TOML file to write
    volume_labels
        labels of what is a volume, each with the finer ones that fold into it; default: 70, all vegetation
    generations
        generations of differential evolution, some ten seconds each
    """
    import tomli_w

    import hedgerow as hr
    from hedgerow.base.atomic import atomic_file
    from hedgerow.base.progress import progress_bar
    from hedgerow.models.steps.classifier_training import score_classifier, tune_classifier

    labels = volume_labels or [70]
    recording = hr.read_log(log)
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


@tune.command
def model(
    log: Path,
    /,
    *,
    objective: str,
    vary: Annotated[list[str], Parameter(negative=())],
    name: Annotated[str, Parameter(name="--model")] = "hybrid",
    settings: Settings = None,
    scene_sweeps: int = 5,
    program_settings: int = 24,
    seed: Seed = 0,
    jobs: int = 1,
) -> None:
    """Tune parameters of a model on the risk of a program, from the best by likelihood on; see docs/risk.md.

    Parameters
    ----------
    log
        a log of any format, at least eight scenes long; half of its sweeps are learned from
    objective
        risk:PROGRAM, for example risk:segmentation, or risk:PROGRAM#OBJECTIVE
    vary
        a parameter of the model and its bounds, NAME=LOW:HIGH; may be repeated
    name
        name of the model
    settings
        fix a parameter of the model: NAME=VALUE; may be repeated
    scene_sweeps
        sweeps of a scene
    program_settings
        how many settings of the program's parameters are drawn
    jobs
        number of processes
    """
    from hedgerow.apps.registry import open_app
    from hedgerow.errors import InputError
    from hedgerow.inputs import open_log
    from hedgerow.risk.tune import tune_model
    from hedgerow.risk.words import risk_rows

    kind, _, rest = objective.partition(":")
    program, _, wanted = rest.partition("#")
    if kind != "risk" or not program:
        raise InputError(f"--objective {objective}", "expected risk:PROGRAM, for example risk:segmentation")
    found = tune_model(
        open_log(log, "tune model"),
        name,
        dict(_bounds(text) for text in vary),
        open_app(program),
        fixed=parse_settings(settings),
        objective=wanted or None,
        scene_sweeps=scene_sweeps,
        settings=program_settings,
        seed=seed,
        jobs=jobs,
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
