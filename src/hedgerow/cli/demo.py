# SPDX-License-Identifier: Apache-2.0
"""hedgerow demo: the whole story on one scene: record, learn, fire, compare."""

import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.cli.app import app, out, print_scores
from hedgerow.cli.options import Folder, SceneSettings, Seed, command_line, parse_settings

if TYPE_CHECKING:
    from hedgerow.frames import Trajectory
    from hedgerow.io.source import LogSource
    from hedgerow.metrics import Scores
    from hedgerow.scenes.site import Site
    from hedgerow.sensor import Sensor
    from hedgerow.world import LearnedWorld

SPAN_S = (13.0, 25.0)
"""Which part of the trajectories is driven: sixty metres, out of the meadow, through a hedge and into the forest."""
NOISE_M = 0.012


@app.command
def demo(
    *,
    folder: Folder = Path("out"),
    sweeps: int = 24,
    seed: Seed = 7,
    settings: SceneSettings = None,
) -> None:
    """Record a drive through an off-road scene, learn the site from it, and see how a second drive compares.

    Parameters
    ----------
    folder
        where to write the logs, the learned world, the pictures and the report; made if it does not exist
    sweeps
        how many of each drive; fewer are quicker
    """
    from hedgerow.base.atomic import output_folder, require_place
    from hedgerow.errors import InputError

    if sweeps < 2:
        raise InputError(f"--sweeps {sweeps}", "expected 2 or more")
    with output_folder(folder):
        require_place(folder / "report.html")
        _tell_story(folder, sweeps, seed, parse_settings(settings))


def _tell_story(folder: Path, sweeps: int, seed: int, settings: dict[str, Any]) -> None:
    """Build, record, learn, compare."""
    import hedgerow as hr
    from hedgerow.base.progress import step_bar
    from hedgerow.sensor import Sensor

    sensor = Sensor.named("hdl-64e")
    site = _build(sensor, settings, folder / "trail.png")
    with _step("an HDL-64E drives along it twice, the second time 0.6 m beside the first; nine rays per pulse"):
        first = _record(site, sensor, "first", folder, sweeps, seed)
        second = _record(site, sensor, "second", folder, sweeps, seed + 1)
        hr.write_trajectory(_cut(site.trajectories["second"]), folder / "second.tum")
    with _step("the site is learned from the first drive alone"), step_bar() as progress:
        world = hr.learn(first, "hybrid", progress=progress)
        world.save(folder / "trail.world")
    out.print("  " + ", ".join(f"{n:,} {name}" for name, n in world.size().tables.items()))
    with _step("the second drive is fired through what was learned, and compared with what really happened"):
        scores = _compare(second, world, seed, folder)
    print_scores(scores.table())
    _print_next_steps(folder, scores)


@contextmanager
def _step(what: str) -> Generator[None]:
    out.print(what)
    start = time.perf_counter()
    yield
    out.print(f"  done in {time.perf_counter() - start:.1f} s")


def _build(sensor: "Sensor", settings: dict[str, Any], picture: Path) -> "Site":
    """Build the scene and draw it."""
    from hedgerow.base.progress import progress_bar, step_bar
    from hedgerow.scenes.site import load_site
    from hedgerow.view.render import draw_site

    with _step("a trail through meadow and forest is built, blade by blade"), step_bar() as progress:
        wavelength_nm = sensor.config.beam.wavelength_nm
        site = load_site("trail", wavelength_nm=wavelength_nm, set=settings, progress=progress)
    out.print(f"  {site.n_triangles:,} triangles, copies counted")
    with _step(f"its picture is drawn: {picture}"), progress_bar("drawing", None):
        draw_site(site, picture)
    return site


def _record(site: "Site", sensor: "Sensor", name: str, folder: Path, n_sweeps: int, seed: int) -> "LogSource":
    """Record a drive along a trajectory of the scene to a file, a sweep at a time."""
    import hedgerow as hr
    from hedgerow.base.progress import counted, one, progress_bar
    from hedgerow.io.parquet.writer import LogWriter
    from hedgerow.reproduce.recording import REALITY, record_drive

    path = folder / f"{name}.parquet"
    trajectory = site.trajectories[name]
    with progress_bar(f"{name} drive", n_sweeps) as progress, LogWriter(path) as writer:
        drive = record_drive(site.world(REALITY), sensor, trajectory, n_sweeps, seed, span_s=SPAN_S, noise_m=NOISE_M)
        for sweep in counted(drive, progress, one):
            writer.append(sweep)
    out.print(f"  wrote {path}")
    return hr.open_log(path)


def _cut(trajectory: "Trajectory") -> "Trajectory":
    """Return the part of a trajectory that is driven, in steps of 0.1 s, from time 0."""
    import numpy as np

    from hedgerow.frames import Trajectory

    first_ns, last_ns = (trajectory.start_ns + round(second * 1e9) for second in SPAN_S)
    time_ns = np.arange(first_ns, last_ns + 1, 100_000_000)
    return Trajectory(time_ns - first_ns, *trajectory.at(time_ns))


def _compare(real: "LogSource", world: "LearnedWorld", seed: int, folder: Path) -> "Scores":
    """Compare the world with a drive that it has not seen, draw a sweep of both, and write the report."""
    import hedgerow as hr
    from hedgerow.base.figure import save_figure
    from hedgerow.base.progress import progress_bar
    from hedgerow.report import write_report
    from hedgerow.report.pictures import one_sweep
    from hedgerow.report.sweep_plots import sweeps_in_perspective

    worlds = {"hybrid": world}
    with progress_bar("comparing", real.n_beams) as progress:
        scores = hr.compare(real, worlds, seed=seed, progress=progress)
    with progress_bar("writing the report", None):
        save_figure(sweeps_in_perspective(one_sweep(real, worlds, None, seed)), folder / "second.jpg", dpi=130)
        title, commands = "A learned trail against the real one", [command_line()]
        write_report(folder / "report.html", scores, real, worlds, seed=seed, title=title, commands=commands)
    out.print(f"  wrote {folder / 'second.jpg'} and {folder / 'report.html'}")
    return scores["hybrid"]


def _print_next_steps(folder: Path, scores: "Scores") -> None:
    from hedgerow.report.page import in_short

    hedgerow = "hedgerow" if shutil.which("hedgerow") else sys.argv[0]
    first, second, world = (folder / name for name in ("first.parquet", "second.parquet", "trail.world"))
    out.print(f"\n{in_short(scores)}")
    out.print(f"\nOpen {folder / 'report.html'} in a browser: real beside simulated sweeps, plots, every number. Then:")
    out.print(f"  {hedgerow} view {second} {world}    # walk around in it, in the browser")
    fire = f"fire {world} --sensor vlp-16 --trajectory {folder / 'second.tum'} -o {folder / 'vlp-16.parquet'}"
    out.print(f"  {hedgerow} {fire}    # another lidar")
    out.print(f"  {hedgerow} learn {first} -o {folder / 'quick.world'} --model voxel    # another model")
    out.print(f"  {hedgerow} report {second} {world} {folder / 'quick.world'}    # which one is nearer?")
    out.print(f"  {hedgerow} scenes    # other places; docs/your_own_log.md brings your own")
