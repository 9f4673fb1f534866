# SPDX-License-Identifier: Apache-2.0
"""Every field that a sensor file may have, with its unit and bounds; [pattern] is in pattern_config.py.

The fields follow Table 2 of Goodin 2018, with firing order and timing added. The catalogue's
TOML files and a user's own are checked against the same models: frozen, unknown keys refused.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hedgerow.base.parameters import Finite, NotNegative, Positive, Share, StrictParameters
from hedgerow.errors import InputError, ParameterError

# Fields of a sensor file that say where it points and when: the table [pattern], in one of three kinds.


Elevation = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Azimuth = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
Millimetres = Annotated[float, Field(ge=-1000, le=1000, allow_inf_nan=False)]

MAX_PULSES_PER_CYCLE = 20_000_000
"""Most pulses until a scan repeats; the largest real ones have about a million."""


class Rates(StrictParameters):
    """How fast it turns."""

    default_hz: Positive
    """Turns per second if nothing else is asked for."""
    allowed_hz: list[Positive] | None = Field(default=None, min_length=1)
    """The only rates it has; leave out if any rate between the limits is possible."""
    min_hz: Positive | None = None
    """Slowest rate; with max_hz, instead of allowed_hz."""
    max_hz: Positive | None = None
    """Fastest rate."""

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
    """Angle above the horizon."""
    azimuth_deg: list[Azimuth] | None = None
    """Angle to the rotor's direction, counter-clockwise seen from above. Default 0."""
    time_us: list[NotNegative] | None = None
    """When it fires after the start of the slot. Default: all at once."""
    up_mm: list[Millimetres] | None = None
    """Height of the point of emission above the sensor's origin. Default 0."""
    left_mm: list[Millimetres] | None = None
    """How far the point of emission lies to the left of the rotor's direction. Default 0."""
    closed_turn_firings_per_s: Positive | None = None
    """f: the azimuth steps by 360/(f/rate - 1) degrees from one firing of the group to the next, so that a turn
    begins and ends at the same azimuth (Goodin 2018 eqs. 6 and 7). Default: the azimuth follows the rotor."""

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
    """Which pattern."""
    rates: Rates
    """Turns per second."""
    turns: Literal["clockwise", "counter-clockwise"]
    """Seen from above."""
    start_azimuth_deg: Azimuth = 0.0
    """Where a sweep begins, counter-clockwise from straight ahead."""
    slot_us: Positive | None = None
    """Time from one slot of the schedule to the next; or give slots_per_turn."""
    slots_per_turn: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Slots in a turn where the encoder triggers them; or give slot_us."""
    schedule: list[Annotated[int, Field(ge=0)]] = Field(default=[0], min_length=1, max_length=64)
    """Which group fires in each slot, repeated."""
    group: list[Group] = Field(min_length=1, max_length=64)
    """The lasers."""
    forward_mm: Millimetres = 0.0
    """How far in front of the axis the beams are emitted."""
    range_zero_mm: Millimetres = 0.0
    """Length of the path inside the sensor that the reported range includes."""
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
    """Which pattern."""
    rates: Rates
    """Turns of the mirror per second."""
    turns: Literal["clockwise", "counter-clockwise"]
    """Seen from above."""
    first_azimuth_deg: Azimuth
    """Where a sweep begins, counter-clockwise from straight ahead."""
    extent_deg: Annotated[float, Field(ge=0, le=360, allow_inf_nan=False)]
    """Angle from the first to the last pulse of a sweep."""
    step_deg: Annotated[float, Field(ge=0.0001, le=360, allow_inf_nan=False)]
    """Angle between neighbouring pulses of a sweep."""
    interlace: Annotated[int, Field(ge=1, le=16)] = 1
    """Turns of the mirror in a sweep, each shifted by step_deg."""


class Rosette(StrictParameters):
    """A row of lasers over a fast mirror whose tilt swings slowly; see scan/rosette.py for the formulas."""

    kind: Literal["rosette"]
    """Which pattern."""
    rates: Rates
    """Sweeps per second, which is also the rate of the slow swing."""
    turns: Literal["clockwise", "counter-clockwise"]
    """Sense in which the fast mirror turns, seen from above."""
    start_azimuth_deg: Azimuth = 0.0
    """Mirror azimuth at the start of the pattern, counter-clockwise from straight ahead."""
    sweeps_per_cycle: Annotated[int, Field(ge=1, le=1000)]
    """Sweeps until the pattern repeats."""
    mirror_turns_per_cycle: Annotated[int, Field(ge=1)]
    """Turns of the fast mirror until the pattern repeats."""
    n_lasers: Annotated[int, Field(ge=1, le=64)]
    """Lasers in the row; they fire together."""
    firings_per_sweep: Annotated[int, Field(ge=1, le=1_000_000)]
    """How often the row fires in a sweep."""
    highest_elevation_deg: Elevation
    """Mean elevation of the row at one end of the swing, where the pattern starts."""
    lowest_elevation_deg: Elevation
    """Mean elevation of the row at the other end."""
    swing_shape: Annotated[float, Field(gt=0, lt=1)]
    """0 is a sine swing, towards 1 a triangle."""
    row_up_deg: list[Finite] = Field(min_length=2, max_length=2)
    """Spacing of the lasers across the scan line, at the highest and at the lowest end."""
    row_along_deg: Finite
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


# Every field that a sensor file may have, with its unit and bounds; [pattern] is in pattern_config.py.


Mode = Literal["first", "strongest", "last", "strongest+last"]


class Beam(StrictParameters):
    """Shape of the light."""

    spot: Literal["circular", "rectangular", "elliptical"]
    """Cross section."""
    divergence_horizontal_mrad: NotNegative
    """Full angle."""
    divergence_vertical_mrad: NotNegative
    """Full angle."""
    aperture_horizontal_mm: NotNegative = 0.0
    """Width where it leaves the sensor: the beam is a truncated cone."""
    aperture_vertical_mm: NotNegative = 0.0
    """Height where it leaves the sensor."""
    wavelength_nm: Positive
    """Colour."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.spot == "circular" and self.divergence_horizontal_mrad != self.divergence_vertical_mrad:
            raise InputError("spot", "circular, but the two divergences differ; call it elliptical")
        return self


