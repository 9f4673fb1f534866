# SPDX-License-Identifier: Apache-2.0
"""The boxes of an annotation, as a scene file uses them: which ones, on which ground, and where primitives go."""

import numpy as np

from hedgerow.base.arrays import Array
from hedgerow.errors import FileError, InputError
from hedgerow.scenes.annotation import OTHER_CLASS, Annotation, read_annotation, with_z
from hedgerow.scenes.file.read import Source
from hedgerow.scenes.file.schema import AnnotationSpec
from hedgerow.scenes.terrain import Terrain


def read_boxes(spec: AnnotationSpec, source: Source, terrain: Terrain) -> Annotation:
    """Read the boxes that a scene file asks for, patches cut into cells, each with its foot on the ground.

    Raises:
        InputError: the file cannot be used, or a box stands off the ground; names the field.
    """
    path = source.beside(spec.file)
    try:
        rows = read_annotation(path)
    except FileError as error:
        raise InputError("file", str(error)) from None
    kept = rows.class_name != OTHER_CLASS if spec.classes is None else np.isin(rows.class_name, spec.classes)
    boxes = rows[kept].expanded()
    if spec.box_m is not None:
        low_x, low_y, high_x, high_y = spec.box_m
        x, y = boxes.position_m[:, 0], boxes.position_m[:, 1]
        boxes = boxes[(x >= low_x) & (x <= high_x) & (y >= low_y) & (y <= high_y)]
    outside = ~terrain.contains(boxes.position_m[:, 0], boxes.position_m[:, 1])
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        x, y = boxes.position_m[row, :2]
        said = (
            f"{path.name}: {int(outside.sum())} of {len(boxes)} boxes stand off the ground, the first at ({x:g}, {y:g})"
        )
        raise InputError("file", f"{said}; widen the terrain, or leave them out with box_m")
    return with_z(boxes, terrain.height_m(boxes.position_m[:, 0], boxes.position_m[:, 1]))


def box_places(boxes: Annotation, extents_m: Array, scale: str) -> Array:
    """Return the (N, 4, 4) places of primitives of (N, 3) extents in their boxes."""
    factor = np.ones((len(boxes), 3))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(extents_m > 0, boxes.size_m / extents_m, 1.0)
    if scale == "height":
        factor = np.repeat(ratio[:, 2:], 3, axis=1)
    elif scale == "box":
        factor = ratio
    c, s = np.cos(boxes.yaw_rad), np.sin(boxes.yaw_rad)
    places = np.tile(np.eye(4), (len(boxes), 1, 1))
    places[:, 0, 0], places[:, 0, 1], places[:, 1, 0], places[:, 1, 1] = c, -s, s, c
    places[:, :3, :3] *= factor[:, None, :]
    places[:, :3, 3] = boxes.position_m
    return places
