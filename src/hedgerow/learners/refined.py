# SPDX-License-Identifier: Apache-2.0
"""The refined world: Gaussians fitted to the beams themselves by expectation maximisation (ours; MODELS §3).

The other volume learners fit Gaussians to points and count afterwards who stopped which beam. Here both come from one
likelihood, that of the measured ranges and of the returns that are missing. Sweeps that are held out decide when to
stop, and how much stopping power is right; the best world on them is kept, so the start is never made worse.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from hedgerow.errors import InputError
from hedgerow.learners.held_out import HeldOut
from hedgerow.learners.maximise import maximised, with_extinction
from hedgerow.learners.neighbourhood import pooled_covariance
from hedgerow.learners.opacity import best_touch
from hedgerow.learners.ray_sums import RayCounter, RayModel, RaySums
from hedgerow.learners.reshape import merged, pruned, split
from hedgerow.learners.topdown import TopdownParameters
from hedgerow.learners.verdict import Verdict
from hedgerow.learners.voxel import VoxelParameters
from hedgerow.world.elements import Gaussians

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RefinedParameters(BaseModel):
    """How a refined world is learned."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    start: str = "voxel"
    """What to begin with: voxel, topdown, or the folder of a saved world of Gaussians, a refined one too."""
    voxel: VoxelParameters = VoxelParameters(min_points=3)
    """How the start is learned if it is voxel."""
    topdown: TopdownParameters = TopdownParameters()
    """How the start is learned if it is topdown."""
    rounds: Annotated[int, Field(ge=0, le=1000)] = 8
    """At most so many rounds."""
    patience: Annotated[int, Field(ge=1)] = 2
    """Rounds without a better held-out score after which to stop."""
    budget: Annotated[int, Field(ge=1)] | None = None
    """Most elements; None: as many as the start has."""
    law: Literal["extinction", "permeability"] = "extinction"
    """How elements stop beams: grazing beams pass more easily, or every beam alike."""
    prior_count: NotNegative = 10.0
    """Points that the shape of the neighbourhood counts for in every element; 0 over-fits."""
    prior_reach_m: Positive = 0.6
    """How far the neighbourhood of an element reaches."""
    prior_sigma_m: Positive = 0.12
    """Largest standard deviation that the neighbourhood asks for."""
    min_hits: NotNegative = 1.0
    """Elements that answer for fewer returns are dropped."""
    split_hits: Positive = 100.0
    """Elements that answer for fewer returns are not split."""
    split_sigma_m: Positive = 0.1
    """Shorter elements are not split."""
    tau: Positive = 4.0
    """A ray meets an element up to this Mahalanobis distance."""
    min_sigma_m: Positive = 0.01
    """Floor of an element's standard deviations; range noise and errors of the poses are within it."""
    outlier_share: Annotated[float, Field(gt=0, lt=1)] = 0.001
    """Share of beams that nothing needs to explain."""
    held_out_every: Annotated[int, Field(ge=2)] = 8
    """Every n-th sweep judges instead of teaching."""


Meter = Callable[[str], Callable[[int], None] | None]
"""Gives a stage its meter, which is called with the number of beams done."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A world and what the held-out sweeps say of it."""

    gaussians: Gaussians
    verdict: Verdict


