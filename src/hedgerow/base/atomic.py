# SPDX-License-Identifier: Apache-2.0
"""Write a file or a folder completely or not at all.

The work goes to a hidden temporary name beside the target, which is renamed when everything is written. An error, a
full disk or Ctrl-C removes it and leaves what was there before. Only a killed process or a power cut can leave a
temporary, named `.NAME.XXXXXXXX.part`; it can be deleted.
"""

import os
import secrets
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from hedgerow.errors import FileError


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
    with _temporary(path, target) as temporary:
        yield temporary
        if durable:
            _flush(temporary)
        temporary.replace(target)


@contextmanager
def atomic_folder(path: str | Path, *, replaces: Sequence[str], durable: bool = False) -> Generator[Path]:
    """Give a temporary, empty folder to fill; it becomes `path` if the block ends well.

    An old folder is replaced as a whole. That takes two renames; a power cut just between them leaves the old folder
    under the temporary's name with `.old` at the end.

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
    with _temporary(path, target) as temporary:
        temporary.mkdir()
        yield temporary
        if durable:
            for file in sorted(temporary.rglob("*")):
                _flush(file)
        _swap(temporary, target)


@contextmanager
def _temporary(path: str | Path, target: Path) -> Generator[Path]:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
    except OSError as error:
        raise FileError(f"{path}: cannot write ({error.strerror or error})") from error
    finally:
        # After success there is nothing left under this name.
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def require_folder(path: str | Path) -> None:
    """Raise FileError unless the folder that a file or folder is to be written to exists; for long work before it."""
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


def _swap(temporary: Path, target: Path) -> None:
    if not target.exists():
        temporary.rename(target)
        return
    old = temporary.with_name(temporary.name + ".old")
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


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
    target = _target(path) if folder else _file_target(path)
    if folder and target.is_file():
        raise FileError(f"{path}: is a file; give the name of a folder")
    with _temporary(path, target) as temporary:
        temporary.touch()  # permissions alone do not tell: disks are full or read-only, and root is root


def make_folder(path: str | Path) -> None:
    """Make a folder, and those above it, unless it is there.

    Raises:
        FileError: a file is in the way, or the system refuses.
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot make this folder ({error.strerror or error})") from error
