# SPDX-License-Identifier: Apache-2.0
"""Wild grassland by the square kilometre (Browning 2012 §1): what 10^15 triangles are as learned patches.

The paper counts 46,000 blades per square foot and 20 triangles each: 10^15 triangles for 100 km², and no machine to
hold them. Here a meadow is grown leaf by leaf, recorded, and learned as patches of Gaussians (nursery.py); a site of
`size` km² is composed of copies of these and of learned plants, stored in tiles (site.py), opened within a budget of
memory and driven through (drive.py). The patches are judged by the meadow that they were learned from.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.labels import LABELS
from hedgerow.compose.ground_patches import lay_patches
from hedgerow.io.trajectory import write_trajectory
from hedgerow.log import Log
from hedgerow.metrics.compare import compare
from hedgerow.metrics.crps import crps
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.grassland.drive import Built, Driven, build, drive, in_own_process
from hedgerow.reproduce.grassland.nursery import PATCH_M, SENSOR, Nursery, NurserySizes, raise_plants, record_grass
from hedgerow.reproduce.grassland.pictures import draw_grassland
from hedgerow.reproduce.grassland.site import SiteRules, drive_of, way_of
from hedgerow.reproduce.tables import markdown_table
from hedgerow.sensor import Sensor
from hedgerow.simulate import replay
from hedgerow.world.assets import instances_of
from hedgerow.world.learned import LearnedWorld

SITE, PIECE = "grassland.world", "grassland-piece.world"
MAX_BYTES = 64_000_000
"""Memory that tiles may take in a drive."""
STRETCH_M = 200.0
"""Of the way, that is driven in the whole site and in a piece of it."""
PIECE_MARGIN_M = 130.0
"""The piece reaches so much farther than beams do: with fewer copies, these would stand in one search tree."""
ROUNDS = 2
"""The stretch is driven so often in each; the quickest counts, since others may use the machine."""
DRAWS = 3
PAPER_TRIANGLES_PER_M2 = 46e3 / 0.3048**2 * 20
"""Browning 2012 §1."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Grow, learn, compose `size` km² (default 1), drive through it, and draw it."""
    area_km2 = size or 1
    rules = SiteRules(extent_m=1000 * np.sqrt(area_km2), way_m=min(1200.0, 850 * np.sqrt(area_km2)))
    return study(folder, NurserySizes(), rules, seed, say)


def study(folder: Path, sizes: NurserySizes, rules: SiteRules, seed: int, say: Print) -> Outcome:
    """Do all of it."""
    nursery = raise_plants(folder, sizes, seed, say)
    judged = judge(nursery, seed)
    say(f"patches judged by {len(judged.real):,} beams")
    built = in_own_process(build, folder, SITE, rules, seed)
    say(f"{built.area_km2:.2f} km² built in {built.took_s:.1f} s: {built.n_instances:,} instances")
    drives = measure(folder, rules, seed, say)
    write_trajectory(drive_of(rules, seed), folder / "grassland.tum")
    picture = folder / "grassland.jpg"
    draw_grassland(folder / SITE, rules, seed, picture)
    text = (
        _words(nursery, built, drives, rules),
        f"**What it takes**\n\n{size_table(nursery, built)}",
        f"**Driving, {SENSOR.upper()}, load {os.getloadavg()[0]:.1f}**\n\n{drive_table(drives)}",
        f"**Patches, judged by the meadow that they were learned from**\n\n{judged.table()}",
    )
    return Outcome(text="\n\n".join(text), pictures=(picture,))


