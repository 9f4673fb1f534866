# SPDX-License-Identifier: Apache-2.0
"""Tallavajhula 2018 §3.5.2, Table 3.3, Figs. 3.21 and 3.22: a particle filter among people, with two sensor models.

A corridor of 5 by 5 m; 5 to 10 people walk in each half, and the map does not know them. Both models are trained on the
same readings, which hold the people: NP-Reg, and the classic mixture of a Gaussian and an exponential. The filter runs
with each along an S-shaped path, on the same scans and with the same random numbers. As in the paper, all of it is
simulated; the sensor here is exact but for people and a Gaussian of 1 cm.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.particle_filter import ParticleFilter, WalkTruth
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.log import Log
from hedgerow.planar.parametric import BeamMixture
from hedgerow.planar.regression import Observations, Scale
from hedgerow.planar.sensor_model import SensorModel, States
from hedgerow.planar.site import PlanarSite, nominal_states, scan_beams
from hedgerow.planar.tabulated import TabulatedModel
from hedgerow.planar.training import mean_log_loss, train_mixture, train_np_reg
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table

SCALE = Scale(high_m=7.5, step_m=0.01)
N_BEARINGS = 60
BEARING_RAD: NDArray[np.float64] = 2 * np.pi * np.arange(N_BEARINGS) / N_BEARINGS
SITE = PlanarSite.parse(
    {
        "object": [
            {"points_m": [[0, 0], [5, 0]]},
            {"points_m": [[0, 5], [5, 5]]},
            {"points_m": [[5, 0], [5, 5]]},
            {"points_m": [[0, 0], [0, 5]]},
        ],
        "walkers": [
            {"count": [5, 10], "area_m": [0, 0, 5, 2.2], "radius_m": 0.15},
            {"count": [5, 10], "area_m": [0, 2.8, 5, 5], "radius_m": 0.15},
        ],
    },
    "the corridor",
)
PAPER = {"NP-Reg": "0.002 ± 0.020", "beam mixture": "0.004 ± 0.041"}
N_FEATURES, N_EACH = 3660, 50
N_RUNS, N_SCANS = 30, 50
_NOISE_M = 0.01


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Run the filter with both models; `size` is the number of runs, 30 in the paper, up to 500 pairs are useful."""
    n_runs = size or N_RUNS
    training, validation = readings(N_FEATURES, seed), readings(N_FEATURES // 6, seed + 1)
    np_reg, tried = train_np_reg(
        training,
        validation,
        SCALE,
        grids=((0.03, 0.1, 0.3), (0.1, 0.3, 1.0)),
        z_bandwidths_m=(0.0, 0.02),
        most_states=400,
    )
    models: dict[str, SensorModel] = {"NP-Reg": np_reg, "beam mixture": train_mixture(training, SCALE)}
    say("trained: " + ", ".join(f"{name} {mean_log_loss(each, validation):.3f} nats" for name, each in models.items()))
    tables = {name: TabulatedModel(each, range_step_m=0.02) for name, each in models.items()}
    errors = {name: _errors(each, n_runs, seed) for name, each in tables.items()}
    parts = [_table(errors, models, validation), _decision(errors), f"Tried for NP-Reg:\n\n{tried.to_markdown()}"]
    picture = _draw(folder / "planar-particle-filter.png", models, seed)
    return Outcome(text="\n\n".join(parts), pictures=(picture,))


def readings(n: int, seed: int) -> Observations:
    """Read `n` features, each fifty times, with people at other places each time."""
    random = np.random.default_rng(seed + 50)
    n_poses = int(np.ceil(n / N_BEARINGS))
    scene = SITE.scene()
    features: list[NDArray[np.float64]] = []
    values: list[NDArray[np.float64]] = []
    for _ in range(n_poses):
        pose = np.array([random.uniform(0.4, 4.6), random.uniform(0.4, 4.6), random.uniform(0, 2 * np.pi)])
        beams = scan_beams(pose, BEARING_RAD)
        features.append(nominal_states(scene, beams, N_BEARINGS, SCALE.high_m).feature)
        walks = [SITE.walks(each, 1)[0] for each in random.integers(0, 2**31, N_EACH).tolist()]
        read = np.stack([_read(pose, each, random, 0).returns.first_m for each in walks], axis=1)
        values.append(read.astype(np.float64))
    return Observations(np.concatenate(features)[:n], np.concatenate(values)[:n])


def _read(pose: NDArray[np.float64], people_m: NDArray[np.float64], random: np.random.Generator, sweep: int) -> Log:
    """Return one scan among people; those nearer than 0.3 m have stepped aside."""
    aside = np.linalg.norm(people_m - pose[:2], axis=1) > 0.3
    model = BeamMixture(SCALE, eta=1.0, sigma_m=_NOISE_M, rate_per_m=1.0)
    beams = scan_beams(pose, BEARING_RAD, sweep=sweep)
    states = nominal_states(SITE.scene(people_m[aside]), beams, N_BEARINGS, SCALE.high_m)
    value = model.sample(states, seed=int(random.integers(2**31)))
    return Log.from_arrays(
        origins=beams.origin_m,
        directions=beams.direction,
        ranges=np.where(value > 0, value, np.inf),
        times=beams.time_ns,
        sweeps=beams.sweep,
        max_range_m=SCALE.high_m,
    )


def path() -> NDArray[np.float64]:
    """Return the (50, 3) poses of an S of 4.3 m."""
    along = np.linspace(0, 1, N_SCANS)
    x, y = 0.8 + 3.4 * along, 2.5 + 0.62 * np.sin(2 * np.pi * along)
    heading = np.arctan2(np.gradient(y), np.gradient(x))
    return np.column_stack([x, y, heading])


def _truth(seed: int) -> tuple[Log, WalkTruth]:
    random = np.random.default_rng(seed + 9000)
    poses = path()
    people = SITE.walks(int(random.integers(2**31)), N_SCANS)
    log = Log.concatenate([_read(pose, people[i], random, i) for i, pose in enumerate(poses)])
    difference = np.diff(poses, axis=0)
    cosine, sine = np.cos(poses[:-1, 2]), np.sin(poses[:-1, 2])
    motion = np.column_stack(
        [
            cosine * difference[:, 0] + sine * difference[:, 1],
            -sine * difference[:, 0] + cosine * difference[:, 1],
            difference[:, 2],
        ]
    )
    commanded = motion + random.normal(size=motion.shape) * [0.005, 0.005, 0.005]
    return log, WalkTruth(SITE.scene(), poses, commanded, seed)


def _errors(model: SensorModel, n_runs: int, seed: int) -> NDArray[np.float64]:
    """Return (R, T, 2) errors of the position, estimate less truth."""
    app = ParticleFilter(model, N_BEARINGS, every=1)
    found: list[NDArray[np.float64]] = []
    for number in range(n_runs):
        log, truth = _truth(seed + number)
        found.append((app.estimate(log, app.space.start(), truth) - truth.pose)[:, :2])
    return np.array(found)


def _table(errors: dict[str, NDArray[np.float64]], models: dict[str, SensorModel], validation: Observations) -> str:
    rows: list[tuple[str, ...]] = []
    for name, error in errors.items():
        signed = error[:, N_SCANS // 2 :].reshape(-1)
        distance = np.linalg.norm(error, axis=2)
        rows.append(
            (
                name,
                PAPER[name],
                f"{signed.mean():.3f} ± {signed.std():.3f}",
                f"{distance.mean():.3f}",
                f"{distance[:, N_SCANS // 2 :].mean():.3f}",
                f"{mean_log_loss(models[name], validation):.3f}",
            )
        )
    head = (
        "sensor model",
        "paper: pose error [m]",
        "ours, signed, second half [m]",
        "mean distance [m]",
        "second half [m]",
        "mean log loss of readings",
    )
    n = len(next(iter(errors.values())))
    return f"{n} runs of {N_SCANS} scans (Table 3.3):\n\n" + markdown_table(head, rows)


def _decision(errors: dict[str, NDArray[np.float64]]) -> str:
    """Say whether the difference of the two is decided, by the runs in pairs."""
    mean = {name: np.linalg.norm(each, axis=2).mean(axis=1) for name, each in errors.items()}
    difference = mean["NP-Reg"] - mean["beam mixture"]
    n = len(difference)
    if n < 2:
        return "One run alone decides nothing."
    half = 1.96 * difference.std(ddof=1) / np.sqrt(n)
    low, high = difference.mean() - half, difference.mean() + half
    words = "not decided" if low < 0 < high else f"{'NP-Reg' if high < 0 else 'the mixture'} is better: decided"
    return (
        f"Mean distance, NP-Reg less mixture, in {n} pairs: {difference.mean():.4f} m, 95 % interval {low:.4f} to "
        f"{high:.4f} m: {words}. The paper's conclusion, that NP-Reg is better, "
        f"{'holds' if high < 0 else 'does not hold here' if low > 0 else 'is open here'}."
    )


def _draw(path_: Path, models: dict[str, SensorModel], seed: int) -> Path:
    """Draw people, map and path, and what both models say of a bearing that a walker stands in (Fig. 3.22)."""
    log, truth = _truth(seed)
    scan = log.select(sweep=20)
    states = nominal_states(SITE.scene(), scan_beams(truth.pose[20], BEARING_RAD), N_BEARINGS, SCALE.high_m)
    short = states.feature[:, 0] - scan.returns.first_m
    bearing = int(np.argmax(np.where(np.isfinite(short), short, -1)))
    figure = new_figure(11, 4.2)
    left, right = figure.subplots(1, 2)
    for segment in SITE.segments():
        left.plot(*segment.T, color="k", linewidth=1.5)
    left.plot(*truth.pose[:, :2].T, ":", color="tab:blue", label="path")
    left.plot(*scan.points()[:, :2].T, ".", color="tab:red", markersize=4, label="one scan")
    left.plot(
        *np.stack(
            [
                truth.pose[20, :2],
                scan.points()[0, :2]
                if not np.isfinite(short[bearing])
                else truth.pose[20, :2] + scan.returns.first_m[bearing] * scan.beams.direction[bearing, :2],
            ]
        ).T,
        color="tab:red",
        linewidth=1,
    )
    left.set(aspect="equal", title="map, path and one scan among people", xlabel="x [m]", ylabel="y [m]")
    left.legend(fontsize=8)
    one = States(states.feature[[bearing]], states.group[[bearing]])
    for name, model in models.items():
        right.semilogy(
            SCALE.values(), np.maximum(model.histogram(one)[:-1, 0] / SCALE.step_m, 1e-4), label=name, linewidth=1
        )
    right.axvline(float(states.feature[bearing, 0]), color="0.5", linestyle="--", label="nominal range")
    right.axvline(float(scan.returns.first_m[bearing]), color="tab:red", linestyle=":", label="reading")
    right.set(xlabel="reading [m]", ylabel="density [1/m]", title=f"bearing {bearing}", ylim=(1e-3, None))
    right.legend(fontsize=8)
    save_figure(figure, path_)
    return path_
