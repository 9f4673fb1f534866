# SPDX-License-Identifier: Apache-2.0
"""How well a site is parted into ground and plants, where everything is known, and on a forest plot with LAS classes.

Tallavajhula 2018 §4.3.1.3 parts and labels by hand, so there is no figure of his to compare with. Ours: a site of our
own (segmentation_site.py), an HDL-32E driven through it, and for every return the copy that made it. Labels are not
used. A plant counts if it has at least 200 returns; it is found if one object has more than half of the returns of both
together (intersection over union). It is split if two objects have a fifth of it each; objects are merged if two plants
have a fifth of one each.

With `--data DIR` the plot forest_plots/UAS_Clip.laz (LAS classes ground, low, medium, high vegetation) is scored too.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.arrays import Array
from hedgerow.compose.segment_picture import draw_segmentation
from hedgerow.compose.segmentation import RETURNS, Segmentation, segment
from hedgerow.errors import FileError
from hedgerow.io.formats import require_package
from hedgerow.io.source import translate_errors
from hedgerow.log import Log
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.segmentation_site import build_site, record
from hedgerow.reproduce.tables import markdown_table
from hedgerow.scenes.annotation import CLASSES, OTHER_CLASS

N_SWEEPS = 60
LEAST_RETURNS = 200
"""Of a plant that counts."""
_SHARE = 0.2
"""Of a plant or an object, from which it is split or merged."""
_PLOT = Path("forest_plots") / "UAS_Clip.laz"
_LAS = {2: "ground", 3: "low vegetation", 4: "medium vegetation", 5: "high vegetation"}


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, data: Path | None = None
) -> Outcome:
    """Part the known site, seen in `size` sweeps, and the forest plot if its folder is given."""
    if data is not None and not (data / _PLOT).is_file():
        raise FileError(f"{data}: segmentation wants the folder that holds {_PLOT}; give another --data, or none")
    site = build_site(seed)
    log = record(site, size or N_SWEEPS, seed)
    say(f"recorded {int(log.returns.hit.sum()):,} returns of a site of {len(site.class_name) - 1} objects")
    found = segment(log, use_labels=False)
    score = score_objects(found, site.objects_of(log), site.class_name)
    pictures = [folder / "segmentation.png"]
    draw_segmentation(pictures[0], found, log, "known site")
    parts = [score.to_markdown()]
    if data is None:
        parts.append("UAS_Clip was not scored: give the folder with the recordings, `--data DIR`.")
    else:
        parts.append(score_plot(data))
    return Outcome(text="\n\n".join(parts), pictures=tuple(pictures))


@dataclass(frozen=True, slots=True, eq=False)
class ObjectScore:
    """How objects that were found compare with those that are there."""

    ground_precision: float
    """Share of what is called ground that is; grass within it counts as neither."""
    ground_recall: float
    other_precision: float
    """Share of the returns of objects called other that are of walls, posts and vehicles."""
    other_recall: float
    class_name: NDArray[np.str_]
    """(T,) true class of each plant that counts; a patch has its class."""
    found: NDArray[np.str_]
    """(T,) class of the object that it was found as; empty if it was not found."""
    split: NDArray[np.bool_]
    """(T,) whether it was split."""
    n_merged: int
    """Objects that hold several plants."""
    n_objects: int
    """Plants that were found, patches as one."""

    @property
    def plants_found(self) -> float:
        """Share of the plants that were found."""
        return float(np.count_nonzero(self.found != "") / max(len(self.found), 1))

    @property
    def class_right(self) -> float:
        """Share of those found whose class is right."""
        right = np.count_nonzero(self.found == self.class_name)
        return float(right / max(np.count_nonzero(self.found != ""), 1))

    def to_markdown(self) -> str:
        """Return the tables."""
        rows = [
            ("ground, precision and recall", f"{self.ground_precision:.3f}, {self.ground_recall:.3f}"),
            ("walls, posts, vehicles: precision and recall", f"{self.other_precision:.3f}, {self.other_recall:.3f}"),
            ("plants found", f"{100 * self.plants_found:.0f} % of {len(self.found)}"),
            ("class right, of those found", f"{100 * self.class_right:.0f} %"),
            ("plants split", f"{100 * self.split.mean():.0f} %"),
            ("objects that hold several plants", f"{self.n_merged} of {self.n_objects}"),
        ]
        names = [name for name in CLASSES if name in self.class_name]
        confusion = [
            (
                name,
                str(int(np.sum(self.class_name == name))),
                *(str(int(np.sum((self.class_name == name) & (self.found == each)))) for each in (*CLASSES, "")),
            )
            for name in names
        ]
        head = ("true class", "plants", *CLASSES, "not found")
        return f"{markdown_table(('known site', 'ours'), rows)}\n\n{markdown_table(head, confusion)}"


def score_objects(found: Segmentation, truth: NDArray[np.int64], class_name: list[str]) -> ObjectScore:
    """Score a segmentation of a log.

    Args:
        found: the segmentation.
        truth: (M,) the object that made each return; 0 is the ground, -1 grass.
        class_name: what each object is; "NAME patch" for shrubs that run on.
    """
    owner, flat = found.object[RETURNS].astype(np.int64), found.is_ground[RETURNS]
    counted = truth >= 0
    is_ground = truth == 0
    ground = _precision_recall(flat[counted], is_ground[counted])
    kinds = np.array(["", *(each.class_name for each in found.objects)])
    names = np.array(class_name)
    other = _precision_recall(kinds[owner[counted]] == OTHER_CLASS, names[truth[counted]] == OTHER_CLASS)
    table = _overlap(truth, owner, len(class_name), len(kinds))
    n_true, n_found = table.sum(axis=1), table.sum(axis=0)
    plants = np.flatnonzero((n_true >= LEAST_RETURNS) & (names != OTHER_CLASS) & (np.arange(len(names)) > 0))
    inside = table[plants][:, 1:]
    union = n_true[plants][:, None] + n_found[None, 1:] - inside
    share = inside / np.maximum(union, 1)
    best = share.argmax(axis=1)
    is_found = share.max(axis=1) > 0.5
    split = (inside >= _SHARE * n_true[plants][:, None]).sum(axis=1) > 1
    several = (table[plants][:, 1:] >= _SHARE * np.maximum(n_found[1:], 1)).sum(axis=0)
    is_plant = np.array([each.class_name != OTHER_CLASS for each in found.objects])
    return ObjectScore(
        *ground,
        *other,
        np.array([name.removesuffix(" patch") for name in names[plants]]),
        np.where(is_found, kinds[1 + best], ""),
        split,
        int(((several > 1) & is_plant).sum()),
        int(is_plant.sum()),
    )


def _precision_recall(called: NDArray[np.bool_], is_so: NDArray[np.bool_]) -> tuple[float, float]:
    right = float((called & is_so).sum())
    return right / max(float(called.sum()), 1.0), right / max(float(is_so.sum()), 1.0)


def _overlap(truth: NDArray[np.int64], owner: NDArray[np.int64], n_true: int, n_found: int) -> NDArray[np.int64]:
    """Count the returns of each true object in each object that was found."""
    kept = truth >= 0
    pair = truth[kept] * n_found + owner[kept]
    return np.bincount(pair, minlength=n_true * n_found).reshape(n_true, n_found)


def score_plot(data: Path) -> str:
    """Score the forest plot: what becomes of the points of each LAS class.

    Raises:
        FileError: it is not there, or cannot be read.
    """
    points_m, code = _read_plot(data / _PLOT)
    found = segment(cloud_log(points_m))
    owner, flat = found.object[RETURNS], found.is_ground[RETURNS]
    known = np.isin(code, list(_LAS))
    precision, recall = _precision_recall(flat[known], code[known] == 2)
    height_m = found.ground.height_above(points_m)
    rows: list[tuple[str, ...]] = []
    for number, name in _LAS.items():
        mine = code == number
        called, inside = 100 * float(flat[mine].mean()), 100 * float((owner[mine] > 0).mean())
        middle = f"{np.median(height_m[mine]):.2f}"
        rows.append((name, f"{int(mine.sum()):,}", f"{called:.1f}", f"{inside:.1f}", middle))
    trees = [each for each in found.objects if each.class_name.endswith("tree")]
    text = f"UAS_Clip ({len(points_m):,} points): ground with precision {precision:.3f} and recall {recall:.3f}; "
    text += f"{len(trees)} trees of {np.mean([each.height_m for each in trees]):.1f} m on average. "
    text += f"Points that the file leaves unclassified ({int((code == 1).sum()):,}) do not count."
    head = ("LAS class", "points", "called ground [%]", "in objects [%]", "median height above ground [m]")
    return f"{text}\n\n{markdown_table(head, rows)}"


def cloud_log(points_m: Array) -> Log:
    """Make a log of points alone: each seen from a metre above."""
    n = len(points_m)
    return Log.from_arrays(
        origins=points_m + np.array([0.0, 0.0, 1.0]), directions=np.tile([0.0, 0.0, -1.0], (n, 1)), ranges=np.ones(n)
    )


def _read_plot(path: Path) -> tuple[Array, NDArray[np.int64]]:
    """Return points, moved to the middle of the plot, and their LAS classes."""
    laspy = require_package("laspy", "las")
    with translate_errors(path, "a LAZ file"):
        file = laspy.read(path)
        points_m = np.stack([np.asarray(getattr(file, axis), dtype=np.float64) for axis in "xyz"], axis=1)
        return points_m - np.rint(points_m.mean(axis=0)), np.asarray(file.classification, dtype=np.int64)
