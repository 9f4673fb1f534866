# SPDX-License-Identifier: Apache-2.0
"""Frame: the coloured clouds of one moment, from what the person chose. No server in here: arrays in, arrays out."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import MEASURED, Log
from hedgerow.view.web.colours import (
    NO_SCALE,
    UNKNOWN,
    Legend,
    Limits,
    Quantity,
    colour,
    label_colour,
    label_name,
    robust_limits,
)
from hedgerow.view.web.session import Layer, Session
from hedgerow.view.web.shapes import GREY, element_values

POINT_LIMIT, MOVING_POINTS = 2_000_000, 250_000
"""Most points that are drawn while the camera stands, and while it moves."""
SPACING_M = 50.0
"""Between layers that are side by side."""


@dataclass(frozen=True)
class LayerCloud:
    """The returns of some sweeps of one layer, M in all, with a number each to colour by."""

    point_m: NDArray[np.float32]
    """(M, 3) relative to the session's centre."""
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

    def select(self, mask: NDArray[np.bool_]) -> "LayerCloud":
        """Return some of the points."""
        return LayerCloud(**{name: getattr(self, name)[mask] for name in LayerCloud.__dataclass_fields__})


EMPTY = LayerCloud(
    np.zeros((0, 3), np.float32), np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.intp),
    np.zeros(0, np.float32),
)  # fmt: skip


def gather_cloud(
    session: Session, layer: int, window: list[int], quantity: Quantity, compared_with: int | None
) -> LayerCloud:
    """Gather the returns of some sweeps.

    Args:
        session: where they come from.
        layer: which layer.
        window: numbers of the sweeps.
        quantity: what to colour by.
        compared_with: the simulation that the first layer is compared with; other layers are compared themselves.

    Raises:
        InputError: the quantity cannot be had, and why.
    """
    parts: list[LayerCloud] = []
    for number in window:
        log = session.sweep(layer, number)
        if log is not None:
            beam_value = _beam_value(session, compared_with if layer == 0 else layer, number, quantity)
            parts.append(_sweep_cloud(log, number, session, quantity, beam_value))
    if not parts:
        return EMPTY
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in LayerCloud.__dataclass_fields__
    }
    return replace(EMPTY, **columns)


def thin(clouds: list[LayerCloud], limit: int) -> list[LayerCloud]:
    """Drop points until no more than `limit` are left in all clouds together.

    Which ones go is decided by a hash of their pulse: at random over rings and azimuths, always the same ones, and the
    same beams in each cloud, so that real and simulated returns stay in pairs.
    """
    total = sum(map(len, clouds))
    if total <= limit:
        return clouds
    keys = [hash_pulses(cloud.pulse) for cloud in clouds]
    threshold = np.partition(np.concatenate(keys), limit)[limit]
    return [cloud.select(key < threshold) for cloud, key in zip(clouds, keys, strict=True)]


def _beam_value(session: Session, compared: int | None, number: int, quantity: Quantity) -> NDArray[np.float64] | None:
    if quantity not in ("range error", "log-likelihood"):
        return None
    if not compared:
        raise InputError(f"{quantity}", "needs a simulation of the first log; give a world or its log as well")
    return (session.range_error if quantity == "range error" else session.log_likelihood)(compared, number)


