# SPDX-License-Identifier: Apache-2.0
"""hedgerow tune: trains, on a labelled log, the classifier that tells surface from volume."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out
from hedgerow.cli.options import Output, Seed

tune = App(name="tune", help="Train, on your own labelled log, what tells surface from volume.")
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
        labels of what is a volume; default: 70, SemanticKITTI's vegetation
    generations
        generations of differential evolution, some ten seconds each
    """
    import tomli_w

    import hedgerow as hr
    from hedgerow.base.atomic import atomic_file
    from hedgerow.base.progress import progress_bar
    from hedgerow.models.steps.classifier_training import tune_classifier

    with progress_bar("tuning", generations) as progress:
        found, score = tune_classifier(
            hr.read_log(log), volume_labels or [70], seed=seed, max_rounds=generations, progress=progress
        )
    with atomic_file(output) as path:
        path.write_text(tomli_w.dumps({"parameters": found.model_dump()}), encoding="utf-8")
    out.print(f"weighted accuracy {score:.3f}; wrote {output}")
