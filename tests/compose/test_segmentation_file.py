# SPDX-License-Identifier: Apache-2.0
"""Segmentations in files: what is saved comes back, and what does not belong or is damaged is refused."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from plant_clouds import ground_points, log_of, shrub, tree

from hedgerow.compose.segment_file import load_segmentation, save_segmentation
from hedgerow.compose.segmentation import RETURNS, segment
from hedgerow.errors import FileError

KEY = b"hedgerow_segments"


@pytest.fixture(scope="module")
def site():
    rng = np.random.default_rng(3)
    hedge = [shrub(rng, x, -6, 1.8, 1.6) for x in np.arange(-8, 8.1, 0.9)]
    log = log_of(np.concatenate([ground_points(rng), tree(rng, 2, 3), *hedge]))
    return log, segment(log)


def test_what_is_saved_comes_back(site, tmp_path):
    log, found = site
    save_segmentation(tmp_path / "site.parquet", found.with_class(1, "other"))
    again = load_segmentation(tmp_path / "site.parquet", log)
    assert [each.id for each in again.objects] == [each.id for each in found.objects]
    assert again[1].class_name == "other"
    for mine, theirs in zip(found.objects[1:], again.objects[1:], strict=True):
        for name in (
            "class_name",
            "x_m",
            "y_m",
            "z_m",
            "yaw_rad",
            "length_m",
            "width_m",
            "height_m",
            "n_points",
            "cell_m",
        ):
            assert getattr(mine, name) == getattr(theirs, name)
        corners = [[] if each.polygon_m is None else each.polygon_m.tolist() for each in (mine, theirs)]
        assert corners[0] == corners[1]
    assert any(each.polygon_m is not None for each in again.objects)
    assert np.array_equal(again.object[RETURNS], found.object[RETURNS])
    assert np.array_equal(again.is_ground[RETURNS], found.is_ground[RETURNS])
    assert again.ground.z_m.tobytes() == found.ground.z_m.tobytes()
    assert np.array_equal(again.ground.known, found.ground.known)
    assert again.settings == found.settings


def test_a_file_of_another_log_is_refused(site, tmp_path):
    log, found = site
    save_segmentation(tmp_path / "site.parquet", found)
    with pytest.raises(FileError, match=r"belongs to log \([0-9,]+ points or elements\), and not to this log or world"):
        load_segmentation(tmp_path / "site.parquet", log[::2])
    moved = log_of(log.points() + np.array([0.01, 0.0, 0.0]))
    with pytest.raises(FileError, match="belongs to log"):
        load_segmentation(tmp_path / "site.parquet", moved)


def test_a_newer_file_is_refused(site, tmp_path):
    path = tmp_path / "site.parquet"
    save_segmentation(path, site[1])
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[KEY]) | {"version": 2, "hedgerow": "9.9"}
    pq.write_table(table.replace_schema_metadata({KEY: json.dumps(header).encode()}), path)
    with pytest.raises(FileError, match=r"written by Hedgerow 9\.9 .*install a newer Hedgerow"):
        load_segmentation(path)


def test_damaged_files_are_refused(site, tmp_path):
    path = tmp_path / "site.parquet"
    save_segmentation(path, site[1])
    whole = path.read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 0xFF
    (tmp_path / "flipped.parquet").write_bytes(bytes(flipped))
    for name in ("cut.parquet", "flipped.parquet"):
        with pytest.raises(FileError, match="damaged"):
            load_segmentation(tmp_path / name)


def test_other_files_are_refused(tmp_path):
    import pyarrow as pa

    pq.write_table(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(FileError, match="is no segmentation"):
        load_segmentation(tmp_path / "other.parquet")
    with pytest.raises(FileError, match="no such file"):
        load_segmentation(tmp_path / "missing.parquet")


def test_an_object_that_is_not_in_the_list_is_damage(site, tmp_path):
    path = tmp_path / "site.parquet"
    found = site[1]
    numbers = found.object[RETURNS].copy()
    numbers[0] = 77
    object.__setattr__(found, "object", {RETURNS: numbers})
    save_segmentation(path, found)
    with pytest.raises(FileError, match="names object 77"):
        load_segmentation(path)
