# SPDX-License-Identifier: Apache-2.0
"""hedgerow materials: the shipped materials, how much they reflect, and who measured it."""

from hedgerow.cli.app import app, print_table


@app.command
def materials(*, wavelength_nm: float = 905.0) -> None:
    """List the shipped materials with their reflectance and its source.

    Parameters
    ----------
    wavelength_nm
        of the laser
    """
    from hedgerow.scenes.materials import materials as table

    rows = [
        [name, f"{each.at(wavelength_nm).reflectance:.3g}", each.kind, each.about, each.source]
        for name, each in table().items()
    ]
    print_table(("material", f"at {wavelength_nm:g} nm", "kind", "what it is", "source"), rows)
