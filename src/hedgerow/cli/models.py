# SPDX-License-Identifier: Apache-2.0
"""hedgerow models: the models that a log can be learned as, or the parameters of one."""

from hedgerow.cli.app import app, out, print_table


@app.command(usage="Usage: hedgerow models [NAME]")
def models(name: str | None = None, /) -> None:
    """List the models that a log can be learned as, or the parameters of one.

    Parameters
    ----------
    name
        for example voxel
    """
    from hedgerow.errors import InputError
    from hedgerow.models.presets import PRESETS
    from hedgerow.models.registry import MODELS

    if name is None:
        print_table(("model", "when to use it"), [[each, MODELS[each].about] for each in MODELS])
        print_table(
            ("preset", "values of", "models"),
            [[each, PRESETS[each].about, ", ".join(PRESETS[each].values)] for each in PRESETS],
        )
        out.print("hedgerow models NAME lists the parameters of one, and what presets set")
        return
    if name not in MODELS:
        raise InputError(name, f"there is no such model; there are {', '.join(MODELS)}")
    print_table(("parameter", "default", "meaning"), MODELS[name].parameters.rows())
    for preset, row in PRESETS.items():
        if name in row.values:
            values = ", ".join(f"{each}={value}" for each, value in row.values[name].items())
            out.print(f"preset {preset}: {values or 'the defaults'}")
