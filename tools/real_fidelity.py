# SPDX-License-Identifier: Apache-2.0
"""Learn every model from one part of public recordings, compare it with the rest, and write the tables as Markdown.

    python tools/real_fidelity.py DATA [--only NAME ...] [--models MODEL ...] [--seed N] [--out TABLES.md]
        [--pictures FOLDER]

DATA holds a folder per dataset, with the load.py that tools/real_logs.py describes. docs/fidelity.md has the tables.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from real_logs import Choice, logs
from scipy.spatial import KDTree

import hedgerow as hr
from hedgerow.base.figure import save_figure
from hedgerow.metrics.scores import ScoreTable
from hedgerow.report.sweep_plots import range_images

MODELS = ("voxel", "topdown", "bottomup", "hybrid", "surface", "permeable-surface", "points", "refined")
SHOWN = (
    "bhattacharyya",
    "bhattacharyya_per_direction",
    "histogram_match_m",
    "hits_found",
    "misses_found",
    "f1",
    "beam_error_mean_m",
    "beam_error_median_m",
    "sweep_distance_m",
    "cloud_distance_m",
    "nll",
    "nll_binned",
    "floored",
    "parameters",
)
PICTURED = ("voxel", "hybrid", "refined")
NEXT_BEAM = "real beam beside"


@dataclass(frozen=True)
class Recording:
    """A public recording, and how it is cut into a part to learn from and a part to compare with."""

    title: str
    folder: str
    sensor: str
    train: Choice
    test: Choice
    recording: str = ""
    min_range_m: float = 0.0
    """What is nearer does not return, or was left out."""
    max_range_m: float = 80.0
    hidden_share: float = 1.0
    """See tools/real_logs.py."""
    from_one_place: bool = False
    """Whether the sensor was at the same place for what is learned and what is compared."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of compare."""


def single_sweep(sensor: str, source: str, recording: str) -> Recording:
    """Split the first sweep of a recording of ouster-sdk by columns."""
    return Recording(
        f"Ouster {sensor.upper()}, {source}, one sweep, every fourth column held out",
        "ouster_bsd",
        sensor,
        Choice("0:1", skip_every=4, by_column=True),
        Choice("0:1", only_every=4, by_column=True),
        recording=recording,
        from_one_place=True,
    )


RECORDINGS = {
    "kitti-0029": Recording(
        "KITTI raw, drive 2011_09_26_drive_0029, sweeps 0 to 31",
        "kitti_0029_start",
        "hdl-64e-s2",
        Choice("0:32", skip_every=4),
        Choice("0:32", only_every=4),
    ),
    "kitti-0005": Recording(
        "KITTI raw, drive 2011_09_26_drive_0005, sweeps 108 to 139",
        "kitti_0005",
        "hdl-64e-s2",
        Choice("108:140", skip_every=4),
        Choice("108:140", only_every=4),
    ),
    "kitti-0005-ahead": Recording(
        "KITTI raw, drive 2011_09_26_drive_0005, learned from sweeps 100 to 123, compared with 128 to 139",
        "kitti_0005",
        "hdl-64e-s2",
        Choice("100:124"),
        Choice("128:140:2"),
    ),
    "newer-college": Recording(
        "Newer College quad, first lap (sweeps 0 to 21) and second lap (22 to 49)",
        "newer_college_quad",
        "os1-64",
        Choice("0:22"),
        Choice("22:50"),
        min_range_m=1.0,
        hidden_share=0.1,
    ),
    "norlab-static": Recording(
        "Norlab RS-32, standing, even and odd sweeps",
        "norlab_rs32_static",
        "rs-lidar-32",
        Choice(skip_every=2),
        Choice(only_every=2),
        hidden_share=0.1,
        from_one_place=True,
        settings={"bearing_step_deg": 0.2, "range_step_m": 0.02, "static": True},
    ),
    "ouster-plaza": single_sweep("os1-128", "pose_delta_2_128.osf", "dual_OSx128_2048_plaza"),
    "ouster-street": single_sweep("os1-128", "OS-1-128_v2.3.0_1024x10_lb_n3.pcap", "OS1-128_1024_street_3sweeps"),
    "ouster-os0-dual": single_sweep("os0-128", "single_scan_016.osf", "dual_OSx128_1024_street"),
    "ouster-os0": single_sweep("os0-128", "OS-0-128-U1_v2.3.0_1024x10.pcap", "OS0-128_1024_street"),
    "ouster-os2": single_sweep("os2-128", "OS-2-128-U1_v2.3.0_1024x10.pcap", "OS2-128_1024_street"),
    "ouster-os1-32": single_sweep("os1-32", "OS-1-32-G_v2.1.1_1024x10.pcap", "OS1-32_1024_street"),
    "ouster-indoor": single_sweep("os0-32", "OS-0-32-U1_v2.2.0_1024x10.pcap", "dual_OS0-32_1024_indoor"),
}


def log_of(data: Path, recording: Recording, choice: Choice) -> hr.Log:
    """Read one part of a recording."""
    parts = logs(
        data / recording.folder,
        choice,
        min_range_m=recording.min_range_m,
        max_range_m=recording.max_range_m,
        sensor=recording.sensor,
        recording=recording.recording,
        hidden_share=recording.hidden_share,
    )
    return hr.Log.concatenate(list(parts))


