# SPDX-License-Identifier: Apache-2.0
"""The front of a server, met with raw sockets."""

import socket
import time
from contextlib import ExitStack, suppress

import pytest

from hedgerow.base import guard as module
from hedgerow.base.access import Access
from hedgerow.base.allowance import Allowance, FrameCounter, OversizedFrame
from hedgerow.base.guard import Guard, listen_at, reachable_name

TOKEN = "correct-horse-battery"


@pytest.fixture
def make():
    """Makes guards of a server that says hello and then repeats what it hears."""
    with ExitStack() as stack:

        async def serve(visit):
            visit.writer.write(b"hello " + visit.head.target.encode() + b"\n")
            while data := await visit.reader.read(100):
                visit.writer.write(data)
                await visit.writer.drain()

        def guarded(*words, say=None, **settings):
            return stack.enter_context(
                Guard(listen_at("127.0.0.1", 0), Access("127.0.0.1", *words, **settings), serve, say=say)
            )

        yield guarded


def connect(guard):
    return socket.create_connection(("127.0.0.1", guard.port), timeout=20)


def said(connection):
    """All that the other end says until it closes."""
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)


def ask(guard, *lines, host="localhost", target="/"):
    with connect(guard) as client:
        client.sendall("\r\n".join([f"GET {target} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode())
        client.shutdown(socket.SHUT_WR)
        return said(client).decode()


def test_who_may_come_in_is_served_and_hears_an_echo(make):
    with connect(make()) as client:
        client.sendall(b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\nwith more behind it")
        client.shutdown(socket.SHUT_WR)
        assert said(client) == b"hello /a\nwith more behind it"


def test_a_refusal_is_a_status_and_a_sentence(make):
    lines = []
    guard = make(say=lines.append)
    answer = ask(guard, "Origin: https://evil.example")
    assert answer.startswith("HTTP/1.1 403 Forbidden\r\n") and "nosniff" in answer
    assert "pages from https://evil.example may not connect; start the server with --allow-origin" in answer
    ask(guard, "Origin: https://evil.example")
    ask(guard, "Origin: <script>\u00e4")
    assert lines[0] == "refused a page from https://evil.example; --allow-origin https://evil.example would let it in"
    assert len(lines) == 2 and "?script??" in lines[1]  # each page once, and nothing that could harm a terminal
    assert ask(guard, "Origin: \x1b[31m").startswith("HTTP/1.1 400 ")
    assert "this server is not rebound.example" in ask(guard, host="rebound.example")
    assert ask(make(TOKEN)).startswith("HTTP/1.1 401 Unauthorized\r\n")


def test_a_token_in_the_address_becomes_a_cookie(make):
    guard = make(TOKEN)
    answer = ask(guard, target=f"/a?token={TOKEN}&b=1")
    assert answer.startswith("HTTP/1.1 303 See Other\r\n") and "\r\nLocation: /a?b=1\r\n" in answer
    assert f"Set-Cookie: hedgerow-{guard.port}={TOKEN}; Path=/; HttpOnly; SameSite=Lax\r\n" in answer
    assert ask(guard, f"Cookie: hedgerow-{guard.port}={TOKEN}") == "hello /\n"
    assert ask(guard, "Upgrade: websocket", target=f"/?token={TOKEN}").startswith("hello")


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nA: " + b"a" * 20_000, b"A: b\r\n" * 100_000, b"\x16\x03" * 50_000]
)
def test_huge_heads_are_refused(make, head):
    with connect(make()) as client:
        try:
            client.sendall(head)
        except OSError:
            return  # it did not even want to hear the rest
        assert said(client).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("slow", [False, True])
def test_who_says_nothing_or_too_slowly_is_dropped(make, monkeypatch, slow):
    monkeypatch.setattr(module, "HANDSHAKE_S", 0.3)
    with connect(make()) as client:
        begun_s = time.monotonic()
        client.settimeout(0.02 if slow else 10)
        answer = b""
        while not answer and time.monotonic() < begun_s + 10:
            if slow:
                client.sendall(b"a")
            with suppress(TimeoutError):
                answer = client.recv(100)
    assert answer.startswith(b"HTTP/1.1 408 ") and 0.2 < time.monotonic() - begun_s < 5


def test_of_many_silent_clients_the_oldest_go_and_a_newcomer_is_served_at_once(make):
    guard = make()
    with ExitStack() as stack:
        silent = [stack.enter_context(connect(guard)) for _ in range(200)]
        begun_s = time.monotonic()
        assert ask(guard) == "hello /\n"
        assert time.monotonic() - begun_s < module.HANDSHAKE_S / 2
        assert silent[0].recv(1) == b""  # dropped
        silent[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert silent[-1].recv(100) == b"hello /\n"


def test_there_is_room_for_so_many_and_no_more(make, monkeypatch):
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    guard = make()
    with connect(guard) as first, connect(guard) as second:
        for client in (first, second):
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100) == b"hello /\n"
        assert ask(guard).startswith("HTTP/1.1 503 ")
    end = time.monotonic() + 5
    while not (answer := ask(guard)).startswith("hello") and time.monotonic() < end:
        time.sleep(0.01)
    assert answer == "hello /\n"  # they are gone


def test_a_guard_closes_with_connections_open(make, capfd):
    guard = make()
    with connect(guard) as silent, connect(guard) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(100)
        guard.close()
        guard.close()
        assert client.recv(1) == b"" == silent.recv(1)
    with pytest.raises(OSError):
        connect(guard)
    assert capfd.readouterr() == ("", "")


def test_an_allowance_comes_back_with_time():
    now_s = [0.0]
    allowance = Allowance(10, 20, lambda: now_s[0])
    assert allowance.spend(20) == 0
    assert allowance.spend(5) == 0.5
    now_s[0] = 0.5
    assert allowance.spend(0) == 0 and not allowance.has(1)
    now_s[0] = 100
    assert allowance.has(20) and not allowance.has(1)  # no more than the burst


@pytest.mark.parametrize("cut", [1, 3, 7, 10_000])
def test_frames_are_counted_however_they_are_cut(cut):
    sizes = [0, 5, 125, 126, 70_000, 1]
    data = b""
    for size in sizes:
        long = {True: b"\xfe" + (size % 65_536).to_bytes(2, "big"), False: b"\xff" + size.to_bytes(8, "big")}
        length = bytes([0x80 | size]) if size < 126 else long[size < 65_536]
        data += b"\x82" + length + b"mask" + b"\xff" * size
    counter = FrameCounter(70_000)
    assert sum(counter.count(data[at : at + cut]) for at in range(0, len(data), cut)) == len(sizes)
    with pytest.raises(OversizedFrame):
        FrameCounter(69_999).count(data)


def test_the_name_that_others_use():
    assert reachable_name("127.0.0.1") == "127.0.0.1"
    assert reachable_name("::1") == "[::1]"
    assert reachable_name("0.0.0.0") not in ("0.0.0.0", "")
