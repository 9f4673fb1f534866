# SPDX-License-Identifier: Apache-2.0
"""Cost by tiles: the same sweeps through the middle of ever larger worlds, with a fixed amount of memory for tiles."""

from collections.abc import Sequence
from pathlib import Path

from hedgerow.bench.benchmark import Table
from hedgerow.bench.chain import Chain, Task, memory_mb, rate_mps
from hedgerow.bench.journal import Row
from hedgerow.bench.tiled_site import TILE_M

PART = "tiles"
STEPS = ("write", "drive")
SENSOR = "hdl-32e"
SPEED_MPS = 10.0
GAUSSIANS_PER_TILE = 2000
BYTES_EACH = 180
"""Of a Gaussian in memory, as world/tiled.py counts."""
MEMORY_BYTES = 25_000_000
"""For tiles: somewhat more than a sweep needs, a hundredth of the largest world."""


def chain(n_tiles: int, sweeps: int, gaussians_per_tile: int, folder: Path) -> Chain:
    """Plan to write a world, and to drive through it."""
    world = folder / "tiles.world"
    settings = {"tiles": n_tiles, "gaussians": gaussians_per_tile}
    driven = {"sensor": SENSOR, "sweeps": sweeps, "speed_mps": SPEED_MPS, "memory_bytes": MEMORY_BYTES}
    writing = {"n_tiles": n_tiles, "gaussians_per_tile": gaussians_per_tile}
    said = f"{n_tiles:,} tiles"
    tasks = (
        Task(f"{said}, write", {**settings, "step": STEPS[0]}, "write_tiles", {"world": str(world), **writing}, world),
        Task(
            f"{said}, drive", {**settings, "step": STEPS[1], **driven}, "drive_tiles", {"world": str(world), **driven}
        ),
    )
    return Chain(PART, folder, tasks)


def pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return how each world was written and driven through, by its number of tiles."""
    found = {step: {row.number("tiles"): row for row in rows if row.text("step") == step} for step in STEPS}
    written, driven = (found[step] for step in STEPS)
    return [(written[n], driven[n]) for n in sorted(driven) if n in written]


def table(rows: Sequence[Row]) -> Table:
    """Lay out what was measured."""
    lines = [
        (
            f"{drive.number('tiles'):,.0f}",
            f"{drive.number('tiles') * TILE_M**2 / 1e6:.3g}",
            f"{write.values['elements']:,}",
            f"{write.values['disk_mb']:,.1f}",
            f"{write.values['seconds']:.1f}",
            f"{memory_mb(write):,.0f}",
            f"{drive.values['open_s']:.2f}",
            f"{drive.values['first_s']:.2f}",
            f"{drive.values['seconds']:.1f}",
            f"{drive.values['processor_s']:.1f}",
            f"{rate_mps(drive):.2f}",
            f"{100 * drive.values['hits'] / drive.values['beams']:.0f}",
            f"{drive.values['tiles_mb']:.0f}",
            f"{memory_mb(drive):,.0f}",
            f"{drive.load:.1f}",
        )
        for write, drive in pairs(rows)
    ]
    head = ("tiles", "km²", "Gaussians", "disk [MB]", "writing [s]", "its peak [MB]", "opening [s]", "first sweep [s]")
    head += ("drive [s]", "processors [s]", "M beams/s", "returns [%]", "tiles held [MB]", "peak [MB]", "load")
    notes = (
        f"Tiles of {TILE_M:g} m; the same sweeps of {SENSOR} at {SPEED_MPS:g} m/s through the middle of each world, "
        f"{MEMORY_BYTES / 1e6:.0f} MB for tiles. A sweep reaches about 40 tiles: smaller worlds have less to meet, and "
        "their beams end nowhere.",
    )
    return Table("Tiles", head, lines, notes)
