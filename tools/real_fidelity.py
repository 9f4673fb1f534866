# SPDX-License-Identifier: Apache-2.0
"""Learn models from one part of public recordings, compare them with the rest, and write the tables as Markdown.

    python tools/real_fidelity.py DATA [--only NAME ...] [--models MODEL ...] [--seed N] [--out FOLDER]
        [--pictures FOLDER]

DATA holds a folder per dataset, with the load.py that tools/real_logs.py describes. FOLDER gets NAME.json for each
recording as soon as it is done, and recordings.md of all that are in it: docs/results/recordings.md.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from real_logs import Choice, logs
from scipy.spatial import KDTree

import hedgerow as hr
from hedgerow.base.figure import save_figure
from hedgerow.metrics.catalogue import METRICS
from hedgerow.metrics.metric import CLIMATOLOGY, REALITY_AGAIN
from hedgerow.metrics.paired import PairedDifference
from hedgerow.metrics.scores import Comparison, ScoreTable
from hedgerow.report.sweep_plots import range_images

MODELS = ("voxel", "topdown", "bottomup", "hybrid", "surface", "permeable-surface", "points", "refined")
SHOWN = (
    "crps_m",
    "brier",
    "log_score",
    "nll",
    "reliability_error",
    "spread",
    "floored",
    "hits_found",
    "misses_found",
    "hits_near_0",
    "hits_near_1",
    "hits_near_2",
    "hits_near_3",
    "hits_near_4",
    "intensity_crps",
    "bhattacharyya_per_direction",
    "beam_error_mean_m",
    "beam_error_median_m",
    "sweep_distance_m",
    "cloud_distance_m",
    "density_chamfer",
    "elements",
)
KINDS = {
    "new": "New viewpoints",
    "between": "Between what was learned: neighbouring sweeps or columns",
}
PICTURED = ("voxel", "hybrid", "refined")


INTRODUCTION = """# Real recordings

Written by `python tools/real_fidelity.py DATA --out FOLDER`. [Fidelity](../fidelity.md) says in words what it shows.

