# SPDX-License-Identifier: Apache-2.0
"""Several answers of a world to some beams of a sweep: what it forecasts of intensities and labels.

Worlds of elements know the distribution of the range of each beam, and the mean of its intensity, but not how
intensities and labels are distributed. That is estimated from `draws` answers to about `drawn_beams` of the beams that
really returned: chosen by their pulse ids, so that every world answers the same ones, and together about as much work
as firing one more sweep. Worlds that draw their forecasts anyway have the answers already, to all beams.
"""

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.randomness import uniform
from hedgerow.log import Log
from hedgerow.simulate import replay
from hedgerow.world import World
from hedgerow.world.forecast import DrawnColumns

_STREAM = 2010
_COLUMNS = ("intensity", "label")


def draw_columns(world: World, real: Log, simulated: Log, draws: int, n_beams: int, seed: int) -> DrawnColumns | None:
    """Fire some beams of a sweep several times.

    Args:
        world: what they are fired at.
        real: one sweep.
        simulated: an answer to it, which says what a world knows.
        draws: how often; below 2: not at all.
        n_beams: about how many beams at most.
        seed: of the draws.

    Returns:
        What came back; None if the world and the log have neither intensities nor labels in common.
    """
    both = [name for name in _COLUMNS if real.returns.first(name) is not None]
    if draws < 2 or all(simulated.returns.first(name) is None for name in both):
        return None
    rows = choose_beams(real, n_beams)
    if len(rows) == 0:
        return None
    some = real[rows]
    seeds = np.random.SeedSequence(seed).generate_state(draws, np.uint64).tolist()
    return DrawnColumns.of(rows, [replay(world, some, seed=int(each)).returns for each in seeds])


def choose_beams(real: Log, n_beams: int) -> NDArray[np.int64]:
    """Return the rows of about `n_beams` beams that returned, or of all if there are fewer: the same every time."""
    hit = np.isfinite(real.returns.first_m)
    n_hits = int(np.count_nonzero(hit))
    if n_hits > n_beams:
        hit &= uniform(0, real.beams.pulse, _STREAM) < n_beams / n_hits
    return np.flatnonzero(hit)
