# SPDX-License-Identifier: Apache-2.0
"""Tallavajhula 2018 §3.5.2, Figs. 3.18 to 3.20: localisation by registration in a corridor, by refining iterations.

A robot drives along an L-shaped corridor, 20 runs that start at slightly different places, and registers each scan to
the map in a Kalman filter (apps/registration.py). The number of iterations is varied: more are more exact, and later.
The hidden scanner plays reality; P-Reg and the Gaussian are the simulators.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.apps.registration import START_COVARIANCE, DriveTruth, Registration
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.planar.site import PlanarSite, scan_beams
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.planar.detection import simulators
from hedgerow.reproduce.planar.hidden_sensor import BEARING_RAD, HiddenSensor, HiddenWorld
from hedgerow.reproduce.risk_text import holds, risk_text
from hedgerow.reproduce.tables import markdown_table
from hedgerow.risk.measure import open_table
from hedgerow.risk.objectives import pooled
from hedgerow.risk.run import evaluate
from hedgerow.risk.score import RiskScores, score
from hedgerow.risk.sources import FunctionSource, Scene
from hedgerow.risk.table import DRAWN, RiskTable
from hedgerow.world.world import World

CORRIDOR = PlanarSite.from_polyline([[0, 0], [4.0, 0], [4.0, 4.0], [2.6, 4.0], [2.6, 1.4], [0, 1.4]])
PAPER_RISK = {"P-Reg": 0.008, "Gaussian": 0.014}
N_RUNS = 20
ITERATIONS = (1, 2, 4, 7, 12, 20, 35, 60, 100)
_SCAN_S = 0.2


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Run the filter in reality and on both simulators; `size` is the number of runs, 20 in the paper."""
    n_runs = size or N_RUNS
    truths = [drive(seed + number) for number in range(n_runs)]
    sensor = HiddenSensor()
    worlds = {name: make for name, make in simulators(sensor, seed).items() if name in PAPER_RISK}
    scenes = [f"{number:02d}" for number in range(n_runs)]
    hidden = partial(HiddenWorld, sensor=sensor)
    real = FunctionSource("real", scenes, _Make(tuple(truths), hidden, 1), role="real", is_random=False)
    again = FunctionSource("again", scenes, _Make(tuple(truths), hidden, 2), role="again", is_random=False)
    sources = [
        real,
        again,
        *(FunctionSource(name, scenes, _Make(tuple(truths), make)) for name, make in worlds.items()),
    ]
    app = Registration()
    table = open_table(app, sources, settings=1, seed=seed)
    table.settings[DRAWN] = [{"iterations": each} for each in ITERATIONS]
    evaluate(app, table, sources, seeds=(5, 6))
    scores = score(table, app)
    shown = {name: pooled(table.of(name), app.objectives["position"]) for name in ("real", *worlds)}
    used = {name: pooled(table.of(name), app.objectives["iterations"]) for name in ("real", *worlds)}
    say(", ".join(f"{name}: risk {each.risk:.4f} m" for name, each in scores.scores.items()))
    picture = _draw(folder / "planar-registration.png", shown, used, truths[0], table)
    text = "\n\n".join([risk_text(scores), _curves(shown, used), _verdict(scores, used)])
    return Outcome(text=text, pictures=(picture,))


@dataclass(frozen=True)
class _Make:
    truths: tuple[DriveTruth, ...]
    world: Callable[[Any], World]
    seed: int | None = None

    def __call__(self, name: str, seed: int) -> Scene:
        number = int(name)
        truth = self.truths[number]
        world = self.world(CORRIDOR.scene())
        key = (seed if self.seed is None else self.seed) * 1000 + number
        beams = scan_beams(truth.pose, BEARING_RAD, sweep=np.arange(len(truth.pose)), time_s=truth.time_s)
        return Scene(world.fire(beams, key), truth)


def drive(seed: int) -> DriveTruth:
    """Return one run around the corner: the same commands, another start and other slips for each seed."""
    random = np.random.default_rng(seed + 700)
    n = 44
    speed = np.full(n, 0.5)
    turn = np.zeros(n)
    turn[23:31] = np.pi / 2 / (8 * _SCAN_S)
    pose = np.zeros((n, 3))
    pose[0] = random.multivariate_normal((0.5, 0.7, 0.0), START_COVARIANCE)
    for i in range(1, n):
        x, y, heading = pose[i - 1]
        step, bend = speed[i - 1] * _SCAN_S, turn[i - 1] * _SCAN_S
        middle = heading + bend / 2
        pose[i] = (x + step * np.cos(middle), y + step * np.sin(middle), heading + bend + random.normal(0, 0.005))
    return DriveTruth(
        CORRIDOR.segments(), _SCAN_S * np.arange(n, dtype=np.float64), pose, speed, turn, np.array([0.5, 0.7, 0.0])
    )


def _curves(shown: dict[str, NDArray[np.float64]], used: dict[str, NDArray[np.float64]]) -> str:
    head = ("most iterations", *(f"error, {name} [m]" for name in shown), *(f"used, {name}" for name in used))
    rows = [
        (f"{most}", *(f"{each[k]:.4f}" for each in shown.values()), *(f"{each[k]:.1f}" for each in used.values()))
        for k, most in enumerate(ITERATIONS)
    ]
    return "Mean error of the position and iterations until convergence (Fig. 3.20):\n\n" + markdown_table(head, rows)


def _verdict(found: RiskScores, used: dict[str, NDArray[np.float64]]) -> str:
    risk = {name: each.risk for name, each in found.scores.items()}
    decided = "decided" if all(each.decided for each in found.differences) else "not decided"
    paper = ", ".join(f"{name} {risk}" for name, risk in PAPER_RISK.items())
    grows = {name: each[-1] > 1.3 * each[list(ITERATIONS).index(20)] for name, each in used.items()}
    return (
        f"The paper's risks: {paper} (norm of pose errors, not said of which units). Conclusions: P-Reg has the lower "
        f"risk: {holds(risk['P-Reg'] < risk['Gaussian'])}, {decided}. Iterations go on growing with their bound in "
        f"reality ({'yes' if grows['real'] else 'no'}) and with P-Reg ({'yes' if grows['P-Reg'] else 'no'}), not with "
        f"the Gaussian ({'yes' if grows['Gaussian'] else 'no'}): "
        f"{holds(grows['real'] and grows['P-Reg'] and not grows['Gaussian'])}."
    )


def _draw(
    path: Path,
    shown: dict[str, NDArray[np.float64]],
    used: dict[str, NDArray[np.float64]],
    truth: DriveTruth,
    table: RiskTable,
) -> Path:
    figure = new_figure(12, 3.8)
    left, middle, right = figure.subplots(1, 3)
    for segment in CORRIDOR.segments():
        left.plot(*segment.T, color="k", linewidth=1)
    left.plot(truth.pose[:, 0], truth.pose[:, 1], ".-", markersize=3)
    left.set(aspect="equal", title="corridor and path", xlabel="x [m]", ylabel="y [m]")
    for name in shown:
        middle.semilogx(ITERATIONS, shown[name], "o-", label=name, markersize=3)
        right.semilogx(ITERATIONS, used[name], "o-", label=name, markersize=3)
    middle.set(
        xlabel="most iterations", ylabel="mean error [m]", title="error when the estimate is there", ylim=(0, None)
    )
    right.set(
        xlabel="most iterations",
        ylabel="iterations used",
        title=f"until convergence, {len(table.of('real').scenes)} runs",
    )
    for axes in (middle, right):
        axes.legend(fontsize=8)
    save_figure(figure, path)
    return path
