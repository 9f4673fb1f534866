# SPDX-License-Identifier: Apache-2.0
"""Planar sensor models on real logs: two buildings, scanned by a SICK LMS from corrected poses (Radish repository).

Segments are extracted from every second scan, four models are trained on these scans (a fifth of their readings
chooses bandwidths), and all are scored on the scans between, half a metre away: a second half of the way would lead
through rooms that the map does not hold. People and furniture are what no map holds: readings that are too short. No
pose comes twice, so each state has one reading. A particle filter then runs along the scored scans with two of the
models; its odometry is made of the poses, with noise. A null reading sits at the longest range, tens of metres away, so
CRPS is mostly about null readings.

The data is not shipped: give the folder with the recordings (`--data`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.particle_filter import ParticleFilter, WalkTruth
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.errors import FileError
from hedgerow.log import Log
from hedgerow.planar.extraction import extract_segments
from hedgerow.planar.regression import Observations, Scale, histogram_match
from hedgerow.planar.sensor_model import SensorModel, States
from hedgerow.planar.site import PlanarSite, scan_beams
from hedgerow.planar.tabulated import TabulatedModel
from hedgerow.planar.training import mean_log_loss, train_gaussian, train_mixture, train_np_reg, train_p_reg
from hedgerow.planar.world import readings_of
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table

LOGS = ("intel_gfs", "mit_csail")
_STEP_M = 0.01
_EVERY = 4
"""Every so many bearings are used: neighbours half a degree apart see the same."""
_P_GRIDS = ((0.1, 0.3, 1.0, 3.0), (0.1, 0.3, 1.0))
_NP_GRIDS = ((0.03, 0.1, 0.3, 1.0), (0.1, 0.3, 1.0))


def run(
    folder: Path, size: int | None = None, seed: int = 1, say: Print = print, *, data: Path | None = None
) -> Outcome:
    """Learn every second scan of each log and score on the others; `size` is the most scans of each kind."""
    if data is None or not (data / "planar_radish").is_dir():
        raise FileError(
            f"{data or '--data'}: planar-real needs the folder with the recording planar_radish; give --data"
        )
    parts: list[str] = []
    pictures: list[Path] = []
    for name in LOGS:
        text, picture = _one(folder, data / "planar_radish" / f"{name}.npz", size or 250, seed, say)
        parts.append(text)
        pictures.append(picture)
    return Outcome(text="\n\n".join(parts), pictures=tuple(pictures))


def _one(folder: Path, path: Path, most: int, seed: int, say: Print) -> tuple[str, Path]:
    scans, poses, bearing, max_range_m = _load(path)
    step = 2 * max(1, len(poses) // (2 * most))
    first, second = np.arange(0, len(poses), step), np.arange(1, len(poses), step)
    scale = Scale(high_m=max_range_m, step_m=_STEP_M)
    log = _log(scans, poses, bearing, np.arange(0, len(poses), 2), max_range_m)
    site = PlanarSite.from_segments(extract_segments(log))
    say(f"{path.stem}: {len(site.segments())} segments")
    scene = site.scene()
    learned = readings_of(_log(scans, poses, bearing, first, max_range_m), scene, len(bearing), max_range_m)
    judged = readings_of(_log(scans, poses, bearing, second, max_range_m), scene, len(bearing), max_range_m)
    models = _train(learned, scale, seed)
    rows = [_row(name, model, judged, scale) for name, model in models.items()]
    rows.append(_climatology(learned, judged, scale))
    for name in ("NP-Reg", "beam mixture"):
        rows_error = _filter_error(models[name], scene, scans, poses, bearing, second, max_range_m, seed)
        rows = [(*row, f"{rows_error:.2f}") if row[0] == name else row for row in rows]
    rows = [row if len(row) == 6 else (*row, "-") for row in rows]
    head = (
        "model",
        "mean log loss",
        "CRPS [m]",
        "histogram match [m]",
        "floored readings [%]",
        "particle filter, mean error [m]",
    )
    title = (
        f"### {path.stem}: {len(site.segments())} segments, {len(learned):,} readings learned, {len(judged):,} scored"
    )
    return f"{title}\n\n{markdown_table(head, rows)}", _draw(
        folder / f"planar-real-{path.stem}.png", site, poses, models, judged, scale
    )


def _load(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Return (S, B) ranges [m], inf for none, (S, 3) poses, (B,) bearings and the longest range."""
    try:
        with np.load(path) as found:
            range_m: NDArray[np.float64] = found["range_cm"] / 100.0
            poses: NDArray[np.float64] = found["pose"].astype(np.float64)
            max_m, start, step = (float(found[name]) for name in ("max_range", "start", "step"))
    except (OSError, KeyError, ValueError) as error:
        raise FileError(f"{path}: cannot be read as a recording of scans: {error}") from None
    range_m = np.where((range_m >= 0.95 * max_m) | (range_m <= 0), np.inf, range_m)
    chosen = slice(None, None, _EVERY)
    bearing = start + step * np.arange(range_m.shape[1], dtype=np.float64)
    return range_m[:, chosen], poses, bearing[chosen], 0.95 * max_m


