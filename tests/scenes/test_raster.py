# SPDX-License-Identifier: Apache-2.0
"""Heights from pictures and GeoTIFFs: right place, right height, north up; what cannot be used is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from PIL.TiffImagePlugin import ImageFileDirectory_v2

from hedgerow.errors import FileError, InputError
from hedgerow.scenes.terrain import Terrain

HEIGHTS = np.array([[10.0, 11, 12], [20, 21.5, 22]], dtype=np.float32)  # the first row is north
UTM = [1, 1, 0, 3, 1024, 0, 1, 1, 1025, 0, 1, 1, 3076, 0, 1, 9001]


def geotiff(
    path, heights: NDArray[Any] = HEIGHTS, keys=UTM, no_data=None, transform=None, scale=(2.0, 2.0, 0.0), **save
):
    tags = ImageFileDirectory_v2()
    for tag, kind, values in [
        (33550, 12, scale if transform is None else None),
        (33922, 12, (0.0, 0.0, 0.0, 500000.0, 4000004.0, 0.0) if transform is None else None),
        (34264, 12, transform),
        (34735, 3, keys),
        (42113, 2, no_data),
    ]:
        if values is not None:
            tags.tagtype[tag] = kind
            tags[tag] = values if isinstance(values, str) else tuple(values)
    Image.fromarray(np.asarray(heights)).save(path, tiffinfo=tags, **save)
    return path


@pytest.mark.parametrize(("dtype", "white"), [(np.uint8, 255), (np.uint16, 65535)])
def test_black_and_white_of_a_png_are_the_heights_given(tmp_path, dtype, white):
    grey = np.array([[0, white], [white // 5, white]], dtype=dtype)
    Image.fromarray(grey).save(tmp_path / "hill.png")
    ground = Terrain.from_raster(tmp_path / "hill.png", metres_per_pixel=2.0, height_range_m=(100, 110))
    np.testing.assert_allclose(ground.z_m, [[102, 110], [100, 110]])  # south first
    assert ground.bounds_m == (-1, -1, 1, 1)


@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate"])
def test_a_geotiff_keeps_its_heights_and_map_coordinates(tmp_path, compression):
    ground = Terrain.from_raster(geotiff(tmp_path / "dem.tif", compression=compression))
    np.testing.assert_array_equal(ground.z_m, HEIGHTS[::-1])
    assert ground.bounds_m == (500001, 4000001, 500005, 4000003)  # middles of pixels that are areas
    assert ground.height_m(500003, 4000001) == 21.5


def test_pixels_that_are_points_lie_on_the_tie_point(tmp_path):
    keys = [*UTM[:8], 1025, 0, 1, 2, *UTM[12:]]
    assert Terrain.from_raster(geotiff(tmp_path / "dem.tif", keys=keys)).bounds_m == (500000, 4000002, 500004, 4000004)


def test_a_transformation_places_a_geotiff_too(tmp_path):
    matrix = (2, 0, 0, 500000, 0, -2, 0, 4000004, 0, 0, 0, 0, 0, 0, 0, 1)
    ground = Terrain.from_raster(geotiff(tmp_path / "dem.tif", transform=[float(each) for each in matrix]))
    assert ground.bounds_m == (500001, 4000001, 500005, 4000003)


def test_integer_heights_may_be_below_the_sea(tmp_path):
    ground = Terrain.from_raster(geotiff(tmp_path / "dem.tif", np.array([[-5, 3], [70000, 2]], dtype=np.int32)))
    assert ground.z_m.tolist() == [[70000, 2], [-5, 3]]


def test_a_plain_tiff_takes_the_pixel_size_given(tmp_path):
    Image.fromarray(HEIGHTS).save(tmp_path / "dem.tif")
    assert Terrain.from_raster(tmp_path / "dem.tif", metres_per_pixel=3).bounds_m == (-3, -1.5, 3, 1.5)
    with pytest.raises(InputError, match="metres_per_pixel"):
        Terrain.from_raster(tmp_path / "dem.tif")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"keys": [1, 1, 0, 1, 1024, 0, 1, 2]}, "degrees"),
        ({"keys": [1, 1, 0, 1, 3076, 0, 1, 9002]}, "9002"),
        ({"no_data": "21.5"}, "1 pixels have no height"),
        ({"no_data": "none"}, "no-data"),
        ({"heights": np.where(HEIGHTS == 11, np.nan, HEIGHTS)}, "1 pixels have no height"),
        ({"heights": HEIGHTS[:1]}, "3 by 1 pixels"),
        ({"heights": np.zeros((2, 2, 3), np.uint8)}, "colours"),
        ({"transform": [2.0, 1, 0, 0, 1, -2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]}, "rotated"),
        ({"scale": (0.0, 2.0, 0.0)}, "0 by 2 m"),
    ],
)
def test_a_geotiff_without_usable_heights_is_refused(tmp_path, change, words):
    with pytest.raises(FileError, match=words) as caught:
        Terrain.from_raster(geotiff(tmp_path / "dem.tif", **change))
    assert str(tmp_path / "dem.tif") in str(caught.value)


def test_files_that_are_no_rasters_are_refused_in_one_sentence(tmp_path):
    whole = geotiff(tmp_path / "dem.tif", np.random.default_rng(0).random((64, 64)).astype(np.float32))
    (tmp_path / "half.tif").write_bytes(whole.read_bytes()[:9000])
    (tmp_path / "text.png").write_text("not a picture")
    (tmp_path / "empty.tif").write_bytes(b"")
    (tmp_path / "hill.bmp").write_bytes(b"BM")
    for name, words in [
        ("half.tif", "damaged"),
        ("text.png", "damaged"),
        ("empty.tif", "damaged"),
        ("hill.bmp", "expected .png, .tif"),
        ("none.tif", "no such file"),
    ]:
        with pytest.raises(FileError, match=words) as caught:
            Terrain.from_raster(tmp_path / name, metres_per_pixel=1)
        assert "\n" not in str(caught.value)


def test_arguments_that_do_not_fit_the_file_are_refused(tmp_path):
    dem = geotiff(tmp_path / "dem.tif")
    Image.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "hill.png")
    for name, how, words in [
        ("dem.tif", {"metres_per_pixel": 2}, "metres_per_pixel.*has its own"),
        ("dem.tif", {"height_range_m": (0, 1)}, "height_range_m.*heights already"),
        ("hill.png", {"metres_per_pixel": 1}, "height_range_m.*black and white"),
        ("hill.png", {"height_range_m": (0, 1)}, "metres_per_pixel"),
        ("hill.png", {"metres_per_pixel": -1, "height_range_m": (0, 1)}, "metres_per_pixel"),
        ("hill.png", {"metres_per_pixel": 1, "height_range_m": (1, 0)}, "height_range_m"),
    ]:
        with pytest.raises(InputError, match=words):
            Terrain.from_raster(dem.parent / name, **how)
