# SPDX-License-Identifier: Apache-2.0
"""hedgerow segment: the ground and the objects of a log or of a learned world."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.cli.app import app, out, print_table
from hedgerow.cli.options import Flag, Output, Settings, parse_settings, require_places

if TYPE_CHECKING:
    from hedgerow.compose.segmentation import Segmentation


@app.command
def segment(
    source: Path,
    /,
    *,
    output: Output,
    annotation: Path | None = None,
    picture: Path | None = None,
    driving_deg: float = 0.0,
    ignore_labels: Flag = False,
    settings: Settings = None,
) -> None:
    """Part a site into ground and objects: shrubs and trees of seven classes, patches, and what is no plant.

    Parameters
    ----------
    source
        a log of any format, larger than memory is fine; a learned world; or a cloud of points
    output
        the file to write, by custom NAME.segments.parquet
    annotation
        also write the objects as a table of boxes to this .csv or .parquet file
    picture
        also draw the site from above
    driving_deg
        direction in which the sensor went, anticlockwise from the map's x axis; the x axes of objects lie near it
    ignore_labels
        do not use the semantic labels that the source carries
    settings
        set a parameter: NAME=VALUE, for example patch_m=6 or trees='{"top_share": 0.2}'; may be repeated
    """
    import math

    from hedgerow.base.progress import step_bar
    from hedgerow.compose.segment_file import save_segmentation
    from hedgerow.compose.segment_picture import draw_segmentation, require_picture_suffix
    from hedgerow.compose.segmentation import SegmentSettings
    from hedgerow.compose.segmentation import segment as part
    from hedgerow.inputs import require_kind
    from hedgerow.scenes.annotation import require_annotation_suffix, write_annotation
    from hedgerow.scenes.point_source import open_points

    require_places(output, annotation, picture)
    if annotation is not None:
        require_annotation_suffix(annotation)
    if picture is not None:
        require_picture_suffix(picture)
    chosen = SegmentSettings.parse(parse_settings(settings), "segment")
    require_kind(source, ("log", "learned world"), "segment")
    start = time.perf_counter()
    opened = open_points(source)
    turn = math.radians(driving_deg)
    with step_bar() as progress:
        found = part(
            opened,
            chosen,
            driving=(math.cos(turn), math.sin(turn)),
            use_labels=not ignore_labels,
            progress=progress,
        )
        save_segmentation(output, found)
    _tell(found, time.perf_counter() - start)
    out.print(f"wrote {output}")
    if annotation is not None:
        write_annotation(annotation, found.annotation())
        out.print(f"wrote {annotation}")
    if picture is not None:
        draw_segmentation(picture, found, opened, found.name)
        out.print(f"wrote {picture}")


def _tell(found: "Segmentation", took_s: float) -> None:
    """Print the objects by class."""
    from hedgerow.scenes.annotation import CLASSES

    rows: list[tuple[str, ...]] = []
    for name in CLASSES:
        mine = [each for each in found.objects if each.class_name == name]
        if mine:
            mean_m = sum(each.height_m for each in mine) / len(mine)
            n_points = sum(each.n_points for each in mine)
            patches = sum(each.polygon_m is not None for each in mine)
            rows.append((name, f"{len(mine):,}", f"{patches:,}", f"{mean_m:.1f}", f"{n_points:,}"))
    print_table(("class", "objects", "patches", "mean height [m]", "points"), rows)
    ground = sum(int(each.sum()) for each in found.is_ground.values())
    out.print(
        f"{found.name}: {found.n_points:,} points, {ground:,} of them ground "
        f"(spread {100 * found.ground.sigma_m:.1f} cm), {len(found.objects):,} objects, in {took_s:.1f} s"
    )
