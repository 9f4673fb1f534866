# SPDX-License-Identifier: Apache-2.0
"""The two columns that stand beside every simulation: climatology below, and reality again above.

Climatology is what can be said without a world (climatology.py). Reality again is what the true distribution itself
would score: another recording of the place, the same scene drawn anew, or, where the sensor stands, its own next sweep.
No simulation can be expected to do better than that.
"""

from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np

from hedgerow.errors import InputError
from hedgerow.metrics.bearing import StandstillCheck
from hedgerow.metrics.beside import HasSweeps, NextSweep, can_look_up
from hedgerow.metrics.climatology import Climatology, ClimatologySums
from hedgerow.metrics.config import CompareSettings
from hedgerow.metrics.inputs import Again, Recording, Simulated, sweeps_of
from hedgerow.metrics.metric import CLIMATOLOGY, REALITY_AGAIN
from hedgerow.world import World


def with_floors(named: Mapping[str, Simulated], floors: Mapping[str, Simulated]) -> dict[str, Simulated]:
    """Return simulations and floors, in this order. Raises InputError if both use a name."""
    for name in floors:
        if name in named:
            raise InputError("simulated", f"'{name}' is a column of its own; choose another name")
    return {**named, **floors}


def floor_columns(
    real: Recording, settings: CompareSettings, again: Recording | World | None = None
) -> dict[str, Simulated]:
    """Return the floors of a log by name, for `compare`.

    Args:
        real: the log; it is read once here, so it must be one that can be read twice.
        settings: those of the comparison.
        again: another recording of the same place, or the scene that the log was recorded in. Default: the log's own
            next sweep, where the sensor stands.

    Returns:
        climatology, unless the log has no range limit; and reality again, if there is one.

    Raises:
        InputError: the log is a stream that can be read only once.
    """
    if isinstance(real, Iterator):
        raise InputError("floors", "need a log that can be read twice; give a log, a file, or a function")
    sums: ClimatologySums | None = None
    standstill, n_sweeps = StandstillCheck(settings.static_tolerance_m), 0
    for sweep in sweeps_of("real", real):
        limits_m = (sweep.min_range_m, sweep.max_range_m)
        if sums is None and np.isfinite(sweep.max_range_m):
            sums = ClimatologySums(limits_m)
        if sums is not None and sums.limits_m == limits_m:
            sums.add(sweep)
        standstill.add(sweep.beams.origin_m)
        n_sweeps += 1
    found: dict[str, Simulated] = {} if sums is None else {CLIMATOLOGY: Climatology(sums)}
    is_standing = standstill.is_standing if settings.static is None else settings.static
    if again is not None:
        found[REALITY_AGAIN] = Again(again)
    elif is_standing and n_sweeps > 1 and can_look_up(real):
        found[REALITY_AGAIN] = Again(NextSweep(cast("HasSweeps", real)))
    return found
