# SPDX-License-Identifier: Apache-2.0
"""Segmentation: the ground, and the objects that stand on it, of a log or of a learned world.

Tallavajhula 2018 §4.3.1.3 does this by hand; here it is automatic, and can be mended by hand. Points are summed up in
voxels chunk by chunk, so memory grows with the site and not with the log. Labels that the log or world carries win over
shape: what is labelled as ground, plant or something else is that.

    found = segment(log)
    found.object["returns"]          # (M,) the object of each return, 0 is none
    found.annotation()               # boxes, classes and patches
    found.with_class(12, "other")    # mended by hand
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.labels import LABELS
from hedgerow.base.progress import StepProgress
from hedgerow.compose.boxes import fit_frame, outline
from hedgerow.compose.voxel_objects import SegmentSettings, find_objects
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.scenes.annotation import CLASSES, OTHER_CLASS, PLANT_CLASSES, Annotation, label_of
from hedgerow.scenes.ground_fit import Ground, fit_ground
from hedgerow.scenes.point_grid import GROUND, GridTable, PointGrid, find, label_groups
from hedgerow.scenes.point_source import (
    PointChunk,
    element_labels,
    element_places,
    element_points,
    log_points,
    open_points,
)
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource

__all__ = ["RETURNS", "SegmentSettings", "Segmentation", "SegmentedObject", "checksum_of", "segment"]

RETURNS = "returns"
"""Name of the table of a log: its returns, by pulse and then nearest first."""
_FIRST_CLASS = LABELS[PLANT_CLASSES[0]].number


@dataclass(frozen=True, slots=True, eq=False)
class SegmentedObject:
    """One object: a plant, a patch of shrubs, or something else."""

    id: int
    """From 1 on."""
    class_name: str
    x_m: float
    """Foot, map frame."""
    y_m: float
    z_m: float
    """Height of the ground there."""
    yaw_rad: float
    """Direction of its x axis, anticlockwise from the map's."""
    length_m: float
    """Extent along its own x axis."""
    width_m: float
    height_m: float
    """Top above the foot."""
    n_points: int
    """Returns, or elements of a world."""
    polygon_m: Array | None = None
    """(K, 2) corners of a patch."""
    cell_m: float | None = None
    """Side of the cells of a patch."""

    @property
    def label(self) -> int:
        """Number of its class (`base/labels.py`)."""
        return label_of(self.class_name)


