# SPDX-License-Identifier: Apache-2.0
"""Segments mended by hand: which object was clicked, what its class and box are, a part of a cloud, save.

The tool of Tallavajhula 2018 (Fig. 4.16). No server in here: `SegmentEdit` holds the segmentation and what is chosen,
and `segment_viewer` shows it. Every change gives a new segmentation, so that the last ones can be taken back.
"""

import colorsys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import rotation
from hedgerow.base.arrays import Array
from hedgerow.compose.segment_file import load_segmentation, save_segmentation
from hedgerow.compose.segmentation import RETURNS, Segmentation, SegmentedObject
from hedgerow.errors import InputError
from hedgerow.scenes.annotation import CLASSES
from hedgerow.scenes.point_source import element_places, element_points, log_points, open_points
from hedgerow.view.web.session import Rgb
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource

ColourBy = Literal["object", "class"]
CLASS_COLOURS: dict[str, Rgb] = dict(
    zip(
        CLASSES,
        ((222, 226, 60), (170, 214, 60), (110, 180, 85), (50, 140, 85), (60, 190, 190), (60, 140, 215), (105, 110, 235),
         (225, 85, 100)),
        strict=True,
    )
)  # fmt: skip
"""Shrubs from yellow to green, trees from cyan to blue, what is no plant red."""
GROUND_COLOUR: Rgb = (110, 95, 75)
NO_OBJECT: Rgb = (120, 120, 120)
CHOSEN: Rgb = (255, 255, 255)
_SHOWN_M = 0.25
"""Points that show an element of a world are this far apart."""
_SEEN_RAD, _MISSED_RAD = 0.006, 0.03
"""Points as near as this to the click are under the cursor; beyond the second nothing was meant."""
_UNDO = 20
_EDGES = ((0, 1), (1, 3), (3, 2), (2, 0), (4, 5), (5, 7), (7, 6), (6, 4), (0, 4), (1, 5), (2, 6), (3, 7))


