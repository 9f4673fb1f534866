# SPDX-License-Identifier: Apache-2.0
"""hedgerow info: what a path or a name is."""

from pathlib import Path

from hedgerow.cli.app import app, print_pairs
from hedgerow.cli.options import Settings, parse_settings


@app.command
def info(what: str, /, *, trajectory: Path | None = None, settings: Settings = None) -> None:
    """Say what something is: a log of any format, a trajectory, a learned world, a scene or a sensor.

    Parameters
    ----------
    what
        for example drive.parquet, a KITTI drive folder, poses.tum, site.world, trail or hdl-64e
    trajectory
        poses of the sensor (TUM or KITTI text), where a log has none
    settings
        set a parameter of the reader, where a log does not say itself: scanner_m=[0,0,2], static=true; may be repeated;
        hedgerow convert --formats lists them
    """
    from hedgerow.inputs import describe

    options = parse_settings(settings) | ({} if trajectory is None else {"trajectory": trajectory})
    print_pairs(describe(what, options))
