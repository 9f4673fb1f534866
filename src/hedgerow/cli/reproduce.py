# SPDX-License-Identifier: Apache-2.0
"""hedgerow reproduce: repeats an experiment of the papers."""

from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Folder, Seed
from hedgerow.cli.worker_options import Scheduler, WorkerCount, WorkerMemory, WorkerOptions, open_engine

if TYPE_CHECKING:
    from hedgerow.reproduce.experiment import Outcome


@app.command(usage="Usage: hedgerow reproduce [OPTIONS] [NAME [DATA]]")
def reproduce(
    name: str | None = None,
    /,
    data: Path | None = None,
    *,
    folder: Folder = Path("out"),
    size: int | None = None,
    seed: Seed = 1,
    models: str | None = None,
    sensor: str | None = None,
    mask: str | None = None,
    workers: WorkerCount = 0,
    scheduler: Scheduler = None,
    worker_memory: WorkerMemory = None,
) -> None:
    """Repeat an experiment of the papers and print its table beside theirs; without a name, list them.

    Parameters
    ----------
    name
        which experiment
    folder
        where to write the tables (NAME.md) and pictures; made if it does not exist
    size
        how many sweeps (mobile), measurements per direction (static) or the like; default: as the paper, scaled
    data
        folder with recordings, for experiments on real logs
    models
        which models to learn with, such as topdown,hybrid, for experiments that leave the choice
    sensor
        name of a lidar in the catalogue, for experiments that leave the choice
    mask
        predicted or true: which pixels of an answer are empty, for experiments that leave the choice
    """
    from hedgerow.base.atomic import output_folder, require_place
    from hedgerow.errors import InputError
    from hedgerow.parallel import using
    from hedgerow.reproduce.experiment import EXPERIMENTS, find_experiment

    if name is None:
        width = max(map(len, EXPERIMENTS)) + 2
        for each, experiment in EXPERIMENTS.items():
            out.print(f"{each.ljust(width)}{experiment.about}")
        return
    if size is not None and size < 1:
        raise InputError(f"--size {size}", "expected 1 or more")
    experiment = find_experiment(name)
    chosen = {key: text for key, text in (("models", models), ("sensor", sensor), ("mask", mask)) if text is not None}
    spread = WorkerOptions(workers, scheduler, worker_memory)
    spread.memory()
    with output_folder(folder):
        require_place(folder / f"{name}.md")
        if not spread.is_spread:
            outcome = experiment.run(folder, size, seed, out.print, data, chosen)
        else:
            with open_engine(folder / name, spread) as engine, using(engine):
                outcome = experiment.run(folder, size, seed, out.print, data, chosen)
        _tell(outcome, folder / f"{name}.md")


def _tell(outcome: "Outcome", path: Path) -> None:
    """Print the tables and write them."""
    from hedgerow.base.atomic import atomic_file

    for table in outcome.tables:
        out.print(f"\n{table.title}; * is the best of a row")
        print_table(*table.to_text())
    if outcome.text:
        out.print(f"\n{outcome.text}")
    with atomic_file(path) as temporary:
        temporary.write_text(outcome.to_markdown() + "\n", encoding="utf-8")
    for written in (*outcome.pictures, path):
        out.print(f"wrote {written}")
