# SPDX-License-Identifier: Apache-2.0
"""Inputs that showed a finding: made smaller, kept as files, and read again.

A kept input is `FOLDER/KIND/NAME`: a file, or a folder where the kind has several. tests/io/test_fuzz.py reads all that
lie in tests/data/fuzz.
"""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fuzzing.change import Changes, Seed
from fuzzing.isolate import run_all
from fuzzing.kinds import Kind
from fuzzing.seeds import read_seed
from fuzzing.verdict import Finding, now_s

SHRINK_S = 15.0
"""Time to make one input smaller."""
_AT_ONCE = 24


def shrink(
    kind: Kind, seed: Seed, changes: Changes, finding: Finding, folder: Path, limit_s: float = SHRINK_S
) -> Changes | None:
    """Make an input smaller that still shows a finding.

    Returns:
        The smaller one; None if even the input itself does not show it again.
    """
    end_s = now_s() + limit_s

    def shows(candidates: list[Changes]) -> int | None:
        found = run_all(kind, seed, candidates, folder)
        same = [any((each.what, each.where) == (finding.what, finding.where) for each in row) for row in found]
        return same.index(True) if any(same) else None

    if shows([changes]) is None:
        return None
    smaller = True
    while smaller and now_s() < end_s:
        smaller = False
        for candidates in _candidates(seed, changes):
            if now_s() > end_s:
                break
            if (which := shows(candidates)) is not None:
                changes, smaller = candidates[which], True
                break
    return changes


def _candidates(seed: Seed, changes: Changes) -> Iterator[list[Changes]]:
    """Give smaller inputs, a few at a time, those that would save most first."""
    if len(changes) > 1:
        yield [{other: data for other, data in changes.items() if other != name} for name in changes]
    for name, data in changes.items():
        if not data:
            continue
        length = len(data) // 2
        while length >= max(1, len(data) // 512):
            starts = range(0, len(data), length)
            cut = [changes | {name: data[:at] + data[at + length :]} for at in starts]
            for k in range(0, len(cut), _AT_ONCE):
                yield cut[k : k + _AT_ONCE]
            length //= 2
        good = seed.files.get(name, b"")
        differs = [at for at in range(min(len(good), len(data))) if good[at] != data[at]]
        if 1 < len(differs) <= 4 * _AT_ONCE and len(good) == len(data):
            yield [changes | {name: data[:at] + good[at : at + 1] + data[at + 1 :]} for at in differs]


def keep(kind: Kind, seed: Seed, changes: Changes, finding: Finding, folder: Path) -> Path:
    """Write an input below a folder; return where."""
    files = {name: data for name, data in {**seed.files, **changes}.items() if data is not None}
    digest = hashlib.sha256(f"{finding.what} {finding.where}".encode()).hexdigest()[:8]
    path = folder / kind.name / f"{finding.what}-{digest}"
    if len(seed.files) == 1 and seed.is_file:
        path = path.with_suffix(PurePosixPath(seed.opened).suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files.get(seed.opened, b""))
        return path
    shutil.rmtree(path, ignore_errors=True)
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def kept(path: Path, seed: Seed) -> Changes:
    """Return a kept input as changes of the good one."""
    if path.is_file():
        return {seed.opened: path.read_bytes()}
    found: Changes = dict.fromkeys(seed.files)
    return found | read_seed(path)


def kept_below(path: Path, kinds: dict[str, Kind]) -> list[tuple[Kind, Path]]:
    """Return the kept inputs at a path: one of them, those of a kind, or all."""
    if path.parent.name in kinds:
        return [(kinds[path.parent.name], path)]
    if path.name in kinds and path.is_dir():
        return [(kinds[path.name], each) for each in sorted(path.iterdir())]
    return [pair for each in sorted(path.iterdir()) if each.is_dir() for pair in kept_below(each, kinds)]