def _sweep_cloud(
    log: Log, number: int, session: Session, quantity: Quantity, beam_value: NDArray[np.float64] | None
) -> LayerCloud:
    hit = log.returns.hit
    row = np.nonzero(hit)[0]
    points = log.points() + session.shift_m(log.map_origin_m)
    return LayerCloud(
        (points - session.centre_m).astype(np.float32),
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
    if quantity in MEASURED:
        column: NDArray[Any] | None = getattr(log.returns, quantity)
        return unknown if column is None else column[hit].astype(np.float64)
    if beam_value is not None:  # of the first return of each beam; later ones have none
        first = np.ones(len(row), dtype=bool) if hit.ndim == 1 else np.nonzero(hit)[1] == 0
        unknown[first] = beam_value[row[first]]
    return unknown


def hash_pulses(pulse: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a (M,) random key per pulse: its bits mixed (SplitMix64's finaliser, a bijection: no two are equal)."""
    x = pulse.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@dataclass
class Choice:
    """What the person chose; the panel writes it."""

    position: int = 0
    """Position of the slider; 0 is the first sweep."""
    accumulate: int = 1
    """Number of sweeps that are shown together, the last one at the slider."""
    quantity: Quantity = "height"
    """What the colours mean."""
    hidden: set[int] = field(default_factory=set[int])
    """Numbers of the layers that are switched off."""
    compared_with: int | None = None
    """Number of the layer that the first one is compared with; None if there is only one."""
    spacing_m: float = 0.0
    """Distance from each layer to the next, side by side; 0 shows them over each other."""
    point_limit: int = POINT_LIMIT
    """Maximum number of points that are drawn, all clouds together."""
    moving_points: int = MOVING_POINTS
    """Maximum number of points while the camera moves; 0 for all."""
    limits: dict[Quantity, Limits] = field(default_factory=dict[Quantity, Limits])
    """Ends of the colour bar of each quantity; set when it is first shown, and fixed from then on."""


@dataclass(frozen=True)
class ShownLayer:
    """The cloud of one layer, ready to be drawn."""

    layer: int
    cloud: LayerCloud
    colour: NDArray[np.uint8]
    """(M, 3)."""
    shift_m: NDArray[np.float64]
    """(3,) how far it is moved aside."""


@dataclass(frozen=True)
class Frame:
    """All clouds of a moment."""

    shown: list[ShownLayer]
    legend: Legend
    n_points: int
    """Before thinning."""
    notes: list[str]
    """What could not be shown, and why."""

    @property
    def n_drawn(self) -> int:
        """Points after thinning."""
        return sum(len(each.cloud) for each in self.shown)


def make_frame(session: Session, choice: Choice, aside: NDArray[np.float64] | None = None) -> Frame:
    """Gather, thin and colour the clouds.

    Args:
        session: what there is.
        choice: what to show; limits that are missing are filled in.
        aside: (3,) unit vector along which layers are moved apart. Default: to the right, -y.
    """
    window = session.window(choice.position, choice.accumulate)
    layers = [i for i in range(len(session.layers)) if i not in choice.hidden]
    notes: list[str] = []
    whole = [_gather_or_note(session, i, window, choice, notes) for i in layers]
    quantity = choice.quantity
    values = np.concatenate([np.zeros(0), *(cloud.value for cloud in whole)])
    if not layers:
        values = element_values([layer.world for layer in session.worlds], quantity)
    if quantity not in NO_SCALE and quantity not in choice.limits and len(values):
        choice.limits[quantity] = robust_limits(quantity, values)
    limits = choice.limits.get(quantity)
    right = np.array([0.0, -1.0, 0.0]) if aside is None else aside
    shown = [
        ShownLayer(
            i, cloud, colour(quantity, cloud.value, limits, session.layers[i].colour), i * choice.spacing_m * right
        )
        for i, cloud in zip(layers, thin(whole, choice.point_limit), strict=True)
    ]
    legend = _legend(quantity, limits, values, [session.layers[i] for i in layers])
    return Frame(shown, legend, sum(map(len, whole)), notes)


def _gather_or_note(session: Session, layer: int, window: list[int], choice: Choice, notes: list[str]) -> LayerCloud:
    """Gather a cloud; in plain grey, with a note, where the quantity cannot be had."""
    try:
        return gather_cloud(session, layer, window, choice.quantity, choice.compared_with)
    except InputError as error:
        if str(error) not in notes:
            notes.append(str(error))
    try:
        plain = gather_cloud(session, layer, window, "layer", None)
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
    if quantity == "colour":
        said = "as the camera saw it" if np.isfinite(values).any() else "no log here has colours"
        return Legend(quantity, entries=((said, UNKNOWN),))
    return Legend(quantity, limits)
