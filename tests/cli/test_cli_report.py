# SPDX-License-Identifier: Apache-2.0
"""`hedgerow report` as a user runs it."""

import pytest
from cli_runner import assert_refused, run

import hedgerow as hr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log and two worlds learned from it."""
    scene = hr.Scene()
    corners = [[9, -40, -20], [9, 40, -20], [9, 40, 20], [9, -40, 20]]
    scene.add_mesh(corners, [[0, 1, 2], [0, 2, 3]], permeability=0.2, noise=hr.SurfaceNoise(0.02, 0.0))
    sensor = hr.Sensor.named("vlp-16")
    folder = tmp_path_factory.mktemp("report")
    hr.write_log(hr.SceneWorld(scene).fire(sensor.sweep(), seed=1, sensor=sensor), folder / "wall.parquet")
    for side_m in (0.5, 2.0):
        world = hr.learn(folder / "wall.parquet", "voxel", side_m=side_m)
        world.save(folder / f"side {side_m}.world")
    return folder


def test_report_writes_one_page_of_several_worlds_and_logs(folder, tmp_path):
    simulated = (folder / "side 0.5.world", folder / "side 2.0.world", folder / "wall.parquet")
    out = ("-o", tmp_path / "page.html", "--json", tmp_path / "page.json", "--title", "A wall")
    done = run("report", folder / "wall.parquet", *simulated, *out)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>A wall</h1>" in page
    for command in (
        "hedgerow learn wall.parquet -o &#39;side 2.0.world&#39; --model voxel --set side_m=2.0",
        "hedgerow report",
    ):
        assert command in page
    assert page.count("<th>side 0.5</th>") == page.count("<th>side 2.0</th>") == page.count("<th>wall</th>") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "page.json"]


def test_report_refuses_before_it_works(folder, tmp_path):
    log, world = folder / "wall.parquet", folder / "side 2.0.world"
    assert_refused(run("report", log, world, "-o", tmp_path / "none" / "page.html"), "does not exist")
    assert_refused(run("report", log, world, "-o", tmp_path), "is a folder")
    assert_refused(run("report", log, world, "-o", tmp_path / "page.html", "--sweep", 7), "--sweep 7", "0 to 0")
    assert_refused(run("report", log, tmp_path / "none.world", "-o", tmp_path / "page.html"), "none.world")
    assert list(tmp_path.iterdir()) == []


def test_a_table_too_wide_for_the_terminal_loses_its_counts_instead_of_folding(folder, tmp_path):
    worlds = [tmp_path / f"long-name-{i}.world" for i in range(3)]
    for path in worlds:
        hr.load_world(folder / "side 2.0.world").save(path)
    one = run("compare", folder / "wall.parquet", worlds[0], "--no-floors").stdout
    assert " of \n" in one and " beams \n" in one
    three = run("compare", folder / "wall.parquet", *worlds).stdout
    assert "beams \n" not in three
    assert sum(line.startswith("   Sweep to sweep") for line in three.splitlines()) == 2  # nothing is folded
