# SPDX-License-Identifier: Apache-2.0
"""Options of the verbs that can share their work among processes: how many, where, and with how much memory."""

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What was said of workers."""

    workers: int = 0
    scheduler: str | None = None
    worker_memory: str | None = None

    @property
    def is_spread(self) -> bool:
        """Whether other processes do the work."""
        return self.workers > 0 or self.scheduler is not None

    def memory(self) -> int | None:
        """Return the bytes that each worker may take.

        Raises:
            InputError: options that do not go together, or no amount of memory.
        """
        from hedgerow.errors import InputError

        if self.workers < 0:
            raise InputError("--workers", f"expected 1 or more, found {self.workers}")
        if self.workers and self.scheduler is not None:
            raise InputError("--scheduler", "a cluster has its own workers; leave --workers out")
        if self.worker_memory is not None and not self.workers:
            raise InputError("--worker-memory", "only with --workers")
        return None if self.worker_memory is None else parse_bytes("--worker-memory", self.worker_memory)


def _parts_folder(output: Path) -> Path:
    """Return where finished parts are kept: beside the output, or, if that is an address, here."""
    from hedgerow.base.places import as_place, is_address

    name = f"{as_place(output).name}.parts"
    return Path(name) if is_address(output) else output.parent / name


@contextmanager
def open_engine(output: Path | None, options: WorkerOptions) -> Generator["Engine"]:
    """Give what works on the parts of a job. Finished parts are kept beside the output until the job is done.

    Args:
        output: what the job makes; parts are kept in the folder OUTPUT.parts. None: nothing is kept.
        options: how many workers, and where.

    Raises:
        InputError: options that do not go together, or Dask is not installed.
        FileError: no scheduler answers.
    """
    from hedgerow.parallel import InProcess, Results

    memory = options.memory()
    results = None if output is None else Results(_parts_folder(output))
    if options.is_spread:
        from hedgerow.parallel.dask_engine import Workers

        folder = None if results is None else results.folder
        engine: Engine = Workers(options.workers, folder, scheduler=options.scheduler, memory=memory)
    else:
        engine = InProcess(results)
    try:
        with engine:
            yield engine
    except BaseException:
        if results is not None and results.folder.exists():
            said = f"finished parts are kept in {results.folder}; the same command goes on from there"
            print(f"hedgerow: {said}", file=sys.stderr)
        raise
    if results is not None:
        results.remove()
