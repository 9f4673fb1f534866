# SPDX-License-Identifier: Apache-2.0
"""Passes over a divided log: what it teaches of some Gaussians and how it judges them, each with a meter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Self

from hedgerow.learners.held_out import HeldOut
from hedgerow.learners.quality import QualityCounter
from hedgerow.learners.ray_sums import RayCounter, RayModel, RaySums
from hedgerow.learners.verdict import QualityWeights, Verdict
from hedgerow.log import Log
from hedgerow.world.elements import Gaussians

Meter = Callable[[str], Callable[[int], object] | None]
"""Gives a stage its meter, which is called with the number of beams done."""


@dataclass(frozen=True, slots=True)
class Passes:
    """A log that can be gone through again and again."""

    held: HeldOut
    model: RayModel
    meter: Meter

    def without_judges(self) -> Self:
        """Return the same log with every sweep among those that teach."""
        every = replace(self.held, sweeps=self.held.sweeps[:0], n_training=self.held.n_sweeps)
        return replace(self, held=every)

    def sweeps(self, stage: str) -> Iterator[Log]:
        """Give the sweeps that are learned from."""
        meter, done = self.meter(stage), 0
        for training, judging in self.held:
            for _, sweep in training.iter_sweeps():
                yield sweep
                done += len(sweep)
                if meter:
                    meter(done)
            done += _n_beams(training, judging) - len(training)

    def sums(self, gaussians: Gaussians, stage: str) -> RaySums:
        """Share the beams that are learned from out among the elements."""
        counter, sums = RayCounter((gaussians,), self.model), RaySums.zero(len(gaussians))
        for training, _ in self._metered(stage):
            sums += counter.sums(training)
        return sums

    def verdict(self, gaussians: Gaussians, weights: QualityWeights, stage: str) -> Verdict:
        """Judge the elements by the sweeps that are held out."""
        counter, verdict = QualityCounter(gaussians, self.model, weights), Verdict()
        for _, judging in self._metered(stage):
            verdict += counter.slopes(judging)[1]
        return verdict

    def _metered(self, stage: str) -> Iterator[tuple[Log, Log]]:
        meter, done = self.meter(stage), 0
        for training, judging in self.held:
            yield training, judging
            done += _n_beams(training, judging)
            if meter:
                meter(done)


def _n_beams(training: Log, judging: Log) -> int:
    """How many beams a partition has; without held-out sweeps all of them do both."""
    return len(training) if judging is training else len(training) + len(judging)
