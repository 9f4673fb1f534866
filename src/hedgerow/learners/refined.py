# SPDX-License-Identifier: Apache-2.0
"""The refined world: Gaussians fitted to the beams themselves (ours; MODELS §3).

The other volume learners fit Gaussians to points and count afterwards who stopped which beam. Here both come from the
measured ranges and the returns that are missing: some rounds of expectation maximisation on their likelihood, then
steps down the slope of what a bad simulation costs. Sweeps that are held out decide which state is kept, so the start
is never made worse; then the way to that state is gone once more with all sweeps.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from hedgerow.errors import InputError
from hedgerow.learners.between import between
from hedgerow.learners.descent import Descent, prior_slope
from hedgerow.learners.maximise import floored, maximised, with_law
from hedgerow.learners.neighbourhood import PriorParameters, Surroundings
from hedgerow.learners.passes import Passes
from hedgerow.learners.quality import QualityCounter
from hedgerow.learners.ray_sums import RaySums
from hedgerow.learners.reshape import merged, pruned, split
from hedgerow.learners.surface import SurfaceParameters
from hedgerow.learners.topdown import TopdownParameters
from hedgerow.learners.verdict import QualityWeights, Verdict
from hedgerow.learners.voxel import VoxelParameters
from hedgerow.world.elements import Gaussians, Law

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RefinedParameters(BaseModel):
    """How a refined world is learned."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    start: str = "topdown"
    """What to begin with: voxel, topdown, or the folder of a saved world of Gaussians. A refined one that was
    interrupted goes on; a finished one has learned from all its sweeps, and changes only if another log asks for it."""
    voxel: VoxelParameters = VoxelParameters(min_points=3)
    """How the start is learned if it is voxel."""
    topdown: TopdownParameters = TopdownParameters()
    """How the start is learned if it is topdown."""
    rounds: Annotated[int, Field(ge=0, le=1000)] = 6
    """Rounds of expectation maximisation; none for a start that is refined already."""
    passes: Annotated[int, Field(ge=0, le=1000)] = 4
    """Passes of descent over the log, a step per sweep; 0: none."""
    min_steps: Annotated[int, Field(ge=0, le=100_000)] = 80
    """Of few sweeps there are more passes, until there are so many steps."""
    rate: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """First steps of means and shapes, in standard deviations of the element."""
    stop_rate: Annotated[float, Field(gt=0, le=1)] = 0.2
    """First steps of the log of the depth, or of the extinction."""
    weights: QualityWeights = QualityWeights()
    """What makes a simulation bad, besides an unlikely range."""
    budget: Annotated[int, Field(ge=1)] | None = None
    """Most elements; None: as many as the start has."""
    worth_nat: NotNegative = 0.2
    """What the second half of the budget must save of the held-out cost; if it saves less, it is left unused."""
    law: Law = "depth"
    """How elements stop beams: those that graze pass more easily (depth); so do those whose way through is short
    (extinction); or all alike (permeability). A start that is not permeable alike keeps its own law and tau."""
    surface: SurfaceParameters | None = SurfaceParameters(node_m=0.5, kernel_m=0.5)
    """How triangles are learned that may take the place of Gaussians; None: they may not."""
    prior: PriorParameters | None = PriorParameters()
    """What the shapes of elements lean on; None: their own returns alone."""
    min_hits: NotNegative = 1.0
    """Elements that answer for fewer returns are dropped."""
    swap: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Share of the budget that each round takes from where elements hardly differ, and gives to where they are few."""
    split_hits: Positive = 10.0
    """Elements that answer for fewer returns are not split."""
    split_sigma_m: Positive = 0.04
    """Shorter elements are not split."""
    tau: Positive = 2.7
    """A ray meets an element up to this Mahalanobis distance."""
    min_sigma_m: Positive = 0.01
    """Floor of an element's standard deviations; range noise and errors of the poses are within it."""
    outlier_share: Annotated[float, Field(gt=0, lt=1)] = 0.001
    """Share of beams that nothing needs to explain."""
    held_out_every: Annotated[int, Field(ge=2)] = 16
    """Every n-th sweep judges before it teaches; of a single sweep all beams do both at once."""


