# SPDX-License-Identifier: Apache-2.0
"""Convert re-packed public recordings (folders with a load.py) into Parquet logs, for docs/results/recordings.md.

    python tools/real_logs.py FOLDER OUT.parquet [--sweeps FIRST:LAST[:STEP]] [--min-range M] [--max-range M]

The folder's load.py gives beams with their ranges, no-returns included, as a dict of arrays in one map frame: origin
(N, 3), dir (N, 3), range (N,) with inf for no return, ring (N,), col (N,), and perhaps inten and t. It has either a
class Log(folder) with sweep(i), or a function sweep(i), or, for folders of several recordings NAME.npz, a function
sweep(NAME, i) whose beams form a grid of rings by columns. Ranges beyond --max-range become "no return", because that
is what they say about the space before; so do those below --min-range, which no simulation will return either.

A carrier that stands in the way swallows beams, and a no-return of these says nothing about the site. With
--hidden-share, columns are left out in which more than this share of all beams that point 4 degrees down and more did
not return, over the whole recording: there is ground in every direction.
"""

import argparse
import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow import Log
from hedgerow.io.parquet.writer import LogWriter

Read = Callable[[int], dict[str, Any]]
_DOWN = -np.sin(np.radians(4))


@dataclass(frozen=True)
class Choice:
    """Which part of a recording to take."""

    sweeps: str = ""
    """FIRST:LAST[:STEP], as a Python slice of the sweep numbers; all if empty."""
    skip_every: int = 0
    """Leave out every n-th of these sweeps (or columns)."""
    only_every: int = 0
    """Keep every n-th of these sweeps (or columns) alone."""
    by_column: bool = False
    """Split each sweep by its columns, instead of the recording by its sweeps."""

    def numbers(self, all_numbers: list[int]) -> list[int]:
        """Return the sweeps to read."""
        words = self.sweeps.split(":") if self.sweeps else ["", ""]
        numbers = all_numbers[slice(*[int(word) if word else None for word in words])]
        kept = self._keep(np.arange(len(numbers)))
        return numbers if self.by_column else [n for n, keep in zip(numbers, kept, strict=True) if keep]

    def columns(self, sweep: dict[str, Any]) -> dict[str, Any]:
        """Return the part of a sweep to take."""
        if not self.by_column:
            return sweep
        kept = self._keep(np.asarray(sweep["col"]))
        return {name: column[kept] for name, column in sweep.items()}

    def _keep(self, index: np.ndarray) -> np.ndarray:
        kept = np.ones(len(index), dtype=bool)
        if self.skip_every:
            kept &= index % self.skip_every != self.skip_every - 1
        if self.only_every:
            kept &= index % self.only_every == self.only_every - 1
        return kept


