# SPDX-License-Identifier: Apache-2.0
"""Primitives cut out of a learned world: the elements of each plant, in a frame of its own (Tallavajhula 2018 §4.3.1).

    library = extract_primitives(world, segment(world), log=log)
    library.save("plants.world")

The frame of a primitive: its foot, on the ground under it, is the origin; z is up; x is the yaw of its box. A patch is
cut into its cells, each a primitive. A library is a world of assets without instances; what is known of each is stored
with it (`scenes/primitive.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.base.progress import StepProgress
from hedgerow.compose.segmentation import Segmentation, SegmentedObject, checksum_of, segment
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.scenes.annotation import PLANT_CLASSES, cell_numbers
from hedgerow.scenes.primitive import SECTORS, PrimitiveFacts
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource

MIN_ELEMENTS = 3
"""Fewer elements are no plant."""
_NEAR_M = 1.0
"""A return belongs to the primitive of the nearest element, if that is within this distance."""
_BATCH = 500_000
"""Returns that are looked up at a time."""
Part = Triangles | Gaussians


@dataclass(frozen=True, slots=True)
class _Cut:
    """Rows of the world's tables that become one primitive."""

    name: str
    rows: dict[str, NDArray[np.intp]]
    foot_m: Array
    yaw_rad: float
    extents_m: Array
    seen: SegmentedObject


def extract_primitives(
    world: LearnedWorld,
    segmentation: Segmentation | None = None,
    *,
    log: "Log | LogSource | None" = None,
    classes: Sequence[str] = PLANT_CLASSES,
    min_elements: int = MIN_ELEMENTS,
    progress: StepProgress | None = None,
) -> LearnedWorld:
    """Cut the plants out of a learned world.

    Args:
        world: of triangles and Gaussians.
        segmentation: its objects. Default: found by `segment`.
        log: what it was learned from, or another drive through it: tells how often and from which sides each was seen.
        classes: which objects; "other" are those that are no plants.
        min_elements: leave out what has fewer.
        progress: told how far it is.

    Returns:
        A library: a world of assets without instances.

    Raises:
        InputError: the segmentation belongs to another world, or nothing is left.
    """
    tell = progress or _silent
    segmentation = segmentation or segment(world, progress=progress)
    if segmentation.checksum != checksum_of(world):
        named = f"belongs to another world ({segmentation.name})"
        raise InputError("segmentation", f"{named}; segment this world, or name the one that it was made of")
    cuts = [
        cut
        for each in segmentation.objects
        if each.class_name in classes
        for cut in _cuts(world, segmentation, each)
        if sum(map(len, cut.rows.values())) >= min_elements
    ]
    if not cuts:
        found = ", ".join(f"{n} {name}" for name, n in segmentation.counts().items()) or "nothing"
        raise InputError("classes", f"no primitive of {', '.join(classes)} is left; the world has {found}")
    views = [None] * len(cuts) if log is None else _views(world, cuts, log, tell)
    assets = [_asset(world, cut, view, segmentation) for cut, view in zip(cuts, views, strict=True)]
    return LearnedWorld(
        kind="library",
        assets=assets,
        classes=world.classes,
        parameters={"model": world.kind},
        min_range_m=world.min_range_m,
        max_range_m=world.max_range_m,
        provenance=world.header.provenance,
    )


def _silent(step: str, done: int, total: int) -> None:
    pass


def _cuts(world: LearnedWorld, found: Segmentation, seen: SegmentedObject) -> Iterator[_Cut]:
    """Give the rows of an object: all at once, or cell by cell if it is a patch."""
    rows = {name: np.flatnonzero(owner == seen.id) for name, owner in found.object.items() if name in _parts(world)}
    whole = _Cut(
        f"{seen.class_name}-{seen.id}",
        rows,
        np.array([seen.x_m, seen.y_m, seen.z_m]),
        seen.yaw_rad,
        np.array([seen.length_m, seen.width_m, seen.height_m]),
        seen,
    )
    if seen.cell_m is None:
        yield whole
        return
    centre = {name: _parts(world)[name].centre_m()[each] for name, each in rows.items()}
    cell = {name: cell_numbers(each[:, :2], seen.cell_m, seen.yaw_rad) for name, each in centre.items()}
    places = np.unique(np.concatenate(list(cell.values())), axis=0)
    c, s = np.cos(seen.yaw_rad), np.sin(seen.yaw_rad)
    for number, place in enumerate(places):
        inside = {name: rows[name][(each == place).all(axis=1)] for name, each in cell.items()}
        middle = np.array([[c, -s], [s, c]]) @ ((place + 0.5) * seen.cell_m)
        z_m = float(found.ground.height_m(middle[:1], middle[1:])[0])
        tops = [_parts(world)[name][each].bounds_m()[1][:, 2] for name, each in inside.items()]
        top = float(np.concatenate(tops).max(initial=z_m))
        box = np.array([seen.cell_m, seen.cell_m, max(0.1, min(top - z_m, seen.height_m))])
        yield _Cut(f"{seen.class_name}-{seen.id}-{number}", inside, np.array([*middle, z_m]), seen.yaw_rad, box, seen)


