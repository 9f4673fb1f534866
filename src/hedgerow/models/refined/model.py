# SPDX-License-Identifier: Apache-2.0
"""The refined model: Gaussians fitted to the beams themselves. This file is its main loop (docs/models.md §16).

The other volume models fit Gaussians to points and count afterwards which beams each stopped. Here both come from the
measured ranges and from the returns that are missing:

1. hold out the last sweeps for validation, views that are not learned from (holdout.py); add virtual beams between the
   rings of the others (virtual_beams.py), and learn a start from them: topdown or voxel;
2. rounds of expectation maximisation on the likelihood of the ranges (rounds.py);
3. if asked for, epochs of gradient descent on the loss (descent.py, score.py);
4. the state with the lowest held-out loss wins;
5. flat elements become wide enough to close the gaps between beams, as the held-out sweeps choose (spacing.py);
6. do the same once more on all sweeps. Nothing is chosen there: every sweep has been learned from by then.

Beams from one place, of a sensor that stands or of a single sweep, are forecast between their like: there is no virtual
beam, the budget is larger, and descent is worth its time.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import ceil, isfinite, log
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.errors import InputError
from hedgerow.models.refined.densify import densify
from hedgerow.models.refined.descent import Adam, movable, prior_gradient, shapes_of, within_reach
from hedgerow.models.refined.holdout import SplitLog, hold_out
from hedgerow.models.refined.prior import Neighbourhoods, PriorParameters
from hedgerow.models.refined.rounds import (
    RaySums,
    convert_law,
    floor_covariance,
    gather_sums,
    maximise,
    merge,
    prune,
    split,
)
from hedgerow.models.refined.score import (
    LossEvaluator,
    LossWeights,
    RayModel,
    Score,
    crps_of_gaussians,
    score_gaussians,
)
from hedgerow.models.refined.spacing import measure_spacing, refit_thickness, widen
from hedgerow.models.refined.virtual_beams import AddVirtualBeams, VirtualBeamParameters
from hedgerow.models.steps.log_chunks import LearningTask
from hedgerow.models.topdown import TopdownParameters, learn_topdown
from hedgerow.models.voxel import VoxelParameters, learn_voxel
from hedgerow.world.elements import Gaussians, Law

_EPOCHS = 4
_MAX_VALIDATIONS = 8  # during the descent


class RefinedParameters(Parameters):
    """Parameters of the refined model."""

    start: str = "topdown"
    """World to start from: voxel, topdown, or the folder of a saved world of Gaussians. A saved refined world is
    trained further, by descent."""
    voxel: VoxelParameters = VoxelParameters(min_points=3)
    """Parameters of the start if it is voxel."""
    topdown: TopdownParameters = TopdownParameters()
    """Parameters of the start if it is topdown."""
    rounds: Annotated[int, Field(ge=0, le=1000)] = 6
    """Number of rounds of expectation maximisation (EM); skipped if the start is a refined world."""
    epochs: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Number of epochs of gradient descent over the training sweeps, one step per sweep. They make ranges sharper, and
    forecasts surer than they should be from new places; they take longer than all the rest. Default: 4 where all beams
    come from one place, and for a start that is refined already; otherwise none."""
    min_steps: Annotated[int, Field(ge=0, le=100_000)] = 80
    """Minimum number of steps of the descent; short logs run more epochs to reach it."""
    learning_rate: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """Initial learning rate of means and covariances, in standard deviations of the element."""
    stop_learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Initial learning rate of the logarithm of optical depth or extinction."""
    weights: LossWeights = LossWeights()
    """Weights of the loss: range errors, lost returns and false returns, beside the negative log-likelihood. Default:
    likelihood alone, a proper score; more makes a world surer than reality."""
    budget: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of elements. Default: as many as the start has where all beams come from one place; otherwise
    half as many, since more fit the training beams better and beams from elsewhere no better."""
    law: Law = "depth"
    """How elements stop beams. depth: beams near the edge of an element pass more easily; extinction: so do beams with
    a short path through it; permeability: all beams pass alike. A start with depth or extinction keeps its law and its
    tau."""
    prior: PriorParameters | None = PriorParameters()
    """Prior on the shapes of elements, from their neighbours; null for none."""
    min_hits: NotNegative = 1.0
    """Elements that explain fewer returns than this are removed after each round."""
    relocate_share: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    """Share of the elements that each round merges where neighbours are alike, to split as many large ones."""
    split_hits: Positive = 10.0
    """Minimum number of returns that an element must explain to be split."""
    split_sigma_m: Positive = 0.04
    """Minimum standard deviation along its longest axis for an element to be split."""
    tau: Positive = 3.2
    """Mahalanobis distance up to which a ray meets an element."""
    min_sigma_m: Positive = 0.01
    """Minimum standard deviation of an element along any axis; covers range noise and pose errors."""
    outlier_share: Annotated[float, Field(gt=0, lt=1)] = 0.001
    """Share of beams assumed to be outliers that no element has to explain."""
    held_out_end_share: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Share of the sweeps, the last ones, that are held out for validation until the final training on all sweeps:
    views from places where no training sweep was. A log of one sweep is trained on and validated by the same beams."""
    held_out_every: Annotated[int, Field(ge=2)] = 16
    """With held_out_end_share=0, every n-th sweep is held out instead: views between those of training sweeps."""
    virtual: VirtualBeamParameters | None = VirtualBeamParameters()
    """Virtual beams between the rings of training sweeps, for views from other places; null for none. Without effect
    where all beams come from one place."""
    widths: tuple[Annotated[float, Field(ge=0, le=100)], ...] = (0.0, 1.0, 2.0, 3.0)
    """Flat elements are made at least this many times the spacing of beams of different sweeps wide. The value is taken
    that is best on held-out sweeps, by likelihood and CRPS together; 0 alone: they stay as they are."""


def learn_refined(task: LearningTask, parameters: RefinedParameters) -> tuple[Gaussians]:
    """Learn Gaussians from the beams of a log.

    Ctrl-C ends the training early; the result is then the best state so far, by held-out loss.

    Raises:
        InputError: a start that cannot be refined, or a log that cannot be learned from; says why.
        FileError: the start is no saved world.
    """
    summary = task.summary
    end_share = parameters.held_out_end_share
    log = hold_out(task.chunks, parameters.held_out_every, task.start, end_share=end_share)
    if parameters.virtual is not None and not log.from_one_place:
        log = replace(log, prepare=AddVirtualBeams(parameters.virtual))
    rays = RayModel(
        min_range_m=summary.min_range_m,
        max_range_m=summary.max_range_m if isfinite(summary.max_range_m) else log.farther_than_all_m,
        outlier_share=parameters.outlier_share,
    )
    start = learn_start(replace(task, chunks=log.training), parameters)
    if parameters.epochs is None and (log.from_one_place or start.law != "permeability"):
        parameters = parameters.model_copy(update={"epochs": _EPOCHS})
    trainer = Trainer(log, rays, parameters)
    best = trainer.train(start)
    width = 0.0
    if not trainer.interrupted:
        best, width = trainer.choose_width(best)
    if len(log.held_out_sweeps) == 0 or trainer.interrupted:
        return (best.gaussians,)
    with suppress(KeyboardInterrupt):  # the best state is a world already
        task.stages.prefix = "all sweeps: "
        start = learn_start(replace(task, chunks=log.with_all_sweeps().training), parameters)
        return (trainer.train_on_all_sweeps(start, best, width),)
    return (best.gaussians,)


def learn_start(task: LearningTask, parameters: RefinedParameters) -> Gaussians:
    """Return the Gaussians that training starts from: a voxel or topdown world of the log, or a saved one."""
    if parameters.start == "voxel":
        return learn_voxel(task, parameters.voxel)[0]
    if parameters.start == "topdown":
        return learn_topdown(task, parameters.topdown)[0]
    return load_start(parameters.start)


def load_start(path: str | Path) -> Gaussians:
    """Read the Gaussians of a saved world.

    Raises:
        FileError: missing, damaged or no world.
        InputError: it has other elements too.
    """
    from hedgerow.world.store.files import WorldFile

    tables = WorldFile(path).read()
    gaussians = tables.get("gaussians")
    if not isinstance(gaussians, Gaussians) or len(tables) != 1:
        raise InputError("start", f"{path} has {', '.join(tables)}; expected a world of Gaussians alone")
    return gaussians


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How a state came from its start, so that the same can be done again with all sweeps."""

    rounds: bool = False
    """Whether it went through the rounds; False: the start as it is."""
    descent_share: float = 0.0
    """Share of all epochs that the descent ran."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A state of the Gaussians and its score on the held-out sweeps."""

    gaussians: Gaussians
    score: Score
    neighbourhoods: Neighbourhoods | None
    plan: TrainingPlan


