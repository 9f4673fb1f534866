# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 §6.2.6: how small a mesh can be, with shared corners and simplified, and what that costs.

The paper counts nine numbers per triangle, ten with permeability, and names two ways to fewer: shared corners and mesh
simplification. Here permeable surfaces of both sites are learned with more and more of their triangles taken away, and
compared on the second drive. Size is that of the geometry and permeability alone: float32 for what is a parameter,
uint32 for the number of a shared corner.
"""

from pathlib import Path

from hedgerow.metrics import compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import SITES, MobileSite, record
from hedgerow.reproduce.tables import markdown_table
from hedgerow.world import LearnedWorld
from hedgerow.world.elements import Triangles
from hedgerow.world.simplified import SharedMesh

SHARES = (0.0, 0.5, 0.8, 0.9)
"""Of the triangles, taken away."""
_HEAD = (
    *("triangles taken away", "triangles", "parameters, 10 each", "with shared corners", "MB", "shared, MB"),
    *("hits [%]", "misses [%]", "sweep [cm]", "cloud [cm]", "-log L"),
)


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Learn meshes of both sites, simplify them, compare them; `size` is sweeps."""
    parts = [f"**{site.scene}**\n\n{site_table(site, size or 24, seed, say)}" for site in SITES.values()]
    return Outcome(text="\n\n".join(parts))


def site_table(site: MobileSite, n_sweeps: int, seed: int, say: Print = print) -> str:
    """Return the table of one site in Markdown."""
    train, test = record(site, n_sweeps, seed)
    rows: list[tuple[str, ...]] = []
    for share in SHARES:
        world = learn(train, "permeable-surface", simplify=share)
        scores = compare(test, world, seed=seed)
        figures = [
            f"{factor * (scores[key] or 0.0):.{digits}f}"
            for key, factor, digits in (
                ("hits_found", 100, 1),
                ("misses_found", 100, 1),
                ("sweep_distance_m", 100, 2),
                ("cloud_distance_m", 100, 2),
                ("nll_binned", 1, 2),
            )
        ]
        rows.append((f"{share:.0%}", *_sizes(world), *figures))
        say(f"{site.scene}, {share:.0%} taken away: " + ", ".join(rows[-1][1:]))
    return markdown_table(_HEAD, rows)


def _sizes(world: LearnedWorld) -> tuple[str, ...]:
    triangles = world.tables["triangles"]
    if not isinstance(triangles, Triangles):
        raise TypeError("a surface world is made of triangles")
    alone, mesh = triangles.n_parameters(), SharedMesh.of(triangles.corners_m)
    shared, shared_bytes = mesh.n_parameters(permeable=True), mesh.n_bytes(permeable=True)
    return f"{len(triangles):,}", f"{alone:,}", f"{shared:,}", f"{4 * alone / 1e6:.2f}", f"{shared_bytes / 1e6:.2f}"