@dataclass(frozen=True, slots=True, eq=False)
class Segmentation:
    """The ground of a site, its objects, and which of them each point or element belongs to."""

    objects: tuple[SegmentedObject, ...]
    """Ascending by id."""
    object: Mapping[str, NDArray[np.uint32]]
    """By table, in its order: the id of each element's object, 0 for none. A log has one table, `RETURNS`."""
    is_ground: Mapping[str, NDArray[np.bool_]]
    """By table: whether it is ground."""
    ground: Ground
    name: str
    """Of the log or world that it belongs to."""
    checksum: str
    """Of the places of all points or elements."""
    settings: SegmentSettings

    def __getitem__(self, number: int) -> SegmentedObject:
        """Return an object by its id. Raises InputError if there is none."""
        for each in self.objects:
            if each.id == number:
                return each
        raise InputError("object", f"there is none with the number {number}; there are {len(self.objects)}")

    @property
    def n_points(self) -> int:
        """How many points or elements there are."""
        return sum(len(rows) for rows in self.object.values())

    def counts(self) -> Counter[str]:
        """Count the objects of each class, patches as one."""
        return Counter(each.class_name for each in self.objects)

    def annotation(self, classes: Sequence[str] = CLASSES) -> Annotation:
        """Return the objects of these classes as an annotation: a box each, or a patch."""
        chosen = [each for each in self.objects if each.class_name in classes]
        return Annotation.of_boxes(
            [each.class_name for each in chosen],
            np.array([[each.x_m, each.y_m, each.z_m] for each in chosen]).reshape(-1, 3),
            np.array([each.yaw_rad for each in chosen]),
            np.array([[each.length_m, each.width_m, each.height_m] for each in chosen]).reshape(-1, 3),
            object=[each.id for each in chosen],
            polygon_m=[each.polygon_m for each in chosen],
            cell_m=[np.nan if each.cell_m is None else each.cell_m for each in chosen],
        )

    def with_class(self, number: int, class_name: str) -> "Segmentation":
        """Return the same with another class for one object. Raises InputError if there is no such object or class."""
        require_class(class_name)
        changed = replace(self[number], class_name=class_name)
        return replace(self, objects=tuple(changed if each.id == number else each for each in self.objects))

    def without(self, number: int) -> "Segmentation":
        """Return the same without one object: its points belong to none. Raises InputError if there is no such one."""
        gone = self[number]
        rows = {name: np.where(owner == gone.id, 0, owner).astype(np.uint32) for name, owner in self.object.items()}
        return replace(self, objects=tuple(each for each in self.objects if each.id != gone.id), object=rows)

    def with_object(
        self, places_m: Mapping[str, Array], chosen: Mapping[str, NDArray[np.bool_]], class_name: str
    ) -> "Segmentation":
        """Return the same with a new object made of chosen points; those that they belonged to shrink, or go.

        Args:
            places_m: by table: (N, 3) where points or elements are, map frame.
            chosen: by table: (N,) which are part of the new object.
            class_name: its class.

        Raises:
            InputError: nothing is chosen, or there is no such class.
        """
        require_class(class_name)
        number = 1 + max((each.id for each in self.objects), default=0)
        owner = {name: rows.copy() for name, rows in self.object.items()}
        ground = {name: rows.copy() for name, rows in self.is_ground.items()}
        touched: set[int] = set()
        for name, rows in chosen.items():
            touched |= set(owner[name][rows].tolist())
            owner[name][rows], ground[name][rows] = number, False
        if not any(rows.any() for rows in chosen.values()):
            raise InputError("chosen", "no point is; choose at least one")
        kept = {each.id: each for each in self.objects}
        for each in sorted(touched - {0}):
            kept[each] = replace(kept[each], n_points=sum(int((rows == each).sum()) for rows in owner.values()))
        points_m = np.concatenate([places_m[name][rows] for name, rows in chosen.items()])
        new = _object(number, class_name, points_m, points_m[:, 2], self.ground, False, self.settings, (1.0, 0.0))
        objects = [each for each in kept.values() if each.n_points > 0] + [replace(new, n_points=len(points_m))]
        return replace(self, objects=tuple(objects), object=owner, is_ground=ground)


def require_class(class_name: str) -> None:
    """Raise InputError unless it is the name of a class."""
    if class_name not in CLASSES:
        raise InputError("class", f"'{class_name}' is none of {', '.join(CLASSES)}")


def segment(
    source: "Log | LogSource | LearnedWorld | str | Path",
    settings: SegmentSettings | None = None,
    *,
    driving: ArrayLike = (1.0, 0.0),
    use_labels: bool = True,
    progress: StepProgress | None = None,
) -> Segmentation:
    """Part a site into ground and objects.

    Args:
        source: a log in memory, one opened or its path (larger than memory is fine; it is read twice), a learned world
            or its path, or the path of a cloud of points.
        settings: how.
        driving: (2,) direction in which the sensor went: the x axes of objects lie near it.
        use_labels: whether semantic labels that the source carries win over shape.
        progress: told how far it is.

    Raises:
        InputError, FileError: no points to fit a ground to, or the source cannot be read.
    """
    settings = settings or SegmentSettings()
    along = np.asarray(driving, dtype=np.float64)
    if along.shape != (2,) or not np.isfinite(along).all() or not along.any():
        raise InputError("driving", f"expected a direction (x, y), found {driving}")
    if isinstance(source, str | Path):
        source = open_points(source)
    tables = _tables(source, settings, use_labels)
    tell = progress or _silent
    grid, checksum = _sum_up(tables, settings, tell)
    voxels = grid.table()
    if not len(voxels):
        raise InputError("source", "has no points; nothing can be parted")
    tell("fitting the ground", 0, 1)
    ground = fit_ground(voxels.mean_m, settings.ground, weight=voxels.count)
    tell("fitting the ground", 1, 1)
    tell("finding objects", 0, 1)
    found = find_objects(voxels, grid.origin_m, ground, settings)
    objects = _objects(
        voxels, found.object, found.class_name, found.is_patch, ground, settings, (float(along[0]), float(along[1]))
    )
    tell("finding objects", 1, 1)
    seen = _assign(tables, grid, voxels, found.object, found.is_ground, len(objects), ground, settings, tell)
    finished = _finished(objects, seen.n_points, seen.classes, use_labels)
    return Segmentation(finished, seen.object, seen.is_ground, ground, _name(source), checksum, settings)


