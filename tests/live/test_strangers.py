# SPDX-License-Identifier: Apache-2.0
"""Clients that mean harm, or know no better, and one good client beside them."""

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from hedgerow import InputError, Pose
from hedgerow.errors import SocketError
from hedgerow.live import session as limits
from hedgerow.live.client import Client, encode_advertisement, encode_message, encode_subscription
from hedgerow.live.publisher import Address, Publisher
from hedgerow.live.server import SweepServer
from hedgerow.live.session import Outbox

HERE = Pose.from_xyz_rpy((0, 0, 1))
TOKEN = "correct-horse-battery"
POSE = b'{"id": "a", "pose": {"position_m": [0, 0, 1]}}'


@contextmanager
def opened(url, **settings: Any) -> Iterator[Any]:
    settings = {"subprotocols": ["foxglove.sdk.v1"], "compression": None, "max_size": None, "proxy": None} | settings
    with connect(url, **settings) as ws:
        yield ws


def status_after(url, *messages):
    """The first status that a client gets for some messages."""
    with opened(url) as ws:
        for message in messages:
            ws.send(message)
        while True:
            found = json.loads(ws.recv(timeout=10))
            if found["op"] == "status":
                return found["message"]


@pytest.fixture
def quiet(capfd):
    """Nothing was said on the terminal."""
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


@pytest.mark.parametrize(
    ("status", "settings"),
    [
        (403, {"origin": "https://evil.example"}),
        (403, {"origin": "null"}),
        (400, {"additional_headers": {"Host": "rebound.example"}}),  # a second one
        (400, {"subprotocols": ["chat"]}),
        (400, {"subprotocols": None}),
    ],
)
def test_strangers_are_refused(server, client, quiet, status, settings):
    with pytest.raises(InvalidStatus) as caught, opened(server.url, **settings):
        pass
    assert caught.value.response.status_code == status
    assert len(client.sweep(HERE).points) > 1000


@pytest.mark.parametrize("subprotocol", ["foxglove.sdk.v1", "foxglove.websocket.v1"])
def test_the_foxglove_app_is_let_in(server, subprotocol):
    with opened(server.url, origin="https://app.foxglove.dev", subprotocols=[subprotocol]) as ws:
        assert ws.subprotocol == subprotocol
        assert json.loads(ws.recv(timeout=10))["op"] == "serverInfo"


def test_a_page_can_be_allowed(world, sensor):
    lines = []
    with SweepServer(
        world, sensor, Address(port=0, allow_origins=("https://mine.example",)), say=lines.append
    ) as server:
        with opened(server.url, origin="https://mine.example"):
            pass
        with pytest.raises(InvalidStatus), opened(server.url, origin="https://other.example"):
            pass
    assert lines == ["refused a page from https://other.example; --allow-origin https://other.example would let it in"]


def test_beyond_this_machine_the_url_has_a_token_and_without_it_nobody_comes_in():
    with Publisher(Address("0.0.0.0", 0), "x") as publisher:
        plain, _, token = publisher.url.partition("/?token=")
        here = f"ws://127.0.0.1:{plain.rpartition(':')[2]}"
        assert len(token) >= 32
        with pytest.raises(SocketError, match=r"127.0.0.1:\d+: refused with 401 \('a token is needed"):
            Client(f"{here}/?token=wrong")
        with pytest.raises(InvalidStatus), opened(here, additional_headers={"Authorization": "Bearer no"}):
            pass
        Client(f"{here}/?token={token}").close()
        with opened(here, additional_headers={"Authorization": f"Bearer {token}"}):
            pass


def test_wrong_rules_of_access_are_refused_before_anything_starts():
    with pytest.raises(InputError, match="--token: expected 16"):
        Address(token="short")
    with pytest.raises(InputError, match="--allow-origin"):
        Address(allow_origins=("*",))


@pytest.mark.parametrize(
    ("messages", "part"),
    [
        (["nonsense"], "a text is a JSON object with an op"),
        (["[" * 100_000], "a text is a JSON object with an op"),
        (['{"op": ' * 10_000], "a text is a JSON object with an op"),
        (["[1]"], "op: None is not known here"),
        (['{"op": ["x"]}'], "op: ['x'] is not known here"),
        (['{"op": "getParameters"}'], "op: 'getParameters' is not known here"),
        (['{"op": "subscribe"}'], "subscriptions: expected a list"),
        (['{"op": "subscribe", "subscriptions": [3]}'], "subscriptions: expected a list"),
        (['{"op": "subscribe", "subscriptions": [{"id": -1, "channelId": 1}]}'], "1 of 1 name no channel"),
        (['{"op": "subscribe", "subscriptions": [{"id": 1, "channelId": [1]}]}'], "1 of 1 name no channel"),
        ([encode_subscription(dict.fromkeys(range(10_000), 7))], "9,997 of 10,000 name no channel"),
        (['{"op": "unsubscribe", "subscriptionIds": ["a"]}'], "subscriptionIds: expected a list"),
        (['{"op": "advertise", "channels": [{"id": 1e30}]}'], "channels: each has an id"),
        ([encode_advertisement(1, "t" * 300, "json", "x")], "channels: each has an id"),
        ([encode_advertisement(k, "/pose", "json", "x") for k in range(17)], "a client may announce 16"),
        ([b""], "a binary message is opcode 1"),
        ([b"\x09abcdefgh"], "a binary message is opcode 1"),
        ([encode_message(77, b"{}")], "channel 77: was not announced"),
    ],
)
def test_wrong_messages_get_a_status_and_the_server_goes_on(server, client, quiet, messages, part):
    assert part in status_after(server.url, *messages)
    assert len(client.sweep(HERE).points) > 1000


