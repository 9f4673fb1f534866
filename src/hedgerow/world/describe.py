# SPDX-License-Identifier: Apache-2.0
"""What a saved world is, in a few labelled lines: the content of `hedgerow info WORLD`. No element is read."""

from pathlib import Path

from hedgerow.io.describe import bytes_of, count, extent_text, position_text, size_text
from hedgerow.world.store import WorldFile

_NOUNS = {"triangles": "triangle", "gaussians": "Gaussian", "points": "point"}


def describe_world(path: str | Path) -> dict[str, str]:
    """Describe a saved world.

    Args:
        path: the folder.

    Returns:
        Label and text of each line, in the order to show them.

    Raises:
        FileError: missing, damaged, incomplete, newer, or no world.
    """
    file = WorldFile(path)
    header, origin = file.header, file.header.provenance
    elements = [count(number, _NOUNS[name]) for name, number in file.size.tables.items()]
    source = [text for text in (origin.log, origin.sensor) if text]
    beams = [count(origin.n_beams, "beam")] if origin.n_beams else []
    extent = extent_text(file.tiles.low_m, file.tiles.high_m) if len(file.tiles) else "none"
    return {
        "File": f"{path}, world in {count(len(file.tiles), 'tile')}, {size_text(bytes_of(file.path))}",
        "Model": header.kind,
        "Elements": ", ".join(elements) or "none",
        "Size": f"{count(file.size.parameters, 'parameter')}, {size_text(file.size.bytes)} in memory",
        "Learned from": ", ".join(beams + source) or "unknown",
        "Ranges": f"limits {header.min_range_m:g} to {header.max_range_m:g} m, where no sensor says otherwise",
        "Extent": extent,
        "Map origin": position_text(header.map_origin_m),
        "Settings": f"of the learner in {file.path / 'world.toml'}",
        "Written by": f"Hedgerow {file.written_by}",
    }
