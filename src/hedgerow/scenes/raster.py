# SPDX-License-Identifier: Apache-2.0
"""Read heights from pictures: grey PNG (8 or 16 bit) and GeoTIFF digital elevation models.

Pillow decodes both and gives the GeoTIFF tags, so no further package is needed. Grid points are the middles of the
pixels; the first row of a picture is its north edge.
"""

import struct
import warnings
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.base.arrays import FARTHEST_M, Array
from hedgerow.base.bounded_file import BoundedPath
from hedgerow.base.held_errors import held_errors
from hedgerow.errors import FileError, InputError, warn

Grid = tuple[Array, Array, Array]
"""(nx,) columns, (ny,) rows, (ny, nx) heights, south first [m]."""

MAX_PIXELS = 50_000_000
# Tags and keys of the GeoTIFF standard (OGC 19-008), and GDAL's own for missing values.
_SCALE, _TIE_POINT, _TRANSFORM, _KEYS, _NO_DATA = 33550, 33922, 34264, 34735, 42113
_MODEL_TYPE, _RASTER_TYPE, _LINEAR_UNITS, _VERTICAL_UNITS = 1024, 1025, 3076, 4099
_TILE = (322, 323)
_PHOTOMETRIC, _SAMPLE_FORMAT, _SIGNED = 262, 339, 2  # Pillow reads signed bytes as unsigned
_GEOGRAPHIC, _PIXEL_IS_POINT, _METRE = 2, 2, 9001


def read_raster(
    path: str | Path, *, metres_per_pixel: float | None = None, height_range_m: tuple[float, float] | None = None
) -> Grid:
    """Read a grid of heights.

    Args:
        path: `.png`, one grey channel of 8 or 16 bit; or `.tif`, `.tiff`, one band of heights in metres.
        metres_per_pixel: needed unless the file is a GeoTIFF, which knows better and is not overruled [m].
        height_range_m: heights of black and of white; needed for a PNG, not allowed for a TIFF [m].

    Returns:
        Columns, rows and heights. A GeoTIFF keeps its map coordinates, anything else has its middle at (0, 0).

    Raises:
        FileError: the file is missing, damaged, of another kind, or holds colours, gaps, degrees or feet.
        InputError: an argument is missing, out of bounds, or not for this kind of file.
    """
    is_tiff = Path(path).suffix.lower() in (".tif", ".tiff")
    if not is_tiff and Path(path).suffix.lower() != ".png":
        raise FileError(f"{path}: unknown kind of raster; expected .png, .tif or .tiff")
    if metres_per_pixel is not None and not 0 < metres_per_pixel < np.inf:
        raise InputError("metres_per_pixel", f"expected a finite number above 0, found {metres_per_pixel:g}")
    pixels, mode, tags = _decoded(path)
    if min(pixels.shape) < 2:
        raise FileError(f"{path}: has {pixels.shape[1]} by {pixels.shape[0]} pixels; expected at least 2 by 2")
    if is_tiff and (_SCALE in tags or _TRANSFORM in tags):
        if metres_per_pixel is not None:
            raise InputError("metres_per_pixel", f"{path} is a GeoTIFF and has its own pixel size; leave it out")
        try:
            axes = _geo_axes(path, tags, pixels.shape)
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise FileError(f"{path}: its GeoTIFF tags are damaged ({error})") from None
    else:
        if metres_per_pixel is None:
            raise InputError("metres_per_pixel", f"{path} does not say how large its pixels are; give their size")
        axes = _centred(pixels.shape[1], metres_per_pixel), _centred(pixels.shape[0], metres_per_pixel)
    if is_tiff:
        if height_range_m is not None:
            raise InputError("height_range_m", f"{path} is a TIFF, whose values are heights already; leave it out")
        if mode == "L" and (tags.get(_PHOTOMETRIC) == 0 or _SIGNED in np.atleast_1d(tags.get(_SAMPLE_FORMAT, ()))):
            raise FileError(f"{path}: has signed or inverted 8-bit values; convert it (gdal_translate -ot Int16)")
        _require_whole(path, pixels, tags)
        heights = pixels
    else:
        heights = _stretched(path, pixels, 255 if mode == "L" else 65535, height_range_m)
    farthest = max(float(np.abs(each).max()) for each in (*axes, heights))
    if not farthest <= FARTHEST_M:
        raise FileError(f"{path}: reaches to {farthest:g} m; expected coordinates and heights up to {FARTHEST_M:g} m")
    return axes[0], axes[1], np.ascontiguousarray(heights[::-1])


