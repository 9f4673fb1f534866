# SPDX-License-Identifier: Apache-2.0
"""What the viewer shows, without a server: sweeps, thinning, errors, colours, densities, picking."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sessions import bush_world, fan, layer, session_of, wall_world

from hedgerow import Log
from hedgerow.errors import InputError
from hedgerow.view.web.colours import UNKNOWN, colour, label_colour, label_name, robust_limits, scale
from hedgerow.view.web.frame import Choice, gather_cloud, make_frame, thin
from hedgerow.view.web.panel import draw_legend
from hedgerow.view.web.session import Cache, Session, tell_apart

# ---- sweeps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "accumulate", "numbers"), [(0, 1, [3]), (2, 1, [9]), (2, 2, [5, 9]), (1, 9, [3, 5]), (3, 2, [9, 11])]
)
def test_the_window_ends_at_the_slider_and_reaches_back(position, accumulate, numbers):
    log = Log.from_arrays(
        origins=(0, 0, 0), directions=[[1, 0, 0]] * 4, ranges=[1, 2, 3, 4], sweeps=[3, 5, 9, 11], max_range_m=9
    )
    assert Session([layer(log)]).window(position, accumulate) == numbers


def test_a_frame_holds_the_points_of_its_sweeps_and_no_others():
    log = fan(n=50, sweeps=3, every=5)
    frame = make_frame(session_of(log), Choice(position=2, accumulate=2))
    [shown] = frame.shown
    assert_allclose(shown.cloud.point_m, log.select(sweep=[1, 2]).points(), atol=1e-6)  # float32 near 10 m
    assert set(shown.cloud.sweep.tolist()) == {1, 2}
    assert_array_equal(log.select(sweep=1).returns.hit[shown.cloud.row[shown.cloud.sweep == 1]], True)


def test_points_far_from_the_map_origin_keep_their_millimetres():
    log = fan(n=20, sweeps=1)
    far = Log.from_arrays(
        origins=log.beams.origin_m + np.array([500_000.0, 5_800_000.0, 0.0]), directions=log.beams.direction,
        ranges=log.returns.range_m, max_range_m=50,
    )  # fmt: skip
    session = Session([layer(far)], centre_m=np.array([500_000.0, 5_800_000.0, 0.0]))
    cloud = gather_cloud(session, 0, [0], "height", None)
    assert_allclose(cloud.point_m, log.points(), atol=1e-5)  # float64 steps by 1e-9 there, float32 by 0.5


def test_logs_of_different_map_origins_are_laid_over_each_other():
    here = fan(n=20, sweeps=1, map_origin_m=(100.0, 200.0, 0.0))
    there = fan(n=20, sweeps=1, map_origin_m=(101.0, 200.0, 0.0))
    session = Session(tell_apart([layer(here), layer(there)]), map_origin_m=here.map_origin_m)
    first, second = (gather_cloud(session, i, [0], "layer", None).point_m for i in (0, 1))
    assert_allclose(second - first, np.tile([1.0, 0, 0], (20, 1)), atol=1e-5)


def test_what_is_kept_is_made_once_and_the_longest_unused_goes_first():
    made = []

    def make(key):
        made.append(key)
        return [key] * 4

    cache = Cache(10, len)
    for key in ("a", "b", "a", "c", "a", "b"):  # c drives out b, the longest unused; then b comes again
        assert cache.get(key, lambda key=key: make(key)) == [key] * 4
    assert made == ["a", "b", "c", "b"]
    assert len(cache) == 2


# ---- thinning -------------------------------------------------------------------------------------------------


def test_no_more_points_are_drawn_than_allowed_and_the_same_beams_in_both_clouds():
    session = session_of(fan(n=5000, sweeps=2), fan(n=5000, sweeps=2, wall_x_m=12.0))
    frame = make_frame(session, Choice(accumulate=1, point_limit=3001))
    real, other = frame.shown
    assert frame.n_points == 10_000
    assert frame.n_drawn in (3000, 3001)  # pairs go together, so one may be missing
    assert_array_equal(real.cloud.pulse, other.cloud.pulse)


def test_thinning_is_even_over_rings_and_azimuths_and_drops_nothing_below_the_limit():
    session = session_of(fan(n=40_000, sweeps=1))
    [whole] = thin([gather_cloud(session, 0, [0], "ring", None)], 40_000)
    assert len(whole) == 40_000
    [some] = thin([whole], 10_000)
    assert len(some) == 10_000
    # 2500 of each ring expected, variance 10000 * 0.25 * 0.75 * 0.75: five sigma, once in a million.
    assert_allclose(np.bincount(some.value.astype(int)), 2500, atol=5 * np.sqrt(1406))
    assert_allclose(np.bincount(some.row // 10_000), 2500, atol=5 * np.sqrt(1406))  # and of each quarter of the fan


# ---- range error and likelihood -------------------------------------------------------------------------------


def test_the_range_error_is_simulated_minus_real_along_the_beam():
    real, simulated = fan(n=101, sweeps=1, every=7), fan(n=101, sweeps=1, wall_x_m=12.0)
    error = session_of(real, simulated).range_error(1, 0)
    hit = real.returns.hit
    assert error is not None
    assert_allclose(error[hit], 0.2 * real.returns.range_m[hit], rtol=1e-5)  # 12 / 10 of the range; float32 in
    assert np.isnan(error[~hit]).all()
    assert (error[hit] > 0).all()  # too far is positive


def test_both_clouds_are_coloured_by_the_error_of_their_beam():
    session = session_of(fan(n=101, sweeps=1), fan(n=101, sweeps=1, wall_x_m=9.0))
    choice = Choice(quantity="range error", compared_with=1)
    frame = make_frame(session, choice)
    real, other = (each.cloud for each in frame.shown)
    assert_array_equal(real.value, other.value)
    assert (real.value < 0).all()
    low, high = choice.limits["range error"]
    assert low == -high


def test_other_beams_are_not_compared_but_shown_with_a_note():
    frame = make_frame(session_of(fan(n=50), fan(n=60)), Choice(quantity="range error", compared_with=1))
    assert [len(each.cloud) for each in frame.shown] == [50, 60]
    [note] = frame.notes
    assert "log1" in note and "60 beams" in note
    assert_array_equal(frame.shown[0].colour, np.tile(UNKNOWN, (50, 1)))


def test_a_single_log_has_no_error_and_says_what_is_missing():
    frame = make_frame(session_of(fan()), Choice(quantity="range error"))
    assert "needs a simulation" in frame.notes[0]


def test_the_beams_of_the_log_are_fired_at_the_world_with_the_seed():
    real, world = fan(n=300, every=9), wall_world(x_m=11.0, permeability=0.5)
    session = session_of(real, world=world, seed=5)
    expected = world.fire(real.select(sweep=1).beams, seed=5)
    found = session.sweep(1, 1)
    assert found is not None
    assert found.returns.equal(expected.returns)
    other = session_of(real, world=world, seed=6).sweep(1, 1)
    assert other is not None
    assert not other.returns.equal(expected.returns)


def test_the_likelihood_is_that_of_the_real_range_in_the_world():
    real, world = fan(n=40, sweeps=1), bush_world()
    session = session_of(real, world=world)
    expected = world.log_likelihood(real)
    assert_array_equal(session.log_likelihood(1, 0), expected)
    frame = make_frame(session, Choice(quantity="log-likelihood", compared_with=1))
    assert_array_equal(frame.shown[0].cloud.value, expected)
    with pytest.raises(InputError, match="log1"):
        session_of(real, real).log_likelihood(1, 0)


def test_simulated_returns_beyond_the_limits_of_the_log_are_not_shown():
    real = fan(n=30, sweeps=1, wall_x_m=5.0, max_range_m=8.0)
    session = session_of(real, world=wall_world(x_m=20.0))
    found = session.sweep(1, 0)
    assert found is not None
    assert not found.returns.hit.any()
    assert found.max_range_m == 8.0


def test_later_returns_of_a_pulse_have_no_beam_error():
    beams = {"origins": (0, 0, 0), "directions": [[1, 0, 0], [0, 1, 0]], "max_range_m": 50}
    session = session_of(
        Log.from_arrays(**beams, ranges=[[3.0, 5.0], [4.0, np.inf]]),
        Log.from_arrays(**beams, ranges=[[3.5, 9.0], [4.0, np.inf]]),
    )
    assert_array_equal(gather_cloud(session, 0, [0], "range error", 1).value, [0.5, np.nan, 0.0])


# ---- colours --------------------------------------------------------------------------------------------------


def test_colours_run_from_one_end_of_the_bar_to_the_other_and_beyond_stay_there():
    values = np.array([-np.inf, 2.0, 3.0, 4.0, 99.0, np.nan])
    found = colour("height", values, (2.0, 4.0), (1, 2, 3))
    ends = scale("height", np.array([0.0, 0.5, 1.0]))
    assert_array_equal(found, [ends[0], ends[0], ends[1], ends[2], ends[2], UNKNOWN])


def test_no_error_is_grey_too_far_is_red_and_too_near_blue():
    near, none, far = scale("range error", np.array([0.0, 0.5, 1.0])).astype(int)
    assert near[2] > near[0] + 100 and far[0] > far[2] + 100
    assert np.ptp(none) < 5


def test_limits_are_percentiles_and_errors_are_symmetric():
    values = np.append(np.arange(101.0), [np.nan, np.inf])
    assert robust_limits("height", values) == (2.0, 98.0)
    assert robust_limits("ring", values) == (0.0, 100.0)
    assert_allclose(robust_limits("range error", values - 50), (-3 * 1.4826 * 25, 3 * 1.4826 * 25))
    assert robust_limits("intensity", np.full(3, 7.0)) == (7.0, 7.001)
    assert robust_limits("range error", np.array([np.nan])) == (-1.0, 1.0)


def test_limits_stay_while_sweeps_go_by_until_they_are_dropped():
    session, choice = session_of(fan(n=100, sweeps=2)), Choice(quantity="intensity")
    make_frame(session, choice)
    first = choice.limits["intensity"]
    choice.position = 1
    assert make_frame(session, choice).legend.limits == first
    choice.limits.clear()
    limits = make_frame(session, choice).legend.limits
    assert limits is not None
    assert limits[0] > first[1]


def test_labels_differ_and_the_legend_names_those_shown():
    labels = [1, 10, 30, 40, 44, 48, 50, 51, 52, 70, 71, 72, 80, 81]  # SemanticKITTI's
    colours = np.array([label_colour(label) for label in labels], dtype=float)
    apart = np.linalg.norm(colours[:, None] - colours[None], axis=2) + 1e3 * np.eye(len(labels))
    assert apart.min() > 30  # of 255
    legend = make_frame(session_of(fan(n=10, sweeps=2)), Choice(accumulate=2, position=1, quantity="label")).legend
    assert legend.entries == (("50 building", label_colour(50)), ("51 fence", label_colour(51)))


def test_plants_are_green_ground_is_brown_and_labels_without_a_name_differ():
    for label in (70, 101, 102, 103, 104, 3, 4, 5):
        r, g, b = label_colour(label)
        assert g > r and g > b, label_name(label)
    for label in (72, 111, 2, 71):
        r, g, b = label_colour(label)
        assert r > g > b, label_name(label)
    assert label_colour(0) == UNKNOWN
    assert label_name(700) == "700"
    assert len({label_colour(label) for label in range(300, 400)}) == 100


def test_layers_keep_their_own_colour_and_move_apart():
    session = session_of(fan(n=10), fan(n=10), fan(n=10))
    frame = make_frame(session, Choice(quantity="layer", hidden={1}, spacing_m=30.0), np.array([0.0, 1.0, 0.0]))
    assert [each.layer for each in frame.shown] == [0, 2]
    assert_array_equal(frame.shown[1].shift_m, [0.0, 60.0, 0.0])
    assert_array_equal(frame.shown[1].colour[0], session.layers[2].colour)
    assert [name for name, _ in frame.legend.entries] == ["log0", "log2"]


def test_two_layers_of_one_name_are_numbered():
    log = fan(n=5)
    assert [each.name for each in tell_apart([layer(log, "a"), layer(log, "b"), layer(log, "a")])] == [
        "a (1)", "b", "a (2)",
    ]  # fmt: skip


def test_points_have_the_colours_of_the_camera_where_the_log_has_them():
    rgb = np.random.default_rng(1).integers(0, 256, (20, 3))
    session = session_of(fan(n=10, sweeps=2, colours=rgb), fan(n=10, sweeps=2))
    frame = make_frame(session, Choice(accumulate=2, position=1, quantity="colour"))
    assert frame.shown[0].colour.tolist() == rgb.tolist()
    assert (frame.shown[1].colour == UNKNOWN).all()  # this log has none
    assert frame.legend.entries == (("as the camera saw it", UNKNOWN),)
    plain = make_frame(session_of(fan(n=10, sweeps=1)), Choice(quantity="colour"))
    assert plain.legend.entries == (("no log here has colours", UNKNOWN),)
    assert draw_legend(plain.legend).shape[2] == 4
