# SPDX-License-Identifier: Apache-2.0
"""Options of the verbs that can share their work among processes: how many, where, and with how much memory."""

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from hedgerow.parallel import Engine

WorkerCount = Annotated[
    int, Parameter(name="--workers", help="processes to share the work among; the answer stays the same; default: one")
]
Scheduler = Annotated[
    str | None,
    Parameter(help="address of a running Dask scheduler, instead of --workers, for example tcp://10.0.0.1:8786"),
]
WorkerMemory = Annotated[
    str | None, Parameter(help="memory that each of the --workers may take, for example 2G; default: an equal share")
]
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def parse_bytes(option: str, text: str) -> int:
    """Read an amount of memory, such as 500M or 2G.

    Raises:
        InputError: it is none.
    """
    from hedgerow.errors import InputError, shown

    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    amount = int(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if amount < 1:
        raise InputError(option, f"expected an amount of memory such as 500M or 2G, found {shown(text)}")
    return amount


@contextmanager
def open_engine(
    output: Path, workers: int = 0, scheduler: str | None = None, worker_memory: str | None = None
) -> Generator["Engine"]:
    """Give what works on the parts of a job. Finished parts are kept beside the output until the job is done.

    Args:
        output: what the job makes; parts are kept in the folder OUTPUT.parts.
        workers: as in WorkerCount; 0: this process.
        scheduler: as in Scheduler.
        worker_memory: as in WorkerMemory.

    Raises:
        InputError: options that do not go together, or Dask is not installed.
        FileError: no scheduler answers.
    """
    from hedgerow.errors import InputError
    from hedgerow.parallel import InProcess, Results

    if workers < 0:
        raise InputError("--workers", f"expected 1 or more, found {workers}")
    if workers and scheduler is not None:
        raise InputError("--scheduler", "a cluster has its own workers; leave --workers out")
    if worker_memory is not None and not workers:
        raise InputError("--worker-memory", "only with --workers")
    memory = None if worker_memory is None else parse_bytes("--worker-memory", worker_memory)
    results = Results(output.parent / f"{output.name}.parts")
    if workers or scheduler is not None:
        from hedgerow.parallel.dask_engine import Workers

        engine: Engine = Workers(workers, results.folder, scheduler=scheduler, memory=memory)
    else:
        engine = InProcess(results)
    try:
        with engine:
            yield engine
    except BaseException:
        if results.folder.exists():
            said = f"finished parts are kept in {results.folder}; the same command goes on from there"
            print(f"hedgerow: {said}", file=sys.stderr)
        raise
    results.remove()
