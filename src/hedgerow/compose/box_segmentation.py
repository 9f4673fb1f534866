# SPDX-License-Identifier: Apache-2.0
"""An annotation as a segmentation: what lies in the box of a plant is that plant (Tallavajhula 2018 §4.3.1.4).

For sites that were annotated by hand. An element, or a return of a log, belongs to a box if its middle lies inside:
within its length and width around its foot, turned by its yaw, and no higher than its top. Ground belongs to none, so a
box has no floor. Where boxes overlap, the one whose middle is nearest, in units of its own half extents, takes it. A
patch takes what lies in its cells.

    found = segment_by_boxes(world, read_annotation("plants.csv"))
    library = extract_primitives(world, found)
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.compose.segmentation import RETURNS, Segmentation, SegmentedObject, SegmentSettings, checksum_of
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.scenes.annotation import Annotation, with_z
from hedgerow.scenes.ground_fit import Ground, ground_of
from hedgerow.scenes.point_grid import GROUND, label_groups
from hedgerow.scenes.point_source import PointChunk, element_labels, element_places, log_points
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource


def segment_by_boxes(
    source: "Log | LogSource | LearnedWorld",
    annotation: Annotation,
    settings: SegmentSettings | None = None,
    *,
    ground: Ground | None = None,
    use_labels: bool = True,
) -> Segmentation:
    """Give each element of a world, or each return of a log, the box that it lies in.

    Args:
        source: a learned world, or a log in memory or opened.
        annotation: the boxes; its objects keep their numbers if these are all different, and are numbered from 1 on
            otherwise.
        settings: of these, how the ground is fitted and how far above it points are ground.
        ground: what boxes stand on. Default: fitted to the source.
        use_labels: whether what is labelled as ground is ground, and what is labelled as anything else is not.

    Raises:
        InputError: the annotation is empty, or nothing lies in any box.
    """
    settings = settings or SegmentSettings()
    if not len(annotation):
        raise InputError("annotation", "has no boxes; nothing can be parted")
    ground = ground or ground_of(source, settings.ground)
    foot_m = ground.height_m(annotation.position_m[:, 0], annotation.position_m[:, 1])
    rows = with_z(replace(annotation, object=_numbers(annotation)), foot_m)
    boxes = _Boxes.of(rows, ground)
    owner: dict[str, NDArray[np.uint32]] = {}
    flat: dict[str, NDArray[np.bool_]] = {}
    for name, chunks in _tables(source):
        low: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)]
        mine: list[NDArray[np.uint32]] = [np.zeros(0, np.uint32)]
        for chunk in chunks:
            low.append(_is_ground(chunk, ground, settings, use_labels))
            mine.append(boxes.owners(chunk.points_m, low[-1]))
        owner[name], flat[name] = np.concatenate(mine), np.concatenate(low)
    counts = np.bincount(np.concatenate(list(owner.values())), minlength=int(rows.object.max()) + 1)
    if not counts[1:].any():
        raise InputError("annotation", "no element lies in any of its boxes; is it of another site, or another map?")
    objects = tuple(sorted(_objects(rows, counts), key=lambda each: each.id))
    return Segmentation(objects, owner, flat, ground, _name(source), checksum_of(source), settings)


def _numbers(annotation: Annotation) -> NDArray[np.uint32]:
    given = annotation.object
    if given.all() and len(np.unique(given)) == len(given):
        return given
    return np.arange(1, len(annotation) + 1, dtype=np.uint32)


@dataclass(frozen=True, slots=True, eq=False)
class _Boxes:
    """Boxes, with patches cut into cells."""

    middle_m: Array
    """(B, 3) of each box; half its height above its foot."""
    half_m: Array
    """(B, 3) half extents."""
    yaw_rad: Array
    number: NDArray[np.uint32]
    """(B,) of its object."""

    @classmethod
    def of(cls, rows: Annotation, ground: Ground) -> "_Boxes":
        boxes = rows.expanded()
        boxes = with_z(boxes, ground.height_m(boxes.position_m[:, 0], boxes.position_m[:, 1]))
        half = boxes.size_m / 2
        return cls(boxes.position_m + half * [0, 0, 1], half, boxes.yaw_rad, boxes.object)

    def owners(self, points_m: Array, is_ground: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """Return (N,) the object of each point, 0 for none."""
        from scipy.spatial import KDTree

        owner = np.zeros(len(points_m), dtype=np.uint32)
        stands = np.flatnonzero(~is_ground)
        if not len(stands):
            return owner
        tree = KDTree(points_m[stands, :2])
        nearest = np.full(len(points_m), np.inf)
        for middle, half, yaw, number in zip(self.middle_m, self.half_m, self.yaw_rad, self.number, strict=True):
            near: Any = tree.query_ball_point(middle[:2], float(np.hypot(*half[:2])))
            rows = stands[np.asarray(near, dtype=np.int64)]
            away = _in_units(points_m[rows] - middle, half, float(yaw))
            inside = (np.abs(away[:, :2]) <= 1).all(axis=1) & (away[:, 2] <= 1)
            distance = np.linalg.norm(away, axis=1)
            nearer = inside & (distance < nearest[rows])
            nearest[rows[nearer]] = distance[nearer]
            owner[rows[nearer]] = number
        return owner


def _in_units(off_m: Array, half_m: Array, yaw_rad: float) -> Array:
    """(N, 3) places from the middle of a box, along its own axes, as shares of its half extents."""
    c, s = np.cos(yaw_rad), np.sin(yaw_rad)
    return off_m @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) / half_m


def _tables(source: "Log | LogSource | LearnedWorld") -> Iterator[tuple[str, Iterator[PointChunk]]]:
    if not isinstance(source, LearnedWorld):
        yield RETURNS, log_points(source)
        return
    for name, table in source.tables.items():
        yield name, iter([PointChunk(element_places(table), element_labels(table), len(table))])


def _is_ground(chunk: PointChunk, ground: Ground, settings: SegmentSettings, use_labels: bool) -> NDArray[np.bool_]:
    near = ground.height_above(chunk.points_m) < settings.ground_band_m
    if chunk.label is None or not use_labels:
        return near
    said = label_groups()[chunk.label]
    return (said == GROUND) | ((said < 0) & near)


def _objects(rows: Annotation, n_points: NDArray[np.int64]) -> Iterator[SegmentedObject]:
    """Give the boxes as objects, those with nothing in them too: they were annotated."""
    for k in range(len(rows)):
        polygon, number = rows.polygon_m[k], int(rows.object[k])
        x, y, z = (float(each) for each in rows.position_m[k])
        length, width, height = (float(each) for each in rows.size_m[k])
        yield SegmentedObject(
            id=number,
            class_name=str(rows.class_name[k]),
            x_m=x,
            y_m=y,
            z_m=z,
            yaw_rad=float(rows.yaw_rad[k]),
            length_m=length,
            width_m=width,
            height_m=height,
            n_points=int(n_points[number]),
            polygon_m=polygon,
            cell_m=None if polygon is None else float(rows.cell_m[k]),
        )


def _name(source: "Log | LogSource | LearnedWorld") -> str:
    path = getattr(source, "path", "")
    return Path(path).name if path else ("world" if isinstance(source, LearnedWorld) else "log")
