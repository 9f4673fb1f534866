# SPDX-License-Identifier: Apache-2.0
"""The grassland, in small: grown, learned, composed, stored in tiles and driven through."""

import numpy as np
import pytest

from hedgerow.errors import InputError
from hedgerow.io.trajectory import read_trajectory
from hedgerow.reproduce.grassland import pictures, trial
from hedgerow.reproduce.grassland.drive import build, drive, in_own_process, peak_bytes
from hedgerow.reproduce.grassland.nursery import ASSETS, NurserySizes, comes_down, raise_plants
from hedgerow.reproduce.grassland.pictures import read_map, shaded, some_sweeps
from hedgerow.reproduce.grassland.site import HEIGHT_M, TILE_M, SiteRules, TileMaker, drive_of, height_m, way_of
from hedgerow.reproduce.grassland.trial import PAPER_TRIANGLES_PER_M2, drive_table, judge, size_table
from hedgerow.sensor import Sensor
from hedgerow.world import scene as scene_module
from hedgerow.world.load import load_world
from hedgerow.world.store.files import WorldFile

SIZES = NurserySizes(
    blades_per_m2=120, patches=1, sweeps=4, judged_sweeps=1, plant_sweeps=6, variants=1,
    classes=("low-shrub", "small-tree"), model="voxel",
)  # fmt: skip
RULES = SiteRules(extent_m=250.0, way_m=120.0)
SEED = 3


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Copies are instances, as in a large site; and few sweeps are drawn."""
    monkeypatch.setattr(scene_module, "MOST_UNFOLDED", 1000)
    monkeypatch.setattr(pictures, "N_SWEEPS", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("grassland")


@pytest.fixture(scope="module")
def nursery(folder):
    return raise_plants(folder, SIZES, SEED, lambda line: None)


@pytest.fixture(scope="module")
def built(folder, nursery):
    return build(folder, "site.world", RULES, SEED)


def test_the_papers_count_is_ten_million_triangles_per_square_metre():
    assert abs(100e6 * PAPER_TRIANGLES_PER_M2 - 1e15) < 0.02e15


def test_the_meadow_has_the_blades_that_were_asked_for(nursery):
    # Poisson numbers: 120 per m² on 18 m by 18 m; five deviations.
    n = 120 * 18**2
    assert abs(nursery.site.n_copies["grass"] - n) < 5 * np.sqrt(n)
    assert nursery.triangles_per_m2 == pytest.approx(20 * 120, rel=5 / np.sqrt(n))
    assert 0 < nursery.elements_per_m2 < 100
    assert [asset.name for asset in nursery.assets[:2]] == ["grass-0.0", "grass-0.1"]
    assert len(nursery.assets) == 4


def test_beams_are_chosen_by_where_they_come_down():
    beams = Sensor.named("hdl-32e").sweep(way_pose())
    chosen = beams[comes_down(beams, 4.0)]
    along = -chosen.origin_m[:, 2] / chosen.direction[:, 2]
    at = chosen.origin_m + along[:, None] * chosen.direction
    assert len(chosen) > 500
    assert (np.abs(at[:, :2]) < 4.0).all() and np.allclose(at[:, 2], 0, atol=1e-5)


def way_pose():
    from hedgerow.frames import Pose

    return Pose.from_xyz_rpy((-5.0, 0.0, 2.0))


def test_patches_answer_as_the_meadow_does(nursery):
    found = judge(nursery, SEED)
    assert len(found.real) > 300
    shares = {name: logs[0].returns.hit.mean() for name, logs in found.answers.items()}
    assert all(share == 1.0 for share in shares.values())  # solid ground under all of it
    lines = found.table().splitlines()
    assert len(lines) == 6
    crps = [float(line.split("|")[-2]) for line in lines[3:]]
    assert crps[0] < min(crps[1:])  # nothing is nearer to the meadow than itself
    assert max(crps) < 200


def test_the_site_is_what_the_rules_say(folder, built):
    assert built.area_km2 == pytest.approx(16 * TILE_M**2 / 1e6)
    assert built.n_instances == 2 * 16 * 64 + built.n_plants
    assert built.n_plants > 0
    z_m, extent_m, feet_m, class_label = read_map(WorldFile(folder / "site.world"))
    assert len(feet_m) == len(class_label) == built.n_plants
    assert extent_m.tolist() == [-128, 128, -128, 128]
    x, y = np.meshgrid(*[np.arange(-124, 128, 8.0)] * 2)
    # The middle of a square lies on the line between two of its corners: the ground's curvature is what differs.
    assert np.abs(z_m - height_m(x, y, RULES, SEED)).max() < 0.2
    assert way_of(RULES).distance_m(feet_m).min() > 3.0
    assert shaded(z_m).shape == (32, 32, 3)


def test_a_piece_is_the_same_country(nursery):
    piece = RULES.around(np.array([[0.0, 0.0]]), 30.0)
    assert piece.tiles() == [(-1, -1), (-1, 0), (0, -1), (0, 0)]
    whole = TileMaker(nursery.assets, RULES, SEED)
    for x, y in RULES.tiles()[:5]:
        whole.tile(x, y)
    here, there = whole.tile(0, 0), TileMaker(nursery.assets, piece, SEED).tile(0, 0)
    np.testing.assert_array_equal(here.transform, there.transform)
    np.testing.assert_array_equal(here.asset, there.asset)
    with pytest.raises(InputError, match="no tile lies from"):
        RULES.model_copy(update={"low_tile": (1, 1), "high_tile": (0, 0)}).tiles()


def test_the_drive_is_the_same_paged_and_in_memory_and_stays_within_its_budget(folder, built):
    path = folder / "site.world"
    kept = 3_000_000
    paged, whole = (drive(path, "vlp-16", most, RULES, SEED, (10.0, 40.0)) for most in (kept, None))
    assert paged.n_returns == whole.n_returns > 1000
    assert 0 < paged.tiles_bytes <= kept and whole.tiles_bytes == 0
    table = drive_table({"paged": paged, "whole": whole})
    assert "| all |" in table.splitlines()[3]


def test_sweeps_meet_grass_ground_and_plants(folder, built):
    log = some_sweeps(folder / "site.world", RULES, SEED)
    above = log.points()[:, 2] - height_m(log.points()[:, 0], log.points()[:, 1], RULES, SEED)
    assert log.returns.object is not None
    plant = log.returns.object[log.returns.hit] > 0
    assert plant.any() and above[plant].max() > 1.0
    assert np.abs(np.median(above[~plant])) < 0.4
    assert above.min() > -1.0  # nothing comes from under the ground
    way = drive_of(RULES, SEED)
    np.testing.assert_allclose(
        way.position_m[:, 2] - height_m(way.position_m[:, 0], way.position_m[:, 1], RULES, SEED), HEIGHT_M
    )


def test_the_table_counts_per_square_kilometre(nursery, built):
    lines = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in size_table(nursery, built).splitlines()}
    each, measured, hundred = (float(cell.replace(",", "")) for cell in lines["instances"])
    assert measured == built.n_instances
    assert each == pytest.approx(built.n_instances / built.area_km2, abs=1)
    assert hundred == pytest.approx(100 * each, rel=1e-4)


def test_all_of_it_in_small(folder, nursery, monkeypatch):
    monkeypatch.setattr(trial, "raise_plants", lambda *given: nursery)
    monkeypatch.setattr(trial, "in_own_process", lambda work, *given: work(*given))
    for name, value in {"SENSOR": "vlp-16", "STRETCH_M": 10.0, "ROUNDS": 1, "PIECE_MARGIN_M": 5.0}.items():
        monkeypatch.setattr(trial, name, value)
    said = []
    outcome = trial.study(folder, SIZES, SiteRules(extent_m=250.0, way_m=40.0), SEED, said.append)
    (picture,) = outcome.pictures
    assert picture.read_bytes()[:2] == b"\xff\xd8"  # JPEG
    lines = outcome.text.splitlines()
    speeds = [line for line in lines if "paged" in line or "in memory" in line]
    assert len(speeds) == 4
    returns = {line.split("|")[7].strip() for line in speeds[1:]}
    assert len(returns) == 1  # the same stretch of the same country, however much of it there is
    assert read_trajectory(folder / "grassland.tum").length_m > 35
    assert any("km² built" in line for line in said)


def test_a_new_process_has_its_own_memory():
    mine = peak_bytes()
    assert 10e6 < in_own_process(peak_bytes) < mine


def test_the_assets_stay_in_the_folder(folder, nursery):
    assert [asset.name for asset in load_world(folder / ASSETS).assets] == [asset.name for asset in nursery.assets]
