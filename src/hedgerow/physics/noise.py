# SPDX-License-Identifier: Apache-2.0
"""Smooth noise over the plane (Perlin's gradient noise, summed over octaves), the same for the same seed anywhere.

The gradients come from a hash of seed, octave and lattice point, not from a stream of random numbers, so a larger or
finer grid shows the same hills.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.errors import InputError


def fractal_noise(
    x_m: Array, y_m: Array, seed: int, *, wavelength_m: float, octaves: int = 5, roughness: float = 0.45
) -> Array:
    """Return noise at places of any shape, mean 0, the largest octave of amplitude about 0.5.

    Args:
        x_m, y_m: places [m].
        seed: 0 to 2⁶⁴ - 1.
        wavelength_m: lattice spacing of the first octave [m].
        octaves: how many, 1 to 16, each of half the wavelength of the one before.
        roughness: amplitude of each octave against the one before, 0 to 1.

    Raises:
        InputError: an argument is out of bounds.
    """
    if not 0 <= seed < 1 << 64:
        raise InputError("seed", f"expected 0 to 2**64 - 1, found {seed}")
    if not 0 < wavelength_m < np.inf or not 1 <= octaves <= 16 or not 0 <= roughness <= 1:
        raise InputError(
            "wavelength_m, octaves, roughness",
            f"expected above 0, 1 to 16 and 0 to 1, found {wavelength_m:g}, {octaves}, {roughness:g}",
        )
    total = np.zeros(np.broadcast(x_m, y_m).shape)
    for octave in range(octaves):
        scale = wavelength_m / 2**octave
        # Octaves are shifted against each other; gradient noise is 0 on its lattice, which must not coincide.
        x, y = x_m / scale + 0.37 * octave, y_m / scale + 0.71 * octave
        total += roughness**octave * _gradient_noise(x, y, seed, octave)
    return total


def _gradient_noise(x: Array, y: Array, seed: int, octave: int) -> Array:
    i, j = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    u, v = x - i, y - j
    corners = [[_pull(i + a, j + b, u - a, v - b, seed, octave) for a in (0, 1)] for b in (0, 1)]
    s, t = (w**3 * (w * (w * 6 - 15) + 10) for w in (u, v))  # Perlin's fade: no kink in the curvature
    near, far = (row[0] + s * (row[1] - row[0]) for row in corners)
    return near + t * (far - near)


def _pull(i: NDArray[np.int64], j: NDArray[np.int64], u: Array, v: Array, seed: int, octave: int) -> Array:
    """Height that the slope of lattice point (i, j) gives at the offset (u, v) from it."""
    angle = _hash(i, j, seed, octave).astype(np.float64) * (2 * np.pi / 2**64)
    return np.cos(angle) * u + np.sin(angle) * v


def _hash(i: NDArray[np.int64], j: NDArray[np.int64], seed: int, octave: int) -> NDArray[np.uint64]:
    """Mix lattice point, seed and octave with the finaliser of SplitMix64, once for each."""
    state = np.full(i.shape, seed, dtype=np.uint64)
    for part in (np.uint64(octave), i.astype(np.uint64), j.astype(np.uint64)):
        state = state ^ part
        state = state + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state
