# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its DevTools protocol: enough to open a page, look at it, click and type."""

import base64
import itertools
import json
import shutil
import subprocess
import time
import urllib.request

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-port=0",
)


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page."""

    def __init__(self, folder, width=1400, height=900, flags=()):
        size = f"--window-size={width},{height}"
        command = [find_chromium(), *FLAGS, *flags, size, f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.errors = []
        self._ids = itertools.count(1)
        port = self._wait(lambda: (folder / "DevToolsActivePort").read_text().split()[0])
        targets = self._wait(lambda: json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json")))
        from websockets.sync.client import connect

        page = next(target for target in targets if target["type"] == "page")
        self._socket = connect(page["webSocketDebuggerUrl"], max_size=None)
        self.send("Page.enable")
        self.send("Runtime.enable")
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **metrics)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self.process.terminate()
        self.process.wait(20)

    def _wait(self, attempt, seconds=30):
        end = time.monotonic() + seconds
        while True:
            try:
                return attempt()
            except (OSError, IndexError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def send(self, method, **parameters):
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=120))
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"].get("text", ""))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def open(self, url):
        self.send("Page.navigate", url=url)

    def run(self, script):
        return self.send("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def wait_for(self, text, seconds=60):
        """Wait until the page shows a text."""
        end = time.monotonic() + seconds
        while text not in (shown := self.run("document.body ? document.body.innerText : ''") or ""):
            assert time.monotonic() < end, f"{text!r} did not come; the page shows {shown!r}"
            time.sleep(0.2)

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path=None):
        data = base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(data)
        return data
