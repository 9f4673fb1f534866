# SPDX-License-Identifier: Apache-2.0
"""Convert re-packed public recordings (folders with a load.py) into Parquet logs, for docs/fidelity.md.

    python tools/real_logs.py FOLDER OUT.parquet [--sweeps FIRST:LAST[:STEP]] [--max-range M]

The folder's load.py gives beams with their ranges, no-returns included: either a class Log(folder) with sweep(i), or a
function sweep(i). Ranges beyond --max-range become "no return", because that is what they say about the space before.
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np

from hedgerow import Log
from hedgerow.io.parquet import LogWriter


def loader(folder: Path):
    """Return (function that gives sweep i as a dict of arrays, list of sweep numbers)."""
    spec = importlib.util.spec_from_file_location("load", folder / "load.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"{folder}: has no load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "Log"):
        source = module.Log(str(folder))
        return source.sweep, list(getattr(source, "frames", None) or range(len(source)))
    return module.sweep, list(range(len(module.Z["range_4mm"])))


def as_log(sweep: dict, number: int, max_range_m: float, sensor: str) -> Log:
    """Return one sweep as a log."""
    range_m = np.asarray(sweep["range"], dtype=np.float32)
    range_m = np.where((range_m <= max_range_m) & (range_m > 0), range_m, np.inf)
    time_s = sweep["t"] if "t" in sweep else np.full(len(range_m), 0.1 * number)
    return Log.from_arrays(
        origins=sweep["origin"],
        directions=sweep["dir"],
        ranges=range_m,
        times=np.asarray(time_s, dtype=float),
        rings=sweep["ring"],
        sweeps=number,
        intensities=sweep.get("inten"),
        max_range_m=max_range_m,
        sensor=sensor,
    )


def main() -> None:
    """Read the arguments and convert."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sweeps", default="", help="FIRST:LAST[:STEP], as a Python slice of the sweep numbers")
    parser.add_argument("--skip-every", type=int, default=0, help="leave out every n-th of the chosen sweeps")
    parser.add_argument("--only-every", type=int, default=0, help="keep every n-th of the chosen sweeps alone")
    parser.add_argument("--max-range", type=float, default=80.0)
    parser.add_argument("--sensor", default="")
    arguments = parser.parse_args()
    read, numbers = loader(arguments.folder)
    if arguments.sweeps:
        numbers = numbers[slice(*[int(word) if word else None for word in arguments.sweeps.split(":")])]
    if arguments.skip_every:
        numbers = [n for i, n in enumerate(numbers) if i % arguments.skip_every != arguments.skip_every - 1]
    if arguments.only_every:
        numbers = numbers[arguments.only_every - 1 :: arguments.only_every]
    first = 0
    with LogWriter(arguments.out) as writer:
        for number in numbers:
            log = as_log(read(number), number, arguments.max_range, arguments.sensor)
            beams = log.beams
            shifted = type(beams).trusted(beams.columns() | {"pulse": beams.pulse + first})
            writer.append(Log(shifted, log.returns, log.sensor, 0.0, log.max_range_m))
            first += len(log)
    print(f"{arguments.out}: {len(numbers)} sweeps, {first:,} beams")


if __name__ == "__main__":
    main()