@dataclass(frozen=True, eq=False)
class SegmentCloud:
    """Points that show where the rows of all tables are."""

    point_m: Array
    """(M, 3) map frame."""
    row: NDArray[np.int64]
    """(M,) which row each shows: tables one after the other."""
    place_m: dict[str, Array]
    """By table: (N, 3) where each row is."""

    @classmethod
    def of(cls, source: "LogSource | LearnedWorld", limit: int) -> "SegmentCloud":
        """Gather the points of a log or world; of more than `limit` every so many are shown."""
        if isinstance(source, LearnedWorld):
            place_m = {name: element_places(table) for name, table in source.tables.items()}
            shown = [element_points(table, _SHOWN_M) for table in source.tables.values()]
        else:
            place_m = {RETURNS: np.concatenate([np.zeros((0, 3)), *(each.points_m for each in log_points(source))])}
            shown = [(place_m[RETURNS], np.arange(len(place_m[RETURNS])))]
        first = np.cumsum([0, *(len(rows) for rows in place_m.values())])
        point_m = np.concatenate([np.zeros((0, 3)), *(points for points, _ in shown)])
        row = np.concatenate([np.zeros(0, np.int64), *(own + at for (_, own), at in zip(shown, first, strict=False))])
        step = max(1, -(-len(point_m) // limit))
        return cls(point_m[::step], row[::step], place_m)

    @property
    def centre_m(self) -> Array:
        """(3,) whole metres, map frame: the browser has float32 and gets coordinates relative to this."""
        return np.rint(self.point_m.mean(axis=0)) if len(self.point_m) else np.zeros(3)

    def split(self, mask: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
        """Cut a mask over all rows into those of the tables."""
        ends = np.cumsum([len(rows) for rows in self.place_m.values()])[:-1]
        return dict(zip(self.place_m, np.split(mask, ends), strict=True))


class SegmentEdit:
    """A segmentation, the object that is shown, and the rows that are chosen."""

    def __init__(self, segmentation: Segmentation, cloud: SegmentCloud, path: Path) -> None:
        """Begin with nothing chosen.

        Args:
            segmentation: of the log or world that the cloud shows.
            cloud: its points.
            path: where to save.
        """
        self.cloud, self.path = cloud, path
        self.segmentation = segmentation
        self.shown: int | None = None
        """Number of the object that is shown."""
        self.chosen = np.zeros(sum(map(len, cloud.place_m.values())), dtype=np.bool_)
        """Which rows are chosen, of all tables one after the other."""
        self.saved = segmentation
        self._before: list[tuple[Segmentation, int | None]] = []

    @property
    def is_saved(self) -> bool:
        """Whether the file has all changes."""
        return self.saved is self.segmentation

    @property
    def object(self) -> SegmentedObject | None:
        """The object that is shown."""
        return None if self.shown is None else self.segmentation[self.shown]

    @property
    def owner(self) -> NDArray[np.uint32]:
        """Number of the object of each row, 0 for none."""
        return np.concatenate(
            [np.zeros(0, np.uint32), *(self.segmentation.object[name] for name in self.cloud.place_m)]
        )

    # ---- changes ----------------------------------------------------------------------------------------------

    def change_class(self, class_name: str) -> None:
        """Give the object that is shown another class. Raises InputError if none is, or there is no such class."""
        number = self._require_shown()
        if class_name != self.segmentation[number].class_name:
            self._to(self.segmentation.with_class(number, class_name), number)

    def remove_object(self) -> None:
        """Let the points of the object that is shown belong to none. Raises InputError if none is shown."""
        self._to(self.segmentation.without(self._require_shown()), None)

    def make_object(self, class_name: str) -> int:
        """Make what is chosen an object of its own, show it, and return its number. Raises InputError if nothing is."""
        if not self.chosen.any():
            raise InputError("part", "nothing is chosen; click with shift, or drag a box with shift")
        self._make(self.chosen, class_name)
        self.chosen = np.zeros_like(self.chosen)
        return self._require_shown()

    def join(self, other: int) -> None:
        """Join the object that is shown with another, under the class of the larger one.

        Raises:
            InputError: none is shown, or the other is the same one or none.
        """
        one, two = self.segmentation[self._require_shown()], self.segmentation[other]
        if one.id == two.id:
            raise InputError("join", f"object {other} is the one that is shown; choose another")
        owner = self.owner
        self._make((owner == one.id) | (owner == two.id), max(one, two, key=lambda each: each.n_points).class_name)

    def undo(self) -> None:
        """Take the last change back; nothing happens if there is none."""
        if self._before:
            self.segmentation, self.shown = self._before.pop()

    def save(self) -> None:
        """Write the file anew, completely or not at all. Raises FileError if the system refuses."""
        save_segmentation(self.path, self.segmentation)
        self.saved = self.segmentation

    def _make(self, mask: NDArray[np.bool_], class_name: str) -> None:
        new = self.segmentation.with_object(self.cloud.place_m, self.cloud.split(mask), class_name)
        self._to(new, max(each.id for each in new.objects))

    def _to(self, segmentation: Segmentation, shown: int | None) -> None:
        self._before = [*self._before, (self.segmentation, self.shown)][-_UNDO:]
        self.segmentation, self.shown = segmentation, shown

    def _require_shown(self) -> int:
        if self.shown is None:
            raise InputError("object", "none is shown; click one first")
        return self.shown

    # ---- choosing ---------------------------------------------------------------------------------------------

    def pick(self, origin_m: Array, direction: Array) -> int | None:
        """Return the number of the point under the cursor: of a line of sight, map frame; None if all are far off."""
        to = self.cloud.point_m - origin_m
        along = to @ direction
        off = np.linalg.norm(to - along[:, None] * direction, axis=1)
        angle = np.where(along > 0, np.arctan2(off, along), np.inf)
        under = np.flatnonzero(angle < _SEEN_RAD)
        if len(under):
            return int(under[np.argmin(along[under])])  # the nearest surface
        best = int(np.argmin(angle)) if len(angle) else 0
        return best if len(angle) and angle[best] < _MISSED_RAD else None

    def show_at(self, point: int | None) -> None:
        """Show the object of a point, or none."""
        number = 0 if point is None else int(self.owner[self.cloud.row[point]])
        self.shown = number or None

    def choose_ball(self, point: int, radius_m: float, *, only_shown: bool = False) -> None:
        """Choose all rows around a point, besides those that are; `only_shown`: of the object that is shown."""
        places_m = np.concatenate(list(self.cloud.place_m.values()))
        self._choose(np.linalg.norm(places_m - self.cloud.point_m[point], axis=1) <= radius_m, only_shown)

    def choose_seen(self, is_within: Callable[[Array], NDArray[np.bool_]], *, only_shown: bool = False) -> None:
        """Choose all rows whose places (N, 3), map frame, are within something, besides those that are."""
        self._choose(is_within(np.concatenate(list(self.cloud.place_m.values()))), only_shown)

    def choose_nothing(self) -> None:
        """Let no row be chosen."""
        self.chosen = np.zeros_like(self.chosen)

    def _choose(self, mask: NDArray[np.bool_], only_shown: bool) -> None:
        if only_shown and self.shown is not None:
            mask = mask & (self.owner == self.shown)
        self.chosen = self.chosen | mask

    # ---- what is seen -----------------------------------------------------------------------------------------

    def colours(self, by: ColourBy) -> NDArray[np.uint8]:
        """Return the (M, 3) colours of the points: ground brown, objects by number or class, what is chosen white."""
        n = 1 + max((each.id for each in self.segmentation.objects), default=0)
        palette = np.tile(np.array(NO_OBJECT, np.uint8), (n + 2, 1))
        for each in self.segmentation.objects:
            palette[each.id] = object_colour(each.id) if by == "object" else CLASS_COLOURS[each.class_name]
        palette[n], palette[n + 1] = GROUND_COLOUR, CHOSEN
        ground = np.concatenate(
            [np.zeros(0, np.bool_), *(self.segmentation.is_ground[name] for name in self.cloud.place_m)]
        )
        entry = np.where(ground, n, self.owner.astype(np.int64))
        return palette[np.where(self.chosen, n + 1, entry)[self.cloud.row]]

    def box_lines_m(self) -> Array:
        """Return the (12, 2, 3) edges of the box of the object that is shown, map frame; (0, 2, 3) if none is."""
        box = self.object
        return np.zeros((0, 2, 3)) if box is None else box_corners_m(box)[np.array(_EDGES)]

    def describe(self) -> str:
        """Return what is known of the object that is shown, in Markdown."""
        box = self.object
        if box is None:
            return "Click an object."
        cells = "" if box.cell_m is None else f"\n\na patch, cells of {box.cell_m:g} m"
        return (
            f"**object {box.id}**: {box.class_name}\n\n"
            f"{box.length_m:.1f} x {box.width_m:.1f} m, {box.height_m:.1f} m high, at "
            f"({box.x_m:.1f}, {box.y_m:.1f}, {box.z_m:.1f})\n\n{box.n_points:,} points{cells}"
        )

    def summary(self) -> str:
        """Return how many objects there are, and whether all is saved, in Markdown."""
        said = f"**{self.segmentation.name}**: {len(self.segmentation.objects):,} objects"
        return said if self.is_saved else f"{said}\n\n*changes are not saved*"

    def legend(self) -> str:
        """Return how many objects there are of each class, beside its colour, in HTML."""
        counts = self.segmentation.counts()
        entries = [
            f'<span style="color: rgb{CLASS_COLOURS[name]}">&#9632;</span> {name} {counts[name]:,}'
            for name in CLASSES
            if counts[name]
        ]
        return f'<div style="font-size: 0.8em; padding: 0 0.8em">{"&ensp; ".join(entries) or "no objects"}</div>'


def open_edit(path: Path, segments: Path, limit: int) -> SegmentEdit:
    """Open a log or world with its segmentation.

    Args:
        path: of the log, cloud of points or world.
        segments: the segment file, which is also where changes are saved.
        limit: most points to show.

    Raises:
        FileError: one of them is missing or damaged, or the segments belong to another log or world.
    """
    source = open_points(path)
    return SegmentEdit(load_segmentation(segments, source), SegmentCloud.of(source, limit), segments)


def box_corners_m(box: SegmentedObject) -> Array:
    """Return the (8, 3) corners of a box, map frame: x fastest, z slowest."""
    x, y, z = (each.ravel() for each in np.meshgrid((-0.5, 0.5), (-0.5, 0.5), (0.0, 1.0), indexing="ij"))
    order = np.lexsort((x, y, z))
    local = np.stack([x * box.length_m, y * box.width_m, z * box.height_m], axis=1)[order]
    turn = np.array([[np.cos(box.yaw_rad), -np.sin(box.yaw_rad)], [np.sin(box.yaw_rad), np.cos(box.yaw_rad)]])
    return np.column_stack([local[:, :2] @ turn.T, local[:, 2]]) + np.array([box.x_m, box.y_m, box.z_m])


def object_colour(number: int) -> Rgb:
    """Return the colour of an object; steps of the golden section keep neighbours apart."""
    lightness = 0.45 + 0.25 * (number * 0.3819 % 1)
    r, g, b = (round(255 * c) for c in colorsys.hls_to_rgb(number * 0.61803 % 1, lightness, 0.8))
    return r, g, b


@dataclass(frozen=True, eq=False)
class Camera:
    """A camera of the browser, in the map frame."""

    position_m: Array
    wxyz: Array
    """(4,) orientation: z forward, x right, y down."""
    fov_rad: float
    """From the upper to the lower edge."""
    aspect: float
    """Width by height."""

    def within(self, low: tuple[float, float], high: tuple[float, float]) -> Callable[[Array], NDArray[np.bool_]]:
        """Return a function that tells which of (N, 3) places are seen within a box of the picture, 0 to 1 each way."""

        def is_within(places_m: Array) -> NDArray[np.bool_]:
            x, y = self.to_screen(places_m).T  # NaN, behind the camera, is not within
            return (x >= low[0]) & (x <= high[0]) & (y >= low[1]) & (y <= high[1])

        return is_within

    def to_screen(self, places_m: Array) -> Array:
        """Return the (N, 2) places in the picture, (0, 0) upper left, (1, 1) lower right; NaN behind the camera."""
        turn = rotation.to_matrix(np.roll(self.wxyz, -1)[None])[0]
        x, y, z = ((places_m - self.position_m) @ turn).T
        half = np.tan(self.fov_rad / 2)
        depth = np.where(z > 0, z, np.nan)
        return np.stack([0.5 + x / depth / (2 * half * self.aspect), 0.5 + y / depth / (2 * half)], axis=1)
