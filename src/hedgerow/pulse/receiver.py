# SPDX-License-Identifier: Apache-2.0
"""How a pulse with width is sampled and what the receiver makes of its light (Goodin 2018 §3.2).

Each sub-ray brings back its share of the pulse times the intensity of what it met (reflectance times cosine for a
Lambertian surface). The receiver adds up light over a window as long as the cutoff; where the window lies depends on
the mode (Goodin 2018 Fig. 2):

- first: it begins with the nearest light;
- last: it ends with the farthest light;
- strongest: it holds the most light (the nearest of equals);
- strongest+last: both, or one return if they are the same;
- all: one window after the other, each beginning with the nearest light not yet used, so two are always more than
  the cutoff apart at their beginnings;
- second: the strongest of the light outside the strongest window, or the strongest if there is no more;
- strongest+second: both; strongest+last-or-second: the second where the strongest is the last (Velodyne's dual return);
- waveform: no windows; peaks of the recorded signal (waveform.py).

The range of a return is the mean over the light in its window, its intensity the sum of that light; label and element
are those of its brightest sub-ray (the nearest of equals). A window with less light than the threshold is not seen:
the next that is bright enough counts. Returns stand nearest first; their number is their place, counted from 1. So of
strongest+last the first is the strongest and the second, if there is one, the last: from first to strongest to last the
window only moves away from the sensor, and they cannot change places near the cutoff. (Noise larger than what is
between two returns can change their order, since logs are sorted.)

These are the windows of Goodin 2018 Fig. 2, and a receiver sees the sum of the light in them: many dim rays may
outshine a bright one. The text of the paper (§3.2.3) has single rays instead. `processing="paper"` does as it says:
strongest is the most intense ray (the nearest of equals), last the farthest (the most intense of equals),
strongest+last both, or one return if they are the same ray, and first the plain average of the rays within the cutoff
of the nearest. The intensity is then that of the ray, as if the whole pulse had gone its way, or the plain average; the
threshold is asked of each ray. The paper has no other modes.

Both see all the light there is. `signal="sensor"` is a real receiver instead: light falls with the range, echoes are
peaks of the signal, and those are reported that a noisy threshold lets through (`Detection` in sensor/config.py,
`cpp/pulse/detector.hpp`). Which of them is then up to the mode. Intensity is what the sensor makes of an echo's light:
the reflectance of a wall there that fills the spot.

Equations: docs/models.md §18.
"""

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.errors import InputError
from hedgerow.pulse.stencil import MOST_SUB_RAYS, Cone, Sampling, Stencil, make_stencil
from hedgerow.pulse.waveform import WaveformSettings
from hedgerow.sensor.config import Beam, Detection, ReturnMode

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor

Processing = Literal["light", "paper"]
SignalModel = Literal["ideal", "sensor"]

UNKNOWN_CUTOFF_M = 0.75
"""Taken where the cutoff of a sensor is not known (0 in its file): the length of a pulse of 5 ns."""


class BeamSettings(Parameters):
    """How pulses are sampled and received."""

    sub_rays: Annotated[int, Field(ge=1, le=MOST_SUB_RAYS)] = 9
    """Number of sub-rays traced for each pulse."""
    sampling: Sampling = "fixed"
    """Where in the spot the sub-rays lie. fixed: the same points for all pulses. stratified: drawn anew for each pulse,
    one in every cell of the spot. paper: the circle of Goodin 2018, for comparison."""
    beam: Beam | None = None
    """Shape of the beam. Default: the sensor's; without a sensor, pulses are single rays."""
    mode: ReturnMode | None = None
    """Return mode. Default: the sensor's usual one, or first without a sensor."""
    signal: SignalModel = "ideal"
    """Which light is seen. ideal: all that comes back, however little. sensor: what the sensor's receiver detects, by
    the link budget and threshold in its file."""
    processing: Processing = "light"
    """How light becomes a return. light: the mean over all light of a window. paper: single rays and plain averages, as
    the text of Goodin 2018 has it, for comparison."""
    cutoff_m: NotNegative | None = None
    """Range interval within which light is one return; 0 makes every sub-ray a return of its own. Default: the
    sensor's."""
    threshold: NotNegative = 0.0
    """Minimum intensity of a return; a tenth of the spot on a white wall gives 0.1. With processing paper: of a ray."""
    range_falloff: bool = False
    """Whether intensity falls with the square of the range."""
    falloff_range_m: Positive = 10.0
    """With range_falloff: range at which intensity is unchanged; it is higher nearer by, lower farther off."""
    unknown_intensity: NotNegative = 0.5
    """Intensity assumed for elements whose intensity is unknown (NaN); their returns still report none."""
    max_returns: Annotated[int, Field(ge=2, le=MOST_SUB_RAYS)] = 5
    """Modes all and waveform: maximum number of returns per pulse; the nearest are given."""
    waveform: WaveformSettings = WaveformSettings()
    """Mode waveform: pulse length and sampling."""


class PulseOptics(NamedTuple):
    """Where the light of a pulse goes and which returns are made of it: settings and sensor, resolved."""

    stencil: Stencil
    cone: Cone
    mode: ReturnMode
    cutoff_m: float
    detection: Detection | None = None
    """If signal is "sensor"."""


def resolve_pulse(settings: BeamSettings, sensor: "Sensor | None") -> PulseOptics:
    """Fill in from the sensor what the settings leave open.

    Raises:
        InputError: the stencil does not go with the beam's shape, the paper's processing not with the mode, or the
            sensor says nothing about what it detects.
    """
    signal = None if sensor is None else sensor.config.signal
    mode = settings.mode or ("first" if signal is None else signal.mode)
    detection = _detection(settings, sensor)
    if settings.processing == "paper" and mode not in ("first", "strongest", "last", "strongest+last"):
        raise InputError("processing", f"Goodin 2018 has no mode {mode}; use light, or another mode")
    cutoff_m = settings.cutoff_m
    if cutoff_m is None:
        cutoff_m = (0.0 if signal is None else signal.cutoff_m) or UNKNOWN_CUTOFF_M
    beam = settings.beam or (None if sensor is None else sensor.config.beam)
    if beam is None:
        return PulseOptics(make_stencil("circular", 1), Cone(), mode, cutoff_m, detection)
    stencil = make_stencil(beam.spot, settings.sub_rays, settings.sampling)
    if mode == "waveform" or detection is not None:
        stencil = stencil.in_parts()
    return PulseOptics(stencil, Cone.of(beam), mode, cutoff_m, detection)


def _detection(settings: BeamSettings, sensor: "Sensor | None") -> Detection | None:
    if settings.signal == "ideal":
        return None
    if settings.processing == "paper":
        raise InputError("signal", "sensor does not go with processing paper; use ideal")
    if sensor is None:
        raise InputError("signal", "sensor needs a sensor; name one, or use ideal")
    if sensor.config.signal.detection is None:
        raise InputError(
            "signal", f"the file of {sensor.name} has no [signal.detection]: what it detects is not known; use ideal"
        )
    return sensor.config.signal.detection
