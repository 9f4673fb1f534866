# SPDX-License-Identifier: Apache-2.0
"""The planar scanner that plays reality in the planar experiments: models see its readings and nothing else of it.

The scanner of Tallavajhula 2018 is not at hand. This one has what the paper says of it (§3.4.2.1, §3.5.1): each bearing
has a bias of its own, the bias grows with the range, the spread grows with range and incidence, null readings become
more frequent far away and at grazing incidence, some bearings are always null, readings are whole millimetres. Besides,
neighbouring bearings err together and drop out together.

No model imports this module (`tests/reproduce/test_hidden_sensor.py` checks it). Its constants were written down before
the first model was fitted to it, and are not changed to make a conclusion hold. `without_bias` is a second scanner,
alike but for the biases: it shows which conclusions hang on them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import randomness
from hedgerow.log import Beams, Returns
from hedgerow.planar.regression import Scale
from hedgerow.planar.site import nominal_states
from hedgerow.world.scene import Scene
from hedgerow.world.world import Shot, World

N_BEARINGS = 360
SCALE = Scale(low_m=0.0, high_m=4.5, step_m=0.001)
"""Tallavajhula 2018 Table 3.1."""
BEARING_RAD: NDArray[np.float64] = np.deg2rad(np.arange(N_BEARINGS))

_NOISE, _DROP = 60, 64
"""Streams of random numbers, apart from those of all models."""
_NEIGHBOURS = np.array([0.35, 0.8, 0.35]) / np.sqrt(0.35**2 + 0.8**2 + 0.35**2)
"""How far a bearing takes part in the random numbers of its neighbours; squares add up to 1."""


@dataclass(frozen=True)
class HiddenSensor:
    """Constants of the scanner."""

    bearing_bias_m: float = 0.010
    """Standard deviation of the biases of single bearings, and amplitude of a wave around the turn."""
    range_bias: float = 0.004
    """Growth of the bias with the range [m/m]."""
    sigma_m: float = 0.002
    """Spread at no range."""
    sigma_per_m2: float = 0.0012
    """Its growth with the squared range, as of scanners that triangulate."""
    grazing: float = 0.6
    """Its growth with the squared tangent of the incidence, up to 75 degrees."""
    null_base: float = 0.01
    """Share of null readings near by."""
    null_far: float = 0.25
    """Further share at 4.5 m, growing with the fourth power of the range."""
    null_grazing: float = 0.5
    """Further share at full grazing, growing with the eighth power of the sine of the incidence."""
    dead: tuple[int, ...] = (44, 45, 46, 180, 271, 272)
    """Bearings that are always null: something of the robot stands before them."""

    def without_bias(self) -> "HiddenSensor":
        """Return the second scanner."""
        return replace(self, bearing_bias_m=0.0, range_bias=0.0)

    def bias_m(self) -> NDArray[np.float64]:
        """Return the (360,) biases of the bearings."""
        random = np.random.default_rng(1618)
        wave = np.sin(2 * BEARING_RAD + 0.7)
        return self.bearing_bias_m * (wave + random.normal(size=N_BEARINGS))

    def read(self, feature: NDArray[np.float64], pulse: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
        """Return one reading for each beam that meets something; inf is null.

        Args:
            feature: (N, 2) true range [m] and incidence [rad].
            pulse: (N,) identities; bearings are these modulo 360.
            seed: of the random numbers.
        """
        range_m, incidence = feature.T
        bearing = pulse % N_BEARINGS
        noise, drop = _joined(seed, pulse, _NOISE), _joined(seed, pulse, _DROP)
        tangent = np.tan(np.minimum(incidence, np.deg2rad(75)))
        sigma = (self.sigma_m + self.sigma_per_m2 * range_m**2) * (1 + self.grazing * tangent**2)
        reading = range_m * (1 + self.range_bias) + self.bias_m()[bearing] + sigma * noise
        null = self.null_base + self.null_far * (range_m / 4.5) ** 4 + self.null_grazing * np.sin(incidence) ** 8
        is_null = (_normal_level(drop) < null) | np.isin(bearing, self.dead)
        return SCALE.round(np.where(is_null, np.inf, reading))


class HiddenWorld(World):
    """A scene, as the hidden scanner sees it."""

    has_noise = True

    def __init__(self, scene: Scene, sensor: HiddenSensor | None = None) -> None:
        """Put the scanner before a scene."""
        super().__init__(min_range_m=SCALE.low_m, max_range_m=SCALE.high_m)
        self.scene, self.sensor = scene, sensor or HiddenSensor()

    def returns(self, beams: Beams, shot: Shot) -> Returns:
        """Read every beam once."""
        states = nominal_states(self.scene, beams, N_BEARINGS, SCALE.high_m + 1)
        seen = ~states.is_open
        reading = np.full(len(beams), np.inf)
        reading[seen] = self.sensor.read(states.feature[seen], beams.pulse[seen], shot.seed)
        return Returns(np.where(reading > 0, reading, np.inf).astype(np.float32))


def _joined(seed: int, pulse: NDArray[np.int64], stream: int) -> NDArray[np.float64]:
    """Return normal numbers that neighbouring pulses share in part."""
    return np.stack([randomness.normal(seed, pulse + i, stream) for i in (-1, 0, 1)], axis=1) @ _NEIGHBOURS


def _normal_level(score: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtr

    return ndtr(score)
