# SPDX-License-Identifier: Apache-2.0
"""Cost by beams: a drive along a trail that is recorded, learned, fired again and compared, at several lengths.

The vehicle keeps its speed, so the site grows with the log. Worlds are fired at, and compared, with a fixed amount of
memory for their tiles.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hedgerow.bench.benchmark import Table
from hedgerow.bench.chain import Chain, Task, memory_mb, rate_mps
from hedgerow.bench.journal import Row
from hedgerow.bench.long_trail import TRAIL_SENSOR, long_trail
from hedgerow.sensor import Sensor

PART = "beams"
STEPS = ("fire", "learn voxel", "learn topdown", "fire learned", "compare")
MEMORY_BYTES = 200_000_000
"""For the tiles of the learned world."""
SPEED_MPS = 20.0
_MARGIN_M = 70.0
"""Trail before and behind the drive."""


@cache
def _sensor() -> Sensor:
    return Sensor.named(TRAIL_SENSOR)


def n_sweeps(beams: int) -> int:
    """Return the sweeps that have about so many beams."""
    return max(1, round(beams / _sensor().pulses_per_sweep))


def drive_m(beams: int) -> float:
    """Return how far the vehicle gets in so many beams [m]."""
    return SPEED_MPS * _sensor().sweep_s * n_sweeps(beams)


def trail_text(beams: int, *, wood: bool) -> str:
    """Return the text of the scene that is long enough for so many beams."""
    return long_trail(drive_m(beams) + _MARGIN_M, SPEED_MPS, wood=wood)


def chain(beams: int, folder: Path, *, wood: bool = True) -> Chain:
    """Plan the steps for one number of beams."""
    scene, log, way = (folder / name for name in ("trail.toml", "drive", "drive.tum"))
    voxel, topdown = folder / "voxel.world", folder / "topdown.world"
    sweeps = n_sweeps(beams)
    again = {"sensor": TRAIL_SENSOR, "trajectory": way, "sweeps": sweeps, "memory_bytes": MEMORY_BYTES}
    plans: Sequence[tuple[str, Mapping[str, object], Path | None]] = (
        ("fire", {"scene": scene, "output": log, "sweeps": sweeps, "way": way}, log),
        ("learn", {"log": log, "output": voxel, "model": "voxel"}, voxel),
        ("learn", {"log": log, "output": topdown, "model": "topdown"}, None),
        ("fire", {"scene": voxel, "output": folder / "again", **again}, None),
        ("compare", {"log": log, "world": voxel, "memory_bytes": MEMORY_BYTES}, None),
    )
    tasks = [
        Task(f"{beams / 1e6:g} M beams, {name}", {"beams": beams, "step": name}, *plan)
        for name, plan in zip(STEPS, plans, strict=True)
    ]
    return Chain(PART, folder, tuple(tasks), {scene.name: trail_text(beams, wood=wood)})


def expected_s(rows: Sequence[Row], beams: int) -> float | None:
    """Return how long so many beams will take, by the largest number that was measured; None if none was [s]."""
    took_s: dict[int, list[float]] = {}
    for row in rows:
        spent_s = row.values["seconds"] + row.values.get("open_s", 0.0)
        took_s.setdefault(int(row.number("beams")), []).append(spent_s)
    whole = [n for n, steps in took_s.items() if len(steps) == len(STEPS)]
    return sum(took_s[max(whole)]) * beams / max(whole) if whole else None


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Sort rows by beams and step."""
    return sorted(rows, key=lambda row: (row.number("beams"), STEPS.index(row.text("step"))))


def table(rows: Sequence[Row]) -> Table:
    """Lay out what was measured."""
    lines = [
        (
            f"{row.number('beams') / 1e6:g}",
            f"{drive_m(int(row.number('beams'))):,.0f}",
            row.text("step"),
            f"{row.values.get('open_s', 0.0):.1f}",
            f"{row.values['seconds']:.1f}",
            f"{row.values['processor_s']:.1f}",
            f"{rate_mps(row):.2f}",
            f"{memory_mb(row):,.0f}",
            f"{row.load:.1f}",
        )
        for row in in_order(rows)
    ]
    head = (
        "M beams",
        "drive [m]",
        "step",
        "opening [s]",
        "work [s]",
        "processors [s]",
        "M beams/s",
        "peak [MB]",
        "load",
    )
    notes = (
        f"{TRAIL_SENSOR} along a trail at {SPEED_MPS:g} m/s, one process. Learned worlds are fired at and compared "
        f"with {MEMORY_BYTES / 1e6:.0f} MB for tiles. Opening is growing the scene, or reading the list of tiles.",
    )
    return Table("Beams", head, lines, notes)