def measure(data: Path, name: str, pictures: Path | None, models: Sequence[str], seed: int) -> str:
    """Learn, compare, and return the section of one recording; the seed is for firing."""
    recording = RECORDINGS[name]
    train, test = (log_of(data, recording, choice) for choice in (recording.train, recording.test))
    worlds: dict[str, hr.LearnedWorld] = {}
    for model in models:
        start_s = time.monotonic()
        worlds[model] = hr.learn(train, model, **budget_for(model, worlds))
        print(f"{name}: learned {model} in {time.monotonic() - start_s:.0f} s", flush=True)
    beside = {NEXT_BEAM: next_beams(train, test)} if recording.from_one_place else {}
    scores = hr.compare(test, {**worlds, **beside}, seed=seed, **recording.settings)
    table = scores.table(aside=(NEXT_BEAM,))
    shown = ScoreTable(table.columns, tuple(row for row in table.rows if row.key in SHOWN))
    if pictures is not None:
        draw(test, worlds, pictures / f"real_{name}.png")
    return (
        f"### {recording.title}\n\n    python tools/real_fidelity.py DATA --only {name}\n\n"
        f"Learned from {_described(train)}, compared with {_described(test)}.\n\n{shown.to_markdown()}"
        + same_beams(test, worlds, seed)
        + "".join(f"\n- {note}\n" for note in scores.notes)
    )


def next_beams(train: hr.Log, test: hr.Log) -> hr.Log:
    """Give each beam what the real one beside it measured: that of its ring nearest to it, in the next learned sweep.

    No world, but a measure for them: so far is reality from itself, a column or a sweep on. All learned sweeps at once
    would tell too much: directions of beams without return are guessed, so the nearest one is often guessed alike.
    """
    range_m = np.empty(len(test), dtype=np.float32)
    numbers = np.unique(train.beams.sweep)
    for number in np.unique(test.beams.sweep):
        learned = train.select(sweep=numbers[np.abs(numbers - number).argmin()])
        rows = test.beams.sweep == number
        nearest = KDTree(_by_ring(learned.beams)).query(_by_ring(test.beams[rows]))[1]
        range_m[rows] = learned.returns.first_m[nearest]
    return replace(test, returns=hr.Returns.from_arrays(ranges=range_m))


def _by_ring(beams: hr.Beams) -> NDArray[np.float64]:
    """Place beams by direction, rings farther apart than any two directions."""
    return np.c_[beams.direction, 10.0 * beams.ring]


def same_beams(test: hr.Log, worlds: dict[str, hr.LearnedWorld], seed: int) -> str:
    """Say how large the errors are on the beams that the refined world and another one both find.

    A world that finds the easy beams alone has a small mean error of what it finds.
    """
    if "refined" not in worlds:
        return ""
    with np.errstate(invalid="ignore"):  # no return in either: inf - inf, which is no error
        off_m = {
            model: np.abs(hr.replay(world, test, seed=seed).returns.first_m - test.returns.first_m)
            for model, world in worlds.items()
        }
    lines = ["\nBeam error, mean, on the beams that both find:\n"]
    for model in worlds:
        both = np.isfinite(off_m[model]) & np.isfinite(off_m["refined"])
        if model != "refined" and both.any():
            theirs, ours = (100 * float(off_m[name][both].mean()) for name in (model, "refined"))
            lines.append(f"- {model}: {int(both.sum()):,} beams, {theirs:.2f} cm; refined {ours:.2f} cm")
    return "\n".join(lines) + "\n"


def budget_for(model: str, worlds: dict[str, hr.LearnedWorld]) -> dict[str, Any]:
    """A refined world has no more elements than the topdown world of all sweeps."""
    return {"budget": worlds["topdown"].size().elements} if model == "refined" and "topdown" in worlds else {}


def draw(test: hr.Log, worlds: dict[str, hr.LearnedWorld], path: Path) -> None:
    """Draw the middle one of the held-out sweeps beside its simulations, as range images."""
    numbers = sorted(set(test.beams.sweep.tolist()))
    sweep = test.select(sweep=numbers[len(numbers) // 2])
    chosen = [model for model in PICTURED if model in worlds] or list(worlds)
    sweeps = {"real": sweep} | {model: hr.replay(worlds[model], sweep) for model in chosen}
    figure = range_images(sweeps)
    if figure is not None:
        save_figure(figure, path, dpi=80)


def _described(log: hr.Log) -> str:
    missing = 1 - float(log.returns.hit.mean())
    n_sweeps = len(set(log.beams.sweep.tolist()))
    return f"{n_sweeps} sweep{'s' * (n_sweeps > 1)} ({len(log):,} beams, {missing:.1%} without return)"


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(RECORDINGS), default=list(RECORDINGS), metavar="NAME")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="MODEL", help="default: all")
    parser.add_argument("--seed", type=int, default=0, help="for firing; worlds and likelihood do not depend on it")
    parser.add_argument("--out", type=Path, help="write the tables here instead of printing them")
    parser.add_argument("--pictures", type=Path, help="folder for real_NAME.png, made if it is missing")
    asked = parser.parse_args()
    if asked.pictures is not None:
        asked.pictures.mkdir(parents=True, exist_ok=True)
    sections = [measure(asked.data, name, asked.pictures, asked.models, asked.seed) for name in asked.only]
    if asked.out is None:
        print("\n".join(sections))
    else:
        asked.out.write_text("\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
