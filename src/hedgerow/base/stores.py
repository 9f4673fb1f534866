# SPDX-License-Identifier: Apache-2.0
"""Stores: what stands before the path in an address, such as `s3://bucket`, how it is opened, and what it says.

s3, gs (gcs), abfs and hdfs are opened by pyarrow, other schemes by fsspec, where that is installed. Keys come from the
environment, as pyarrow finds them. An address may carry some (`s3://KEY:SECRET@bucket/...`). They are kept in this
process, beside the store that they open, and are in no text, error or file that comes from here.
"""

# pyarrow's stubs leave parts of its types unknown, and fsspec has none.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

import os
import re
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from hedgerow.errors import FileError, one_line

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

OBJECT_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
"""Where folders are only names, and need not be made."""
_ARROW_SCHEMES = (*OBJECT_SCHEMES, "hdfs", "viewfs")
_S3_OPTIONS = ("region", "scheme", "endpoint_override", "allow_bucket_creation", "allow_bucket_deletion")
_SHOWN = {*_S3_OPTIONS, "retry_limit_seconds", "enable_tls", "blob_storage_authority", "dfs_storage_authority"}
"""Options that are no secret. Whatever else stands behind the `?` is kept like a key."""
_HOST = re.compile(r"[\w.@\-]*(:\d+)?", re.ASCII)
_BUCKET = re.compile(r"[A-Za-z0-9][\w.\-]*", re.ASCII)
# A lost connection is told within seconds: two tries, 3 s each to connect, 5 s each without a byte.
_CONNECT_S, _REQUEST_S, _TRIES = 3.0, 5.0, 2
_LONGEST_REASON = 120
_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_ENDPOINT_URL")
_CHECKSUMS = "AWS_REQUEST_CHECKSUM_CALCULATION"
_DENIED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|SignatureDoesNotMatch|InvalidAccessKeyId|HTTP (status )?40[13]"
    r"|UNAUTHENTICATED|PERMISSION_DENIED|AuthenticationFailed|AuthorizationFailure|credentials",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"NETWORK_CONNECTION|curlCode|timed? ?out|timeout|could ?n.t connect|connection (was )?(refused|reset|closed)"
    r"|REQUEST_TIMEOUT|resolve host|Name or service",
    re.IGNORECASE,
)
_NO_BUCKET = re.compile(
    r"NO_SUCH_BUCKET|NoSuchBucket|bucket .{0,80}does not exist|bucket .{0,80}not found", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Store:
    """A bucket, a container or a machine, and how it is reached; nothing in it is secret."""

    scheme: str
    host: str
    """Name of the bucket, container@account, or machine:port."""
    options: tuple[tuple[str, str], ...] = ()

    def text(self, path: str) -> str:
        """Return the address of a path in it, without keys."""
        options = "&".join(f"{name}={quote(value, safe=':/')}" for name, value in self.options)
        shown = quote(path, safe="/ ~!$&'()*+,;=:@")
        return f"{self.scheme}://{self.host}{'/' if path else ''}{shown}{'?' if options else ''}{options}"

    @property
    def where(self) -> str:
        """What one connects to, for errors."""
        return _endpoint(self) or (self.scheme if self.scheme in OBJECT_SCHEMES else self.host or self.scheme)


@dataclass(frozen=True, slots=True, repr=False)
class _Keys:
    """What opens a store; it has no text."""

    user: str = ""
    password: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def secrets(self) -> list[str]:
        said = [self.user, self.password, *(value for _, value in self.options)]
        return sorted({each for text in said if text for each in (text, unquote(text), quote(text, safe=""))}, key=len)


_KEYS: dict[Store, _Keys] = {}
_OPENED: "dict[tuple[Store, _Keys, tuple[str | None, ...]], tuple[FileSystem, str]]" = {}


def parse_address(text: str) -> tuple[Store, str]:
    """Take an address apart into a store and a path in it; keys that it carries are kept for `open_store`.

    Raises:
        FileError: it cannot be taken apart; nothing of it is repeated that could be a key.
    """
    scheme, _, rest = text.partition(":")
    scheme = scheme.lower()
    # One slash instead of two is what is left of an address that was taken for a path.
    rest = re.sub(r"(?<==)(https?):/(?!/)", r"\1://", rest)
    try:
        parts = urlsplit(f"{scheme}://{rest.lstrip('/')}" if not rest.startswith("///") else f"{scheme}:{rest}")
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise FileError(f"{scheme}: an address that cannot be read; expected {scheme}://NAME/PATH") from None
    login, _, host = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    if scheme != "s3" and user:  # a container, or the name of a person
        host, user = f"{user}@{host}", ""
    if not (_BUCKET if scheme == "s3" else _HOST).fullmatch(host):
        said = "what stands before its first / is no name of a bucket or machine"
        raise FileError(f"{scheme}: wrong address: {said}; write / and @ in a key as %2F and %40")
    path = unquote(parts.path).strip("/")
    if {".", ".."} & set(path.split("/")):
        raise FileError(f"{scheme}://{host}: an address cannot go up (..); write out where it leads")
    shown = tuple(sorted((name, value) for name, value in options.items() if name in _SHOWN))
    store = Store(scheme, host, shown)
    hidden = tuple(sorted((name, value) for name, value in options.items() if name not in _SHOWN))
    keys = _Keys(unquote(user), unquote(password), hidden)
    if keys != _Keys():
        _KEYS[store] = keys
    return store, path


def open_store(store: Store) -> "tuple[FileSystem, str]":
    """Return the file system of a store, and what its paths begin with; it is opened once with the same keys.

    Raises:
        FileError: a scheme that nobody knows, a wrong option, or no connection.
    """
    keys = _KEYS.get(store, _Keys())
    way = store, keys, tuple(os.environ.get(name) for name in _ENVIRONMENT)
    if way not in _OPENED:
        try:
            if store.scheme == "s3":
                opened = _open_s3(store, keys)
            elif store.scheme in _ARROW_SCHEMES:
                opened = _open_arrow(store, keys)
            else:
                opened = _open_fsspec(store, keys)
        except (OSError, ValueError, TypeError, NotImplementedError, ImportError) as error:
            raise store_error(store, store.text(""), error) from None
        _OPENED[way] = opened
    return _OPENED[way]


def _open_s3(store: Store, keys: _Keys) -> "tuple[FileSystem, str]":
    from pyarrow import fs

    for name, _ in keys.options:
        known = ", ".join(_S3_OPTIONS)
        raise FileError(f"{store.text('')}: has an option that is not known ({name[:40]}); there are {known}")
    options = dict(store.options)
    endpoint = _endpoint(store)
    secure, _, machine = endpoint.rpartition("://")
    region = options.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        region = "us-east-1" if endpoint else fs.resolve_s3_region(store.host)
    with _plain_checksums() if endpoint else nullcontext():
        opened = fs.S3FileSystem(
            access_key=keys.user or None,
            secret_key=keys.password or None,
            region=region,
            scheme="http" if (options.get("scheme") or secure) == "http" else "https",
            endpoint_override=machine or None,
            connect_timeout=_CONNECT_S,
            request_timeout=_REQUEST_S,
            allow_delayed_open=True,  # pyright: ignore[reportCallIssue]  # a small object is one request, not three
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
            allow_bucket_creation=options.get("allow_bucket_creation", "").lower() in ("true", "1"),
            allow_bucket_deletion=options.get("allow_bucket_deletion", "").lower() in ("true", "1"),
        )
    return opened, store.host


@contextmanager
def _plain_checksums() -> Generator[None]:
    """Have Amazon's client send objects with their length ahead, unless the environment says otherwise.

    It sends them in chunks with a checksum behind, which servers of others refuse (MissingContentLength); only its
    environment changes that.
    """
    if _CHECKSUMS in os.environ:
        yield
        return
    os.environ[_CHECKSUMS] = "when_required"
    try:
        yield
    finally:
        os.environ.pop(_CHECKSUMS, None)


def _endpoint(store: Store) -> str:
    """Return where an S3 service is, if that is not Amazon's; the environment says it as it does to pyarrow."""
    if store.scheme != "s3":
        return ""
    said = dict(store.options).get("endpoint_override")
    said = said or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    return said.rstrip("/")


def _full_uri(store: Store, keys: _Keys) -> str:
    """Return the address of the store with its keys, for who opens it alone."""
    user, at, host = store.host.rpartition("@")
    login = f"{user}:{quote(keys.password, safe='')}@" if keys.password else f"{user}{at}"
    options = "&".join(f"{name}={quote(value, safe=':/')}" for name, value in (*store.options, *keys.options))
    return f"{store.scheme}://{login}{host}{'/?' if options else ''}{options}"


def _open_arrow(store: Store, keys: _Keys) -> "tuple[FileSystem, str]":
    from pyarrow import fs

    opened, root = fs.FileSystem.from_uri(_full_uri(store, keys))
    return opened, root.rstrip("/")


def _open_fsspec(store: Store, keys: _Keys) -> "tuple[FileSystem, str]":
    known = f"known are {', '.join(_ARROW_SCHEMES)}"
    try:
        import fsspec
        from fsspec.core import url_to_fs
    except ImportError:
        said = f"there is no scheme '{store.scheme}' without fsspec; {known}; for others: pip install fsspec"
        raise FileError(f"{store.text('')}: {said}") from None
    if store.scheme not in fsspec.available_protocols():
        raise FileError(f"{store.text('')}: there is no scheme '{store.scheme}'; {known}, and those of fsspec")
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    found: Any = url_to_fs(_full_uri(store, keys))
    handler: Any = FSSpecHandler  # abstract, by its stubs
    return PyFileSystem(handler(found[0])), str(found[1]).rstrip("/")


def store_error(store: Store, place: str, error: BaseException, doing: str = "reached") -> FileError:
    """Say in one sentence, without keys, why a store did not do what it was asked.

    Args:
        store: which.
        place: what was asked for, as it is shown.
        error: what was said.
        doing: what could not be done.
    """
    kept = told_fault(store, place, error)
    if kept is not None:
        return kept
    return FileError(f"{place}: cannot be {doing} ({_reason(store, error)})")


def told_fault(store: Store, place: str, error: BaseException) -> FileError | None:
    """As `store_error`, but None unless the store or the way to it is at fault, not what lies there."""
    if isinstance(error, FileError):
        return error
    said = str(error)
    if _NO_BUCKET.search(said):
        return FileError(f"{place}: there is no bucket {store.host}; make it first, or mend the address")
    if _LOST.search(said):
        return FileError(
            f"{place}: no connection to {store.where}, or it was lost; is the address right, and is it up?"
        )
    if isinstance(error, PermissionError) or _DENIED.search(said):
        names = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" if store.scheme == "s3" else "its credentials"
        return FileError(f"{place}: access denied by {store.where}; check {names}, and what they may do there")
    return None


def _reason(store: Store, error: BaseException) -> str:
    said = str(error) or type(error).__name__
    for secret in reversed(_KEYS.get(store, _Keys()).secrets()):
        said = said.replace(secret, "***")
    return one_line(said, _LONGEST_REASON)