@pytest.mark.parametrize(
    "pose",
    [
        b'{"pose": {"position_m": [0, 0, 1e30]}}',
        b'{"pose": {"position_m": [NaN, 0, 0]}}',
        b"[" * 100_000,
        b"{",
        b"\xff",
    ],
)
def test_wrong_poses_get_one_sentence_that_only_the_asker_hears(server, client, quiet, pose):
    with opened(server.url) as ws, opened(server.url) as other:
        for each in (ws, other):
            each.send(encode_subscription({3: 1}))
            each.ping().wait(10)
        ws.send(encode_advertisement(1, "/pose", "json", "x"))
        ws.send(encode_message(1, pose))
        while isinstance(answer := ws.recv(timeout=10), str):
            pass
        assert len(json.loads(answer[13:])["error"]) < 300
        client.sweep(HERE)
        while isinstance(heard := other.recv(timeout=10), str) or heard[0] != 1:
            pass
        assert "error" not in json.loads(heard[13:])


@pytest.mark.parametrize(
    "line", [b"Sec-WebSocket-Protocol: foxglove.sdk.\xe01", b"Sec-WebSocket-Key: \xe0", b"A: b\r\n" * 200 + b"A: b"]
)
def test_a_handshake_that_libraries_fail_on_is_refused(server, client, quiet, line):
    where = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    with socket.create_connection(where, timeout=10) as stranger:
        head = b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        stranger.sendall(head + b"Cookie: \xe4\r\nSec-WebSocket-Version: 13\r\n" + line + b"\r\n\r\n")
        assert stranger.recv(12) in (b"HTTP/1.1 400", b"")
    assert len(client.sweep(HERE).points) > 1000


def raw(url):
    """A socket after the handshake, for frames that no library would send."""
    client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=10)
    lines = ["GET / HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"]
    client.sendall("\r\n".join([*lines, "Sec-WebSocket-Protocol: foxglove.sdk.v1", "", ""]).encode())
    return client


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"mask", 1009),  # a terabyte is announced
        (b"\x82\xff" + struct.pack(">Q", (1 << 20) + 1) + b"mask", 1009),
        (b"\x02\xfe\xff\xffmask" + bytes(65_535) + (b"\x00\xfe\xff\xffmask" + bytes(65_535)) * 20, 1009),
        (b"\x82\x05hello", 1002),  # without a mask
        (b"\xf2\x80mask", 1002),  # reserved bits
        (b"\x8b\x80mask", 1002),  # no such opcode
        (b"\x80\x80mask", 1002),  # goes on with nothing
        (b"garbage garbage garbage", 1002),
    ],
)
def test_broken_and_oversized_frames_end_the_connection_and_nothing_else(server, client, quiet, data, code):
    with raw(server.url) as stranger:
        heard = b""
        try:
            stranger.sendall(data)
            while part := stranger.recv(65_536):
                heard += part
        except OSError:
            pass
        assert b"\x88" in heard and struct.pack(">H", code) in heard[heard.rindex(b"\x88") :]
    assert len(client.sweep(HERE).points) > 1000


def test_a_client_that_reads_too_slowly_loses_its_own_messages_alone_and_is_told(quiet):
    n = 3 * limits.BACKLOG
    subscription = encode_subscription({1: 1})
    with Publisher(Address(port=0), "x") as publisher, opened(publisher.url) as good, raw(publisher.url) as slow:
        good.send(subscription)
        good.ping().wait(10)
        slow.sendall(b"\x81" + bytes([0x80 | len(subscription)]) + bytes(4) + subscription.encode())
        slow.sendall(b"\x89\x80" + bytes(4))
        heard = b""
        while b"\x8a\x00" not in heard:  # the pong: it is subscribed
            heard += slow.recv(4096)
        for number in range(n):
            publisher.send_sweep(bytes(300_000), b"", log_time_ns=number, sensor_time_ns=number)
            while isinstance(data := good.recv(timeout=10), str) or data[0] != 1:
                pass
            assert len(data) == 13 + 300_000 and struct.unpack_from("<Q", data, 5) == (number,)
        heard = b""
        while b"you read too slowly" not in heard:
            heard = heard[-100:] + slow.recv(1 << 20)


def test_an_outbox_drops_the_oldest_by_number_and_by_size():
    outbox = Outbox(max_messages=3, max_bytes=100)
    for size in (10, 20, 30, 40):
        outbox.put(b"", bytes(size))
    assert outbox.n_lost == 1
    outbox.put(b"", bytes(1000))
    assert outbox.n_lost == 4  # one may always wait
    outbox.put_order(b"first")
    assert asyncio.run(outbox.take()) == (b"\x81\x05", b"first")