CRPS, Brier, log score and -log L are proper scores: lower is better, and being surer than reality does not help.
Spread is to be 1; the reliability error 0. Hits, misses, errors and distances are to be near those of reality again,
from either side; they are not to be maximised. *Climatology* knows the ranges of each ring and no place. *Reality
again* is the real beam beside, in the next learned sweep or column; there is none where the sensor moves. Hits by
distance are by how far the real return is from the nearest learned one.
"""


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
    kind: Literal["new", "between"] = "between"
    """Whether the compared beams are from places where no learned sweep was."""
    is_blind: bool = True
    """Whether no default was chosen with it."""
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
        is_blind=False,
    )


RECORDINGS = {
    "kitti-0029": Recording(
        "KITTI raw, drive 2011_09_26_drive_0029, sweeps 0 to 31",
        "kitti_0029_start",
        "hdl-64e-s2",
        Choice("0:32", skip_every=4),
        Choice("0:32", only_every=4),
        is_blind=False,
    ),
    "kitti-0029-ahead": Recording(
        "KITTI raw, drive 2011_09_26_drive_0029, learned from sweeps 40 to 69, compared with 70, 73, 76, 79",
        "kitti_0029_start",
        "hdl-64e-s2",
        Choice("40:70"),
        Choice("70:80:3"),
        kind="new",
        is_blind=False,
    ),
    "kitti-0005": Recording(
        "KITTI raw, drive 2011_09_26_drive_0005, sweeps 108 to 139",
        "kitti_0005",
        "hdl-64e-s2",
        Choice("108:140", skip_every=4),
        Choice("108:140", only_every=4),
        is_blind=False,
    ),
    "kitti-0005-ahead": Recording(
        "KITTI raw, drive 2011_09_26_drive_0005, learned from sweeps 100 to 123, compared with 128 to 139",
        "kitti_0005",
        "hdl-64e-s2",
        Choice("100:124"),
        Choice("128:140:2"),
        kind="new",
        is_blind=False,
    ),
    "kitti-0005-start": Recording(
        "KITTI raw, drive 2011_09_26_drive_0005, learned from sweeps 10 to 39, compared with 42, 45, 48, 51",
        "kitti_0005",
        "hdl-64e-s2",
        Choice("10:40"),
        Choice("42:52:3"),
        kind="new",
    ),
    "newer-college": Recording(
        "Newer College quad, first lap (sweeps 0 to 21) and second lap (22 to 49)",
        "newer_college_quad",
        "os1-64",
        Choice("0:22"),
        Choice("22:50"),
        kind="new",
        is_blind=False,
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
        is_blind=False,
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


def measure(data: Path, name: str, pictures: Path | None, models: Sequence[str], seed: int) -> dict[str, Any]:
    """Learn, compare, and return the section of one recording and its scores; the seed is for firing."""
    recording = RECORDINGS[name]
    train, test = (log_of(data, recording, choice) for choice in (recording.train, recording.test))
    worlds: dict[str, hr.LearnedWorld] = {}
    seconds: dict[str, float] = {}
    for model in models:
        start_s = time.process_time()
        worlds[model] = hr.learn(train, model)
        seconds[model] = time.process_time() - start_s
        print(f"{name}: learned {model} in {seconds[model]:.0f} s of a processor", flush=True)
    again = next_beams(train, test) if recording.from_one_place else None
    scores = hr.compare(test, worlds, floors=True, again=again, learned=train, seed=seed, **recording.settings)
    assert isinstance(scores, Comparison)
    if pictures is not None:
        draw(test, worlds, pictures / f"real_{name}.png")
    table = scores.table()
    shown = ScoreTable(table.columns, tuple(row for row in table.rows if row.key in SHOWN))
    section = (
        f"### {recording.title}\n\n    python tools/real_fidelity.py DATA --only {name}\n\n"
        f"Learned from {_described(train)}, compared with {_described(test)}. "
        f"{'No default was chosen with it.' if recording.is_blind else 'Defaults were chosen with it.'} Seconds of a "
        f"processor to learn: {', '.join(f'{model} {spent:.0f}' for model, spent in seconds.items())}.\n\n"
        + shown.to_markdown()
        + _differences(scores)
    )
    return {"name": name, "kind": recording.kind, "section": section, "scores": scores.to_dict()}


def _differences(scores: Comparison) -> str:
    """Write how far the other worlds are from the refined one, with intervals."""
    if "refined" not in scores:
        return ""
    lines = ["\nLess the refined world's score (95 % interval over sweeps; above 0: the refined world is better):\n"]
    for name, by_key in scores.differences("refined").items():
        if name in (CLIMATOLOGY, REALITY_AGAIN) or not by_key:
            continue
        said = [f"{METRICS[key].label} {_with_interval(each)}" for key, each in by_key.items()]
        lines.append(f"- {name}: {'; '.join(said)}")
    return "\n".join(lines) + "\n"


def _with_interval(found: PairedDifference) -> str:
    low_high = "one sweep" if found.interval is None else f"{found.interval[0]:+.3f} to {found.interval[1]:+.3f}"
    return f"{found.difference:+.3f} ({low_high})"


SUMMED_UP = ("topdown", "hybrid", "refined", CLIMATOLOGY, REALITY_AGAIN)


def _summary(found: Sequence[dict[str, Any]]) -> str:
    """Return a table of all recordings: CRPS, and whether the refined world is calibrated."""

    def shown(each: dict[str, Any], name: str, key: str, decimals: int) -> str:
        value = each["scores"].get(name, {}).get("metrics", {}).get(key, {}).get("value")
        return "-" if value is None else f"{value:.{decimals}f}"

    heads = [*SUMMED_UP, "spread of refined", "reliability error of refined"]
    lines = [f"| CRPS [m] | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for each in found:
        cells = [shown(each, name, "crps_m", 2) for name in SUMMED_UP]
        cells += [shown(each, "refined", "spread", 2), shown(each, "refined", "reliability_error", 3)]
        lines.append(f"| `{each['name']}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def page_of(found: Sequence[dict[str, Any]]) -> str:
    """Return the page of all recordings that were measured."""
    parts = [INTRODUCTION, _summary(found)]
    for kind, title in KINDS.items():
        those = [each for each in found if each["kind"] == kind]
        if those:
            parts.append(f"## {title}\n\n" + "\n".join(each["section"] for each in those))
    return "\n".join(parts)


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
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the tables; default: out")
    parser.add_argument("--pictures", type=Path, help="folder for real_NAME.png, made if it is missing")
    asked = parser.parse_args()
    if asked.pictures is not None:
        asked.pictures.mkdir(parents=True, exist_ok=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.only:
        found = measure(asked.data, name, asked.pictures, asked.models, asked.seed)
        (asked.out / f"{name}.json").write_text(json.dumps(found), encoding="utf-8")
    files = [asked.out / f"{name}.json" for name in RECORDINGS]
    measured = [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    (asked.out / "recordings.md").write_text(page_of(measured), encoding="utf-8")
    print(f"wrote {asked.out / 'recordings.md'}")


if __name__ == "__main__":
    main()