def loader(folder: Path, recording: str = "") -> tuple[Read, list[int]]:
    """Return (function that gives sweep i as a dict of arrays, list of sweep numbers)."""
    spec = importlib.util.spec_from_file_location("load", folder / "load.py")
    if spec is None or spec.loader is None or not (folder / "load.py").exists():
        raise SystemExit(f"{folder}: has no load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if recording:
        with np.load(folder / f"{recording}.npz") as arrays:
            n_sweeps, _, n_columns = arrays["range_mm"].shape
        return lambda i: _gridded(module.sweep(recording, i), n_columns), list(range(n_sweeps))
    if hasattr(module, "Log"):
        source = module.Log(str(folder))
        return source.sweep, list(getattr(source, "frames", None) or range(len(source)))
    return module.sweep, list(range(len(module.Z["range_4mm"])))


def _gridded(sweep: dict[str, Any], n_columns: int) -> dict[str, Any]:
    index = np.arange(len(sweep["range"]))
    return {**sweep, "ring": index // n_columns, "col": index % n_columns, "inten": sweep["refl"].astype(np.float32)}


def as_log(sweep: dict[str, Any], number: int, min_range_m: float, max_range_m: float, sensor: str) -> Log:
    """Return one sweep as a log."""
    range_m = np.asarray(sweep["range"], dtype=np.float32)
    range_m = np.where((range_m > 0) & (range_m >= min_range_m) & (range_m <= max_range_m), range_m, np.inf)
    time_s = sweep["t"] if "t" in sweep else np.full(len(range_m), 0.1 * number)
    intensity = sweep.get("inten")
    return Log.from_arrays(
        origins=sweep["origin"],
        directions=sweep["dir"],
        ranges=range_m,
        times=np.asarray(time_s, dtype=float),
        rings=sweep["ring"],
        sweeps=number,
        intensities=None if intensity is None else np.where(np.isfinite(range_m), intensity, np.nan),
        min_range_m=min_range_m,
        max_range_m=max_range_m,
        sensor=sensor,
    )


def hidden_columns(sweeps: Iterator[dict[str, Any]], share: float) -> np.ndarray:
    """Return the columns in which more than a share of the beams that point down did not return."""
    fired, missing = np.zeros(1 << 16), np.zeros(1 << 16)
    for sweep in sweeps:
        down = np.asarray(sweep["dir"])[:, 2] < _DOWN
        fired += np.bincount(sweep["col"][down], minlength=len(fired))
        missing += np.bincount(sweep["col"][down], np.isinf(sweep["range"][down]), len(fired))
    return np.nonzero(missing > share * fired)[0]


def logs(
    folder: Path,
    choice: Choice,
    *,
    max_range_m: float,
    sensor: str,
    min_range_m: float = 0.0,
    recording: str = "",
    hidden_share: float = 1.0,
) -> Iterator[Log]:
    """Give the chosen part of a recording, a log per sweep; pulses are numbered through."""
    read, numbers = loader(folder, recording)
    hidden = hidden_columns(map(read, numbers), hidden_share) if hidden_share < 1 else np.zeros(0)
    first = 0
    for number in choice.numbers(numbers):
        sweep = choice.columns(read(number))
        seen = ~np.isin(sweep["col"], hidden)
        kept = {name: column[seen] for name, column in sweep.items()}
        log = as_log(kept, number, min_range_m, max_range_m, sensor)
        shifted = type(log.beams).without_checks(log.beams.columns() | {"pulse": log.beams.pulse + first})
        first += len(log)
        yield replace(log, beams=shifted)


def main() -> None:
    """Read the arguments and convert."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--recording", default="", help="which one, in a folder of several")
    parser.add_argument("--sweeps", default="", help="FIRST:LAST[:STEP], as a Python slice of the sweep numbers")
    parser.add_argument("--skip-every", type=int, default=0, help="leave out every n-th of the chosen sweeps")
    parser.add_argument("--only-every", type=int, default=0, help="keep every n-th of the chosen sweeps alone")
    parser.add_argument("--by-column", action="store_true", help="the same with the columns of each sweep")
    parser.add_argument("--min-range", type=float, default=0.0)
    parser.add_argument("--max-range", type=float, default=80.0)
    parser.add_argument("--hidden-share", type=float, default=1.0, help="leave out columns that the carrier hides")
    parser.add_argument("--sensor", default="")
    asked = parser.parse_args()
    choice = Choice(asked.sweeps, asked.skip_every, asked.only_every, asked.by_column)
    chosen = logs(
        asked.folder,
        choice,
        min_range_m=asked.min_range,
        max_range_m=asked.max_range,
        sensor=asked.sensor,
        recording=asked.recording,
        hidden_share=asked.hidden_share,
    )
    n_sweeps = n_beams = 0
    with LogWriter(asked.out) as writer:
        for log in chosen:
            writer.append(log)
            n_sweeps, n_beams = n_sweeps + 1, n_beams + len(log)
    print(f"{asked.out}: {n_sweeps} sweeps, {n_beams:,} beams")


if __name__ == "__main__":
    main()
