# SPDX-License-Identifier: Apache-2.0
"""What is counted behind fences and cars, on a street of one fence, one wall and one car."""

import numpy as np
import pytest

from hedgerow import Beams
from hedgerow.reproduce.occlusion import find_obstacles, occlusion_table
from hedgerow.scenes.site import load_site

STREET = """
seed = 1
[terrain]
kind = "flat"
size_m = [60, 60]
material = "asphalt"
label = "road"
[shapes.car]
kind = "box"
size_m = [4, 2, 1.5]
label = "car"
[shapes.house]
kind = "box"
size_m = [10, 4, 5]
label = "building"
[objects]
car = { what = "car", at_m = [-10, 0] }
house = { what = "house", at_m = [0, 22] }
[walls.fence]
path_m = [[-10, 10], [10, 10]]
height_m = 1.8
permeability = 0.7
label = "fence"
[trajectories.stand]
standing_m = [0, 0]
"""


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    path = tmp_path_factory.mktemp("street") / "street.toml"
    path.write_text(STREET)
    return load_site(path)


def towards(*targets):
    """Beams from 2 m above the middle to (x, y, z), and how far these are."""
    origin = np.array([0.0, 0.0, 2.0])
    way = np.asarray(targets, dtype=float) - origin
    range_m = np.linalg.norm(way, axis=1)
    return Beams.from_arrays(origins=origin, directions=way / range_m[:, None]), range_m.astype(np.float32)


def test_ground_strikes_behind_the_fence_are_counted_and_nothing_else_is(street):
    # On the ground behind the fence; over the fence; on the house behind it; past its end; before it.
    beams, range_m = towards([0, 15, 0], [0, 20, 3], [0, 20, 0.2], [40, 15, 0], [0, 5, 0])
    [fence] = find_obstacles(street, beams)
    assert fence.beam.tolist() == [0]
    np.testing.assert_allclose(fence.far_m, 10 / beams.direction[0, 1] + 0.3, rtol=1e-5)
    at_fence = (10 / beams.direction[:, 1]).astype(np.float32)
    for ranges, expected in ((range_m, True), (at_fence, False), (range_m * np.float32(0.8), False)):
        assert fence.behind_it(beams, ranges).tolist() == [expected]  # the third is 2 m above the ground, behind
    assert fence.behind_it(beams, np.full(5, np.inf, np.float32)).tolist() == [False]


def test_returns_behind_a_car_are_counted(street):
    beams, range_m = towards([-8, 0, 1.0], [-8, 0.5, 0.5], [-8, 5, 0.0])
    [car] = find_obstacles(street, beams)
    assert car.beam.tolist() == [0, 1]
    np.testing.assert_allclose(car.far_m, range_m[:2] + 0.5, atol=1e-5)
    assert car.behind_it(beams, range_m).tolist() == [False, False]
    assert car.behind_it(beams, range_m + np.array([3.0, 0.4, 9.0], np.float32)).tolist() == [True, False]


def test_the_table_has_a_row_for_each_and_shares_of_what_returned(street):
    beams, range_m = towards([-8, 0, 1.0], [-8, 0.5, 0.5])
    obstacles = find_obstacles(street, beams)
    seen_through = np.array([12.0, np.inf], np.float32)
    table = occlusion_table(obstacles, beams, {"Real": range_m, "Points": seen_through})
    assert "| Real | 0 of 2 (0.0%) |" in table
    assert "| Points | 1 of 1 (100.0%) |" in table
