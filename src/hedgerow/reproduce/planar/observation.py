# SPDX-License-Identifier: Apache-2.0
"""Tallavajhula 2018 §3.5.1, Table 3.2, Figs. 3.11 to 3.14: how well sensor models predict readings at new poses.

A hidden scanner plays reality (hidden_sensor.py). It is read 70 times from each of 100, 30 and 30 poses. Models are
trained on the first, their bandwidths chosen on the second, and all are scored on the third, beside reality read again.
The paper's mean errors are absolute differences to what single test states measured; ours too.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.parametric import TARGETS, PReg
from hedgerow.planar.regression import Histograms, Observations, histogram_match
from hedgerow.planar.sensor_model import SensorModel, States
from hedgerow.planar.site import nominal_states, scan_beams
from hedgerow.planar.training import mean_log_loss, mean_match
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.planar.hidden_sensor import BEARING_RAD, N_BEARINGS, SCALE, HiddenSensor, HiddenWorld
from hedgerow.reproduce.planar.lab import READINGS, ROOM, Data, Models, collect, record, train
from hedgerow.reproduce.tables import PaperTable, markdown_table

PAPER = {
    "mean [m]": {"P-Reg": 0.015, "Gaussian": 0.018},
    "sigma [m]": {"P-Reg": 0.001, "Gaussian": 0.002},
    "null share": {"P-Reg": 0.0076},
}
"""Table 3.2."""
SIZES = (10, 20, 50, 100)
"""Training poses of the curves (Fig. 3.14b)."""
AGAIN = "reality again"
_STATES = 400
"""Test states that histograms are scored on, chosen at random."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Train and score all models; `size` is the most training poses, 100 in the paper."""
    most = size or SIZES[-1]
    parts: list[str] = []
    tables: list[PaperTable] = []
    pictures: list[Path] = []
    for name, sensor in (("with biases", HiddenSensor()), ("without biases", HiddenSensor().without_bias())):
        data = collect(most, seed, sensor)
        models = train(data)
        say(f"scanner {name}: trained on {len(data.training):,} states")
        errors = parameter_errors(models, data)
        tables.append(_table(errors, f"Mean error of predicted parameters, scanner {name} (Table 3.2)"))
        parts.append(f"### Scanner {name}\n\n{_scores(models, data)}")
        curves = {n: _curve(data, n, models) for n in SIZES if n <= most}
        parts.append(_curve_text(curves))
        if name == "with biases":
            parts.append(_enough_readings(seed, sensor))
            pictures += _draw(folder, data, models, curves, sensor)
            parts += [f"Tried for {what}:\n\n{tried.to_markdown()}" for what, tried in models.tried.items()]
        parts.append(_verdict(errors, curves))
    return Outcome(tuple(tables), "\n\n".join(parts), tuple(pictures))


def parameter_errors(models: Models, data: Data) -> dict[str, dict[str, float]]:
    """Return the mean absolute error of mean, sigma and null share, by parameter and model."""
    states = States(data.test.state, data.test.groups)
    truth = dict(zip(TARGETS, data.test.moments(), strict=True))
    again = dict(zip(TARGETS, data.again.moments(), strict=True))
    found = {"P-Reg": models.p_reg.parameters(states), "Gaussian": models.gaussian.parameters(states)}
    errors: dict[str, dict[str, float]] = {}
    for place, (what, row) in enumerate(zip(TARGETS, ("null share", "mean [m]", "sigma [m]"), strict=True)):
        known = np.isfinite(truth[what]) & np.isfinite(again[what])
        errors[row] = {
            name: float(np.abs(each[place] - truth[what])[known].mean())
            for name, each in found.items()
            if not (name == "Gaussian" and what == "null")
        }
        errors[row][AGAIN] = float(np.abs(again[what] - truth[what])[known].mean())
    return errors


def _table(errors: dict[str, dict[str, float]], title: str) -> PaperTable:
    rows = tuple((row, PAPER[row], errors[row]) for row in PAPER)
    return PaperTable(title, ("P-Reg", "Gaussian", AGAIN), rows, digits=4, aside=(AGAIN,))


def _some(observations: Observations) -> tuple[States, NDArray[np.float64], Observations]:
    rows = np.sort(np.random.default_rng(7).permutation(len(observations))[:_STATES])
    chosen = observations[rows]
    return States(chosen.state, chosen.groups), Histograms(chosen, SCALE).matrix.toarray(), chosen