def _parts(world: LearnedWorld) -> dict[str, Part]:
    return {name: table for name, table in world.tables.items() if isinstance(table, Triangles | Gaussians)}


def _asset(world: LearnedWorld, cut: _Cut, view: NDArray[np.int64] | None, found: Segmentation) -> Asset:
    parts = tuple(moved_part(_parts(world)[name][rows], cut) for name, rows in cut.rows.items() if len(rows))
    facts = PrimitiveFacts(
        class_name=cut.seen.class_name,
        length_m=float(cut.extents_m[0]),
        width_m=float(cut.extents_m[1]),
        height_m=float(cut.extents_m[2]),
        n_beams=0 if view is None else int(view.sum()),
        seen_from=None if view is None else view.tolist(),
        ground_m=_corner_heights(cut, found),
        yaw_rad=cut.yaw_rad,
        foot_m=cut.foot_m.tolist(),
        world=Path(world.path).name if world.path else found.name,
        object=cut.seen.id,
    )
    return Asset(cut.name, parts, facts.model_dump(mode="json"))


def moved_part(part: Part, cut: _Cut) -> Part:
    """Return elements in the frame of their primitive; they are no object there."""
    c, s = np.cos(cut.yaw_rad), np.sin(cut.yaw_rad)
    to_primitive = np.eye(4)
    to_primitive[:2, :2] = [[c, s], [-s, c]]
    to_primitive[:3, 3] = -to_primitive[:3, :3] @ cut.foot_m
    return replace(part.transformed(to_primitive), object=np.zeros(len(part), dtype=np.uint32))


def _corner_heights(cut: _Cut, found: Segmentation) -> list[float]:
    """Heights of the ground at the corners of the box, above the foot; anticlockwise from (+, +)."""
    half = cut.extents_m[:2] / 2
    corner = half * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    c, s = np.cos(cut.yaw_rad), np.sin(cut.yaw_rad)
    xy = corner @ np.array([[c, s], [-s, c]]) + cut.foot_m[:2]
    height = found.ground.height_m(xy[:, 0], xy[:, 1]) - cut.foot_m[2]
    return [float(each) for each in np.nan_to_num(height)]


def _views(
    world: LearnedWorld, cuts: Sequence[_Cut], log: "Log | LogSource", tell: StepProgress
) -> list[NDArray[np.int64]]:
    """Count for each primitive from which sides its returns came: sectors around it, in its own frame."""
    from scipy.spatial import KDTree

    parts = _parts(world)
    centre = np.concatenate([parts[name].centre_m()[rows] for cut in cuts for name, rows in cut.rows.items()])
    owner = np.repeat(np.arange(len(cuts)), [sum(map(len, cut.rows.values())) for cut in cuts])
    tree, yaw = KDTree(centre), np.array([cut.yaw_rad for cut in cuts])
    counts = np.zeros((len(cuts), SECTORS), dtype=np.int64)
    sweeps = log.sweeps.tolist()
    for done, number in enumerate(sweeps):
        sweep = log.select(sweep=number) if isinstance(log, Log) else log.read([number])
        hit = sweep.returns.hit
        points, pulse = sweep.points(), np.nonzero(hit)[0]
        for begin in range(0, len(points), _BATCH):
            some = slice(begin, begin + _BATCH)
            distance, near = tree.query(points[some], distance_upper_bound=_NEAR_M)
            met = np.isfinite(distance)
            mine = owner[np.asarray(near)[met]]
            back = -sweep.beams.direction[pulse[some][met]]
            angle = np.arctan2(back[:, 1], back[:, 0]) - yaw[mine]
            sector = np.rint(angle / (2 * np.pi) * SECTORS).astype(np.int64) % SECTORS
            np.add.at(counts, (mine, sector), 1)
        tell("counting views", done + 1, len(sweeps))
    return list(counts)
