# SPDX-License-Identifier: Apache-2.0
"""Results of parts on the disk: a journal of what is finished, by which a stopped job goes on.

A result is named by a digest of the work, of the part and of this version of Hedgerow. A job that is run again asks for
the same names and finds what is there; one with other settings, or on another log, asks for other names. Files appear
under their names when they are complete, whoever writes them, so nothing half written is ever found.

Results are pickled. Only classes of Hedgerow, arrays and plain values are read back: a file that somebody else put
there can name no other function.
"""

import hashlib
import io
import pickle
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import hedgerow
from hedgerow.errors import FileError

_PLAIN = frozenset({"set", "frozenset", "complex", "slice", "range", "bytearray"})
_COLLECTIONS = frozenset({"OrderedDict", "defaultdict", "deque"})
_PATHS = frozenset({"Path", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"})
_NUMPY = frozenset(
    {("numpy", "ndarray"), ("numpy", "dtype")}
    | {(f"numpy.{core}.multiarray", name) for core in ("_core", "core") for name in ("_reconstruct", "scalar")}
    | {(f"numpy.{core}.numeric", "_frombuffer") for core in ("_core", "core")}
)


def digest_of(*texts: str | bytes) -> str:
    """Return a name for what these texts say together: 32 letters and digits."""
    total = hashlib.blake2b(digest_size=16)
    for text in (hedgerow.__version__, *texts):
        content = text.encode() if isinstance(text, str) else text
        total.update(len(content).to_bytes(8, "little") + content)
    return total.hexdigest()


class Results:
    """A folder of results by name."""

    def __init__(self, folder: str | Path) -> None:
        """Take a folder; it is made when the first result comes.

        Args:
            folder: on a cluster, one that every worker sees under this path.
        """
        self.folder = Path(folder).absolute()

    def __repr__(self) -> str:
        """Name it without its place: the same job may go on in another folder."""
        return "Results()"

    def path(self, name: str) -> Path:
        """Return where a result is, or will be."""
        return self.folder / name

    def has(self, name: str) -> bool:
        """Tell whether a result is complete."""
        return self.path(name).exists()

    @contextmanager
    def writing(self, name: str) -> Generator[Path]:
        """Give a temporary path; what is written there becomes the result if the block ends well.

        Raises:
            FileError: it cannot be written; says why.
        """
        temporary = self.folder / f".{name}.{secrets.token_hex(4)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            yield temporary
            temporary.replace(self.path(name))
        except OSError as error:
            why = error.strerror or str(error)
            raise FileError(f"{self.folder}: a finished part cannot be kept ({why})") from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def put(self, name: str, value: object) -> None:
        """Keep a result.

        Raises:
            FileError: it cannot be written.
        """
        with self.writing(name) as path:
            path.write_bytes(pickle.dumps(value, protocol=5))

    def get(self, name: str) -> Any:
        """Return a result.

        Raises:
            FileError: it is missing or damaged.
        """
        path = self.path(name)
        try:
            return _Unpickler(io.BytesIO(path.read_bytes())).load()
        except OSError as error:
            raise FileError(f"{path}: a finished part cannot be read ({error.strerror or error})") from error
        except Exception as error:  # whatever a damaged pickle makes of itself
            raise FileError(f"{path}: a finished part is damaged; delete {self.folder} and run again") from error

    def remove(self) -> None:
        """Delete the folder: the job is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


class _Unpickler(pickle.Unpickler):
    """Finds classes of Hedgerow and what arrays and plain values are made with; no other function can be called."""

    def find_class(self, module: str, name: str) -> Any:  # called by pickle alone
        known = (module, name) in _NUMPY or (module == "builtins" and name in _PLAIN)
        known |= module == "collections" and name in _COLLECTIONS
        known |= module in ("pathlib", "pathlib._local") and name in _PATHS
        if known:
            return super().find_class(module, name)
        # A name with dots would lead through a module of ours to whatever that imports.
        if module.partition(".")[0] == "hedgerow" and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is not a class that results have")
