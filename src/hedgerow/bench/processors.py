# SPDX-License-Identifier: Apache-2.0
"""Speed by processors, as Goodin 2018 Fig. 3 shows it: a lidar in a courtyard of 190 million triangles.

Once with threads of one process, once with worker processes of one thread each, as the message passing of the paper
has them. Fig. 3 is a curve whose values the text does not give; §3.3 states two points, which stand beside ours.
"""

from collections.abc import Sequence
from pathlib import Path

from hedgerow.bench.benchmark import Table
from hedgerow.bench.chain import Chain, Task
from hedgerow.bench.journal import Row

PART = "processors"
START_S = 10.0
"""Into the drive, where grass and trees are all around."""
PAPER_REAL_TIME = 6.8 / 4.7
"""Goodin 2018 §3.3: 6.8 s of simulated time in 4.7 s, of the HDL-64E on 40 processors and of the LMS-291 on 4."""
PAPER_PROCESSORS = 40
"""Of the HDL-64E, 9 rays a pulse, in 191,245,324 triangles (Fig. 3)."""
KINDS = ("threads", "processes")


def counts(cores: int) -> list[int]:
    """Return the numbers of processors to try: 1, 2, 4 and so on, as far as there are cores."""
    return [2**k for k in range(cores.bit_length()) if 2**k <= cores]


def chain(scene: str, sweeps: int, start_s: float, cores: int, folder: Path) -> Chain:
    """Plan one drive for each kind and number of processors."""
    tasks: list[Task] = []
    for kind in KINDS:
        for n in counts(cores):
            is_thread = kind == "threads"
            arguments = {"scene": scene, "output": folder / "drive", "sweeps": sweeps, "start_s": start_s}
            tasks.append(
                Task(
                    f"{scene}, {kind}: {n}",
                    {"scene": scene, "sweeps": sweeps, "kind": kind, "n": n},
                    "fire",
                    {**arguments, "workers": 0 if is_thread else n},
                    threads=n if is_thread else 1,
                )
            )
    return Chain(PART, folder, tuple(tasks))


def real_time(row: Row) -> float:
    """Return how many times real time a drive was."""
    return row.values["simulated_s"] / row.values["seconds"]


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the longest drive, threads first, by their number."""
    most = max((row.number("sweeps") for row in rows), default=0)
    longest = [row for row in rows if row.number("sweeps") == most]
    return sorted(longest, key=lambda row: (KINDS.index(row.text("kind")), row.number("n")))


def table(rows: Sequence[Row]) -> Table:
    """Lay out what was measured, the paper's point below."""
    ordered = in_order(rows)
    ones = {row.text("kind"): row for row in ordered if row.number("n") == 1}
    lines = [
        (
            row.text("kind"),
            f"{row.number('n'):.0f}",
            f"{row.values['seconds']:.1f}",
            f"{row.values['processor_s']:.1f}",
            f"{real_time(row):.2f}",
            f"{real_time(row) / row.number('n'):.2f}",
            f"{real_time(row) / real_time(one):.2f}" if (one := ones.get(row.text("kind"))) is not None else "-",
            f"{row.load:.1f}",
        )
        for row in ordered
    ]
    paper = ("Goodin 2018 §3.3", str(PAPER_PROCESSORS), "4.7", "-", f"{PAPER_REAL_TIME:.2f}")
    lines.append((*paper, f"{PAPER_REAL_TIME / PAPER_PROCESSORS:.3f}", "-", "-"))
    head = (
        "kind",
        "processors",
        "work [s]",
        "processors [s]",
        "times real time",
        "of each processor",
        "speed-up",
        "load",
    )
    scenes = sorted({row.text("scene") for row in ordered})
    simulated = max((row.values["simulated_s"] for row in ordered), default=0.0)
    notes = (
        f"{simulated:.1f} s of the lidar of {', '.join(scenes)}, 9 sub-rays a pulse, fired and written; growing the "
        "scene and starting workers is not counted. Goodin 2018 says of an HDL-64E in 191 million triangles: 6.8 s in "
        "4.7 s on 40 processors, and that the code scales well; the values of its Fig. 3 are not in the text.",
    )
    return Table("Processors", head, lines, notes)
