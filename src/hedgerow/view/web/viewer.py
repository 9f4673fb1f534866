# SPDX-License-Identifier: Apache-2.0
"""Viewer: the loop that draws what has changed. Controls only take notes, so a dragged slider never queues up work."""

import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.errors import HedgerowError, InputError
from hedgerow.view.web.beam import BeamAt, look, pick
from hedgerow.view.web.colours import Limits, Quantity
from hedgerow.view.web.drawing import Drawing
from hedgerow.view.web.frame import Choice, Frame, make_frame
from hedgerow.view.web.panel import Panel
from hedgerow.view.web.stage import Stage

if TYPE_CHECKING:
    from viser import SceneClickEvent, ViserServer

_POINT_SIZE_M = 0.05


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
        self._clicked: BeamAt | None = None
        self._solid_colours: tuple[Quantity, Limits | None] | None = None
        self.frame: Frame | None = None
        self.drawing = Drawing(server, stage, choice.position, choice.apart_m)
        self.panel = Panel(server, stage, choice, self.change)
        if stage.layers:
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
        while not self._stopped:
            began = time.monotonic()
            if self.panel.playing:
                self.panel.step()
                self.change("clouds")
            self.draw()
            left = self.panel.seconds_per_sweep - (time.monotonic() - began) if self.panel.playing else None
            # Waits at least a moment: the server's threads need the interpreter too.
            self._wake.wait(None if left is None else max(left, 0.005))

    def draw(self) -> None:
        """Draw what has changed since the last time."""
        with self._lock:
            changed, self._changed = self._changed, set[str]()
            self._wake.clear()
        size_m = float(self.panel.size.value) if self.stage.layers else _POINT_SIZE_M
        if "size" in changed:
            self.drawing.resize(size_m)
        if "way" in changed:
            self.drawing.way.visible = self.panel.way.value
        if "clouds" in changed:
            self._draw_clouds(size_m)
        if changed & {"clouds", "solids"}:
            self._draw_solids(size_m, "solids" in changed)
        if "beam" in changed:
            at, self._clicked = self._clicked or self.panel.beam(), None
            self.show_beam(at)

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
        if self.stage.layers:
            self.drawing.go_to(self.choice.position, follow=self.panel.follow.value)
        self.panel.show(self.frame)

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
        if self.frame is None:
            return
        direction = np.array(event.ray_direction)
        at = pick(self.frame.shown, np.array(event.ray_origin), direction / np.linalg.norm(direction))
        if at is not None:
            self._clicked = at
            self.change("beam")
