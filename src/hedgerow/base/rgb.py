# SPDX-License-Identifier: Apache-2.0
"""Colours of points: red, green and blue in one whole number, 0xRRGGBB, as PCL and ROS pack them.

So a colour is one value of a return, like its label, and all that sorts, cuts and stores returns needs no other shape.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hedgerow.base import arrays
from hedgerow.errors import InputError

COLOURS = 0xFFFFFF
"""The largest of them; what lies above are the bits of an alpha channel, which is left out."""


def pack_rgb(name: str, rgb: ArrayLike) -> NDArray[np.uint32]:
    """Return (...) colours of (..., 3) red, green and blue, each from 0 to 255.

    Raises:
        InputError: another shape, or a number that is none of these; calls the array `name`.
    """
    channels = arrays.as_numbers(name, rgb)
    if channels.ndim < 2 or channels.shape[-1] != 3:
        raise InputError(name, f"expected red, green and blue in the last axis, found shape {channels.shape}")
    return _packed(arrays.as_integers(name, channels, channels.shape, np.uint8))


def unpack_rgb(colour: NDArray[np.uint32]) -> NDArray[np.uint8]:
    """Return (..., 3) red, green and blue of (...) colours."""
    return np.stack([(colour >> shift & 255).astype(np.uint8) for shift in (16, 8, 0)], axis=-1)


def as_float_bits(colour: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return colours as PCL's `rgb`: a float32 whose bits they are."""
    return np.ascontiguousarray(colour, dtype="<u4").view("<f4")


def from_bits(packed: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the colours of PCL's `rgb` or `rgba`: four bytes, called a float or a whole number."""
    if packed.dtype.itemsize == 4:
        native = np.ascontiguousarray(packed.astype(packed.dtype.newbyteorder("=")))
        return native.view(np.uint32) & np.uint32(COLOURS)
    with np.errstate(invalid="ignore"):  # some write the whole number as a longer one, or as a fraction
        return np.nan_to_num(packed.astype(np.float64)).astype(np.int64).astype(np.uint32) & np.uint32(COLOURS)


def from_channels(red: NDArray[Any], green: NDArray[Any], blue: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the colours of three columns: bytes as they are, fractions from 0 to 1, or more bits, scaled down."""
    channels = np.stack([np.nan_to_num(each.astype(np.float64)) for each in (red, green, blue)], axis=-1)
    most = float(channels.max(initial=0))
    if red.dtype.kind == "f" and most <= 1:
        channels = channels * 255
    elif most > 255:
        channels = channels / 257  # 65,535 is 255
    return _packed(np.clip(np.rint(channels), 0, 255))


def _packed(channels: NDArray[Any]) -> NDArray[np.uint32]:
    red, green, blue = np.moveaxis(channels.astype(np.uint32), -1, 0)
    return (red << 16 | green << 8 | blue).astype(np.uint32)
