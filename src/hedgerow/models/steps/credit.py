# SPDX-License-Identifier: Apache-2.0
"""Permeability by sharing returns: each return is credited once, to the elements that may have stopped the beam.

Where ellipsoids overlap, counting (steps/permeability.py) takes a return for a hit of every one that it lies in, and
what overlaps comes out more solid than it is. Here each return is shared out in proportion to the probability that an
element stopped the beam there, given the permeabilities so far, and an element was passed as far as later ones, or
none, did. A few rounds settle it: expectation maximisation of the permeabilities alone, by the same kernel as the
rounds of the refined model.

Surfaces keep what was counted: triangles, and Gaussians that are flat. A surface has one layer, and stops beams or not
as a whole. Elements of this model stop beams independently of each other, so that flat ones that overlap could share
returns only by leaking. They take their part of the returns all the same.

Equations: docs/models.md §6.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hedgerow import _core
from hedgerow.base.parameters import Share
from hedgerow.models.steps.kept import another_model
from hedgerow.models.steps.log_chunks import LearningTask, LogSummary
from hedgerow.models.steps.permeability import CountParameters, Table, Tables, count_permeability, scene_of
from hedgerow.models.steps.touched_rows import TouchedRows
from hedgerow.parallel.engine import Shared
from hedgerow.parallel.log_parts import LogPart, map_log, share_with
from hedgerow.world.elements import Gaussians

_OUTLIER_SHARE = 0.001
"""Share of beams that no element has to explain, as in the refined model."""
_MIN_SIGMA_M = 0.001
"""Narrower elements count as this wide, as in the likelihood of a world."""
_NO_LIMIT_M = 1e5
"""Stands for the range limit of a log that has none, in which every beam returned."""


Credit = Literal["share", "all"]
CreditRounds = Annotated[int, Field(ge=1, le=100)]
DEFAULT_CREDIT: Credit = "all"
"""What was measured is in docs/decisions.md."""


class CreditParameters(CountParameters):
    """Parameters of the permeability of Gaussians."""

    credit: Credit = DEFAULT_CREDIT
    """What a return within several ellipsoids is credited to. share: these elements, in proportion to the probability
    that they stopped the beam; all: each of them, as in Browning 2012, which makes elements that overlap more solid."""
    credit_rounds: CreditRounds = 4
    """How often returns are shared out anew; the log is read once for each. Without effect where credit is all."""
    credit_flat: Share = 0.5
    """Gaussians whose smallest standard deviation is less than this share of the next are surfaces, and keep what was
    counted; 0: none is. Without effect where credit is all."""


def learn_permeability(
    task: LearningTask,
    tables: tuple[Table, ...],
    parameters: CreditParameters,
    *,
    boxes_m: NDArray[np.float64] | None = None,
    advice: Callable[[], str] = another_model,
) -> tuple[Table, ...]:
    """Return the tables with permeabilities learned from the log, without the elements that `keep_unhit` drops.

    Raises:
        InputError: no return lies on an element; the advice says what to do.
    """
    counted = count_permeability(task, tables, parameters, boxes_m=boxes_m, advice=advice)
    if parameters.credit == "all":
        return counted
    return share_returns(
        task,
        counted,
        rounds=parameters.credit_rounds,
        flat=parameters.credit_flat,
        prior_hits=parameters.prior_hits,
        prior_passes=parameters.prior_passes,
    )


def share_returns(
    task: LearningTask,
    tables: tuple[Table, ...],
    *,
    rounds: int,
    flat: float = 0.5,
    prior_hits: float = 0.0,
    prior_passes: float = 0.0,
) -> tuple[Table, ...]:
    """Return the tables with permeabilities of the Gaussians by sharing every return of the log out.

    Args:
        task: the log, read once in each round.
        tables: elements with counted permeabilities, where it starts from.
        rounds: how often returns are shared out anew; the log is read once for each.
        flat: Gaussians whose smallest standard deviation is less than this share of the next stay as they are.
        prior_hits: added to the hits of every Gaussian.
        prior_passes: added to its passes.
    """
    for number in range(1, rounds + 1):
        sums = _gather(task, tables, f"sharing returns, round {number} of {rounds}")
        done: list[Table] = []
        first = 0
        for table in tables:
            own = sums[first : first + len(table)]
            first += len(table)
            if isinstance(table, Gaussians):
                table = _with_shares(table, own, flat, prior_hits, prior_passes)
            done.append(table)
        tables = tuple(done)
    return tables


def _with_shares(
    gaussians: Gaussians, sums: NDArray[np.int64], flat: float, prior_hits: float, prior_passes: float
) -> Gaussians:
    """Return Gaussians with the share of passes; flat ones, and those where no beam came, stay as they are."""
    hits, passes = (sums / _core.FIXED_POINT).T
    met = hits + passes
    variance_m2 = np.maximum(np.linalg.eigvalsh(gaussians.covariance_m2), gaussians.min_sigma_m**2)
    is_volume = variance_m2[:, 0] >= flat**2 * variance_m2[:, 1]
    share = np.divide(
        passes + prior_passes,
        met + prior_hits + prior_passes,
        out=gaussians.stop.astype(np.float64),
        where=is_volume & (met > 0),
    )
    return replace(gaussians, stop=share.astype(np.float32))


def _gather(task: LearningTask, tables: Tables, stage: str) -> NDArray[np.int64]:
    """Return (E, 2) hits and passes of all elements, in fixed point: whole numbers add up alike in any order."""
    work = _ShareOut(share_with(task.chunks, tables), *_limits_m(task.summary))
    sums = np.zeros((sum(len(table) for table in tables), 2), dtype=np.int64)
    for touched in map_log(task.chunks, work, task.start(stage)):
        touched.add_to(sums)
    return sums


def _limits_m(summary: LogSummary) -> tuple[float, float]:
    return summary.min_range_m, summary.max_range_m if isfinite(summary.max_range_m) else _NO_LIMIT_M


@dataclass(frozen=True, slots=True)
class _ShareOut:
    """Shares out the returns of one part of a log: hits and passes, the two columns of what it returns."""

    tables: Shared[Tables]
    min_range_m: float
    max_range_m: float

    def __call__(self, part: LogPart) -> TouchedRows:
        log, scene = part.read(), self.tables.built(scene_of)
        model = _core.RayModel(
            limits=_core.RangeLimits(min_m=self.min_range_m, max_m=self.max_range_m),
            min_sigma_m=_MIN_SIGMA_M,
            outlier_share=_OUTLIER_SHARE,
        )
        sums, _ = _core.ray_sums(
            scene.native,
            scene.beam_arrays(log.beams),
            range_m=np.ascontiguousarray(log.returns.first_m),
            model=model,
            threads=0,
            progress=None,
            stops_alone=True,
        )
        return TouchedRows.of(sums)
