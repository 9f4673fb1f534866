# SPDX-License-Identifier: Apache-2.0
"""Frame: the coloured clouds of one moment, from what the person chose. No server in here: arrays in, arrays out."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.view.web.cloud import EMPTY, Cloud, cloud_of, thin
from hedgerow.view.web.colours import Legend, Limits, Quantity, colour, robust_limits
from hedgerow.view.web.labels import label_colour, label_name
from hedgerow.view.web.layers import Layer
from hedgerow.view.web.solids import GREY, element_values
from hedgerow.view.web.stage import Stage

POINT_LIMIT, MOVING_POINTS = 2_000_000, 250_000
"""Most points that are drawn while the camera stands, and while it moves."""
APART_M = 50.0
"""Between layers that are side by side."""


@dataclass
class Choice:
    """What the person chose; the panel writes it."""

    position: int = 0
    """Of the slider: 0 is the first sweep there is."""
    accumulate: int = 1
    """How many sweeps are shown together, the last one at the slider."""
    quantity: Quantity = "height"
    """What colours mean."""
    hidden: set[int] = field(default_factory=set[int])
    """Layers that are switched off."""
    partner: int | None = None
    """Layer that the first one is compared with; None if there is none."""
    apart_m: float = 0.0
    """Each layer is moved so far from the one before; 0 shows them over each other."""
    point_limit: int = POINT_LIMIT
    """No more points than this are drawn, of all clouds together."""
    moving_points: int = MOVING_POINTS
    """At most so many of them are drawn while the camera moves, 0 for all."""
    limits: dict[Quantity, Limits] = field(default_factory=dict[Quantity, Limits])
    """Ends of the colour bars; a quantity that is missing gets its own when it is first shown, and keeps them."""


@dataclass(frozen=True)
class Shown:
    """One cloud, ready to be drawn."""

    layer: int
    cloud: Cloud
    colour: NDArray[np.uint8]
    """(M, 3)."""
    shift_m: NDArray[np.float64]
    """(3,) how far it is moved aside."""


@dataclass(frozen=True)
class Frame:
    """All clouds of a moment."""

    shown: list[Shown]
    legend: Legend
    n_points: int
    """Before thinning."""
    notes: list[str]
    """What could not be shown, and why."""

    @property
    def n_drawn(self) -> int:
        """Points after thinning."""
        return sum(len(each.cloud) for each in self.shown)


def make_frame(stage: Stage, choice: Choice, aside: NDArray[np.float64] | None = None) -> Frame:
    """Gather, thin and colour the clouds.

    Args:
        stage: what there is.
        choice: what to show; limits that are missing are filled in.
        aside: (3,) unit vector along which layers are moved apart. Default: to the right, -y.
    """
    window = stage.window(choice.position, choice.accumulate)
    layers = [i for i in range(len(stage.layers)) if i not in choice.hidden]
    notes: list[str] = []
    whole = [_cloud(stage, i, window, choice, notes) for i in layers]
    quantity = choice.quantity
    values = np.concatenate([np.zeros(0), *(cloud.value for cloud in whole)])
    if not layers:
        values = element_values([solid.world for solid in stage.solids], quantity)
    if quantity not in ("layer", "label") and quantity not in choice.limits and len(values):
        choice.limits[quantity] = robust_limits(quantity, values)
    limits = choice.limits.get(quantity)
    right = np.array([0.0, -1.0, 0.0]) if aside is None else aside
    shown = [
        Shown(i, cloud, colour(quantity, cloud.value, limits, stage.layers[i].colour), i * choice.apart_m * right)
        for i, cloud in zip(layers, thin(whole, choice.point_limit), strict=True)
    ]
    legend = _legend(quantity, limits, values, [stage.layers[i] for i in layers])
    return Frame(shown, legend, sum(map(len, whole)), notes)


def _cloud(stage: Stage, layer: int, window: list[int], choice: Choice, notes: list[str]) -> Cloud:
    """Gather a cloud; in plain grey, with a note, where the quantity cannot be had."""
    try:
        return cloud_of(stage, layer, window, choice.quantity, choice.partner)
    except InputError as error:
        if str(error) not in notes:
            notes.append(str(error))
    try:
        plain = cloud_of(stage, layer, window, "layer", None)
    except InputError as error:  # firing itself was refused
        notes.append(str(error))
        return EMPTY
    return plain


def _legend(quantity: Quantity, limits: Limits | None, values: NDArray[np.float64], layers: list[Layer]) -> Legend:
    if quantity == "layer":
        own = tuple((layer.name, layer.colour) for layer in layers)
        return Legend(quantity, entries=own or (("elements of worlds", GREY),))
    if quantity == "label":
        labels = np.unique(values[~np.isnan(values)]).astype(int).tolist()
        return Legend(quantity, entries=tuple((label_name(label), label_colour(label)) for label in labels))
    return Legend(quantity, limits)