def flood(url, stop, heard):
    """Send poses as fast as the socket takes them; note what comes back."""
    with opened(url) as ws:
        ws.send(encode_subscription({3: 1}))
        ws.send(encode_advertisement(1, "/pose", "json", "x"))

        def listen():
            with suppress(ConnectionClosed):
                heard.extend(ws)

        reader = threading.Thread(target=listen)
        reader.start()
        while not stop.is_set():
            ws.send(encode_message(1, POSE))
        ws.socket.shutdown(socket.SHUT_RDWR)
        reader.join()


def test_beside_silent_clients_and_a_flood_a_good_client_gets_every_sweep_and_only_the_flood_hears_of_drops(
    server, client, quiet
):
    stop, heard = threading.Event(), []
    where = ("127.0.0.1", int(server.url.rpartition(":")[2]))
    thread = threading.Thread(target=flood, args=(server.url, stop, heard))
    with ExitStack() as stack:
        for number in range(100):
            silent = stack.enter_context(socket.create_connection(where, timeout=5))
            silent.sendall(b"GET / HTTP/1.1\r\n" if number % 2 else b"")
        thread.start()
        stack.callback(thread.join)
        stack.callback(stop.set)
        while not heard:
            time.sleep(0.01)
        took_s = []
        for number in range(15):
            begun_s = time.perf_counter()
            assert client.sweep(HERE, number=number).number == number  # a drop of its own would raise
            took_s.append(time.perf_counter() - begun_s)
    assert np.median(took_s) < 1.0  # seconds, on any machine; benchmarks/crowd.py has the figures
    orders = [json.loads(each) for each in heard if isinstance(each, str)]
    answers = [json.loads(each[13:]) for each in heard if isinstance(each, bytes) and each[0] == 1]
    assert any("dropped: more than 8 poses were waiting" in each.get("error", "") for each in answers)
    assert any(each.get("id") == "dropped" and "poses were dropped" in each["message"] for each in orders)


def test_one_client_is_read_no_faster_than_allowed(monkeypatch):
    monkeypatch.setattr(limits, "MESSAGES_PER_S", 100)
    received = []
    with Publisher(Address(port=0), "x", received.append) as publisher, opened(publisher.url) as ws:
        ws.send(encode_advertisement(1, "/pose", "json", "x"))
        begun_s = time.monotonic()
        for _ in range(1000):
            ws.send(encode_message(1, b"x"))
        time.sleep(0.5)
        most = 100 + 100 * (time.monotonic() - begun_s) + limits._CHUNK / 7
        assert 0 < len(received) < min(most, 1000)
        ws.socket.shutdown(socket.SHUT_RDWR)  # it would wait for its goodbye to be read


def test_what_is_announced_is_what_the_foxglove_sdk_announces():
    foxglove = pytest.importorskip("foxglove", reason="the Foxglove SDK is not installed, the reference for this")

    def first_words(url) -> Iterator[Any]:
        with opened(url) as ws:
            info, offer = (json.loads(ws.recv(timeout=10)) for _ in range(2))
            ws.send(encode_subscription({each["id"]: each["id"] + 40 for each in offer["channels"]}))
            ws.ping().wait(10)
            yield {key: value for key, value in info.items() if key not in ("metadata", "sessionId")}
            yield {each["topic"]: {k: v for k, v in each.items() if k != "id"} for each in offer["channels"]}
            yield sorted(ws.recv(timeout=10) for _ in range(2))

    context = foxglove.Context()
    with Publisher(Address(port=0), "x", lambda message: None) as publisher:
        ours = first_words(publisher.url)
        our_info, our_offer = next(ours), next(ours)
        publisher.send_answer({"id": "7"}, 1234)
        publisher.send_sweep(b"", b"", log_time_ns=1, sensor_time_ns=99)
        our_data = next(ours)
    channel = foxglove.Channel("/answers", message_encoding="json", context=context)
    offer = our_offer["/points"]
    schema = foxglove.Schema(name=offer["schemaName"], encoding="ros2msg", data=offer["schema"].encode())
    points = foxglove.Channel("/points", message_encoding="cdr", schema=schema, context=context)
    capability = foxglove.websocket.Capability
    sdk = foxglove.start_server(
        name="x",
        port=0,
        capabilities=[capability.Time, capability.ClientPublish],
        supported_encodings=["cdr", "json"],
        context=context,
    )
    try:
        theirs = first_words(f"ws://127.0.0.1:{sdk.port}")
        assert our_info == next(theirs)
        their_offer = next(theirs)
        made_up = {"schemaName": our_offer["/answers"]["schemaName"]}
        assert our_offer["/answers"] == their_offer["/answers"] | made_up and offer == their_offer["/points"]
        sdk.broadcast_time(99)
        channel.log(b'{"id": "7"}', log_time=1234)
        their_data = next(theirs)
        assert [each[:1] + each[5:] for each in our_data] == [each[:1] + each[5:] for each in their_data]
    finally:
        sdk.stop()
        points.close()
