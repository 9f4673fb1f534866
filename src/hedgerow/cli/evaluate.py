# SPDX-License-Identifier: Apache-2.0
"""Commands that measure: compare."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_table

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource
    from hedgerow.reproduce.paper_table import PaperTable
    from hedgerow.world import LearnedWorld
    from hedgerow.world.tiled import TiledWorld


@app.command
def compare(
    real: Path,
    simulated: Annotated[list[Path], Parameter(negative=())],
    /,
    *,
    report: Path | None = None,
    json: Path | None = None,
    seed: int = 0,
) -> None:
    """Measure how far worlds, or simulated logs, are from a real log.

    Parameters
    ----------
    real
        the real log, best one that the worlds were not learned from
    simulated
        one or more worlds (folders with a world.toml), at which the real log's beams are fired, or logs of these beams
    report
        also write tables, plots and pictures to this HTML file
    json
        also write every number to this file
    seed
        for firing
    """
    import hedgerow as hr
    from hedgerow.io.atomic import atomic_file
    from hedgerow.progress import progress_bar

    log = hr.open_log(real)
    sources = {_name(path, simulated): _opened(path) for path in simulated}
    with progress_bar("comparing", log.n_beams) as progress:
        scores = hr.compare(log, sources, seed=seed, progress=progress)
    out.print(scores.table().to_rich(), soft_wrap=False)
    for note in scores.notes:
        out.print(f"note: {note}")
    if json is not None:
        with atomic_file(json) as path:
            path.write_text(scores.to_json(), encoding="utf-8")
        out.print(f"wrote {json}")
    if report is not None:
        from hedgerow.report import write_report

        write_report(report, scores, log, sources, seed=seed, commands=["hedgerow " + " ".join(sys.argv[1:])])
        out.print(f"wrote {report}")


def _opened(path: Path) -> "LogSource | LearnedWorld | TiledWorld":
    import hedgerow as hr

    return hr.load_world(path) if (path / "world.toml").exists() else hr.open_log(path)


def _name(path: Path, paths: list[Path]) -> str:
    """Short if that tells the worlds apart, else the whole path."""
    short = [each.stem for each in paths]
    return path.stem if short.count(path.stem) == 1 else str(path)


EXPERIMENTS = {
    "static-targets": "000 Table 3: surface and voxel worlds of six targets 8 m away",
    "mobile-offroad": "000 Tables 5, 7, 9: six worlds of a trail, learned on one pass, compared on another",
    "mobile-urban": "000 Tables 4, 6, 8: the same in a street",
    "voxel-size": "000 Fig. 22: distance by the side of the voxels",
}


@app.command
def reproduce(
    name: str | None = None,
    /,
    *,
    folder: Annotated[Path, Parameter(name=["--folder", "-o"])] = Path("out"),
    sweeps: int | None = None,
    seed: int = 1,
) -> None:
    """Repeat an experiment of the papers and print its table beside theirs; without a name, list them.

    Parameters
    ----------
    name
        which experiment
    folder
        where to write the tables (Markdown) and pictures; made if it does not exist
    sweeps
        how many sweeps (mobile) or measurements per direction (static); default: as many as the paper, scaled
    seed
        same seed, same answer
    """
    from hedgerow.errors import InputError
    from hedgerow.io.atomic import atomic_file, make_folder

    if name is None:
        for each, about in EXPERIMENTS.items():
            out.print(f"{each.ljust(16)} {about}")
        return
    if name not in EXPERIMENTS:
        raise InputError(f"{name}: there is no such experiment; there are {', '.join(EXPERIMENTS)}")
    make_folder(folder)
    text = _run(name, folder, sweeps, seed)
    path = folder / f"{name}.md"
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    out.print(f"wrote {path}")


def _print_paper_table(table: "PaperTable") -> None:
    out.print(f"\n{table.title}; * is the best of a row")
    print_table(*table.to_text())


def _run(name: str, folder: Path, sweeps: int | None, seed: int) -> str:
    from hedgerow.reproduce import mobile, static_targets, voxel_size

    if name == "static-targets":
        table = static_targets.run(sweeps or 1500, seed, say=out.print)
        _print_paper_table(table)
        return table.to_markdown()
    if name == "voxel-size":
        study = voxel_size.run(folder / "voxel-size.png", sweeps or 24, seed, say=out.print)
        out.print(f"drew {folder / 'voxel-size.png'}")
        return study.to_markdown()
    site = mobile.OFFROAD if name == "mobile-offroad" else mobile.URBAN
    tables, scores = mobile.run(site, sweeps or 24, seed, say=out.print)
    for table in tables:
        _print_paper_table(table)
    return "\n\n".join([*[table.to_markdown() for table in tables], scores.table().to_markdown()])
