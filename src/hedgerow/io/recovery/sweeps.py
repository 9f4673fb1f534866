# SPDX-License-Identifier: Apache-2.0
"""Recovery: complete sweeps out of bare points, and how sure that is.

    recovery = Recovery.of(sensor, clouds)            # a few sweeps show the lasers, and what the vehicle hides
    pulses = recovery.complete(points)                # every firing of one sweep, missing returns included

Beams that look down and never return in any of the clouds are hidden by the vehicle: they are left out, since they say
nothing about the world. Points that fit no firing are kept as pulses of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.io.recovery.fit import Nominal, first_lasers, fit_lasers, nominal
from hedgerow.io.recovery.grid import Grid, arrange, turned_steps
from hedgerow.io.recovery.lasers import Ints, Lasers

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor

SURE = 0.97
"""Share of points that must be explained over a few sweeps; clouds of another sensor stay far below."""
SURE_OF_ONE = 0.9
"""The same of a single sweep, whose poses may be worse than those of the others."""
_DOWN_RAD = np.deg2rad(-5.0)  # lower beams meet the ground within 20 m of a car: never a return means hidden
_SECTOR_RAD = np.deg2rad(1.0)
_SEEN_SHARE = 0.02  # of a sector's firings: fewer returns are stray ones


class NotRecovered(Exception):
    """The points do not show their firings; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Pulses:
    """Firings of one sweep in the sensor frame, in the order in which they were fired; points come along by index."""

    origin_m: Array
    """(P, 3)."""
    direction: Array
    """(P, 3) of unit length."""
    range_m: Array
    """(P,); inf is no return."""
    ring: Ints
    """(P,)"""
    turned: Array
    """(P,) share of the turn done when it was fired, 0 to 1."""
    point: Ints
    """(P,) index of the point that it made, or -1."""


@dataclass(frozen=True, slots=True, eq=False)
class Recovery:
    """What is needed to complete the sweeps of one recording."""

    known: Nominal
    lasers: Lasers
    start_rad: float
    hidden: NDArray[np.bool_]
    """(sectors, K) beams that the vehicle hides."""
    quality: dict[str, Any]
    """How sure it is, over the sweeps that it was fitted to."""

    @classmethod
    def of(
        cls,
        sensor: "Sensor",
        clouds: Sequence[Array],
        start_rad: float | None = None,
        lasers: Sequence[Ints] | None = None,
    ) -> Self:
        """Fit the lasers of a sensor to a few sweeps of points.

        Args:
            sensor: of the catalogue, spinning, with one group of lasers.
            clouds: (N, 3) points each, sensor frame, not motion-compensated.
            start_rad: azimuth of the rotor at which a sweep starts. Default: that of the sensor.
            lasers: (N,) first guess of the laser of each point, highest first. Default: from the order of the points.

        Raises:
            NotRecovered: the points do not show the firings of this sensor; says why.
        """
        known = nominal(sensor)
        if known is None:
            raise NotRecovered(f"the catalogue's {sensor.name} has no plain rows of lasers")
        guesses = lasers or [first_lasers(cloud, known) for cloud in clouds]
        guesses = [guess for guess, cloud in zip(guesses, clouds, strict=True) if len(cloud)]
        clouds = [cloud for cloud in clouds if len(cloud)]
        if not clouds:
            raise NotRecovered("there are no points")
        start = known.start_rad if start_rad is None else start_rad
        fit = fit_lasers(clouds, guesses, known, start)
        if fit.lasers is None:
            raise NotRecovered(fit.reason)
        grids = [arrange(cloud, fit.lasers, start, known.clockwise) for cloud in clouds]
        hidden, quality = _hidden(grids, fit.lasers), _quality(grids, fit.lasers)
        if quality["explained"] < SURE:
            raise NotRecovered(f"only {quality['explained']:.1%} of the points fit a firing (needs {SURE:.0%})")
        return cls(known, fit.lasers, start, hidden, quality)

    def complete(self, points: Array) -> Pulses:
        """Return every firing of one sweep, given its (N, 3) points in the sensor frame.

        Raises:
            NotRecovered: too few of the points fit a firing.
        """
        lasers = self.lasers
        grid = arrange(points, lasers, self.start_rad, self.known.clockwise)
        if grid.explained < SURE_OF_ONE:
            raise NotRecovered(f"only {grid.explained:.1%} of the points fit a firing (needs {SURE_OF_ONE:.0%})")
        stop, laser = np.nonzero(grid.empty(len(lasers)) & ~self.hidden[_sector(grid.count, lasers)])
        sign = -1 if self.known.clockwise else 1
        rotor = self.start_rad + sign * lasers.step_rad * grid.count[stop].astype(np.float64)
        miss_origin, miss_direction = lasers.beams(rotor, laser.astype(np.int64))
        origin = lasers.origins(points, grid.laser)
        along = points - origin
        range_m = np.linalg.norm(along, axis=1)
        turned = turned_steps(points, grid.laser, lasers, self.start_rad, self.known.clockwise)
        turned[grid.stop >= 0] = grid.count[grid.stop[grid.stop >= 0]]
        every_laser = np.concatenate([grid.laser, laser])
        every_turned = np.concatenate([turned, grid.count[stop].astype(np.float64)]) * (lasers.step_rad / (2 * np.pi))
        order = np.lexsort([every_laser, every_turned])
        return Pulses(
            np.concatenate([origin, miss_origin])[order],
            np.concatenate([along / range_m[:, None], miss_direction])[order],
            np.concatenate([range_m, np.full(len(stop), np.inf)])[order],
            self.known.ring[every_laser[order]],
            np.clip(every_turned[order], 0, 1),
            np.concatenate([np.arange(len(points)), np.full(len(stop), -1)])[order],
        )


def _sector(count: Ints, lasers: Lasers) -> Ints:
    return (count * lasers.step_rad / _SECTOR_RAD).astype(np.int64)


def _hidden(grids: Sequence[Grid], lasers: Lasers) -> NDArray[np.bool_]:
    n_sectors = int(np.ceil(2 * np.pi / _SECTOR_RAD)) + 1
    fired, returned = np.zeros((n_sectors, 1)), np.zeros((n_sectors, len(lasers)))
    for grid in grids:
        sector = _sector(grid.count, lasers)
        np.add.at(fired, sector, 1.0)
        np.add.at(returned, sector, ~grid.empty(len(lasers)))
    never = returned <= _SEEN_SHARE * fired
    return never & (lasers.elevation_rad < _DOWN_RAD)


def _quality(grids: Sequence[Grid], lasers: Lasers) -> dict[str, Any]:
    explained = float(np.mean([grid.explained for grid in grids]))
    off_line = float(np.rad2deg(np.sqrt(np.mean([grid.off_line_rad**2 for grid in grids]))))
    off_step = float(np.rad2deg(np.sqrt(np.mean([grid.off_step_rad**2 for grid in grids]))))
    n_stops = float(np.mean([len(grid.count) for grid in grids]))
    summary = (
        f"recovered; {explained:.2%} of the points fit a firing, {off_line:.4f} degrees rms off their laser and "
        f"{off_step:.4f} off the rotor's steps"
    )
    return {
        "method": "lasers and firings fitted to the points",
        "explained": round(explained, 5),
        "rms_elevation_deg": round(off_line, 5),
        "rms_azimuth_deg": round(off_step, 5),
        "firings_per_sweep": round(n_stops, 1),
        "sweeps_fitted": len(grids),
        "summary": summary,
    }
