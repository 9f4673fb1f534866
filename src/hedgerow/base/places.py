# SPDX-License-Identifier: Apache-2.0
"""Places: where a log or a world lies, a path on this machine or an address such as `s3://bucket/site.world`.

`as_place` returns a path as it is, and an address as an `Address`, which has those methods of pathlib.Path that readers
and writers of Parquet logs and worlds use. An address that was taken for a path (`s3:/bucket/site.world`) is known
again, so that the command line needs no type of its own.

    place = as_place("s3://bucket/site.world?region=eu-central-1")
    (place / "world.toml").is_file()

Nothing can be renamed there. An object appears whole, when its last byte is sent; of several, one is written last and
tells by being there that all are.
"""

# pyarrow's stubs leave parts of its types unknown.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import re
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hedgerow.base.stores import OBJECT_SCHEMES, Store, open_store, parse_address, store_error, told_fault
from hedgerow.errors import FileError, HedgerowError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileInfo, FileSystem

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/+")  # two letters at least: one is a drive of Windows
_COPY_BYTES = 8 << 20


class PlaceStat(NamedTuple):
    """Size and time of a file, under the names of `os.stat_result`."""

    st_size: int
    st_mtime_ns: int


class Address:
    """A file or folder in a store; its text has no keys.

    Where the store is at fault, or the way to it, every method raises FileError, one sentence. What is not there raises
    FileNotFoundError, as with paths.
    """

    __slots__ = ("_info", "_path", "store")

    def __init__(self, store: Store, path: str, info: "FileInfo | None" = None) -> None:
        """Name a path in a store; `info` is what a list said about it."""
        self.store = store
        self._path = path
        self._info = info

    def __str__(self) -> str:
        """Return the address, without keys."""
        return self.store.text(self._path)

    def __repr__(self) -> str:
        """Return the address, without keys."""
        return f"Address({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        """Tell whether two addresses are the same."""
        return isinstance(other, Address) and (self.store, self._path) == (other.store, other._path)

    def __lt__(self, other: "Address") -> bool:
        """Sort by path."""
        return self._path < other._path

    def __hash__(self) -> int:
        """Hash."""
        return hash((self.store, self._path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process without keys: there the environment has them."""
        return Address, (self.store, self._path)

    def __truediv__(self, name: str) -> "Address":
        """Name something below it."""
        return Address(self.store, f"{self._path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self._path).name

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return PurePosixPath(self._path).stem

    @property
    def suffix(self) -> str:
        """The suffix, with its dot."""
        return PurePosixPath(self._path).suffix

    @property
    def parent(self) -> "Address":
        """The folder that it lies in."""
        return Address(self.store, self._path.rpartition("/")[0])

    def absolute(self) -> "Address":
        """Return itself."""
        return self

    def resolve(self) -> "Address":
        """Return itself."""
        return self

    def exists(self) -> bool:
        """Tell whether there is something."""
        from pyarrow.fs import FileType

        return self._found().type != FileType.NotFound

    def is_file(self) -> bool:
        """Tell whether it is an object."""
        return self._found().is_file

    def is_dir(self) -> bool:
        """Tell whether it is a folder: something lies below it."""
        from pyarrow.fs import FileType

        return self._found().type == FileType.Directory

    def stat(self) -> PlaceStat:
        """Return its size and time. Raises FileNotFoundError."""
        found = self._found()
        if not found.is_file:
            raise FileNotFoundError(str(self))
        return PlaceStat(found.size or 0, found.mtime_ns or 0)

    def iterdir(self) -> "Iterator[Address]":
        """Give what lies in a folder."""
        return iter(self._listed(recursive=False))

    def glob(self, pattern: str) -> "Iterator[Address]":
        """Give what matches a pattern, of which the last part alone may have wildcards."""
        folder, _, name = pattern.rpartition("/")
        within = self / folder if folder else self
        return (each for each in within.iterdir() if fnmatch(each.name, name))

    def rglob(self, pattern: str) -> "Iterator[Address]":
        """Give what lies below a folder, at any depth, and has such a name; one list, however many there are."""
        return (each for each in self._listed(recursive=True) if fnmatch(each.name, pattern))

    def relative_to(self, folder: "Address") -> str:
        """Return the path from a folder to this."""
        return self._path.removeprefix(folder._path).strip("/")

    def open(self, mode: str = "rb") -> "pa.NativeFile":
        """Open it to read any part of it; the file is Arrow's. Raises FileNotFoundError."""
        if mode != "rb":
            raise ValueError(f"mode {mode}: an address is read in binary, and written as a whole")
        with self._asking("read"):
            system, path = self._system()
            return system.open_input_file(path)

    def read_buffer(self) -> "pa.Buffer":
        """Read it into memory that is Arrow's own (world/store/encoded.py says why). Raises FileNotFoundError."""
        import pyarrow as pa

        with self._asking("read"), self.open() as file:
            content = pa.allocate_buffer(file.size())
            view, n_read = memoryview(content), 0
            while n_read < len(view) and (n := file.readinto(view[n_read:])):
                n_read += n
        return content.slice(0, n_read)

    def read_bytes(self) -> bytes:
        """Read it. Raises FileNotFoundError."""
        return self.read_buffer().to_pybytes()

    def write_bytes(self, content: bytes) -> None:
        """Write an object; it appears when all is there."""
        with self._asking("written"), self._sending() as stream:
            stream.write(content)

    def write_text(self, text: str, encoding: str = "utf-8", errors: str = "strict") -> None:
        """Write an object; it appears when all is there."""
        self.write_bytes(text.encode(encoding, errors))

    def send(self, file: Path) -> None:
        """Write an object with the content of a file on this machine, of any size."""
        with file.open("rb") as content, self._asking("written"), self._sending() as stream:
            while chunk := content.read(_COPY_BYTES):
                stream.write(chunk)

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: folders are there as soon as something lies in them."""

    def unlink(self) -> None:
        """Delete an object, if it is there."""
        self._info = None
        with self._asking("deleted"):
            system, path = self._system()
            try:
                system.delete_file(path)
            except OSError:
                # Arrow makes the folder above anew, as an empty object, which not every store lets it.
                if self.is_file():
                    raise

    def clear(self) -> None:
        """Delete all that lies below it, if there is anything."""
        self._info = None
        with self._asking("deleted"):
            system, path = self._system()
            try:
                system.delete_dir(path)
            except OSError:
                if any(each.is_file() for each in self.rglob("*")):
                    raise

    def fault(self, error: BaseException) -> FileError | None:
        """Return the sentence of an error, if the store or the way to it is at fault; else None."""
        return told_fault(self.store, str(self), error)

    def _system(self) -> "tuple[FileSystem, str]":
        system, root = open_store(self.store)
        return system, f"{root}/{self._path}" if self._path else root

    def _found(self) -> "FileInfo":
        if self._info is not None:
            return self._info
        with self._asking("read"):
            system, path = self._system()
            return system.get_file_info(path)

    def _listed(self, *, recursive: bool) -> "list[Address]":
        from pyarrow.fs import FileSelector

        with self._asking("read"):
            system, path = self._system()
            found = system.get_file_info(FileSelector(path, allow_not_found=True, recursive=recursive))
        names = ((each.path.removeprefix(path).strip("/"), each) for each in found)
        return sorted(Address(self.store, f"{self._path}/{name}".strip("/"), each) for name, each in names if name)

    @contextmanager
    def _sending(self) -> "Generator[pa.NativeFile]":
        system, path = self._system()
        if self.store.scheme not in OBJECT_SCHEMES:
            system.create_dir(path.rpartition("/")[0], recursive=True)
        with system.open_output_stream(path) as stream:
            yield stream
        self._info = None

    @contextmanager
    def _asking(self, doing: str) -> Generator[None]:
        import pyarrow as pa

        try:
            yield
        except (HedgerowError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and (told := self.fault(error)) is not None:
                raise told from None  # no bucket
            raise
        except (pa.ArrowException, OSError, ValueError, NotImplementedError) as error:
            raise store_error(self.store, str(self), error, doing) from None


def is_address(path: object) -> bool:
    """Tell whether this is an address, or a text or path that was made of one."""
    if isinstance(path, Address):
        return True
    if not isinstance(path, str | Path):
        return False
    found = _ADDRESS.match(str(path))
    # A folder here may be called so, if nobody wrote two slashes.
    return found is not None and (found[0].endswith("//") or not Path(f"{found[1]}:").exists())


def as_place(path: object, name: str = "path") -> Path:
    """Return a path, or an address as an `Address`.

    Args:
        path: a text, a path or an address.
        name: of the argument, for the error.

    Returns:
        A Path, or an Address, which is declared one since it does for readers and writers what a Path does.

    Raises:
        InputError: neither a text nor a path.
        FileError: an address that cannot be read.
    """
    if isinstance(path, Address):
        return cast("Path", path)
    if not is_address(path) or "\0" in str(path):
        from hedgerow.base.arguments import as_path  # it loads numpy, and --help comes by here

        return as_path(name, path)
    if str(path).lower().startswith("file:"):
        return Path(re.sub(r"^[A-Za-z]+:/+", "/", str(path)))
    return cast("Path", Address(*parse_address(str(path))))


def require_reachable(path: object) -> None:
    """Raise FileError unless the store of an address answers, and lets us look; for long work before writing to it."""
    as_place(path).exists()


@contextmanager
def replaced_folder(address: Address, own: re.Pattern[str], mark: str) -> Generator[Address]:
    """Give an address to write objects below, one of which, the mark, is written last by the caller.

    What was there goes before the first is written, the mark first of all: at no time does a folder that has its mark
    lack anything. After an error what was written goes, as far as the store can still be reached. What a killed process
    leaves is replaced by the next one that writes there.

    Args:
        address: the folder.
        own: paths of the objects that an old folder may hold. One that holds anything else is refused.
        mark: the object that tells that all are there.

    Raises:
        FileError: the folder holds other things, or the store refuses.
    """
    old = _require_replaceable(address, own)
    if address / mark in old:
        (address / mark).unlink()
    # Nothing is deleted where nothing is: for some servers that is no small thing (docs/addresses.md).
    if old:
        address.clear()
    try:
        yield address
    except BaseException:
        with suppress(HedgerowError):
            address.clear()
        raise


class Upload:
    """Files that are made here, in a temporary folder, and sent to an address one by one."""

    def __init__(self, address: Address, here: Path, first: str, old: "list[Address]") -> None:
        """Prepare; see `uploading`. Where nothing is yet, an empty object shows at once whether one may write there."""
        self.here = here
        self._address = address
        self._is_folder = bool(first)
        self._old = old
        self._is_ours = not old
        if not old:
            (address / first if first else address).write_bytes(b"")

    def send(self, file: Path) -> None:
        """Send a file, and delete it here; before the first, an old folder goes."""
        if self._is_folder and not self._is_ours:
            for old in sorted(self._old, reverse=True):  # the last part first: it is what tells the end
                old.unlink()
        self._is_ours = True
        (self._address / file.name if self._is_folder else self._address).send(file)
        file.unlink()

    def take_back(self) -> None:
        """Delete what was sent, as far as the store can still be reached; what was there before stays."""
        with suppress(HedgerowError):
            if self._is_ours and self._is_folder:
                self._address.clear()
            elif self._is_ours:
                self._address.unlink()


@contextmanager
def uploading(address: Address, first: str = "", own: re.Pattern[str] | None = None) -> Generator[Upload]:
    """Give an upload to an address; what was sent is deleted if the block does not end well.

    Args:
        address: of a folder, or of a file.
        first: name of the first file of a folder. Default: the address is that of a file.
        own: paths of the files that an old folder may hold.

    Raises:
        FileError: something else is there, or the store refuses to write.
    """
    if own is not None:
        old = _require_replaceable(address, own)
    elif address.is_dir():
        raise FileError(f"{address}: is a folder; give the name of a file")
    else:
        old = [address] if address.exists() else []
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as here:
        upload = Upload(address, Path(here), first, old)
        try:
            yield upload
        except BaseException as error:
            upload.take_back()
            if isinstance(error, OSError) and not isinstance(error, HedgerowError):
                said = f"cannot write to the temporary folder {here} ({error.strerror or error})"
                raise FileError(f"{address}: {said}") from error
            raise


def _require_replaceable(address: Address, own: re.Pattern[str]) -> list[Address]:
    """Return the objects of an old folder; refuse one that holds anything else."""
    if address.is_file():
        raise FileError(f"{address}: is a file; give the name of a folder")
    old = [each for each in address.rglob("*") if each.is_file()]
    for each in old:
        if not own.fullmatch(each.relative_to(address)):
            said = f"the folder holds other things ({each.relative_to(address)}); choose another name"
            raise FileError(f"{address}: {said}")
    return old