_MOST_VERDICTS = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """How a world came from its start, so that the same can be done again with other sweeps."""

    share: float | None = None
    """How much of the budget the rounds had; None: the start as it is."""
    descended: float = 0.0
    """How much of the descent."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A world and what the held-out sweeps say of it."""

    gaussians: Gaussians
    verdict: Verdict
    surroundings: Surroundings | None
    plan: Plan


class Refiner:
    """One run over a divided log."""

    def __init__(self, log: Passes, parameters: RefinedParameters) -> None:
        """Take over what the stages need."""
        self.log, self.parameters = log, parameters
        self.told = ""
        """What the descent tells of how far it has come, beside the number of the pass."""
        self.interrupted = False
        """Whether Ctrl-C ended a stage of `refine`."""

    def refine(self, start: Gaussians) -> Candidate:
        """Return the best world found from a start, by held-out cost.

        Ctrl-C ends a stage; what was best so far goes on, and is the result after the last one.
        """
        start = self._affordable(start, self.parameters.budget or len(start))
        best = fitted = Candidate(start, self._judged(start, "judging the start"), self._surroundings(start), Plan())
        with self._until_interrupted():
            for candidate in self._fits(start):
                fitted = candidate
                best = self._better(best, fitted)
        if fitted.gaussians.law != "permeability":
            with self._until_interrupted():
                for candidate in self._passes(fitted):
                    best = self._better(best, candidate)
        return best

    def repeat(self, start: Gaussians, best: Candidate) -> Candidate:
        """Do with every sweep what the held-out ones found best: they have judged, and may teach now.

        Args:
            start: as it was for `refine`, but learned from every sweep.
            best: what `refine` found.

        Returns:
            The world that all sweeps taught; `best` itself if even the sweeps that judged are no better off with that.
        """
        plan, again = best.plan, Refiner(self.log.without_judges(), self.parameters)
        start = again._affordable(start, self.parameters.budget or len(start))
        gaussians, surroundings = start, again._surroundings(start)
        if plan.share is not None:
            gaussians, surroundings = again._fitted(start, plan.share)
        if plan.descended > 0:
            states = again._descended(gaussians, surroundings)
            gaussians = next(state for part, state in states if part >= plan.descended)
        verdict = self._judged(gaussians, "judging")
        return self._better(best, Candidate(gaussians, verdict, surroundings, plan))

    @contextmanager
    def _until_interrupted(self) -> Generator[None]:
        """Ctrl-C ends what is within, and is remembered."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    def _better(self, one: Candidate, other: Candidate) -> Candidate:
        return min(one, other, key=lambda each: each.verdict.cost(self.parameters.weights))

    def _affordable(self, start: Gaussians, budget: int) -> Gaussians:
        """The start, or as much of it joined as the budget asks for."""
        if len(start) <= budget:
            return start
        return merged(start, self.log.sums(start, "weighing the start").hits, budget)[0]

    def _adapted(self, start: Gaussians) -> Gaussians:
        """The start with the law and the limits asked for."""
        own = self.parameters
        if own.law == "permeability" and start.law != "permeability":
            raise InputError(f"start: its elements stop beams by {start.law}; set law={start.law} too")
        covariance_m2 = floored(start.covariance_m2, own.min_sigma_m)
        adapted = replace(start, min_sigma_m=own.min_sigma_m, covariance_m2=covariance_m2)
        if start.law != "permeability":
            return adapted
        adapted = replace(adapted, tau=own.tau)
        return adapted if own.law == "permeability" else with_law(adapted, own.law)

    def _fits(self, start: Gaussians) -> Iterator[Candidate]:
        """Expectation maximisation with half of the budget, then with all of it if that is worth it.

        Twice as many elements fit the training beams better; beams from elsewhere often worse.
        """
        own = self.parameters
        if start.law != "permeability" or own.rounds == 0:
            yield self._fit(start, 1.0)
            return
        half = self._fit(start, 0.5)
        yield half
        full = self._fit(start, 1.0)
        if half.verdict.cost(own.weights) - full.verdict.cost(own.weights) > own.worth_nat:
            yield full

    def _fit(self, start: Gaussians, share: float) -> Candidate:
        gaussians, surroundings = self._fitted(start, share)
        return Candidate(gaussians, self._judged(gaussians, "judging the rounds"), surroundings, Plan(share))

    def _fitted(self, start: Gaussians, share: float) -> tuple[Gaussians, Surroundings | None]:
        """Rounds of expectation maximisation from a start that is permeable alike; what the result leans on."""
        if start.law != "permeability" or self.parameters.rounds == 0:
            return self._adapted(start), self._surroundings(start)
        rounds, budget = self.parameters.rounds, ceil(share * (self.parameters.budget or len(start)))
        start = self._affordable(start, budget)
        surroundings, gaussians = self._surroundings(start), self._adapted(start)
        for number in range(1, rounds + 1):
            sums = self.log.sums(gaussians, f"round {number} of {rounds} with {budget:,} elements")
            gaussians = self._next(gaussians, sums, budget, surroundings)
        return gaussians, surroundings

    def _judged(self, gaussians: Gaussians, stage: str) -> Verdict:
        return self.log.verdict(gaussians, self.parameters.weights, stage)

    def _surroundings(self, start: Gaussians) -> Surroundings | None:
        return Surroundings(start, self.parameters.prior) if self.parameters.prior else None

    def _next(self, gaussians: Gaussians, sums: RaySums, budget: int, surroundings: Surroundings | None) -> Gaussians:
        own = self.parameters
        gaussians = maximised(gaussians, sums, surroundings and surroundings.prior(gaussians, sums.hits))
        gaussians, hits = pruned(gaussians, sums.hits, own.min_hits)
        gaussians, hits = merged(gaussians, hits, int((1 - own.swap) * budget))
        return split(gaussians, hits, budget=budget, min_hits=own.split_hits, min_sigma_m=own.split_sigma_m)

    def _passes(self, start: Candidate) -> Iterator[Candidate]:
        """Descent, with verdicts on the way that tell how far it has come."""
        self.told = f", {start.verdict.summary()}"
        for part, gaussians in self._descended(start.gaussians, start.surroundings):
            verdict = self._judged(gaussians, f"judging after {part:.0%} of the descent")
            self.told = f", {verdict.summary()}"
            yield replace(start, gaussians=gaussians, verdict=verdict, plan=replace(start.plan, descended=part))

    def _descended(self, gaussians: Gaussians, surroundings: Surroundings | None) -> Iterator[tuple[float, Gaussians]]:
        """Descent; the pace falls over all steps. Gives the state after some passes, and what part of all they are."""
        own, per_pass = self.parameters, max(self.log.held.n_training, 1)
        passes = max(own.passes, -(-own.min_steps // per_pass)) if own.passes else 0
        every = -(-passes // _MOST_VERDICTS)
        descent, step, prior = Descent(len(gaussians), own.rate, own.stop_rate), 0, None
        total, hits = np.zeros(len(gaussians)), np.zeros(len(gaussians))
        for number in range(1, passes + 1):
            for sweep in self.log.sweeps(f"pass {number} of {passes}{self.told}"):
                if self.log.held.n_sweeps == 1:  # nothing else tells what is between its beams
                    sweep = between(sweep, np.random.default_rng((number, step)))
                slopes, _ = QualityCounter(gaussians, self.log.model, own.weights).slopes(sweep)
                slope = slopes.slope
                if prior is not None:
                    slope += prior_slope(gaussians, prior.covariance_m2, prior.count * _ratio(slopes.hits, total))
                gaussians = descent.step(gaussians, slope, np.sqrt(max(1 - step / (passes * per_pass), 0)))
                hits, step = hits + slopes.hits, step + 1
            if number % every == 0 or number == passes:
                yield number / passes, gaussians
            if surroundings and (number % every == 0 or number == 1):
                prior = surroundings.prior(gaussians, hits)
            total, hits = hits, np.zeros(len(gaussians))


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of its returns in a pass that an element has in one sweep."""
    return part / np.maximum(np.maximum(part, whole), 1e-9)


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