def _centred(n: int, step_m: float) -> Array:
    return (np.arange(n, dtype=np.float64) - (n - 1) / 2) * step_m


def _decoded(path: str | Path) -> tuple[Array, str, dict[int, Any]]:
    """Pixels, Pillow's name of their kind, and the tags of a TIFF."""
    try:
        with _listening() as complaints:
            decoded = _opened(path)
    except FileNotFoundError:
        raise FileError(f"{path}: there is no such file") from None
    except FileError:
        raise
    except Exception as error:  # Pillow's readers raise whatever damaged tags and chunks lead to
        known = "8- or 16-bit PNG, or TIFF of 8 to 32 bit (gdal_translate -ot Float32 makes one)"
        raise FileError(f"{path}: cannot be read; it is damaged, or not of a known kind: {known}") from error
    if complaints:
        warn(f"{path}: may be damaged; look at its heights ({complaints[0]})")
    return decoded


def _opened(path: str | Path) -> tuple[Array, str, dict[int, Any]]:
    from PIL import Image

    try:
        with BoundedPath(path).open("rb") as file, Image.open(file, formats=("PNG", "TIFF")) as image:
            if image.width * image.height > MAX_PIXELS:
                raise FileError(f"{path}: has {image.width:,} by {image.height:,} pixels; cut it to {MAX_PIXELS:,}")
            if image.mode != "L" and not image.mode.startswith(("I", "F")):
                raise FileError(f"{path}: has colours (mode {image.mode}); expected one grey channel of heights")
            tags: dict[int, Any] = dict(getattr(image, "tag_v2", {}))
            tile = [int(np.max(tags.get(tag, 0))) for tag in _TILE]
            if tile[0] * tile[1] > MAX_PIXELS:  # libtiff makes room for a tile, however small the picture is
                raise FileError(f"{path}: has tiles of {tile[0]:,} by {tile[1]:,} pixels; tile it anew")
            _require_all_pixels(path, image)
            with np.errstate(invalid="ignore"):  # numbers that are none are told of later
                return np.asarray(image).astype(np.float64), image.mode, tags
    except Image.DecompressionBombError:
        raise FileError(f"{path}: has far too many pixels; cut it to {MAX_PIXELS:,}") from None


def _require_all_pixels(path: str | Path, image: Any) -> None:
    """Refuse a file with fewer pixels than it says: Pillow takes 0 for the others."""
    n = image.width * image.height
    corners = [each[1] for each in image.tile]
    n_there = sum((min(x1, image.width) - x0) * (min(y1, image.height) - y0) for x0, y0, x1, y1 in corners)
    if image.format == "PNG":
        n_bytes, n_expected = _unpacked_bytes(path)
        n_there = n if n_bytes >= n_expected else n * n_bytes // n_expected
    if n_there < n:
        raise FileError(f"{path}: has data for {n_there:,} of its {n:,} pixels; was its copying interrupted?")


