# SPDX-License-Identifier: Apache-2.0
"""Damaged mesh files and rasters that a scene names: one sentence that names it, no memory for what is not there."""

import json
import struct
import tracemalloc
import warnings
import zlib

import numpy as np
import pytest
import trimesh
from PIL import Image

from hedgerow.errors import FileError, HedgerowError, HedgerowWarning
from hedgerow.scenes.file.mesh_file import read_mesh
from hedgerow.scenes.file.schema import MeshSpec
from hedgerow.scenes.terrain import Terrain

CORNERS = b"v 0 0 0\nv 1 0 0\nv 0 1 0\n"
PLY = b"ply\nformat %s 1.0\nelement vertex 999999999999\nproperty float x\nend_header\n0\n"


def glb(count=3, **tables):
    """A GLB without data: its numbers are zeros, as many as it says."""
    header = {
        "accessors": [
            {"count": count, "componentType": 5126, "type": "VEC3"},
            {"count": count, "componentType": 5125, "type": "SCALAR"},
        ],
        "bufferViews": [],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    } | tables
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<5I", 0x46546C67, 2, 28 + len(text), len(text), 0x4E4F534A) + text


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.ply", PLY % b"ascii", ""),
        ("b.ply", PLY % b"binary_little_endian", "cannot be read as a mesh"),
        ("a.stl", bytes(80) + struct.pack("<I", 2**32 - 1) + bytes(50), ""),
        ("a.obj", CORNERS + b"f 1 2 999999999\n", "cannot be read as a mesh"),
        ("b.obj", CORNERS.replace(b"0 1 0", b"0 nan 0") + b"f 1 2 3\n", "no numbers"),
        ("c.obj", CORNERS.replace(b"0 1 0", b"0 1e300 0") + b"f 1 2 3\n", "beyond 1e\\+09"),
        ("a.glb", glb(10**9), "its meshes have 2e\\+09 vertices and corners"),
        ("i.glb", glb(10**7), "20,000,000 vertices and corners whose numbers are not in the file"),
        ("b.glb", glb(-1), "cannot be read as a mesh"),
        ("c.glb", glb(nodes=[{"children": [1]}, {"children": [0], "mesh": 0}]), "its nodes lie in a circle"),
        ("d.glb", glb(nodes=[{"children": [k + 1]} for k in range(500)] + [{"mesh": 0}]), "more than 100 deep"),
        ("e.glb", b"", "cannot be read as a mesh"),
        ("f.glb", glb()[:40], "cannot be read as a mesh"),
        ("g.glb", glb() + struct.pack("<I4s", 2**32 - 1, b"BIN"), "should have 4,294,967,295 bytes"),
        ("h.glb", glb() + bytes(8 * 200), "more than 100 parts"),
    ],
)
def test_a_damaged_mesh_is_refused_with_its_name(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileError, match=rf"{name}: .*{words}"):
        read_mesh(tmp_path / name, MeshSpec(file=name))


@pytest.mark.parametrize("kind", ["obj", "ply", "stl", "glb"])
def test_flipped_bytes_of_a_mesh_lead_to_a_mesh_or_a_sentence(tmp_path, kind):
    path = tmp_path / f"box.{kind}"
    trimesh.creation.box((1, 2, 3)).export(path)
    good, rng = path.read_bytes(), np.random.default_rng(28)
    for _ in range(25):
        changed = bytearray(good)
        for place in rng.integers(0, min(len(good), 1200), 3):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        try:
            assert read_mesh(path, MeshSpec(file=path.name))
        except FileError as error:
            assert str(error).startswith(str(path))


