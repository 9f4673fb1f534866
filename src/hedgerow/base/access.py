# SPDX-License-Identifier: Apache-2.0
"""Access: whom a server of ours lets in, decided by the head of the first HTTP request.

Browsers let any web page open a WebSocket to this machine, and say in `Origin` which page it is. A page can also give
its own name the address of this machine (DNS rebinding); `Host` then has the name of the page. So both are checked.
Programs send no `Origin` and need not. Whoever listens beyond this machine asks for a token as well: in the address
(`?token=`), as `Authorization: Bearer`, or as the cookie that a browser gets for an address with a token.
"""

import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

from hedgerow.errors import InputError

LOOPBACK = "127.0.0.1"
FOXGLOVE_ORIGINS = ("https://app.foxglove.dev", "https://studio.foxglove.dev", "file://")
"""Pages of the Foxglove app. Desktop programs (Foxglove, Lichtblick) are file://, which no page in a browser can be."""
MIN_TOKEN = 16
_MAX_SAID = 80  # characters of what a stranger said that are repeated
_TOKEN = re.compile(rf"[A-Za-z0-9._~-]{{{MIN_TOKEN},200}}")
_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(\[[0-9a-f:.]+\]|[a-z0-9._-]*)(:[0-9]{1,5})?")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_ONCE = ("host", "origin", "authorization", "upgrade")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Refusal(Exception):
    """Somebody is not let in."""

    def __init__(self, status: int, sentence: str, origin: str = "") -> None:
        """Say it by the status of HTTP and in words.

        Args:
            status: for example 403.
            sentence: what is wrong and what to do.
            origin: the page that was refused, if that is why.
        """
        super().__init__(sentence)
        self.status, self.sentence, self.origin = status, sentence, origin


@dataclass(frozen=True, slots=True)
class Head:
    """The head of an HTTP request."""

    target: str
    """Path and query."""
    headers: dict[str, str]
    """Values by name in lower case; of a repeated one the last."""

    @property
    def upgrades(self) -> bool:
        """Whether a WebSocket is asked for."""
        return self.headers.get("upgrade", "").lower() == "websocket"

    def query(self) -> list[tuple[str, str]]:
        """Return names and values of the query, none if it is malformed."""
        try:
            return parse_qsl(self.target.partition("?")[2], keep_blank_values=True, max_num_fields=100)
        except ValueError:
            return []

    def cookie(self, name: str) -> str:
        """Return a cookie, "" if there is none."""
        pairs = (part.strip().partition("=") for part in self.headers.get("cookie", "").split(";"))
        return next((value for key, _, value in pairs if key == name), "")


