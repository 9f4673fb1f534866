# SPDX-License-Identifier: Apache-2.0
"""Sites of segments, worlds of a map and a sensor model, neighbours that hang together, maps out of logs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.planar.copula import NeighbourCopula, fit_copula
from hedgerow.planar.extraction import extract_segments
from hedgerow.planar.parametric import BeamMixture, GaussianModel
from hedgerow.planar.regression import Scale
from hedgerow.planar.site import PlanarSite, nominal_states, scan_beams
from hedgerow.planar.world import PlanarWorld, readings_of

SCALE = Scale(high_m=8.0, step_m=0.01)
BEARINGS = np.deg2rad(np.arange(360))
ROOM = PlanarSite.from_polyline([[0, 0], [4, 0], [4, 3], [0, 3]])
SITE = """
[[object]]
points_m = [[0, 0], [5, 0], [5, 5], [0, 5]]
closed = true

[[object]]
kind = "target"
points_m = [[-0.305, 0], [0.305, 0]]
pose = { x_m = 2.0, y_m = 3.0, heading_deg = 90 }

[[walkers]]
count = [3, 3]
area_m = [0, 2.5, 5, 5]
"""


def scans(world, poses, seed=1):
    return hr.Log.concatenate(
        [world.fire(scan_beams(pose, BEARINGS, sweep=i, time_s=0.2 * i), seed) for i, pose in enumerate(poses)]
    )


def test_features_are_range_and_incidence_on_the_walls():
    states = nominal_states(ROOM.scene(), scan_beams((1.0, 1.0, 0.0), BEARINGS), 360, 8.0)
    assert_allclose(states.feature[0], [3.0, 0.0], atol=1e-5)
    assert_allclose(states.feature[30], [3 / np.cos(np.pi / 6), np.pi / 6], atol=1e-5)
    assert_allclose(states.feature[180], [1.0, 0.0], atol=1e-5)
    assert np.array_equal(states.group, np.arange(360))


def test_beams_of_several_scans_are_those_of_each():
    poses = [(1.0, 1.0, 0.0), (2.0, 0.5, 1.2)]
    each = hr.Beams.concatenate(
        [scan_beams(pose, BEARINGS, sweep=i + 3, time_s=0.2 * i) for i, pose in enumerate(poses)]
    )
    together = scan_beams(poses, BEARINGS, sweep=[3, 4], time_s=[0.0, 0.2])
    for name, column in each.columns().items():
        np.testing.assert_array_equal(together.columns()[name], column, err_msg=name)


def test_where_the_map_has_nothing_there_are_no_features():
    wall = PlanarSite.from_polyline([[2, -1], [2, 1]], closed=False)
    states = nominal_states(wall.scene(), scan_beams((0, 0, 0), BEARINGS), 360, 8.0)
    assert not states.is_open[0] and states.is_open[180]


def test_a_site_file_places_objects_and_walkers(tmp_path):
    (tmp_path / "lab.toml").write_text(SITE)
    site = PlanarSite.load(tmp_path / "lab.toml")
    assert_allclose(site.segments("target")[0], [[2.0, 2.695], [2.0, 3.305]], atol=1e-12)
    walks = site.walks(seed=3, n_steps=200)
    assert walks.shape == (200, 3, 2) and np.array_equal(walks, site.walks(seed=3, n_steps=200))
    assert (walks >= [0, 2.5]).all() and (walks <= [5, 5]).all()
    assert 0.1 < np.abs(np.diff(walks, axis=0)).mean() < 0.25  # mean of |N(0, 0.2)| is 0.16
    hits = site.scene(walks[0]).fire(scan_beams((2.5, 1.0, 0.0), BEARINGS))
    assert set(np.unique(hits.label)) <= {114, 115, 30} and (hits.label == 30).any()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[5, 0]", '["a", 0]'), "object"),
        (("count = [3, 3]", "count = [4, 3]"), "count"),
        (("area_m = [0, 2.5, 5, 5]", "area_m = [0, 6, 5, 5]"), "area_m"),
        (("closed = true", "open = true"), "no such parameter"),
    ],
)
def test_a_wrong_site_file_is_one_sentence(change, said, tmp_path):
    (tmp_path / "lab.toml").write_text(SITE.replace(*change))
    with pytest.raises(FileError, match=said):
        PlanarSite.load(tmp_path / "lab.toml")


def test_a_planar_world_fires_as_any_other_and_knows_its_likelihood():
    world = PlanarWorld(ROOM.scene(), GaussianModel(SCALE, 1e-4), 360)
    log = scans(world, [(1.0, 1.0, 0.1 * i) for i in range(20)])
    truth = nominal_states(ROOM.scene(), log.beams, 360, 8.0).feature[:, 0]
    error = log.returns.first_m - truth
    assert abs(error.mean()) < 0.002  # 7,200 readings with sigma of 2 cm: 0.2 mm
    assert np.isfinite(world.log_likelihood(log)).all()
    assert (hr.compare(log, world)["beam_error_mean_m"] or 1) < 0.05
    part = world.fire(log.beams[100:300], 1)
    assert np.array_equal(part.returns.first_m, log.returns.first_m[100:300])


def test_a_copula_leaves_single_bearings_alone_and_joins_neighbours():
    copula = NeighbourCopula(1.5)
    level = copula.levels(5, np.arange(200_000))
    # Kolmogorov-Smirnov for dependent numbers: about 200,000 / 5 independent ones; 1.95 / sqrt(n) is one in 1,000.
    assert np.abs(np.sort(level) - np.linspace(0, 1, len(level))).max() < 1.95 / np.sqrt(40_000)
    from scipy.special import ndtri

    score = ndtri(level)
    for lag in (1, 2, 4):
        assert np.mean(score[lag:] * score[:-lag]) == pytest.approx(np.exp(-(lag**2) / (4 * 1.5**2)), abs=0.02)
    assert np.array_equal(copula.levels(5, np.arange(50, 70)), level[50:70])


def test_the_width_of_a_copula_is_recovered_from_scans():
    model = BeamMixture(SCALE, eta=0.7, sigma_m=0.05, rate_per_m=1.0, null=0.2)
    joined = PlanarWorld(ROOM.scene(), model, 360, copula=NeighbourCopula(1.2))
    apart = PlanarWorld(ROOM.scene(), model, 360)
    poses = [(1.0 + 0.1 * i, 1.0, 0.3 * i) for i in range(6)]
    for world, expected in ((joined, 1.2), (apart, 0.0)):
        log = scans(world, poses)
        found = fit_copula(model, world.states(log.beams), log.returns.first_m.astype(float), 360)
        assert found.width == pytest.approx(expected, abs=0.25 if expected else 0.4)


def test_readings_at_one_pose_are_rows_of_one_state():
    world = PlanarWorld(ROOM.scene(), GaussianModel(SCALE, 1e-4), 360)
    seen = readings_of(scans(world, [(1.0, 1.0, 0.0)] * 5 + [(2.1, 1.3, 0.0)]), ROOM.scene(), 360, 8.0)
    assert len(seen) == 720
    assert sorted(np.unique(seen.count).tolist()) == [1, 5]


def test_the_walls_of_a_room_are_found_in_a_log():
    world = PlanarWorld(ROOM.scene(), GaussianModel(SCALE, 1e-5), 360)
    found = extract_segments(scans(world, [(1.0 + 0.2 * i, 1.0 + 0.1 * i, 0.2 * i) for i in range(8)]))
    assert len(found) == 4
    lengths = sorted(np.linalg.norm(found[:, 1] - found[:, 0], axis=1))
    assert_allclose(lengths, [3, 3, 4, 4], atol=0.1)  # noise of 1 cm at the ends, and a beam's spacing
    for segment in found:
        on_wall = [
            np.abs(segment[:, 0]).max(),
            np.abs(segment[:, 0] - 4).max(),
            np.abs(segment[:, 1]).max(),
            np.abs(segment[:, 1] - 3).max(),
        ]
        assert min(on_wall) < 0.01


def test_what_walked_is_not_in_the_map():
    lab = PlanarSite.parse(
        {
            "object": [{"points_m": [[0, 0], [4, 0], [4, 3], [0, 3]], "closed": True}],
            "walkers": [{"count": [2, 2], "area_m": [2, 1, 4, 3], "step_m": 0.5}],
        },
        "lab",
    )
    walks = lab.walks(1, 8)
    logs = []
    for i in range(8):
        world = PlanarWorld(lab.scene(walks[i]), GaussianModel(SCALE, 1e-5), 360)
        logs.append(world.fire(scan_beams((1.0, 0.8, 0.2 * i), BEARINGS, sweep=i), 1))
    found = extract_segments(hr.Log.concatenate(logs))
    assert len(found) >= 4
    assert max(np.linalg.norm(found[:, 1] - found[:, 0], axis=1)[4:], default=0) < 0.5


def test_a_log_without_walls_is_refused():
    log = hr.Log.from_arrays(origins=(0, 0, 0), directions=[[1, 0, 0]] * 5, ranges=[np.inf] * 5, max_range_m=5)
    with pytest.raises(InputError, match="no segment"):
        extract_segments(log)
    with pytest.raises(InputError, match="whole scans"):
        readings_of(log, ROOM.scene(), 360, 8.0)
