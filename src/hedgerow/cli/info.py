# SPDX-License-Identifier: Apache-2.0
"""hedgerow info: what a path or a name is."""

from hedgerow.cli.app import app, print_pairs


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
