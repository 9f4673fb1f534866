# SPDX-License-Identifier: Apache-2.0
"""PCD and PLY files: what plain readers find in ours, headers that lie, and places far from the points."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from plain_readers import plain_pcd, plain_ply

import hedgerow as hr
from hedgerow.errors import FileError, HedgerowWarning, InputError
from hedgerow.io import open_log, read_log, write_log

READERS = {"x.pcd": plain_pcd, "x.ply": plain_ply}


HERE: dict[str, Any] = {"scanner_m": [0, 0, 0]}


def refused(path, match, **options):
    with pytest.raises(FileError, match=match) as said:
        read_log(path, **options)
    text = str(said.value).replace(str(path), "x")
    assert len(text) < 300 and text.isprintable()


@pytest.mark.parametrize("name", READERS)
def test_plain_readers_find_every_column_and_the_writer_says_what_it_left_out(tmp_path, log_maker, name):
    log = log_maker(n_returns=3, arrays=("intensity", "label"))
    n_missed = int(np.count_nonzero(log.returns.first_m == np.inf))
    with pytest.warns(HedgerowWarning, match=f"{name}: {n_missed} of {len(log)} beams left out: they have no return"):
        write_log(log, tmp_path / name)
    found = READERS[name](tmp_path / name)
    hit = log.returns.hit
    pulse, slot = np.nonzero(hit)
    points = np.column_stack([found[axis] for axis in "xyz"])
    assert_allclose(points, log.points() + log.map_origin_m, rtol=0, atol=1e-8)
    viewpoints = np.column_stack([found[f"vp_{axis}"] for axis in "xyz"])
    assert_allclose(viewpoints, log.beams.origin_m[pulse] + log.map_origin_m, rtol=0, atol=1e-8)
    assert np.array_equal(found["intensity"].astype(np.float32), log.returns.intensity[hit])
    assert np.array_equal(found["label"], log.returns.label[hit])
    assert np.array_equal(found["ring"], log.beams.ring[pulse])
    assert np.array_equal(found["sweep"], log.beams.sweep[pulse])
    assert np.array_equal(found["return_number"], slot + 1)
    assert_allclose(found["time"], log.beams.time_ns[pulse] / 1e9, rtol=0, atol=3e-7)  # float64 seconds of today


HEADER = """# .PCD v0.7 - Point Cloud Data file format
VERSION 0.7
FIELDS x y z
SIZE 4 4 4
TYPE F F F
COUNT 1 1 1
WIDTH 2
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS 2
DATA binary
"""
BODY = np.arange(1, 7, dtype="<f4").tobytes()


def pcd(path, old="", new="", body=BODY):
    assert old in HEADER
    path.write_bytes(HEADER.replace(old, new).encode("latin-1") + body)
    return path


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("TYPE F F F", "TYPE 0 F F F", "not a PCD file, or damaged .FIELDS, SIZE, TYPE and COUNT are not equally many"),
        ("TYPE F F F", "TYPE 0 F F", "there is no type '04'; expected I, U or F"),
        ("TYPE F F F", "TYPE \x1b F F", "there is no type"),
        ("TYPE F F F\n", "", "no line TYPE in its header"),
        ("SIZE 4 4 4", "SIZE 4 4 3", "there is no type 'F3'"),
        ("SIZE 4 4 4", "SIZE 2 4 4", "there is no type 'F2'"),
        ("SIZE 4 4 4", "SIZE 4 4 -4", "SIZE is '-4'; expected a whole number from 1 to 8"),
        ("SIZE 4 4 4", "SIZE 4 4 " + "9" * 5000, "SIZE is '99999999999999999999'; expected"),
        ("SIZE 4 4 4", "SIZE", "SIZE is empty"),
        ("COUNT 1 1 1", "COUNT 1 1 999999999", "COUNT is '999999999'; expected a whole number"),
        ("COUNT 1 1 1", "COUNT 1 1 90000", "which [0-9]+ bytes cannot hold"),
        ("COUNT 1 1 1", "COUNT 1 1 0", "COUNT is '0'"),
        ("COUNT 1 1 1", "COUNT 1 1", "are not equally many"),
        ("FIELDS x y z", "FIELDS x y z i", "are not equally many"),
        ("FIELDS x y z", "FIELDS x y#a z", "FIELDS, SIZE and TYPE do not go together"),
        ("FIELDS x y z", "FIELDS x x z", "not a PCD file, or damaged"),
        ("FIELDS x y z", "FIELDS a\x07" + "b" * 1000 + " y z", "FIELDS, SIZE and TYPE do not go together"),
        ("WIDTH 2", "WIDTH 1e9", "WIDTH is '1e9'"),
        ("WIDTH 2", "WIDTH " + "9" * 30, "WIDTH is"),
        ("POINTS 2", "POINTS 999999999999", "999999999999 points, which [0-9]+ bytes cannot hold"),
        ("POINTS 2", "POINTS 3", "ends after 2 of 3 points"),
        ("POINTS 2", "POINTS ²", "POINTS is"),
        ("POINTS 2\n", "POINTS 2\nPOINTS 9\n", "'POINTS' in its header"),
        ("POINTS 2\n", "POINTS 2\nfields q\n", "'fields' in its header"),
        ("DATA binary", "DATA", "damaged"),
        ("DATA binary", "DATA zip\x1b", "DATA is 'zip"),
        ("DATA binary", "DATA binary_compressed", "its packed points are not the 2 of its header"),
        ("DATA binary\n", "", "no line DATA|in its header"),
    ],
)
def test_headers_of_pcd_files_that_lie_are_refused(tmp_path, old, new, match):
    assert len(read_log(pcd(tmp_path / "x.pcd"), **HERE)) == 2
    refused(pcd(tmp_path / "x.pcd", old, new), match, **HERE)


def test_packed_sizes_of_pcd_files_are_checked_before_memory_is_taken(tmp_path):
    for packed, unpacked in ((1, 2**32 - 1), (2**32 - 1, 24), (0, 0)):
        body = np.array([packed, unpacked], "<u4").tobytes() + BODY
        path = pcd(tmp_path / "x.pcd", "DATA binary", "DATA binary_compressed", body)
        refused(path, "its packed points are not the 2", **HERE)


PLY = """ply
format binary_little_endian 1.0
element vertex 2
property float x
property float y
property float z
end_header
"""


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("vertex 2", "vertex 999999999", "'element vertex 999999999' does not fit to its"),
        ("vertex 2", "vertex " + "9" * 5000, "'element vertex 9999"),
        ("vertex 2", "vertex -1", "'element vertex -1' does not fit"),
        ("vertex 2", "vertex ²", "does not fit"),
        ("vertex 2", "vertex 3", "ends after 2 of 3 points"),
        ("vertex 2", "vertex", "'element vertex' does not fit"),
        ("float z", "flot z\x1b", r"'property flot z\\x1b' is no property of numbers"),
        ("float z", "float", "'property float' is no property"),
        ("float z", "list uchar z", "'property list uchar z' is no property"),
        ("property float z\n", "", "not a PLY file|field 'z' is missing"),
        ("format binary_little_endian", "format ascii", "not a PLY file|field|holds"),
        (
            "end_header\n",
            "element face 150\nproperty list uint int i\nend_header\n",
            "more than its [0-9]* bytes can hold",
        ),
    ],
)
def test_headers_of_ply_files_that_lie_are_refused(tmp_path, old, new, match):
    path = tmp_path / "x.ply"
    path.write_bytes(PLY.encode() + BODY)
    assert len(read_log(path, **HERE)) == 2
    path.write_bytes(PLY.replace(old, new).encode("latin-1") + BODY)
    refused(path, match, **HERE)


WRONG = ["x", None, True, -1, 1e400, [], {}, [1, 2, "x"], 10**40]


@pytest.mark.parametrize("name", READERS)
def test_every_field_of_our_line_in_a_header_is_checked(tmp_path, log_maker, name):
    path = tmp_path / name
    write_log(log_maker(arrays=("intensity",)), path)
    head, mark, rest = path.read_bytes().partition(b"hedgerow ")
    line, _, rest = rest.partition(b"\n")
    good = json.loads(line)
    fine = {"sensor": ["x"], "max_range_m": [None], "metadata": [{}]}
    for field in good:
        for value in WRONG:
            if value in fine.get(field, []) or (field, value) == ("max_range_m", 10**40):
                continue
            path.write_bytes(head + mark + json.dumps(good | {field: value}).encode() + b"\n" + rest)
            named = "range limits" if (field, value) == ("min_range_m", 10**40) else field
            refused(path, rf"what Hedgerow noted there is damaged \({named}")
        left = {key: value for key, value in good.items() if key != field}
        path.write_bytes(head + mark + json.dumps(left).encode() + b"\n" + rest)
        if field != "n_per_pulse":
            refused(path, rf"damaged \({field}: missing")
    for text in ("", "{", "[]", "[" * 100_000, '{"a": "\\u001b' + "x" * 5000 + '"}', "9" * 5000):
        path.write_bytes(head + mark + text.encode() + b"\n" + rest)
        refused(path, "what Hedgerow noted there is damaged")


@pytest.mark.parametrize("name", READERS)
def test_metadata_that_no_header_can_hold_are_refused_when_writing(tmp_path, log_maker, name):
    log = log_maker()
    for metadata, said in (({"a": np.arange(3)}, "does not fit into JSON"), ({"a": "x" * 10**6}, "bytes, too many")):
        log.metadata.clear()
        log.metadata.update(metadata)
        with pytest.raises(InputError, match=f"metadata: .*{said}"):
            write_log(log, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", READERS)
def test_returns_per_pulse_of_a_header_are_held_against_the_memory(tmp_path, log_maker, name, monkeypatch):
    path = tmp_path / name
    write_log(log_maker(n_sweeps=1, per_sweep=2000, n_returns=2), path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"n_per_pulse": 2', b'"n_per_pulse": 255'))
    monkeypatch.setattr("hedgerow.io.source.free_memory_bytes", lambda: 5_000_000)
    refused(path, "is read whole, and would need")
    path.write_bytes(data)
    assert read_log(path).returns.range_m.shape[1] == 2


def test_places_far_from_the_points_are_named_with_the_points(tmp_path):
    path = tmp_path / "x.ply"
    points = np.array([[437_000, 5_280_000, 100], [437_010, 5_280_005, 101.0]], "<f8")  # UTM
    head = PLY.replace("float", "double")
    path.write_bytes(head.encode() + points.tobytes())
    said = r"scanner_m is at \(0, 0, 0\) m, 5,298 km from the point at \(437010, 5280005, 101\) m \(2 of 2 points are"
    refused(path, said, **HERE)
    assert len(read_log(path, scanner_m=[437_000, 5_280_000, 150])) == 2
    assert len(read_log(path, scanner_m=[437_000, 5_180_010, 150])) == 2  # 100 km less a little
    refused(path, r"scanner_m is at .* 1[0-9]{2} km from", scanner_m=[437_000, 5_170_000, 150])


def test_trajectory_and_viewpoints_far_from_the_points_are_named(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "x.pcd")
    data = open_log(tmp_path / "x.pcd").read().beams.time_ns
    far = hr.Trajectory.from_poses([int(data.min()) - 1, int(data.max()) + 1], [hr.Pose(), hr.Pose()])
    with pytest.raises(FileError, match=r"the trajectory is at \(0, 0, 0\) m, [0-9,]+ km from the point at \("):
        read_log(tmp_path / "x.pcd", trajectory=far)
    head = PLY.replace("end_header\n", "".join(f"property float vp_{axis}\n" for axis in "xyz") + "end_header\n")
    rows = np.array([[1, 0, 0, 0, 0, 0], [2, 0, 0, 3e12, 0, 0]], "<f4")
    (tmp_path / "x.ply").write_bytes(head.encode() + rows.tobytes())
    with pytest.raises(
        FileError, match=r"the viewpoint \(vp_x, vp_y, vp_z\) is at .*\(1 of 2 points are more than 100 km"
    ):
        read_log(tmp_path / "x.ply")


@pytest.mark.parametrize("field", ["intensity", "label", "ring", "return_number", "sweep", "time"])
def test_numbers_that_are_none_stop_nothing_and_warn_of_nothing(tmp_path, field):
    values = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 1e19, -1, 0.5, 70_000], "<f8")
    rows = np.column_stack([np.arange(1, 10), np.ones((9, 2)), values]).astype("<f8")
    head = PLY.replace("float", "double").replace("vertex 2", "vertex 9")
    head = head.replace("end_header", f"property double {field}\nend_header")
    (tmp_path / "x.ply").write_bytes(head.encode() + rows.tobytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hit = read_log(tmp_path / "x.ply", **HERE).returns.hit
    assert np.count_nonzero(hit) == (3 if field == "time" else 9)  # points without a time are left out
