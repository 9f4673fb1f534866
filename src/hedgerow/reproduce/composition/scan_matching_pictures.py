# SPDX-License-Identifier: Apache-2.0
"""Pictures of scan matching in reality and in simulation: losses, estimated paths, J along parameters.

Losses of single settings are Fig. 4.27 of Tallavajhula 2018, paths Fig. 4.26. Reality is black, and each simulator has
one colour in all of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.apps.odometry import LostError
from hedgerow.apps.scan_matching import estimate
from hedgerow.apps.space import Setting, Space
from hedgerow.base.arrays import Array
from hedgerow.base.figure import new_figure, save_figure
from hedgerow.report.plots import REAL, line_styles, plain_axes
from hedgerow.reproduce.composition.scan_matching_places import Place
from hedgerow.simulate import replay

_UNITS = {"position": "m", "angle": "rad"}
_LABELS = {"position": "position error [m]", "angle": "angle error [rad]"}
_MEANINGS = {
    "voxel_m": "side of the voxels [m]",
    "distance_m": "correspondence distance [m]",
    "change": "least change of the error",
}


def draw_losses(path: Path, loss: Mapping[str, Mapping[str, Array]], real: Array, floor: Mapping[str, float]) -> None:
    """Draw |J simulated - J real| of every setting, a row for each simulator, a column for each objective.

    Args:
        path: of the picture.
        loss: by objective and simulator, (settings,).
        real: (settings,) real position error; the settings stand in its order.
        floor: by objective, mean loss of reality against itself.
    """
    order = np.argsort(real, kind="stable")
    names = list(next(iter(loss.values())))
    styles = line_styles(names)
    figure = new_figure(11, 1.5 * len(names) + 1.0)
    panels: Any = figure.subplots(len(names), len(loss), sharex=True, sharey="col", squeeze=False)
    for column, (objective, by_name) in enumerate(loss.items()):
        for row, name in enumerate(names):
            axes = panels[row, column]
            plain_axes(axes)
            values = by_name[name][order]
            axes.bar(np.arange(len(values)), values, width=0.85, color=styles[name]["color"])
            axes.axhline(floor[objective], color=REAL, linewidth=1, linestyle="--")
            title = f"{name}, {objective}: risk {np.nanmean(values):.2g} {_UNITS[objective]}"
            axes.set_title(title, fontsize="small", loc="left")
        panels[-1, column].set_xlabel("settings, by rising real position error")
        panels[0, column].set_xlim(-0.7, len(order) - 0.3)
        for row in range(len(names)):
            panels[row, column].set_ylabel(f"loss [{_UNITS[objective]}]", fontsize="small")
    figure.suptitle("|simulated - real| of every setting; dashed: mean of reality against itself", fontsize="medium")
    save_figure(figure, path)


def estimated_paths(place: Place, setting: Setting, seed: int) -> dict[str, Array]:
    """Return (K, 3) positions along a path: true, estimated from real sweeps and from those of each world.

    Paths begin at the true first pose; one that is lost has no positions.
    """
    poses = place.path_poses()
    logs = {"real": place.path} | {name: replay(each, place.path, seed=seed) for name, each in place.worlds.items()}
    found = {"true": poses.position_m}
    for name, log in logs.items():
        try:
            motions = estimate(log, poses, setting)
        except LostError:
            found[name] = np.zeros((0, 3))
            continue
        pose = poses.pose_at(int(poses.time_ns[0])).matrix()
        chain = [pose]
        for motion in motions:
            chain.append(chain[-1] @ motion)
        found[name] = np.array([each[:3, 3] for each in chain])
    return found


def draw_paths(path: Path, paths: Mapping[str, Mapping[str, Array]]) -> None:
    """Draw estimated paths from above, turned so that the true way goes to the right; a panel for each setting."""
    figure = new_figure(11, 2.6 * len(paths) + 0.6)
    panels: Any = figure.subplots(len(paths), 1, squeeze=False)[:, 0]
    names = [name for name in next(iter(paths.values())) if name not in ("true", "real")]
    styles = line_styles(names)
    for axes, (title, found) in zip(panels, paths.items(), strict=True):
        plain_axes(axes)
        turned = {name: _along_way(each, found["true"]) for name, each in found.items()}
        axes.plot(*turned["true"].T, color="0.6", linewidth=5, alpha=0.6, label="true")
        axes.plot(*turned["real"].T, color=REAL, linewidth=1.8, marker=".", label="real")
        for name in names:
            axes.plot(*turned[name].T, linewidth=1.3, marker=".", markersize=4, label=name, **styles[name])
        axes.set(title=title, xlabel="along the way [m]", ylabel="across, stretched [m]")
        axes.title.set_fontsize("medium")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize="small")
    save_figure(figure, path)


def _along_way(positions_m: Array, true_m: Array) -> Array:
    """Return (K, 2) positions along and across the line from the true start to the true end [m]."""
    ahead = (true_m[-1] - true_m[0])[:2]
    ahead = ahead / max(float(np.linalg.norm(ahead)), 1e-9)
    off = (positions_m - true_m[0])[:, :2]
    return np.stack([off @ ahead, off @ np.array([-ahead[1], ahead[0]])], axis=1)


def draw_along(path: Path, curves: Mapping[str, Mapping[str, Mapping[str, tuple[Array, Array]]]], space: Space) -> None:
    """Draw J along parameters that were varied one at a time.

    Args:
        path: of the picture.
        curves: by objective, parameter and source, reality first: values of the parameter, and J there.
        space: tells the default values.
    """
    parameters = list(next(iter(curves.values())))
    figure = new_figure(4 * len(parameters), 2.8 * len(curves) + 0.5)
    panels: Any = figure.subplots(len(curves), len(parameters), sharex="col", sharey="row", squeeze=False)
    for row, (objective, by_parameter) in enumerate(curves.items()):
        for column, (name, by_source) in enumerate(by_parameter.items()):
            axes = panels[row, column]
            plain_axes(axes)
            (real, (value, j)), *others = by_source.items()
            axes.plot(value, j, color=REAL, linewidth=2, marker="o", markersize=4, label=real)
            for (source, (at, each)), style in zip(others, line_styles([n for n, _ in others]).values(), strict=True):
                axes.plot(at, each, linewidth=1.3, marker="o", markersize=3, label=source, **style)
            axes.axvline(float(space.start()[name]), color="0.7", linewidth=0.8, linestyle=":")
            axes.set(xscale="log", yscale="log")
            _plain_ticks(axes.xaxis, few=name == "change")
            _plain_ticks(axes.yaxis)
            if row == len(curves) - 1:
                axes.set_xlabel(_MEANINGS.get(name, name))
        panels[row, 0].set_ylabel(f"mean {_LABELS[objective]}")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize="small")
    save_figure(figure, path)


def _plain_ticks(axis: Any, *, few: bool = False) -> None:
    """Label a logarithmic axis with plain numbers: 1, 2, 5, or with every second power of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(base=100.0 if few else 10.0, subs=(1.0,) if few else (1.0, 2.0, 5.0)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
