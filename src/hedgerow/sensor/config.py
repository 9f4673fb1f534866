# SPDX-License-Identifier: Apache-2.0
"""Every field that a sensor file may have, with its unit and bounds.

The fields follow Table 2 of Goodin 2018, with firing order and timing added: the table [pattern], in one of three
kinds. The catalogue's TOML files and a user's own are checked against the same classes.
"""

from math import exp
from statistics import NormalDist
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from hedgerow.base.parameters import NotNegative, Share, StrictParameters
from hedgerow.errors import InputError, ParameterError

SensorMode = Literal[
    "first", "strongest", "last", "second", "strongest+last", "strongest+second", "strongest+last-or-second"
]
"""Return modes that sensors have."""
ReturnMode = Literal[SensorMode, "all", "waveform"]
"""Return modes that can be simulated. In C++ they are the enum ReturnMode, which tests/core compares with this."""
RETURN_MODES: tuple[ReturnMode, ...] = get_args(ReturnMode)

Elevation = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Azimuth = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
Millimetres = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]

Rate = Annotated[float, Field(ge=0.001, le=1e6, allow_inf_nan=False)]
"""Turns or sweeps per second [Hz]."""
Microseconds = Annotated[float, Field(ge=1e-6, le=1e9, allow_inf_nan=False)]
Tilt = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Divergence = Annotated[float, Field(ge=0, le=3000, allow_inf_nan=False)]
"""Full angle of a beam; a half circle has 3,142 [mrad]."""
Aperture = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
"""Width of a beam [mm]."""
RangeError = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
"""Standard deviation or step of a range [m]."""

MAX_PULSES_PER_CYCLE = 5_000_000
"""Most pulses until a scan repeats; the largest real ones have about a million. So many take about 1 GB."""
MAX_RANGE_M = 1e7
"""Longest range of a sensor; a satellite's is about 1e6 m."""
LEAST_STEP = 1e-9
"""Least resolution of a reported range [m] or angle [deg], unless that is exact."""


def _require_step(value: float) -> float:
    if 0 < value < LEAST_STEP:
        raise ValueError(f"{value:g} is finer than {LEAST_STEP:g}, the finest step; 0 is exact")
    return value


class Rates(StrictParameters):
    """Rates at which the sensor turns."""

    default_hz: Rate
    """Usual rate, turns per second."""
    allowed_hz: list[Rate] | None = Field(default=None, min_length=1, max_length=1000)
    """Possible rates; leave it out if any rate from min_hz to max_hz is possible."""
    min_hz: Rate | None = None
    """Slowest rate, if allowed_hz is left out."""
    max_hz: Rate | None = None
    """Fastest rate, if allowed_hz is left out."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.allowed_hz is None) == (self.min_hz is None or self.max_hz is None):
            raise InputError("allowed_hz", "give either allowed_hz or both min_hz and max_hz")
        if not self.allows(self.default_hz):
            raise InputError("default_hz", f"{self.default_hz:g} Hz is not allowed; expected {self.text()}")
        return self

    def allows(self, rate_hz: float) -> bool:
        """Tell whether the sensor can turn at this rate."""
        if self.allowed_hz is not None:
            return rate_hz in self.allowed_hz
        return (self.min_hz or 0) <= rate_hz <= (self.max_hz or 0)

    def span_hz(self) -> tuple[float, float]:
        """Return the slowest and the fastest rate."""
        rates = self.allowed_hz or [self.min_hz or 0.0, self.max_hz or 0.0]
        return min(rates), max(rates)

    def text(self) -> str:
        """Say which rates are possible."""
        if self.allowed_hz is not None:
            return " or ".join(f"{rate:g}" for rate in self.allowed_hz) + " Hz"
        return f"{self.min_hz:g} to {self.max_hz:g} Hz"


class Group(StrictParameters):
    """Lasers that fire one after the other in one slot of the schedule, listed in the order in which they fire."""

    elevation_deg: list[Elevation] = Field(min_length=1, max_length=1024)
    """Elevation of each laser above the horizon."""
    azimuth_deg: list[Azimuth] | None = None
    """Azimuth of each laser relative to the rotor, counter-clockwise seen from above. Default: 0."""
    time_us: list[NotNegative] | None = None
    """Time at which each laser fires, after the start of the slot. Default: all fire at the start."""
    up_mm: list[Millimetres] | None = None
    """Height of each laser's point of emission above the sensor's origin. Default: 0."""
    left_mm: list[Millimetres] | None = None
    """Distance of each laser's point of emission to the left of the rotor's direction. Default: 0."""
    closed_turn_firings_per_s: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = None
    """Firings per second, f, of a sensor whose azimuth steps by 360/(f/rate - 1) degrees from firing to firing, so that
    a turn begins and ends at the same azimuth (Goodin 2018 eqs. 6 and 7). Default: the azimuth follows the rotor."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("azimuth_deg", "time_us", "up_mm", "left_mm"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.elevation_deg):
                raise InputError(
                    name,
                    f"has {len(values)} numbers but elevation_deg has {len(self.elevation_deg)}; "
                    "expected one per laser",
                )
        if self.time_us is not None and sorted(self.time_us) != self.time_us:
            raise InputError("time_us", "goes down; list the lasers in the order in which they fire")
        return self


