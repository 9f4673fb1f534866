# SPDX-License-Identifier: Apache-2.0
"""The risk of scan matching in small: a yard plays reality, itself is a simulator, and a bare plain is a poor one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.apps.odometry import LostError
from hedgerow.errors import HedgerowError
from hedgerow.reproduce.composition import scan_matching_pictures, scan_matching_risk
from hedgerow.reproduce.composition.scan_matching_pictures import estimated_paths
from hedgerow.reproduce.composition.scan_matching_places import (
    Place,
    check_data,
    ground_noise_m,
    pair_starts,
    split_drive,
)
from hedgerow.reproduce.composition.scan_matching_risk import ALONG, THESIS, measure_place, text, typical_setting, vary
from hedgerow.reproduce.experiment import EXPERIMENTS
from hedgerow.risk.sources import Drive
from hedgerow.risk.table import DRAWN
from hedgerow.scenes import mesh
from hedgerow.world import Scene, SceneWorld

pytest.importorskip("small_gicp", reason="scan matching needs small_gicp")
GOOD = {"kind": "PLANE_ICP", "voxel_m": 0.3, "distance_m": 2.0}


def plain(with_boxes):
    scene = Scene()
    scene.add_mesh(*mesh.rectangle((-40, -40, 0), (80, 0, 0), (0, 80, 0)))
    if with_boxes:
        rng = np.random.default_rng(3)
        for x, y in rng.uniform(-15, 15, (30, 2)):
            if abs(y) > 2:
                scene.add_mesh(*mesh.box((x, y, 0), (x + rng.uniform(0.5, 2), y + rng.uniform(0.5, 2), 3)))
    return SceneWorld(scene)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Four sweeps half a metre apart, a VLP-16 in a yard of boxes; twice, with other noise."""
    folder = tmp_path_factory.mktemp("yard")
    way = hr.Trajectory.line([-2, 0, 1.5], [2, 0, 1.5], speed_mps=5.0)
    drives = []
    for seed in (2, 3):
        sweeps = list(hr.simulate(plain(True), hr.Sensor.named("vlp-16"), way, sweeps=4, seed=seed, noise=True))
        hr.write_log(hr.Log.concatenate(sweeps)[::4], folder / f"{seed}.parquet")
        recording = hr.open_log(folder / f"{seed}.parquet")
        drives.append(Drive(recording, 2, trajectory=way, ground=False, sweeps=[0, 1, 1, 2, 2, 3]))
    worlds = {"same": plain(True), "bare": plain(False)}
    return Place("known", "A yard.", drives[0], drives[1], worlds, drives[0].recording.read(), way, "yard")


@pytest.fixture(scope="module")
def found(place, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_matching_risk, "_JOBS", 1)
        patch.setattr(scan_matching_risk, "_ALONG_VALUES", 2)
        output = tmp_path_factory.mktemp("table") / "risk.parquet"
        return measure_place(scan_matching_risk.ScanMatching(), place, 6, 1, output, lambda _: None)


def test_the_true_world_has_a_lower_risk_than_a_plain_without_things(found):
    scores = found.scores["position"].scores
    # On a plain nothing tells how far the sensor moved, and every match stays near rest, 0.5 m off. In the yard poor
    # settings do so too, but not all.
    assert scores["bare"].risk > 0.1
    np.testing.assert_allclose(scores["bare"].bias, scores["bare"].risk, rtol=0.05)
    assert scores["same"].risk < 0.25 * scores["bare"].risk
    assert found.scores["position"].floor.how == "another recording (again)"
    assert scores["same"].floor is not None


def test_what_was_run_is_not_run_again(found, place, tmp_path, monkeypatch):
    app = scan_matching_risk.ScanMatching()
    output = tmp_path / "risk.parquet"
    found.table.write(output)
    monkeypatch.setattr(scan_matching_risk, "_JOBS", 1)
    monkeypatch.setattr(scan_matching_risk, "_ALONG_VALUES", 2)
    monkeypatch.setattr(type(app), "run", lambda *_: pytest.fail("ran again"))
    again = measure_place(app, place, 6, 1, output, lambda _: None)
    assert again.scores["angle"].to_dict() == found.scores["angle"].to_dict()


def test_tables_have_the_thesis_the_floors_and_the_ends_of_paths(found, place):
    app = scan_matching_risk.ScanMatching()
    paths = {"good": estimated_paths(place, app.space.start(GOOD), 1)}
    said = text(app, found, paths)
    for part in ("against itself, other seed", "reality against itself", "same less bare", "end of a path of 1.5 m"):
        assert part in said
    row = next(line for line in said.splitlines() if line.startswith("| good"))
    real, same, bare = map(float, row.split("|")[2:5])
    assert max(real, same) < 0.3 < 1.0 < bare  # of 1.5 m; rings on the ground hold every match back a little


