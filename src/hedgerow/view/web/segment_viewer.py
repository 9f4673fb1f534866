# SPDX-License-Identifier: Apache-2.0
"""The page on which segments are mended: a cloud coloured by object, a panel, clicks and boxes.

| in the cloud | what it does |
| --- | --- |
| click | shows the object: its class, box and number of points |
| shift + click | chooses the points around, within the radius |
| shift + drag | chooses the points within a box of the picture |
| ctrl + click | joins the object that is shown with the one that is clicked |
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from hedgerow.base.arrays import Array
from hedgerow.errors import HedgerowError
from hedgerow.scenes.annotation import CLASSES
from hedgerow.view.web.segments import Camera, ColourBy, SegmentEdit

if TYPE_CHECKING:
    from viser import CameraHandle, SceneClickEvent, SceneRectSelectEvent, ViserServer

_POINT_SIZE_M = 0.06
_BOX_COLOUR = (255, 255, 255)
_RADIUS_M = 0.5
_HELP = (
    "click: show an object. shift + click: choose the points around. shift + drag: choose what a box covers. "
    "ctrl + click: join the object shown with this one."
)


class SegmentViewer:
    """One segmentation on one server; all browsers share it."""

    def __init__(self, server: "ViserServer", edit: SegmentEdit) -> None:
        """Build panel and scene."""
        self.edit = edit
        self._gui: Any = server.gui
        self._scene = server.scene
        self._centre_m = edit.cloud.centre_m
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._box: Any = None
        self._cloud = server.scene.add_point_cloud(
            "/segments",
            (edit.cloud.point_m - self._centre_m).astype(np.float32),
            edit.colours("object"),
            point_size=_POINT_SIZE_M,
            precision="float32",
            point_shading="flat",
        )
        self._build()
        self._place_camera(server)
        server.scene.on_click()(self._click)
        server.scene.on_click(modifier="shift")(self._choose_around)
        server.scene.on_click(modifier="cmd/ctrl")(self._join)
        server.scene.on_rect_select(modifier="shift")(self._choose_box)
        self.refresh()

    def run(self) -> None:
        """Serve until `stop`; all work is done when something is clicked."""
        self._ended.wait()

    def stop(self) -> None:
        """Let `run` end."""
        self._ended.set()

    # ---- building ---------------------------------------------------------------------------------------------

    def _build(self) -> None:
        self._summary = self._gui.add_markdown("")
        self._legend = self._gui.add_html("")
        self.notice = self._gui.add_markdown(_HELP)
        self.by = self._gui.add_dropdown("colour by", get_args(ColourBy), initial_value="object")
        self.by.on_update(self._redraw)
        self.size = self._gui.add_slider("point size [m]", 0.01, 0.3, 0.01, _POINT_SIZE_M)
        self.size.on_update(self._redraw)
        with self._gui.add_folder("Object"):
            self._object = self._gui.add_markdown("")
            self.class_name = self._gui.add_dropdown("class", CLASSES, disabled=True)
            self.class_name.on_update(self._class_chosen)
            self.remove = self._gui.add_button("Remove the object", disabled=True)
        with self._gui.add_folder("Part of the cloud"):
            self._chosen = self._gui.add_markdown("")
            self.radius = self._gui.add_slider("radius [m]", 0.1, 5.0, 0.1, _RADIUS_M)
            self.only_shown = self._gui.add_checkbox("only of the object shown", False)
            self.new_class = self._gui.add_dropdown("its class", CLASSES)
            self.make = self._gui.add_button("Make it an object")
            self.nothing = self._gui.add_button("Choose nothing")
        self.undo = self._gui.add_button("Undo")
        self.save = self._gui.add_button("Save")
        self._on(self.remove, self.edit.remove_object)
        self._on(self.make, lambda: self.edit.make_object(self.new_class.value))
        self._on(self.nothing, self.edit.choose_nothing)
        self._on(self.undo, self.edit.undo)
        self._on(self.save, self.edit.save)

    def _on(self, button: Any, action: Callable[[], object]) -> None:
        def clicked(_: Any) -> None:
            self.do(action)

        button.on_click(clicked)

    def _place_camera(self, server: "ViserServer") -> None:
        points_m = self.edit.cloud.point_m - self._centre_m
        low, high = np.percentile(points_m, (5, 95), axis=0) if len(points_m) else (np.zeros(3), np.ones(3))
        middle, size_m = (low + high) / 2, float(np.linalg.norm(high - low))
        camera = server.initial_camera
        camera.look_at = middle
        camera.position = middle + size_m * np.array([-0.45, -0.45, 0.4])
        camera.far = 4000.0

    # ---- what is done -----------------------------------------------------------------------------------------

    def do(self, action: Callable[[], object]) -> None:
        """Do something and show the outcome, or say why it cannot be done."""
        with self._lock:
            try:
                action()
                self.notice.content = _HELP
            except HedgerowError as error:
                self.notice.content = f"*{error}*"
            self.refresh()

    def refresh(self) -> None:
        """Show the state."""
        with self._lock:
            edit = self.edit
            self._cloud.colors = edit.colours("class" if self.by.value == "class" else "object")
            self._cloud.point_size = min(max(float(self.size.value), 0.01), 0.3)
            self._summary.content = edit.summary()
            self._legend.content = edit.legend()
            self._object.content = edit.describe()
            self._chosen.content = f"{int(edit.chosen.sum()):,} points are chosen"
            self.class_name.disabled = self.remove.disabled = edit.object is None
            if edit.object is not None and self.class_name.value != edit.object.class_name:
                self.class_name.value = edit.object.class_name
            self.save.disabled = edit.is_saved
            self._draw_box()

    def _redraw(self, _: Any) -> None:
        self.refresh()

    def _draw_box(self) -> None:
        if self._box is not None:
            self._box.remove()
            self._box = None
        lines_m = self.edit.box_lines_m()
        if len(lines_m):
            shown = (lines_m - self._centre_m).astype(np.float32)
            self._box = self._scene.add_line_segments(
                "/box", shown, _BOX_COLOUR, thickness=2.0, thickness_units="screen"
            )

    def _class_chosen(self, event: Any) -> None:
        if event.client is not None and self.class_name.value in CLASSES:  # by a person, not by `refresh`
            self.do(lambda: self.edit.change_class(self.class_name.value))

    def _point(self, event: "SceneClickEvent") -> int | None:
        direction = np.array(event.ray_direction)
        return self.edit.pick(np.array(event.ray_origin) + self._centre_m, direction / np.linalg.norm(direction))

    def _click(self, event: "SceneClickEvent") -> None:
        self.do(lambda: self.edit.show_at(self._point(event)))

    def _choose_around(self, event: "SceneClickEvent") -> None:
        point = self._point(event)
        if point is not None:
            radius_m, only_shown = float(self.radius.value), bool(self.only_shown.value)
            self.do(lambda: self.edit.choose_ball(point, radius_m, only_shown=only_shown))

    def _join(self, event: "SceneClickEvent") -> None:
        point = self._point(event)
        if point is not None:
            number = int(self.edit.owner[self.edit.cloud.row[point]])
            self.do(lambda: self.edit.join(number))

    def _choose_box(self, event: "SceneRectSelectEvent") -> None:
        camera = camera_of(event.client.camera, self._centre_m)
        within = camera.within(event.screen_min, event.screen_max)
        only_shown = bool(self.only_shown.value)
        self.do(lambda: self.edit.choose_seen(within, only_shown=only_shown))


def camera_of(handle: "CameraHandle", centre_m: Array) -> Camera:
    """Return a browser's camera in the map frame."""
    position_m = np.asarray(handle.position, dtype=np.float64) + centre_m
    return Camera(position_m, np.asarray(handle.wxyz, dtype=np.float64), float(handle.fov), float(handle.aspect))
