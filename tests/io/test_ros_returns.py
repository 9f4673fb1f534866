# SPDX-License-Identifier: Apache-2.0
"""Second returns are marked and missing returns are NaN in organised clouds, as others read them and as we do."""

import json
from typing import Any

import numpy as np
import pytest
from bag_parser import read_by_others

import hedgerow as hr
from hedgerow.base import rotation
from hedgerow.errors import InputError
from hedgerow.io import open_sink
from hedgerow.io.ros.messages import return_kinds

DRIVE = hr.Trajectory.from_poses(
    [1_000_000_000, 1_300_000_000],
    [hr.Pose.from_xyz_rpy([0, 0, 1]), hr.Pose.from_xyz_rpy([1, 0.2, 1], [0.01, 0, 0.1])],
)
SUFFIXES = [".mcap", ".bag"]


def turning(n_returns=1, *, name="vlp-16", n_sweeps=2, intensity=True) -> hr.Log:
    """Whole sweeps of a lidar of the catalogue along the drive, 30 % missing."""
    sensor = hr.Sensor.named(name)
    beams = hr.Beams.concatenate([*sensor.drive_sweeps(DRIVE, n_sweeps=n_sweeps)])
    rng = np.random.default_rng(1)
    ranges = np.sort(rng.uniform(2, 50, (len(beams), n_returns)), axis=1).astype(np.float32)
    ranges[rng.random(len(beams)) < 0.3] = np.inf
    if n_returns > 1:
        ranges[rng.random(len(beams)) < 0.4, 1:] = np.inf
    hit = np.isfinite(ranges)
    strength = np.where(hit, rng.integers(1, 256, ranges.shape), np.nan).astype(np.float32)
    label = np.where(hit, rng.integers(1, 99, ranges.shape), 0).astype(np.uint16)
    shape = (len(beams),) if n_returns == 1 else ranges.shape
    returns = hr.Returns(ranges.reshape(shape), strength.reshape(shape) if intensity else None, label.reshape(shape))
    return hr.Log(beams, returns, name, 0.5, 60.0)


def clouds_of(path, topic) -> list[Any]:
    return [content for each, _, content in read_by_others(path) if each == topic]


def test_kinds_of_returns_are_the_numbers_of_autoware():
    inf, nan = np.inf, np.nan
    ranges = np.array(
        [[1, 2, 3], [1, 2, inf], [1, 2, inf], [1, inf, inf], [inf, inf, inf], [1, 2, 3], [4, 5, inf]], np.float32
    )
    strength = np.array(
        [[9, 1, 5], [9, 1, nan], [1, 9, nan], [1, nan, nan], [nan, nan, nan], [1, 9, 2], [nan, nan, nan]], np.float32
    )
    kinds = return_kinds(hr.Returns(ranges, strength))
    assert kinds is not None
    assert kinds[0].tolist() == [[3, 0, 6], [3, 6, 0], [5, 4, 0], [7, 0, 0], [0, 0, 0], [5, 0, 6], [3, 6, 0]]
    assert kinds[1].tolist() == [[1, 2, 3], [1, 2, 0], [1, 2, 0], [1, 0, 0], [0, 0, 0], [1, 2, 3], [1, 2, 0]]
    kinds = return_kinds(hr.Returns(ranges))  # intensities not known: the nearest counts as the strongest
    assert kinds is not None and kinds[0][:3].tolist() == [[3, 0, 6], [3, 6, 0], [3, 6, 0]]
    assert return_kinds(hr.Returns(ranges[:, 0].copy())) is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_others_see_which_return_of_its_pulse_a_point_is(tmp_path, suffix):
    log, path = turning(3), tmp_path / f"x{suffix}"
    hr.write_log(log, path, trajectory=DRIVE)
    kinds = return_kinds(log.returns)
    assert kinds is not None and log.returns.label is not None and log.returns.intensity is not None
    for (number, sweep), (_, _, rows, _) in zip(log.iter_sweeps(), clouds_of(path, "/points"), strict=True):
        assert rows.dtype.names == ("x", "y", "z", "intensity", "ring", "time", "return_type", "return_number", "label")
        here, hit = log.beams.sweep == number, sweep.returns.hit
        np.testing.assert_array_equal(rows["return_type"], kinds[0][here][hit])
        np.testing.assert_array_equal(rows["return_number"], kinds[1][here][hit])
        np.testing.assert_array_equal(rows["label"], log.returns.label[here][hit])
        np.testing.assert_array_equal(rows["intensity"], log.returns.intensity[here][hit])
    missing = clouds_of(path, "/points/no_return")
    assert sum(len(each[2]) for each in missing) == np.count_nonzero(np.isinf(log.returns.first_m))
    assert not any(each[2]["return_number"].any() for each in missing)


def test_one_return_per_pulse_keeps_the_layout_of_velodynes_driver(tmp_path):
    hr.write_log(turning(), tmp_path / "x.mcap", trajectory=DRIVE)
    assert clouds_of(tmp_path / "x.mcap", "/points")[0][2].dtype.names[:6] == (
        *("x", "y", "z"), "intensity", "ring", "time",
    )  # fmt: skip
    assert "return_type" not in clouds_of(tmp_path / "x.mcap", "/points")[0][2].dtype.names


