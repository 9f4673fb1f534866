# SPDX-License-Identifier: Apache-2.0
"""The pictures of a report: one sweep, real beside simulated, and the plots, each drawn for screens and for phones."""

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from hedgerow.base.figure import write_figure
from hedgerow.errors import InputError
from hedgerow.log import Log, Returns
from hedgerow.metrics import Comparison
from hedgerow.metrics.bearing import BearingHistogram, Directions
from hedgerow.metrics.beside import can_look_up
from hedgerow.metrics.inputs import HasSweeps, Recording, Simulated, simulate_sweeps
from hedgerow.metrics.pair import SimulatedSweep
from hedgerow.metrics.scores import is_floor
from hedgerow.report.column_plots import (
    by_learned_distance,
    intensity_by_band,
    intensity_distributions,
    labels_right,
    returns_by_elevation,
)
from hedgerow.report.forecast_plots import crps_by_range, reliability_curves
from hedgerow.report.plots import (
    NARROW_IN,
    WIDE_IN,
    Window,
    bearing_histograms,
    busiest_window,
    likelihood_histograms,
    range_histograms,
)
from hedgerow.report.sweep_plots import range_images, sweeps_from_above, sweeps_in_perspective

_WIDTH_PX = {WIDE_IN: 1300, NARROW_IN: 780}


@dataclass(frozen=True, slots=True)
class Picture:
    """One figure as data addresses."""

    wide: str
    narrow: str
    caption: str


def one_sweep(real: HasSweeps, named: Mapping[str, Simulated], sweep: int | None, seed: int) -> dict[str, Log]:
    """Return one sweep of the real log, as "real", and of every simulation.

    Args:
        real: the real log.
        named: the simulations; the real beams are fired at those that are worlds.
        sweep: its number. Default: the middle one.
        seed: for firing.

    Raises:
        InputError: no such sweep.
    """
    number = _middle(real) if sweep is None else sweep
    seen = _read("real", real, number)
    drawn = {"real": seen}
    for name, source in named.items():
        if isinstance(source, HasSweeps) and not hasattr(source, "fire") and not can_look_up(source):
            source = _read(name, source, number)
        [answer] = simulate_sweeps(name, source, [seen], seed)
        drawn[name] = _answered(seen, answer)
    return drawn


def _answered(seen: Log, answer: SimulatedSweep) -> Log:
    """Return a simulated sweep to draw: its own beams, where it has others and knows their rings."""
    own, range_m = answer.own, answer.own_range_m
    if own is None or range_m is None or len(np.unique(own.ring)) < 2:
        return seen.with_returns(Returns(answer.range_m))
    return replace(seen, beams=own, returns=Returns(range_m))


def pictures_of_sweep(sweeps: Mapping[str, Log]) -> list[Picture]:
    """Draw a sweep, real beside simulated."""
    number = sweeps["real"].beams.sweep[0]
    candidates = (
        picture(
            lambda width_in: sweeps_in_perspective(sweeps, width_in),
            "jpg",
            f"Sweep {number}, seen by a camera behind the sensor; the colour is the height.",
        ),
        picture(lambda width_in: range_images(sweeps, width_in), "png", f"Sweep {number} as the sensor sees it."),
        picture(
            lambda width_in: sweeps_from_above(sweeps, width_in),
            "jpg",
            f"Sweep {number} from above; a red cross marks the sensor.",
        ),
    )
    return [each for each in candidates if each is not None]


def without_floors(comparison: Comparison) -> Comparison:
    """Return the simulations alone; what has nothing but floors keeps them."""
    models = {name: scores for name, scores in comparison.scores.items() if not is_floor(name)}
    return Comparison(models or comparison.scores)


def plots(everything: Comparison, sweeps: Mapping[str, Log]) -> Iterator[Picture]:
    """Draw the plots that apply: those of forecasts, then those of the papers."""
    comparison = without_floors(everything)
    candidates = (
        picture(
            lambda width_in: reliability_curves(comparison, width_in),
            "svg",
            "How true the forecasts of returns are: of the beams said to return with some probability, how many did. "
            "On the grey line forecasts are right; above it more return than was said.",
        ),
        picture(
            lambda width_in: crps_by_range(everything, width_in),
            "svg",
            "CRPS by measured range: where the score comes from. One band alone can be won by always saying its range, "
            "as climatology does where most returns are; all together they cannot.",
        ),
        *column_pictures(everything),
        picture(
            lambda width_in: range_histograms(comparison, width_in),
            "svg",
            "How far the beams reach: share of all beams by first range.",
        ),
        _bearings(comparison, sweeps),
        picture(
            lambda width_in: likelihood_histograms(comparison, width_in),
            "svg",
            "How likely each world finds the real beams; more weight to the right is better.",
        ),
    )
    return (each for each in candidates if each is not None)


