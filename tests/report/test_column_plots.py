# SPDX-License-Identifier: Apache-2.0
"""Plots of intensities, labels, elevations and distances to what was learned show the numbers of the comparison."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.base.randomness import normal, uniform
from hedgerow.metrics import compare
from hedgerow.report.column_plots import (
    by_learned_distance,
    intensity_by_band,
    intensity_distributions,
    labels_right,
    returns_by_elevation,
)
from hedgerow.report.plots import NARROW_IN
from hedgerow.world import World

RINGS, STEPS = 8, 180


class Painted(World):
    """Beams return at 20 m, one in five not; intensities and labels are drawn."""

    has_noise = True

    def returns(self, beams, shot):
        ranges = np.where(uniform(shot.seed, beams.pulse, 1) < 0.2, np.inf, 20.0)
        intensity = 0.5 + 0.1 * normal(shot.seed, beams.pulse, 2)
        label = np.where(uniform(shot.seed, beams.pulse, 4) < 0.9, 70, 50)
        return hr.Returns.from_arrays(ranges=ranges, intensities=intensity, labels=label)


def beams():
    elevation = np.repeat(np.radians(np.arange(RINGS) * 3.0 - 12), STEPS)
    azimuth = np.tile(np.radians(np.arange(STEPS) * 2.0), RINGS)
    direction = np.c_[np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    return hr.Beams.from_arrays(origins=(0, 0, 0), directions=direction, rings=np.repeat(np.arange(RINGS), STEPS))


@pytest.fixture(scope="module")
def scores():
    real = Painted().fire(beams(), seed=1, limits_m=(0, 60.0))
    learned = Painted().fire(beams(), seed=2, limits_m=(0, 60.0))
    return compare(real, {"world": Painted()}, floors=True, learned=learned)


def axes_of(figure):
    """The axes of a figure that must be there."""
    assert figure is not None
    return figure.axes


def lines(axes):
    return {line.get_label(): np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()}


@pytest.mark.parametrize("draw", [intensity_by_band, by_learned_distance])
def test_narrow_figures_stand_above_each_other(scores, draw):
    wide, narrow = draw(scores), draw(scores, NARROW_IN)
    assert wide.axes[0].get_position().y0 == pytest.approx(wide.axes[1].get_position().y0, abs=0.02)
    assert narrow.axes[0].get_position().y0 > narrow.axes[1].get_position().y0 + 0.2


def test_the_curve_of_returns_is_the_share_of_each_elevation(scores):
    [axes] = axes_of(returns_by_elevation(scores))
    drawn = lines(axes)
    table = scores["world"].to_dict()["returns_by_elevation"]["real"]
    shown = drawn["real"][np.isfinite(drawn["real"])]
    assert shown == pytest.approx(np.array(table["returned"]) / np.array(table["beams"]))
    assert {"real", "world", "climatology"} <= drawn.keys()
    centre = np.asarray(axes.get_lines()[0].get_xdata(), dtype=float)[np.isfinite(drawn["real"])]
    assert centre == pytest.approx(np.arange(RINGS) * 3.0 - 12, abs=1e-9)


def test_intensity_is_drawn_by_range_and_incidence(scores):
    left, right = axes_of(intensity_by_band(scores))
    assert [text.get_text() for text in left.get_xticklabels()] == ["20 to 30"]
    assert lines(left)["world"][0] == pytest.approx(scores["world"]["intensity_crps"])
    assert right.get_xlabel() == "incidence [degrees]"


def test_a_log_is_drawn_by_the_error_of_a_draw():
    real, other = (Painted().fire(beams(), seed=seed, limits_m=(0, 60.0)) for seed in (1, 2))
    scores = compare(real, other)
    left, _ = axes_of(intensity_by_band(scores))
    assert left.get_ylabel() == "RMSE of intensity, a draw"
    assert lines(left)["simulated"][0] == pytest.approx(scores["intensity_draw_rmse"])


def test_distributions_of_intensity_end_at_one(scores):
    [axes] = axes_of(intensity_distributions(scores))
    assert all(drawn[-1] == pytest.approx(1) for drawn in lines(axes).values())


def test_bars_are_the_shares_of_right_labels(scores):
    [axes] = axes_of(labels_right(scores))
    names = [text.get_text().split(" ")[0] for text in axes.get_yticklabels()]
    assert names == ["vegetation", "building"]
    found = scores["world"].histograms.labels
    widths = [bar.get_width() for bar in axes.containers[0]]
    assert widths == pytest.approx([found.drawn_right[label] / found.drawn_beams[label] for label in (70, 50)])


def test_hits_are_drawn_by_distance_to_what_was_learned(scores):
    left, right = axes_of(by_learned_distance(scores))
    assert lines(left)["world"][0] == pytest.approx(scores["world"]["hits_near_0"])
    assert lines(right)["world"][0] == pytest.approx(scores["world"]["crps_near_0_m"])


def test_what_is_not_known_is_not_drawn():
    real = hr.Log.from_arrays(origins=(0, 0, 0), directions=np.tile([[1.0, 0, 0]], (60, 1)), ranges=np.full(60, 9.0))
    scores = compare(real, real)
    plots = (intensity_by_band, intensity_distributions, labels_right, by_learned_distance, returns_by_elevation)
    assert [draw(scores) for draw in plots] == [None] * 5
