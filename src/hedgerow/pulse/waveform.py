# SPDX-License-Identifier: Apache-2.0
"""Full waveforms: settings of a receiver that records the whole signal, and the recorded samples.

The signal of a pulse is the sum of Gaussian echoes, one for each sub-ray that met something, sampled by a clock that
starts with the pulse. The core finds its peaks (`cpp/pulse/waveform.hpp`).

Equations: docs/models.md §19.
"""

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from hedgerow.base.parameters import Parameters
from hedgerow.errors import InputError

Nanoseconds = Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]

LIGHT_M_PER_NS = 0.299792458
"""Speed of light [m/ns]."""


def range_of_ns(time_ns: float) -> float:
    """Return the range from which light comes back after this time [m]."""
    return 0.5 * LIGHT_M_PER_NS * time_ns


class WaveformSettings(Parameters):
    """Pulse length and sampling of a receiver that records waveforms."""

    pulse_ns: Nanoseconds = 5.0
    """Length of the pulse, full width at half maximum; 5 ns, common for 905 nm diodes, is 0.75 m of range."""
    sample_ns: Nanoseconds = 1.0
    """Time between samples; at most half of pulse_ns, or peaks would be missed."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.sample_ns > self.pulse_ns / 2:
            raise InputError("sample_ns", f"{self.sample_ns:g} is more than half of pulse_ns, {self.pulse_ns:g}")
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Waveforms:
    """Recorded signals."""

    samples: NDArray[np.float32]
    """(N, K): light received, in the units of intensity: a wall's peak is its reflectance times cosine."""
    range_m: NDArray[np.float64]
    """(K,) range that each sample belongs to [m]."""
