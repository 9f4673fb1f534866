# SPDX-License-Identifier: Apache-2.0
"""Viewer: the loop that draws what has changed. Controls only take notes, so a dragged slider never queues up work."""

import threading
import time
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import HedgerowError, InputError
from hedgerow.view.web.beam import BeamAt, look, pick
from hedgerow.view.web.browsers import Browsers
from hedgerow.view.web.colours import Limits, Quantity
from hedgerow.view.web.drawing import Drawing
from hedgerow.view.web.frame import Choice, Frame, make_frame
from hedgerow.view.web.pace import Pace
from hedgerow.view.web.panel import Panel
from hedgerow.view.web.stage import Stage

if TYPE_CHECKING:
    from viser import SceneClickEvent, ViserServer

_POINT_SIZE_M, _MOMENT_S = 0.05, 0.1
Ray = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(3,) origin in the frame of the drawing, (3,) direction of unit length."""


class Viewer:
    """One stage on one server."""

    def __init__(self, server: "ViserServer", stage: Stage, choice: Choice) -> None:
        """Build panel and scene; nothing is drawn before `draw` or `run`."""
        self.stage, self.choice = stage, choice
        if choice.partner is None and stage.partners:
            choice.partner = stage.partners[0]
        self._changed = {"clouds", "solids"}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = False
        self._clicked: Ray | None = None
        self._solid_colours: tuple[Quantity, Limits | None] | None = None
        self.frame: Frame | None = None
        self.drawing = Drawing(server, stage, choice.position, choice.apart_m)
        self.panel = Panel(server, stage, choice, self.change)
        self.pace = Pace(choice.moving_points)
        if stage.layers:
            self._browsers = Browsers(server, self.pace, lambda: self.change("detail"))
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

    def run(self) -> None:
        """Draw what changes until `stop` is called, or Ctrl-C."""
        due = 0.0
        while not self._stopped:
            now = time.monotonic()
            # The next sweep waits for the browser, or a slow one would fall ever farther behind.
            if self.panel.playing and now >= due and not self._browsers.busy:
                due = now + self.panel.seconds_per_sweep
                self.panel.step()
                self.change("clouds")
                self.draw()
                self._browsers.ask()
            else:
                self.draw()
            self._wake.wait(self._pause_s(due))
            if self.pace.rests_in_s(now) > 0:
                self.change("detail")

    def _pause_s(self, due: float) -> float | None:
        """Return how long to wait for changes: for the next sweep, a moment while the camera moves, else for ever."""
        now = time.monotonic()
        if self.panel.playing and not self._browsers.busy:
            return max(due - now, 0.005)  # at least a moment: the server's threads need the interpreter too
        return _MOMENT_S if self.panel.playing or self.pace.rests_in_s(now) > 0 else None

    def draw(self) -> None:
        """Draw what has changed since the last time."""
        with self._lock:
            changed, self._changed = self._changed, set[str]()
            self._wake.clear()
        size_m = float(self.panel.size.value) if self.stage.layers else _POINT_SIZE_M
        if "way" in changed:
            self.drawing.way.visible = self.panel.way.value
        if changed & {"clouds", "places"}:
            self._draw_clouds(size_m)
        if "places" in changed:
            self.drawing.look_at_all(self.choice.apart_m)
        if changed & {"size", "detail"}:
            self._show_detail(size_m)
        if changed & {"clouds", "solids"}:
            self._draw_solids(size_m, "solids" in changed)
        if "beam" in changed:
            self.show_beam(self._chosen())

    def show_beam(self, at: BeamAt | None) -> None:
        """Draw a beam with its density, or say why that is impossible; None removes the last one."""
        shown = [] if self.frame is None else self.frame.shown
        shifts_m = {self.stage.layers[each.layer].name: each.shift_m for each in shown}
        view = None
        try:
            view = None if at is None else look(self.stage, at)
            self.panel.show_beam(view)
        except InputError as error:
            self.panel.show_beam(error)
        self.drawing.show_beam(view, shifts_m)

    def _draw_clouds(self, size_m: float) -> None:
        try:
            self.frame = make_frame(self.stage, self.choice, self.drawing.aside)
        except HedgerowError as error:  # a sweep cannot be read: say so and go on
            self.panel.fail(error)
            return
        self.drawing.show(self.frame, size_m)
        self.panel.show(self.frame)
        if self.stage.layers:
            self.drawing.go_to(self.choice.position, follow=self.panel.follow.value)
        self._show_detail(size_m)

    def _show_detail(self, size_m: float) -> None:
        """Draw as many points as the browser can; at rest, find out whether it can draw more."""
        if self.frame is None or not self.stage.layers:
            return
        now = time.monotonic()
        self.pace.fixed = self.choice.moving_points
        n_drawn = self.drawing.detail(size_m, self.pace.budget(now))
        if self.pace.rests_in_s(now) > 0 or self.panel.playing:
            return
        if self.pace.should_ask(n_drawn, now):
            self._browsers.ask(n_drawn)
        else:
            self.panel.show_count(self.frame, n_drawn)

    def _draw_solids(self, size_m: float, all_anew: bool) -> None:
        colours = self.choice.quantity, self.choice.limits.get(self.choice.quantity)
        if not all_anew and colours == self._solid_colours:
            return
        self._solid_colours = colours
        for solid, switch in zip(self.stage.solids, self.panel.solids, strict=True):
            if switch.value:
                self.drawing.show_solid(solid, *colours, self.panel.gaussians_as.value, size_m)
            else:
                self.drawing.hide_solid(solid)

    def _click(self, event: "SceneClickEvent") -> None:
        direction = np.array(event.ray_direction)
        with self._lock:
            self._clicked = np.array(event.ray_origin), direction / np.linalg.norm(direction)
        self.change("beam")

    def _chosen(self) -> BeamAt | None:
        """Return the beam that was clicked, else the one whose number was given; the last one if the click missed."""
        with self._lock:
            ray, self._clicked = self._clicked, None
        hit = None if ray is None or self.frame is None else pick(self.frame.shown, *ray)
        return hit or self.panel.beam()