@dataclass(frozen=True)
class Judged:
    """The same beams in the meadow, there again, and in patches."""

    real: Log
    answers: dict[str, list[Log]]
    """Draws of each contender."""

    def table(self) -> str:
        """Return shares of returns, heights, distances and scores."""
        rows = [("the meadow", *_looks(self.real), "", "")]
        for name, logs in self.answers.items():
            drawn = np.stack([log.returns.first_m for log in logs])
            score = crps(self.real.returns.first_m, drawn, self.real.max_range_m).mean()
            distance = compare(self.real, logs[0])["cloud_distance_m"]
            rows.append((name, *_looks(logs[0]), f"{100 * (distance or np.nan):.1f}", f"{100 * score:.1f}"))
        head = ("", "beams that return [%]", "from the ground [%]", "mean height of returns [cm]")
        return markdown_table((*head, "cloud to cloud [cm]", "CRPS of the range [cm]"), rows)


def _looks(log: Log) -> tuple[str, str, str]:
    hit = log.returns.hit
    assert log.returns.label is not None
    ground = (log.returns.label[hit] == LABELS["ground"].number).mean()
    return f"{100 * hit.mean():.2f}", f"{100 * ground:.2f}", f"{100 * log.points()[:, 2].mean():.1f}"


def judge(nursery: Nursery, seed: int) -> Judged:
    """Fire beams of another drive at the meadow, at the patches in their own places, and shuffled as in the site."""
    sizes = nursery.sizes
    inner_m = sizes.half_m - 0.5
    real, *again = (
        record_grass(nursery.site, sizes, sizes.judged_sweeps, seed + 1, half_m=inner_m, again=k)
        for k in range(1 + DRAWS)
    )
    rng = np.random.default_rng(seed)
    n = sizes.patches
    own = patch_world(nursery, np.arange(n * n, dtype=np.int64).reshape(n, n), np.zeros((n, n), dtype=np.int64))
    mixed = patch_world(nursery, rng.permutation(n * n).reshape(n, n), rng.integers(0, 4, (n, n)))
    answers = {"the meadow again, other random numbers": list(again)}
    for name, world in (("patches in their own places", own), ("patches shuffled and turned, as in the site", mixed)):
        answers[name] = [replay(world, real, seed=seed + k) for k in range(DRAWS)]
    return Judged(real, answers)


def patch_world(nursery: Nursery, which: NDArray[np.int64], turn: NDArray[np.int64]) -> LearnedWorld:
    """Lay patches on level ground where the meadow is."""
    sizes = nursery.sizes
    patches = nursery.assets[: sizes.n_patch_assets]
    level = np.zeros((sizes.patches + 1, sizes.patches + 1))
    asset, place = lay_patches(level, (-sizes.half_m, -sizes.half_m), PATCH_M, which, turn)
    return LearnedWorld(instances_of(patches, asset, place), kind="composed", assets=patches)


def measure(folder: Path, rules: SiteRules, seed: int, say: Print) -> dict[str, Driven]:
    """Drive the whole way, and a stretch of it in the site and in a piece of it, each in a process of its own."""
    line = way_of(rules)
    reach_m = Sensor.named(SENSOR).max_range_m
    end_m = line.length_m - 2.0
    middle_m = line.length_m / 2
    stretch = (max(0.0, middle_m - STRETCH_M / 2), min(end_m, middle_m + STRETCH_M / 2))
    piece = rules.around(line.at(np.linspace(*stretch, 50)), reach_m + PIECE_MARGIN_M)
    smaller = in_own_process(build, folder, PIECE, piece, seed)
    named = f"{smaller.area_km2:.2f} km²"
    contenders: dict[str, tuple[str, int | None]] = {
        f"{rules.area_km2:.1f} km², paged": (SITE, MAX_BYTES),
        f"{named} of it, paged": (PIECE, MAX_BYTES),
        f"{named} of it, in memory": (PIECE, None),
    }
    whole_way = f"{rules.area_km2:.1f} km², paged, all {end_m / 1000:.2f} km"
    found = {whole_way: in_own_process(drive, folder / SITE, SENSOR, MAX_BYTES, rules, seed, (0.0, end_m))}
    say(f"drove {end_m:.0f} m: {found[whole_way].beams_per_s / 1e6:.2f} M beams/s")
    for _ in range(ROUNDS):
        for name, (world, max_bytes) in contenders.items():
            once = in_own_process(drive, folder / world, SENSOR, max_bytes, rules, seed, stretch)
            if name not in found or once.processor_s < found[name].processor_s:
                found[name] = once
    return found


