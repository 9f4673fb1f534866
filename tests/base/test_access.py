# SPDX-License-Identifier: Apache-2.0
"""Whom a server lets in: names, pages and tokens."""

import pytest

from hedgerow.base.access import FOXGLOVE_ORIGINS, Access, Head, Refusal, parse_head, parse_origin
from hedgerow.errors import InputError

TOKEN = "correct-horse-battery"


def ask(access, host="127.0.0.1:8765", origin=None, target="/", **headers):
    """The status that a request gets, 0 if it is let in."""
    found = {"host": host, **headers} | ({} if origin is None else {"origin": origin})
    try:
        access.check(Head(target, found), "hedgerow-1")
    except Refusal as refusal:
        assert "\n" not in refusal.sentence and len(refusal.sentence) < 300 and refusal.sentence.isprintable()
        return refusal.status
    return 0


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1:8765", "127.9.9.9", "[::1]:8765", "LOCALHOST"])
def test_names_of_this_machine_are_answered(host):
    assert ask(Access("127.0.0.1"), host) == 0


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8765",
        "192.168.1.5",
        "0.0.0.0:8765",
        "",
        "a b",
        "localhost:8765@evil.example",
        "127.0.0.1:x",
        "[::1",
        "2130706433",
        "localhost:123456",
        "\u0661.2",
    ],
)
def test_other_names_are_refused_since_a_page_can_make_its_own_name_mean_this_machine(host):
    assert ask(Access("127.0.0.1"), host) == 403


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "https://127.0.0.1",
        "http://[::1]:8080",
        "https://app.foxglove.dev",
        "file://",
        "https://studio.foxglove.dev",
        "HTTPS://APP.FOXGLOVE.DEV:443",
    ],
)
def test_pages_of_this_machine_and_of_the_foxglove_app_may_connect_to_live_output(origin):
    assert ask(Access("127.0.0.1", None, FOXGLOVE_ORIGINS), origin=origin) == 0


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "http://app.foxglove.dev",
        "https://app.foxglove.dev.evil.example",
        "https://app.foxglove.dev:444",
        "https://localhost.evil.example",
        "https://evil.example/https://app.foxglove.dev",
        "http://127.0.0.1@evil.example",
        "file://evil.example",
        "chrome-extension://localhost",
        "http://[::::]",
        "//",
    ],
)
def test_other_pages_are_refused(origin):
    assert ask(Access("127.0.0.1", None, FOXGLOVE_ORIGINS), origin=origin) == 403


def test_a_page_may_talk_to_the_server_that_it_came_from_under_a_name_that_is_known():
    everywhere = Access("0.0.0.0", TOKEN)
    token = f"/?token={TOKEN}"
    assert ask(everywhere, "192.168.1.5:8080", "http://192.168.1.5:8080", token) == 0
    assert ask(everywhere, "192.168.1.5:8080", "http://192.168.1.6:8080", token) == 403
    assert ask(everywhere, "rebound.example:8080", "http://rebound.example:8080", token) == 403
    named = Access("0.0.0.0", TOKEN, ["http://robot.lan:8080/"])
    assert ask(named, "robot.lan:8080", "http://robot.lan:8080", token) == 0


def test_beyond_this_machine_a_token_is_asked_for_and_made_if_none_is_given():
    for host in ("127.0.0.1", "localhost", "::1", "127.3.2.1"):
        assert Access(host).token is None
    made = {Access(host).token for host in ("0.0.0.0", "::", "192.168.1.5", "robot", "")}
    assert len(made) == 5 and all(token is not None and len(token) >= 32 for token in made)
    assert ask(Access("0.0.0.0")) == 401
    assert ask(Access("127.0.0.1", TOKEN)) == 401  # a token that is given is asked for everywhere


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (0, {"target": f"/?token={TOKEN}"}),
        (0, {"target": f"/a?x=1&token={TOKEN}"}),
        (0, {"authorization": f"Bearer {TOKEN}"}),
        (0, {"cookie": f"other=1; hedgerow-1={TOKEN}"}),
        (401, {"cookie": f"hedgerow-2={TOKEN}"}),
        (401, {"target": f"/?token={TOKEN}x"}),
        (401, {"target": "/?token="}),
        (401, {"target": f"/token={TOKEN}"}),
        (401, {"authorization": f"Basic {TOKEN}"}),
        (401, {"authorization": "Bearer \u00e4"}),
        (401, {"target": f"/?{'a=1&' * 200}token={TOKEN}"}),
    ],
)
def test_a_token_comes_in_the_address_a_header_or_a_cookie(status, request_):
    assert ask(Access("0.0.0.0", TOKEN), **request_) == status


def test_a_browser_with_a_token_in_the_address_gets_a_cookie_and_the_address_without_it():
    access = Access("0.0.0.0", TOKEN)
    cookie, address = access.cookie(Head(f"//evil.example/a?x=1&token={TOKEN}", {}), "hedgerow-1") or ("", "")
    assert cookie == f"hedgerow-1={TOKEN}; Path=/; HttpOnly; SameSite=Lax"
    assert address == "/evil.example/a?x=1"
    assert access.cookie(Head("/?x=1", {}), "hedgerow-1") is None
    assert access.cookie(Head(f"/?token={TOKEN}", {"upgrade": "websocket"}), "hedgerow-1") is None
    assert access.with_token("ws://robot:8765") == f"ws://robot:8765/?token={TOKEN}"


@pytest.mark.parametrize("token", ["short", "x" * 15, "with a space in it", "x" * 201, "a&b" * 8, ""])
def test_a_weak_token_is_refused(token):
    with pytest.raises(InputError, match="--token: expected 16 to 200 letters"):
        Access("127.0.0.1", token)


@pytest.mark.parametrize(
    "origin", ["*", "null", "evil.example", "https://", "https://a.example/page", "https://a b", ""]
)
def test_an_origin_that_is_none_is_refused(origin):
    with pytest.raises(InputError, match=r"--allow-origin .*expected scheme and host"):
        parse_origin(origin)
    assert parse_origin("HTTPS://App.Example.org:443/") == "https://app.example.org"


@pytest.mark.parametrize(
    ("status", "data"),
    [
        (400, b"\r\n\r\n"),
        (400, b"GET / HTTP/2\r\n\r\n"),
        (400, b"GET http://evil.example/ HTTP/1.1\r\n\r\n"),
        (400, b"GET /\x00 HTTP/1.1\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"),
        (400, b"GET / HTTP/1.1\r\nA: b\nHost: localhost\r\n\r\n"),
        (405, b"POST / HTTP/1.1\r\nHost: a\r\n\r\n"),
    ],
)
def test_what_is_no_plain_request_is_refused(status, data):
    with pytest.raises(Refusal) as caught:
        parse_head(data)
    assert caught.value.status == status
