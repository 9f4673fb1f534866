# SPDX-License-Identifier: Apache-2.0
"""Novel views of KITTI-360, by the protocol of LiDAR4D 2024, which LiDAR-RT 2025 and GS-LiDAR 2025 repeat.

Of drive 0000, four sequences of 64 frames in which nothing moves (every 13th is judged), and six of 51 in which cars do
(every 10th). The others are learned from. Images have 66 x 1030 pixels (panorama.py), frames one pose each; one that
has none takes the last before it. Clouds are rebuilt from pixels; scores are those of metrics/novel_view.py over all of
them, averaged over the frames of all sequences of a kind. Answers are medians, masked by the predicted drop (p > 0.5),
or by the true one. LPIPS is left out: no package carries its network (lpips has the last layers alone).

How worlds learn from frames and answer as images: frames.py. The same table comes out on every run.

`data` is the folder of KITTI-360 (io/kitti360.py). Sequences that are not there are left out. With `size`, sequences
are cut to so many frames.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from time import perf_counter

import numpy as np

from hedgerow.errors import FileError, InputError, shown
from hedgerow.frames import Pose
from hedgerow.io.kitti360 import Kitti360Drive
from hedgerow.metrics.novel_view import View, score_view
from hedgerow.models import learn
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.extrapolated_views import parse_models
from hedgerow.reproduce.novel_views.frames import Frame, Lasers, training_log
from hedgerow.reproduce.novel_views.panorama import Panorama, beams_from
from hedgerow.reproduce.novel_views.pictures import draw_images
from hedgerow.reproduce.novel_views.published import LIDAR4D, LIDAR_NERF, score_table

DRIVE = "2013_05_28_drive_0000_sync"
MASKS = ("predicted", "true")


@dataclass(frozen=True)
class Passage:
    """One sequence of the benchmark."""

    kind: str
    start: int
    n_frames: int
    step: int

    @property
    def frames(self) -> range:
        """All frames."""
        return range(self.start, self.start + self.n_frames)

    @property
    def judged(self) -> list[int]:
        """Every `step`-th frame, without the first and the last."""
        return list(range(self.start + self.step, self.start + self.n_frames - 1, self.step))


PASSAGES = (
    *(Passage("static", start, 64, 13) for start in (1538, 1728, 1908, 3353)),
    *(Passage("dynamic", start, 51, 10) for start in (2350, 4950, 8120, 10200, 10750, 11400)),
)
Found = dict[str, dict[str, list[float]]]
"""Scores of all judged frames, by model and by key."""


def run(
    folder: Path,
    size: int | None = None,
    seed: int = 1,
    say: Print = print,
    *,
    data: Path | None = None,
    models: str = "",
    mask: str = "predicted",
    grid: Panorama | None = None,
) -> Outcome:
    """Learn each sequence that is there with some models, and judge the frames that were left out."""
    if mask not in MASKS:
        raise InputError("--mask", f"there is no {shown(mask)}; there are {' and '.join(MASKS)}")
    benchmark = Benchmark(parse_models(models), grid or Panorama(), mask == "true", say)
    drive = Kitti360Drive.open(_drive_folder(data))
    passages = _passages(drive, size)
    pictures: list[Path] = []
    for passage in passages:
        frames = _frames(drive, passage, benchmark.grid)
        views = benchmark.judge(passage, frames)
        for what in ("ranges", "intensities"):
            pictures.append(folder / f"kitti360-nvs-{passage.start}-{what}.png")
            draw_images(pictures[-1], views, benchmark.grid.pixels, what)
    return Outcome(text=_text(benchmark, passages), pictures=tuple(pictures))


def _drive_folder(data: Path | None) -> Path:
    if data is None:
        raise FileError("--data: kitti360-nvs needs the folder of KITTI-360 (calibration, data_3d_raw, data_poses)")
    places = [data, data / "KITTI-360"]
    for place in places:
        if (place / "data_3d_raw" / DRIVE).is_dir():
            return place / "data_3d_raw" / DRIVE
    raise FileError(f"{data / 'data_3d_raw' / DRIVE}: no such folder; expected that of KITTI-360")


def _passages(drive: Kitti360Drive, size: int | None) -> list[Passage]:
    every = [each if size is None else replace(each, n_frames=min(size, each.n_frames)) for each in PASSAGES]
    there = [each for each in every if all(frame in drive.files for frame in each.frames)]
    if not there:
        starts = ", ".join(f"{each.start} to {each.frames[-1]}" for each in every)
        raise FileError(f"{drive.folder}: holds none of the sequences whole; looked for frames {starts}")
    short = next((each for each in there if not each.judged), None)
    if short is not None:
        raise InputError("--size", f"{short.n_frames} frames leave none to judge; {short.step + 2} or more do")
    return there


def _frames(drive: Kitti360Drive, passage: Passage, grid: Panorama) -> dict[int, Frame]:
    """Return the frames of a sequence, in a map whose origin is near its first pose."""
    origin_m = np.round(drive.last_pose(passage.start).position_m)
    frames: dict[int, Frame] = {}
    for number in passage.frames:
        pose = drive.last_pose(number)
        moved = Pose(pose.position_m - origin_m, pose.quaternion_xyzw)
        frames[number] = Frame.of(number, moved, drive.cloud(number), grid)
    return frames


@dataclass(eq=False)
class Benchmark:
    """How frames are judged, and what was found so far."""

    names: Sequence[str]
    """Of models."""
    grid: Panorama
    true_mask: bool
    say: Print
    found: dict[str, Found] = field(default_factory=dict[str, Found])
    """By kind of sequence."""

    def judge(self, passage: Passage, frames: Mapping[int, Frame]) -> dict[str, View]:
        """Learn a sequence with each model and score its judged frames; return views of the middle one, by name."""
        training = [frame for number, frame in frames.items() if number not in passage.judged]
        log = training_log(training, self.grid)
        self.say(f"{passage.kind} {passage.start}: {len(training)} frames, {len(log):,} beams")
        middle = passage.judged[len(passage.judged) // 2]
        views = {"real": frames[middle].view}
        for name in self.names:
            start_s = perf_counter()
            world = learn(log, name)
            self.say(f"  {name}: learned in {perf_counter() - start_s:.0f} s")
            lasers = Lasers.learn(training, world, self.grid)
            found = self.found.setdefault(passage.kind, {}).setdefault(name, {})
            for number in passage.judged:
                view = self.answer(frames[number], *lasers.view(world, frames[number].pose))
                beams = beams_from(frames[number].pose, self.grid.middles)
                for key, value in score_view(beams, frames[number].view, view, self.grid.pixels).items():
                    found.setdefault(key, []).append(value)
                if number == middle:
                    views[name] = view
        return views

    def answer(self, frame: Frame, masked: View, whole: View) -> View:
        """Return the answer as it is judged: masked by the predicted drop, or by the true one."""
        if not self.true_mask:
            return masked
        return replace(whole, range_m=np.where(np.isfinite(frame.image.range_m), whole.range_m, np.inf))


def _text(benchmark: Benchmark, passages: Sequence[Passage]) -> str:
    parts: list[str] = []
    for kind, by_model in benchmark.found.items():
        those = [each for each in passages if each.kind == kind]
        n_judged = sum(len(each.judged) for each in those)
        ours = {name: {key: fmean(values) for key, values in scores.items()} for name, scores in by_model.items()}
        columns = ours | {"LiDAR4D": LIDAR4D[kind], "LiDAR-NeRF": LIDAR_NERF[kind]}
        starts = ", ".join(str(each.start) for each in those)
        parts.append(f"KITTI-360, {kind} sequences {starts}: {n_judged} frames judged.\n\n{score_table(columns)}")
    mask = "the true drop" if benchmark.true_mask else "the predicted drop (p > 0.5)"
    parts.append(
        f"Answers are medians, masked by {mask}. LiDAR4D and LiDAR-NeRF: figures of LiDAR4D's repository, over all "
        "sequences of the kind. LPIPS is not computed. Return F1 is what LiDAR4D's code calls F1 of ray drop."
    )
    missing = [each for each in PASSAGES if each.start not in {passage.start for passage in passages}]
    if missing:
        parts.append(f"Not there: sequences {', '.join(str(each.start) for each in missing)}.")
    return "\n\n".join(parts)