class Spinning(StrictParameters):
    """A rotor with one or more groups of lasers."""

    kind: Literal["spinning"]
    """Kind of scan pattern."""
    rates: Rates
    """Turns per second."""
    turns: Literal["clockwise", "counter-clockwise"]
    """Sense of rotation, seen from above."""
    start_azimuth_deg: Azimuth = 0.0
    """Azimuth at which a sweep begins, counter-clockwise from straight ahead."""
    slot_us: Microseconds | None = None
    """Time between slots of the schedule; give this or slots_per_turn."""
    slots_per_turn: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Number of slots in a turn, if the encoder triggers them; give this or slot_us."""
    schedule: list[Annotated[int, Field(ge=0, le=63)]] = Field(default=[0], min_length=1, max_length=64)
    """Number of the group that fires in each slot, counted from 0; repeated over the turn."""
    group: list[Group] = Field(min_length=1, max_length=64)
    """Groups of lasers."""
    forward_mm: Millimetres = 0.0
    """Distance of the points of emission in front of the axis."""
    range_zero_mm: Millimetres = 0.0
    """Path inside the sensor that is part of the reported range."""
    rings: Literal["from lowest", "from highest", "as listed"]
    """How the driver numbers the lasers: by elevation, or group after group in the order of the list."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.slot_us is None) == (self.slots_per_turn is None):
            raise InputError("slot_us", "give either slot_us or slots_per_turn")
        wrong = set(self.schedule) ^ set(range(len(self.group)))
        if wrong:
            there = f"there are {len(self.group)} groups, counted from 0, and each must occur"
            raise InputError("schedule", f"group {min(wrong)} is missing on one side; {there}")
        slowest_hz, fastest_hz = self.rates.span_hz()
        shortest_us = self.slot_us or 1e6 / (fastest_hz * (self.slots_per_turn or 1))
        if shortest_us * fastest_hz > 1e6 * (1 + 1e-9):
            raise InputError("slot_us", f"{shortest_us:g} is longer than a turn at {fastest_hz:g} Hz")
        n_slots = self.slots_per_turn or 1e6 / (shortest_us * slowest_hz)
        if n_slots * max(len(group.elevation_deg) for group in self.group) > MAX_PULSES_PER_CYCLE:
            raise InputError("slot_us", f"gives more than {MAX_PULSES_PER_CYCLE:,} pulses a turn")
        for number, group in enumerate(self.group):
            self._check_group(number, group, shortest_us, fastest_hz)
        return self

    def _check_group(self, number: int, group: Group, shortest_us: float, fastest_hz: float) -> None:
        last_us = max(group.time_us or [0.0])
        if last_us >= shortest_us:
            raise ParameterError(
                ("group", number, "time_us"), f"{last_us:g} lies outside the slot of {shortest_us:g} us"
            )
        firings_per_s = group.closed_turn_firings_per_s
        if firings_per_s is not None and firings_per_s <= fastest_hz:
            said = f"below one firing a turn at {fastest_hz:g} Hz"
            raise ParameterError(("group", number, "closed_turn_firings_per_s"), said)