def _unpacked_bytes(path: str | Path) -> tuple[int, int]:
    """Count the bytes that the pixels of a grey PNG are packed from, and those that its header asks for."""
    unpacker, n_found = zlib.decompressobj(), 0
    with BoundedPath(path).open("rb") as file:
        width, height, depth, _, _, _, is_interlaced = struct.unpack(">IIBBBBB", file.read(29)[16:])
        n_expected = height * ((width * depth + 7) // 8 + 1)
        if is_interlaced:  # rows are split, and parts begin with a byte more: ask for the least
            n_expected = height * width * depth // 8
        file.seek(8)
        while len(head := file.read(8)) == 8:
            length, kind = struct.unpack(">I4s", head)
            if kind == b"IEND":
                break
            data = file.read(length) if kind == b"IDAT" else b""
            while data and n_found < n_expected and not unpacker.eof:
                n_found += len(unpacker.decompress(data, 1 << 20))
                data = unpacker.unconsumed_tail
            file.seek(4 if kind == b"IDAT" else length + 4, 1)
    return n_found, n_expected


@contextmanager
def _listening() -> Generator[list[str]]:
    """Collect what Pillow warns of and libtiff prints, which would reach the terminal; complete after the block."""
    complaints: list[str] = []
    held_errors.hold()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            yield complaints
    finally:
        printed = held_errors.release(drop=True)
    complaints += [str(each.message) for each in warned]
    complaints += printed.splitlines()


def _stretched(path: str | Path, pixels: Array, white: int, range_m: tuple[float, float] | None) -> Array:
    if range_m is None:
        raise InputError("height_range_m", f"{path} is a picture; say which heights black and white stand for")
    low, high = range_m
    if not -np.inf < low <= high < np.inf:
        raise InputError("height_range_m", f"expected two finite heights, the lower first, found {low:g}, {high:g}")
    return low + pixels * ((high - low) / white)


def _geo_axes(path: str | Path, tags: dict[int, Any], shape: tuple[int, ...]) -> tuple[Array, Array]:
    keys = _geo_keys(tags)
    if keys.get(_MODEL_TYPE) == _GEOGRAPHIC:
        raise FileError(f"{path}: its coordinates are degrees; project it to metres first (gdalwarp -t_srs)")
    for key in (_LINEAR_UNITS, _VERTICAL_UNITS):
        if keys.get(key, _METRE) != _METRE:
            raise FileError(f"{path}: its unit has EPSG code {keys[key]}, not metres (9001); convert it first")
    if _SCALE in tags:
        dx, dy = (float(each) for each in tags[_SCALE][:2])
        tie = tags.get(_TIE_POINT, (0.0,) * 6)
        west, north = tie[3] - tie[0] * dx, tie[4] + tie[1] * dy
    else:
        matrix = np.array(tags[_TRANSFORM], dtype=np.float64).reshape(4, 4)
        if matrix[0, 1] or matrix[1, 0]:
            raise FileError(f"{path}: is rotated against north; warp it to a north-up grid first (gdalwarp)")
        dx, dy, west, north = matrix[0, 0], -matrix[1, 1], matrix[0, 3], matrix[1, 3]
    if not (0.001 <= dx < np.inf and 0.001 <= dy < np.inf):
        raise FileError(f"{path}: its pixels are {dx:g} by {dy:g} m; expected sizes above 0, from 0.001 m on")
    centre = 0.0 if keys.get(_RASTER_TYPE) == _PIXEL_IS_POINT else 0.5
    rows, columns = shape
    return west + (np.arange(columns) + centre) * dx, (north - (np.arange(rows) + centre) * dy)[::-1]


def _geo_keys(tags: dict[int, Any]) -> dict[int, int]:
    """Keys whose value stands in the directory itself; four numbers each after a header of four."""
    directory = list(tags.get(_KEYS, ()))
    entries = [directory[i : i + 4] for i in range(4, len(directory) - 3, 4)]
    return {int(key): int(value) for key, location, _, value in entries if location == 0}


def _require_whole(path: str | Path, pixels: Array, tags: dict[int, Any]) -> None:
    missing = ~np.isfinite(pixels)
    text = str(tags.get(_NO_DATA, "")).strip("\0 ")
    if text:
        try:
            # The text has the value in decimal, the pixels may be float32: compare as those.
            with np.errstate(over="ignore", invalid="ignore"):
                missing |= pixels.astype(np.float32) == np.float32(text)
        except (ValueError, OverflowError):
            raise FileError(f"{path}: its no-data value {text!r} is not a number") from None
    if missing.any():
        raise FileError(f"{path}: {missing.sum():,} pixels have no height; fill the gaps first (gdal_fillnodata)")
