# SPDX-License-Identifier: Apache-2.0
"""Tallavajhula 2018 Fig. 3.8: where regression over states must fail. A lidar looks at grass, and moves by centimetres.

At any one pose the readings of a bearing in grass have a distribution that can be learned. A few centimetres on, other
blades stand in the way and it is another one: nothing smooth leads from one to the other. Here it is a row of blades in
front of a wall: the nominal range, to the wall, is the same for all of them, so range and incidence say the same, and
the answers differ. The same models on a bare wall, moved by as much, are shown beside.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hedgerow.base.figure import new_figure, save_figure
from hedgerow.planar.nonparametric import NPReg
from hedgerow.planar.regression import Histograms, Observations, Scale, histogram_match
from hedgerow.planar.sensor_model import States
from hedgerow.planar.site import PlanarSite, nominal_states, scan_beams
from hedgerow.reproduce.experiment import Outcome, Print
from hedgerow.reproduce.tables import markdown_table

SCALE = Scale(high_m=3.0, step_m=0.005)
_WALL = [[2.0, -3.0], [2.0, 3.0]]
_BLADES = 140
_SPOT_RAD = 0.003
"""Standard deviation of a ray around its bearing: the width of the beam."""


def run(folder: Path, size: int | None = None, seed: int = 1, say: Print = print) -> Outcome:
    """Read grass and wall from poses a centimetre apart; `size` is readings at a pose."""
    n_each = size or 200
    random = np.random.default_rng(seed)
    sites = {"wall": PlanarSite.from_polyline(_WALL, closed=False), "grass": _grass(random)}
    shifts = np.arange(0.0, 0.31, 0.01)
    values = {name: np.stack([_read(site, y, n_each, random) for y in shifts]) for name, site in sites.items()}
    rows: list[tuple[str, ...]] = []
    for name, value in values.items():
        observed = Observations(shifts[:, None], value)
        table = Histograms(observed, SCALE).matrix.toarray()
        once_more = np.stack([_read(sites[name], y, n_each, random) for y in shifts])
        again = Histograms(Observations(shifts[:, None], once_more), SCALE).matrix.toarray()
        near = histogram_match(table[:, 1:], table[:, :-1], SCALE.step_m).mean()
        floor = histogram_match(table, again, SCALE.step_m).mean()
        rows.append((name, f"{100 * floor:.2f}", f"{100 * near:.2f}", f"{100 * _left_out(observed, table):.2f}"))
    say("; ".join(", ".join(row) for row in rows))
    text = (
        "Mean histogram match [cm] of readings at one bearing:\n\n"
        + markdown_table(
            ("", "same pose, read again", "pose 1 cm beside", "predicted by NP-Reg from all other poses"), rows
        )
        + "\n\nOn a wall the neighbour knows as much as the pose itself. In grass no model that smooths over poses "
        "can: a map of the blades, or of how often beams pass, is needed. That is what learned worlds are."
    )
    picture = _draw(folder / "planar-grass.png", values, shifts, sites["grass"])
    return Outcome(text=text, pictures=(picture,))


def _grass(random: np.random.Generator) -> PlanarSite:
    """Return a wall with blades 3 to 8 mm wide before it."""
    place = np.column_stack([random.uniform(0.8, 1.8, _BLADES), random.uniform(-0.7, 1.0, _BLADES)])
    half = random.uniform(0.0015, 0.004, _BLADES)
    ends = np.stack([place - np.stack([0 * half, half], axis=1), place + np.stack([0 * half, half], axis=1)], axis=1)
    blades = [{"kind": "obstacle", "points_m": each.tolist()} for each in ends]
    return PlanarSite.parse({"object": [{"points_m": _WALL}, *blades]}, "grass")


def _read(site: PlanarSite, y: float, n_each: int, random: np.random.Generator) -> NDArray[np.float64]:
    bearing = _SPOT_RAD * random.normal(size=n_each)
    states = nominal_states(site.scene(), scan_beams((0.0, y, 0.0), bearing), n_each, SCALE.high_m)
    return SCALE.round(states.feature[:, 0] + 0.005 * random.normal(size=n_each))


def _left_out(observed: Observations, table: NDArray[np.float64]) -> float:
    """Return the mean match of each pose with what NP-Reg says from the others; the best of some bandwidths."""
    best = np.inf
    for bandwidth in (0.005, 0.01, 0.02, 0.05, 0.15):
        total = 0.0
        for row in range(len(observed)):
            others = np.arange(len(observed)) != row
            model = NPReg(observed[others], SCALE, bandwidth=(bandwidth,))
            predicted = model.histogram(States(observed.state[[row]], observed.groups[[row]]))
            total += float(histogram_match(predicted, table[:, [row]], SCALE.step_m)[0])
        best = min(best, total / len(observed))
    return best


def _draw(path: Path, values: dict[str, NDArray[np.float64]], shifts: NDArray[np.float64], grass: PlanarSite) -> Path:
    figure = new_figure(12, 3.8)
    first, *others = figure.subplots(1, 3)
    for segment in grass.segments():
        first.plot(*segment.T, color="tab:green" if segment[0, 0] < 2 else "k", linewidth=2)
    for y in shifts[::10]:
        first.plot([0, 2], [y, y], color="tab:red", linewidth=0.6)
    first.set(title="blades before a wall, and beams", xlabel="x [m]", ylabel="y [m]", ylim=(-0.3, 0.6))
    for axes, (name, value) in zip(others, values.items(), strict=True):
        where = np.repeat(shifts, value.shape[1])
        axes.plot(100 * where, value.ravel(), ".", markersize=1, alpha=0.3)
        axes.set(title=f"readings, {name}", xlabel="pose [cm]", ylabel="reading [m]", ylim=(0.6, 2.2))
    save_figure(figure, path)
    return path
