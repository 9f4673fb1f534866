# SPDX-License-Identifier: Apache-2.0
"""hedgerow scenes: the shipped scenes, or one of them built, counted and drawn."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.cli.app import app, out, print_pairs, print_table
from hedgerow.cli.options import Picture, SceneSeed, SceneSettings, parse_settings

if TYPE_CHECKING:
    from hedgerow.scenes.site import Site


@app.command(usage="Usage: hedgerow scenes [OPTIONS] [SCENE]")
def scenes(
    scene: str | None = None,
    /,
    *,
    picture: Picture | None = None,
    seed: SceneSeed = None,
    settings: SceneSettings = None,
) -> None:
    """List the shipped scenes, or build one, count what is in it and draw it.

    Parameters
    ----------
    scene
        a shipped scene, for example trail, or a scene file (.toml)
    picture
        where to draw it; default: NAME.png in this folder
    """
    from hedgerow.base.progress import step_bar
    from hedgerow.scenes.file.read import scene_names
    from hedgerow.scenes.site import open_scene
    from hedgerow.view.render import draw_site

    if scene is None:
        print_table(
            ("scene", "what it shows"), [[name, _first_sentence(open_scene(name).file.about)] for name in scene_names()]
        )
        out.print("hedgerow scenes NAME builds one and draws it")
        return
    start = time.perf_counter()
    with step_bar() as progress:
        site = open_scene(scene, parse_settings(settings)).build(seed=seed, progress=progress)
    _print_site(site, time.perf_counter() - start)
    path = picture or Path(f"{site.name}.png")
    draw_site(site, path)
    out.print(f"drawn in {path}")


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
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
        pairs.append((f"trajectory {name}", f"{each.length_m:.1f} m in {seconds:.1f} s"))
    parameters = ", ".join(f"{name} = {value}" for name, value in site.file.parameters.items())
    pairs.append(("parameters", parameters or "none"))
    print_pairs(pairs)
