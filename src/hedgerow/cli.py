# SPDX-License-Identifier: Apache-2.0
"""The command line: one short function per verb. Only this file prints and exits.

Exit code 0: done. 2: the input is at fault, one sentence on standard error says what and where. 130: Ctrl-C.
Heavy imports happen inside the commands, so that help comes at once.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from hedgerow import __version__
from hedgerow.errors import HedgerowError

app = App(
    name="hedgerow",
    help="A lidar simulator for worlds that a laser sees partly through: grass, shrubs, trees, fences.",
    version=__version__,
)
out = Console(highlight=False, markup=False, soft_wrap=True)


@app.command
def info(file: Path, /) -> None:
    """Say what is in a file: a log (Parquet file or folder) or a trajectory (TUM or KITTI text).

    Parameters
    ----------
    file
        for example drive.parquet, drive.log or poses.tum
    """
    from hedgerow.io.describe import describe

    _print_pairs(describe(file).items())


@app.command
def sensors(
    name: str | None = None,
    /,
    *,
    rate_hz: float | None = None,
    picture: Annotated[Path | None, Parameter(name=["--picture", "-o"])] = None,
) -> None:
    """List the catalogue of lidars, or show one of them and draw its scan pattern.

    Parameters
    ----------
    name
        a name of the catalogue, for example hdl-64e, or a TOML file of your own
    rate_hz
        turns per second; default: the sensor's usual rate
    picture
        where to draw the scan pattern; default: NAME.png in this folder
    """
    from hedgerow.sensor import Sensor, describe
    from hedgerow.sensor.picture import draw_pattern

    if name is None:
        _print_table(describe.COLUMNS, [list(row.values()) for row in describe.catalogue_rows()])
        out.print("hedgerow sensors NAME shows one of them with its scan pattern")
        return
    is_file = name.lower().endswith(".toml")
    sensor = Sensor.load(name, rate_hz) if is_file else Sensor.named(name, rate_hz)
    path = picture or Path(f"{sensor.name}.png")
    draw_pattern(sensor, path)
    _print_pairs(describe.details(sensor))
    out.print(f"scan pattern drawn in {path}")


@app.command
def demo(*, folder: Annotated[Path, Parameter(name=["--folder", "-o"])] = Path("out"), seed: int = 7) -> None:
    """Drive an HDL-64E down a lane between hedgerows and write what it sees.

    Parameters
    ----------
    folder
        where to write demo.parquet and demo.png; made if it does not exist
    seed
        same seed, same answer
    """
    from hedgerow.demo import lane_trajectory, lane_world
    from hedgerow.io import write_log
    from hedgerow.io.atomic import make_folder
    from hedgerow.progress import progress_bar
    from hedgerow.sensor import Sensor
    from hedgerow.view.sweep import draw_sweep

    make_folder(folder)
    start = time.perf_counter()
    world = lane_world()
    world.scene.build()
    out.print(f"built a lane of {world.scene.n_elements:,} elements in {time.perf_counter() - start:.1f} s")
    sensor = Sensor.named("hdl-64e")
    beams = sensor.drive(lane_trajectory(), n_sweeps=50)
    start = time.perf_counter()
    with progress_bar("firing", len(beams)) as progress:
        log = world.fire(beams, seed, sensor=sensor, progress=progress)
    took_s, driven_s = time.perf_counter() - start, 50 * sensor.sweep_s
    out.print(
        f"fired {len(beams):,} pulses of an {sensor.name} (50 sweeps, {driven_s:.0f} s of driving) in {took_s:.2f} s: "
        f"{len(beams) / took_s / 1e6:.1f} million pulses/s, {driven_s / took_s:.1f} times real time"
    )
    out.print(f"{log.returns.hit.mean():.1%} of the pulses returned")
    log_path, picture_path = folder / "demo.parquet", folder / "demo.png"
    write_log(log, log_path)
    draw_sweep(log.select(sweep=25), picture_path, "HDL-64E in a lane between hedgerows, sweep 25")
    out.print(f"wrote {log_path} (the log) and {picture_path} (sweep 25 from above and as a range image)")
    out.print(f"next: hedgerow info {log_path}    hedgerow sensors    .venv/bin/python examples/01_first_sweep.py")


def _print_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text  # as Text, brackets in names are not taken for markup

    table = Table.grid(padding=(0, 2))
    for label, text in pairs:
        table.add_row(Text(label, style="bold"), Text(text))
    out.print(table)


def _print_table(columns: tuple[str, ...], rows: list[list[str]]) -> None:
    # By hand: a rich table folds its cells to 80 columns when the output is piped.
    table = [list(columns), *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
    for row in table:
        out.print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def main() -> None:
    """Run the command line."""
    try:
        app(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(str(error), "hedgerow --help shows how it is called")
    except HedgerowError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("hedgerow: interrupted", file=sys.stderr)
        sys.exit(130)


def _fail(message: str, hint: str = "") -> None:
    print(f"hedgerow: {message}" + (f" ({hint})" if hint else ""), file=sys.stderr)
    sys.exit(2)
