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
- waveform: no windows; peaks of the recorded signal (waveform.py).

The range of a return is the mean over the light in its window, its intensity the sum of that light; label and element
are those of its brightest sub-ray (the nearest of equals). A window with less light than the threshold is not seen:
the next that is bright enough counts. Returns stand nearest first; their number is their place, counted from 1. So of
strongest+last the first is the strongest and the second, if there is one, the last: from first to strongest to last the
window only moves away from the sensor, and they cannot change places near the cutoff. (Noise larger than what is
between two returns can change their order, since logs are sorted.)

Goodin 2018 takes the most intense *ray* as strongest. A receiver sees the sum, and so do we: many dim rays may outshine
a bright one.

Equations: docs/models.md §18.
"""

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.pulse.stencil import MOST_SUB_RAYS, Cone, Sampling, Stencil, make_stencil
from hedgerow.pulse.waveform import WaveformSettings
from hedgerow.sensor.config import Beam

if TYPE_CHECKING:
    from hedgerow.sensor import Sensor

ReturnMode = Literal["first", "strongest", "last", "strongest+last", "all", "waveform"]

MODES: tuple[ReturnMode, ...] = ("first", "strongest", "last", "strongest+last", "all", "waveform")
"""All of them."""

UNKNOWN_CUTOFF_M = 0.75
"""Taken where the cutoff of a sensor is not known (0 in its file): the length of a pulse of 5 ns."""


class BeamSettings(Parameters):
    """How pulses are sampled and received."""

    sub_rays: Annotated[int, Field(ge=1, le=MOST_SUB_RAYS)] = 9
    """Rays traced for each pulse."""
    sampling: Sampling = "fixed"
    """The same points of the spot for all pulses; "stratified": drawn anew for each; "paper": the circle of
    Goodin 2018."""
    beam: Beam | None = None
    """Shape of the light, instead of the sensor's. Without sensor and beam, pulses are single rays."""
    mode: ReturnMode | None = None
    """Which returns to give. Default: the sensor's usual mode, or first without a sensor."""
    cutoff_m: NotNegative | None = None
    """Light within this distance is one return; 0 keeps every sub-ray apart. Default: the sensor's."""
    threshold: NotNegative = 0.0
    """Least light of a return: 0.1 is what a tenth of the spot gets back from a white wall."""
    range_falloff: bool = False
    """Whether light falls with the square of the range."""
    falloff_range_m: Positive = 10.0
    """Range at which it counts as it is, if it falls."""
    unknown_intensity: NotNegative = 0.5
    """What elements of unknown intensity (NaN) count as; their returns stay without one."""
    max_returns: Annotated[int, Field(ge=2, le=MOST_SUB_RAYS)] = 5
    """Of modes all and waveform: the nearest so many are given."""
    waveform: WaveformSettings = WaveformSettings()
    """Pulse and clock, of mode waveform."""


class Optics(NamedTuple):
    """What settings and sensor come to."""

    stencil: Stencil
    cone: Cone
    mode: ReturnMode
    cutoff_m: float


def optics(settings: BeamSettings, sensor: "Sensor | None") -> Optics:
    """Return the settings with what they leave to the sensor.

    Raises:
        InputError: the stencil does not go with the beam's shape.
    """
    signal = None if sensor is None else sensor.config.signal
    mode = settings.mode or ("first" if signal is None else signal.mode)
    cutoff_m = settings.cutoff_m
    if cutoff_m is None:
        cutoff_m = (0.0 if signal is None else signal.cutoff_m) or UNKNOWN_CUTOFF_M
    beam = settings.beam or (None if sensor is None else sensor.config.beam)
    if beam is None:
        return Optics(make_stencil("circular", 1), Cone(), mode, cutoff_m)
    return Optics(make_stencil(beam.spot, settings.sub_rays, settings.sampling), Cone.of(beam), mode, cutoff_m)
