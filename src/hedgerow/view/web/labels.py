# SPDX-License-Identifier: Apache-2.0
"""Names and colours of semantic classes: plants green, ground brown, buildings red; others get colours of their own."""

import colorsys

from hedgerow.physics.labels import LABELS
from hedgerow.view.web.layers import Rgb

UNKNOWN: Rgb = (95, 95, 95)
"""Of points without a value, and of the label 0."""
_HUE, _LIGHTNESS = 0.5698402910, 0.8191725134
"""Steps per label: of many tried, those that keep 1 to 20 farthest apart."""
_COLOURS: dict[str, Rgb] = {
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
_LAS: dict[int, tuple[str, Rgb]] = {
    2: ("ground (LAS)", (165, 120, 65)),
    3: ("low vegetation (LAS)", (150, 215, 70)),
    4: ("medium vegetation (LAS)", (85, 190, 95)),
    5: ("high vegetation (LAS)", (30, 135, 45)),
    6: ("building (LAS)", (215, 95, 65)),
}
"""Classes of LAS files: those that SemanticKITTI has no number near."""
_KNOWN = _LAS | {LABELS[name].number: (name, colour) for name, colour in _COLOURS.items()}


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
