# SPDX-License-Identifier: Apache-2.0
"""hedgerow compose: builds a scene file and saves it as a world."""

import time
from typing import TYPE_CHECKING

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Output, SceneSeed, SceneSettings, parse_settings

if TYPE_CHECKING:
    from hedgerow.world import LearnedWorld


@app.command
def compose(
    scene: str,
    /,
    *,
    output: Output,
    wavelength_nm: float = 905.0,
    seed: SceneSeed = None,
    settings: SceneSettings = None,
) -> None:
    """Compose a site of primitives, plants, meshes and learned worlds, and save it as a world.

    The world can be fired at, compared, viewed and scored like any other. docs/compose.md has the whole way, from a log
    to a new site.

    Parameters
    ----------
    scene
        a scene file (.toml), or a shipped scene
    output
        the world to write, by custom NAME.world
    wavelength_nm
        of the laser; sets the reflectance of materials
    """
    from hedgerow.base.atomic import require_place
    from hedgerow.base.progress import step_bar
    from hedgerow.compose.composition import compose as composed

    require_place(output, folder=True)
    start = time.perf_counter()
    with step_bar() as progress:
        world = composed(scene, wavelength_nm=wavelength_nm, seed=seed, set=parse_settings(settings), progress=progress)
        world.save(output)
    _tell(world)
    out.print(f"wrote {output} in {time.perf_counter() - start:.1f} s")


def _tell(world: "LearnedWorld") -> None:
    from hedgerow.compose.composition import count_classes
    from hedgerow.io.describe import size_text

    counts = count_classes(world)
    if counts:
        print_table(("class", "instances"), [[name, f"{n:,}"] for name, n in counts.items()])
    size = world.size()
    instances = size.tables.get("instances", 0)
    stored = sum(asset.n_elements for asset in world.assets) + size.elements - instances
    out.print(
        f"{instances:,} instances of {len(world.assets):,} assets; {stored:,} elements stored once, "
        f"{size_text(size.bytes)} in memory"
    )
