# SPDX-License-Identifier: Apache-2.0
"""A world to save, and ways to change what was saved."""

import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_worlds import gaussians, mixtures, points, triangles, world

from hedgerow import FileError
from hedgerow.world import load_world

FORMER_TOML = r"""format = 2
hedgerow = "0.1.0"
tiles_crc32 = TILES_CRC32
kind = "test"
min_range_m = 0.0
max_range_m = 60.0
map_origin_m = [1000000.0, 2000000.0, 0.5]
tile_m = 32.0
origin_m = [0.0, 0.0, 1.0]

[parameters]
voxel_m = 0.3
min_points = 5
flag = true

[parameters.deep]
x = [1.5, 2]
name = "a \"b\"\n\\"

[provenance]
sensor = "hdl-64e"
log = "drive"
n_beams = 1234
hedgerow = "0.1.0"

[size]
parameters = 8500
bytes = 106006

[tables]

[tables.triangles]
n = 300

[tables.triangles.noise]
sigma0_m = 0.015
sigma_a_m = 0.0014
max_incidence_rad = 1.4835298641951802
sigma_per_m = 0.0

[tables.gaussians]
law = "extinction"
tau = 2.5
min_sigma_m = 0.001
n = 400

[tables.points]
reach_m = 0.02
pick = "first"
n = 500

[tables.points.noise]
sigma0_m = 0.015
sigma_a_m = 0.0014
max_incidence_rad = 1.4835298641951802
sigma_per_m = 0.0
"""
"""world.toml of `site` as version 0.1.0 wrote it."""


def site(**settings):
    tables = (
        triangles(300, label=mixtures(300)),
        gaussians(400, label=mixtures(400), law="extinction", tau=2.5),
        points(500, pick="first", reach_m=0.02),
    )
    parameters = {"voxel_m": 0.3, "min_points": 5, "deep": {"x": [1.5, 2], "name": 'a "b"\n\\'}, "flag": True}
    return world(*tables, parameters=parameters, map_origin_m=(1e6, 2e6, 0.5), **settings)


def refused(path, message, **options):
    with pytest.raises(FileError, match=message) as caught:
        load_world(path, **options)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def edit(path, old, new):
    toml = path / "world.toml"
    text = toml.read_text()
    assert text.count(old) >= 1
    toml.write_text(text.replace(old, new, 1))


def files_of(path):
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def rewrite_checksums(path, row, tile):
    list_path = path / "tiles.parquet"
    tiles = pq.read_table(list_path)
    old = zlib.crc32(list_path.read_bytes())
    crc32 = tiles["crc32"].to_numpy().copy()
    crc32[row] = zlib.crc32(tile.read_bytes())
    pq.write_table(tiles.set_column(tiles.column_names.index("crc32"), "crc32", pa.array(crc32)), list_path)
    edit(path, f"tiles_crc32 = {old}", f"tiles_crc32 = {zlib.crc32(list_path.read_bytes())}")
