# SPDX-License-Identifier: Apache-2.0
"""hedgerow segment: what it prints and writes, and what it refuses."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cli_runner import assert_refused, run
from plant_clouds import ground_points, log_of, shrub, tree

import hedgerow as hr
from hedgerow.compose.segment_file import load_segmentation
from hedgerow.scenes.annotation import read_annotation
from hedgerow.scenes.point_source import open_points
from hedgerow.world.elements import Gaussians
from hedgerow.world.learned import LearnedWorld


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("segment")
    rng = np.random.default_rng(5)
    cloud = np.concatenate([ground_points(rng), tree(rng, 2, 3), shrub(rng, -5, -4, 2.1)])
    hr.write_log(log_of(cloud, n_sweeps=3), folder / "drive.parquet")
    rows = rng.choice(len(cloud), 8000, replace=False)
    flat = np.tile(np.diag([0.02, 0.02, 0.0001]), (len(rows), 1, 1))
    LearnedWorld(Gaussians.plain(cloud[rows], flat), kind="voxel").save(folder / "site.world")
    return folder


def test_a_log_is_parted_and_everything_asked_for_is_written(folder):
    done = run(
        "segment", "drive.parquet", "-o", "out.parquet", "--annotation", "out.csv", "--picture", "out.png", cwd=folder
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["class", "objects", "patches", "mean", "height", "[m]", "points"]
    assert lines[1].split()[:3] == ["small-shrub", "1", "0"]
    assert lines[2].split()[:3] == ["medium-tree", "1", "0"]
    assert lines[3].startswith("drive.parquet: ")
    assert lines[4:] == ["wrote out.parquet", "wrote out.csv", "wrote out.png"]
    found = load_segmentation(folder / "out.parquet", hr.open_log(folder / "drive.parquet"))
    boxes = read_annotation(folder / "out.csv")
    assert sorted(boxes.class_name.tolist()) == sorted(each.class_name for each in found.objects)
    assert (folder / "out.png").read_bytes().startswith(b"\x89PNG")


def test_a_world_is_parted(folder):
    done = run("segment", "site.world", "-o", "world.parquet", "--set", "min_voxels=5", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "medium-tree" in done.stdout
    found = load_segmentation(folder / "world.parquet")
    assert len(found.object["gaussians"]) == 8000
    assert found.settings.min_voxels == 5


def test_a_cloud_without_viewpoints_is_parted(folder):
    laspy = pytest.importorskip("laspy")
    points = hr.read_log(folder / "drive.parquet").points() + np.array([456_000.0, 5_430_000.0, 100.0])
    file = laspy.LasData(laspy.LasHeader(point_format=3, version="1.2"))
    file.header.offsets, file.header.scales = np.floor(points.min(axis=0)), [0.001] * 3
    file.x, file.y, file.z = points.T
    file.write(str(folder / "plot.las"))
    done = run("segment", "plot.las", "-o", "plot.parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "medium-tree" in done.stdout
    # The map of such a log begins at whole metres near the cloud; its origin is in the log.
    tree_found = next(each for each in load_segmentation(folder / "plot.parquet").objects if each.height_m > 5)
    east = open_points(folder / "plot.las").map_origin_m[0] + tree_found.x_m
    assert east == pytest.approx(456_002, abs=0.3)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("missing.parquet", "-o", "x.parquet"), ("missing.parquet", "no such file")),
        (("trail", "-o", "x.parquet"), ("is a scene; segment wants a log or a learned world",)),
        (("drive.parquet", "-o", "no/x.parquet"), ("the folder no does not exist",)),
        (("drive.parquet", "-o", "x.parquet", "--annotation", "x.txt"), ("x.txt", ".csv or .parquet")),
        (("drive.parquet", "-o", "x.parquet", "--picture", "x.txt"), ("x.txt", "unknown kind of picture")),
        (("drive.parquet", "-o", "x.parquet", "--set", "voxel=1"), ("voxel", "did you mean")),
        (("drive.parquet", "-o", "x.parquet", "--set", "voxel_m=0"), ("voxel_m", "greater than 0")),
        (("drive.parquet", "-o", "x.parquet", "--driving-deg", "nan"), ("driving",)),
        (("few.parquet", "-o", "x.parquet"), ("too few",)),
    ],
)
def test_bad_input_is_refused_in_one_sentence_and_writes_nothing(words, parts, folder):
    if not (folder / "few.parquet").exists():
        hr.write_log(log_of(np.array([[0.0, 0, 0], [30, 0, 0]])), folder / "few.parquet")
    before = set(folder.iterdir())
    assert_refused(run("segment", *words, cwd=folder), *parts)
    assert set(folder.iterdir()) == before


def test_ctrl_c_ends_it_and_leaves_nothing(folder, tmp_path):
    rng = np.random.default_rng(6)
    log = log_of(ground_points(rng, (120.0, 120.0), per_m2=80), n_sweeps=8)
    hr.write_log(log, tmp_path / "large.parquet")
    command = [
        sys.executable,
        "-c",
        "from hedgerow.cli import main; main()",
        "segment",
        "large.parquet",
        "-o",
        "x.parquet",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip() == "hedgerow: interrupted"
    assert [each.name for each in tmp_path.iterdir()] == ["large.parquet"]
