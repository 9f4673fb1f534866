# SPDX-License-Identifier: Apache-2.0
"""Commands that make worlds: learn, tune."""

import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out, settings_of


@app.command
def learn(
    log: Path,
    /,
    *,
    world: Annotated[Path, Parameter(name=["--output", "-o"])],
    model: str = "hybrid",
    budget: int | None = None,
    settings: Annotated[list[str] | None, Parameter(name=["--set", "-s"], negative=())] = None,
) -> None:
    """Learn a world from a log and write it to a folder.

    Parameters
    ----------
    log
        a log of any format; larger than memory is fine, and Parquet is fastest
    world
        the folder to write, by custom NAME.world
    model
        points, surface, permeable-surface, voxel, topdown, bottomup, hybrid or refined; hedgerow models says when to
        use which
    budget
        most elements of a refined world; default: as many as it starts with
    settings
        parameters of the model, each NAME=VALUE, of a group GROUP.NAME=VALUE; hedgerow models NAME lists them
    """
    import hedgerow as hr
    from hedgerow.base.atomic import require_place
    from hedgerow.base.progress import step_bar
    from hedgerow.inputs import require_kind

    require_place(world, folder=True)
    require_kind(log, ("log",), "learn")
    start = time.perf_counter()
    parameters = settings_of(settings) | ({} if budget is None else {"budget": budget})
    with step_bar() as progress:
        learned = hr.learn(log, model, progress=progress, **parameters)
        learned.save(world)
    size, took_s = learned.size(), time.perf_counter() - start
    elements = ", ".join(f"{n:,} {name}" for name, n in size.tables.items())
    beams = learned.header.provenance.n_beams
    out.print(f"learned a {model} world of {elements} from {beams:,} beams in {took_s:.1f} s")
    out.print(f"wrote {world} ({size.parameters:,} parameters, {size.bytes / 1e6:.1f} MB in memory)")


tune = App(name="tune", help="Train, on your own labelled log, what tells surface from volume.")
app.command(tune)


@tune.command
def classifier(
    log: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    volume_labels: Annotated[list[int] | None, Parameter(negative=())] = None,
    seed: int = 0,
    rounds: int = 20,
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
        labels of what is a volume; default: 70, SemanticKITTI's vegetation
    seed
        same seed, same answer
    rounds
        generations of the search, some ten seconds each
    """
    import tomli_w

    import hedgerow as hr
    from hedgerow.base.atomic import atomic_file
    from hedgerow.base.progress import progress_bar
    from hedgerow.models.steps.classifier_training import tune_classifier

    with progress_bar("tuning", rounds) as progress:
        found, score = tune_classifier(
            hr.read_log(log), volume_labels or [70], seed=seed, max_rounds=rounds, progress=progress
        )
    with atomic_file(output) as path:
        path.write_text(tomli_w.dumps({"parameters": found.model_dump()}), encoding="utf-8")
    out.print(f"weighted accuracy {score:.3f}; wrote {output}")
