# SPDX-License-Identifier: Apache-2.0
"""What a beam meets behind things of some labels: the ground behind the grass, the wall behind the hedge (004 §3.1)."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hedgerow import _core, arrays
from hedgerow.log import Beams
from hedgerow.sensor.randomness import require_seed
from hedgerow.world.hits import Hits
from hedgerow.world.scene import Progress, Scene, require_threads


def first_behind(
    scene: Scene,
    beams: Beams,
    near_m: NDArray[np.float32],
    far_m: NDArray[np.float32],
    labels: Iterable[int],
    *,
    seed: int = 0,
    threads: int = 0,
    progress: Progress | None = None,
) -> Hits:
    """Find the first element from `near_m` to `far_m` that stops each pulse and has none of these labels.

    Elements throw the coins that `Scene.fire` throws with the same seed: where that found vegetation, whatever stands
    before it and let the pulse pass lets it pass here too. The label of a placement counts, where it has one.

    Args:
        beams: in any order; a slice gives the slice's answers.
        near_m, far_m: (N,) float32, 0 or more; far_m may be inf. Where far_m is below near_m, nothing is found [m].
        labels: what pulses go through, each 0 to 65535.
        seed: 0 to 2⁶⁴ - 1.
        threads: 0 for all; the result does not depend on it.
        progress: called between batches with the number of beams done.

    Returns:
        As of `Scene.fire`; the range is drawn with a normal number of its own, and may lie that much outside near_m
        and far_m.

    Raises:
        InputError: wrong type, shape or value, naming the argument and the row.
    """
    near, far = (
        arrays.require(name, values, np.float32, (len(beams),))
        for name, values in (("near_m", near_m), ("far_m", far_m))
    )
    for name, values in (("near_m", near), ("far_m", far)):
        wrong = ~(values >= 0)
        if wrong.any():
            row = arrays.first_row(wrong)
            raise arrays.RowError(name, row, f"is {values[row]}; expected 0 or more")
    numbers = np.array(sorted(labels))
    answer = _core.first_behind(
        scene.native,
        scene.seen(beams),
        near_m=near,
        far_m=far,
        passed_labels=np.ascontiguousarray(arrays.as_integers("labels", numbers, (len(numbers),), np.uint16)),
        seed=require_seed(seed),
        threads=require_threads(threads),
        progress=progress,
    )
    return Hits.of(answer)
