# SPDX-License-Identifier: Apache-2.0
"""The plots show the numbers of the comparison."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

import hedgerow as hr
from hedgerow.base.figure import save_figure
from hedgerow.metrics import compare
from hedgerow.metrics.bearing import BearingHistogram, Directions
from hedgerow.report.plots import (
    Window,
    bearing_histograms,
    bearing_image,
    busiest_window,
    likelihood_histograms,
    line_styles,
    range_histograms,
)
from hedgerow.report.sweep_plots import (
    ABOVE_M,
    BEHIND_M,
    DOWN,
    project,
    range_images,
    sweeps_from_above,
    sweeps_in_perspective,
)

DIRECTIONS = Directions(0.09)


def histogram_of(azimuth_deg, range_m, ring: ArrayLike = 0):
    azimuth = np.radians(azimuth_deg)
    vectors = np.c_[np.cos(azimuth), np.sin(azimuth), np.zeros(len(azimuth))]
    beams = hr.Beams.from_arrays(origins=(0, 0, 0), directions=vectors, rings=ring)
    histogram = BearingHistogram(DIRECTIONS, 0.002)
    histogram.add(DIRECTIONS.of(beams), np.asarray(range_m, dtype=np.float32))
    return histogram


def ring_log(ranges, n_rings=4):
    n = len(ranges)
    azimuth, elevation = np.linspace(-1, 1, n), np.radians(np.arange(n) % n_rings * 2.0)
    vectors = np.c_[np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)]
    return hr.Log.from_arrays(
        origins=(0, 0, 0), directions=vectors, ranges=ranges, rings=np.arange(n) % n_rings, max_range_m=90
    )


def test_the_image_counts_each_beam_in_its_pixel():
    histogram = histogram_of([0.0, 0.0, 0.09, 0.9, 0.0], [8.0, 8.0, 8.004, 8.0, np.inf])
    image = bearing_image(histogram, Window(0, (0.0, 0.45), (7.998, 8.010)))
    expected = np.zeros((6, 5), dtype=int)
    expected[1, 0], expected[3, 1] = 2, 1  # the beams outside, and the one without return, are not in it
    np.testing.assert_array_equal(image, expected)


def test_other_rings_are_left_out_unless_all_are_asked_for():
    histogram = histogram_of([0.0, 0.0], [8.0, 8.0], ring=np.array([1, 2]))
    window = (-0.09, 0.18), (7.9, 8.1)
    assert bearing_image(histogram, Window(1, *window)).sum() == 1
    assert bearing_image(histogram, Window(None, *window)).sum() == 2


def test_the_window_lies_where_most_returns_are():
    rng = np.random.default_rng(0)
    azimuth = np.concatenate([rng.uniform(-180, 180, 300), rng.uniform(40, 44, 500)])
    ranges = np.concatenate([np.full(300, 30.0), rng.normal(8, 0.01, 500)])
    window = busiest_window(histogram_of(azimuth, ranges, ring=7))
    assert window.ring == 7
    assert 38.9 < window.bearing_deg[0] <= 40.2 and window.bearing_deg[1] - window.bearing_deg[0] == pytest.approx(5)
    assert window.range_m[0] < 8 < window.range_m[1]
    assert window.range_m[1] - window.range_m[0] >= 0.6 - 1e-9


def test_a_histogram_without_returns_has_no_window():
    with pytest.raises(hr.InputError, match="nothing returned"):
        busiest_window(histogram_of([0.0], [np.inf]))


def test_range_plot_shows_the_shares_of_all_beams():
    real = ring_log([5.05, 5.05, 7.05, np.inf])
    figure = range_histograms(compare(real, real))
    filled, outline, simulated = figure.axes[0].patches
    for patch in (filled, outline, simulated):
        values, edges, _ = patch.get_data()
        assert values[50] == 0.5 and values[70] == 0.25 and values.sum() == 0.75
        assert edges[50] == pytest.approx(5.0)
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["real, 25.0% without return", "simulated, 25.0%"]


def test_likelihood_plot_has_logarithmic_axes_and_all_beams():
    class Certain(hr.World):
        has_likelihood = True

        def returns(self, beams, shot):
            return hr.Returns.from_arrays(ranges=np.full(len(beams), 5.0))

        def log_likelihood(self, log, **more):
            return np.zeros(len(log))

    real = ring_log([5.0] * 8)
    figure = likelihood_histograms(compare(real, {"certain": Certain(), "log": real}))
    assert figure is not None
    [axes] = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    [line] = axes.patches
    assert line.get_data()[0].sum() == 8
    assert likelihood_histograms(compare(real, real)) is None


def test_every_picture_can_be_written(tmp_path):
    rng = np.random.default_rng(1)
    logs = {name: ring_log(rng.uniform(3, 30, 400)) for name in ("real", "a", "b", "c", "d")}
    histograms = {name: histogram_of(rng.uniform(-2, 2, 200), rng.normal(8, 0.1, 200)) for name in logs}
    real = histograms.pop("real")
    figures = [
        sweeps_from_above(logs),
        range_images(logs),
        sweeps_in_perspective(logs),
        sweeps_in_perspective(logs, 4.4),
        bearing_histograms(real, histograms, busiest_window(real)),
    ]
    for number, figure in enumerate(figures):
        save_figure(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 10_000


def test_a_sensor_of_one_ring_has_no_range_image():
    assert range_images({"real": ring_log([5.0, 6.0], n_rings=1)}) is None


def test_fourteen_simulations_are_told_apart():
    styles = line_styles(str(k) for k in range(14))
    assert len({(style["color"], style["linestyle"]) for style in styles.values()}) == 14


def moving_log(yaw_rad, shift_m=(0.0, 0.0, 0.0)):
    forward = np.array([np.cos(yaw_rad), np.sin(yaw_rad), 0.0])
    origins = np.array(shift_m) + np.outer([-0.5, 0.5], forward)
    return hr.Log.from_arrays(origins=origins, directions=[forward, forward], ranges=[5, 5], max_range_m=90)


def test_the_camera_sees_left_on_the_left_and_what_it_looks_at_in_the_middle():
    ahead_m = ABOVE_M / DOWN - BEHIND_M  # where the camera's axis comes down to the sensor's height
    points = np.array([[ahead_m, 0, 0], [20.0, 3, 0], [20.0, -3, 0], [-20.0, 0, 0]])
    across, up, depth_m, height_m = project(points, moving_log(0.0))
    assert len(across) == 3  # one is behind it
    np.testing.assert_array_equal(np.sort(depth_m)[::-1], depth_m)  # the farthest first
    middle = np.argmin(np.abs(across))
    assert up[middle] == pytest.approx(0, abs=1e-12)
    assert depth_m[middle] == pytest.approx(np.hypot(ahead_m + BEHIND_M, ABOVE_M))
    assert sorted(np.sign(across)) == [-1, 0, 1] and height_m.tolist() == [0, 0, 0]


def test_the_picture_turns_with_the_way_of_the_sensor():
    points = np.random.default_rng(2).uniform(-30, 30, (50, 3))
    yaw, shift = 0.7, np.array([100.0, -50.0, 3.0])
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0], [np.sin(yaw), np.cos(yaw), 0], [0, 0, 1]])
    expected = project(points, moving_log(0.0))[:3]
    found = project(points @ turn.T + shift, moving_log(yaw, shift))[:3]
    np.testing.assert_allclose(found, expected, atol=1e-9)
