# SPDX-License-Identifier: Apache-2.0
"""Viewer: the loop that draws what has changed. Controls only take notes, so a dragged slider never queues up work."""

import logging
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import HedgerowError, InputError
from hedgerow.view.web.beam import BeamAt, inspect_beam, pick_beam
from hedgerow.view.web.colours import Limits, Quantity
from hedgerow.view.web.drawing import Drawing
from hedgerow.view.web.frame import Choice, Frame, make_frame
from hedgerow.view.web.panel import Panel
from hedgerow.view.web.session import Session

if TYPE_CHECKING:
    from viser import CameraHandle, ClientHandle, SceneClickEvent, ViserServer

REST_AFTER_S = 1.0
"""Without a message of the camera for so long, it stands. Messages come once per frame: slower ones look like rest."""
_POINT_SIZE_M, _MOMENT_S = 0.05, 0.1
_BROWSER_TIMEOUT_S, _PIXELS = 2.0, 8
"""While playing, a browser has so long to draw a picture so small, in pixels, before the next sweep is sent."""
Ray = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(3,) origin in the frame of the drawing, (3,) direction of unit length."""


class Viewer:
    """One session on one server."""

    def __init__(self, server: "ViserServer", session: Session, choice: Choice) -> None:
        """Build panel and scene; nothing is drawn before `draw` or `run`."""
        self.session, self.choice = session, choice
        if choice.compared_with is None and session.comparable:
            choice.compared_with = session.comparable[0]
        self._changed = {"clouds", "worlds"}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = False
        self._clicked: Ray | None = None
        self._world_colours: tuple[Quantity, Limits | None] | None = None
        self.frame: Frame | None = None
        self.drawing = Drawing(server, session, choice.position, choice.spacing_m)
        self.panel = Panel(server, session, choice, self.change)
        self._active: ClientHandle | None = None
        self._moved_s = -np.inf
        if session.layers:
            server.on_client_connect(self._connect)
            server.scene.on_click()(self._click)

    def change(self, what: str) -> None:
        """Take note that something has to be drawn anew."""
        with self._lock:
            self._changed.add(what)
        self._wake.set()

    @property
    def idle(self) -> bool:
        """Whether all changes have been drawn."""
        return not self._changed

    def stop(self) -> None:
        """Let `run` end."""
        self._stopped = True
        self._wake.set()

    @property
    def moving(self) -> bool:
        """Whether a camera moves."""
        return time.monotonic() - self._moved_s < REST_AFTER_S

    def run(self) -> None:
        """Draw what changes until `stop` is called, or Ctrl-C."""
        due = 0.0
        while not self._stopped:
            now = time.monotonic()
            if self.panel.playing and now >= due:
                due = now + self.panel.seconds_per_sweep
                self.panel.step()
                self.change("clouds")
                self._try_to_draw()
                self._wait_for_browser()
            else:
                self._try_to_draw()
            moving = self.moving
            self._wake.wait(self._pause_s(due, moving))
            if moving:
                self.change("detail")

    def _try_to_draw(self) -> None:
        """Draw; what a browser says may be anything, and must not end the viewer for all others."""
        try:
            self.draw()
        except Exception as error:
            logging.getLogger(__name__).warning("could not draw: %s: %s", type(error).__name__, error)
            self.panel.fail(error)

    def _pause_s(self, due: float, moving: bool) -> float | None:
        """Return how long to wait for changes: for the next sweep, a moment while the camera moves, else for ever."""
        if not self.panel.playing:
            return _MOMENT_S if moving else None
        pause_s = max(due - time.monotonic(), 0.005)  # at least a moment: the server's threads need the interpreter too
        return min(pause_s, _MOMENT_S) if moving else pause_s

    def _connect(self, client: "ClientHandle") -> None:
        async def moved(_: "CameraHandle") -> None:
            stood = not self.moving
            self._active, self._moved_s = client, time.monotonic()
            if stood:
                self.change("detail")

        client.camera.on_update(moved)
        self._active = client

    def _wait_for_browser(self) -> None:
        """Wait until the browser in use has drawn the sweep, or a slow one would fall ever farther behind."""
        if self._active is not None:
            with suppress(TimeoutError, RuntimeError):  # it is hidden, or it was closed
                self._active.get_render(_PIXELS, _PIXELS, timeout=_BROWSER_TIMEOUT_S)

    def draw(self) -> None:
        """Draw what has changed since the last time."""
        with self._lock:
            changed, self._changed = self._changed, set[str]()
            self._wake.clear()
        size_m = float(self.panel.size.value) if self.session.layers else _POINT_SIZE_M
        if "path" in changed:
            self.drawing.path.visible = self.panel.path.value
        if changed & {"clouds", "spacing"}:
            self._draw_clouds(size_m)
        if "spacing" in changed:
            self.drawing.look_at_all(self.choice.spacing_m)
        if changed & {"size", "detail"}:
            self._show_detail(size_m)
        if changed & {"clouds", "worlds"}:
            self._draw_worlds(size_m, "worlds" in changed)
        if "beam" in changed:
            self.show_beam(self._chosen_beam())

    def show_beam(self, at: BeamAt | None) -> None:
        """Draw a beam with its density, or say why that is impossible; None removes the last one."""
        shown = [] if self.frame is None else self.frame.shown
        shifts_m = {self.session.layers[each.layer].name: each.shift_m for each in shown}
        view = None
        try:
            view = None if at is None else inspect_beam(self.session, at)
            self.panel.show_beam(view)
        except InputError as error:
            self.panel.show_beam(error)
        self.drawing.show_beam(view, shifts_m)

    def _draw_clouds(self, size_m: float) -> None:
        try:
            self.frame = make_frame(self.session, self.choice, self.drawing.aside)
        except HedgerowError as error:  # a sweep cannot be read: say so and go on
            self.panel.fail(error)
            return
        self.drawing.show(self.frame, size_m)
        self.panel.show(self.frame)
        if self.session.layers:
            self.drawing.go_to(self.choice.position, follow=self.panel.follow.value)
        self._show_detail(size_m)

    def _show_detail(self, size_m: float) -> None:
        """Draw all points, or as many as were chosen for a camera that moves."""
        if self.frame is None or not self.session.layers:
            return
        budget = self.choice.moving_points if self.moving else 0
        self.drawing.detail(size_m, budget or self.frame.n_drawn)

    def _draw_worlds(self, size_m: float, all_anew: bool) -> None:
        colours = self.choice.quantity, self.choice.limits.get(self.choice.quantity)
        if not all_anew and colours == self._world_colours:
            return
        self._world_colours = colours
        for layer, switch in zip(self.session.worlds, self.panel.worlds, strict=True):
            if switch.value:
                self.drawing.show_world(layer, *colours, self.panel.gaussians_as.value, size_m)
            else:
                self.drawing.hide_world(layer)

    def _click(self, event: "SceneClickEvent") -> None:
        direction = np.array(event.ray_direction)
        with self._lock:
            self._clicked = np.array(event.ray_origin), direction / np.linalg.norm(direction)
        self.change("beam")

    def _chosen_beam(self) -> BeamAt | None:
        """Return the beam that was clicked, else the one whose number was given; the last one if the click missed."""
        with self._lock:
            ray, self._clicked = self._clicked, None
        hit = None if ray is None or self.frame is None else pick_beam(self.frame.shown, *ray)
        return hit or self.panel.beam()
