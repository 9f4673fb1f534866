# SPDX-License-Identifier: Apache-2.0
"""Composed sections: what fills boxes, how worlds are scored, and the experiment as a whole at its smallest."""

from pathlib import Path

import numpy as np
import pytest

from hedgerow.errors import FileError, InputError
from hedgerow.io import write_log
from hedgerow.log import Log
from hedgerow.models import learn
from hedgerow.reproduce.composition import choice, primitives
from hedgerow.reproduce.composition.meshes import foreign_meshes, plain_solids
from hedgerow.reproduce.composition.moving import is_moving
from hedgerow.reproduce.composition.own_places import own_places
from hedgerow.reproduce.composition.scoring import ROWS, BeamScores, Row, difference, score_world, verdict
from hedgerow.reproduce.composition.sites import Ground, compose_section, make_library, of_plants, way_of, write_boxes
from hedgerow.scenes.annotation import PLANT_CLASSES, Annotation
from hedgerow.world import SceneWorld
from hedgerow.world.scene import Scene

DATA = Path(__file__).parents[3] / "shared" / "data"


def fan(origin_m, n=4000, seed=0, down=0.6):
    """Beams in all directions from one place."""
    rng = np.random.default_rng(seed)
    turn, dip = rng.uniform(0, 2 * np.pi, n), rng.uniform(-down, 0.2, n)
    direction = np.stack([np.cos(turn) * np.cos(dip), np.sin(turn) * np.cos(dip), np.sin(dip)], axis=1)
    return np.tile(origin_m, (n, 1)), direction


def drive_over(scene_at, n_sweeps=12):
    """A log of sweeps along x, each fired at the scene of its moment."""
    logs = []
    for number in range(n_sweeps):
        origins, directions = fan([2.0 * number - 12, 0, 2], seed=number)
        beams = Log.from_arrays(
            origins=origins, directions=directions, ranges=np.full(len(origins), np.inf), sweeps=number, max_range_m=60
        ).beams
        world = SceneWorld(scene_at(number), max_range_m=60)
        logs.append(world.fire(beams))
    return Log.concatenate(logs)


def site(*boxes_m):
    """Flat ground and some boxes, given by low and high corners."""
    from hedgerow.scenes.mesh import box, join_meshes, rectangle

    scene = Scene(np.zeros(3))
    solids = [box(low, high) for low, high in boxes_m]
    scene.add_mesh(*join_meshes(rectangle((-60, -60, 0), (120, 0, 0), (0, 120, 0)), *solids), label=40)
    return scene


def test_what_was_there_for_a_moment_is_masked_and_what_stands_is_not():
    parked = ((4, 5, 0), (8, 7, 1.6))
    log = drive_over(lambda k: site(parked, *([((-4, -6, 0), (0, -4, 1.6))] if 4 <= k < 8 else [])))
    hit = np.isfinite(log.returns.first_m)
    point_m = log.beams.origin_m + np.where(hit, log.returns.first_m, 0)[:, None] * log.beams.direction
    moving = is_moving(log)
    above = hit & (point_m[:, 2] > 0.5)
    vehicle, standing = above & (point_m[:, 1] < 0), above & (point_m[:, 1] > 0)
    assert vehicle.sum() > 100
    assert standing.sum() > 100
    # The rim of the vehicle, half of whose balls are air, is not found everywhere.
    assert moving[vehicle].mean() > 0.7
    assert not moving[standing].any()
    assert moving[~hit].sum() == 0


def test_a_drive_in_which_nothing_moves_keeps_every_beam():
    log = drive_over(lambda _: site(((4, 5, 0), (8, 7, 1.6))))
    assert not is_moving(log).any()


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    """A folder with the log of flat ground and two boxes on it."""
    folder = tmp_path_factory.mktemp("flat")
    log = drive_over(lambda _: site())
    write_log(log, folder / "own.parquet")
    boxes = Annotation.of_boxes(["small-tree", "low-shrub"], [[3.0, 6.0], [-4.0, 5.0]], 0.0, [[3, 3, 6], [1.2, 1.2, 1]])
    return folder, log, write_boxes(folder, "plants", boxes, log)


