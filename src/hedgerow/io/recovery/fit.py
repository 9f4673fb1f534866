# SPDX-License-Identifier: Apache-2.0
"""Work out a lidar's lasers from a few sweeps of points (see lasers.py), with the catalogue as a first guess.

Where the catalogue's azimuths fit, they are used. The calibration of another unit differs, as KITTI's does; then the
azimuths of the lasers to each other are found from which encoder counts occur: a rotor that advances by 1.85 counts
between firings leaves the same pattern of counts in the azimuths of every laser, shifted by the laser's own azimuth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.io.recovery.lasers import Ints, Lasers, fit_lattice, fit_line

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor


_TURN = 2 * np.pi
_MIN_POINTS = 50  # of a laser, to fit it
_KEPT = 0.85  # mean over lasers of how well the lattice is kept; uniform azimuths have 0.02
_SHIFT_RAD = np.deg2rad(8.0)  # azimuths of two units' lasers differ by less than this
_FALL_RAD = np.pi  # an azimuth that falls by more than half a turn has passed the seam
_DISORDER = 0.05  # share of neighbours that may lie out of order


@dataclass(frozen=True, slots=True, eq=False)
class Nominal:
    """Lasers of a catalogue sensor, highest first, and what its pattern says about steps."""

    lasers: Lasers
    ring: NDArray[np.int64]
    """(K,) ring number of each laser, as the driver counts."""
    steps_rad: tuple[float, ...]
    """Candidates for the lattice of rotor angles."""
    clockwise: bool
    start_rad: float
    """Rotor angle at which a sweep starts."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Lasers as fitted, or why they could not be."""

    lasers: Lasers | None
    reason: str = ""


def nominal(sensor: "Sensor") -> Nominal | None:
    """Return what the catalogue says about a spinning sensor with one group of lasers; None for others."""
    config = sensor.config.pattern
    if config.kind != "spinning" or len(config.group) != 1:
        return None
    from hedgerow.sensor.scan.spinning import ring_numbers

    group = config.group[0]
    n = len(group.elevation_deg)
    sign = -1 if config.turns == "clockwise" else 1
    turn_s = 1 / sensor.rate_hz
    slot_s = turn_s / config.slots_per_turn if config.slots_per_turn else (config.slot_us or 0) * 1e-6
    late = np.asarray(group.time_us or [0.0] * n) * 1e-6 / turn_s * _TURN * sign
    lasers = Lasers.of_group(group, slot_s / turn_s * _TURN, late)
    order = np.argsort(-lasers.elevation_rad, kind="stable")
    encoder = sensor.config.encoder_step_deg
    steps = (*([np.deg2rad(encoder)] if encoder else []), lasers.step_rad)
    start = np.deg2rad(config.start_azimuth_deg)
    return Nominal(_ordered(lasers, order), ring_numbers(config)[0][order], steps, sign < 0, float(start))


@dataclass(frozen=True, slots=True)
class _Turn:
    """Where a sweep starts, and which way it turns: 1 is counter-clockwise, else -1."""

    start_rad: float
    sense: int


def fit_lasers(clouds: Sequence[Array], rings: Sequence[Ints], known: Nominal, start_rad: float) -> Fit:
    """Fit the lasers of a sensor to a few sweeps.

    Args:
        clouds: (N, 3) points each, sensor frame, not motion-compensated.
        rings: (N,) first guess of the laser of each point, from `first_lasers`.
        known: the sensor as the catalogue has it.
        start_rad: azimuth of the rotor at which a sweep starts.

    Returns:
        The lasers, highest first as in `known`, or the reason why the points do not show them.
    """
    every, ring = np.concatenate(clouds), np.concatenate(rings)
    count = np.bincount(ring, minlength=len(known.lasers))
    seen = np.flatnonzero(count >= _MIN_POINTS)
    if len(seen) < len(known.lasers) / 2:
        return Fit(None, f"only {len(seen)} of {len(known.lasers)} lasers have {_MIN_POINTS} points")
    of_laser = {int(k): every[ring == k] for k in seen}
    lines = {k: fit_line(points) for k, points in of_laser.items()}
    guess = known.lasers
    elevation, up = guess.elevation_rad.copy(), guess.up_m.copy()
    for k, (angle, height, _) in lines.items():
        elevation[k], up[k] = angle, height
    shown = replace(guess, elevation_rad=elevation, up_m=up)
    turn = _Turn(start_rad, -1 if known.clockwise else 1)
    found = [_on_lattice(shown, of_laser, step, turn, clouds, rings) for step in known.steps_rad]
    best, kept = max(found, key=lambda each: each[1])
    if kept < _KEPT:
        return Fit(None, f"the azimuths keep no common step (agreement {kept:.2f}, needs {_KEPT})")
    return Fit(best)


def first_lasers(points: Array, known: Nominal, ring: NDArray[np.integer] | None = None) -> Ints:
    """Guess which laser made each of (N, 3) points: by ring number, else by order, else by the catalogue's angles.

    Returns:
        (N,) index into the lasers of `known`.
    """
    n = len(known.lasers)
    if ring is not None and len(ring) and ring.max() < n:
        return np.argsort(known.ring)[ring]
    by_order = split_rings(points, n)
    if by_order is None:
        return known.lasers.nearest(points)[0]
    rising = np.median(points[by_order == 0, 2]) < np.median(points[by_order == n - 1, 2])
    return n - 1 - by_order if rising else by_order


