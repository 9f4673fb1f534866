# SPDX-License-Identifier: Apache-2.0
"""hedgerow plants: the procedural plants, or the parameters of one."""

from hedgerow.cli.app import app, out, print_table


@app.command(usage="Usage: hedgerow plants [KIND]")
def plants(kind: str | None = None, /) -> None:
    """List the procedural plants, or the parameters of one.

    Parameters
    ----------
    kind
        for example shrub
    """
    from hedgerow.errors import InputError
    from hedgerow.scenes.plants import PLANTS

    if kind is None:
        print_table(("plant", "what it is"), [[name, plant.about] for name, plant in PLANTS.items()])
        out.print("hedgerow plants KIND lists the parameters of one")
        return
    if kind not in PLANTS:
        raise InputError(kind, f"there is no such plant; there are {', '.join(PLANTS)}")
    print_table(("parameter", "default", "meaning"), PLANTS[kind].parameters.rows())