class Trainer:
    """Trains Gaussians on a split log."""

    def __init__(self, log: SplitLog, rays: RayModel, parameters: RefinedParameters) -> None:
        """Take over what all steps need."""
        self.log, self.rays, self.parameters = log, rays, parameters
        self.interrupted = False
        """Whether Ctrl-C ended a step of `train`."""
        self._status = ""
        """The last held-out score, shown beside the number of the epoch."""

    def train(self, start: Gaussians) -> Candidate:
        """Return the state with the lowest held-out loss: the start, after the rounds, or during the descent.

        Ctrl-C ends the rounds or the descent; training goes on with the next step from what was best so far.
        """
        start = self._within_budget(start)
        best = fitted = Candidate(
            start, self._validate(start, "validating the start"), self._neighbourhoods(start), TrainingPlan()
        )
        with self._until_interrupted():
            fitted = self._fit(start)
            best = self._better(best, fitted)
        if fitted.gaussians.law != "permeability":
            with self._until_interrupted():
                for candidate in self._descend_validated(fitted):
                    best = self._better(best, candidate)
        return best

    def choose_width(self, best: Candidate) -> tuple[Candidate, float]:
        """Widen flat elements to the multiple of the beams' spacing that is best on held-out sweeps.

        Returns:
            The state with these elements, and the multiple; as it is and 0 after Ctrl-C.
        """
        widths = sorted(set(self.parameters.widths))
        if not any(widths):
            return best, 0.0
        spacing_m = self._spacing_m(best.gaussians)
        wider: dict[float, Gaussians] = {}
        badness: dict[float, float] = {}
        with self._until_interrupted():
            for width in widths:
                wider[width] = self._widened(best.gaussians, spacing_m, width)
                badness[width] = self._badness(wider[width], f"validating elements {width:g} gaps wide")
        if self.interrupted:
            return best, 0.0
        width = min(widths, key=lambda each: badness[each])
        return replace(best, gaussians=wider[width]), width

    def _badness(self, gaussians: Gaussians, stage: str) -> float:
        """Return held-out -log L plus the logarithm of the held-out CRPS: proper scores both, by nats and by shares.

        CRPS alone asks for elements so wide that ranges lose their sharpness; likelihood alone leaves gaps.
        """
        nll = self._validate(gaussians, stage).nll
        crps_m = crps_of_gaussians(gaussians, self.log.validation, self.rays, self.log.start(stage))
        return nll + log(max(crps_m, 1e-6))

    def _spacing_m(self, gaussians: Gaussians) -> NDArray[np.float64]:
        return measure_spacing(gaussians, self.log.measured, self.log.start("measuring gaps between beams"))

    def _widened(self, gaussians: Gaussians, spacing_m: NDArray[np.float64], width: float) -> Gaussians:
        """Return the elements with flat ones some gaps wide, and thickness and stops that suit their new width."""
        wider = widen(gaussians, spacing_m, width)
        if wider is gaussians:
            return gaussians
        watch = self.log.start(f"fitting elements {width:g} gaps wide")
        return refit_thickness(wider, gather_sums(wider, self.log.training, self.rays, watch))

    def train_on_all_sweeps(self, start: Gaussians, best: Candidate, width: float) -> Gaussians:
        """Repeat on every sweep what gave the best state: validation is over, so the held-out sweeps may train too.

        Args:
            start: as it was for `train`, but learned from every sweep.
            best: what `train` returned, with elements as wide as chosen.
            width: what `choose_width` chose.

        Nothing is validated: there is no sweep left that was not learned from.
        """
        plan, everything = best.plan, Trainer(self.log.with_all_sweeps(), self.rays, self.parameters)
        start = everything._within_budget(start)
        gaussians, neighbourhoods = start, everything._neighbourhoods(start)
        if plan.rounds:
            gaussians, neighbourhoods = everything._run_rounds(start)
        if plan.descent_share > 0:
            states = everything._descend(gaussians, neighbourhoods)
            gaussians = next(state for share, state in states if share >= plan.descent_share)
        return everything._widened(gaussians, everything._spacing_m(gaussians), width) if width > 0 else gaussians

    def _validate(self, gaussians: Gaussians, stage: str) -> Score:
        watch = self.log.start(stage)
        return score_gaussians(gaussians, self.log.validation, self.rays, self.parameters.weights, watch)

    def _better(self, one: Candidate, other: Candidate) -> Candidate:
        return min(one, other, key=lambda each: each.score.loss(self.parameters.weights))

    @contextmanager
    def _until_interrupted(self) -> Generator[None]:
        """Ctrl-C ends what is within, and is remembered."""
        try:
            yield
        except KeyboardInterrupt:
            self.interrupted = True

    def _fit(self, start: Gaussians) -> Candidate:
        gaussians, neighbourhoods = self._run_rounds(start)
        score = self._validate(gaussians, "validating the rounds")
        return Candidate(gaussians, score, neighbourhoods, TrainingPlan(rounds=True))

    def _run_rounds(self, start: Gaussians) -> tuple[Gaussians, Neighbourhoods | None]:
        """Run the rounds of expectation maximisation; a start that has a law of its own is refined already."""
        rounds = self.parameters.rounds
        if start.law != "permeability" or rounds == 0:
            return self._adapt(start), self._neighbourhoods(start)
        budget = self.parameters.budget or len(start)
        neighbourhoods, gaussians = self._neighbourhoods(start), self._adapt(start)
        for number in range(1, rounds + 1):
            watch = self.log.start(f"round {number} of {rounds} with {budget:,} elements")
            sums = gather_sums(gaussians, self.log.training, self.rays, watch)
            gaussians = self._run_round(gaussians, sums, budget, neighbourhoods)
        return gaussians, neighbourhoods

    def _run_round(
        self, gaussians: Gaussians, sums: RaySums, budget: int, neighbourhoods: Neighbourhoods | None
    ) -> Gaussians:
        own = self.parameters
        gaussians = maximise(gaussians, sums, neighbourhoods and neighbourhoods.prior(gaussians, sums.hits))
        gaussians, hits = prune(gaussians, sums.hits, own.min_hits)
        gaussians, hits = merge(gaussians, hits, int((1 - own.relocate_share) * budget))
        return split(gaussians, hits, budget=budget, min_hits=own.split_hits, min_sigma_m=own.split_sigma_m)

    def _descend_validated(self, start: Candidate) -> Iterator[Candidate]:
        """Run the descent, and validate some of its states."""
        self._status = f", {start.score.summary()}"
        for share, gaussians in self._descend(start.gaussians, start.neighbourhoods):
            score = self._validate(gaussians, f"validating after {share:.0%} of the descent")
            self._status = f", {score.summary()}"
            yield replace(start, gaussians=gaussians, score=score, plan=replace(start.plan, descent_share=share))

    def _descend(
        self, gaussians: Gaussians, neighbourhoods: Neighbourhoods | None
    ) -> Iterator[tuple[float, Gaussians]]:
        """Run the epochs of descent, one step per sweep; steps shrink to nothing towards the end.

        Gives the state after some of the epochs, and what share of all epochs that is.
        """
        own, n_steps = self.parameters, max(self.log.n_training, 1)  # in one epoch
        gaussians = movable(gaussians)
        epochs = max(own.epochs, -(-own.min_steps // n_steps)) if own.epochs else 0
        every = -(-epochs // _MAX_VALIDATIONS)
        adam, step, prior = Adam(len(gaussians), own.learning_rate, own.stop_learning_rate), 0, None
        last_hits, hits = np.zeros(len(gaussians)), np.zeros(len(gaussians))  # in the last epoch, and in this one
        for epoch in range(1, epochs + 1):
            for sweep in self.log.training_sweeps(f"epoch {epoch} of {epochs}{self._status}"):
                if self.log.n_sweeps == 1:  # nothing else tells what is between its beams
                    sweep = densify(sweep, np.random.default_rng((epoch, step)))
                near = within_reach(gaussians, sweep, self.rays.max_range_m)
                local = shapes_of(gaussians, near)
                gradient, _ = LossEvaluator(local, self.rays, own.weights).evaluate(sweep)
                total = gradient.values
                if prior is not None:
                    weight = prior.count * _share(gradient.hits, last_hits[near])
                    total += prior_gradient(local, prior.covariance_m2[near], weight)
                adam.step(gaussians, near, total, np.sqrt(max(1 - step / (epochs * n_steps), 0)))
                hits[near] += gradient.hits
                step += 1
            if epoch % every == 0 or epoch == epochs:
                yield epoch / epochs, movable(gaussians)
            if neighbourhoods and (epoch % every == 0 or epoch == 1):
                prior = neighbourhoods.prior(gaussians, hits)
            last_hits, hits = hits, np.zeros(len(gaussians))

    def _neighbourhoods(self, start: Gaussians) -> Neighbourhoods | None:
        return Neighbourhoods(start, self.parameters.prior) if self.parameters.prior else None

    def _within_budget(self, start: Gaussians) -> Gaussians:
        """Merge elements of the start until it is within the budget; one that is refined already stays as it is."""
        is_kept = start.law != "permeability" or self.log.from_one_place
        budget = self.parameters.budget or (len(start) if is_kept else ceil(len(start) / 2))
        if len(start) <= budget:
            return start
        watch = self.log.start("counting hits of the start")
        sums = gather_sums(start, self.log.training, self.rays, watch)
        return merge(start, sums.hits, budget)[0]

    def _adapt(self, start: Gaussians) -> Gaussians:
        """Give the start the law and the limits asked for."""
        own = self.parameters
        if own.law == "permeability" and start.law != "permeability":
            raise InputError("start", f"its elements stop beams by {start.law}; set law={start.law} too")
        covariance_m2 = floor_covariance(start.covariance_m2, own.min_sigma_m)
        adapted = replace(start, min_sigma_m=own.min_sigma_m, covariance_m2=covariance_m2)
        if start.law != "permeability":
            return adapted
        adapted = replace(adapted, tau=own.tau)
        return adapted if own.law == "permeability" else convert_law(adapted, own.law)


def _share(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of an element's returns in an epoch that one sweep has."""
    return part / np.maximum(np.maximum(part, whole), 1e-9)