def column_pictures(everything: Comparison) -> Iterator[Picture | None]:
    """Draw what returns are besides their ranges, and where, as far as it is known."""
    yield picture(
        lambda width_in: by_learned_distance(everything, width_in),
        "svg",
        "Real returns by their distance to the nearest learned one: how many are found, and the CRPS of their ranges. "
        "To the left what a world remembers, to the right what it makes of places that were not seen.",
    )
    yield picture(
        lambda width_in: returns_by_elevation(everything, width_in),
        "svg",
        "Share of the beams that return, by elevation; it needs no partners, so that any program's log has it.",
    )
    yield picture(
        lambda width_in: intensity_by_band(everything, width_in),
        "svg",
        "Intensity by measured range and by the angle at which the beam met the surface (0 is square on); no plane: "
        "foliage, edges, thin things.",
    )
    yield picture(
        lambda width_in: intensity_distributions(everything, width_in),
        "svg",
        "Cumulative distribution of the intensities of all returns.",
    )
    yield picture(
        lambda width_in: labels_right(everything, width_in),
        "svg",
        "Labels: of the returns of one draw, how many have the real label; the number of beams stands beside each.",
    )


def _bearings(comparison: Comparison, sweeps: Mapping[str, Log]) -> Picture | None:
    first = next(iter(comparison.scores.values())).histograms
    if (fine := first.real_bearing) is not None:
        window = busiest_window(fine)
        simulated = {name: each.histograms.simulated_bearing for name, each in comparison.scores.items()}
        known = {name: each for name, each in simulated.items() if each is not None}
        caption = f"Ring {window.ring}: histograms of bearing and range of all sweeps, and of the middle bearing alone."
        return picture(lambda width_in: bearing_histograms(fine, known, window, width_in), "png", caption)
    directions = Directions(1.0)
    coarse = {name: BearingHistogram(directions, 0.25) for name in sweeps}
    for name, log in sweeps.items():
        coarse[name].add(directions.of(log.beams), log.returns.first_m)
    finite = sweeps["real"].returns.first_m[np.isfinite(sweeps["real"].returns.first_m)]
    if len(finite) == 0:
        return None
    window = Window(None, (-180.0, 180.0), (0.0, float(np.percentile(finite, 97)) + 0.25))
    caption = f"Sweep {sweeps['real'].beams.sweep[0]}: beams by bearing and range, all rings."
    real = coarse.pop("real")
    return picture(lambda width_in: bearing_histograms(real, coarse, window, width_in), "png", caption)


def picture(draw: Callable[[float], Any | None], kind: str, caption: str) -> Picture | None:
    """Draw a figure for screens and for phones; None if there is nothing to draw."""
    wide = draw(WIDE_IN)
    if wide is None:
        return None
    return Picture(_embedded(wide, kind, WIDE_IN), _embedded(draw(NARROW_IN), kind, NARROW_IN), caption)


def _embedded(figure: Any, kind: str, width_in: float) -> str:
    buffer = io.BytesIO()
    write_figure(figure, buffer, kind, _WIDTH_PX[width_in] / width_in)
    mime = {"png": "image/png", "svg": "image/svg+xml", "jpg": "image/jpeg"}[kind]
    return f"data:{mime};base64,{base64.b64encode(buffer.getvalue()).decode('ascii')}"


def _middle(real: HasSweeps) -> int:
    numbers = np.asarray(cast("Any", real).sweeps)
    if len(numbers) == 0:
        raise InputError("real", "the log has no beams; there is nothing to draw")
    return int(numbers[len(numbers) // 2])


def _read(name: str, source: Recording, number: int) -> Log:
    # A log on the disk reads the sweep alone; one in memory selects it.
    log: Log = cast("Any", source).select(sweep=number) if isinstance(source, Log) else cast("Any", source).read(number)
    if len(log) == 0:
        raise InputError(name, f"has no sweep {number} to draw")
    return log