class Planar(StrictParameters):
    """One laser and a turning mirror; a finer step is reached by several turns that interlace."""

    kind: Literal["planar"]
    """Kind of scan pattern."""
    rates: Rates
    """Turns of the mirror per second."""
    turns: Literal["clockwise", "counter-clockwise"]
    """Sense of rotation, seen from above."""
    first_azimuth_deg: Azimuth
    """Azimuth at which a sweep begins, counter-clockwise from straight ahead."""
    extent_deg: Annotated[float, Field(ge=0, le=360, allow_inf_nan=False)]
    """Angle between the first and the last pulse of a sweep."""
    step_deg: Annotated[float, Field(ge=0.0001, le=360, allow_inf_nan=False)]
    """Angle between neighbouring pulses of a sweep."""
    interlace: Annotated[int, Field(ge=1, le=16)] = 1
    """Number of mirror turns in a sweep, each shifted by step_deg."""


class Rosette(StrictParameters):
    """A row of lasers over a fast mirror whose tilt swings slowly; see scan/rosette.py for the formulas."""

    kind: Literal["rosette"]
    """Kind of scan pattern."""
    rates: Rates
    """Sweeps per second, which is also the rate of the slow swing."""
    turns: Literal["clockwise", "counter-clockwise"]
    """Sense of rotation of the fast mirror, seen from above."""
    start_azimuth_deg: Azimuth = 0.0
    """Mirror azimuth at the start of the pattern, counter-clockwise from straight ahead."""
    sweeps_per_cycle: Annotated[int, Field(ge=1, le=1000)]
    """Number of sweeps until the pattern repeats."""
    mirror_turns_per_cycle: Annotated[int, Field(ge=1, le=1_000_000_000)]
    """Number of turns of the fast mirror until the pattern repeats."""
    n_lasers: Annotated[int, Field(ge=1, le=64)]
    """Number of lasers in the row; they fire together."""
    firings_per_sweep: Annotated[int, Field(ge=1, le=1_000_000)]
    """Number of firings of the row in a sweep."""
    highest_elevation_deg: Elevation
    """Mean elevation of the row at one end of the swing, where the pattern starts."""
    lowest_elevation_deg: Elevation
    """Mean elevation of the row at the other end."""
    swing_shape: Annotated[float, Field(ge=0.0001, lt=1, allow_inf_nan=False)]
    """Shape of the slow swing: near 0 a sine, near 1 a triangle wave."""
    row_up_deg: list[Tilt] = Field(min_length=2, max_length=2)
    """Spacing of the lasers across the scan line, at the highest and at the lowest elevation."""
    row_along_deg: Tilt
    """Spacing of the lasers along the scan line."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.lowest_elevation_deg >= self.highest_elevation_deg:
            raise InputError("lowest_elevation_deg", "is not below highest_elevation_deg")
        if self.firings_per_sweep * self.sweeps_per_cycle * self.n_lasers > MAX_PULSES_PER_CYCLE:
            raise InputError(
                "firings_per_sweep", f"gives more than {MAX_PULSES_PER_CYCLE:,} pulses until the scan repeats"
            )
        return self


class Beam(StrictParameters):
    """Shape of the beam."""

    spot: Literal["circular", "rectangular", "elliptical"]
    """Shape of the cross section."""
    divergence_horizontal_mrad: Divergence
    """Horizontal divergence, full angle."""
    divergence_vertical_mrad: Divergence
    """Vertical divergence, full angle."""
    aperture_horizontal_mm: Aperture = 0.0
    """Width of the beam where it leaves the sensor."""
    aperture_vertical_mm: Aperture = 0.0
    """Height of the beam where it leaves the sensor."""
    wavelength_nm: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    """Wavelength of the laser."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.spot == "circular" and self.divergence_horizontal_mrad != self.divergence_vertical_mrad:
            raise InputError("spot", "circular, but the two divergences differ; call it elliptical")
        return self


