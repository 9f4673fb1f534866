# SPDX-License-Identifier: Apache-2.0
"""What the sensor's electronics do to a range: noise, steps of the reported number, lost pulses.

For simulated logs of worlds that return exact ranges, such as scenes. A world learned from a log has the noise in
it already, and a real log needs none.

Equations: docs/models.md §20.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base import randomness
from hedgerow.base.arguments import as_number
from hedgerow.log import MISSING, Log, Returns

if TYPE_CHECKING:
    from hedgerow.sensor.config import Range


def degrade(log: Log, errors: "Range", *, seed: int, noise: bool, quantise: bool, dropout: float) -> Log:
    """Return the log with noisy, rounded and lost returns; see `Sensor.degrade`.

    A range that leaves the limits of the log by it becomes "no return".
    """
    as_number("dropout", dropout, 0, 1, "a share from 0 to 1")
    randomness.require_seed(seed)
    pulse = log.beams.pulse
    range_m = log.returns.range_m.reshape(len(log), log.returns.n_per_pulse).astype(np.float64)
    if noise:
        range_m = range_m + noise_m(range_m, pulse, errors, seed)
    if quantise and errors.step_m > 0:
        range_m = np.rint(range_m / errors.step_m) * errors.step_m
    if dropout > 0:
        lost = randomness.uniform(seed, pulse, randomness.DROPOUT) < dropout
        range_m = np.where(lost[:, None], np.inf, range_m)
    return log.with_returns(_returns(log, range_m.astype(np.float32)))


def noise_m(range_m: NDArray[np.float64], pulse: NDArray[np.int64], errors: "Range", seed: int) -> NDArray[np.float64]:
    """Draw the (N, R) errors of (N, R) ranges, 0 where there is no return [m]."""
    found = np.isfinite(range_m)
    sigma_m = errors.sigma_m + errors.sigma_per_m2 * np.where(found, range_m, 0) ** 2
    draws = [randomness.normal(seed, pulse, randomness.NOISE + 2 * r) for r in range(range_m.shape[1])]
    return np.where(found, sigma_m * np.stack(draws, axis=1), 0)


def _returns(log: Log, range_m: NDArray[np.float32]) -> Returns:
    """Blank what lies outside the limits and put the returns of each pulse nearest first again."""
    inside = (range_m > 0) & (range_m >= np.float32(log.min_range_m)) & (range_m <= np.float32(log.max_range_m))
    range_m = np.where(inside, range_m, np.float32(np.inf))
    order = np.argsort(range_m, axis=1, kind="stable")
    shape = log.returns.range_m.shape
    missed = np.isinf(np.take_along_axis(range_m, order, axis=1))

    def in_order(name: str, column: NDArray[Any] | None) -> NDArray[Any] | None:
        if column is None:
            return None
        sorted_column = np.take_along_axis(column.reshape(order.shape), order, axis=1)
        return np.where(missed, MISSING[name], sorted_column).astype(column.dtype).reshape(shape)

    returns = log.returns
    return Returns(
        range_m=np.take_along_axis(range_m, order, axis=1).reshape(shape),
        intensity=in_order("intensity", returns.intensity),
        label=in_order("label", returns.label),
        element=in_order("element", returns.element),
        colour=in_order("colour", returns.colour),
        object=in_order("object", returns.object),
    )
