# SPDX-License-Identifier: Apache-2.0
"""Random numbers that belong to a pulse, not to a call.

Each number is a hash of (seed, pulse, stream), so cutting the work into pieces or changing its order changes nothing.
The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): number
n of a sequence is mix(key + n * golden), where n is the pulse and the key is mixed from seed and stream.
"""

from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arguments import as_whole

ENCODER, CONE_RADIUS, CONE_ANGLE, DROPOUT, VEGETATION, NOISE = 1, 2, 3, 4, 8, 16
"""Streams, one for each use; VEGETATION takes the one after it as well, and return r of a pulse takes the noise streams
NOISE + 2 r and NOISE + 2 r + 1."""
POSE = 1000
"""Streams of errors of the pose, two for each of six; they are keyed by ticks of time instead of pulses."""

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = 0xFFFFFFFFFFFFFFFF


def uniform(seed: int, pulse: NDArray[np.int64], stream: int) -> NDArray[np.float64]:
    """Return (N,) numbers, uniform between 0 and 1, neither included.

    Args:
        seed: any whole number from 0 to 2**64 - 1.
        pulse: (N,) pulse ids.
        stream: which use, see above.

    Raises:
        InputError: the seed is no such number.
    """
    key = np.uint64(_mix_int(_mix_int(require_seed(seed)) ^ (stream * _GOLDEN & _WORD)))
    bits = _mix(key + pulse.astype(np.uint64) * np.uint64(_GOLDEN))
    # 53 bits, the precision of float64; the half keeps 0 out.
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def normal(seed: int, pulse: NDArray[np.int64], stream: int) -> NDArray[np.float64]:
    """Return (N,) standard normal numbers (Box and Muller), using `stream` and the one after it."""
    radius = np.sqrt(-2 * np.log(uniform(seed, pulse, stream)))
    return radius * np.cos(2 * np.pi * uniform(seed, pulse, stream + 1))


def require_seed(seed: SupportsIndex) -> int:
    """Return the seed, or raise InputError if it is no whole number from 0 to 2**64 - 1."""
    return as_whole("seed", seed, 0, _WORD, "a whole number from 0 to 2**64 - 1")


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _mix_int(bits: int) -> int:
    return int(_mix(np.array([bits], dtype=np.uint64))[0])