def test_motions_are_chained_to_paths_from_the_true_start(place, monkeypatch):
    bend = replace(place, trajectory=hr.Trajectory.circle([0, 0, 1.5], 2.0, speed_mps=5.0))
    poses = bend.path_poses()
    matrices = [poses.pose_at(int(each)).matrix() for each in poses.time_ns]
    exact = np.array([np.linalg.solve(one, other) for one, other in pairwise(matrices)])
    monkeypatch.setattr(scan_matching_pictures, "estimate", lambda *_: exact)
    paths = estimated_paths(bend, {}, 1)
    assert np.ptp(paths["true"][:, 1]) > 0.5  # it does turn
    np.testing.assert_allclose(paths["real"], paths["true"], atol=1e-9)


def test_a_path_that_is_lost_has_no_positions(place, monkeypatch):
    def lose(*_):
        raise LostError("3 points of a sweep")

    monkeypatch.setattr(scan_matching_pictures, "estimate", lose)
    paths = estimated_paths(place, {}, 1)
    assert [len(paths[name]) for name in ("true", "real", "bare")] == [4, 0, 0]


def test_pictures_are_drawn(found, tmp_path):
    pictures, paths = scan_matching_risk.draw(tmp_path, scan_matching_risk.ScanMatching(), found, 1)
    assert [path.name for path in pictures] == [
        f"scan-matching-{each}-known.png" for each in ("losses", "paths", "along")
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert list(paths) == ["a typical setting", "the default setting"]


def test_half_of_the_settings_do_better_than_the_typical_one(found):
    app = scan_matching_risk.ScanMatching()
    j = scan_matching_risk.objective_by_source(found.table, app.objectives["position"])["real"]
    at = found.table.settings[DRAWN].index(typical_setting(found.table, app))
    assert np.sum(j < j[at]) == np.isfinite(j).sum() // 2


def test_one_parameter_is_varied_from_end_to_end_and_the_others_stay():
    space = scan_matching_risk.ScanMatching().space
    for name in ALONG:
        settings = vary(space, name)
        assert (settings[0][name], settings[-1][name]) == pytest.approx(space.parameters[name].bounds)
        assert all({**each, name: 0} == {**space.start(), name: 0} for each in settings)
    with pytest.raises(HedgerowError, match=r"expected one of iterations, .*, found colour"):
        vary(space, "colour")


def test_pairs_are_spread_from_end_to_end():
    assert pair_starts(98, 5) == [0, 24, 48, 72, 96]
    assert pair_starts(4, 3) == [0, 1, 2]
    with pytest.raises(HedgerowError, match="expected 2 to 3 of 4 sweeps, found 4"):
        pair_starts(4, 4)


def test_sweeps_that_judge_a_real_drive_neither_teach_nor_map():
    first, groups = split_drive(list(range(5, 105)), 12)
    assert first == list(range(5, 55)) and len(groups) == 12
    judged = {number for group in groups for number in group[2:]}
    assert judged.isdisjoint([*first, *(number for group in groups for number in group[:2])])
    with pytest.raises(HedgerowError, match=r"drive\.parquet: has 20 sweeps, and 12 pairs take 96"):
        split_drive(list(range(20)), 12)


def test_noise_on_sloping_ground_is_recovered_whatever_the_order_of_the_beams():
    rng = np.random.default_rng(1)
    bearing, ring = np.meshgrid(np.linspace(0, 6.2, 2000), np.arange(8), indexing="ij")
    down = np.deg2rad(5 + 2 * ring)
    direction = np.stack([np.cos(bearing) * np.cos(down), np.sin(bearing) * np.cos(down), -np.sin(down)], -1)
    range_m = 2 / (np.sin(down) + 0.03 * np.cos(bearing)) + rng.normal(0, 0.03, bearing.shape)
    order = rng.permutation(bearing.size)
    log = hr.Log.from_arrays(
        origins=np.zeros((bearing.size, 3)),
        directions=direction.reshape(-1, 3)[order],
        ranges=range_m.ravel()[order],
        times=np.repeat(np.arange(2000) * 5e-5, 8)[order],
        rings=ring.ravel()[order],
        max_range_m=100,
    )
    # 16,000 neighbours: the median of absolute values is good to 1.2 %, overlapping triples make it 2 %
    assert ground_noise_m(log, np.ones(len(log), bool)) == pytest.approx(0.03, rel=0.05)
    with pytest.raises(HedgerowError, match="has 0 neighbours on the ground"):
        ground_noise_m(log, np.zeros(len(log), bool))


def test_a_folder_with_nothing_to_use_is_refused_before_anything_is_built(tmp_path):
    check_data(None, 12)
    with pytest.raises(HedgerowError, match=r"wants the folder meshes there, or a real log drive\.parquet"):
        EXPERIMENTS["scan-matching-risk"].run(tmp_path, None, 1, lambda _: None, tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(HedgerowError, match=r"--size: .*2"):
        EXPERIMENTS["scan-matching-risk"].run(tmp_path, 1, 1, lambda _: None)


def test_the_thesis_has_primitives_ahead_of_meshes():
    for values in THESIS.values():
        assert values["primitives"] < values["meshes from elsewhere"]