def checksum_of(source: "Log | LogSource | LearnedWorld") -> str:
    """Return the checksum of the places of all points or elements, to the millimetre, in their order."""
    total = hashlib.sha256()
    for table in _tables(source, SegmentSettings(), False):
        for chunk in table.chunks():
            _add_to(total, chunk.points_m)
    return total.hexdigest()


@dataclass(frozen=True, slots=True)
class _Table:
    """A table whose rows are to be given objects; read twice."""

    name: str
    source: "Log | LogSource | LearnedWorld"
    side_m: float
    use_labels: bool

    def chunks(self) -> Iterator[PointChunk]:
        """Give the places of the rows, in order."""
        if isinstance(self.source, LearnedWorld):
            table = self.source.tables[self.name]
            yield PointChunk(element_places(table), element_labels(table), len(table))
        else:
            yield from log_points(self.source)

    def shown(self) -> Iterator[PointChunk]:
        """Give points that show where the rows are: of large elements several."""
        if not isinstance(self.source, LearnedWorld):
            yield from self.chunks()
            return
        table = self.source.tables[self.name]
        points_m, element = element_points(table, self.side_m)
        yield PointChunk(points_m, element_labels(table)[element], len(table))


@dataclass(slots=True)
class _Seen:
    """What the second reading finds."""

    object: dict[str, NDArray[np.uint32]]
    is_ground: dict[str, NDArray[np.bool_]]
    n_points: NDArray[np.int64]
    classes: NDArray[np.int64]
    """(K + 1, 7) how many points of each object are labelled as which class of plants."""


def _tables(source: "Log | LogSource | LearnedWorld", settings: SegmentSettings, use_labels: bool) -> list[_Table]:
    if isinstance(source, LearnedWorld) and "instances" in source.tables:
        raise InputError("source", "is composed of assets: its instances are its objects, and need not be found")
    names = list(source.tables) if isinstance(source, LearnedWorld) else [RETURNS]
    return [_Table(name, source, settings.voxel_m, use_labels) for name in names]


def _sum_up(tables: list[_Table], settings: SegmentSettings, tell: StepProgress) -> tuple[PointGrid, str]:
    grid, total = PointGrid(settings.voxel_m), hashlib.sha256()
    for table in tables:
        n_rows, done = _length(table.source), 0
        if isinstance(table.source, LearnedWorld):
            _add_to(total, element_places(table.source.tables[table.name]))
        for chunk in table.shown():
            if not isinstance(table.source, LearnedWorld):
                _add_to(total, chunk.points_m)
            grid.add(chunk.points_m, chunk.label if table.use_labels else None)
            done += chunk.n_pulses
            tell("summing up points", done, max(done, n_rows))
    return grid, total.hexdigest()


def _assign(
    tables: list[_Table],
    grid: PointGrid,
    voxels: GridTable,
    objects: NDArray[np.int64],
    is_ground: NDArray[np.bool_],
    n_objects: int,
    ground: Ground,
    settings: SegmentSettings,
    tell: StepProgress,
) -> _Seen:
    """Read the source once more and give each row the object of its voxel."""
    owner = np.append(objects, 0)
    low = np.append(is_ground, False)
    seen = _Seen({}, {}, np.zeros(n_objects + 1, np.int64), np.zeros((n_objects + 1, len(PLANT_CLASSES)), np.int64))
    for table in tables:
        found: list[NDArray[np.uint32]] = []
        flat: list[NDArray[np.bool_]] = []
        done = 0
        for chunk in table.chunks():
            row = find(voxels.key, grid.keys(chunk.points_m))
            mine = owner[row]
            if chunk.label is not None and table.use_labels:
                mine = np.where(label_groups()[chunk.label] == GROUND, 0, mine)
            found.append(mine.astype(np.uint32))
            flat.append(_is_ground(chunk, low[row], mine, ground, settings, table.use_labels))
            seen.n_points += np.bincount(mine, minlength=n_objects + 1)
            if chunk.label is not None and table.use_labels:
                kind = chunk.label.astype(np.int64) - _FIRST_CLASS
                named = (kind >= 0) & (kind < len(PLANT_CLASSES))
                np.add.at(seen.classes, (mine[named], kind[named]), 1)
            done += chunk.n_pulses
            tell("assigning points", done, max(done, _length(table.source)))
        seen.object[table.name] = np.concatenate(found) if found else np.zeros(0, np.uint32)
        seen.is_ground[table.name] = np.concatenate(flat) if flat else np.zeros(0, np.bool_)
    return seen


