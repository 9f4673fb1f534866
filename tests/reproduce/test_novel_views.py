# SPDX-License-Identifier: Apache-2.0
"""Novel views: images against the loop of the papers' code, and both experiments on small drives."""

from math import atan2, cos, pi, radians, sin, sqrt

import numpy as np
import pytest
from kitti360_maker import ELEVATIONS_DEG, fire_drive
from numpy.testing import assert_allclose
from small_scenes import small_scene

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.metrics.novel_view import View, score_view
from hedgerow.reproduce.novel_views import kitti360, true_beams
from hedgerow.reproduce.novel_views.frames import Frame, Lasers, sure_misses, training_log
from hedgerow.reproduce.novel_views.kitti360 import PASSAGES
from hedgerow.reproduce.novel_views.panorama import Panorama, beams_from
from hedgerow.reproduce.novel_views.published import LIDAR4D, SCORES, score_table
from hedgerow.scenes.site import load_site

SMALL = Panorama(rows=33, columns=180)
MOVED = hr.Pose.from_xyz_rpy((3.0, -2.0, 1.7), (0.02, 0.03, 0.5))


def slow_image(cloud, rows=66, columns=1030, top_deg=2.0, height_deg=26.9, max_range_m=80.0):
    """The image of a cloud, point by point, as the protocol says."""
    ranges, intensities = np.zeros((rows, columns)), np.zeros((rows, columns))
    for x, y, z, intensity in cloud.astype(float).tolist():
        range_m = sqrt(x * x + y * y + z * z)
        if range_m >= max_range_m:
            continue
        up = atan2(z, sqrt(x * x + y * y)) + radians(height_deg - top_deg)
        row = round(rows - up / (radians(height_deg) / rows))
        column = round((pi - atan2(y, x)) / (2 * pi / columns))
        if 0 <= row < rows and 0 <= column < columns and (ranges[row, column] == 0 or ranges[row, column] > range_m):
            ranges[row, column], intensities[row, column] = range_m, intensity
    return ranges, intensities


def random_cloud(n=4000, seed=1):
    rng = np.random.default_rng(seed)
    azimuth, elevation = rng.uniform(-np.pi, np.pi, n), np.deg2rad(rng.uniform(-27, 4, n))
    range_m = rng.uniform(1, 95, n)
    flat = np.cos(elevation)
    direction = np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.sin(elevation)])
    return np.column_stack([range_m[:, None] * direction, rng.random(n)]).astype(np.float32)


@pytest.mark.parametrize("grid", [Panorama(), SMALL])
def test_images_are_those_of_a_loop_over_points(grid):
    cloud = random_cloud()
    ranges, intensities = slow_image(cloud, grid.rows, grid.columns)
    image = grid.image(cloud)
    filled = np.isfinite(image.range_m)
    assert (filled == (ranges.ravel() > 0)).all() and 1000 < filled.sum() < len(cloud)
    assert_allclose(image.range_m[filled], ranges.ravel()[filled], rtol=1e-6)
    assert_allclose(image.intensity[filled], intensities.ravel()[filled])


def test_the_middle_of_a_pixel_falls_into_it_and_clouds_are_rebuilt_along_it():
    grid = Panorama()
    assert (grid.pixel_of(grid.middles) == np.arange(grid.n_pixels)).all()
    assert_allclose(grid.middles[0], [-cos(radians(2)), 0, sin(radians(2))], atol=1e-12)  # back, 2 degrees up
    assert_allclose(np.rad2deg(np.arcsin(grid.middles[-1, 2])), 2 - 65 / 66 * 26.9)
    # Within half a pixel: 0.2 degrees of elevation and as much azimuth.
    image = grid.image(random_cloud())
    assert image.direction is not None
    apart = np.einsum("ij,ij->i", image.direction, grid.middles)
    assert np.rad2deg(np.arccos(np.minimum(apart, 1))).max() < np.hypot(26.9 / 66, 360 / 1030) / 2 + 1e-6


