# SPDX-License-Identifier: Apache-2.0
"""Commands that show what there is: info, sensors, models."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_pairs, print_table


@app.command
def info(what: str, /) -> None:
    """Say what something is: a log of any format, a trajectory, a learned world, a scene or a sensor.

    Parameters
    ----------
    what
        for example drive.parquet, a KITTI drive folder, poses.tum, site.world, trail or hdl-64e
    """
    from hedgerow.inputs import describe

    print_pairs(describe(what))


@app.command(usage="Usage: hedgerow sensors [OPTIONS] [NAME]")
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
    from hedgerow.inputs import open_sensor
    from hedgerow.sensor import describe
    from hedgerow.view.scan_pattern import draw_pattern

    if name is None:
        print_table(describe.COLUMNS, [list(row.values()) for row in describe.catalogue_rows()])
        out.print("hedgerow sensors NAME shows one of them with its scan pattern")
        return
    sensor = open_sensor(name, rate_hz)
    path = picture or Path(f"{sensor.name}.png")
    draw_pattern(sensor, path)
    print_pairs(describe.details(sensor))
    out.print(f"scan pattern drawn in {path}")


@app.command(usage="Usage: hedgerow models [NAME]")
def models(name: str | None = None, /) -> None:
    """List the models that a log can be learned as, or the parameters of one.

    Parameters
    ----------
    name
        for example voxel
    """
    from hedgerow.errors import InputError
    from hedgerow.models.registry import MODELS

    if name is None:
        print_table(("model", "when to use it"), [[each, MODELS[each].about] for each in MODELS])
        out.print("hedgerow models NAME lists the parameters of one")
        return
    if name not in MODELS:
        raise InputError(name, f"there is no such model; there are {', '.join(MODELS)}")
    print_table(("parameter", "default", "meaning"), MODELS[name].parameters.rows())
