# SPDX-License-Identifier: Apache-2.0
"""Who may open the viewer and the live socket: web pages in a real browser, and raw sockets."""

import gc
import json
import re
import socket
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError

import pytest
from chromium import Browser, find_chromium
from sessions import fan, session_of

from hedgerow.errors import HedgerowError
from hedgerow.live.publisher import Address, Publisher
from hedgerow.view.web import server as module
from hedgerow.view.web.frame import Choice
from hedgerow.view.web.server import WebServer

viser = pytest.importorskip("viser", reason="viser is not installed: pip install 'hedgerow[view]'")
TOKEN = "correct-horse-battery"
OPEN = """
new Promise(done => {
  const ws = new WebSocket(URL_, PROTOCOL);
  ws.onopen = () => done('open');
  ws.onerror = () => done('refused');
})
"""


class Page(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<html><body>a page of somebody else</body></html>")

    def log_message(self, format, *args):
        pass


@pytest.fixture
def elsewhere():
    """The port of a web server; in the browser, names that end in .example mean this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        yield pages.server_port
        pages.shutdown()


@pytest.fixture
def browser(tmp_path):
    if find_chromium() is None or sys.platform != "linux":
        pytest.skip("Chromium is not installed (Debian: apt install chromium), or this is not Linux")
    with Browser(tmp_path, width=800, height=500, flags=["--host-resolver-rules=MAP *.example 127.0.0.1"]) as browser:
        yield browser


def opens(browser, url, protocol):
    """Whether the page in the browser can open a WebSocket."""
    script = OPEN.replace("URL_", json.dumps(url)).replace("PROTOCOL", json.dumps(protocol))
    result = browser.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
    return {"open": True, "refused": False}[result["result"]["value"]]


def test_a_page_from_elsewhere_can_open_neither_the_viewer_nor_live_output(browser, elsewhere, capfd):
    evil, mine = f"http://evil.example:{elsewhere}", f"http://mine.example:{elsewhere}"
    protocol, said = f"viser-v{viser.__version__}", []
    with (
        WebServer(port=0, allow_origins=[mine], say=said.append) as web,
        Publisher(Address(port=0, allow_origins=(mine,)), "x", say=said.append) as live,
    ):
        for page, is_open in ((evil, False), (mine, True), (f"http://localhost:{elsewhere}", True)):
            browser.open(page)
            browser.wait_for("a page of somebody else")
            assert opens(browser, f"ws://127.0.0.1:{web.port}", protocol) == is_open, page
            assert opens(browser, live.url, "foxglove.sdk.v1") == is_open, page
            # Round the guard nobody comes.
            assert not opens(browser, f"ws://127.0.0.1:{web.viser.get_port()}", protocol), page
    assert said == [f"refused a page from {evil}; --allow-origin {evil} would let it in"] * 2
    assert "Traceback" not in capfd.readouterr().err


def test_a_page_that_gives_its_own_name_the_address_of_this_machine_gets_nothing(browser):
    with WebServer(port=0) as web:
        browser.open(f"http://rebound.example:{web.port}")
        browser.wait_for(f"this server is not rebound.example:{web.port}")


def test_with_a_token_the_address_opens_the_viewer_and_then_a_cookie_does(browser):
    from hedgerow.view.web.viewer import Viewer

    with WebServer(port=0, token=TOKEN) as web:
        Viewer(web.viser, session_of(fan(n=400, sweeps=2)), Choice()).draw()
        browser.open(f"http://localhost:{web.port}")
        browser.wait_for("a token is needed")
        browser.open(web.url)
        browser.wait_for("sweep 0: 400 points")
        assert browser.run("location.href") == f"http://localhost:{web.port}/"


def test_viser_answers_nobody_but_the_guard(monkeypatch):
    with WebServer(port=0) as web:
        for headers in ({}, {module.SECRET_HEADER: "guess"}):
            request = urllib.request.Request(f"http://127.0.0.1:{web.viser.get_port()}", headers=headers)
            with pytest.raises(HTTPError, match="403"):
                urllib.request.urlopen(request, timeout=10)


def test_a_viser_that_cannot_be_closed_is_not_started(monkeypatch):
    monkeypatch.setattr(module, "_asking_for", lambda secret: module.redirect_stdout(sys.stdout))
    with pytest.raises(HedgerowError, match=r"viser \S+ cannot be closed to strangers"):
        WebServer(port=0)


def test_beyond_this_machine_the_address_has_a_token():
    with WebServer("0.0.0.0", 0) as web:
        found = re.fullmatch(r"http://\S+:(\d+)/\?token=([\w-]{32})", web.url)
        assert found is not None
        with pytest.raises(HTTPError, match="401"):
            urllib.request.urlopen(f"http://127.0.0.1:{found[1]}", timeout=10)
        bearer = {"Authorization": f"Bearer {found[2]}"}
        request = urllib.request.Request(f"http://127.0.0.1:{found[1]}", headers=bearer)
        assert urllib.request.urlopen(request, timeout=10).status == 200


def frame(payload, opcode=2):
    """A frame as a browser sends it, with a mask of zeros."""
    n = len(payload)
    length = bytes([0x80 | n]) if n < 126 else b"\xfe" + n.to_bytes(2, "big")
    return bytes([0x80 | opcode]) + length + bytes(4) + payload


def hostile_messages():
    import msgspec

    for message in (
        {"type": "NoSuchMessage"},
        {"type": "GuiUpdateMessage"},
        {"type": "GuiUpdateMessage", "uuid": "nobody", "updates": {"value": 3}},
        {"type": "GuiUpdateMessage", "uuid": "SLIDER", "updates": {"value": "a"}},
        {"type": "GuiUpdateMessage", "uuid": "SLIDER", "updates": {"value": 1e300}},
        {"type": "GuiUpdateMessage", "uuid": "SLIDER", "updates": {"value": [1]}},
        {"type": "GuiUpdateMessage", "uuid": "SLIDER", "updates": {"nonsense": [1]}},
        {"type": "ViewerCameraMessage", "wxyz": "a"},
        {"type": "SceneNodeClickMessage", "name": "nobody"},
        [1, 2],
        3,
    ):
        yield message if isinstance(message, dict) else None, frame(msgspec.msgpack.encode(message))
    yield None, frame(b"\xc1garbage")
    yield None, frame(b"a text", opcode=1)
    yield None, frame(b"")
    yield None, b"\x82\xff" + (1 << 40).to_bytes(8, "big") + bytes(4)
    yield None, b"GET / HTTP/1.1\r\n\r\n"


@pytest.mark.filterwarnings("ignore:.viser.:UserWarning")
def test_hostile_messages_neither_end_the_viewer_nor_speak_on_the_terminal(capfd, caplog):
    import msgspec

    from hedgerow.view.web.viewer import Viewer

    with WebServer(port=0) as web:
        viewer = Viewer(web.viser, session_of(fan(n=400, sweeps=2)), Choice())
        viewer.draw()
        head = ["GET / HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
        head += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 13"]
        head = "\r\n".join([*head, f"Sec-WebSocket-Protocol: viser-v{viser.__version__}", "", ""]).encode()
        for message, data in hostile_messages():
            if message is not None and message.get("uuid") == "SLIDER":
                data = frame(msgspec.msgpack.encode(message | {"uuid": viewer.panel.slider._impl.uuid}))
            with socket.create_connection(("127.0.0.1", web.port), timeout=10) as stranger:
                stranger.sendall(head)
                assert stranger.recv(12) == b"HTTP/1.1 101"
                stranger.sendall(data)
                time.sleep(0.05)
        with pytest.raises(HTTPError, match="400"):
            urllib.request.urlopen(
                urllib.request.Request(f"http://localhost:{web.port}", headers={"Upgrade": "websocket"}), timeout=10
            )
        assert urllib.request.urlopen(web.url, timeout=10).status == 200
        viewer.draw()
    gc.collect()  # then asyncio tells of tasks that failed
    out, err = capfd.readouterr()
    assert "Traceback" not in err and "rror" not in err, err
    assert out == "" and caplog.records == []