def size_table(nursery: Nursery, built: Built) -> str:
    """Return the site, a square kilometre of it, and 100 km² by the rule of three."""
    grass = nursery.triangles_per_m2

    def column(area_km2: float) -> list[str]:
        share = area_km2 / built.area_km2
        return [
            f"{share * built.n_instances:,.0f}",
            f"{share * built.n_plants:,.0f}",
            f"{share * built.n_copies:.2g}",
            f"{grass * area_km2 * 1e6:.2g}",
            f"{PAPER_TRIANGLES_PER_M2 * area_km2 * 1e6:.2g}",
            f"{share * built.disk_bytes / 1e6:,.1f}",
            f"{share * built.took_s:,.1f}",
            f"{share * built.processor_s:,.1f}",
        ]

    names = (
        "instances",
        "of these plants",
        "elements, all copies counted",
        "triangles of the same grass as a mesh",
        "triangles by Browning 2012",
        "on the disk [MB]",
        "to build [s]",
        "to build [s of a processor]",
    )
    columns = [column(area) for area in (1.0, built.area_km2, 100.0)]
    head = ("", "per km²", f"{built.area_km2:.2f} km², measured", "100 km², from that")
    rows = [(name, *cells) for name, *cells in zip(names, *columns, strict=True)]
    memory = f"{built.peak_bytes / 1e6:,.0f}"
    return markdown_table(head, [*rows, ("peak memory of building [MB]", "", memory, "the same")])


def drive_table(drives: Mapping[str, Driven]) -> str:
    """Return time and memory of the drives."""
    rows: Sequence[tuple[str, ...]] = [
        (
            name,
            f"{each.opened_s:.2f}",
            f"{each.first_s:.2f}",
            f"{each.n_beams / 1e6:.1f}",
            f"{each.beams_per_s / 1e6:.2f}",
            f"{each.beams_per_processor_s / 1e6:.2f}",
            f"{100 * each.n_returns / each.n_beams:.1f}",
            f"{each.tiles_bytes / 1e6:.1f}" if each.tiles_bytes else "all",
            f"{each.peak_bytes / 1e6:,.0f}",
        )
        for name, each in drives.items()
    ]
    head = ("", "opening [s]", "first sweep [s]", "M beams", "M beams/s", "M beams per processor second", "return [%]")
    return markdown_table((*head, "tiles [MB]", "process [MB]"), rows)


def _words(nursery: Nursery, built: Built, drives: Mapping[str, Driven], rules: SiteRules) -> str:
    sizes, way = nursery.sizes, next(iter(drives.values()))
    stored = sum(asset.n_elements for asset in nursery.assets)
    return (
        f"A meadow of {sizes.blades_per_m2:,.0f} blades per m², {nursery.triangles_per_m2:,.0f} triangles per m², was "
        f"recorded in {nursery.recorded_s:.1f} s of a processor, {nursery.n_beams:,} beams, and learned as "
        f"{sizes.patches**2} patches of {PATCH_M:g} m: "
        f"{nursery.elements_per_m2:.1f} elements per m². With "
        f"{len(nursery.assets) - sizes.n_patch_assets} plants these are {len(nursery.assets)} assets of {stored:,} "
        f"elements, stored once. {built.area_km2:.2f} km² of them, {built.n_instances:,} instances, take "
        f"{built.disk_bytes / 1e6:.1f} MB; a drive of {way_of(rules).length_m:.0f} m fired {way.n_beams:,} beams at "
        f"{way.beams_per_s / 1e6:.2f} M beams/s, {way.peak_bytes / 1e6:.0f} MB in all."
    )
