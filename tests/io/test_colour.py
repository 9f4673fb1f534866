# SPDX-License-Identifier: Apache-2.0
"""Colours of points: from file to file in each format's own words, and out of the way where there are none."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.base.rgb import as_float_bits, from_bits, from_channels, pack_rgb, unpack_rgb
from hedgerow.errors import InputError
from hedgerow.log import Returns

SENSOR = hr.Sensor.named("vlp-16")


def coloured_log(n_returns: int = 1, coloured: bool = True) -> hr.Log:
    """Two sweeps on a straight way, one beam in five without a return."""
    way = hr.Trajectory.line((0, 0, 2), (4, 0, 2), 10.0)
    beams = SENSOR.drive(way, n_sweeps=2)[::40]
    rng = np.random.default_rng(4)
    shape = (len(beams), n_returns)
    range_m = np.sort(rng.uniform(3, 40, shape), axis=1)
    range_m[::5] = np.inf
    return hr.Log.from_arrays(
        origins=beams.origin_m,
        directions=beams.direction,
        ranges=range_m,
        times=beams.time_ns,
        rings=beams.ring,
        sweeps=beams.sweep,
        intensities=rng.integers(1, 200, shape),
        colours=rng.integers(0, 256, (*shape, 3)) if coloured else None,
        max_range_m=100,
        sensor="vlp-16",
    )


def colours(log: hr.Log) -> Any:
    assert log.returns.colour is not None
    return log.returns.colour


def rgb_of(log: hr.Log) -> Any:
    assert log.returns.rgb is not None
    return log.returns.rgb


def assert_same_colours(found: hr.Log, expected: hr.Log) -> None:
    """The colours are all different, so they tell which return is which."""
    (seen, seen_m), (colour, range_m) = (
        np.array(sorted(zip(colours(log)[log.returns.hit], log.returns.range_m[log.returns.hit], strict=True))).T
        for log in (found, expected)
    )
    assert np.array_equal(seen, colour) and len(np.unique(colour)) == len(colour)
    np.testing.assert_allclose(seen_m, range_m, atol=5e-3)  # LAS has millimetres, deskewing some of them


@given(st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=20))
def test_packing_is_undone_by_unpacking_and_by_the_bits_of_a_float(rgb):
    colour = pack_rgb("rgb", rgb)
    assert unpack_rgb(colour).tolist() == [list(each) for each in rgb]
    bits = as_float_bits(colour)
    assert bits.dtype == np.float32 and np.array_equal(from_bits(bits), colour)
    assert np.array_equal(from_bits(colour | np.uint32(0xAB000000)), colour)  # rgba: alpha is left out
    red, green, blue = np.array(rgb, np.uint8).T
    assert np.array_equal(from_channels(red, green, blue), colour)


def test_channels_of_more_bits_and_of_fractions_are_scaled():
    whole = np.array([0, 257, 65535], np.uint16)
    assert unpack_rgb(from_channels(whole, whole, whole))[:, 0].tolist() == [0, 1, 255]
    part = np.array([0.0, 0.5, 1.0], np.float32)
    assert unpack_rgb(from_channels(part, part, part))[:, 1].tolist() == [0, 128, 255]


def test_returns_carry_colours_through_selection_and_joining():
    log = coloured_log(2)
    assert colours(log).shape == (len(log), 2) and rgb_of(log).shape == (len(log), 2, 3)
    assert (colours(log)[~log.returns.hit] == 0).all()
    assert np.array_equal(colours(log[3:9]), colours(log)[3:9])
    joined = hr.Log.concatenate([part for _, part in log.iter_sweeps()])
    assert joined.equal(log)
    noisy = SENSOR.degrade(log, 3, dropout=0.0)
    assert np.array_equal(np.sort(colours(noisy)), np.sort(colours(log)))
    with pytest.raises(InputError, match="colour: cannot join"):
        hr.Log.concatenate([log, coloured_log(2, coloured=False)])


def test_wrong_colours_are_refused_by_name():
    with pytest.raises(InputError, match="colours"):
        Returns.from_arrays(ranges=[1.0], colours=[[0, 0, 256]])
    with pytest.raises(InputError, match="colours: expected red, green and blue"):
        Returns.from_arrays(ranges=[1.0], colours=[7])
    with pytest.raises(InputError, match=r"colour.*0xFFFFFF"):
        Returns(np.array([1.0], np.float32), colour=np.array([1 << 24], np.uint32))
    with pytest.raises(InputError, match=r"colour.*without a return"):
        Returns(np.array([np.inf], np.float32), colour=np.array([7], np.uint32))


@pytest.mark.parametrize("n_returns", [1, 2])
@pytest.mark.parametrize("name", ["a.parquet", "a.pcd", "a.ply", "a.las", "a.laz", "a.mcap", "a.bag"])
def test_every_format_with_a_place_for_colours_keeps_them(tmp_path, name, n_returns):
    log = coloured_log(n_returns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing returns are left out of some
        hr.write_log(log, tmp_path / name)
    back = hr.read_log(tmp_path / name)
    assert_same_colours(back, log)
    assert "colour" in hr.open_log(tmp_path / name).arrays


@pytest.mark.parametrize("recover", ["auto", "no"])
def test_folders_of_clouds_keep_them(tmp_path, recover):
    log = coloured_log()
    hr.write_log(log, tmp_path / "clouds", format="pcd-folder")
    assert_same_colours(hr.read_log(tmp_path / "clouds", recover=recover), log)


def test_kitti_has_no_place_for_them_and_says_so(tmp_path):
    log = coloured_log()
    with pytest.warns(UserWarning, match="the clouds have no colours: KITTI has no place for them"):
        hr.write_log(log, tmp_path / "kitti", format="kitti")
    assert_same_colours(hr.read_log(tmp_path / "kitti"), log)  # from hedgerow.parquet
    assert hr.read_log(tmp_path / "kitti", recover="no").returns.colour is None


@pytest.mark.parametrize("name", ["a.parquet", "a.pcd", "a.ply", "a.las", "a.mcap"])
def test_a_log_without_colours_has_no_column_for_them(tmp_path, name):
    log = coloured_log(coloured=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hr.write_log(log, tmp_path / name)
    assert hr.read_log(tmp_path / name).returns.colour is None
    assert hr.open_log(tmp_path / name).arrays == ["intensity"]


def test_other_libraries_see_the_colours_in_their_own_words(tmp_path):
    log = coloured_log()
    expected = sorted(map(tuple, rgb_of(log)[log.returns.hit].tolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("a.pcd", "a.ply", "a.las"):
            hr.write_log(log, tmp_path / name)
    import laspy
    import trimesh
    from pypcd4.pypcd4 import PointCloud

    cloud = PointCloud.from_path(tmp_path / "a.pcd")
    packed = PointCloud.decode_rgb(np.ascontiguousarray(cloud.pc_data["rgb"]))
    assert sorted(map(tuple, packed.tolist())) == expected
    loaded: Any = trimesh.load(tmp_path / "a.ply")
    seen = loaded.colors[:, :3]
    assert sorted(map(tuple, seen.tolist())) == expected
    points: Any = laspy.read(tmp_path / "a.las")
    assert points.point_format.id == 7
    channels = np.stack([points.red, points.green, points.blue], axis=-1) >> 8
    assert sorted(map(tuple, channels.tolist())) == expected


@pytest.mark.parametrize(("factor", "point_format"), [(257, 3), (1, 2), (257, 7)])
def test_las_files_of_others_have_16_bits_or_8(tmp_path, factor, point_format):
    import laspy

    rgb = np.random.default_rng(1).integers(0, 256, (50, 3))
    las = laspy.create(point_format=point_format, file_version="1.4" if point_format > 5 else "1.2")
    las.x, las.y, las.z = np.linspace(3, 9, 50), np.zeros(50), np.zeros(50)
    las.red, las.green, las.blue = (rgb * factor).T
    las.write(tmp_path / "a.las")
    back = hr.read_log(tmp_path / "a.las", scanner_m=[0, 0, 1])
    assert rgb_of(back).tolist() == rgb.tolist()