def _scores(models: Models, data: Data) -> str:
    states, truth, chosen = _some(data.test)
    rows: list[tuple[str, ...]] = []
    offset = NPReg(data.training, SCALE, bandwidth=models.np_reg.bandwidth, bearing_offset=True)
    named: dict[str, SensorModel] = {
        "P-Reg": models.p_reg,
        "NP-Reg": models.np_reg,
        "NP-Reg, offset of each bearing": offset,
        "Gaussian": models.gaussian,
        "beam mixture": models.mixture,
    }
    for name, model in named.items():
        match = mean_match(model, states, truth)
        rows.append((name, f"{match:.4f}", f"{match / SCALE.step_m:.1f}", f"{mean_log_loss(model, chosen):.3f}"))
    again = float(histogram_match(_some(data.again)[1], truth, SCALE.step_m).mean())
    rows.append((AGAIN, f"{again:.4f}", f"{again / SCALE.step_m:.1f}", "-"))
    return markdown_table(("model", "histogram match [m]", "in bins", "mean log loss (floor 1e-6 per m)"), rows)


def _curve(data: Data, n_poses: int, models: Models) -> tuple[float, float]:
    """Return the mean match of P-Reg and NP-Reg, trained on the first so many poses with the bandwidths chosen."""
    first = data.training[_of_poses(data, n_poses)]
    states, truth, _ = _some(data.test)
    widths = {f"{what}_bandwidth": width for what, width in models.p_reg.bandwidth.items()}
    p_reg = PReg(first, SCALE, **widths)  # pyright: ignore[reportArgumentType]
    np_reg = NPReg(first, SCALE, bandwidth=models.np_reg.bandwidth)
    return mean_match(p_reg, states, truth), mean_match(np_reg, states, truth)


def _of_poses(data: Data, n_poses: int) -> NDArray[np.bool_]:
    """Tell which training states were seen from one of the first poses."""
    seen = {tuple(row) for row in _features(data.poses["training"][:n_poses])}
    key = np.column_stack([data.training.groups.astype(np.float64), data.training.state])
    return np.array([tuple(row) in seen for row in key])


