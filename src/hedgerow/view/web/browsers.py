# SPDX-License-Identifier: Apache-2.0
"""Browsers: which one is in use, when its camera moves, and how long it takes to draw."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hedgerow.view.web.pace import Pace

if TYPE_CHECKING:
    from viser import ClientHandle, ViserServer

_PIXELS = 8
_PATIENCE_S = 5.0


class Browsers:
    """Tells a pace what the browsers do."""

    def __init__(self, server: "ViserServer", pace: Pace, changed: Callable[[], None]) -> None:
        """Watch those that are open and those to come; `changed` is called when another number of points is due."""
        self._pace, self._changed = pace, changed
        self._in_use: ClientHandle | None = None
        self._asking = threading.Lock()
        server.on_client_connect(self._joined)

    def _joined(self, client: "ClientHandle") -> None:
        async def moved(_: Any) -> None:  # on the server's own thread: in a pool the times would blur
            if self._in_use is not client:
                self._in_use = client
                self._pace.restart()
            now_s = time.monotonic()
            rested = self._pace.rests_in_s(now_s) <= 0
            self._pace.moved(now_s)
            if rested:
                self._changed()

        client.camera.on_update(moved)
        self._in_use = client
        self._pace.restart()
        self._changed()

    @property
    def busy(self) -> bool:
        """Whether an answer is due."""
        return self._asking.locked()

    def ask(self, n_points: int | None = None) -> None:
        """Let the browser in use draw what is shown, and its pace know how long that took; wait for no answer.

        Args:
            n_points: how many points are shown; None if only `busy` is of interest.
        """
        client = self._in_use
        if client is not None and self._asking.acquire(blocking=False):
            threading.Thread(target=self._ask, args=(client, n_points), daemon=True).start()

    def _ask(self, client: "ClientHandle", n_points: int | None) -> None:
        asked_s = time.monotonic()
        try:
            client.get_render(_PIXELS, _PIXELS, timeout=_PATIENCE_S)
            if n_points is None:
                return
            asked_s = time.monotonic()
            # Once more: this answer waits for the frame that the first one brought about.
            client.get_render(_PIXELS, _PIXELS, timeout=_PATIENCE_S)
            self._pace.drew(n_points, asked_s, time.monotonic())
        except TimeoutError:
            if n_points is not None:
                self._pace.drew(n_points, asked_s, time.monotonic())
        except RuntimeError:  # it was closed, or could not draw
            pass
        finally:
            self._asking.release()
            self._changed()
