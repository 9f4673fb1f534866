# SPDX-License-Identifier: Apache-2.0
"""hedgerow primitives: cuts plants out of a learned world, and shows what a library holds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from hedgerow.cli.app import app, out, print_pairs, print_table
from hedgerow.cli.options import Output, Picture, require_places

if TYPE_CHECKING:
    from hedgerow.scenes.primitive import Library

primitives = App(
    name="primitives",
    help="Cut plants out of a learned world into a library, and show what is in it.",
)
app.command(primitives)


@primitives.command
def extract(
    world: Path,
    /,
    *,
    output: Output,
    segments: Path | None = None,
    annotation: Path | None = None,
    log: Path | None = None,
    classes: Annotated[list[str] | None, Parameter(name="--class", negative=())] = None,
    min_elements: int = 3,
) -> None:
    """Cut the plants out of a learned world into a library of primitives.

    Use them in a scene file: [primitives.NAME] library = "LIB.world", class = "large-tree"

    Parameters
    ----------
    world
        a learned world of triangles and Gaussians
    output
        the library to write, by custom NAME.world
    segments
        its objects, from hedgerow segment; default: they are found now
    annotation
        or its plants by hand: a table of boxes (.csv, .parquet), each a plant of what lies in it
    log
        the log that it was learned from: tells how often and from which sides each plant was seen
    classes
        only this class; may be repeated; default: all seven classes of plants; other is what is no plant
    min_elements
        leave out plants of fewer elements
    """
    from hedgerow.base.atomic import require_place
    from hedgerow.base.progress import step_bar
    from hedgerow.compose.box_segmentation import segment_by_boxes
    from hedgerow.compose.primitives import extract_primitives
    from hedgerow.compose.segment_file import load_segmentation
    from hedgerow.errors import InputError
    from hedgerow.inputs import open_log, require_kind
    from hedgerow.scenes.annotation import PLANT_CLASSES, read_annotation
    from hedgerow.scenes.primitive import Library
    from hedgerow.world import load_world

    require_place(output, folder=True)
    require_kind(world, ("learned world",), "primitives extract")
    site = load_world(world)
    if segments is not None and annotation is not None:
        raise InputError("annotation", "give either --segments or --annotation; each says what the plants are")
    found = None if segments is None else load_segmentation(segments, site)
    if annotation is not None:
        found = segment_by_boxes(site, read_annotation(annotation))
    recording = None if log is None else open_log(log, "primitives extract")
    with step_bar() as progress:
        library = extract_primitives(
            site,
            found,
            log=recording,
            classes=classes or PLANT_CLASSES,
            min_elements=min_elements,
            progress=progress,
        )
        library.save(output)
    _print_classes(Library(output))
    out.print(f"wrote {output}")


def _print_classes(library: "Library") -> None:
    from hedgerow.scenes.annotation import CLASSES

    rows: list[list[str]] = []
    for name in CLASSES:
        mine = library.of_class(name)
        if mine:
            elements = sum(library.n_elements[k] for k in mine) / len(mine)
            height_m = sum(library.facts[k].height_m for k in mine) / len(mine)
            half = sum(library.facts[k].is_half_seen for k in mine)
            rows.append([name, f"{len(mine):,}", f"{elements:.0f}", f"{height_m:.1f}", f"{half:,}"])
    print_table(("class", "primitives", "elements each", "mean height [m]", "half seen"), rows)


@primitives.command(name="list")
def list_all(library: Path, /) -> None:
    """List the primitives of a library, by class.

    Parameters
    ----------
    library
        a library, from hedgerow primitives extract
    """
    from hedgerow.scenes.primitive import Library

    opened = Library(library)
    rows = [
        [
            name,
            facts.class_name,
            f"{n:,}",
            " x ".join(f"{each:.1f}" for each in facts.extents_m),
            f"{facts.n_beams:,}" if facts.n_beams else "unknown",
            "half" if facts.is_half_seen else ("unknown" if facts.seen_from is None else "round"),
        ]
        for name, facts, n in zip(opened.names, opened.facts, opened.n_elements, strict=True)
    ]
    print_table(("primitive", "class", "elements", "length x width x height [m]", "beams", "seen"), rows)
    _print_classes(opened)


@primitives.command
def show(library: Path, name: str, /, *, picture: Picture | None = None) -> None:
    """Show one primitive: what is known of it, and a picture from the front, the side and above.

    Parameters
    ----------
    library
        a library, from hedgerow primitives extract
    name
        of the primitive; hedgerow primitives list LIB.world lists them
    picture
        where to draw it; default: NAME.png in this folder
    """
    import difflib

    from hedgerow.compose.primitive_picture import draw_primitive
    from hedgerow.errors import InputError
    from hedgerow.scenes.primitive import SECTORS, Library

    opened = Library(library)
    if name not in opened.names:
        near = difflib.get_close_matches(name, opened.names, n=2)
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        raise InputError("primitive", f"there is no '{name}'; {guess}hedgerow primitives list {library} lists them")
    number = opened.names.index(name)
    facts, asset = opened.facts[number], opened.read(number)
    target = picture or Path(f"{name}.png")
    require_places(target)
    sides = ", ".join(f"{each:,}" for each in facts.seen_from or [])
    print_pairs(
        [
            ("Primitive", f"{name}, class {facts.class_name}"),
            ("Elements", ", ".join(f"{len(part):,} {type(part).__name__.lower()}" for part in asset.parts)),
            ("Box", " x ".join(f"{each:.2f}" for each in facts.extents_m) + " m"),
            ("Beams", f"{facts.n_beams:,}" if facts.n_beams else "unknown; extract with --log"),
            (f"Seen from {SECTORS} sides", f"{sides}, half seen" if facts.is_half_seen else sides or "unknown"),
            ("Learned in", f"{facts.world}, object {facts.object}"),
        ]
    )
    draw_primitive(target, asset, facts)
    out.print(f"wrote {target}")