def parse_head(data: bytes) -> Head:
    """Read the head of a request, up to and with its empty line. Raises Refusal unless it is a plain GET."""
    lines = data.decode("latin-1").split("\r\n")[:-2]
    method, _, rest = lines[0].partition(" ")
    target, _, version = rest.rpartition(" ")
    if version not in ("HTTP/1.1", "HTTP/1.0") or not re.fullmatch(r"/[!-~]*", target):
        raise Refusal(400, "this is not a request of HTTP/1.1")
    if method != "GET":
        raise Refusal(405, "only GET is answered here")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise Refusal(400, "a header of the request is malformed")
        name = found[1].lower()
        if name in headers and name in _ONCE:
            raise Refusal(400, f"the request has more than one {name} header")
        headers[name] = found[2].rstrip(" \t")
    return Head(target, headers)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine and can be nothing else."""
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def parse_origin(text: str) -> str:
    """Check a page that shall be let in, such as https://app.example.org, and write it as browsers do.

    Raises:
        InputError: it is no such thing.
    """
    origin = _normal(text.rstrip("/") if not text.startswith("file:") else "file://")
    if origin is None:
        raise InputError(
            f"--allow-origin {text[:_MAX_SAID]!r}",
            "expected scheme and host of a page, without a path, such as https://app.example.org or http://robot:8080",
        )
    return origin


class Access:
    """Who may come in at one address."""

    def __init__(self, host: str, token: str | None = None, origins: Iterable[str] = ()) -> None:
        """Set the rules.

        Args:
            host: where the server listens. Beyond this machine a token is asked for.
            token: what to ask for, everywhere. Default: beyond this machine a new one, else none.
            origins: pages that are let in besides those of this machine and of the server itself.

        Raises:
            InputError: the token is too short or has other signs than letters, digits, - . _ ~, or no such origin.
        """
        if token is not None and not _TOKEN.fullmatch(token):
            raise InputError(
                "--token",
                f"expected {MIN_TOKEN} to 200 letters, digits, - . _ or ~, found {len(token)} signs; "
                "leave it out beyond this machine, and one is made",
            )
        self.is_local = is_loopback(host)
        """Whether only this machine can connect."""
        self.token = token if token is not None or self.is_local else secrets.token_urlsafe(24)
        """What is asked for; None: nothing."""
        self._origins = {parse_origin(origin) for origin in origins}
        self._names = {host.lower(), *(_host_of(origin) for origin in self._origins)} - {""}
        if not self.is_local:
            name = socket.gethostname().lower()
            self._names |= {name, f"{name}.local"}

    def check(self, head: Head, cookie_name: str = "") -> None:
        """Raise Refusal unless this request may come in.

        Args:
            head: the request.
            cookie_name: under which a browser keeps the token.
        """
        host = head.headers.get("host", "").lower()
        if not self._answers_to(host):
            raise Refusal(403, f"this server is not {_cleaned(host)}; {_NAMES}")
        origin = head.headers.get("origin")
        if origin is not None and not self._lets_in(origin, host):
            said = _cleaned(origin)
            raise Refusal(403, f"pages from {said} may not connect; start the server with --allow-origin {said}", said)
        if self.token is not None and not self._has_token(head, cookie_name):
            raise Refusal(
                401, "a token is needed: use the whole address that hedgerow printed, or send Authorization: Bearer"
            )

    def cookie(self, head: Head, cookie_name: str) -> tuple[str, str] | None:
        """Return the cookie for a browser that came with the token in the address, and the address without it."""
        query = head.query()
        if self.token is None or head.upgrades or "token" not in dict(query):
            return None
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        path = "/" + head.target.partition("?")[0].lstrip("/")  # //name would be another machine
        return f"{cookie_name}={self.token}; Path=/; HttpOnly; SameSite=Lax", path + (f"?{rest}" if rest else "")

    def with_token(self, url: str) -> str:
        """Return an address with the token in it."""
        return url if self.token is None else f"{url}/?{urlencode({'token': self.token})}"

    def _answers_to(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1].strip("[]")
        if is_loopback(name) or name in self._names:
            return True
        return (
            not self.is_local and _address(name) is not None
        )  # no page can be named by an address that is not its own

    def _lets_in(self, origin: str, host: str) -> bool:
        normal = _normal(origin)
        if normal is None:
            return False
        if normal in self._origins or normal in (_normal(f"http://{host}"), _normal(f"https://{host}")):
            return True
        return normal.startswith(("http://", "https://")) and is_loopback(_host_of(normal))

    def _has_token(self, head: Head, cookie_name: str) -> bool:
        assert self.token is not None
        kind, _, bearer = head.headers.get("authorization", "").partition(" ")
        said = [value for name, value in head.query() if name == "token"]
        said += [bearer.strip()] if kind.lower() == "bearer" else []
        said += [head.cookie(cookie_name)] if cookie_name else []
        return any(secrets.compare_digest(each.encode(), self.token.encode()) for each in said)


_NAMES = "call it localhost or by its address, or start it with --allow-origin http://NAME:PORT"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _normal(origin: str) -> str | None:
    """Write an origin as browsers do, None if it is none; `null`, which any page can be, is none."""
    found = _ORIGIN.fullmatch(origin.lower())
    if found is None or (not found[2] and found[1] != "file"):
        return None
    scheme, host, port = found[1], found[2], found[3] or ""
    return f"{scheme}://{host}" + ("" if _DEFAULT_PORTS.get(scheme) == port else port)


def _host_of(origin: str) -> str:
    """Return the name or the address in an origin, without brackets."""
    found = _ORIGIN.fullmatch(origin)
    return "" if found is None else found[2].strip("[]")


def _cleaned(text: str) -> str:
    """Repeat what a stranger said without signs that could do something to a terminal or a page."""
    shown = re.sub(r"[^A-Za-z0-9.:/\[\]_-]", "?", text)
    return (shown if len(shown) <= _MAX_SAID else shown[: _MAX_SAID - 3] + "...") or "without a name"
