# SPDX-License-Identifier: Apache-2.0
"""What `hedgerow info` tells about a file."""

import struct

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import FileError
from hedgerow.frames import Trajectory
from hedgerow.io import write_log, write_trajectory
from hedgerow.io.describe import describe
from hedgerow.log import Log


def test_log_is_described(tmp_path):
    log = Log.from_arrays(
        origins=[0, 0, 0],
        directions=[[1, 0, 0]] * 4,
        ranges=[[2, 3], [4, np.inf], [5, 6.5], [np.inf, np.inf]],
        times=[0.0, 0.1, 0.2, 0.3],
        sweeps=[3, 3, 4, 4],
        labels=np.ones((4, 2)),
        max_range_m=120,
        min_range_m=0.9,
        sensor="hdl-64e",
        map_origin_m=[400000.25, 5000000, 0],
    )
    log.metadata["seed"] = 7
    log.metadata["place"] = "meadow"
    write_log(log, tmp_path / "x.parquet")
    lines = describe(tmp_path / "x.parquet")
    size = (tmp_path / "x.parquet").stat().st_size
    assert lines == {
        "File": f"{tmp_path / 'x.parquet'}, log in 1 Parquet file, {size / 1e3:.3g} kB",
        "Sensor": "hdl-64e",
        "Beams": "4 in 2 sweeps (3 to 4)",
        "Time": "0.000000000 to 0.300000000 s (0.3 s)",
        "Path": "0.0 m from sweep to sweep",
        "Returns": "5, 75.0 % of the beams have one, up to 2 each",
        "Ranges": "2.000 to 6.500 m (limits 0.9 to 120 m)",
        "Arrays": "range_m, label",
        "Map origin": "400000.25 5000000 0 m",
        "Seed": "7",
        "Metadata": '{"place": "meadow"}',
        "Written by": lines["Written by"],
    }
    assert lines["Written by"].startswith("Hedgerow ")
    assert next(iter(lines)) == "File"


@pytest.mark.parametrize("n", [0, 2])
def test_log_without_beams_or_returns_is_described(tmp_path, n):
    log = Log.from_arrays(origins=[0, 0, 0], directions=np.tile([1.0, 0, 0], (n, 1)), ranges=np.full(n, np.inf))
    write_log(log, tmp_path / "x.log")
    lines = describe(tmp_path / "x.log")
    assert lines["Sensor"] == "unknown"
    assert lines["Beams"] == ("2 in 1 sweep (0 to 0)" if n else "0 in 0 sweeps")
    assert lines["Returns"] == ("0, 0.0 % of the beams have one" if n else "0")
    assert lines["Ranges"] == "none (limits 0 to inf m)"


@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
def test_a_cloud_without_usable_points_is_described(tmp_path, log_maker):
    write_log(log_maker(), tmp_path / "x.las")
    data = bytearray((tmp_path / "x.las").read_bytes())
    struct.pack_into("<d", data, 155, 1e159)  # the offset of x, which puts all points out of reach
    (tmp_path / "x.las").write_bytes(data)
    lines = describe(tmp_path / "x.las")
    assert (lines["Beams"], lines["Time"], lines["Returns"][0]) == ("0 in 0 sweeps", "none", "0")


def test_trajectories_are_described(tmp_path):
    trajectory = Trajectory.line((0, 0, 1), (3, 4, 1), 2)
    write_trajectory(trajectory, tmp_path / "x.tum")
    write_trajectory(trajectory, tmp_path / "x.kitti")
    tum, kitti = describe(tmp_path / "x.tum"), describe(tmp_path / "x.kitti")
    assert ", trajectory in TUM text, " in tum.pop("File")
    assert tum == {
        "Poses": "2",
        "Time": "0.000000000 to 2.500000000 s (2.5 s)",
        "Length": "5.000 m",
        "Mean speed": "2.000 m/s",
        "Extent": "x 0.000 to 3.000 m, y 0.000 to 4.000 m, z 1.000 to 1.000 m",
    }
    assert ", trajectory in KITTI text, " in kitti.pop("File")
    assert kitti == {"Poses": "2", "Time": "none in the file", "Length": "5.000 m", "Extent": tum["Extent"]}


def test_what_cannot_be_described_is_refused(tmp_path):
    with pytest.raises(FileError, match="no such file or folder"):
        describe(tmp_path / "x.parquet")
    (tmp_path / "x.jpg").write_bytes(b"")
    with pytest.raises(FileError, match=r"unknown kind of file, suffix .jpg; known are .*.parquet, .log, .tum"):
        describe(tmp_path / "x.jpg")


def test_a_fired_log_says_what_it_was_fired_at(tmp_path):
    sensor = hr.Sensor.named("vlp-16")
    line = hr.Trajectory.line((0, 0, 1), (1, 0, 1), 5.0)
    hr.write_trajectory(line, tmp_path / "poses.tum")
    simulation = hr.simulate(hr.SceneWorld(hr.Scene()), sensor, hr.read_trajectory(tmp_path / "poses.tum"), seed=3)
    hr.write_log(simulation.sweep(0), tmp_path / "fired.parquet")
    lines = describe(tmp_path / "fired.parquet")
    assert lines["Fired at"] == "SceneWorld"
    assert lines["Trajectory"] == str(tmp_path / "poses.tum")
    assert (lines["Seed"], lines["Sensor noise"]) == ("3", "added")
    assert "Metadata" not in lines


def test_what_a_log_says_cannot_steer_the_terminal_nor_fill_it(tmp_path, log_maker):
    log = log_maker()
    log.metadata["world"] = {"kind": "scene", "scene": "a\x1b[31mb\u202e" + "x" * 9000}
    log.metadata["trajectory"] = {"source": "poses\r.tum"}
    log.metadata["note"] = "y" * 100_000
    write_log(log, tmp_path / "x.parquet")
    lines = describe(tmp_path / "x.parquet")
    assert all(text.isprintable() for text in lines.values())
    assert lines["Fired at"].startswith(r"scene a\x1b[31mb\u202exxx")
    assert lines["Trajectory"] == "poses .tum"
    assert len(lines["Fired at"]) < 600
    assert len(lines["Metadata"]) < 5000
