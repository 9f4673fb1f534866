# SPDX-License-Identifier: Apache-2.0
"""Colours and legends: from one number or label per point to red, green and blue."""

import colorsys
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.labels import LABELS
from hedgerow.base.rgb import unpack_rgb
from hedgerow.view.web.session import Rgb

Quantity = Literal["layer", "height", "intensity", "ring", "label", "colour", "range error", "log-likelihood"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
NO_SCALE: tuple[Quantity, ...] = ("layer", "label", "colour")
"""Those that are not shown by a colour bar."""
TITLES = {
    "height": "height z [m]",
    "intensity": "intensity",
    "ring": "ring",
    "range error": "range, simulated minus real [m]",
    "log-likelihood": "log density of the real range",
}
_MAPS = {
    "height": "turbo",
    "intensity": "viridis",
    "ring": "turbo",
    "range error": "coolwarm",
    "log-likelihood": "plasma",
}
_ENDS = {"turbo": (0.08, 0.95), "viridis": (0.12, 1.0), "plasma": (0.1, 1.0), "coolwarm": (0.0, 1.0)}
"""Which part of each map is used: the ends are too dark to be seen on black."""
_SIGMA_PER_MEDIAN = 1.4826  # of the absolute values of normal numbers
Limits = tuple[float, float]
UNKNOWN: Rgb = (95, 95, 95)
"""Of points without a value, and of the label 0."""
_HUE, _LIGHTNESS = 0.5698402910, 0.8191725134
"""Steps per label: of many tried, those that keep 1 to 20 farthest apart."""
_LABEL_COLOURS: dict[str, Rgb] = {
    "unlabelled": UNKNOWN,
    "car": (90, 150, 245),
    "bicycle": (100, 230, 245),
    "motorcycle": (30, 110, 180),
    "truck": (60, 70, 200),
    "other-vehicle": (120, 120, 255),
    "person": (255, 60, 60),
    "road": (140, 140, 150),
    "parking": (190, 150, 200),
    "sidewalk": (205, 195, 185),
    "other-ground": (200, 160, 110),
    "building": (215, 95, 65),
    "fence": (255, 165, 60),
    "other-structure": (170, 60, 90),
    "vegetation": (40, 165, 60),
    "trunk": (125, 75, 35),
    "terrain": (165, 120, 65),
    "pole": (250, 240, 130),
    "traffic-sign": (255, 215, 0),
    "other-object": (60, 215, 215),
    "grass": (150, 215, 70),
    "shrub": (85, 190, 95),
    "leaves": (30, 135, 45),
    "needles": (20, 110, 85),
    "branch": (150, 95, 55),
    "trail": (215, 180, 130),
    "rock": (165, 165, 175),
    "log": (95, 60, 40),
    "wall": (200, 110, 90),
    "target": (255, 90, 200),
}
"""Of semantic classes: plants green, ground brown, buildings red; others get colours of their own."""
_LAS: dict[int, tuple[str, Rgb]] = {
    2: ("ground (LAS)", (165, 120, 65)),
    3: ("low vegetation (LAS)", (150, 215, 70)),
    4: ("medium vegetation (LAS)", (85, 190, 95)),
    5: ("high vegetation (LAS)", (30, 135, 45)),
    6: ("building (LAS)", (215, 95, 65)),
}
"""Classes of LAS files: those that SemanticKITTI has no number near."""
_KNOWN = _LAS | {LABELS[name].number: (name, colour) for name, colour in _LABEL_COLOURS.items()}


@dataclass(frozen=True)
class Legend:
    """What the colours mean."""

    quantity: Quantity
    limits: Limits | None = None
    """Values at the ends of the colour bar; None where colours stand for names."""
    entries: tuple[tuple[str, Rgb], ...] = ()
    """Names and their colours."""


def robust_limits(quantity: Quantity, values: NDArray[np.float64]) -> Limits:
    """Return between which values the colours run, so that a few stray ones do not decide.

    From the 2nd to the 98th percentile of the finite values; for rings all; for range errors three standard deviations
    to both sides of 0, told by the median, since a few beams that pass a leaf are off by metres. At least 1e-3 wide.
    """
    known = values[np.isfinite(values)]
    if len(known) == 0:
        return (-1.0, 1.0) if quantity == "range error" else (0.0, 1.0)
    if quantity == "range error":
        reach = max(3 * _SIGMA_PER_MEDIAN * float(np.median(np.abs(known))), 5e-4)
        return -reach, reach
    low, high = np.percentile(known, (0, 100) if quantity == "ring" else (2, 98)).tolist()
    return low, max(high, low + 1e-3)


def scale(quantity: Quantity, share: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the (N, 3) colours at (N,) shares of the colour bar, 0 at its lower end, 1 at its upper."""
    from matplotlib import colormaps

    name = _MAPS[quantity]
    low, high = _ENDS[name]
    found: Any = colormaps[name](low + (high - low) * np.clip(share, 0, 1), bytes=True)
    return np.ascontiguousarray(found[:, :3])


def colour(quantity: Quantity, values: NDArray[np.float64], limits: Limits | None, own: Rgb) -> NDArray[np.uint8]:
    """Colour points.

    Args:
        quantity: what the values are.
        values: (N,); NaN is unknown, -inf the least; of the quantity "colour", 0xRRGGBB.
        limits: ends of the colour bar, where there is one.
        own: colour of the whole layer, for the quantity "layer".

    Returns:
        (N, 3) red, green, blue.
    """
    if quantity == "layer":
        return np.tile(np.array(own, dtype=np.uint8), (len(values), 1))
    known = ~np.isnan(values)
    out = np.tile(np.array(UNKNOWN, dtype=np.uint8), (len(values), 1))
    if quantity == "label":
        labels, place = np.unique(values[known].astype(np.int64), return_inverse=True)
        palette = np.array([label_colour(label) for label in labels.tolist()], dtype=np.uint8).reshape(-1, 3)
        out[known] = palette[place]
    elif quantity == "colour":
        out[known] = unpack_rgb(values[known].astype(np.uint32))
    elif limits is not None:
        low, high = limits
        out[known] = scale(quantity, (values[known] - low) / (high - low))
    return out


def label_name(label: int) -> str:
    """Return the number of a label with its name, if it has one."""
    return f"{label} {_KNOWN[label][0]}" if label in _KNOWN else str(label)


def label_colour(label: int) -> Rgb:
    """Return the colour of a label; those without a name run through all hues, so that they differ."""
    if label in _KNOWN:
        return _KNOWN[label][1]
    lightness = 0.38 + 0.42 * (label * _LIGHTNESS % 1)
    r, g, b = (round(255 * c) for c in colorsys.hls_to_rgb(label * _HUE % 1, lightness, 0.85))
    return r, g, b
