# SPDX-License-Identifier: Apache-2.0
"""What a benchmark is: every module of this folder that is one has the same `run`.

    def run(folder: Path, asked: Asked, say: Print = print) -> Measured

`folder` exists and takes the files; `say` shows each row when it is there. A new benchmark is one module and one row
in the table below; modules are imported when they are run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

from hedgerow.errors import InputError

Print = Callable[[str], object]
"""Shows a line to the user."""
Size = Literal["full", "small"]


@dataclass(frozen=True)
class Asked:
    """What the user wants measured."""

    only: tuple[str, ...] = ()
    """Some of the benchmark's parts; none named: all of them."""
    beams: tuple[float, ...] = ()
    """How many beams, instead of the usual numbers."""
    size: Size = "full"
    anew: bool = False
    """Whether rows that are there already are measured again."""


@dataclass(frozen=True)
class Table:
    """Rows under headings, with words below them."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Measured:
    """What a benchmark gives: tables to print, and the files that it wrote."""

    tables: tuple[Table, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Benchmark:
    """One row of the table."""

    module: str
    about: str

    def run(self, folder: Path, asked: Asked, say: Print) -> Measured:
        """Measure.

        Raises:
            InputError: something is asked for that it does not have.
            FileError: a part could not be measured, or nothing can be written.
        """
        return import_module(f"hedgerow.bench.{self.module}").run(folder, asked, say)


BENCHMARKS: Mapping[str, Benchmark] = {
    "scale": Benchmark("scale", "speed and memory by beams, workers, tiles of the world, and processors"),
}


def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark.

    Raises:
        InputError: there is none of that name.
    """
    if name not in BENCHMARKS:
        raise InputError(name, f"there is no such benchmark; there are {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