def test_pulses_of_one_ring_and_time_are_told_apart_by_the_numbers_of_their_returns(tmp_path):
    rng = np.random.default_rng(2)
    unit = rng.normal(size=(50, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    ranges = np.sort(rng.uniform(1, 30, (50, 2)), axis=1)
    ranges[::3, 1], ranges[::7] = np.inf, np.inf
    log = hr.Log.from_arrays(origins=[0, 0, 1], directions=unit, ranges=ranges, times=1.0)  # a flash: all at once
    hr.write_log(log, tmp_path / "x.mcap")
    back = hr.read_log(tmp_path / "x.mcap")
    assert len(back) == 50
    expected, found = (np.sort(each.returns.range_m, axis=0) for each in (log, back))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("n_returns", [1, 2])
def test_others_see_an_organised_cloud_with_nan_for_no_return(tmp_path, suffix, n_returns):
    log, path = turning(n_returns), tmp_path / f"x{suffix}"
    hr.write_log(log, path, trajectory=DRIVE, organised=True)
    shape = (len(log), n_returns)
    time_ns, ranges = log.beams.time_ns, log.returns.range_m.reshape(shape)
    assert log.returns.intensity is not None and log.returns.label is not None
    for k, topic in enumerate(["/points", "/points2"][:n_returns]):
        for (number, sweep), (stamp_ns, frame, rows, is_dense) in zip(
            log.iter_sweeps(), clouds_of(path, topic), strict=True
        ):
            assert (stamp_ns, frame, is_dense) == (sweep.beams.time_ns.min(), "lidar", False)
            assert rows.shape == (16, len(sweep) // 16)
            assert (rows["ring"] == np.arange(16)[:, None]).all()
            for ring in range(16):
                here = (log.beams.sweep == number) & (log.beams.ring == ring)
                hit = np.isfinite(ranges[here, k])
                xyz = np.stack([rows[ring][axis] for axis in "xyz"], axis=1).astype(np.float64)
                np.testing.assert_array_equal(np.isfinite(xyz), np.repeat(hit[:, None], 3, axis=1))
                position_m, turn = DRIVE.at(time_ns[here][hit])
                at_m = position_m + rotation.rotate(turn, xyz[hit])
                along_m = ranges[here, k][hit][:, None] * log.beams.direction[here][hit]
                np.testing.assert_allclose(at_m, log.beams.origin_m[here][hit] + along_m, atol=2e-5)
                assert np.abs(rows[ring]["time"] - (time_ns[here] - stamp_ns) * 1e-9).max() < 1e-8
                strength = np.nan_to_num(log.returns.intensity.reshape(shape)[here, k])
                np.testing.assert_array_equal(rows[ring]["intensity"], strength)
                np.testing.assert_array_equal(rows[ring]["label"], log.returns.label.reshape(shape)[here, k])
                if n_returns > 1:
                    np.testing.assert_array_equal(rows[ring]["return_number"], np.where(hit, k + 1, 0))
    about = next(content for topic, _, content in read_by_others(path) if topic == "/hedgerow/log")
    assert json.loads(about)["organised"] is True


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("n_returns", [1, 3])
def test_an_organised_bag_comes_back_whole(tmp_path, suffix, n_returns):
    log, path = turning(n_returns), tmp_path / f"x{suffix}"
    hr.write_log(log, path, trajectory=DRIVE, organised=True)
    back = hr.read_log(path)
    order = np.lexsort([log.beams.ring, log.beams.time_ns])
    log = log[order]
    assert np.abs(back.beams.time_ns - log.beams.time_ns).max() <= 8
    for name in ("ring", "sweep"):
        np.testing.assert_array_equal(getattr(back.beams, name), getattr(log.beams, name))
    np.testing.assert_array_equal(back.returns.hit, log.returns.hit)
    np.testing.assert_array_equal(back.returns.intensity, log.returns.intensity)
    np.testing.assert_array_equal(back.returns.label, log.returns.label)
    # Of a pulse with several returns the beam is the line through them, though the laser is 4 cm beside the axis.
    np.testing.assert_allclose(back.points(), log.points(), atol=2e-4)
    seen = hr.read_log(path, recover="no")
    assert len(seen) == np.count_nonzero(np.isfinite(log.returns.first_m))
    assert seen.returns.hit.sum() == log.returns.hit.sum()


def test_the_cloud_alone_tells_our_reader_the_missing_returns(tmp_path):
    """As a driver would have recorded it: without the topics that only Hedgerow writes."""
    from bag_maker import Maker

    log = turning()
    hr.write_log(log, tmp_path / "x.mcap", trajectory=DRIVE, organised=True)
    maker = Maker("mcap")
    for stamp_ns, frame, rows, _ in clouds_of(tmp_path / "x.mcap", "/points"):
        maker.cloud(rows, stamp_ns, frame=frame)
    source = hr.open_log(maker.write(tmp_path / "2"), trajectory=DRIVE, max_range_m=60)
    back = source.read()
    assert source.metadata["recovery"]["method"] == "organised cloud"
    assert len(back) == len(log)
    assert np.isinf(back.returns.range_m).sum() == np.isinf(log.returns.range_m).sum()


def test_what_is_no_grid_is_refused_with_one_sentence(tmp_path):
    path = tmp_path / "x.mcap"
    with pytest.raises(InputError, match=r"organised: sweep 0 of this mid-360 is no grid of lasers and columns \(the"):
        hr.write_log(turning(name="mid-360", n_sweeps=1), path, trajectory=DRIVE, organised=True)
    with pytest.raises(InputError, match=r"its rings have 1,8\d\d to 1,8\d\d beams\); write it without organised"):
        hr.write_log(turning()[3:], path, trajectory=DRIVE, organised=True)
    assert not list(tmp_path.iterdir())


def test_options_of_writing_are_checked(tmp_path):
    with pytest.raises(InputError, match="organised: writing parquet does not take this option; it takes none"):
        hr.write_log(turning(), tmp_path / "x.parquet", organised=True)
    with pytest.raises(InputError, match="there is no such option; there are organised"):
        open_sink(tmp_path / "x.mcap", colour=3)
    with pytest.raises(InputError, match="organised: input should be a valid boolean"):
        open_sink(tmp_path / "x.mcap", organised="perhaps")
