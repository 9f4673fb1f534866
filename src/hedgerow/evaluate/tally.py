# SPDX-License-Identifier: Apache-2.0
"""Everything counted while a real log and its simulations pass by, sweep by sweep; tallies of parts merge."""

from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import InputError
from hedgerow.evaluate.beam_error import BeamError
from hedgerow.evaluate.bearing import BearingHistogram, Directions, split
from hedgerow.evaluate.cloud import Cloud
from hedgerow.evaluate.config import CompareSettings
from hedgerow.evaluate.hit_miss import HitMiss
from hedgerow.evaluate.likelihood import Likelihood
from hedgerow.evaluate.pair import Pair, RealSweep
from hedgerow.evaluate.range_histogram import RangeHistogram
from hedgerow.evaluate.sources import Answer
from hedgerow.evaluate.stillness import Stillness
from hedgerow.evaluate.sweep_distance import SweepDistance
from hedgerow.log import Log


class Side:
    """What is kept of one log alone, real or simulated."""

    def __init__(self, settings: CompareSettings, directions: Directions) -> None:
        """Start with nothing."""
        self.ranges = RangeHistogram(settings.histogram_step_m)
        self.cloud = Cloud(settings.max_cloud_points)
        self.bearing = BearingHistogram(directions, settings.range_step_m)

    def add(
        self,
        range_m: NDArray[np.float32],
        points_m: NDArray[np.float64],
        direction: NDArray[np.int64] | None,
    ) -> None:
        """Add one sweep; its directions if the sensor may stand still."""
        self.ranges.add(range_m)
        self.cloud.add(points_m)
        if direction is not None:
            self.bearing.add(direction, range_m)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.ranges.merge(other.ranges)
        self.cloud.merge(other.cloud)
        self.bearing.merge(other.bearing)


class Contest:
    """What is kept of one simulation beside the real log."""

    def __init__(self, settings: CompareSettings, directions: Directions) -> None:
        """Start with nothing."""
        self.side = Side(settings, directions)
        self.hit_miss = HitMiss()
        self.beam_error = BeamError()
        self.sweep_distance = SweepDistance()
        self.likelihood = Likelihood(settings.outlier_share, settings.range_step_m)

    def add(self, pair: Pair, direction: NDArray[np.int64] | None) -> None:
        """Add one sweep."""
        self.side.add(pair.range_m, pair.points_m, direction)
        self.hit_miss.add(pair)
        self.beam_error.add(pair)
        self.sweep_distance.add(pair)
        self.likelihood.add(pair)

    def merge(self, other: Self) -> None:
        """Add other sweeps."""
        self.side.merge(other.side)
        self.hit_miss.merge(other.hit_miss)
        self.beam_error.merge(other.beam_error)
        self.sweep_distance.merge(other.sweep_distance)
        self.likelihood.merge(other.likelihood)


class Tally:
    """One real log and any number of simulations of it."""

    def __init__(self, settings: CompareSettings, names: Iterable[str]) -> None:
        """Start with nothing; `names` are those of the simulations."""
        self.settings = settings
        directions = Directions(settings.bearing_step_deg)
        self.directions = directions
        self.n_beams = self.n_sweeps = 0
        self.limits_m: tuple[float, float] | None = None
        self.stillness = Stillness(settings.static_tolerance_m)
        self.real = Side(settings, directions)
        self.contests = {name: Contest(settings, directions) for name in names}

    def add(self, sweep: Log, answers: Mapping[str, Answer]) -> None:
        """Add one sweep with the answers of all simulations.

        Raises:
            InputError: its range limits differ from those of earlier sweeps.
        """
        self._require_limits((sweep.min_range_m, sweep.max_range_m))
        self.n_beams += len(sweep)
        self.n_sweeps += 1
        self.stillness.add(sweep.beams.origin_m)
        direction = self._directions_if_still(sweep)
        real = RealSweep(sweep)
        self.real.add(real.range_m, real.points_m, direction)
        for name, contest in self.contests.items():
            contest.add(Pair(real, answers[name]), direction)

    def merge(self, other: Self) -> None:
        """Add other sweeps of the same log, compared with the same simulations under the same settings."""
        if other.limits_m:
            self._require_limits(other.limits_m)
        self.n_beams += other.n_beams
        self.n_sweeps += other.n_sweeps
        self.stillness.merge(other.stillness)
        self.real.merge(other.real)
        for name, contest in self.contests.items():
            contest.merge(other.contests[name])
        if not self._may_be_static():
            self._drop_bearings()

    def is_static(self) -> bool:
        """Whether the sensor stands still and repeats its directions, unless the settings say so."""
        if self.settings.static is not None:
            return self.settings.static
        keys, _ = self.real.bearing.entries()
        n_directions = len(np.unique(split(keys)[0])) if self.stillness.holds else 0
        return n_directions > 0 and self.n_beams / n_directions >= self.settings.min_repeats

    def _directions_if_still(self, sweep: Log) -> NDArray[np.int64] | None:
        if self._may_be_static():
            return self.directions.of(sweep.beams)
        self._drop_bearings()
        return None

    def _may_be_static(self) -> bool:
        return self.stillness.holds if self.settings.static is None else self.settings.static

    def _drop_bearings(self) -> None:
        # A moving sensor would fill memory with histograms that mean nothing.
        for side in (self.real, *(contest.side for contest in self.contests.values())):
            side.bearing = BearingHistogram(self.directions, self.settings.range_step_m)

    def _require_limits(self, limits_m: tuple[float, float]) -> None:
        if self.limits_m is None:
            self.limits_m = limits_m
        if limits_m != self.limits_m:
            raise InputError("real", f"range limits change from {self.limits_m} to {limits_m} m; compare them apart")
