# SPDX-License-Identifier: Apache-2.0
"""Hostile settings files: a good scene or sensor with one value replaced by one that nobody should give.

`changes` makes them from any TOML content, always in the same order; `try_scene` and `try_sensor` do with a file what
the command line does; `outcomes` runs one of them over many files in a child process with limits of memory and time.
"""

import copy
import datetime
import json
import math
import os
import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

VALUES: tuple[Any, ...] = (
    0,
    -1,
    1e-300,
    1e-9,
    2,
    1000,
    1e6,
    1_000_000_000,
    1e9,
    10**18,
    10**400,
    1e308,
    -1e308,
    math.nan,
    math.inf,
    True,
    "",
    "..",
    "$nothing",
    "a\u202eb\nc",
    "x" * 100_000,
    [],
    [0, 0],
    [1e9, 1e9],
    [[[[1]]]] * 3,
    {},
    {"a": {"b": []}},
    {"k" * 100_000: 1},
    datetime.date(2000, 1, 1),
)
"""What a value is replaced by."""


class Outcome(NamedTuple):
    """What became of one file."""

    name: str
    said: str
    """The sentence that refused it; empty if it was taken."""
    fault: str
    """What is wrong with that: a traceback, the limit that was broken, a bad sentence; empty if nothing is."""
    seconds: float


def places(content: Any, place: tuple[int | str, ...] = ()) -> Iterator[tuple[int | str, ...]]:
    """Give the place of every value, tables and lists included."""
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for name, value in entries:
        yield (*place, name)
        yield from places(value, (*place, name))


def changes(content: dict[str, Any], n: int | None = None, seed: int = 28) -> Iterator[tuple[str, str]]:
    """Give the name and the TOML text of changed files: each value replaced by each of VALUES, and left out.

    Args:
        content: a good file.
        n: how many, drawn at random from all. Default: all of them, in order.
        seed: of the draw.
    """
    every = [(place, number) for place in places(content) for number in range(len(VALUES) + 1)]
    chosen = every if n is None else random.Random(seed).sample(every, min(n, len(every)))
    return (_changed(content, place, number) for place, number in chosen)


def _changed(content: dict[str, Any], place: tuple[int | str, ...], number: int) -> tuple[str, str]:
    changed = copy.deepcopy(content)
    here: Any = changed
    for part in place[:-1]:
        here = here[part]
    what = "left out"
    if number == len(VALUES):
        del here[place[-1]]
    else:
        here[place[-1]] = VALUES[number]
        what = repr(VALUES[number])[:30]
    return f"{'.'.join(map(str, place))} = {what}", to_toml(changed)


def to_toml(content: dict[str, Any]) -> str:
    """Write tables and values as TOML, everything below the first level inline."""
    return "\n".join(f"{json.dumps(name)} = {_inline(value)}" for name, value in content.items()) + "\n"


def _inline(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)} = {_inline(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value)
        case datetime.date():
            return value.isoformat()
        case _:
            return repr(value)


def try_scene(path: Path) -> None:
    """Read, check and build a scene."""
    from hedgerow.scenes.site import open_scene

    open_scene(path).build()


def try_sensor(path: Path) -> None:
    """Read a sensor, describe it, and fire a sweep in every way."""
    from hedgerow.sensor import Sensor
    from hedgerow.sensor.describe import details

    sensor = Sensor.load(path)
    details(sensor)
    sensor.sweep(encoder="uniform", cone=True)


def outcomes(
    attempt: Callable[[Path], None],
    files: Iterable[tuple[str, str]],
    folder: Path,
    *,
    most_s: float = 2.0,
    most_bytes: int = 500_000_000,
) -> Iterator[Outcome]:
    """Try files one after the other in child processes; one that dies is followed by another."""
    left = list(files)
    while left:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _run(attempt, left, folder / "hostile.toml", os.fdopen(write, "w"), most_s, most_bytes)
        os.close(write)
        done = 0
        with os.fdopen(read) as lines:
            for line in lines:
                yield Outcome(*json.loads(line))
                done += 1
        _, status = os.waitpid(child, 0)
        if status:
            yield Outcome(left[done][0], "", f"the process died, status {status}", 0.0)
            done += 1
        left = left[done:]


def _run(
    attempt: Callable[[Path], None], files: list[tuple[str, str]], path: Path, out: Any, most_s: float, most_bytes: int
) -> None:
    """Run in the child: never returns."""
    code = 1
    try:
        in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + most_bytes, in_use + most_bytes))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what NumPy prints is looked for by turning it into errors
        for name, text in files:
            path.write_text(text, encoding="utf-8")
            out.write(json.dumps(_outcome(attempt, name, path, most_s)) + "\n")
            out.flush()
        code = 0
    finally:
        os._exit(code)


def _outcome(attempt: Callable[[Path], None], name: str, path: Path, most_s: float) -> Outcome:
    from hedgerow.errors import HedgerowError

    def late(*_: Any) -> None:
        raise TimeoutError(f"took longer than {most_s:g} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, most_s)
    begin, said, fault = time.monotonic(), "", ""
    try:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            attempt(path)
    except HedgerowError as error:
        said = str(error)
        good = path.name in said and said.isprintable() and len(said) <= 500
        fault = "" if good and "memory" not in said else f"a bad sentence: {said}"
    except BaseException as error:
        where = traceback.extract_tb(sys.exc_info()[2])[-1]
        fault = f"{type(error).__name__}: {str(error)[:200]} ({Path(where.filename).name}:{where.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Outcome(name, said, fault, time.monotonic() - begin)
