# SPDX-License-Identifier: Apache-2.0
"""The mesh of a scene against the scene itself, a sensor in the words of Helios, and the file of its points."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.trajectory import read_trajectory, write_tum
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.world import Scene

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import other_simulator

SCENE = """
seed = 4
[terrain]
kind = "flat"
size_m = [60, 40]
[plants.bush]
kind = "shrub"
variants = 2
parameters = { height_m = 1.5, detail = 0.2 }
[walls.fence]
path_m = [[-25, 10], [25, 10]]
height_m = 3
[scatter.bushes]
what = "bush"
count = 12
box_m = [-10, -8, 10, -2]
[trajectories.first]
waypoints_m = [[-10, 0], [10, 0]]
"""


@pytest.fixture
def scene(tmp_path):
    (tmp_path / "small.toml").write_text(SCENE)
    return str(tmp_path / "small.toml")


def test_rays_meet_the_mesh_where_they_meet_the_scene(scene, tmp_path):
    n = other_simulator.write_mesh(scene, tmp_path / "small.ply", {})
    mesh: Any = trimesh.load(tmp_path / "small.ply", process=False, force="mesh")
    site = load_site(scene)
    assert n == len(mesh.faces) == site.n_triangles
    copy = Scene()
    copy.add_mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))
    beams = Sensor.named("vlp-16").sweep(Pose.from_xyz_rpy((0.0, 0.0, 2.0)))
    ours, theirs = (first_m(each.pierced(beams, max_range_m=100.0)) for each in (site.scene, copy))
    # Float32 corners of some ten metres: 1e-6 m; a ray along the edge of a leaf may pass in one of the two.
    same = np.isclose(ours, theirs, rtol=0, atol=1e-4)
    assert same.mean() > 0.999 and 0.3 < np.isfinite(ours).mean() < 0.9


def first_m(pierced):
    """Where each ray meets the first triangle; inf for none."""
    n = np.diff(pierced.begin)
    found = np.full(len(n), np.inf)
    found[n > 0] = pierced.mean_m[pierced.begin[:-1][n > 0]]
    return found


def test_a_scene_that_is_too_large_is_refused(scene, tmp_path, monkeypatch):
    monkeypatch.setattr(other_simulator, "MOST_TRIANGLES", 100)
    with pytest.raises(InputError, match="set coarser plants until there are 100 at most"):
        other_simulator.write_mesh(scene, tmp_path / "small.ply", {})
    assert not (tmp_path / "small.ply").exists()


def test_a_path_is_written_by_its_name(scene, tmp_path):
    other_simulator.write_path(scene, tmp_path / "path.tum", "", {})
    assert_allclose(read_trajectory(tmp_path / "path.tum").position_m[0, :2], [-10, 0])
    with pytest.raises(InputError, match="has no trajectory 'nonsense'; it has first"):
        other_simulator.write_path(scene, tmp_path / "path.tum", "nonsense", {})


def test_a_vlp_16_in_the_words_of_helios():
    path = Trajectory.line((0, 0, 2), (10, 0, 2), 5.0)
    scan = other_simulator.helios_scan(path, Sensor.named("vlp-16"), 0.5, 3, -90.0)
    assert_allclose(np.degrees(scan["beam_elevation_angles"]), np.arange(-15, 16, 2), atol=1e-5)  # float32 directions
    # 1,808 steps of 55.296 us in a tenth of a second.
    assert np.degrees(scan["azimuth_step"]) == pytest.approx(360 / 1808)
    assert scan["pulse_rate_hz"] == pytest.approx(16 * 18080)
    assert scan["t0"] == scan["traj_t"][0] == 0.5 and scan["traj_t"][-1] == pytest.approx(0.8)
    assert_allclose([scan["traj_pos"][0], scan["traj_pos"][-1]], [[2.5, 0, 2], [4, 0, 2]], atol=1e-9)
    assert scan["boresight_rpy"] == [0, 0, pytest.approx(-np.pi / 2)]


def test_points_of_helios_are_read_and_compared(tmp_path):
    path = Trajectory.standing(Pose.from_xyz_rpy((0.0, 0.0, 2.0)), 1.0)
    write_tum(path, tmp_path / "path.tum")
    beams = Sensor.named("vlp-16").drive(path)
    beams = beams[beams.sweep == 0]
    range_m = np.where(beams.direction[:, 2] < 0, -2 / beams.direction[:, 2].astype(np.float64), 20_000.0)
    rows = {
        "xyz": beams.origin_m + range_m[:, None] * beams.direction,
        "timestamp": beams.time_s,
        "channel": beams.ring.astype(float),
        "intensity": np.full(len(beams), -0.5),
    }
    other_simulator.write_las(rows, tmp_path / "helios.las")
    real = hr.Log.from_arrays(
        origins=beams.origin_m,
        directions=beams.direction,
        ranges=np.where(range_m < 100, range_m, np.inf),
        times=beams.time_s,
        rings=beams.ring,
        max_range_m=100.0,
    )
    scores = hr.compare(real, hr.open_log(tmp_path / "helios.las", trajectory=tmp_path / "path.tum"))
    assert scores["hits_found"] == 1 and scores["misses_found"] == 1
    assert (scores["beam_error_mean_m"] or 0.0) < 0.001  # LAS has millimetres


def test_helios_scans_a_wall(tmp_path):
    pytest.importorskip("pyhelios", reason="pyhelios3d is not installed")
    # A floor and a wall ahead; Helios notes misses within the box of what there is.
    corners = [[10, -50, 0], [10, 50, 0], [10, 50, 50], [10, -50, 50], [-50, -50, 0], [-50, 50, 0]]
    triangles = [[0, 1, 2], [0, 2, 3], [0, 1, 5], [0, 5, 4]]
    trimesh.Trimesh(corners, triangles, process=False).export(tmp_path / "wall.ply")
    path = Trajectory.standing(Pose.from_xyz_rpy((0.0, 0.0, 2.0)), 1.0)
    scan = other_simulator.helios_scan(path, Sensor.named("vlp-16"), 0.0, 1, -90.0) | {"range_noise_stddev": 0.0}
    rows = other_simulator.drive_helios(tmp_path / "wall.ply", scan, 1, 1.0)
    assert len(rows["xyz"]) == 16 * 1808
    x, _, z = rows["xyz"][np.linalg.norm(rows["xyz"], axis=1) < 1000].T
    assert_allclose(np.minimum(np.abs(x - 10), np.abs(z)), 0, atol=1e-3)  # float32 at up to 70 m
    assert 0.5 < len(x) / len(rows["xyz"]) < 0.9
    first = rows["xyz"][0] - [0, 0, 2]  # the first pulse goes ahead, as ours does
    assert abs(np.degrees(np.arctan2(first[1], first[0]))) < 0.2


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyhelios", None)
    with pytest.raises(InputError, match="pip install pyhelios3d"):
        other_simulator.drive_helios(tmp_path / "any.ply", {}, 1, 1.0)