class Range(StrictParameters):
    """Limits and errors of the range."""

    min_m: NotNegative
    """Nothing nearer is seen."""
    max_m: Positive
    """Nothing farther is seen."""
    sigma_m: NotNegative
    """Standard deviation of the noise."""
    sigma_per_m2: NotNegative = 0.0
    """Added to sigma_m for each square metre of range squared (triangulation)."""
    step_m: NotNegative
    """Ranges are reported in multiples of this; 0 is exact."""
    dropout: Share = 0.0
    """Share of pulses that are lost at random."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_m <= self.min_m:
            raise InputError("max_m", f"{self.max_m:g} is not above min_m, {self.min_m:g}")
        return self


class Signal(StrictParameters):
    """How returns are picked from the light that comes back (Goodin 2018 §3.2.3)."""

    mode: Mode
    """Used unless another is asked for."""
    modes: list[Mode] = Field(min_length=1)
    """All that the sensor can do."""
    cutoff_m: NotNegative
    """Light from within this distance of the chosen return is averaged with it."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mode not in self.modes:
            raise InputError("mode", f"'{self.mode}' is not among modes {self.modes}")
        return self


class SensorConfig(StrictParameters):
    """A sensor file."""

    name: str = Field(min_length=1)
    """Short name, as in the catalogue."""
    maker: str
    """Who makes it."""
    about: str
    """What it is and what the model leaves out."""
    sources: list[str] = Field(min_length=1)
    """Where the figures come from."""
    encoder_step_deg: NotNegative
    """Smallest step of the reported rotor angle; 0 is exact."""
    beam: Beam
    """Shape of the light."""
    range: Range
    """Limits and errors of the range."""
    signal: Signal
    """Choice of returns."""
    pattern: Annotated[Spinning | Planar | Rosette, Field(discriminator="kind")]
    """Where it points and when."""
