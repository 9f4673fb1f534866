# SPDX-License-Identifier: Apache-2.0
"""Browning 2012 Table 10 and Fig. 19: which share of the beams is a surface, which a volume, which did not return.

The scenes trail and street play reality (recording.py). Each return is classified as the hybrid model does it; the
labels of the scene say what it truly was. So three rows stand beside each other: the paper's, ours, and the truth.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.base.labels import LABELS, with_finer
from hedgerow.log import Log
from hedgerow.models.steps.classifier import classify
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.mobile import OFFROAD, URBAN, MobileSite
from hedgerow.reproduce.recording import SceneDrive

PAPER_PERCENT = {"off-road": (11.1, 30.4, 58.5), "urban": (2.1, 64.0, 33.9)}
"""Beams without a return, on surfaces, on volumes."""
SITES = {"off-road": OFFROAD, "urban": URBAN}
VOLUME_LABELS = (70,)
BROWN, GREEN = "#8c564b", "#4daf4a"
_NAMES = {label.number: name for name, label in reversed(LABELS.items())}
_HALF_M = 30.0


@dataclass(frozen=True, eq=False)
class Classified:
    """The beams of a drive, and what their returns were called."""

    position_m: NDArray[np.float64]
    """(N, 3) of the returns, map frame."""
    label: NDArray[np.uint16]
    """(N,) true labels."""
    is_volume: NDArray[np.bool_]
    """(N,) what they were called."""
    n_beams: int

    @property
    def is_truly_volume(self) -> NDArray[np.bool_]:
        """(N,) whether they are on vegetation."""
        return np.isin(self.label, sorted(with_finer(VOLUME_LABELS)))

    def percent(self, is_volume: NDArray[np.bool_]) -> tuple[float, float, float]:
        """Return the shares of beams without a return, on surfaces and on volumes."""
        n_volume = int(is_volume.sum())
        counts = (self.n_beams - len(is_volume), len(is_volume) - n_volume, n_volume)
        missing, surface, volume = (100 * count / self.n_beams for count in counts)
        return missing, surface, volume

    @property
    def recalls(self) -> tuple[float, float]:
        """Shares of the true volume called a volume, and of the true surface called a surface."""
        true = self.is_truly_volume
        return float(self.is_volume[true].mean()), float((~self.is_volume[~true]).mean())


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Record a drive of `size` sweeps through each scene, classify its returns and count."""
    found: dict[str, Classified] = {}
    for name, site in SITES.items():
        found[name] = classified_drive(site, size or 24, seed)
        volume, surface = found[name].recalls
        say(f"{name}: {found[name].n_beams:,} beams; recall of volumes {volume:.3f}, of surfaces {surface:.3f}")
    picture = folder / "class-shares.png"
    _draw(found, picture)
    return Outcome(text=f"{_shares_text(found)}\n\n{_labels_text(found)}", pictures=(picture,))


def classified_drive(site: MobileSite, n_sweeps: int, seed: int) -> Classified:
    """Record the first drive of a site and classify all its returns, with the shipped classifier."""
    return classify_log(SceneDrive.open(site.scene, site.span_s).record("first", n_sweeps, seed))


def classify_log(log: Log) -> Classified:
    """Classify the first returns of a labelled log."""
    assert log.returns.label is not None  # scenes label all they return
    hit = np.isfinite(log.returns.first_m)
    along_m = log.returns.first_m[hit].astype(np.float64)[:, None] * log.beams.direction[hit]
    position_m = log.beams.origin_m[hit] + along_m
    label = log.returns.label if log.returns.label.ndim == 1 else log.returns.label[:, 0]
    return Classified(position_m, label[hit], classify(position_m), len(log))


def _shares_text(found: dict[str, Classified]) -> str:
    lines = [
        "**Browning 2012 Table 10, share of the beams [%]**",
        "",
        "| site | | no return | surface | volume | recall of volumes | recall of surfaces |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, each in found.items():
        volume, surface = each.recalls
        rows = {
            "paper": (*_percents(PAPER_PERCENT[name]), "-", "-"),
            "ours": (*_percents(each.percent(each.is_volume)), f"{volume:.3f}", f"{surface:.3f}"),
            "labels of the scene": (*_percents(each.percent(each.is_truly_volume)), "-", "-"),
        }
        lines += [f"| {name} | {whose} | {' | '.join(cells)} |" for whose, cells in rows.items()]
    words = (
        "The last row of each site is what a classifier without error would give: how far ours is from it is the "
        "classifier's, how far it is from the paper's is the place's, which is another one."
    )
    return "\n".join([*lines, "", words])


def _percents(shares: tuple[float, ...]) -> list[str]:
    return [f"{share:.1f}" for share in shares]


def _labels_text(found: dict[str, Classified]) -> str:
    lines = [
        "**What is called a volume, by true label (those with at least 0.5 % of the returns)**",
        "",
        "| site | label | share of the returns [%] | called a volume [%] |",
        "| --- | --- | --- | --- |",
    ]
    for name, each in found.items():
        labels, counts = np.unique(each.label, return_counts=True)
        for label, count in sorted(zip(labels.tolist(), counts.tolist(), strict=True), key=lambda pair: -pair[1]):
            if count >= 0.005 * len(each.label):
                called = each.is_volume[each.label == label].mean()
                share = 100 * count / len(each.label)
                lines.append(f"| {name} | {_NAMES.get(label, label)} ({label}) | {share:.1f} | {100 * called:.1f} |")
    return "\n".join(lines)


def _draw(found: dict[str, Classified], path: Path) -> None:
    """Draw both sites from above, as they are and as they were called; colours as in Browning 2012 Fig. 19."""
    figure = new_figure(10, 10)
    panels: Any = figure.subplots(len(found), 2, squeeze=False)
    for row, (name, each) in zip(panels, found.items(), strict=True):
        centre = np.median(each.position_m, axis=0)
        near = np.flatnonzero((np.abs(each.position_m - centre)[:, :2] < _HALF_M).all(axis=1))
        near = near[np.argsort(each.position_m[near, 2], kind="stable")]  # what is high lies on top
        x, y = (each.position_m[near, axis] - centre[axis] for axis in (0, 1))
        for axes, title, is_volume in zip(
            row, ("by the labels", "by the classifier"), (each.is_truly_volume, each.is_volume), strict=True
        ):
            axes.scatter(x, y, c=np.where(is_volume[near], GREEN, BROWN), s=0.4, linewidths=0, rasterized=True)
            axes.set(title=f"{name}, {title}", aspect="equal", xlim=(-_HALF_M, _HALF_M), ylim=(-_HALF_M, _HALF_M))
            axes.set(xlabel="x [m]", ylabel="y [m]")
    figure.suptitle("Surface (brown) and volume (green), from above")
    save_figure(figure, path)
