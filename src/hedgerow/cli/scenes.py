# SPDX-License-Identifier: Apache-2.0
"""Commands that show what physics scenes are made of: scenes, plants, materials."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hedgerow.cli.app import app, out, print_pairs, print_table, settings_of

if TYPE_CHECKING:
    from hedgerow.scenes.site import Site


@app.command(usage="Usage: hedgerow scenes [OPTIONS] [SCENE]")
def scenes(
    scene: str | None = None,
    /,
    *,
    picture: Annotated[Path | None, Parameter(name=["--picture", "-o"])] = None,
    seed: int | None = None,
    settings: Annotated[list[str] | None, Parameter(name=["--set", "-s"], negative=())] = None,
) -> None:
    """List the shipped scenes, or build one, count what is in it and draw it.

    Parameters
    ----------
    scene
        a shipped scene, for example trail, or a scene file (.toml)
    picture
        where to draw it; default: NAME.png in this folder
    seed
        same seed, same scene; default: the file's
    settings
        values of its parameters or fields, each NAME=VALUE
    """
    from hedgerow.base.progress import step_bar
    from hedgerow.scenes.file.read import scene_names
    from hedgerow.scenes.site import open_scene
    from hedgerow.view.render import draw_site

    if scene is None:
        print_table(("scene", "what it shows"), [[name, _first(open_scene(name).file.about)] for name in scene_names()])
        out.print("hedgerow scenes NAME builds one and draws it")
        return
    start = time.perf_counter()
    with step_bar() as progress:
        site = open_scene(scene, settings_of(settings)).build(seed=seed, progress=progress)
    _print_site(site, time.perf_counter() - start)
    path = picture or Path(f"{site.name}.png")
    draw_site(site, path)
    out.print(f"drawn in {path}")


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


def _first(text: str) -> str:
    """First sentence of a text."""
    return text.split(". ")[0].rstrip(".")


def _print_site(site: "Site", took_s: float) -> None:
    low_x, low_y, high_x, high_y = site.terrain.bounds_m
    low, high = float(site.terrain.z_m.min()), float(site.terrain.z_m.max())
    pairs = [("scene", site.name), ("about", site.file.about)]
    pairs.append(("extent", f"{high_x - low_x:g} by {high_y - low_y:g} m, ground from {low:.1f} to {high:.1f} m"))
    pairs.append(("triangles", f"{site.n_triangles:,} with all copies counted, built in {took_s:.1f} s"))
    if site.n_gaussians:
        pairs.append(("Gaussians", f"{site.n_gaussians:,}"))
    pairs.append(("copies", ", ".join(f"{n:,} {name}" for name, n in site.n_copies.items()) or "none"))
    if site.largest_gap_m:
        pairs.append(("gap", f"merged patches are off the ground by at most {site.largest_gap_m * 100:.1f} cm"))
    for name, each in site.trajectories.items():
        seconds = (each.end_ns - each.start_ns) * 1e-9
        pairs.append((f"pass {name}", f"{each.length_m:.1f} m in {seconds:.1f} s"))
    parameters = ", ".join(f"{name} = {value}" for name, value in site.file.parameters.items())
    pairs.append(("parameters", parameters or "none"))
    print_pairs(pairs)