def test_the_passages_are_those_of_the_benchmark():
    judged = {each.start: each.judged for each in PASSAGES}
    assert judged[1538] == [1551, 1564, 1577, 1590] and judged[3353] == [3366, 3379, 3392, 3405]
    assert judged[2350] == [2360, 2370, 2380, 2390] and judged[11400] == [11410, 11420, 11430, 11440]
    assert [each.frames[-1] for each in PASSAGES[:4]] == [1601, 1791, 1971, 3416]
    assert len(PASSAGES) == 10


def test_a_miss_is_sure_only_where_the_pixels_above_and_below_are_empty_too():
    grid = Panorama(rows=5, columns=2)
    image = grid.image(np.zeros((0, 4), dtype=np.float32))
    image.range_m.reshape(5, 2)[[1, 4], [0, 0]] = 10.0
    assert sure_misses(image, grid).reshape(5, 2).T.tolist() == [[False] * 5, [True] * 5]
    image.range_m.reshape(5, 2)[4, 0] = np.inf
    assert sure_misses(image, grid).reshape(5, 2)[:, 0].tolist() == [False, False, False, True, True]


class Ground(hr.World):
    """Level ground at height 0 that returns 1 m up at most, and a share of the light by the seed."""

    def returns(self, beams, shot):
        with np.errstate(divide="ignore"):
            range_m = np.where(beams.direction[:, 2] < 0, -beams.origin_m[:, 2] / beams.direction[:, 2], np.inf)
        inside = (range_m >= shot.min_range_m) & (range_m < shot.max_range_m)
        returned = np.where(inside, range_m, np.inf)
        return hr.Returns.from_arrays(ranges=returned, intensities=np.where(inside, 0.5, np.nan))


def frames_of(root, grid):
    drive = kitti360.Kitti360Drive.open(root / "data_3d_raw" / kitti360.DRIVE)
    return [Frame.of(number, drive.last_pose(number), drive.cloud(number), grid) for number in drive.files]


def test_a_world_that_is_the_truth_answers_with_the_image_of_the_sensor(tmp_path):
    # Rows between the lasers are empty in the sensor's images, and the ground is asked where the lasers go.
    frames = frames_of(fire_drive(tmp_path, Ground(), 0, 6), SMALL)
    for frame in frames:  # the ground of the maker's map lies at the height of the world's origin
        frame.pose.position_m.setflags(write=True)
        frame.pose.position_m[2] -= 110.0
    lasers = Lasers.learn(frames[:5], Ground(), SMALL)
    filled = np.isfinite(frames[5].image.range_m)
    assert 0.3 < filled.mean() < 0.8 and np.count_nonzero(~filled.reshape(33, 180).any(axis=1)) > 10
    view, whole = lasers.view(Ground(), frames[5].pose)
    beams = beams_from(frames[5].pose, SMALL.middles)
    found = score_view(beams, frames[5].view, view, SMALL.pixels)
    assert found["drop_accuracy"] == 1 and found["intensity_rmse"] == 0
    assert found["range_rmse_m"] < 1e-3  # float32
    plain = score_view(beams, frames[5].view, whole, SMALL.pixels)
    assert plain["drop_accuracy"] < 0.8  # without what was learned of the lasers


def test_a_training_log_has_all_points_where_they_are_and_the_sure_misses():
    cloud = random_cloud(500)
    frame = Frame.of(7, MOVED, cloud, SMALL)
    log = training_log([frame], SMALL)
    n_points = np.count_nonzero(np.isfinite(log.returns.first_m))
    inside = (SMALL.pixel_of(cloud[:, :3].astype(float)) >= 0) & (np.linalg.norm(cloud[:, :3], axis=1) < 80)
    assert n_points == inside.sum() and len(log) - n_points == sure_misses(frame.image, SMALL).sum()
    assert_allclose(log.points(), MOVED.transform(cloud[inside, :3].astype(float)), atol=1e-4)
    assert (log.beams.sweep == 7).all() and log.max_range_m == 80


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kitti360")
    site = load_site(small_scene(folder / "yard.toml"))
    return fire_drive(folder, site.world(), 2350, 12)