def test_boxes_are_filled_with_what_is_asked_for(flat):
    folder, log, plants = flat
    ground = Ground("own.parquet", thin=1)
    heights = {}
    for name, things in (("solids", plain_solids(folder, 0.05)), ("plants", of_plants(scale="box"))):
        world = compose_section(folder / f"{name}.toml", things, plants, ground, way_of(log), 3)
        found = world.tables["instances"]
        assert len(found) == 2
        heights[name] = sorted(found.bounds_m()[1][:, 2].round(1).tolist())
    # Scaled to their boxes on ground at 0: as high as these.
    assert heights["solids"] == [1.0, 6.0]
    assert heights["plants"] == pytest.approx([1.0, 6.0], abs=0.2)


def test_meshes_from_elsewhere_fill_every_class(tmp_path):
    if not (DATA / "meshes").is_dir():
        pytest.skip("the folder with free meshes is not here")
    things = foreign_meshes(DATA, tmp_path, 0.05)
    for name in PLANT_CLASSES:
        assert f'class = "{name}"' in things.tables
    trees = sorted(tmp_path.glob("foreign-tree-*.obj"))
    assert len(trees) == 9  # four on one tile, five on the other
    for path in trees:
        corners = np.array([line.split()[1:] for line in path.read_text().splitlines() if line.startswith("v")], float)
        assert corners[:, 2].min() == 0
        # A tree is higher than wide, and the tile under it is gone.
        assert np.ptp(corners[:, 2]) > np.ptp(corners[:, :2], axis=0).max()


def test_missing_meshes_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(FileError, match="is not there; --data wants the folder that holds meshes/kenney"):
        foreign_meshes(tmp_path, tmp_path, 0.05)


def scored(range_m, real_m, sweeps):
    """Scores of one beam each, straight along x."""
    n = len(real_m)
    log = Log.from_arrays(
        origins=np.column_stack([np.zeros(n), np.arange(n), np.zeros(n)]),
        directions=np.tile([1.0, 0, 0], (n, 1)),
        ranges=real_m,
        sweeps=sweeps,
        max_range_m=100,
    )
    simulated = np.asarray(range_m, dtype=np.float32)
    error = np.abs(simulated - log.returns.first_m).astype(np.float64)
    return BeamScores(log, simulated, error, 2 * error)


def test_scores_of_known_ranges_are_those_of_the_closed_form():
    one = scored([10.5, 20.0, np.inf, 5.0], [10.0, 20.0, 30.0, np.inf], [0, 0, 1, 1])
    values = BeamScores(one.log, one.range_m, np.array([0.5, 0, 0, 0]), np.zeros(4)).values
    assert values["beam_error_mean_m"] == pytest.approx(0.25)
    assert values["precision"] == pytest.approx(2 / 3)
    assert values["recall"] == pytest.approx(2 / 3)
    assert values["f1"] == pytest.approx(2 / 3)
    assert values["crps_m"] == pytest.approx(0.125)
    assert set(values) == {row.key for row in ROWS}


def test_the_difference_of_two_worlds_is_taken_sweep_by_sweep():
    real, sweeps = np.full(12, 10.0), np.repeat(np.arange(6), 2)
    near, far = scored(real + 0.1, real, sweeps), scored(real + 0.3, real, sweeps)
    for key, expected in (("crps_m", -0.2), ("nll", -0.4), ("cloud_distance_average_m", -0.2)):
        found = difference(near, far, key)
        assert found.difference == pytest.approx(expected, abs=1e-5)  # ranges are float32
        assert found.is_decided


