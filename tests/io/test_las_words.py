# SPDX-License-Identifier: Apache-2.0
"""What our LAS files say to others, by a reader of our own that knows the specification alone; classes both ways."""

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import laspy
import numpy as np
import pytest
from las_parser import parse_las
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.base.labels import LABELS
from hedgerow.errors import HedgerowWarning
from hedgerow.io import open_sink, read_log, write_log
from hedgerow.io.points import las_classes
from hedgerow.io.points.las_classes import heights_above, to_codes, to_labels

OLD = Path(__file__).parents[1] / "data" / "saved_2026_11" / "drive.las"


def changed(log, *, origin_m=None, direction=None, time_ns=None, **returns):
    """Return a log with some arrays replaced."""
    beams = {"origin_m": origin_m, "direction": direction, "time_ns": time_ns}
    kept = {"range_m": log.returns.range_m, "intensity": log.returns.intensity, "label": log.returns.label}
    columns = log.beams.columns() | {name: array for name, array in beams.items() if array is not None}
    return hr.Log(hr.Beams(**columns), hr.Returns(**kept | returns), log.sensor, 0.5, 60.0, log.map_origin_m, {})


def ground_and(label, heights_m):
    """Return a log of one sweep from 10 m above flat ground: ground below, and returns of a label above it."""
    n = 9
    xy = np.stack(np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]), axis=-1).reshape(-1, 2)
    points = np.concatenate([np.column_stack([xy, np.zeros(n)]), [[0.2 * k, 0.1, z] for k, z in enumerate(heights_m)]])
    along = points - [0, 0, 10]
    ranges = np.linalg.norm(along, axis=1)
    labels = np.concatenate([np.full(n, 72), np.full(len(heights_m), label)])
    return hr.Log.from_arrays(
        origins=[0, 0, 10], directions=along / ranges[:, None], ranges=ranges, labels=labels, max_range_m=60
    )


def test_an_independent_reader_finds_what_was_written(tmp_path, log_maker):
    log = log_maker(n_returns=3, arrays=("intensity", "label"))
    with pytest.warns(HedgerowWarning, match=r"x.las: 33 of 120 beams left out: they have no return"):
        write_log(log, tmp_path / "x.las")
    las, hit = parse_las(tmp_path / "x.las"), log.returns.hit
    pulse, slot = np.nonzero(hit)
    assert las.n_points == np.count_nonzero(hit) and len(log) - len(np.unique(pulse)) == 33
    assert las.by_return[:3] == tuple(np.count_nonzero(hit, axis=0))
    assert_allclose(las.xyz, log.points() + log.map_origin_m, atol=0.0006)  # a millimetre is a step
    assert np.array_equal(las.return_number, slot + 1)
    assert np.array_equal(las.number_of_returns, hit.sum(axis=1)[pulse])
    for name in ("ring", "sweep"):
        assert np.array_equal(las.points[name], getattr(log.beams, name)[pulse])
    assert np.array_equal(las.points["label"], log.returns.label[hit])
    scale = json.loads(las.records["hedgerow", 1])["intensity_scale"]
    assert scale == 65535
    assert_allclose(las.points["intensity"] / scale, log.returns.intensity[hit], atol=0.5 / scale + 1e-7)
    # Adjusted standard GPS time: a billion seconds and 18 leap seconds, from 6 January 1980 on.
    assert_allclose(las.points["gps_time"] + 1_000_000_000 + 315_964_800 - 18, log.beams.time_s[pulse], atol=3e-7)
    assert_allclose(
        np.stack([las.points[f"vp_{axis}"] for axis in "xyz"], axis=1),
        log.beams.origin_m[pulse] + log.map_origin_m,
        atol=1e-8,
    )
    assert las.encoding == 0b10001  # standard time, and WKT as points of format 6 need
    assert set(las.points["source"]) == {1}


def test_second_returns_survive_also_beyond_the_fifteenth(tmp_path, log_maker):
    log = log_maker(n_sweeps=1, per_sweep=8, n_returns=20)
    ranges = np.tile(np.linspace(1, 50, 20, dtype=np.float32), (8, 1))
    ranges[3, 4:] = np.inf
    log = changed(log, range_m=ranges)
    with pytest.warns(HedgerowWarning, match=r"x.las: 35 returns beyond the 15th of their pulse have its number"):
        write_log(log, tmp_path / "x.las")
    las = parse_las(tmp_path / "x.las")
    assert las.return_number.max() == las.number_of_returns.max() == 15
    assert_allclose(read_log(tmp_path / "x.las").returns.range_m, ranges, atol=0.002)


