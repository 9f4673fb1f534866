# SPDX-License-Identifier: Apache-2.0
"""hedgerow tune: trains, on a labelled log, the classifier that tells surface from volume."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Output, Seed

if TYPE_CHECKING:
    from hedgerow.log import Log

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