def _is_ground(
    chunk: PointChunk,
    low: NDArray[np.bool_],
    owner: NDArray[np.int64],
    ground: Ground,
    settings: SegmentSettings,
    use_labels: bool,
) -> NDArray[np.bool_]:
    """Tell ground by the point's own height where its voxel has some, and by its label where it has one."""
    near = ground.height_above(chunk.points_m) < settings.ground_band_m
    flat = near & (owner == 0) & low
    if chunk.label is not None and use_labels:
        group = label_groups()[chunk.label]
        flat = (group == GROUND) | ((group < 0) & flat)
    return flat & (owner == 0)


def _objects(
    voxels: GridTable,
    owner: NDArray[np.int64],
    class_name: NDArray[np.str_],
    is_patch: NDArray[np.bool_],
    ground: Ground,
    settings: SegmentSettings,
    driving: tuple[float, float],
) -> list[SegmentedObject]:
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(1, len(class_name) + 2))
    found: list[SegmentedObject] = []
    for k, name in enumerate(class_name.tolist()):
        rows = order[bounds[k] : bounds[k + 1]]
        points_m, top_m = voxels.mean_m[rows], voxels.top_m[rows]
        found.append(_object(k + 1, name, points_m, top_m, ground, bool(is_patch[k]), settings, driving))
    return found


def _object(
    number: int,
    class_name: str,
    points_m: Array,
    top_m: Array,
    ground: Ground,
    is_patch: bool,
    settings: SegmentSettings,
    driving: tuple[float, float],
) -> SegmentedObject:
    frame = fit_frame(points_m[:, :2], driving, settings.voxel_m)
    x, y = frame.xy_m
    z = float(ground.height_m(x, y))
    height_m = float((top_m - ground.height_m(points_m[:, 0], points_m[:, 1])).max()) if is_patch else 0.0
    height_m = max(height_m or float(top_m.max()) - z, settings.voxel_m)
    polygon = outline(points_m[:, :2], settings.link_m) if is_patch else None
    cell_m = settings.cell_m if is_patch else None
    box = frame.length_m, frame.width_m, height_m
    return SegmentedObject(number, class_name, x, y, z, frame.yaw_rad, *box, 0, polygon, cell_m)


def _finished(
    objects: list[SegmentedObject], n_points: NDArray[np.int64], classes: NDArray[np.int64], use_labels: bool
) -> tuple[SegmentedObject, ...]:
    """Count points, and let labels of our own seven classes decide where most points of an object have one."""
    out: list[SegmentedObject] = []
    for each in objects:
        name, n = each.class_name, int(n_points[each.id])
        if use_labels and name != OTHER_CLASS and classes[each.id].sum() > 0.5 * n:
            name = PLANT_CLASSES[int(classes[each.id].argmax())]
        out.append(replace(each, class_name=name, n_points=n))
    return tuple(out)


def _add_to(total: Any, points_m: Array) -> None:
    total.update(np.rint(points_m * 1000).astype("<i8").tobytes())


def _length(source: "Log | LogSource | LearnedWorld") -> int:
    if isinstance(source, LearnedWorld):
        return source.size().elements
    return len(source) if isinstance(source, Log) else source.n_beams or 0


def _name(source: "Log | LogSource | LearnedWorld") -> str:
    path = getattr(source, "path", "")
    return Path(path).name if path else ("world" if isinstance(source, LearnedWorld) else "log")


def _silent(step: str, done: int, total: int) -> None:
    """Tell nobody."""