def test_returns_at_the_range_limits_survive_the_rounding(tmp_path, log_maker):
    log = log_maker(n_sweeps=1, per_sweep=400)
    limits = np.resize(np.array([0.5, 60], np.float32), 400)
    log = changed(log, range_m=limits)
    write_log(log, tmp_path / "x.las")
    assert_allclose(read_log(tmp_path / "x.las").returns.range_m, limits, atol=0.001)  # a millimetre is a step


def test_a_log_without_intensity_and_labels_has_none_when_read_again(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "x.las")
    assert set(parse_las(tmp_path / "x.las").points["classification"]) == {las_classes.NEVER_CLASSIFIED}
    again = read_log(tmp_path / "x.las")
    assert again.returns.intensity is None and again.returns.label is None


@pytest.mark.parametrize("name", ["x.las", "x.laz"])
def test_the_same_log_gives_the_same_bytes_on_any_day(tmp_path, log_maker, monkeypatch, name):
    class Tomorrow(date):
        @classmethod
        def today(cls):
            return cls(2031, 2, 3)

    log = log_maker(n_returns=2, arrays=("intensity", "label"))
    write_log(log, tmp_path / name)
    first = (tmp_path / name).read_bytes()
    monkeypatch.setattr(laspy.header, "date", Tomorrow)
    write_log(log, tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_settings_too_long_for_a_record_go_behind_the_points(tmp_path, log_maker):
    log = log_maker(arrays=("label",))
    log.metadata["long"] = "x" * 100_000
    for name in ("x.las", "x.laz"):
        write_log(log, tmp_path / name)
        again = read_log(tmp_path / name)
        assert again.metadata["long"] == log.metadata["long"] and again.sensor == "test"
        assert again.returns.label is not None
        assert np.array_equal(again.returns.label, log.returns.label[log.returns.hit])


def test_scan_angle_is_from_straight_down_and_positive_to_the_right(tmp_path, log_maker):
    log = log_maker(n_sweeps=1, per_sweep=4)
    down, right, left, up = [0, 0, -1.0], [0, -1.0, 0], [0, 0.6, -0.8], [0, 0, 1.0]
    # Eastwards, a metre in the sweep: right is south.
    log = changed(
        log,
        origin_m=np.array([[0, 0, 1], [0.3, 0, 1], [0.6, 0, 1], [1, 0, 1.0]]),
        direction=np.array([down, right, left, up], np.float32),
        range_m=np.full(4, 5, np.float32),
    )
    write_log(log, tmp_path / "x.las")
    expected_deg = np.array([0, 90, -np.degrees(np.arccos(0.8)), 180])
    assert_allclose(parse_las(tmp_path / "x.las").points["scan_angle"] * 0.006, expected_deg, atol=0.003)
    write_log(changed(log, origin_m=np.zeros((4, 3))), tmp_path / "x.las")  # it stood still
    assert_allclose(parse_las(tmp_path / "x.las").points["scan_angle"] * 0.006, np.abs(expected_deg), atol=0.003)


def test_every_label_has_a_class_in_the_words_of_the_format():
    code = {
        name: int(to_codes(np.array([label.number], np.uint16), np.zeros((1, 3)))[0]) for name, label in LABELS.items()
    }
    assert {name for name, each in code.items() if each == las_classes.UNCLASSIFIED} == {"unlabelled"}
    for name in ("terrain", "ground", "trail", "rock", "sidewalk", "other-ground"):
        assert code[name] == 2
    for name in ("vegetation", "grass", "leaves", "needles", "shrub", "branch", "trunk"):
        assert code[name] == 5  # high, since nothing tells where the ground is
    assert (code["building"], code["road"], code["parking"]) == (6, 11, 11)
    assert all(code[name] >= 64 for name in ("car", "truck", "person", "pole", "fence", "traffic-sign", "log"))
    assert to_codes(np.array([9999, 1, 252, 255], np.uint16), np.zeros((4, 3))).tolist() == [1, 7, 64, 65]


def test_classes_of_others_become_our_labels():
    code = np.arange(256).astype(np.uint8)
    label = dict(zip(code.tolist(), to_labels(code).tolist(), strict=True))
    assert (label[0], label[1], label[2], label[6], label[11]) == (0, 0, 72, 50, 40)
    assert [label[each] for each in (3, 4, 5)] == [70, 70, 70]
    assert label[7] == label[18] == 1  # noise is SemanticKITTI's outlier
    assert [label[each] for each in (9, 12, 63, 64, 255)] == [0, 0, 0, 0, 0]


def test_what_ours_and_theirs_both_name_survives_both_ways():
    number = np.array([LABELS[name].number for name in ("terrain", "vegetation", "building", "road")], np.uint16)
    assert np.array_equal(to_labels(to_codes(number, np.zeros((4, 3)))), number)


def test_plants_are_low_medium_or_high_above_the_ground_of_their_sweep(tmp_path):
    write_log(ground_and(103, [0.2, 0.49, 0.51, 1.9, 2.1, 8.0]), tmp_path / "x.las")
    las = parse_las(tmp_path / "x.las")
    assert las.points["classification"].tolist() == [2] * 9 + [3, 3, 4, 4, 5, 5]
    assert set(las.points["label"][9:]) == {103}
    log = ground_and(103, [0.2])[9:]  # no ground in sight
    write_log(log, tmp_path / "x.las")
    assert parse_las(tmp_path / "x.las").points["classification"].tolist() == [5]


def test_height_above_ground_follows_a_slope_and_is_unknown_far_from_it():
    east, north = np.meshgrid(np.arange(0.05, 20, 0.1), np.arange(0.05, 20, 0.1))
    ground = np.stack([east, north, 0.2 * east], axis=-1).reshape(-1, 3)
    points = np.array([[3.5, 4.5, 0.7 + 1.5], [12.2, 4.1, 12.2 * 0.2 + 0.4], [40, 10, 9.0]])
    height_m = heights_above(points, ground)
    assert_allclose(height_m[:2], [1.5, 0.4], atol=0.11)  # half a square up the slope
    assert np.isnan(height_m[2])


def test_classes_do_not_depend_on_how_sweeps_are_appended(tmp_path):
    sweeps = [ground_and(70, [1.0]), ground_and(70, [1.0])[9:]]
    beams = replace(sweeps[1].beams, sweep=np.ones(1, np.int32), pulse=np.array([100]))
    both = [sweeps[0], hr.Log(beams, sweeps[1].returns, max_range_m=60)]
    write_log(hr.Log.concatenate(both), tmp_path / "x.las")
    with open_sink(tmp_path / "y.las") as sink:
        for each in both:
            sink.append(each)
    found = parse_las(tmp_path / "x.las").points["classification"].tolist()
    assert found == [2] * 9 + [4, 5]  # the second sweep saw no ground
    assert parse_las(tmp_path / "y.las").points["classification"].tolist() == found


def test_files_from_before_the_classes_were_asprs_still_read_right():
    raw = parse_las(OLD)
    assert json.loads(raw.records["hedgerow", 1]).get("las_record") is None
    log = read_log(OLD)
    hit = log.returns.hit
    assert log.returns.label is not None and log.returns.intensity is not None
    numbers = np.resize([72, 70, 10, 50, 101, 111, 18, 300, 0], 20)
    assert np.array_equal(log.returns.label[hit], numbers)
    assert np.array_equal(raw.points["classification"], np.where(numbers < 256, numbers, 0))
    assert log.returns.intensity[hit].sum(dtype=np.float64) == pytest.approx(11.277485370635986)


def test_an_old_file_without_the_extra_label_has_its_labels_in_the_class(tmp_path):
    las = laspy.read(OLD)
    las.remove_extra_dim("label")
    las.write(tmp_path / "x.las")
    log = read_log(tmp_path / "x.las")
    assert log.returns.label is not None
    expected = np.resize([72, 70, 10, 50, 101, 111, 18, 0, 0], 20)
    assert np.array_equal(log.returns.label[log.returns.hit], expected)
