# SPDX-License-Identifier: Apache-2.0
"""What a sensor detects, measured on a recording: the threshold and the softness of its receiver (docs/models.md §18).

Ground is enough. Where a beam should meet it is known: from a plane that is fitted to each sweep, or from a world. How
much light comes back from there is known but for one factor, since light falls with the range and a grazing echo is
long and low. Some of these beams return and others do not; the share by the light is a normal distribution, whose
middle is the threshold and whose width the softness. That is probit regression. Some returns are lost whatever their
light (wet spots, dark cars, holes): a share of its own, as in psychometric curves, keeps them out of the softness.
Beams that returned from nearer met something else and are left out.

The reflectance of the ground is not known: the range that comes out is that of a wall of 10 % if the ground is as
bright as is said. Softness and falloff change the same share, so the falloff is given, not fitted.

    found = calibrate_receiver(hr.open_log("drive.parquet"), reflectance=0.08)
    found.range_m, found.softness  # each with its interval
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple, Protocol

import numpy as np
import tomli_w
from numpy.typing import NDArray

from hedgerow.base.atomic import atomic_file
from hedgerow.base.parameters import Parameters, Positive, Share
from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.pulse.stencil import Cone
from hedgerow.pulse.waveform import range_of_ns
from hedgerow.sensor import Sensor
from hedgerow.sensor.config import Detection
from hedgerow.world import World

_N_SECTORS = 36
"""Parts of the horizon that are drawn anew for the intervals: neighbouring beams meet the same ground."""
_N_DRAWS = 200
_N_BINS = 60
_LEAST_BEAMS = 200
_MOST_LOST = 0.3
"""Where more is lost whatever the light, it is no ground."""
_CELL_M = 1.0
_ROUNDS = 12
_BAND_M = 0.15
"""What lies this near the plane is the ground."""
_UNEVEN_M = 0.3
"""Ground of a world lies this near to the plane."""
_NEAR_M = 40.0
"""Returns within this distance of the sensor fix the plane."""


class HasSweeps(Protocol):
    """A log in memory or on the disk."""

    def iter_sweeps(self) -> Iterator[tuple[int, Log]]:
        """Give sweep after sweep."""
        ...


class ReceiverCalibrationSettings(Parameters):
    """What is known of the ground, and which beams count."""

    reflectance: Share = 0.1
    """Of the ground, head-on; asphalt about 0.08 if its light does not fall with the angle."""
    grazing: Share = 0.0
    """Exponent by which the ground's light falls with the cosine of the incidence angle; 0: a rough surface, 1: a
    Lambertian one."""
    falloff: Positive = 2.0
    """Exponent by which light falls with the range."""
    tolerance: Share = 0.1
    """A return is of the ground if it is this near to where the beam should meet it, in parts of the range."""
    tolerance_m: Positive = 1.0
    """The same, as a length, if that is more."""
    max_range_m: Positive = 80.0
    """Beams that should meet the ground farther off do not count: a plane is not known so far."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Say it with three digits."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, slots=True)
class Band:
    """Beams that should meet the ground within some ranges."""

    low_m: float
    high_m: float
    n: int
    detected: float
    """Share of them that returned."""
    fitted: float
    """The same by the fit."""


@dataclass(frozen=True, slots=True)
class ReceiverCalibration:
    """What was found."""

    range_m: Interval
    """Range at which half of the pulses on a wall of 10 % return [m]."""
    softness: Interval
    lost: Interval
    """Share of the beams that do not return however much light there is."""
    intensity: Interval | None
    """Intensity of the log where the sensor would report a reflectance of 1; None without intensities."""
    bands: tuple[Band, ...]
    n_beams: int
    settings: ReceiverCalibrationSettings
    sensor: Sensor

    def detection(self) -> Detection:
        """Return the figures for a sensor file; what was not fitted is the sensor's, or the default."""
        known = self.sensor.config.signal.detection
        start = Detection(range_m=1.0) if known is None else known
        found = {
            "range_m": round(self.range_m.value, 2),
            "reflectance": 0.1,
            "probability": 0.5,
            "softness": round(self.softness.value, 3),
            "falloff": self.settings.falloff,
        }
        return start.model_copy(update=found)

    def save(self, path: str | Path, *, source: str = "") -> None:
        """Write the sensor with what was found to a sensor file; `Sensor.load` reads it.

        Raises:
            FileError: the system refuses to write.
        """
        config = self.sensor.config
        signal = config.signal.model_copy(update={"detection": self.detection()})
        own = self.settings
        fitted = (
            f"fitted: detection, to {self.n_beams:,} beams on the ground of {source}, reflectance {own.reflectance:g}, "
            f"grazing {own.grazing:g}; range_m {self.range_m}, softness {self.softness}"
        )
        changed = config.model_copy(update={"signal": signal, "sources": [*config.sources, fitted]})
        with atomic_file(path) as temporary:
            content = changed.model_dump(mode="json", exclude_none=True)
            temporary.write_text(tomli_w.dumps(content), encoding="utf-8")