@pytest.mark.filterwarnings("error", "ignore::hedgerow.errors.HedgerowWarning")
@pytest.mark.parametrize("compression", [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_flipped_bytes_of_a_raster_lead_to_ground_or_a_sentence(tmp_path, compression, capfd):
    path = tmp_path / "a.tif"
    heights = np.arange(600, dtype=np.float32).reshape(20, 30)
    Image.fromarray(heights).save(path, tiffinfo={33550: (1.0, 1.0, 0.0)}, compression=compression)
    good, rng = path.read_bytes(), np.random.default_rng(28)
    for _ in range(60):
        changed = bytearray(good)
        for place in rng.integers(0, 250, 3):
            changed[place] = rng.choice([0, 1, 2, 12, 255, int(rng.integers(0, 256))])
        path.write_bytes(changed)
        try:
            Terrain.from_raster(path)
        except HedgerowError as error:
            assert str(path) in str(error)
    assert capfd.readouterr().err == ""  # libtiff prints what it meets


def test_what_pillow_complains_of_is_a_warning(tmp_path, capfd):
    # A tag lies outside of the file; the heights are there, but the size of the pixels is lost.
    Image.fromarray(np.zeros((4, 4), np.float32)).save(tmp_path / "a.tif", tiffinfo={33550: (1.0, 1.0, 0.0)})
    data = (tmp_path / "a.tif").read_bytes()
    at = data.index(struct.pack("<HH", 33550, 12))
    (tmp_path / "a.tif").write_bytes(data[: at + 8] + struct.pack("<I", 2**31) + data[at + 12 :])
    with pytest.warns(HedgerowWarning, match=r"a.tif: may be damaged; look at its heights \(\w"):
        Terrain.from_raster(tmp_path / "a.tif", metres_per_pixel=1.0)
    assert capfd.readouterr().err == ""


def test_a_png_that_claims_gigabytes_takes_none(tmp_path):
    header = b"IHDR" + struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    (tmp_path / "a.png").write_bytes(start + struct.pack(">I", 2**31) + b"IDATab")
    tracemalloc.start()
    with pytest.raises(FileError, match=r"a.png: cannot be read; it is damaged"):
        Terrain.from_raster(tmp_path / "a.png", metres_per_pixel=1.0, height_range_m=(0, 1))
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_a_picture_or_a_tile_of_too_many_pixels_is_refused(tmp_path):
    for side, tile, words in [
        (32, 30_000, "tiles of 30,000 by 30,000"),
        (10_000, 32, "10,000 by 10,000"),
        (20_000, 32, "far too many"),
    ]:
        # Width, height, bits, deflate, black is 0, one channel, width and height of the tiles, where they are.
        tags = {256: side, 257: side, 258: 8, 259: 8, 262: 1, 277: 1, 322: tile, 323: tile, 324: 130, 325: 9}
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
        data = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + zlib.compress(bytes(1024))
        (tmp_path / "a.tif").write_bytes(data)
        with pytest.raises(FileError, match=rf"a.tif: has {words}"), warnings.catch_warnings():
            warnings.simplefilter("error")
            Terrain.from_raster(tmp_path / "a.tif", metres_per_pixel=1.0)


def test_a_picture_without_all_of_its_pixels_is_refused(tmp_path):
    Image.fromarray(np.ones((8, 8), np.float32)).save(tmp_path / "a.tif", tiffinfo={33550: (1.0, 1.0, 0.0)})
    data = bytearray((tmp_path / "a.tif").read_bytes())
    struct.pack_into("<I", data, data.index(struct.pack("<HHI", 257, 4, 1)) + 8, 50_000)
    (tmp_path / "a.tif").write_bytes(data)
    with pytest.raises(FileError, match=r"a.tif: has data for 64 of its 400,000 pixels"):
        Terrain.from_raster(tmp_path / "a.tif")
    for depth, interlaced, n_there in [(8, 0, 4), (16, 0, 4), (4, 0, 4), (8, 1, 2)]:
        header = b"IHDR" + struct.pack(">IIBBBBB", 8, 8, depth, 0, 0, 0, interlaced)
        rows = b"IDAT" + zlib.compress(bytes(n_there * (1 + depth)))
        data = b"\x89PNG\r\n\x1a\n"
        for part in (header, rows):
            data += struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part))
        (tmp_path / "a.png").write_bytes(data)
        with pytest.raises(FileError, match=r"a.png: has data for \d\d of its 64 pixels"):
            Terrain.from_raster(tmp_path / "a.png", metres_per_pixel=1.0, height_range_m=(0, 1))


def test_heights_that_are_no_numbers_are_told_of_once(tmp_path):
    heights = np.zeros((4, 4), np.float32)
    heights.view(np.uint32)[1, 1] = 0x7F800001  # a NaN of which the processor tells
    Image.fromarray(heights).save(tmp_path / "a.tif", tiffinfo={33550: (1.0, 1.0, 0.0)})
    with pytest.raises(FileError, match=r"a.tif: 1 pixels have no height"), warnings.catch_warnings():
        warnings.simplefilter("error")
        Terrain.from_raster(tmp_path / "a.tif")


def test_heights_and_pixels_that_cannot_be_are_refused(tmp_path):
    heights = np.full((4, 4), 1e30, dtype=np.float32)
    Image.fromarray(heights).save(tmp_path / "a.tif", tiffinfo={33550: (1.0, 1.0, 0.0)})
    with pytest.raises(FileError, match=r"a.tif: reaches to 1e\+30 m"):
        Terrain.from_raster(tmp_path / "a.tif")
    Image.fromarray(heights * 0).save(tmp_path / "b.tif", tiffinfo={33550: (1e-300, 1.0, 0.0)})
    with pytest.raises(FileError, match=r"b.tif: its pixels are 1e-300 by 1 m"):
        Terrain.from_raster(tmp_path / "b.tif")