class Refiner:
    """One run of rounds over a divided log."""

    def __init__(self, held: HeldOut, model: RayModel, parameters: RefinedParameters, meter: Meter) -> None:
        """Take over what the rounds need."""
        self.held, self.model, self.parameters, self.meter = held, model, parameters, meter

    def refine(self, start: Gaussians) -> Candidate:
        """Return the best world found from a start, by held-out score.

        Ctrl-C ends the rounds, and what they found so far still gets its opacity; another one ends that too.
        """
        start = self._affordable(start)
        verdict = self._judged(start, "judging the start")
        best = first = Candidate(start, verdict)
        with suppress(KeyboardInterrupt):
            for candidate in self._rounds(self._adapted(start)):
                best = min(best, candidate, key=lambda each: each.verdict.nll)
        with suppress(KeyboardInterrupt):
            if best.gaussians.law == "extinction":
                best = self._touched(best, verdict)
        return min(first, best, key=lambda each: each.verdict.cost(verdict))

    def _affordable(self, start: Gaussians) -> Gaussians:
        """The start, or as much of it joined as the budget asks for."""
        budget = self.parameters.budget or len(start)
        if len(start) <= budget:
            return start
        sums, _ = self._round(start, "weighing the start")
        return merged(start, sums.hits, budget)[0]

    def _adapted(self, start: Gaussians) -> Gaussians:
        """The start with the law and the limits asked for."""
        own = self.parameters
        if own.law == "permeability" and start.law != "permeability":
            raise InputError("start: its elements have extinction; set law=extinction too")
        adapted = replace(start, tau=own.tau, min_sigma_m=own.min_sigma_m)
        return with_extinction(adapted) if own.law == "extinction" else adapted

    def _rounds(self, gaussians: Gaussians) -> Iterator[Candidate]:
        own = self.parameters
        budget = own.budget or len(gaussians)
        least, waited = np.inf, 0
        for number in range(own.rounds + 1):
            shown = f", held-out -log L {least:.3f}" if np.isfinite(least) else ""
            sums, verdict = self._round(gaussians, f"round {number} of {own.rounds}{shown}")
            yield Candidate(gaussians, verdict)
            waited = 0 if verdict.nll < least else waited + 1
            least = min(least, verdict.nll)
            if number == own.rounds or waited >= own.patience:
                return
            gaussians = self._next(gaussians, sums, budget, last=number + 1 == own.rounds)

    def _next(self, gaussians: Gaussians, sums: RaySums, budget: int, *, last: bool) -> Gaussians:
        own = self.parameters
        prior_m2 = None
        if own.prior_count > 0:
            prior_m2 = pooled_covariance(gaussians, sums.hits, reach_m=own.prior_reach_m, max_sigma_m=own.prior_sigma_m)
        gaussians = maximised(gaussians, sums, prior_m2=prior_m2, prior_count=own.prior_count)
        gaussians, hits = pruned(gaussians, sums.hits, own.min_hits)
        if last:
            return gaussians  # halves need a round to settle
        return split(gaussians, hits, budget=budget, min_hits=own.split_hits, min_sigma_m=own.split_sigma_m)

    def _round(self, gaussians: Gaussians, stage: str) -> tuple[RaySums, Verdict]:
        """One pass over the log: sums of what is learned from, verdict of what is held out."""
        counter, meter = RayCounter((gaussians,), self.model), self.meter(stage)
        sums, verdict, done = RaySums.zero(len(gaussians)), Verdict(), 0
        for training, judging in self.held:
            sums += counter.sums(training)
            verdict += Verdict.of(counter, judging)
            done += len(training) + len(judging)
            if meter:
                meter(done)
        return sums, verdict

    def _judged(self, gaussians: Gaussians, stage: str) -> Verdict:
        counter, meter = RayCounter((gaussians,), self.model), self.meter(stage)
        verdict, done = Verdict(), 0
        for training, judging in self.held:
            verdict += Verdict.of(counter, judging)
            done += len(training) + len(judging)
            if meter:
                meter(done)
        return verdict

    def _touched(self, best: Candidate, start: Verdict) -> Candidate:
        def judged(gaussians: Gaussians) -> Verdict:
            return self._judged(gaussians, "setting opacity by held-out sweeps")

        touch = best_touch(best.gaussians, lambda gaussians: judged(gaussians).cost(start))
        gaussians = touch.applied(best.gaussians)
        return Candidate(gaussians, judged(gaussians))


def learn_refined(
    held: HeldOut, start: Gaussians, model: RayModel, parameters: RefinedParameters, *, meter: Meter
) -> Gaussians:
    """Refine a world of Gaussians on the likelihood of the beams.

    Args:
        held: the log, divided by sweep.
        start: the elements to begin with; permeability or extinction.
        model: range limits and outliers.
        parameters: see there.
        meter: gives each stage its progress meter; the stage tells the held-out score so far.

    Returns:
        The best elements by held-out score; the start itself if nothing was better.

    Raises:
        InputError: the start has extinction but permeability is asked for.
    """
    return Refiner(held, model, parameters, meter).refine(start).gaussians


def loaded_start(path: str | Path) -> Gaussians:
    """Read the Gaussians of a saved world.

    Raises:
        FileError: missing, damaged or no world.
        InputError: it has other elements too.
    """
    from hedgerow.world.store import WorldFile

    tables = WorldFile(path).read()
    gaussians = tables.get("gaussians")
    if not isinstance(gaussians, Gaussians) or len(tables) != 1:
        raise InputError(f"start: {path} has {', '.join(tables)}; expected a world of Gaussians alone")
    return gaussians
