# SPDX-License-Identifier: Apache-2.0
"""Inputs chosen by coverage: Atheris keeps those that reach new code and changes them further.

Runs as a process of its own, `python guided.py TASK`, because Atheris instruments modules as they are imported and
that slows them down. Each kind has a forked child, as in isolate.py, so that an abort ends the child alone. An input is
one file of the good input and its new content; it is changed by Atheris, or by what suits its format.
"""

import contextlib
import importlib.util
import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuzzing.change import Changes, Seed
    from fuzzing.isolate import Batch, Loop, Try
    from fuzzing.kinds import Kind

INSTRUMENTED = ("hedgerow", "laspy", "pypcd4", "rosbags")
"""Packages in Python whose coverage guides."""
_MAX_BYTES = 65_536
_FLAGS = (
    *["-verbosity=0", "-timeout=3600", "-rss_limit_mb=0", "-detect_leaks=0", "-handle_abrt=0", "-handle_segv=0"],
    *["-handle_bus=0", "-handle_ill=0", "-handle_fpe=0", "-handle_int=0", "-handle_term=0", "-handle_xfsz=0"],
)


def is_there() -> bool:
    """Return whether Atheris is installed."""
    return importlib.util.find_spec("atheris") is not None


def start(kinds: Sequence[str], seconds: float, random_seed: int, folder: Path) -> "subprocess.Popen[bytes]":
    """Start a process that tries kinds for some time in all; `results` reads what it found."""
    folder.mkdir(parents=True)
    task = {"kinds": list(kinds), "seconds": seconds, "seed": random_seed, "folder": str(folder)}
    command = [sys.executable, __file__, json.dumps(task)]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    with (folder / "said").open("wb") as said:  # Atheris names every module
        return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, stderr=said)


def results(folder: Path) -> "list[tuple[str, Batch]]":
    """Return what such a process did: batches with the kinds they are of."""
    files = sorted(folder.glob("batch*"))
    if not files:
        raise RuntimeError(f"Atheris tried nothing: {(folder / 'said').read_text(errors='replace')[-1000:]}")
    return [pickle.loads(each.read_bytes()) for each in files]


def _main(task: Mapping[str, Any]) -> None:
    import atheris

    instrumented = atheris.instrument_imports(include=list(INSTRUMENTED))  # pyright: ignore[reportAttributeAccessIssue]
    with instrumented:
        import hedgerow  # noqa: F401  # first, before the harness imports it
        from fuzzing.isolate import Batch, Child, prepare
        from fuzzing.kinds import BY_NAME
        from fuzzing.verdict import now_s

        kinds = [BY_NAME[name] for name in task["kinds"]]
        folder = Path(task["folder"])
        seeds = prepare(kinds, folder)
    weight = sum(kind.weight for kind in kinds)
    for number, kind in enumerate(kinds):
        end_s = now_s() + task["seconds"] * kind.weight / weight
        attempt = first = 0
        while (left_s := end_s - now_s()) > 0.5:
            loop = _loop(kind, seeds[kind.name], Random(f"{task['seed']}/{kind.name}/{attempt}"), first, folder)
            try:
                batch = Child(kind, seeds[kind.name], loop, first, folder / "slot", left_s).wait()
            except RuntimeError as error:  # of the harness; the next child begins with another seed
                with (folder / "faults").open("a") as file:
                    file.write(f"{error}\n")
                batch = Batch(first)
            (folder / f"batch{number:03}-{attempt:03}").write_bytes(pickle.dumps((kind.name, batch)))
            attempt, first = attempt + 1, first + batch.n_done


def _loop(kind: "Kind", seed: "Seed", rng: Random, first: int, folder: Path) -> "Loop":
    """Return what a child does: Atheris with the corpus of the kind, which earlier children have enlarged."""
    import atheris

    from fuzzing.change import change_file, mend_world

    names = sorted(seed.files)
    corpus = folder / "corpus" / kind.name
    if not corpus.exists():
        corpus.mkdir(parents=True)
        for k, name in enumerate(names):
            (corpus / f"good{k}").write_bytes(bytes([k]) + seed.files[name][: _MAX_BYTES - 1])

    def change(data: bytes, max_size: int, number: int) -> bytes:
        chooser = Random(number)
        k = (data[0] if data else 0) % len(names)
        content = data[1:]
        if chooser.random() < 0.1:
            k = chooser.randrange(len(names))
            content = seed.files[names[k]]
        if chooser.random() < 0.3:
            content = atheris.Mutate(content, max_size - 1)
        else:
            content = change_file(names[k], content, chooser)
        return (bytes([k]) + content)[:max_size]

    def loop(try_one: "Try") -> None:
        n_tried = 0

        def read(data: bytes) -> None:
            nonlocal n_tried
            name = names[(data[0] if data else 0) % len(names)]
            changes: Changes = {name: bytes(data[1:])}
            with contextlib.suppress(Exception):
                mend_world(seed, changes)
            goes_on = try_one(first + n_tried, changes)
            n_tried += 1
            if not goes_on:
                os._exit(0)  # not by exit(), which would end threads of libraries in an order of its own

        def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
            """Atheris would count a fault of the harness as one of the reader."""

            def call(*arguments: Any) -> Any:
                try:
                    return function(*arguments)
                except BaseException:
                    (folder / "slot" / "broken").write_text(traceback.format_exc())
                    os._exit(70)

            return call

        flags = [
            *_FLAGS,
            f"-max_len={_MAX_BYTES}",
            f"-artifact_prefix={folder}/",
            f"-seed={rng.randrange(1, 2**31)}",
            str(corpus),
        ]
        atheris.Setup(["fuzz", *flags], guarded(read), custom_mutator=guarded(change))
        atheris.Fuzz()

    return loop


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