class Range(StrictParameters):
    """Limits and errors of the range."""

    min_m: Annotated[float, Field(ge=0, le=MAX_RANGE_M, allow_inf_nan=False)]
    """Minimum range; nothing nearer is seen."""
    max_m: Annotated[float, Field(gt=0, le=MAX_RANGE_M, allow_inf_nan=False)]
    """Maximum range; nothing farther is seen."""
    sigma_m: RangeError
    """Standard deviation of the range noise."""
    sigma_per_m2: RangeError = 0.0
    """Growth of the standard deviation with the squared range, for sensors that triangulate."""
    step_m: Annotated[RangeError, AfterValidator(_require_step)]
    """Resolution of the reported range; 0 is exact."""
    dropout: Share = 0.0
    """Share of pulses that are lost at random."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_m <= self.min_m:
            raise InputError("max_m", f"{self.max_m:g} is not above min_m, {self.min_m:g}")
        return self


class Detection(StrictParameters):
    """Which echoes the receiver detects: a link budget and a threshold (docs/models.md §18).

    The light of an echo is the share of the spot that it fills, times reflectance, times (range_m / R)^falloff.
    """

    range_m: Annotated[float, Field(gt=0, le=MAX_RANGE_M, allow_inf_nan=False)]
    """Range at which a wall of this reflectance, met head-on, is detected with this probability."""
    reflectance: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Of that wall."""
    probability: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Of that detection."""
    falloff: Annotated[float, Field(ge=0, le=10)] = 2.0
    """Exponent by which light falls with the range."""
    softness: Annotated[float, Field(ge=0, le=5)] = 0.6
    """Standard deviation of the logarithm of an echo's light: 0 is a hard threshold."""
    pulse_ns: Annotated[float, Field(gt=0, le=1000)] = 6.0
    """Length of the pulse in the receiver, full width at half maximum; 6 ns is 0.9 m of range."""
    sample_ns: Annotated[float, Field(gt=0, le=1000)] = 0.67
    """Time between samples of the receiver; at most half of pulse_ns."""
    second_threshold: Annotated[float, Field(ge=0, le=1e6)] = 3.0
    """What every echo but the strongest must reach, in thresholds."""
    second_ratio: Share = 0.25
    """Least share of the strongest echo that every other must have."""
    separation_m: NotNegative = 0.75
    """Least distance between two returns of a pulse."""
    saturation: Annotated[float, Field(gt=0, le=1e6)] = 1e6
    """Highest intensity that is reported."""
    false_alarms: Share = 0.0
    """Share of pulses with a return from nothing, anywhere within the limits of the range."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.sample_ns > self.pulse_ns / 2:
            raise InputError("sample_ns", f"{self.sample_ns:g} is more than half of pulse_ns, {self.pulse_ns:g}")
        return self

    @property
    def threshold(self) -> float:
        """Light at which half of the echoes are detected."""
        return self.reflectance * exp(-self.softness * NormalDist().inv_cdf(self.probability))


class Signal(StrictParameters):
    """How the light that comes back becomes returns (Goodin 2018 §3.2.3)."""

    mode: SensorMode
    """Usual return mode."""
    modes: list[SensorMode] = Field(min_length=1, max_length=100)
    """All return modes of the sensor."""
    cutoff_m: RangeError
    """Range interval within which light is one return; 0 if it is not known."""
    detection: Detection | None = None
    """Link budget and threshold, for signal "sensor"; leave it out if nothing is known."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mode not in self.modes:
            raise InputError("mode", f"'{self.mode}' is not among modes {self.modes}")
        return self


class SensorConfig(StrictParameters):
    """A sensor file."""

    name: str = Field(min_length=1, max_length=100)
    """Short name, as in the catalogue."""
    maker: str
    """Manufacturer."""
    about: str
    """What the sensor is, and what the model leaves out."""
    sources: list[str] = Field(min_length=1)
    """Sources of the figures."""
    encoder_step_deg: Annotated[float, Field(ge=0, le=360, allow_inf_nan=False), AfterValidator(_require_step)]
    """Resolution of the reported rotor angle; 0 is exact."""
    beam: Beam
    """Shape of the beam."""
    range: Range
    """Limits and errors of the range."""
    signal: Signal
    """Return modes and cutoff."""
    pattern: Annotated[Spinning | Planar | Rosette, Field(discriminator="kind")]
    """Scan pattern: where the pulses go, and when."""
