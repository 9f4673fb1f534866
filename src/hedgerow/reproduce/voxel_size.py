# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 Fig. 22: how the side of the voxels changes the distance between simulated and real clouds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.metrics import compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, record

VOXEL_SIDES_M = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


@dataclass(frozen=True)
class SizeStudy:
    """Distances by voxel side."""

    side_m: tuple[float, ...]
    sweep_cm: tuple[float, ...]
    cloud_cm: tuple[float, ...]
    n_elements: tuple[int, ...]

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        head = "| voxel side [m] | sweep to sweep [cm] | cloud to cloud [cm] | Gaussians |\n| --- | --- | --- | --- |"
        rows = zip(self.side_m, self.sweep_cm, self.cloud_cm, self.n_elements, strict=True)
        return "\n".join([head, *[f"| {s:g} | {a:.2f} | {b:.2f} | {n:,} |" for s, a, b, n in rows]])


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Learn voxel worlds of several sides on the off-road site, compare each, draw the curves; `size` is sweeps."""
    train, test = record(OFFROAD, size or 24, seed)
    sweep_cm: list[float] = []
    cloud_cm: list[float] = []
    n_elements: list[int] = []
    for side_m in VOXEL_SIDES_M:
        world = learn(train, "voxel", side_m=side_m)
        scores = compare(test, world, seed=seed)
        sweep_cm.append(100 * (scores["sweep_distance_m"] or 0.0))
        cloud_cm.append(100 * (scores["cloud_distance_m"] or 0.0))
        n_elements.append(world.size().elements)
        say(f"{side_m:g} m: sweep to sweep {sweep_cm[-1]:.2f} cm, cloud to cloud {cloud_cm[-1]:.2f} cm")
    study = SizeStudy(VOXEL_SIDES_M, tuple(sweep_cm), tuple(cloud_cm), tuple(n_elements))
    picture = folder / "voxel-size.png"
    _draw(study, picture)
    return Outcome(text=study.to_markdown(), pictures=(picture,))


def _draw(study: SizeStudy, path: Path) -> None:
    figure = new_figure(7, 4.5)
    axes: Any = figure.subplots()
    axes.plot(study.side_m, study.sweep_cm, "o-", label="sweep to sweep")
    axes.plot(study.side_m, study.cloud_cm, "s--", label="cloud to cloud")
    axes.set(
        xlabel="side of the voxels [m]", ylabel="distance [cm]", title="Voxel world, off-road (Browning 2012 Fig. 22)"
    )
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    save_figure(figure, path)