def _features(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    scene = ROOM.scene()
    states = [nominal_states(scene, scan_beams(pose, BEARING_RAD), N_BEARINGS, SCALE.high_m) for pose in poses]
    return np.concatenate([np.column_stack([each.group.astype(np.float64), each.feature]) for each in states])


def _curve_text(curves: dict[int, tuple[float, float]]) -> str:
    rows = [(f"{n}", f"{first:.4f}", f"{second:.4f}") for n, (first, second) in curves.items()]
    return "Risk by training poses (Fig. 3.14b), histogram match [m]:\n\n" + markdown_table(
        ("training poses", "P-Reg", "NP-Reg"), rows
    )


def _enough_readings(seed: int, sensor: HiddenSensor) -> str:
    """Say how many readings a state needs by the paper's rule: within 0.5 bins of the histogram of 250 readings."""
    pose = np.array([[1.8, 1.6, 0.3]])
    log = record(ROOM.scene(), pose, 250, seed + 900, sensor)
    value = log.returns.first_m.astype(np.float64).reshape(250, N_BEARINGS)
    bearing = 10
    state = np.zeros((1, 1))
    whole = Histograms(Observations(state, value[None, :, bearing]), SCALE).matrix.toarray()
    losses = {
        m: float(
            histogram_match(Histograms(Observations(state, value[None, :m, bearing]), SCALE).matrix.toarray(), whole)[0]
        )
        for m in (10, 20, 40, 70, 100, 150, 200)
    }
    enough = next((m for m, loss in losses.items() if loss < 0.5), None)
    shown = ", ".join(f"{m}: {loss:.2f}" for m, loss in losses.items())
    return (
        f"Histogram match with 250 readings, in bins, at bearing {bearing}: {shown}. Below 0.5 from "
        f"M = {enough if enough else 'more than 200'} on; the paper found {READINGS}, which all experiments take."
    )


def _verdict(errors: dict[str, dict[str, float]], curves: dict[int, tuple[float, float]]) -> str:
    sizes = sorted(curves)
    least, most = curves[sizes[0]], curves[sizes[-1]]
    still = most[1] < 0.95 * curves[sizes[-2]][1] if len(sizes) > 1 else False
    held = [
        (
            errors["mean [m]"]["P-Reg"] < errors["mean [m]"]["Gaussian"],
            "P-Reg predicts the mean better than the Gaussian",
        ),
        (errors["sigma [m]"]["P-Reg"] < errors["sigma [m]"]["Gaussian"], "and sigma"),
        (most[0] < most[1], "P-Reg has the lower risk of the two regressions"),
        (least[0] - most[0] < least[1] - most[1], "NP-Reg gains more from more data"),
        (still, "NP-Reg is still falling at the most data (by more than 5 % from the size before)"),
    ]
    return "Conclusions of the paper:\n\n" + "\n".join(
        f"- {text}: {'holds' if holds else 'does not hold here'}" for holds, text in held
    )


def _draw(
    folder: Path,
    data: Data,
    models: Models,
    curves: dict[int, tuple[float, float]],
    sensor: HiddenSensor,
) -> list[Path]:
    return [
        _draw_surfaces(folder / "planar-surfaces.png", models.p_reg),
        _draw_scans(folder / "planar-scans.png", models, sensor),
        _draw_risk(folder / "planar-risk.png", data, models, curves),
    ]


def _draw_surfaces(path: Path, model: PReg) -> Path:
    """Draw the three regressed surfaces of one bearing (Fig. 3.11)."""
    range_m, incidence = np.meshgrid(np.linspace(0.3, 3.5, 60), np.deg2rad(np.linspace(0, 75, 50)))
    bearing = 100
    states = States.of(np.column_stack([range_m.ravel(), incidence.ravel()]), np.full(range_m.size, bearing))
    null, mean, sigma = model.parameters(states)
    figure = new_figure(12, 3.6)
    shown = {
        "mean - nominal range [mm]": 1000 * (mean - states.feature[:, 0]),
        "sigma [mm]": 1000 * sigma,
        "share of null readings": null,
    }
    for axes, (title, values) in zip(figure.subplots(1, 3), shown.items(), strict=True):
        drawn = axes.pcolormesh(range_m, np.rad2deg(incidence), values.reshape(range_m.shape), shading="auto")
        axes.set(title=f"{title}, bearing {bearing}", xlabel="nominal range [m]", ylabel="incidence [deg]")
        figure.colorbar(drawn, ax=axes)
    save_figure(figure, path)
    return path


def _draw_scans(path: Path, models: Models, sensor: HiddenSensor) -> Path:
    """Draw one scan, real and by each model (Fig. 3.12)."""
    from hedgerow.planar.world import PlanarWorld

    scene = ROOM.scene()
    beams = scan_beams((1.8, 1.4, 0.4), BEARING_RAD)
    worlds = {"real (hidden scanner)": HiddenWorld(scene, sensor)}
    named = {"P-Reg": models.p_reg, "NP-Reg": models.np_reg, "Gaussian": models.gaussian}
    figure = new_figure(13, 3.6)
    logs = {name: world.fire(beams, 5) for name, world in worlds.items()}
    logs |= {name: PlanarWorld(scene, model, N_BEARINGS).fire(beams, 5) for name, model in named.items()}
    for axes, (name, log) in zip(figure.subplots(1, len(logs)), logs.items(), strict=True):
        for segment in ROOM.segments():
            axes.plot(*segment.T, color="0.75", linewidth=1)
        points = log.points()
        axes.plot(points[:, 0], points[:, 1], ".", markersize=2.5, color="tab:red")
        axes.plot(1.8, 1.4, "k^", markersize=5)
        axes.set(title=f"{name}\n{int((~log.returns.hit).sum())} null readings", aspect="equal")
    save_figure(figure, path)
    return path


def _draw_risk(path: Path, data: Data, models: Models, curves: dict[int, tuple[float, float]]) -> Path:
    """Draw predicted histograms of one state (Fig. 3.13) and the risk by training data (Fig. 3.14b)."""
    figure = new_figure(11, 3.8)
    left, right = figure.subplots(1, 2)
    row = int(np.argmin(np.abs(data.test.state[:, 0] - 1.5) + np.abs(data.test.state[:, 1] - 0.3)))
    one = States(data.test.state[[row]], data.test.groups[[row]])
    value = data.test.value[row]
    low = np.nanmin(np.where(np.isfinite(value), value, np.nan)) - 0.03
    edges = np.arange(low, low + 0.1, 0.002)
    left.hist(value[np.isfinite(value)], bins=edges, density=True, color="0.8", label="real, 70 readings")
    centres = SCALE.values()
    for name, model in {"P-Reg": models.p_reg, "NP-Reg": models.np_reg}.items():
        left.plot(centres, model.histogram(one)[:-1, 0] / SCALE.step_m, label=name, linewidth=1)
    left.set(xlim=(edges[0], edges[-1]), xlabel="reading [m]", ylabel="density [1/m]", title="one test state")
    left.legend(fontsize=8)
    for k, name in enumerate(("P-Reg", "NP-Reg")):
        right.plot(list(curves), [each[k] for each in curves.values()], "o-", label=name)
    right.set(xlabel="training poses", ylabel="histogram match [m]", title="risk on test poses", ylim=(0, None))
    right.legend(fontsize=8)
    save_figure(figure, path)
    return path