def _log(
    scans: NDArray[np.float64], poses: NDArray[np.float64], bearing: NDArray[np.float64], rows: Any, max_range_m: float
) -> Log:
    beams = scan_beams(poses[rows], bearing, sweep=rows)
    range_m = scans[rows].ravel()
    return Log.from_arrays(
        origins=beams.origin_m,
        directions=beams.direction,
        ranges=np.where(range_m <= max_range_m, range_m, np.inf),
        sweeps=beams.sweep,
        max_range_m=max_range_m,
    )


def _train(learned: Observations, scale: Scale, seed: int) -> dict[str, SensorModel]:
    """Train four models; a fifth of the readings chooses bandwidths."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(learned))[:12_000]
    cut = len(order) * 4 // 5
    training, validation = learned[np.sort(order[:cut])], learned[np.sort(order[cut:])]
    p_reg, _ = train_p_reg(training, validation, scale, grids=_P_GRIDS, per_group=False)
    np_reg, _ = train_np_reg(training, validation, scale, grids=_NP_GRIDS, z_bandwidths_m=(0.02, 0.05), most_states=300)
    gaussian, _ = train_gaussian(training, scale)
    return {"P-Reg": p_reg, "NP-Reg": np_reg, "Gaussian": gaussian, "beam mixture": train_mixture(training, scale)}


def _row(name: str, model: SensorModel, judged: Observations, scale: Scale) -> tuple[str, ...]:
    rows = np.sort(np.random.default_rng(5).permutation(len(judged))[:1500])
    chosen = judged[rows]
    states, reading = States(chosen.state, chosen.groups), chosen.value[:, 0]
    density, forecast = model.density(states, reading), model.histogram(states)
    return (
        name,
        f"{mean_log_loss(model, chosen):.3f}",
        f"{crps(forecast, reading, scale):.3f}",
        f"{match_by_range(forecast, reading, chosen.state[:, 0], scale):.3f}",
        f"{100 * float((density < 1e-6).mean()):.1f}",
    )


def crps(histogram: NDArray[np.float64], reading_m: NDArray[np.float64], scale: Scale) -> float:
    """Return the mean CRPS [m] of (B + 1, Q) forecasts: the squared difference of cumulatives, null at the limit."""
    forecast = np.cumsum(histogram, axis=0)[:-1]
    values = scale.values()[:, None]
    return float((((forecast - (reading_m <= values)) ** 2).sum(axis=0) * scale.step_m).mean())


def match_by_range(
    histogram: NDArray[np.float64], reading_m: NDArray[np.float64], nominal_m: NDArray[np.float64], scale: Scale
) -> float:
    """Return the histogram match [m] of readings and (B + 1, Q) forecasts, pooled for each metre of nominal range.

    No pose comes twice, so no single state has a histogram. The metres are averaged by their numbers of readings.
    """
    metre = np.floor(np.minimum(nominal_m, scale.high_m)).astype(np.int64)
    total = 0.0
    for each in np.unique(metre):
        here = metre == each
        found = np.bincount(scale.bin_of(reading_m[here]), minlength=scale.n_bins + 1) / here.sum()
        total += here.sum() * float(histogram_match(histogram[:, here].mean(axis=1), found, scale.step_m))
    return total / len(metre)


def _climatology(learned: Observations, judged: Observations, scale: Scale) -> tuple[str, ...]:
    """Score one distribution of all readings, whatever the state: the floor of knowing nothing of the map."""
    bins = np.bincount(scale.bin_of(learned.value[:, 0]), minlength=scale.n_bins + 1) + 1e-3
    share = bins / bins.sum()
    reading = judged.value[:, 0]
    density = share[scale.bin_of(reading)] / np.where(np.isinf(reading), 1.0, scale.step_m)
    loss = float(-np.log(np.maximum(density, 1e-6)).mean())
    rows = slice(None, None, max(1, len(reading) // 1500))
    some = reading[rows]
    forecast = np.repeat(share[:, None], len(some), axis=1)
    match = match_by_range(forecast, some, judged.state[rows, 0], scale)
    return "climatology", f"{loss:.3f}", f"{crps(forecast, some, scale):.3f}", f"{match:.3f}", "0.0"


def _filter_error(
    model: SensorModel,
    scene: Any,
    scans: NDArray[np.float64],
    poses: NDArray[np.float64],
    bearing: NDArray[np.float64],
    rows: Sequence[int] | NDArray[np.int64],
    max_range_m: float,
    seed: int,
) -> float:
    """Return the mean error of a particle filter along 60 consecutive scored scans [m]."""
    chosen = np.arange(int(rows[0]), int(rows[-1]) + 1, 2)[:60]
    path = poses[chosen]
    difference = np.diff(path, axis=0)
    cosine, sine = np.cos(path[:-1, 2]), np.sin(path[:-1, 2])
    motion = np.column_stack(
        [
            cosine * difference[:, 0] + sine * difference[:, 1],
            -sine * difference[:, 0] + cosine * difference[:, 1],
            (difference[:, 2] + np.pi) % (2 * np.pi) - np.pi,
        ]
    )
    motion += np.random.default_rng(seed).normal(size=motion.shape) * [0.03, 0.03, 0.02]
    app = ParticleFilter(
        TabulatedModel(model, range_step_m=0.25),
        len(bearing),
        every=2,
        motion_sigma=(0.05, 0.05, 0.03),
        start_radius_m=0.5,
    )
    log = _log(scans, poses, bearing, chosen, max_range_m)
    found = app.estimate(log, app.space.start(), WalkTruth(scene, path, motion, seed))
    return float(np.linalg.norm((found - path)[:, :2], axis=1).mean())


def _draw(
    path: Path,
    site: PlanarSite,
    poses: NDArray[np.float64],
    models: dict[str, SensorModel],
    judged: Observations,
    scale: Scale,
) -> Path:
    figure = new_figure(12, 4.6)
    left, right = figure.subplots(1, 2)
    for segment in site.segments():
        left.plot(*segment.T, color="k", linewidth=0.8)
    left.plot(*poses[::2, :2].T, ".", color="tab:blue", markersize=2, label="learned")
    left.plot(*poses[1::2, :2].T, ".", color="tab:orange", markersize=2, label="scored")
    left.set(aspect="equal", title="extracted segments and path", xlabel="x [m]", ylabel="y [m]")
    left.legend(fontsize=8)
    near = np.abs(judged.state[:, 0] - 4.0) < 0.3
    right.hist(
        judged.value[near, 0][np.isfinite(judged.value[near, 0])],
        bins=np.arange(0, 8, 0.1),
        density=True,
        color="0.8",
        label="real",
    )
    one = States.of([[4.0, 0.4]], 0)
    for name, model in models.items():
        right.plot(scale.values(), model.histogram(one)[:-1, 0] / scale.step_m, label=name, linewidth=1)
    right.set(xlim=(0, 8), ylim=(0, 4), xlabel="reading [m]", ylabel="density [1/m]", title="nominal range 4 m")
    right.legend(fontsize=8)
    save_figure(figure, path)
    return path
