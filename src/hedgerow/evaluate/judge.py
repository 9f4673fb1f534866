# SPDX-License-Identifier: Apache-2.0
"""From the tally to the scores: what is computed once at the end, and notes on what could not be."""

from collections.abc import Mapping

import numpy as np

from hedgerow.errors import InputError
from hedgerow.evaluate.bearing import BearingHistogram, split
from hedgerow.evaluate.bearing_distance import bearing_distances
from hedgerow.evaluate.cloud import cloud_distances
from hedgerow.evaluate.nearest import Nearest
from hedgerow.evaluate.range_histogram import histogram_match_m
from hedgerow.evaluate.scores import Comparison, Histograms, Scores
from hedgerow.evaluate.tally import Contest, Tally
from hedgerow.evaluate.values import Value

_FEW_REPEATS = 100


def judge(tally: Tally, sizes: Mapping[str, Mapping[str, float]]) -> Comparison:
    """Score every simulation of a tally.

    Args:
        tally: of the whole log.
        sizes: elements, parameters and bytes of those simulations that know them, by name.

    Raises:
        InputError: the real log has no beams, or none of them returned.
    """
    if tally.n_beams == 0:
        raise InputError("real", "the log has no beams; there is nothing to compare")
    if tally.real.ranges.n == tally.real.ranges.n_no_return:
        raise InputError("real", f"none of its {tally.n_beams} beams returned; there is nothing to compare")
    clouds = [tally.real.cloud, *(contest.side.cloud for contest in tally.contests.values())]
    for cloud in clouds:
        cloud.kept()  # settles how far each has to be thinned
    level = max(cloud.level for cloud in clouds)
    for cloud in clouds:
        cloud.thin_to(level)
    nearest = Nearest(tally.real.cloud.kept()[0], distinct=True)
    static = tally.is_static()
    return Comparison(
        {
            name: _scores(tally, name, contest, static, nearest, sizes.get(name, {}))
            for name, contest in tally.contests.items()
        }
    )


def _scores(
    tally: Tally, name: str, contest: Contest, static: bool, nearest: Nearest, size: Mapping[str, float]
) -> Scores:
    real, simulated = tally.real, contest.side
    max_range_m = tally.limits_m[1] if tally.limits_m else np.inf
    values: dict[str, Value] = {}
    if static:
        repeats = tally.settings.min_repeats
        values |= bearing_distances(real.bearing, simulated.bearing, repeats, max_range_m)
    values |= contest.hit_miss.values() | contest.beam_error.values() | contest.sweep_distance.values()
    values |= cloud_distances(real.cloud, simulated.cloud, nearest)
    values["range_histogram_match_m"] = Value(
        histogram_match_m(real.ranges, simulated.ranges, max_range_m), tally.n_beams
    )
    values |= contest.likelihood.values()
    values |= {key: Value(number) for key, number in size.items()}
    histograms = Histograms(
        real.ranges,
        simulated.ranges,
        contest.likelihood if contest.likelihood.n else None,
        real.bearing if static else None,
        simulated.bearing if static else None,
    )
    return Scores(
        name=name,
        values=values,
        histograms=histograms,
        n_beams=tally.n_beams,
        n_sweeps=tally.n_sweeps,
        static=static,
        settings=tally.settings.model_dump(),
        notes=tuple(_notes(tally, contest, static, max_range_m)),
    )


def _notes(tally: Tally, contest: Contest, static: bool, max_range_m: float) -> list[str]:
    notes: list[str] = []
    if static:
        repeats = _repeats(tally.real.bearing)
        if repeats < _FEW_REPEATS:
            notes.append(
                f"a direction has {repeats:.0f} beams on average: two samples of one distribution would not match "
                "either, so compare the Bhattacharyya distances with each other, not with 0"
            )
    left_out = contest.sweep_distance.n_left_out
    if left_out:
        notes.append(f"{left_out} of {tally.n_sweeps} sweeps have no distance: nothing returned, in reality or here")
    if tally.real.cloud.level:
        side_cm = tally.real.cloud.side_m * 100
        notes.append(f"clouds were thinned to one point per {side_cm:g} cm voxel, weighted by the points it stands for")
    share = tally.settings.outlier_share
    if contest.likelihood.n:
        notes.append(f"-log L has a floor: p = (1 - {share:g}) p_world + {share:g} u, u uniform over the range limits")
    elif not np.isfinite(max_range_m):
        notes.append("no likelihood: the real log has no max_range_m, so the density floor has no scale; set it")
    else:
        notes.append("no likelihood: the simulation is a log, or a world without log_likelihood()")
    return notes


def _repeats(bearing: BearingHistogram) -> float:
    keys, counts = bearing.entries()
    return float(counts.sum()) / max(len(np.unique(split(keys)[0])), 1)
