# SPDX-License-Identifier: Apache-2.0
"""Open a saved world: whole, or with only the tiles around the beams in memory.

Readers are imported when a world is opened, so that `import hedgerow.world` stays quick.
"""

from pathlib import Path
from typing import TYPE_CHECKING, overload

from hedgerow.base.places import Address, as_place
from hedgerow.world.learned import LearnedWorld

if TYPE_CHECKING:
    from hedgerow.world.tiled import TiledWorld


def is_world(path: str | Path) -> bool:
    """Return whether this is the folder of a saved world, without reading it."""
    return (as_place(path) / "world.toml").is_file()


@overload
def load_world(path: str | Path, *, resident_tiles: None = None, max_bytes: None = None) -> "LearnedWorld": ...
@overload
def load_world(path: str | Path, *, resident_tiles: int, max_bytes: int | None = None) -> "TiledWorld": ...
@overload
def load_world(path: str | Path, *, resident_tiles: None = None, max_bytes: int) -> "TiledWorld": ...
@overload
def load_world(
    path: str | Path, *, resident_tiles: int | None = None, max_bytes: int | None = None
) -> "LearnedWorld | TiledWorld": ...
def load_world(
    path: str | Path, *, resident_tiles: int | None = None, max_bytes: int | None = None
) -> "LearnedWorld | TiledWorld":
    """Open a world that was saved.

    Args:
        path: the folder, or its address, such as s3://bucket/site.world.
        resident_tiles: keep at most this many tiles in memory, tiles of different tables counted apart, and read
            others as the beams need them. Default: read everything now.
        max_bytes: likewise, but as many tiles as fit into this much memory, by estimate.

    Returns:
        A LearnedWorld, or a TiledWorld, which answers alike, if one of the limits is given.

    Raises:
        FileError: missing, damaged, incomplete, newer, or no world.
        InputError: both limits at once, or one below 1.
    """
    from hedgerow.world.store.files import WorldFile
    from hedgerow.world.tiled import TiledWorld

    place = as_place(path)
    path = place if isinstance(place, Address) else path
    if resident_tiles is not None or max_bytes is not None:
        return TiledWorld(path, resident_tiles=resident_tiles, max_bytes=max_bytes)
    file = WorldFile(path)
    assets = [file.read_asset(number) for number in range(len(file.assets))]
    return LearnedWorld.without_checks(file.header, file.read(), str(path), assets)