def calibrate_receiver(
    log: HasSweeps,
    settings: ReceiverCalibrationSettings | None = None,
    *,
    sensor: Sensor | None = None,
    world: World | None = None,
    progress: Callable[[int], object] | None = None,
) -> ReceiverCalibration:
    """Measure what a sensor detects of the ground.

    Args:
        log: a `Log`, or a `LogFile` of any size, with its missing returns.
        settings: what is known of the ground, and which beams count.
        sensor: whose pulses they are. Default: the log's own.
        world: knows where the ground is; the plane then only tells which beams meet ground, and at what angle.
        progress: called with the number of beams done.

    Raises:
        InputError: the sensor is not known, too few beams should meet the ground, or all or none of them return.
    """
    own = settings or ReceiverCalibrationSettings()
    found: list[_Seen] = []
    n_done = 0
    lidar = sensor
    for _, sweep in log.iter_sweeps():
        lidar = lidar or Sensor.of(sweep)
        if lidar is None:
            raise InputError("sensor", "the log does not say its sensor; name one, for the width of its beam")
        found.append(_see(sweep, lidar, own, world))
        n_done += len(sweep)
        if progress is not None:
            progress(n_done)
    if lidar is None or not found:
        raise InputError("log", "has no sweep")
    seen = _Seen.join(found)
    _require_both(seen, own)
    table = _Table.of(seen)
    curve = table.fit(np.ones(_N_SECTORS))
    curves = np.array([curve, *(table.fit(each) for each in table.resampled())])
    return ReceiverCalibration(
        range_m=_interval(_range_of(curves[:, 0], own)),
        softness=_interval(curves[:, 1]),
        lost=_interval(curves[:, 2]),
        intensity=_intensity(seen),
        bands=_bands(seen, curve),
        n_beams=len(seen.range_m),
        settings=own,
        sensor=lidar,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Beams that should meet the ground and did, or did not return."""

    range_m: NDArray[np.float64]
    """(N,) where they should meet it."""
    log_light: NDArray[np.float64]
    """(N,) logarithm of the light from there, but for threshold and range_m."""
    detected: NDArray[np.bool_]
    sector: NDArray[np.int64]
    """(N,) part of the horizon."""
    reflectance: NDArray[np.float64]
    """(N,) that the light would be reported as."""
    intensity: NDArray[np.float64]
    """(N,) of the log; NaN without."""

    @classmethod
    def join(cls, parts: list["_Seen"]) -> "_Seen":
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


def _see(sweep: Log, sensor: Sensor, own: ReceiverCalibrationSettings, world: World | None) -> _Seen:
    """Return which beams of a sweep should meet the ground, with how much light, and whether they returned."""
    direction = sweep.beams.direction.astype(np.float64)
    expected_m, cosine = _plane_ranges(sweep)
    if world is not None:
        # The world knows better where the ground is; what it has elsewhere is none.
        known_m = world.expected(sweep.beams).median_m.astype(np.float64)
        with np.errstate(invalid="ignore"):  # inf - inf
            is_ground = np.abs(known_m - expected_m) * cosine <= _UNEVEN_M
        expected_m = np.where(is_ground, known_m, np.inf)
    measured_m = sweep.returns.first_m.astype(np.float64)
    expected_m = np.where(np.isfinite(expected_m), expected_m, 0.0)  # 0 is outside the limits
    limits = (expected_m > max(sweep.min_range_m, 1.0)) & (expected_m <= min(own.max_range_m, sweep.max_range_m))
    near = np.abs(measured_m - expected_m) <= np.maximum(own.tolerance_m, own.tolerance * expected_m)
    kept = limits & (cosine > 0) & (near | np.isinf(measured_m))
    expected_m, cosine = expected_m[kept], cosine[kept]
    length = _stretch(sensor, expected_m, cosine, own)
    reflectance = own.reflectance * cosine**own.grazing / length
    log_light = np.log(reflectance) - own.falloff * np.log(expected_m)
    azimuth = np.arctan2(direction[kept, 1], direction[kept, 0])
    intensity = sweep.returns.intensity
    brightness = np.full(kept.sum(), np.nan)
    if intensity is not None:
        brightness = np.reshape(intensity, (len(sweep), -1))[kept, 0].astype(np.float64)
    sector = np.floor((azimuth / (2 * np.pi) + 0.5) * _N_SECTORS).astype(np.int64) % _N_SECTORS
    return _Seen(expected_m, log_light, near[kept], sector, reflectance, brightness)


def _stretch(
    sensor: Sensor, range_m: NDArray[np.float64], cosine: NDArray[np.float64], own: ReceiverCalibrationSettings
) -> NDArray[np.float64]:
    """Return how many times as long as the pulse an echo of the ground is; its peak is as much lower."""
    detection = sensor.config.signal.detection or Detection(range_m=1.0)
    fwhm_m = range_of_ns(detection.pulse_ns)
    cone = Cone.of(sensor.config.beam)
    is_round = sensor.config.beam.spot != "rectangular"
    sigma_m = (0.5 if is_round else 3**-0.5) * (cone.half_m[1] + cone.tangent[1] * range_m)
    depth_m = np.sqrt(8 * np.log(2)) * sigma_m * np.sqrt(1 - np.minimum(cosine, 1) ** 2) / cosine
    return np.hypot(fwhm_m, depth_m) / fwhm_m


def _plane_ranges(sweep: Log) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (N,) ranges at which beams meet the plane of the ground, inf if never, and cosines of their incidence.

    The plane is that of the lowest returns of cells around the sensor; what stands on it is left out, round by round.

    Raises:
        InputError: a sweep has too few returns to tell where its ground is.
    """
    origin_m = sweep.beams.origin_m.mean(axis=0)
    away_m = sweep.points() - origin_m
    away_m = away_m[np.hypot(away_m[:, 0], away_m[:, 1]) < _NEAR_M]
    cell = np.floor(away_m[:, :2] / _CELL_M).astype(np.int64)
    order = np.lexsort((away_m[:, 2], cell[:, 1], cell[:, 0]))
    first = np.r_[True, np.diff(cell[order], axis=0).any(axis=1)] if len(order) else np.zeros(0, bool)
    low_m = away_m[order][first]
    if len(low_m) < 10:
        raise InputError("log", f"sweep {sweep.beams.sweep[0]} has too few returns to tell where its ground is")
    terms = np.c_[np.ones(len(low_m)), low_m[:, :2]]
    height_m = low_m[:, 2]
    plane: NDArray[np.float64] = np.array([np.quantile(height_m, 0.2), 0.0, 0.0])
    for band_m in np.geomspace(2.0, _BAND_M, _ROUNDS):
        kept = np.abs(height_m - terms @ plane) < band_m
        if kept.sum() >= 10:
            plane = np.asarray(np.linalg.lstsq(terms[kept], height_m[kept], rcond=None)[0], dtype=np.float64)
    normal = np.array([-plane[1], -plane[2], 1.0])
    start_m = sweep.beams.origin_m - origin_m
    above_m = start_m[:, 2] - plane[0] - start_m[:, :2] @ plane[1:]
    falls = -(sweep.beams.direction.astype(np.float64) @ normal)
    with np.errstate(divide="ignore"):
        range_m = np.where((falls > 0) & (above_m > 0), above_m / np.maximum(falls, 1e-12), np.inf)
    return range_m, np.abs(falls) / np.linalg.norm(normal)


def _require_both(seen: _Seen, own: ReceiverCalibrationSettings) -> None:
    n, n_detected = len(seen.detected), int(seen.detected.sum())
    if n < _LEAST_BEAMS:
        raise InputError(
            "log", f"{n} beams should meet the ground within {own.max_range_m:g} m; {_LEAST_BEAMS} are needed"
        )
    if n_detected in (0, n):
        which = "none" if n_detected == 0 else "all"
        said = f"{which} of the {n:,} beams that should meet the ground within {own.max_range_m:g} m returned"
        raise InputError("log", f"{said}, so the threshold is not seen; does the log have its missing returns?")


class _Table(NamedTuple):
    """Sums over beams, by part of the horizon and by bins of like light: few numbers instead of millions of beams."""

    light: NDArray[np.float64]
    """(36, 60) sum of the logarithms of light."""
    detected: NDArray[np.float64]
    total: NDArray[np.float64]

    @classmethod
    def of(cls, seen: _Seen) -> "_Table":
        low, high = float(seen.log_light.min()), float(seen.log_light.max())
        edges = np.linspace(low, high + 1e-9, _N_BINS + 1, dtype=np.float64)
        bins = np.clip(np.searchsorted(edges, seen.log_light, side="right") - 1, 0, _N_BINS - 1)
        sums = [np.zeros((_N_SECTORS, _N_BINS)) for _ in cls._fields]
        for column, values in zip(sums, (seen.log_light, seen.detected, 1.0), strict=True):
            np.add.at(column, (seen.sector, bins), values)
        return cls(*sums)

    def fit(self, weight: NDArray[np.float64]) -> "_Curve":
        """Return the curve of the highest likelihood, each part of the horizon counted so often."""
        light, detected, total = (weight @ column for column in self)
        there = total > 0
        return _fit(light[there] / total[there], detected[there], total[there])

    def resampled(self) -> Iterator[NDArray[np.float64]]:
        """Give how often each part of the horizon counts, for parts drawn with replacement."""
        rng = np.random.default_rng(0)
        there = np.flatnonzero(self.total.sum(axis=1))
        for _ in range(_N_DRAWS):
            yield np.bincount(rng.choice(there, len(there)), minlength=_N_SECTORS).astype(np.float64)


class _Curve(NamedTuple):
    """The share that is detected, by the logarithm of the light."""

    middle: float
    width: float
    lost: float

    def at(self, log_light: NDArray[np.float64]) -> NDArray[np.float64]:
        from scipy.special import ndtr

        return (1 - self.lost) * ndtr((log_light - self.middle) / self.width)


def _fit(light: NDArray[np.float64], detected: NDArray[np.float64], total: NDArray[np.float64]) -> _Curve:
    """Return the curve of the highest likelihood, by Fisher scoring with damped steps."""
    from scipy.special import ndtr  # here: it takes long to load

    centre, scale = float(np.average(light, weights=total)), float(light.std()) or 1.0
    x = (light - centre) / scale

    def curve(free: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the share by bin, and its (B, 3) derivatives by middle, log width and logit of the lost share."""
        width, kept = np.exp(free[1]), 1 - _MOST_LOST / (1 + np.exp(-free[2]))
        z = (x - free[0]) / width
        below: NDArray[np.float64] = np.asarray(ndtr(z), dtype=np.float64)
        bell = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        lost = 1 - kept
        slopes = [-kept * bell / width, -kept * bell * z, -lost * (1 - lost / _MOST_LOST) * below]
        return np.clip(kept * below, 1e-9, 1 - 1e-9), np.stack(slopes, axis=1)

    def log_likelihood(share: NDArray[np.float64]) -> float:
        return float((detected * np.log(share) + (total - detected) * np.log1p(-share)).sum())

    free = np.array([-NormalDist().inv_cdf(float((detected.sum() + 1) / (total.sum() + 2))), 0.0, -2.0])
    damping = 1e-3
    share, slopes = curve(free)
    best = log_likelihood(share)
    for _ in range(100):
        weight = total / (share * (1 - share))
        information = np.einsum("bi,b,bj->ij", slopes, weight, slopes)
        uphill = np.einsum("bi,b->i", slopes, weight * (detected / total - share))
        damped = information + damping * (np.diag(np.diag(information)) + 1e-9 * np.eye(3))
        step: NDArray[np.float64] = np.asarray(np.linalg.solve(damped, uphill), dtype=np.float64)
        tried = np.minimum(np.maximum(free + step, np.array([-20.0, -6, -12])), np.array([20.0, 4, 12]))
        moved, moved_slopes = curve(tried)
        value = log_likelihood(moved)
        if value < best:
            damping *= 10
            continue
        is_done = value - best < 1e-9 * abs(best)
        free, share, slopes, best, damping = tried, moved, moved_slopes, value, damping / 10
        if is_done:
            break
    lost = _MOST_LOST / (1 + np.exp(-free[2]))
    return _Curve(centre + scale * float(free[0]), scale * float(np.exp(free[1])), float(lost))


def _range_of(middle: NDArray[np.float64], own: ReceiverCalibrationSettings) -> NDArray[np.float64]:
    """Return the range at which a wall of 10 % has as much light as the ground at the middle."""
    return np.exp((np.log(0.1) - middle) / own.falloff)


def _interval(values: NDArray[np.float64]) -> Interval:
    low, high = np.quantile(values[1:], [0.025, 0.975])
    return Interval(float(values[0]), float(low), float(high))


def _intensity(seen: _Seen) -> Interval | None:
    """Return the intensity of the log for a reflectance of 1, from the returns of the nearer half of the ground."""
    known = seen.detected & np.isfinite(seen.intensity)
    known &= seen.range_m < np.median(seen.range_m[seen.detected])  # of farther ones only the bright return
    if not known.any():
        return None
    ratio = seen.intensity[known] / seen.reflectance[known]
    by_sector = [float(np.median(ratio[seen.sector[known] == each])) for each in np.unique(seen.sector[known])]
    return Interval(float(np.median(ratio)), float(np.min(by_sector)), float(np.max(by_sector)))


def _bands(seen: _Seen, curve: _Curve) -> tuple[Band, ...]:
    fitted = curve.at(seen.log_light)
    bands: list[Band] = []
    for low_m, high_m in zip((0, 5, 10, 15, 20, 30, 40, 60), (5, 10, 15, 20, 30, 40, 60, np.inf), strict=True):
        rows = (seen.range_m >= low_m) & (seen.range_m < high_m)
        if rows.any():
            bands.append(
                Band(low_m, high_m, int(rows.sum()), float(seen.detected[rows].mean()), float(fitted[rows].mean()))
            )
    return tuple(bands)
