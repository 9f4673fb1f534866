# SPDX-License-Identifier: Apache-2.0
"""Frame: the coloured clouds of one moment, from what the person chose. No server in here: arrays in, arrays out."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.view.web.colours import Legend, Limits, Quantity, colour, label_colour, label_name, robust_limits
from hedgerow.view.web.session import Layer, Stage
from hedgerow.view.web.solids import GREY, element_values

# Clouds: the returns of some sweeps of one layer, with a number each to colour by, thinned to what can be drawn.


@dataclass(frozen=True)
class Cloud:
    """M returns."""

    point_m: NDArray[np.float32]
    """(M, 3) relative to the stage's centre."""
    value: NDArray[np.float64]
    """(M,) to colour by; NaN is unknown."""
    pulse: NDArray[np.int64]
    """(M,) id of the pulse."""
    sweep: NDArray[np.int32]
    """(M,) number of the sweep."""
    row: NDArray[np.intp]
    """(M,) which beam of its sweep."""
    range_m: NDArray[np.float32]
    """(M,) how far from the sensor."""

    def __len__(self) -> int:
        """Count the points."""
        return len(self.value)

    def kept(self, mask: NDArray[np.bool_]) -> "Cloud":
        """Return some of the points."""
        return Cloud(**{name: getattr(self, name)[mask] for name in Cloud.__dataclass_fields__})


EMPTY = Cloud(
    np.zeros((0, 3), np.float32), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.intp),
    np.zeros(0, np.float32),
)  # fmt: skip


def cloud_of(stage: Stage, layer: int, window: list[int], quantity: Quantity, partner: int | None) -> Cloud:
    """Gather the returns of some sweeps.

    Args:
        stage: where they come from.
        layer: which layer.
        window: numbers of the sweeps.
        quantity: what to colour by.
        partner: the simulation that the first layer is compared with; other layers are compared themselves.

    Raises:
        InputError: the quantity cannot be had, and why.
    """
    parts: list[Cloud] = []
    for number in window:
        log = stage.sweep(layer, number)
        if log is not None:
            beam_value = _beam_value(stage, partner if layer == 0 else layer, number, quantity)
            parts.append(_part(log, number, stage, quantity, beam_value))
    if not parts:
        return EMPTY
    columns = {name: np.concatenate([getattr(part, name) for part in parts]) for name in Cloud.__dataclass_fields__}
    return replace(EMPTY, **columns)


def thin(clouds: list[Cloud], limit: int) -> list[Cloud]:
    """Drop points until no more than `limit` are left in all clouds together.

    Which ones go is decided by a hash of their pulse: at random over rings and azimuths, always the same ones, and the
    same beams in each cloud, so that real and simulated returns stay in pairs.
    """
    total = sum(map(len, clouds))
    if total <= limit:
        return clouds
    keys = [key_of(cloud.pulse) for cloud in clouds]
    threshold = np.partition(np.concatenate(keys), limit)[limit]
    return [cloud.kept(key < threshold) for cloud, key in zip(clouds, keys, strict=True)]


def _beam_value(stage: Stage, compared: int | None, number: int, quantity: Quantity) -> NDArray[np.float64] | None:
    if quantity not in ("range error", "log-likelihood"):
        return None
    if not compared:
        raise InputError(f"{quantity}", "needs a simulation of the first log; give a world or its log as well")
    return (stage.range_error if quantity == "range error" else stage.log_likelihood)(compared, number)


def _part(log: Log, number: int, stage: Stage, quantity: Quantity, beam_value: NDArray[np.float64] | None) -> Cloud:
    hit = log.returns.hit
    row = np.nonzero(hit)[0]
    points = log.points() + stage.shift_m(log.map_origin_m)
    return Cloud(
        (points - stage.centre_m).astype(np.float32),
        _values(log, quantity, points, row, beam_value),
        log.beams.pulse[row],
        np.full(len(row), number, dtype=np.int32),
        row,
        log.returns.range_m[hit],
    )


def _values(
    log: Log,
    quantity: Quantity,
    points: NDArray[np.float64],
    row: NDArray[np.intp],
    beam_value: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    hit, unknown = log.returns.hit, np.full(len(row), np.nan)
    if quantity == "height":
        return points[:, 2]
    if quantity == "ring":
        return log.beams.ring[row].astype(np.float64)
    if quantity in ("intensity", "label"):
        column = log.returns.intensity if quantity == "intensity" else log.returns.label
        return unknown if column is None else column[hit].astype(np.float64)
    if beam_value is not None:  # of the first return of each beam; later ones have none
        first = np.ones(len(row), dtype=bool) if hit.ndim == 1 else np.nonzero(hit)[1] == 0
        unknown[first] = beam_value[row[first]]
    return unknown


def key_of(pulse: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a (M,) random key per pulse: its bits mixed (SplitMix64's finaliser, a bijection: no two are equal)."""
    x = pulse.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# Frame: the coloured clouds of one moment, from what the person chose. No server in here: arrays in, arrays out.


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


# Level of detail: clouds in slices, each spread over the whole, of which fewer are drawn while the camera moves.
#
# Slices are octaves: octave 0 has half of the points, octave 1 a quarter, and so on. Leaving out the first few halves
# the cloud that often. Which points stay longest is drawn at random, weighted by their squared range: beams diverge,
# and so what is left is spread evenly over the ground instead of crowding around the sensor.


COARSEST = 8192
"""The last slice of a cloud holds at least so many points, if the cloud does."""
_WEIGHED_M = 1.0, 60.0
"""Ranges beyond these count as these."""
LARGEST = 3.0
"""Points of a thinned cloud are drawn at most so many times as large."""

Counts = dict[int, int]
"""Points of a cloud by octave."""


def octaves(key: NDArray[np.uint64], range_m: NDArray[np.float32]) -> NDArray[np.intp]:
    """Sort points into slices.

    Args:
        key: (M,) random numbers of 64 bits.
        range_m: (M,) how far each point was from the sensor.

    Returns:
        (M,) octave of each point; the last one has COARSEST points or a few more, or all.
    """
    n = len(key)
    share = key.astype(np.float64) / 2.0**64 * (1 - 2.0**-53)  # below 1
    # Efraimidis and Spirakis: the smallest of these are a sample without replacement with these weights. They grow with
    # the key: `thin` leaves small keys, and none may be missing at the end that stays longest.
    order = -np.log1p(-share) / np.clip(range_m, *_WEIGHED_M) ** 2
    halvings = max(int(np.log2(n / COARSEST)), 0) if n else 0
    ends = [n >> octave for octave in range(halvings, 0, -1)]  # how many points the later octaves have together
    if not ends:
        return np.zeros(n, dtype=np.intp)
    bounds = np.partition(order, ends)[ends]
    return halvings - np.searchsorted(bounds, order, side="right")


def finest_octave(clouds: Iterable[Counts], budget: int) -> int:
    """Return the first octave to draw so that all clouds together have no more points than the budget allows.

    The last slice of each cloud is always drawn.
    """
    counts = list(clouds)
    last = max((max(each, default=0) for each in counts), default=0)
    for octave in range(last):
        if drawn(counts, octave) <= budget:
            return octave
    return last


def drawn(clouds: Iterable[Counts], finest: int) -> int:
    """Count the points that are drawn from an octave on."""
    return sum(n for each in clouds for octave, n in each.items() if octave >= min(finest, max(each, default=0)))


def enlarged(n_drawn: int, n_points: int) -> float:
    """Return how much larger to draw the points that are left, so that they cover as much as all would."""
    return min(float(np.sqrt(n_points / max(n_drawn, 1))), LARGEST)