def test_a_world_is_scored_against_what_it_made():
    log = drive_over(lambda _: site(((4, 5, 0), (8, 7, 1.6))), 3)
    right = score_world(SceneWorld(site(((4, 5, 0), (8, 7, 1.6))), max_range_m=60), log)
    wrong = score_world(SceneWorld(site(), max_range_m=60), log)
    assert right.values["f1"] == 1
    assert right.values["crps_m"] == pytest.approx(0, abs=1e-4)  # float32 ranges up to 60 m
    assert wrong.values["crps_m"] > 0.05


@pytest.mark.parametrize(
    ("ours", "theirs", "is_better_low", "said"),
    [(1.0, 1.005, True, "tied"), (1.0, 1.2, True, "won by 0.20"), (0.8, 0.9, False, "lost by 0.10")],
)
def test_a_row_is_won_tied_or_lost(ours, theirs, is_better_low, said):
    assert verdict(Row("x", "x", 2, is_better_low), {"x": ours}, {"x": theirs}) == said


def test_a_section_that_is_too_short_is_refused(tmp_path):
    with pytest.raises(InputError, match="the first section is at least 35 m long"):
        primitives.run(tmp_path, 10)


def test_a_world_put_together_of_its_own_primitives_loses_nothing(tmp_path):
    plant = ((4, 5, 0), (8, 7, 2.5))
    log, test = drive_over(lambda _: site(plant)), drive_over(lambda _: site(plant), 3)
    world = learn(log, "voxel")
    world.save(tmp_path / "section-1.world")
    boxes = Annotation.of_boxes(["small-shrub"], [[6.0, 6.0, 0.0]], 0.3, [[6, 4, 3]], object=[1])
    make_library(world, boxes, log, tmp_path / "primitives.world")
    whole = score_world(world, test)
    lines = own_places(tmp_path, world, boxes, log, whole, seed=0).splitlines()[2:]
    row = {line.split("|")[1].strip(): [float(cell) for cell in line.split("|")[2:-1]] for line in lines}
    # Coins are drawn anew, by the numbers of elements: what is left is chance. 12,000 beams: 0.5 % is three sigma.
    for name in ("placed whole", "own primitives"):
        assert row[name][:2] == pytest.approx(row["learned"][:2], abs=0.5)
        assert row[name][-1] == pytest.approx(row["learned"][-1], abs=0.01)


@pytest.mark.slow
def test_the_choice_scores_every_candidate_on_the_first_section(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "MODELS", {"hybrid, 500 points a cluster": {"model": "voxel"}})
    monkeypatch.setattr(choice, "GROUND_SIGMAS", ((0.02, 0.0),))
    monkeypatch.setattr(choice, "MESH_SIGMAS_M", (0.05, 1.2))
    outcome = choice.run(tmp_path, 35, 1, lambda _: None)
    rows = [line.split("|")[1:-1] for line in outcome.text.splitlines()[2:]]
    assert len(rows) == 1 + 4 + 1 + 2  # models, fillings, grounds, meshes
    scores = {row[0].strip(): [float(cell) for cell in row[1:]] for row in rows}
    assert all(np.isfinite(values).all() for values in scores.values())
    # Noise of ranges changes hardly any hit, only those at the limits of the range: recall and F1 of solids stay.
    sharp, spread = scores["plain solids, range noise 0.05 m"], scores["plain solids, range noise 1.2 m"]
    assert sharp[2:4] == pytest.approx(spread[2:4], abs=0.005)
    assert sharp[5] != spread[5]
    assert {path.name for path in (tmp_path / "choice").glob("section-*.toml")} == {"section-1.toml"}


@pytest.mark.slow
def test_primitives_are_ahead_of_plain_solids(tmp_path):
    said = []
    outcome = primitives.run(tmp_path, 35, 1, said.append)
    assert all(path.is_file() for path in outcome.pictures)
    rows = [line for line in outcome.text.splitlines() if line.startswith("| CRPS") and "interval" in line]
    assert len(rows) == 2  # one for each composed section
    for line in rows:
        # Both intervals, of all beams and of those without ground, lie below 0.
        assert all(cell.strip().split()[-1].startswith("-") for cell in line.split("|")[2:4])