def test_the_benchmark_gives_one_table_the_same_on_every_run(drive, tmp_path):
    runs = [kitti360.run(tmp_path, 12, 1, len, data=drive, models="voxel,topdown", grid=SMALL) for _ in range(2)]
    assert runs[0].text == runs[1].text
    assert "dynamic sequences 2350: 1 frames judged" in runs[0].text and "Not there: sequences 1538" in runs[0].text
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in runs[0].text.splitlines() if "|" in line}
    assert list(rows[""]) == [" voxel ", " topdown ", " LiDAR4D ", " LiDAR-NeRF "]
    assert set(SCORES.values()) <= rows.keys()
    assert float(rows["CD [m²]"][2]) == LIDAR4D["dynamic"]["chamfer_m2"]
    for column in (0, 1):
        assert float(rows["F at 0.05 m²"][column]) > 0.6
        assert float(rows["drop accuracy"][column]) > 0.85  # a third of the rows have no laser
    assert all(path.stat().st_size > 10_000 for path in runs[0].pictures) and len(runs[0].pictures) == 2


def test_the_true_mask_keeps_what_was_measured_and_nothing_else(drive):
    frame = frames_of(drive, SMALL)[5]
    whole = View(np.full(SMALL.n_pixels, 9.0))
    for true_mask in (False, True):
        benchmark = kitti360.Benchmark(["voxel"], SMALL, true_mask, len)
        answer = benchmark.answer(frame, View(np.full(SMALL.n_pixels, 7.0)), whole).range_m
        assert (answer == np.where(np.isfinite(frame.image.range_m), 9.0, np.inf)).all() == true_mask
        assert (answer == 7.0).all() != true_mask


def test_the_benchmark_says_what_it_needs(drive, tmp_path):
    for arguments, match in (
        ({}, "kitti360-nvs needs the folder of KITTI-360"),
        ({"data": tmp_path}, "no such folder"),
        ({"data": drive}, "holds none of the sequences whole"),
        ({"data": drive, "size": 11}, "11 frames leave none to judge; 12 or more do"),
        ({"data": drive, "mask": "no"}, "there is no 'no'; there are predicted and true"),
        ({"data": drive, "models": "nerf"}, "there is no model 'nerf'"),
    ):
        with pytest.raises(HedgerowError, match=match):
            kitti360.run(tmp_path, say=len, **arguments)


def test_other_drives_are_scored_on_their_true_beams(tmp_path):
    site = load_site(small_scene(tmp_path / "yard.toml"))
    sensor = hr.Sensor.named("vlp-16")
    line = hr.Trajectory.line([-2, 0, 1.5], [2, 0, 1.5], speed_mps=3)
    sweeps = list(hr.simulate(site.world(), sensor, line, sweeps=12))
    data = tmp_path / "logs"
    data.mkdir()
    hr.write_log(hr.Log.concatenate(sweeps), data / "yard.parquet")
    outcome = true_beams.run(tmp_path, None, 1, len, data=data, models="voxel")
    assert "yard, sweeps 10 judged, images of 16 x 1030" in outcome.text
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in outcome.text.splitlines() if "|" in line}
    assert [float(cell) for cell in rows["F at 0.05 m²"]][2] == 0.931 and float(rows["F at 0.05 m²"][0]) > 0.8
    assert float(rows["voxel"][2]) > 0 and rows["LiDAR-RT, graphics card"][-1].strip() == "30"
    assert [path.name for path in outcome.pictures] == [
        "novel-views-yard-ranges.png",
        "novel-views-yard-intensities.png",
    ]
    with pytest.raises(HedgerowError, match="11 sweeps leave none to judge; 12 or more do"):
        true_beams.run(tmp_path, 11, 1, len, data=data, models="voxel")
    with pytest.raises(HedgerowError, match="novel-views needs a folder with logs"):
        true_beams.run(tmp_path, data=tmp_path / "none")


def test_a_table_has_only_what_is_known():
    table = score_table({"ours": {"f_score": 0.5}, "theirs": {"f_score": 0.25, "range_psnr": 20.0}})
    assert table.splitlines()[2:] == ["| F at 0.05 m² | 0.500 | 0.250 |", "| range PSNR [dB] | - | 20.00 |"]


def test_the_maker_has_rows_between_its_lasers():
    rows = np.rint((2 - ELEVATIONS_DEG) / 26.9 * SMALL.rows)
    assert len(set(rows.tolist())) == len(ELEVATIONS_DEG) < SMALL.rows
