# SPDX-License-Identifier: Apache-2.0
"""Workers: parts of a job on several processes of this machine, or on a Dask cluster.

Every part is one task. It carries paths and settings, writes its result into the folder of results and returns its
name, so nothing large travels, and what is finished outlives the worker that did it. A part whose worker dies is given
to another one by Dask; one that ends several workers stops the job. All that was finished is kept: the same command
goes on where it was.

Needs the package distributed (pip install 'hedgerow[cluster]').
"""

import logging
import os
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from hedgerow.errors import FileError, HedgerowError, InputError, one_line
from hedgerow.parallel.engine import Engine, Shared, name_of
from hedgerow.parallel.results import Results, digest_of

Part = TypeVar("Part")
Result = TypeVar("Result")
_T = TypeVar("_T")
_MOST_WAITING = 10_000
_LOST_WORKERS = 2
"""How often a part may end its worker and be given to another one."""
_CONNECT_S = 20


class Workers(Engine):
    """Runs parts on Dask workers.

    with Workers(2, "site.world.parts") as engine:
        world = hr.learn("drive.parquet", engine=engine)
    """

    is_here = False

    def __init__(
        self,
        workers: int = 0,
        folder: str | Path | None = None,
        *,
        scheduler: str | None = None,
        memory: int | None = None,
    ) -> None:
        """Start a cluster on this machine, or connect to one.

        Args:
            workers: processes to start here; the cores of the machine are shared out among them, unless
                HEDGEROW_THREADS says how many threads each has.
            folder: where finished parts are kept; on a cluster, a folder that all workers see. Default: a temporary
                one, which is deleted at the end.
            scheduler: address of a running Dask scheduler, instead of `workers`.
            memory: bytes that each process may take; one that takes more is started anew. Default: an equal share of
                what the machine has.

        Raises:
            InputError: neither or both of workers and scheduler are given, or Dask is not installed.
            FileError: the scheduler does not answer.
        """
        if (workers > 0) == (scheduler is not None):
            raise InputError("workers, scheduler", "give one of them: how many workers to start here, or an address")
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="hedgerow-parts-")
            folder = self._temporary.name
        self.results = Results(folder)
        self._distributed = _package()
        self._cluster: Any = None
        self._closed = False
        try:
            if scheduler is None:
                self._cluster = self._start(workers, memory)
            self._client = self._connect(scheduler)
        except BaseException:
            self._close()
            raise

    @property
    def n_workers(self) -> int:
        """How many workers there are now."""
        return max(1, len(self._client.scheduler_info(n_workers=-1)["workers"]))

    def map(
        self, work: Callable[[Part], Result], parts: Iterable[Part], done: Callable[[Part], object] | None = None
    ) -> Iterator[Result]:
        """Hand out parts to whoever is free; give the results in order.

        Raises:
            HedgerowError: what `work` raised.
            FileError: workers or the scheduler were lost; says what to do.
        """
        assert self.results is not None
        for name in self.run(work, parts, done):
            yield self.results.get(name)

    def run(
        self, work: Callable[[Part], object], parts: Iterable[Part], done: Callable[[Part], object] | None = None
    ) -> Iterator[str]:
        """Run the parts; give the names of their results, in the order of the parts, each when it is there."""
        job = _Job(work, iter(parts), done)
        try:
            while True:
                self._hand_out(job)
                if not job.order:
                    return
                if job.order[0] in job.finished:
                    name = job.order.popleft()
                    job.finished.discard(name)
                    yield name
                else:
                    self._wait(job)
        finally:
            for future in job.running:
                with suppress(Exception):  # the scheduler may be gone
                    future.cancel(force=True)

    def share(self, value: _T) -> Shared[_T]:
        """Write the value into the folder of results; each worker reads it once."""
        import pickle

        assert self.results is not None
        content = pickle.dumps(value, protocol=5)
        digest = digest_of(content)
        if not self.results.has(f"shared-{digest}"):
            with self.results.writing(f"shared-{digest}") as path:
                path.write_bytes(content)
        return Shared(value, digest, self.results)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers that were started here; let go of the others."""
        self._close()

    def _hand_out(self, job: "_Job") -> None:
        """Hand out parts until every worker has one; those whose results are there count as done."""
        assert self.results is not None
        most = self.n_workers  # one each: of parts that wait with a worker that dies, Dask blames all
        # Results that wait for an earlier part are on the disk: they may be many, but not without end.
        while len(job.running) < most and len(job.order) < _MOST_WAITING:
            part = next(job.parts, None)
            if part is None:
                return
            name = name_of(job.work, part)
            job.order.append(name)
            if self.results.has(name):
                job.end(part, name)
                continue
            # Names of tasks differ from run to run: a scheduler that lives on remembers the errors of earlier ones.
            future = self._client.submit(_Task(job.work, part, name, self.results), pure=False, retries=0)
            job.running[future] = part, name

    def _wait(self, job: "_Job") -> None:
        """Wait until at least one task has ended, and note what came of it.

        Raises:
            HedgerowError: what a part refused; or workers or the scheduler were lost.
        """
        try:
            with self._client.as_current():
                ended = self._distributed.wait(list(job.running), return_when="FIRST_COMPLETED").done
        except (OSError, RuntimeError, self._distributed.CancelledError) as error:
            raise self._lost(job) from error
        for future in ended:
            part, name = job.running.pop(future)
            self._require_done(future, part, job)
            job.end(part, name)

    def _require_done(self, future: Any, part: object, job: "_Job") -> None:
        """Raise what came of a part that has no result."""
        if future.status in ("cancelled", "lost"):
            raise self._lost(job)
        try:
            kind, field, said = future.result()
        except self._distributed.scheduler.KilledWorker as error:
            raise FileError(
                f"{part}: its worker ended {1 + error.allowed_failures} times, most likely for want of memory; give "
                f"fewer workers or more memory each, and run the same command again: {job.n_done} parts are finished "
                "and kept"
            ) from error
        except (OSError, self._distributed.CancelledError) as error:
            raise self._lost(job) from error
        except RuntimeError as error:
            if "deserialization" not in str(error):
                raise
            said = "the cluster cannot read the task; install the same Hedgerow and Python on the scheduler and workers"
            raise FileError(said) from error
        if kind == "input":
            raise InputError(field, said)
        if kind == "file":
            raise FileError(said)

    def _lost(self, job: "_Job") -> FileError:
        return FileError(
            "the Dask scheduler was lost; start it again and run the same command: "
            f"{job.n_done} parts are finished and kept"
        )

    def _start(self, workers: int, memory: int | None) -> Any:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        said = os.environ.get("HEDGEROW_THREADS", "")
        threads = (int(said) if said.isdigit() else 0) or max(1, cores // workers)
        dask: Any = import_module("dask")
        settings: dict[str, Any] = {
            "distributed.scheduler.allowed-failures": _LOST_WORKERS,
            "distributed.admin.log-format": "%(message)s",
            "distributed.worker.memory.target": False,  # results go to the disk; there is nothing to spill
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            # Dask has its workers hand memory back at every chance, which costs a fifth of their time in page faults.
            "distributed.nanny.pre-spawn-environ": {},
        }
        dask.config.set(settings)
        for name in ("distributed", "distributed.nanny", "distributed.worker", "distributed.scheduler"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        return self._distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,  # each part uses the threads of its worker
            memory_limit="auto" if memory is None else memory,
            dashboard_address="127.0.0.1:0",  # a free port: several jobs may run side by side
            silence_logs=logging.CRITICAL,
            preload=["hedgerow.parallel.worker_start"],
            env={
                "HEDGEROW_THREADS": str(threads),
                "OMP_NUM_THREADS": str(threads),
                "OPENBLAS_NUM_THREADS": str(threads),
            },
        )

    def _connect(self, scheduler: str | None) -> Any:
        try:
            return self._distributed.Client(self._cluster or scheduler, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise FileError(
                f"{scheduler}: no Dask scheduler answers there ({one_line(str(error), 120)}); start one with: "
                "dask scheduler"
            ) from error

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for each in (getattr(self, "_client", None), self._cluster):
            if each is not None:
                with suppress(Exception):  # whatever is left of a cluster that was lost
                    each.close(timeout=5)
        if self._temporary is not None:
            self._temporary.cleanup()


@dataclass(slots=True, eq=False)
class _Job:
    """Parts of one `run`: to be handed out, running, and finished."""

    work: Callable[[Any], object]
    parts: Iterator[Any]
    done: Callable[[Any], object] | None
    order: deque[str] = field(default_factory=deque[str])
    """Names of the results of parts that were handed out, and not given yet."""
    running: dict[Any, tuple[Any, str]] = field(default_factory=dict[Any, tuple[Any, str]])
    """Parts and names, by future."""
    finished: set[str] = field(default_factory=set[str])
    n_done: int = 0

    def end(self, part: object, name: str) -> None:
        """Note that a part is finished."""
        self.finished.add(name)
        self.n_done += 1
        if self.done is not None:
            self.done(part)


@dataclass(frozen=True, slots=True)
class _Task:
    """What a worker does with one part. Errors come back as texts: classes of other versions do not travel."""

    work: Callable[[Any], object]
    part: Any
    name: str
    results: Results

    def __call__(self) -> tuple[str, str, str]:
        """Work on the part, and keep the result."""
        try:
            if not self.results.has(self.name):
                self.results.put(self.name, self.work(self.part))
        except InputError as error:
            return "input", error.field, error.said
        except HedgerowError as error:
            return "file", "", str(error)
        return "done", self.name, ""


def _package() -> Any:
    try:
        return import_module("distributed")
    except ModuleNotFoundError:
        raise InputError(
            "workers",
            "needs the package distributed, which is not installed; install it with: pip install 'hedgerow[cluster]'",
        ) from None
