# SPDX-License-Identifier: Apache-2.0
"""What `hedgerow info` tells about a saved world."""

import numpy as np
import pytest
from small_worlds import gaussians, points, triangles, world

from hedgerow import FileError
from hedgerow.world import LearnedWorld, is_world
from hedgerow.world.store.files import WorldFile, describe_world


def test_a_world_says_what_it_is_and_where_it_comes_from(tmp_path):
    made = world(
        triangles(1),
        gaussians(400),
        points(30),
        kind="hybrid",
        min_range_m=0.9,
        max_range_m=120,
        map_origin_m=(4e5, 5.5e6, 0.25),
    )
    path = tmp_path / "site.world"
    made.save(path)
    lines = describe_world(path)
    n_bytes = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    assert lines["File"] == f"{path}, world in {len(WorldFile(path).tiles)} tiles, {n_bytes / 1e3:.3g} kB"
    assert lines["Model"] == "hybrid"
    assert lines["Elements"] == "1 triangle, 400 Gaussians, 30 points"
    assert lines["Size"].startswith(f"{made.size().parameters:,} parameters, ")
    assert lines["Learned from"] == "1,234 beams, drive, hdl-64e"
    assert lines["Ranges"].startswith("limits 0.9 to 120 m")
    assert lines["Map origin"] == "400000 5500000 0.25 m"
    tiles = WorldFile(path).tiles
    assert lines["Extent"].startswith(f"x {np.min(tiles.low_m[:, 0]):.3f} to {np.max(tiles.high_m[:, 0]):.3f} m, y ")


def test_a_world_without_elements_or_origin_says_so(tmp_path):
    path = tmp_path / "none.world"
    LearnedWorld(gaussians(0), kind="voxel").save(path)
    lines = describe_world(path)
    assert lines["Elements"] == "0 Gaussians"
    assert lines["Extent"] == "none"
    assert lines["Learned from"] == "unknown"


def test_what_is_no_world_is_not_taken_for_one(tmp_path):
    assert not is_world(tmp_path)
    assert not is_world(tmp_path / "nothing.world")
    with pytest.raises(FileError, match=r"nothing\.world: no such folder"):
        describe_world(tmp_path / "nothing.world")
