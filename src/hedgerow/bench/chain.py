# SPDX-License-Identifier: Apache-2.0
"""Chains: tasks that follow one another, each a row of the journal, and how they are run, or gone on with.

A task may need what an earlier one of its chain made. So a row that is there counts only as long as what it made is
there too, unless nothing behind it is missing. The files of a chain are deleted when all its rows are there.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hedgerow.base.atomic import atomic_file
from hedgerow.bench.benchmark import Print, Size
from hedgerow.bench.journal import Journal, Row, Settings, load_average
from hedgerow.bench.process import measure
from hedgerow.errors import FileError


@dataclass(frozen=True)
class Task:
    """One thing to measure."""

    title: str
    settings: Settings
    """Name its row."""
    step: str
    """What is run, in a process of its own (steps.py)."""
    arguments: Mapping[str, Any]
    makes: Path | None = None
    """What tasks behind it need."""
    threads: int | None = None
    """Of the process, and of each of its workers. None: all cores are used."""


@dataclass(frozen=True)
class Chain:
    """Tasks in their order."""

    part: str
    folder: Path
    """Takes what the tasks make; deleted at the end."""
    tasks: tuple[Task, ...]
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Files that are there before the first task, by name."""

    def of_size(self, size: Size) -> "Chain":
        """Return the same chain with the size in the settings of its rows."""
        tasks = (replace(task, settings={**task.settings, "size": size}) for task in self.tasks)
        return replace(self, tasks=tuple(tasks))

    def missing(self, journal: Journal) -> list[Task]:
        """Return the tasks that have no row yet."""
        return [task for task in self.tasks if journal.find(self.part, task.settings) is None]

    def run(self, journal: Journal, say: Print) -> None:
        """Measure what is missing; say each row.

        Raises:
            FileError: something could not be measured or written.
        """
        missing = self.missing(journal)
        last = self.tasks.index(missing[-1]) + 1 if missing else 0
        if missing:
            self._prepare()
        for task in self.tasks[:last]:
            found = journal.find(self.part, task.settings)
            if found is not None and (task.makes is None or task.makes.exists()):
                continue
            load = load_average()
            values = measure(task.step, task.arguments, threads=task.threads)
            say(f"{task.title}: {in_words(journal.add(self.part, task.settings, values, load))}")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{self.folder}: cannot make this folder ({error.strerror or error})") from error
        for name, text in self.texts.items():
            if not (self.folder / name).exists():  # a scene that is written anew is another scene to what was learned
                with atomic_file(self.folder / name) as temporary:
                    temporary.write_text(text, encoding="utf-8")


def in_words(row: Row) -> str:
    """Say in a line what was found."""
    values = row.values
    said = [f"{values['seconds']:.2f} s"]
    said += [f"{values['processor_s']:.2f} s of the processors"] if "processor_s" in values else []
    said += [f"{rate_mps(row):.2f} M beams/s"] if "beams" in values else []
    said += [f"{values['elements']:,} elements"] if "elements" in values else []
    said += [f"opened in {values['open_s']:.2f} s"] if "open_s" in values else []
    said += [f"workers started in {values['start_s']:.1f} s"] if values.get("start_s") else []
    peaks = [f"{peak:,.0f}" for peak in (values.get("own_mb"), *values.get("worker_mb", ())) if peak is not None]
    said += [f"{' + '.join(peaks)} MB"] if peaks else []
    return ", ".join([*said, f"load {row.load:.1f}"])


def rate_mps(row: Row) -> float:
    """Return how many million beams a second the work was."""
    return row.values["beams"] / row.values["seconds"] / 1e6


def memory_mb(row: Row) -> float:
    """Return the peak of the process, and those of its workers, added up; NaN where the system does not tell [MB]."""
    own = row.values.get("own_mb")
    return float("nan") if own is None else own + sum(row.values.get("worker_mb", ()))
