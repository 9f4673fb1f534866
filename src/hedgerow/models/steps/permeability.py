# SPDX-License-Identifier: Apache-2.0
"""Permeability by counting: of the beams that met an element, the share that went on (Browning 2012 §3.3.2 and §3.3.3).

A beam without return passed everything on its way. Counts add up over chunks, so the log can be cut in any way. A
Gaussian that no beam ever hit is dropped: what was never seen to stop a beam is not there. A triangle without a hit
may lie between the beams, or behind what stopped them all; `keep_unhit` says what becomes of it.

Equations: docs/models.md §6.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.parameters import NotNegative, Parameters, Positive
from hedgerow.base.progress import Progress
from hedgerow.errors import InputError
from hedgerow.models.steps.kept import another_model, require_kept
from hedgerow.models.steps.log_chunks import LearningTask, LogChunks
from hedgerow.models.steps.touched_rows import TouchedRows
from hedgerow.parallel.engine import Shared
from hedgerow.parallel.log_parts import LogPart, map_log, share_with
from hedgerow.world.elements import Gaussians, Triangles
from hedgerow.world.scene import Scene

Tables = tuple[Gaussians | Triangles, ...]
Table = TypeVar("Table", bound=Gaussians | Triangles)
Unhit = Literal["none", "unmet", "all"]


class CountParameters(Parameters):
    """Parameters of counting permeability."""

    window_m: Positive = 0.5
    """A return within this distance of a triangle, along the beam, counts as a hit (the offset of Browning 2012, which
    found it "relatively insensitive")."""
    prior_hits: NotNegative = 0.0
    """Hits added to the count of every element. Tallavajhula 2018 Table 4.1: 0 for ellipsoids, 1 for triangles."""
    prior_passes: NotNegative = 0.0
    """Passes added to the count of every element. Tallavajhula 2018 Table 4.1: 1 for ellipsoids, 2 for triangles."""
    keep_unhit: Unhit = "unmet"
    """Which triangles stay though no beam hit them: none; unmet, those that no beam passed either (solid, unless the
    priors say otherwise); or all, as in Browning 2012 (those that were only passed have permeability 1). Gaussians
    without a hit never stay."""


def count_permeability(
    task: LearningTask,
    tables: tuple[Table, ...],
    parameters: CountParameters,
    *,
    boxes_m: NDArray[np.float64] | None = None,
    advice: Callable[[], str] = another_model,
) -> tuple[Table, ...]:
    """Return the tables with permeabilities counted over the log, without the elements that `keep_unhit` drops.

    Raises:
        InputError: no return lies on an element; the advice says what to do.
    """
    counts = count_passes(task, tables, parameters.window_m, boxes_m=boxes_m, advice=advice)
    return with_permeability(
        tables,
        counts,
        prior_hits=parameters.prior_hits,
        prior_passes=parameters.prior_passes,
        keep_unhit=parameters.keep_unhit,
    )


def count_passes(
    task: LearningTask,
    tables: Tables,
    window_m: float,
    *,
    boxes_m: NDArray[np.float64] | None = None,
    advice: Callable[[], str] = another_model,
) -> "Counts":
    """Count how often each element was hit and passed in the log, as a stage of learning.

    Raises:
        InputError: no return lies on an element; the advice says what to do. If few do, it is said as a warning.
    """
    counts = count(
        task.chunks,
        tables,
        max_range_m=task.summary.max_range_m,
        window_m=window_m,
        boxes_m=boxes_m,
        progress=task.start("counting hits and passes"),
    )
    n_hits = int(counts.hits.sum())
    # Gaussians come from the returns themselves: which are left out, their models know.
    if n_hits == 0 or any(isinstance(table, Triangles) for table in tables):
        require_kept(n_hits, task.summary.n_returns, advice)
    return counts


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """How often each element was hit and passed; adds up."""

    hits: NDArray[np.int64]
    passes: NDArray[np.int64]

    @classmethod
    def zero(cls, n_elements: int) -> Self:
        """Counts of nothing yet."""
        return cls(np.zeros(n_elements, dtype=np.int64), np.zeros(n_elements, dtype=np.int64))

    def __add__(self, other: Self) -> Self:
        """Add the counts of two chunks."""
        return type(self)(self.hits + other.hits, self.passes + other.passes)

    def permeability(self, prior_hits: float, prior_passes: float) -> NDArray[np.float32]:
        """Return passes / (hits + passes), with pseudo-counts added; 0 where nothing was counted."""
        hits, passes = self.hits + prior_hits, self.passes + prior_passes
        total = hits + passes
        share = np.divide(passes, total, out=np.zeros(len(total)), where=total > 0)
        return share.astype(np.float32)


def count(
    chunks: LogChunks,
    tables: Tables,
    *,
    max_range_m: float,
    window_m: float = 0.5,
    boxes_m: NDArray[np.float64] | None = None,
    progress: Progress | None = None,
) -> Counts:
    """Count hits and passes of all elements of the tables, numbered through in that order.

    Args:
        chunks: of the log.
        tables: elements; their own permeabilities do not matter.
        max_range_m: how far a missing return says that there is nothing [m].
        window_m: how near to a triangle a return must be to have hit it [m].
        boxes_m: (E, 6) of the elements; see `Scene.count`.
        progress: called with the number of beams done.
    """
    work = _Count(share_with(chunks, (tables, boxes_m)), max_range_m, window_m)
    hits_and_passes = np.zeros((sum(len(table) for table in tables), 2), dtype=np.int64)
    for touched in map_log(chunks, work, progress):
        touched.add_to(hits_and_passes)
    return Counts(hits_and_passes[:, 0], hits_and_passes[:, 1])


@dataclass(frozen=True, slots=True)
class _Count:
    """Counts hits and passes of one part of a log: the two columns of what it returns."""

    elements: Shared[tuple[Tables, NDArray[np.float64] | None]]
    """With their boxes."""
    max_range_m: float
    window_m: float

    def __call__(self, part: LogPart) -> TouchedRows:
        log, scene = part.read(), self.elements.built(_scene)
        range_m = np.ascontiguousarray(log.returns.first_m)
        hits, passes = scene.count(
            log.beams,
            range_m,
            max_range_m=self.max_range_m,
            window_m=self.window_m,
            boxes_m=self.elements.value[1],
        )
        return TouchedRows.of(np.stack([hits, passes], axis=1))


def _scene(elements: tuple[Tables, NDArray[np.float64] | None]) -> Scene:
    return scene_of(elements[0])


def scene_of(tables: Tables) -> Scene:
    """Build a scene of several tables, numbered through in that order; its frame sits near their middle."""
    places = [table.mean_m if isinstance(table, Gaussians) else table.corners_m[:, 0] for table in tables]
    everything = np.concatenate(places) if places else np.zeros((0, 3))
    scene = Scene(everything.mean(axis=0).round() if len(everything) else np.zeros(3))
    for table in tables:
        table.add_to(scene)
    return scene


def with_permeability(
    tables: tuple[Table, ...],
    counts: Counts,
    *,
    prior_hits: float = 0.0,
    prior_passes: float = 0.0,
    keep_unhit: Unhit = "none",
) -> tuple[Table, ...]:
    """Return the tables with the counted permeabilities, without the Gaussians that were never hit.

    Which triangles go is said by `keep_unhit`; see CountParameters.

    Raises:
        InputError: the priors are negative.
    """
    if prior_hits < 0 or prior_passes < 0:
        raise InputError("prior_hits, prior_passes", f"expected 0 or more, found {prior_hits}, {prior_passes}")
    share = counts.permeability(prior_hits, prior_passes)
    hit, unmet = counts.hits > 0, counts.hits + counts.passes == 0
    triangles_kept = {"none": hit, "unmet": hit | unmet, "all": np.ones_like(hit)}[keep_unhit]
    done: list[Table] = []
    first = 0
    for table in tables:
        rows = slice(first, first + len(table))
        first += len(table)
        if isinstance(table, Gaussians):
            done.append(replace(table, stop=share[rows])[hit[rows]])
        else:
            done.append(replace(table, permeability=share[rows])[triangles_kept[rows]])
    return tuple(done)


def drop_passed(
    triangles: Triangles, counts: Counts, max_share: float, *, prior_hits: float = 0.0, prior_passes: float = 0.0
) -> Triangles:
    """Return the triangles without those that more than a share of the beams that met them passed.

    What no beam met, because something stands before it, stays.
    """
    unmet = counts.hits + counts.passes == 0
    return triangles[unmet | (counts.permeability(prior_hits, prior_passes) <= max_share)]
