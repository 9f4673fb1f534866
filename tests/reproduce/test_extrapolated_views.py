# SPDX-License-Identifier: Apache-2.0
"""Views beside the lane in small: a wall and bushes take the place of trail and street, few pulses that of a VLP-16."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hedgerow.errors import InputError
from hedgerow.log import Log
from hedgerow.metrics import compare
from hedgerow.metrics.metric import CLIMATOLOGY, REALITY_AGAIN
from hedgerow.models import learn
from hedgerow.reproduce import extrapolated_views as views
from hedgerow.reproduce.experiment import find_experiment
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.scenes.site import load_site

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
count = 40
box_m = [-20, -8, 20, -4]
[trajectories.first]
waypoints_m = [[-10, 0], [10, 0]]
"""
SPAN_S = (0.0, 3.0)
SENSOR = "vlp-16"


class SmallDrive(SceneDrive):
    """One pulse in seven."""

    def record(self, trajectory, n_sweeps, seed, sensor=SENSOR, **options):
        sweeps = super().record(trajectory, n_sweeps, seed, sensor, **options).iter_sweeps()
        return Log.concatenate([sweep[::7] for _, sweep in sweeps])


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "small.toml"
    path.write_text(SCENE)
    return SmallDrive(load_site(path), SPAN_S)


def silent(text):
    pass


def test_large_sweeps_are_thinned_evenly_in_every_ring(drive, monkeypatch):
    beams = drive.record("first", 2, 1).beams
    monkeypatch.setattr(views, "SWEEP_BEAMS", len(beams) / 2 / 3)
    kept = views.is_judged(beams)
    for sweep in (0, 1):
        for ring in range(16):
            mine = (beams.sweep == sweep) & (beams.ring == ring)
            assert abs(kept[mine].sum() - mine.sum() / 3) <= 1
            assert set(np.diff(np.flatnonzero(kept[mine]))) == {3}  # they come in the order of time
    monkeypatch.setattr(views, "SWEEP_BEAMS", len(beams))
    assert views.is_judged(beams).all()


def test_bands_add_up_to_the_scores_of_all_beams(drive):
    learned, test, again = (drive.record("first", 2, seed) for seed in (1, 2, 3))
    scores = compare(test, {"topdown": learn(learned, "topdown")}, floors=True, again=again, learned=learned)
    for name in scores:
        found = [views.band_scores(scores, name, band) for band in range(views.N_BANDS + 1)]
        assert sum(n for _, _, n in found) == len(test)
        total_m = sum(n * crps_m for _, crps_m, n in found if crps_m is not None)
        assert_allclose(total_m / len(test), scores[name]["crps_m"] or 0.0, rtol=1e-9)  # the same sums
        hits = sum(n * share for share, _, n in found[:-1] if share is not None) / test.returns.hit.sum()
        assert_allclose(hits, scores[name]["hits_found"] or 0.0, rtol=1e-12)


def test_judged_sweeps_stand_midway_between_learned_ones_on_both_sides(drive):
    learned = drive.record("first", 7, 1)
    beside = views.record_beside(drive, 2.0, 7, 5, SENSOR)
    assert beside.sweeps.tolist() == [0, 1] and len(np.unique(beside.beams.pulse)) == len(beside)
    middles = [sweep.beams.origin_m.mean(axis=0) for _, sweep in beside.iter_sweeps()]
    assert_allclose(
        [middle[1] for middle in middles], [2.0, -2.0], atol=0.02
    )  # lasers leave up to 1 cm beside the axis
    lane_x = np.array([sweep.beams.origin_m[0, 0] for _, sweep in learned.iter_sweeps()])
    first_x = beside.select(sweep=0).beams.origin_m[0, 0]
    assert_allclose(first_x, lane_x[:2].mean(), atol=0.02)


def test_the_lane_itself_is_judged_once_and_with_another_seed(drive):
    one, other = (views.record_beside(drive, 0.0, 6, seed, SENSOR) for seed in (5, 6))
    assert one.sweeps.tolist() == [0, 1, 2]
    assert one.beams.equal(other.beams) and not one.returns.equal(other.returns)


def test_where_crps_lies_between_the_floors(drive):
    test, again = (drive.record("first", 1, seed) for seed in (1, 2))
    scores = compare(test, {"topdown": learn(test, "topdown")}, floors=True, again=again)
    assert views.between_floors(scores, REALITY_AGAIN) == 0 and views.between_floors(scores, CLIMATOLOGY) == 1


def test_every_distance_world_and_band_has_a_row_and_the_curves_are_drawn(drive, tmp_path, monkeypatch):
    monkeypatch.setattr(SceneDrive, "open", lambda scene, span_s: drive)
    said: list[str] = []
    chosen = {"models": "topdown,hybrid", "sensor": SENSOR}
    outcome = find_experiment("extrapolated-views").run(tmp_path, 4, 1, said.append, None, chosen)
    parts = [part.split("\n\n") for part in outcome.text.removeprefix("**").split("\n\n**")]
    assert [title.split("**")[0] for title, _ in parts] == [
        "trail, VLP-16: by the distance from the lane",
        "trail: by the distance of a return to the nearest learned one",
        "street, VLP-16: by the distance from the lane",
        "street: by the distance of a return to the nearest learned one",
    ]
    scores, bands = ([line.split(" | ") for line in table.splitlines()[2:]] for _, table in parts[:2])
    worlds = ["topdown", "hybrid", "climatology", "Scene again"]
    assert [row[:2] for row in scores] == [[f"| {d} m", world] for d in (0, 1, 2, 3) for world in worlds]
    assert len(bands) == 4 * (views.N_BANDS + 1)
    crps = {row[1]: float(row[4].strip("*")) for row in scores[:4]}
    assert crps["Scene again"] < crps["topdown"] < crps["climatology"]
    assert outcome.pictures[0].read_bytes()[:4] == b"\x89PNG"


def test_unknown_models_sensors_and_choices_are_refused_before_a_scene_is_built(tmp_path):
    for chosen, said in (
        ({"models": "topdown,nonsense"}, "there is no model 'nonsense'"),
        ({"sensor": "nonsense"}, "nonsense"),
    ):
        with pytest.raises(InputError, match=said):
            find_experiment("extrapolated-views").run(tmp_path, 4, 1, silent, None, chosen)
    with pytest.raises(InputError, match="expected 2 or more"):
        views.run(tmp_path, 1)
    with pytest.raises(InputError, match="has no such choice; these have: extrapolated-views"):
        find_experiment("voxel-size").run(tmp_path, 1, 1, silent, None, {"models": "topdown"})