def guess_turned(points: Array, laser: Ints, known: Nominal, start_rad: float) -> Array:
    """Return what share of its turn the rotor had done at (N, 3) points, if the unit is like the catalogue's."""
    turned = (known.lasers.rotor_rad(points, laser) - start_rad) * (-1 if known.clockwise else 1)
    half_step = known.lasers.step_rad / 2  # a pulse of the first stop may come out a hair before it
    return np.clip(((turned + half_step) % _TURN - half_step) / _TURN, 0, 1)


def _on_lattice(
    lasers: Lasers,
    of_laser: dict[int, Array],
    step: float,
    turn: "_Turn",
    clouds: Sequence[Array],
    rings: Sequence[Ints],
) -> tuple[Lasers, float]:
    """Fit sideways distances and azimuths for one step; return them and how well the lattice is kept."""
    left, phase = lasers.left_m.copy(), np.zeros(len(lasers))
    kept: list[float] = []
    for k, points in of_laser.items():
        start = turn.start_rad + lasers.azimuth_rad[k]
        left[k], phase[k], agreement = fit_lattice(points, step, start, turn.sense)
        kept.append(agreement)
    fitted = replace(lasers, left_m=left, step_rad=step, azimuth_rad=lasers.azimuth_rad + turn.sense * phase)
    if np.abs(np.exp(2j * np.pi * phase / step)[list(of_laser)].mean()) > _KEPT:  # the catalogue's are right
        return fitted, float(np.mean(kept))
    if abs(_TURN / step - round(_TURN / step)) > 1e-6:
        return fitted, 0.0  # without an encoder that closes the turn, nothing ties the lasers together
    shift = _shifts(fitted, turn, clouds, rings)
    return replace(fitted, azimuth_rad=fitted.azimuth_rad + turn.sense * shift * step), float(np.mean(kept))


def _shifts(lasers: Lasers, turn: "_Turn", clouds: Sequence[Array], rings: Sequence[Ints]) -> Array:
    """Find how many counts each laser is turned, from the counts at which each has points."""
    n_counts, n_lasers = round(_TURN / lasers.step_rad), len(lasers)
    seen = np.zeros((len(clouds), n_lasers, n_counts))
    for number, (points, ring) in enumerate(zip(clouds, rings, strict=True)):
        turned = turn.sense * (lasers.rotor_rad(points, ring) - turn.start_rad)
        counts = np.rint(turned / lasers.step_rad).astype(np.int64) % n_counts
        seen[number, ring, counts] = 1
    # Less the mean, so that a laser with gaps is matched by its counts and not by where it has points.
    spectrum = np.fft.rfft(seen - _smooth(seen), axis=2)
    window = int(_SHIFT_RAD / lasers.step_rad)
    reach = np.concatenate([np.arange(window + 1), np.arange(-window, 0)])
    reference = spectrum[:, int(np.argmax(seen.sum(axis=(0, 2))))]
    shift = np.zeros(n_lasers, np.int64)
    for _ in range(3):
        match = np.fft.irfft(spectrum * reference[:, None].conj(), n_counts, axis=2).sum(axis=0)
        shift = reach[np.argmax(match[:, reach], axis=1)]
        turned = np.exp(2j * np.pi * np.arange(spectrum.shape[2]) * shift[:, None] / n_counts)
        reference = (spectrum * turned).sum(axis=1)
    return shift - np.round(np.mean(shift))


def _smooth(seen: Array, width: int = 25) -> Array:
    kernel = np.zeros(seen.shape[2])
    kernel[: width // 2 + 1] = kernel[-(width // 2) :] = 1 / width
    return np.fft.irfft(np.fft.rfft(seen, axis=2) * np.fft.rfft(kernel), seen.shape[2], axis=2)


def _ordered(lasers: Lasers, order: NDArray[np.intp]) -> Lasers:
    names = ("elevation_rad", "up_m", "left_m", "azimuth_rad")
    return replace(lasers, **{name: getattr(lasers, name)[order] for name in names})


def split_rings(points: NDArray[np.float64], n_rings: int) -> NDArray[np.int64] | None:
    """Number the lasers of (N, 3) points in the sensor frame, from the order of the points alone.

    KITTI's files hold one laser after the other, the highest first, each as one turn of growing azimuth: where the
    azimuth falls back, the next laser begins. A laser that saw little can hide such a seam, and a laser that saw
    nothing has none. So the seams are trusted only if there are as many as there are lasers and the elevations fall
    from one to the next.

    Returns:
        (N,) from 0 to n_rings - 1, or None if the points are not stored laser by laser, or some laser has no points.
    """
    azimuth = np.arctan2(points[:, 1], points[:, 0]) % (2 * np.pi)
    steps = np.diff(azimuth)
    rising = float(np.mean(steps >= 0)) if len(steps) else 0.0
    seams = steps < -_FALL_RAD
    if rising < 0.5:  # turned the other way
        rising, seams = 1 - rising, steps > _FALL_RAD
    if int(np.count_nonzero(seams)) != n_rings - 1 or rising < 1 - _DISORDER - n_rings / max(len(points), 1):
        return None
    ring = np.concatenate([[0], np.cumsum(seams)]).astype(np.int64)
    elevation = np.arctan2(points[:, 2], np.hypot(points[:, 0], points[:, 1]))
    middle = np.array([np.median(elevation[ring == number]) for number in range(n_rings)])
    falls = np.diff(middle) < 0
    # Medians of lasers that emit from other heights may swap with a neighbour; the whole must have one direction.
    return ring if max(falls.mean(), 1 - falls.mean()) > 1 - _DISORDER else None
