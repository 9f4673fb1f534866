# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 Fig. 22 and §6.5: how the size of the elements changes the distance between simulated and real clouds:
the side of the voxels, and N_p, the number of points from which the top-down model splits a cluster."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.metrics import compare
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, record
from hedgerow.reproduce.tables import markdown_table


@dataclass(frozen=True)
class Axis:
    """A parameter of a model, and the values to try."""

    model: str
    parameter: str
    label: str
    values: tuple[float, ...]


AXES = (
    Axis("voxel", "side_m", "side of the voxels [m]", (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)),
    Axis("topdown", "split_points", "points from which a cluster is split", (15, 30, 60, 120, 240, 480, 960)),
)


@dataclass(frozen=True)
class SizeStudy:
    """Distances by the value of a parameter."""

    axis: Axis
    sweep_cm: tuple[float, ...]
    cloud_cm: tuple[float, ...]
    n_elements: tuple[int, ...]

    def to_markdown(self) -> str:
        """Return a Markdown table."""
        rows = zip(self.axis.values, self.sweep_cm, self.cloud_cm, self.n_elements, strict=True)
        return markdown_table(
            (self.axis.label, "sweep to sweep [cm]", "cloud to cloud [cm]", "Gaussians"),
            [(f"{value:g}", f"{a:.2f}", f"{b:.2f}", f"{n:,}") for value, a, b, n in rows],
        )


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Learn worlds of several sizes on the off-road site, compare each, draw the curves; `size` is sweeps."""
    train, test = record(OFFROAD, size or 24, seed)
    studies = [study_axis(axis, train, test, seed, say) for axis in AXES]
    picture = folder / "voxel-size.png"
    _draw(studies, picture)
    return Outcome(text="\n\n".join(study.to_markdown() for study in studies), pictures=(picture,))


def study_axis(axis: Axis, train: Log, test: Log, seed: int, say: Print = print) -> SizeStudy:
    """Learn a world for each value of a parameter, and compare it."""
    sweep_cm: list[float] = []
    cloud_cm: list[float] = []
    n_elements: list[int] = []
    for value in axis.values:
        parameters: dict[str, Any] = {axis.parameter: value}
        world = learn(train, axis.model, **parameters)
        scores = compare(test, world, seed=seed)
        sweep_cm.append(100 * (scores["sweep_distance_m"] or 0.0))
        cloud_cm.append(100 * (scores["cloud_distance_m"] or 0.0))
        n_elements.append(world.size().elements)
        say(f"{axis.parameter} {value:g}: sweep to sweep {sweep_cm[-1]:.2f} cm, cloud to cloud {cloud_cm[-1]:.2f} cm")
    return SizeStudy(axis, tuple(sweep_cm), tuple(cloud_cm), tuple(n_elements))


def _draw(studies: list[SizeStudy], path: Path) -> None:
    figure = new_figure(10, 4.2)
    for panel, study in zip(figure.subplots(1, len(studies)), studies, strict=True):
        axes: Any = panel
        axes.plot(study.axis.values, study.sweep_cm, "o-", label="sweep to sweep")
        axes.plot(study.axis.values, study.cloud_cm, "s--", label="cloud to cloud")
        axes.set(xlabel=study.axis.label, ylabel="distance [cm]", title=f"{study.axis.model}, off-road")
        if study.axis.parameter == "split_points":
            axes.set_xscale("log", base=2)
            axes.set_xticks(study.axis.values, [f"{value:g}" for value in study.axis.values])
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend()
    save_figure(figure, path)
