# SPDX-License-Identifier: Apache-2.0
"""Engines: what runs the parts of a job. `InProcess` runs them here, one after the other, on all threads.

    for sums in engine.map(work, parts):
        total += sums

`work` is called with one part and returns its result. To be run elsewhere, or to be kept, it must be a frozen dataclass
of plain values, since a name is made of its repr: what is large is handed over with `share`.
"""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from time import perf_counter
from types import FunctionType, TracebackType
from typing import Any, Generic, TypeVar

from hedgerow.parallel.kept import keep
from hedgerow.parallel.results import Results, digest_of

Part = TypeVar("Part")
Result = TypeVar("Result")
_T = TypeVar("_T")
_WORTH_KEEPING_S = 0.25
"""What this process does faster, it can do again."""


class Shared(Generic[_T]):
    """A value that all parts of a job need: in memory where it was handed over, in a file that workers read once."""

    def __init__(self, value: _T, digest: str, results: Results | None) -> None:
        """Hand over a value.

        Args:
            value: to be held here.
            digest: names it.
            results: where workers find it; None: it stays here.
        """
        self.digest, self._results = digest, results
        self._here: dict[str, Any] | None = {"": value}

    def __repr__(self) -> str:
        """Name the content."""
        return f"Shared({self.digest})"

    @property
    def value(self) -> _T:
        """The value; a worker reads it once and keeps it."""
        if self._here is not None:
            return self._here[""]
        assert self._results is not None
        results = self._results
        return keep("shared", self.digest, lambda: results.get(f"shared-{self.digest}"))

    def built(self, make: Callable[..., Result], *settings: object) -> Result:
        """Return what `make` builds of the value and some settings, built once in each process."""
        what = f"{make.__module__}.{make.__qualname__}{settings}"
        if self._here is None:
            return keep(what, self.digest, lambda: make(self.value, *settings))
        if what not in self._here:
            self._here[what] = make(self.value, *settings)
        return self._here[what]

    def __getstate__(self) -> dict[str, Any]:
        """Travel without the value."""
        return {"digest": self.digest, "_results": self._results, "_here": None}


class Engine(AbstractContextManager["Engine"], ABC):
    """Runs the parts of jobs; results come in the order of the parts."""

    results: Results | None = None
    """Where finished parts are kept; None: nowhere."""
    is_here: bool = True
    """Whether parts are worked on in this process."""

    @property
    def n_workers(self) -> int:
        """How many parts are worked on at a time."""
        return 1

    @abstractmethod
    def map(
        self, work: Callable[[Part], Result], parts: Iterable[Part], done: Callable[[Part], object] | None = None
    ) -> Iterator[Result]:
        """Give the result of each part, in the order of the parts.

        Args:
            work: called with a part.
            parts: what to do.
            done: called with each part that is finished, in any order.

        Raises:
            HedgerowError: what `work` raised; or a worker was lost again and again, and says what to do.
        """

    @abstractmethod
    def share(self, value: _T) -> Shared[_T]:
        """Hand a value to all parts of the work to come."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of workers."""


class InProcess(Engine):
    """Runs parts here, in turn; keeps what took a while, if it has a place for it."""

    def __init__(self, results: Results | None = None) -> None:
        """Take a place for finished parts. Default: none."""
        self.results = results

    def map(
        self, work: Callable[[Part], Result], parts: Iterable[Part], done: Callable[[Part], object] | None = None
    ) -> Iterator[Result]:
        """Run the parts in turn, each when its result is asked for."""
        for part in parts:
            yield self._result(work, part)
            if done is not None:
                done(part)

    def share(self, value: _T) -> Shared[_T]:
        """Hold the value."""
        # Without a journal nothing needs a name.
        digest = "" if self.results is None else digest_of(pickle.dumps(value, protocol=5))
        return Shared(value, digest, self.results)

    def _result(self, work: Callable[[Part], Result], part: Part) -> Result:
        if self.results is None:
            return work(part)
        name = name_of(work, part)
        if self.results.has(name):
            return self.results.get(name)
        start_s = perf_counter()
        result = work(part)
        if perf_counter() - start_s > _WORTH_KEEPING_S:
            self.results.put(name, result)
        return result


_current: ContextVar[Engine | None] = ContextVar("hedgerow_engine", default=None)


@contextmanager
def using(engine: Engine | None) -> Generator[None]:
    """Let all work within the block that names no engine of its own be done by this one; None: by this process."""
    token = _current.set(engine)
    try:
        yield
    finally:
        _current.reset(token)


def current_engine() -> Engine:
    """Return the engine of the `using` block that this is in, or else this process."""
    return _current.get() or InProcess()


def name_of(work: object, part: object) -> str:
    """Return the name of a result; work and part say in their repr all that it depends on."""
    # The repr of a function says where it lies in memory.
    said = work.__qualname__ if isinstance(work, FunctionType) else repr(work)
    module = work.__module__ if isinstance(work, FunctionType) else type(work).__module__
    return f"part-{digest_of(module, said, repr(part))}"
