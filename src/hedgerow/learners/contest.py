# SPDX-License-Identifier: Apache-2.0
"""Surface or volume, decided by simulation quality: whichever predicts held-out beams better (ours; MODELS §3).

000 ends by asking for this in place of its hand-made classifier. Triangles win a cell if they predict the returns
measured in it clearly better than Gaussians do. What they win they replace, element by element: a Gaussian stays if
its returns cannot be those of a triangle, so plants stand on the ground of the same cell, and ground that triangles
miss stays Gaussians. The whole is judged again; if it is no better, the Gaussians stay as they were.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hedgerow.learners.evidence import Evidence, Gains, cells_of
from hedgerow.learners.passes import Meter
from hedgerow.learners.quality import QualityCounter
from hedgerow.learners.ray_sums import RayCounter, RayModel, RaySums, Tables
from hedgerow.learners.swap import Swap, triangle_cells
from hedgerow.learners.verdict import QualityWeights, Verdict
from hedgerow.log import Log
from hedgerow.world.elements import Gaussians, Triangles

Logs = Callable[[], Iterable[Log]]
Gain = Callable[[Log], NDArray[np.float64]]

MAX_LOST = 0.002
"""Share of hits, or of misses, that surfaces may lose for a better likelihood."""
MIN_GAIN_NAT = 0.002
"""Held-out cost that surfaces must save: a world of two kinds of elements is 3 % slower to fire."""
_CLEAR = 2.0  # standard errors
_MIN_SWEEPS = 3  # fewer are no evidence
_FAINT = 0.05  # largest optical depth of a Gaussian that lets triangles speak first
_KEPT = 0.5  # share of its returns that a Gaussian must keep beside triangles
_PARAMETERS = 10  # of a Gaussian, and of a triangle that beams can pass
_MAX_PERMEABILITY = 0.5  # what lets more pass is no surface, as in the solid surface world
_ROUNDS = 4


def contested(
    gaussians: Gaussians,
    triangles: Triangles,
    parts: Logs,
    judges: Logs,
    model: RayModel,
    *,
    budget_parameters: int,
    cell_m: float = 1.0,
    weights: QualityWeights | None = None,
    meter: Meter = lambda stage: None,
) -> Tables:
    """Put triangles in the place of Gaussians where they predict held-out beams better.

    Args:
        gaussians: a world that stands on its own.
        triangles: another one of the same site, with range noise and permeabilities.
        parts: what both were learned from, in partitions; its returns are evidence too.
        judges: held-out sweeps, in partitions; no cell becomes surface against their evidence.
        model: range limits and outliers.
        budget_parameters: most numbers in the result, counted as `LearnedWorld.size` does; if the Gaussians alone have
            more, so may the result, but not more than they.
        cell_m: side of the cubes that are won or lost as a whole [m].
        weights: what a bad simulation costs.
        meter: gives each stage its progress meter.

    Returns:
        Both tables, or the Gaussians alone if surfaces do not make the held-out likelihood better and save 0.002 nat of
        the cost, or lose more than 0.2 % of the hits or of the misses.
    """
    if len(gaussians) == 0 or len(triangles) == 0:
        return (gaussians,)
    contest = _Contest(
        gaussians, triangles, parts, judges, model, weights or QualityWeights(), budget_parameters, cell_m, meter
    )
    return contest.result()


class _Contest:
    """One contest between two worlds."""

    def __init__(
        self,
        gaussians: Gaussians,
        triangles: Triangles,
        parts: Logs,
        judges: Logs,
        model: RayModel,
        weights: QualityWeights,
        budget: int,
        cell_m: float,
        meter: Meter,
    ) -> None:
        self.gaussians, self.parts, self.judges, self.model = gaussians, parts, judges, model
        self.weights, self.budget, self.cell_m, self.meter = weights, budget, cell_m, meter
        self.triangles = self._solid(triangles)  # may be none; then no cell has any
        self.owners = triangle_cells(self.triangles, cell_m)

    def result(self) -> Tables:
        freed = self._freed()
        swap = Swap(self.gaussians, self.triangles, freed, self.model, self.cell_m)
        chosen = np.zeros(0, dtype=np.int64)
        for number in range(1, _ROUNDS + 1):  # next to surface a cell may fare better as surface too
            gains = self._gains(partial(swap.gains, chosen=chosen), f"trying surfaces, round {number} of {_ROUNDS}")
            before, chosen = chosen, self._affordable(gains, freed)
            if np.array_equal(before, chosen):
                break
        if len(chosen) == 0:
            return (self.gaussians,)
        both = self._joined(chosen, freed)
        return both if self._better(both) else (self.gaussians,)

    def _gains(self, gain: Gain, stage: str) -> Gains:
        """What cells clearly gain as surface without a loss of held-out likelihood.

        Training sweeps have a say too: held-out ones are few, and errors of their poses favour now one world and now
        the other. The Gaussians were fitted to the training returns more closely than any surface, so where they lose
        all the same, the surface is better.
        """

        def total(logs: Logs) -> Evidence:
            found, meter, done = Evidence.none(), self.meter(stage), 0
            for log in logs():
                found += Evidence.of(log, gain, self.cell_m)
                done += len(log)
                if meter:
                    meter(done)
            return found

        held = total(self.judges)
        lost = held.by_cell()
        gains = (held + total(self.parts)).by_cell()
        clear = (gains.gain > _CLEAR * gains.error) & (gains.n_sweeps >= _MIN_SWEEPS)
        return gains[clear & ~np.isin(gains.cell, lost.cell[lost.gain <= 0])]

    def _sums(self, tables: Tables, stage: str) -> RaySums:
        counter, meter, done = RayCounter(tables, self.model), self.meter(stage), 0
        sums = RaySums.zero(sum(map(len, tables)))
        for log in self.parts():
            sums += counter.sums(log)
            done += len(log)
            if meter:
                meter(done)
        return sums

    def _solid(self, triangles: Triangles) -> Triangles:
        """The triangles that stop at least half of the beams: the others are skins of plants."""
        sums = self._sums((_faint(self.gaussians), triangles), "looking for surfaces")
        share = _permeability(triangles, sums)
        return replace(triangles, permeability=share)[share <= _MAX_PERMEABILITY]

    def _freed(self) -> NDArray[np.bool_]:
        """Mask of the Gaussians that surfaces could replace: triangles answer for most of what they answered for.

        Next to triangles the Gaussians are all but transparent, so that they keep only returns that no triangle
        explains.
        """
        before = self._sums((self.gaussians,), "asking who answers").hits
        beside = self._sums((_faint(self.gaussians), self.triangles), "asking who answers beside surfaces").hits
        return beside[: len(before)] <= _KEPT * before

    def _affordable(self, gains: Gains, freed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The cells to become surface: first those that save parameters, then the best bargains while they last."""
        cells = gains.cell
        triangles = self._members(cells)
        left = _number_in(cells, cells_of(self.gaussians.mean_m[freed], self.cell_m))
        came = np.array([len(each) for each in triangles], dtype=np.int64)
        price = _PARAMETERS * (came - left)
        bargain = np.where(price <= 0, np.inf, gains.gain / np.maximum(price, 1))
        room = max(self.budget - self.gaussians.n_parameters(), 0)
        taken = np.zeros(len(self.triangles), dtype=np.bool_)
        chosen = np.zeros(len(cells), dtype=np.bool_)
        for k in np.lexsort((cells, -bargain)):
            paid = _PARAMETERS * (int(np.count_nonzero(~taken[triangles[k]])) - int(left[k]))
            if came[k] > 0 and paid <= min(room, gains.gain[k]):  # Akaike: a parameter must earn a nat
                room -= paid
                taken[triangles[k]] = chosen[k] = True
        return cells[chosen]

    def _members(self, cells: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The triangles of each of some cells, which rise."""
        inside = np.isin(self.owners, cells)
        pairs = np.unique(np.stack([self.owners[inside], np.nonzero(inside)[0]], axis=1), axis=0)
        return np.split(pairs[:, 1], np.searchsorted(pairs[:, 0], cells[1:])) if len(cells) else []

    def _joined(self, cells: NDArray[np.int64], freed: NDArray[np.bool_]) -> Tables:
        """Triangles in some cells with the permeability that all beams together speak for, and the other Gaussians."""
        gone = freed & np.isin(cells_of(self.gaussians.mean_m, self.cell_m), cells)
        gaussians = self.gaussians[~gone]
        triangles = self.triangles[np.isin(self.owners, cells).any(axis=1)]
        sums = self._sums((gaussians, triangles), "setting what surfaces let pass")
        return gaussians, replace(triangles, permeability=_permeability(triangles, sums))

    def _better(self, tables: Tables) -> bool:
        new, old = (QualityCounter(each, self.model, self.weights) for each in (tables, (self.gaussians,)))
        after, before, meter, done = Verdict(), Verdict(), self.meter("judging surfaces"), 0
        for log in self.judges():
            after += new.slopes(log)[1]
            before += old.slopes(log)[1]
            done += len(log)
            if meter:
                meter(done)
        lost = max(before.hits_found - after.hits_found, before.misses_found - after.misses_found)
        saved = before.cost(self.weights) - after.cost(self.weights)
        return after.nll < before.nll and saved >= MIN_GAIN_NAT and lost <= MAX_LOST


def _faint(gaussians: Gaussians) -> Gaussians:
    """The Gaussians, all but transparent."""
    if gaussians.law == "permeability":
        return replace(gaussians, stop=np.maximum(gaussians.stop, np.float32(np.exp(-_FAINT))))
    largest_m = np.sqrt(np.linalg.eigvalsh(gaussians.covariance_m2)[:, 2])
    per = np.maximum(largest_m, gaussians.min_sigma_m) if gaussians.law == "extinction" else np.ones(len(gaussians))
    faint = _FAINT / per
    return replace(gaussians, stop=np.minimum(gaussians.stop, faint).astype(np.float32))


def _permeability(triangles: Triangles, sums: RaySums) -> NDArray[np.float32]:
    """What the last elements that sums are of, triangles, let pass; as before where no beam came."""
    first = len(sums.table) - len(triangles)
    hits, passes = sums.hits[first:], sums.passes[first:]
    met = hits + passes
    share = np.divide(passes, met, out=triangles.permeability.astype(np.float64), where=met > 0)
    return np.clip(share, 0, 1).astype(np.float32)


def _number_in(cells: NDArray[np.int64], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many members each of some cells, which rise, has."""
    members = np.sort(members)
    return np.searchsorted(members, cells, side="right") - np.searchsorted(members, cells, side="left")
