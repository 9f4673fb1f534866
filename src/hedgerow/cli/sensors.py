# SPDX-License-Identifier: Apache-2.0
"""hedgerow sensors: the catalogue of lidars, or one of them with a picture of its scan pattern."""

from pathlib import Path

from hedgerow.cli.app import app, out, print_pairs, print_table
from hedgerow.cli.options import Picture, RateHz


@app.command(usage="Usage: hedgerow sensors [OPTIONS] [NAME]")
def sensors(name: str | None = None, /, *, rate_hz: RateHz = None, picture: Picture | None = None) -> None:
    """List the catalogue of lidars, or show one of them and draw its scan pattern.

    Parameters
    ----------
    name
        a name of the catalogue, for example hdl-64e, or a TOML file of your own
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
