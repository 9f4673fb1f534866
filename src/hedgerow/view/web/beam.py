# SPDX-License-Identifier: Apache-2.0
"""One beam: which one was clicked, and where a world says that it would return from (Browning 2012 §5.4)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics.matching import SAME_DIRECTION, SAME_ORIGIN_M
from hedgerow.view.web.frame import ShownLayer
from hedgerow.view.web.session import Rgb, Session
from hedgerow.world.learned import ElementWorld
from hedgerow.world.target import RangeDensity

SEEN_RAD = 0.004
"""Points as near as this to the click are under the cursor: one on the nearest surface among them was meant."""
MISSED_RAD = 0.03
STEP_M, SIGMA_M = 0.005, 0.01
"""The density is drawn in these steps; sharper elements are drawn this wide, so that none falls between two steps."""
_NO_LIMIT_M = 200.0


@dataclass(frozen=True)
class BeamAt:
    """Which beam: a sweep's number, the beam's row in it, and the layer."""

    sweep: int
    row: int
    layer: int = 0
    """Whose beam it is; a simulation's beams are those of the first layer."""


@dataclass(frozen=True)
class BeamView:
    """What is known of one beam."""

    at: BeamAt
    origin_m: NDArray[np.float64]
    """(3,) map frame."""
    direction: NDArray[np.float64]
    ring: int
    measured_m: dict[str, float]
    """First range by layer; inf is no return."""
    density: dict[str, RangeDensity]
    """By layer, of those whose world has one."""
    log_density: dict[str, float]
    """Log density of what was really measured, by layer."""
    colour: dict[str, Rgb]
    """Each layer's own."""


def pick_beam(shown: list[ShownLayer], origin_m: NDArray[np.float64], direction: NDArray[np.float64]) -> BeamAt | None:
    """Find the beam whose return was clicked.

    Args:
        shown: the clouds, as drawn.
        origin_m: (3,) where the line of sight begins, in the frame of the drawing.
        direction: (3,) of unit length.

    Returns:
        The beam of a return on the nearest surface under the cursor, else of the one least off it; None if all are far.
    """
    found: list[tuple[float, float, BeamAt]] = []
    for each in shown:
        if len(each.cloud) == 0:
            continue
        to = each.cloud.point_m + (each.shift_m - origin_m)
        along = to @ direction
        off = np.linalg.norm(to - along[:, None] * direction, axis=1)
        angle = np.where(along > 0, np.arctan2(off, along), np.inf)
        under = np.flatnonzero(angle < SEEN_RAD)
        if len(under):
            in_front = under[along[under] < 1.02 * along[under].min() + 0.1]
            best = int(in_front[np.argmin(angle[in_front])])
        else:
            best = int(np.argmin(angle))
        at = BeamAt(int(each.cloud.sweep[best]), int(each.cloud.row[best]), each.layer)
        found.append((max(float(angle[best]), SEEN_RAD), float(along[best]), at))
    angle, _, at = min(found, key=lambda one: one[:2], default=(np.inf, 0.0, None))
    return at if angle < MISSED_RAD else None


def inspect_beam(session: Session, at: BeamAt) -> BeamView:
    """Gather what all layers say of one beam.

    Raises:
        InputError: there is no such beam.
    """
    own = session.layers[at.layer] if session.layers else None
    real = None if own is None else session.sweep(0 if own.is_fired else at.layer, at.sweep)
    if real is None or not 0 <= at.row < len(real):
        n = 0 if real is None else len(real)
        raise InputError(f"beam {at.row}", f"sweep {at.sweep} has {n} beams, numbered from 0")
    beams = real.beams
    measured: dict[str, float] = {}
    density: dict[str, RangeDensity] = {}
    log_density: dict[str, float] = {}
    for i, layer in enumerate(session.layers):
        log = session.sweep(i, at.sweep)
        if log is not None and _same_beam(real, log, at.row):
            measured[layer.name] = float(log.returns.first_m[at.row])
        if isinstance(layer.world, ElementWorld):
            density[layer.name] = range_density(layer.world, real, at.row)
            log_density[layer.name] = _log_density(layer.world, real[at.row : at.row + 1])
    row = at.row
    direction = beams.direction[row].astype(np.float64)
    colours = {layer.name: layer.colour for layer in session.layers}
    return BeamView(at, beams.origin_m[row], direction, int(beams.ring[row]), measured, density, log_density, colours)


def _same_beam(a: Log, b: Log, row: int) -> bool:
    return row < len(b) and all(
        np.allclose(getattr(a.beams, name)[row], getattr(b.beams, name)[row], rtol=0, atol=tolerance)
        for name, tolerance in (("origin_m", SAME_ORIGIN_M), ("direction", SAME_DIRECTION))
    )


def range_density(world: ElementWorld, real: Log, row: int) -> RangeDensity:
    """Ask a world for the density of the range along a beam of a log, up to the log's maximal range, in fine steps."""
    reach_m = real.max_range_m if np.isfinite(real.max_range_m) else _NO_LIMIT_M
    range_m = np.arange(STEP_M, reach_m + STEP_M, STEP_M)
    return world.pdf(real.beams[row : row + 1], range_m, min_sigma_m=SIGMA_M)


def _log_density(world: ElementWorld, beam: Log) -> float:
    try:
        return float(world.log_likelihood(beam)[0])
    except InputError:  # no maximal range, or a world of points beside others
        return np.nan


def choose_plot_span(view: BeamView, margin_m: float = 1.0) -> tuple[float, float]:
    """Return the ranges between which to draw the densities: where they are not all but 0, and all measured ones."""
    ranges_m = [value for value in view.measured_m.values() if np.isfinite(value)]
    for density in view.density.values():
        tall = density.range_m[density.density_per_m > 1e-3 * max(float(density.density_per_m.max()), 1e-12)]
        ranges_m += [float(tall[0]), float(tall[-1])] if len(tall) else []
    if not ranges_m:
        return 0.0, 10.0
    return max(0.0, min(ranges_m) - margin_m), max(ranges_m) + margin_m
