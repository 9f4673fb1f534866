# SPDX-License-Identifier: Apache-2.0
"""Write a file or a folder completely or not at all.

The work goes to a hidden folder beside the target, `.NAME.XXXXXXXX.part`; what is in it is renamed when everything is
written. An error, a full disk, Ctrl-C or SIGTERM removes it and leaves what was there before. Only a killed process or
a power cut can leave such a folder. The next one that writes beside it removes it: who works in a folder holds a lock
on it, which the system takes away with the process.
"""

import os
import re
import secrets
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from hedgerow.base.interrupt import delay_interrupt
from hedgerow.base.places import is_address, require_reachable
from hedgerow.errors import FileError

if os.name == "posix":
    import fcntl
else:  # no locks there: what a killed process left stays until it is deleted by hand
    fcntl = None

_WORK = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_OLD = "old"


@contextmanager
def atomic_file(path: str | Path, *, durable: bool = False) -> Generator[Path]:
    """Give a temporary path to write to; it becomes `path`, replacing an old file, if the block ends well.

    Args:
        path: the file to make; its folder must exist.
        durable: also wait until the bytes are on the disk.

    Raises:
        FileError: the folder does not exist, `path` is a folder, or the system refuses to write.
    """
    target = _file_target(path)
    with _work_folder(path, target) as work:
        temporary = work / target.name
        yield temporary
        if durable:
            _flush(temporary)
        temporary.replace(target)


@contextmanager
def atomic_folder(path: str | Path, *, replaces: Sequence[str], durable: bool = False) -> Generator[Path]:
    """Give a temporary, empty folder to fill; it becomes `path` if the block ends well.

    An old folder is replaced as a whole. That takes two renames; after a power cut just between them the next one that
    writes beside it brings the old folder back.

    Args:
        path: the folder to make; its parent must exist.
        replaces: name patterns of the files that an old folder may hold. One that holds anything else is refused, so
            that a mistyped path never deletes a person's data.
        durable: also wait until the bytes are on the disk.

    Raises:
        FileError: the parent does not exist, `path` is a file or a folder of other things, or writing fails.
    """
    target = _target(path)
    _require_replaceable(path, target, replaces)
    with _work_folder(path, target) as work:
        temporary = work / target.name
        temporary.mkdir()
        yield temporary
        if durable:
            for file in sorted(temporary.rglob("*")):
                _flush(file)
        _swap(temporary, target, work / _OLD)


@contextmanager
def _work_folder(path: str | Path, target: Path) -> Generator[Path]:
    """Give a locked hidden folder beside the target; it is removed at the end, with all that is still in it."""
    _remove_left_over(target.parent)
    # It has its name before it is made: whenever a signal comes, there is something to remove.
    work, lock = _hidden(target), None
    try:
        while (made := _make_locked(work)) is None:
            work = _hidden(target)
        lock = made[0]
        yield work
    except OSError as error:
        raise FileError(f"{path}: cannot write ({error.strerror or error})") from error
    finally:
        try:
            _remove(work)
        except KeyboardInterrupt:  # perhaps before it began
            _remove(work)
            raise
        finally:
            if lock is not None:
                os.close(lock)


def _remove(work: Path) -> None:
    """Remove a folder; Ctrl-C waits, since rmtree would leave the rest, and can raise an error of its own instead."""
    with delay_interrupt():
        shutil.rmtree(work, ignore_errors=True)


def _hidden(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")


def _make_locked(work: Path) -> tuple[int | None] | None:
    """Make a folder and lock it; None if another took it for left over before it was locked, else its lock, if any."""
    work.mkdir()
    try:
        lock = _lock(work)
    except (BlockingIOError, FileNotFoundError):
        return None
    except OSError:  # a network disk that knows no locks; so nobody will take it for left over
        return (None,)
    if lock is not None and not work.exists():
        os.close(lock)
        return None
    return (lock,)


def _lock(folder: Path) -> int | None:
    """Lock a folder until the file that is returned is closed; None if the system has no locks.

    Raises:
        OSError: another has it (BlockingIOError), it is gone, or this disk knows no locks.
    """
    if fcntl is None:
        return None
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise
    return opened


def _remove_left_over(parent: Path) -> None:
    """Remove the hidden folders of processes that are no more; bring back what one was about to replace."""
    try:
        found = [each for each in parent.iterdir() if _WORK.fullmatch(each.name) and each.is_dir()]
    except OSError:
        return  # what is to be written will say it
    for work in found:
        with suppress(OSError):
            lock = _lock(work)
            if lock is not None:
                _remove_dead(work)
                os.close(lock)


def _remove_dead(work: Path) -> None:
    target = work.with_name(work.name.removesuffix(".part").rpartition(".")[0].removeprefix("."))
    if (work / _OLD).exists() and not target.exists():
        with suppress(OSError):
            (work / _OLD).rename(target)
    if not (work / _OLD).exists() or target.exists():
        _remove(work)


def require_folder(path: str | Path) -> None:
    """Raise FileError unless the folder that a file or folder is to be written to exists; for long work before it."""
    if is_address(path):
        require_reachable(path)
    else:
        _target(path)


def _target(path: str | Path) -> Path:
    # Through a link: what it points to is replaced, not the link.
    target = Path(path).resolve()
    if not target.parent.is_dir():
        raise FileError(f"{path}: the folder {Path(path).parent} does not exist; create it first")
    return target


def _file_target(path: str | Path) -> Path:
    target = _target(path)
    if target.is_dir():
        raise FileError(f"{path}: is a folder; give the name of a file")
    return target


def _require_replaceable(path: str | Path, target: Path, replaces: Sequence[str]) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise FileError(f"{path}: is a file; give the name of a folder")
    for entry in sorted(target.iterdir()):
        if not any(fnmatch(entry.name, pattern) for pattern in replaces):
            raise FileError(f"{path}: the folder holds other things ({entry.name}); choose another name")


def _swap(temporary: Path, target: Path, old: Path) -> None:
    if not target.exists():
        temporary.rename(target)
        return
    try:
        target.rename(old)
        temporary.rename(target)
    except BaseException:  # also a signal between the two, or just behind them
        if not target.exists():
            old.rename(target)
        raise


def _flush(path: Path) -> None:
    if path.is_file():
        with path.open("r+b") as file:  # Windows flushes only what is open for writing
            os.fsync(file.fileno())


def require_place(path: str | Path, *, folder: bool = False) -> None:
    """Refuse before long work what `atomic_file`, or `atomic_folder`, would refuse after it.

    Args:
        path: what is to be made.
        folder: whether that is a folder.

    Raises:
        FileError: the folder above it does not exist, something else is in the way, or the system refuses to write.
    """
    if is_address(path):
        require_reachable(path)
        return
    target = _target(path) if folder else _file_target(path)
    if folder and target.is_file():
        raise FileError(f"{path}: is a file; give the name of a folder")
    with _work_folder(path, target) as work:
        (work / target.name).touch()  # permissions alone do not tell: disks are full or read-only, and root is root


@contextmanager
def output_folder(path: str | Path) -> Generator[None]:
    """Make a folder, and those above it, unless it is there; those made here go again if the block leaves them empty.

    Raises:
        FileError: a file is in the way, or the system refuses.
    """
    folder = Path(path).resolve()
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"{path}: cannot make this folder ({error.strerror or error})") from error
        yield
    finally:
        with suppress(OSError):  # it is not empty, or never was made
            for each in made:
                each.rmdir()
