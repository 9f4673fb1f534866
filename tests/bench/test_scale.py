# SPDX-License-Identifier: Apache-2.0
"""hedgerow bench scale: what it measures, lays out, draws and refuses; processes are stood for by calls."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_rows import made_row, measure_here

from hedgerow import FileError, InputError, Sensor
from hedgerow.bench import beams, chain, processors, scale, tiles, workers
from hedgerow.bench.benchmark import Asked
from hedgerow.bench.journal import Journal
from hedgerow.bench.scale import SIZES, run
from hedgerow.bench.tiled_site import TILE_M, middle_drive, write_site
from hedgerow.scenes.site import open_scene
from hedgerow.world import load_world
from hedgerow.world.store.files import WorldFile


def of_workers(job, who, seconds, number=0):
    settings = {"beams": 6_000_000, "job": job, "who": who, "round": number}
    return made_row("workers", settings, seconds=seconds)


# runs


def test_beams_and_tiles_are_measured_written_and_drawn_and_not_measured_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(chain, "measure", measure_here)  # in this process, as if each step were one of its own
    monkeypatch.setitem(SIZES, "small", replace(SIZES["small"], beams=(150_000,)))
    asked, said = Asked(("beams", "tiles"), size="small"), []
    found = run(tmp_path, asked, said.append)
    assert [line.partition(":")[0] for line in said] == [
        *(f"0.15 M beams, {step}" for step in beams.STEPS),
        *(f"{n} tiles, {step}" for n in (1, 9) for step in tiles.STEPS),
    ]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["scale.json", "scale.md", "scale.png"]
    assert [path.name for path in found.files] == ["scale.json", "scale.md", "scale.png"]
    rows = json.loads((tmp_path / "scale.json").read_text())["rows"]
    assert {row["values"]["beams"] for row in rows if row["part"] == "beams"} == {2 * 69_440}
    # Both sites have the same beams, and the larger one returns more of them.
    driven = [row["values"] for row in rows if row["settings"].get("step") == "drive"]
    assert driven[0]["beams"] == driven[1]["beams"] and 0 < driven[0]["hits"] < driven[1]["hits"]
    assert driven[0]["tiles_mb"] == pytest.approx(200 * tiles.BYTES_EACH / 1e6)
    page = (tmp_path / "scale.md").read_text()
    assert "**Beams**" in page and "**Tiles**" in page and "**Workers**" not in page
    assert f"| 0.15 | {2 * 2:.0f} | compare |" in page
    before = (tmp_path / "scale.json").read_bytes()
    run(tmp_path, asked, said.append)
    assert said[-1].endswith("scale.json already; --anew measures them again")
    assert (tmp_path / "scale.json").read_bytes() == before


def test_a_long_drive_is_announced_and_a_short_one_goes_before_it(tmp_path, monkeypatch):
    done = []

    def measure(step, arguments, *, threads=None):
        done.append(arguments.get("sweeps"))
        return {"seconds": 30.0, "processor_s": 30.0, "beams": 1, "own_mb": None, "worker_mb": []}

    monkeypatch.setattr(chain, "measure", measure)
    monkeypatch.setattr(scale, "draw_scale", lambda rows, path: None)
    said = []
    run(tmp_path, Asked(("beams",), (1e8,)), said.append)
    assert [each for each in done if each] == [14, 14, 1440, 1440]
    assert said[5] == "100 M beams take about 250 minutes, by what fewer took, and 6 GB of disk"
    assert len(said) == 11
    run(tmp_path, Asked(("beams",), (1e8,), anew=True), said.append)  # by now it is known how long it takes
    assert said[11].startswith("100 M beams take about ") and len(said) == 17


# refusals


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        (Asked(("moon",)), r"--only: there is no part moon; there are beams, workers, tiles, processors"),
        (Asked(beams=(5.0,)), r"--beams: expected 100000 to 1e\+10, found 5"),
        (Asked(beams=(float("nan"),)), r"--beams: expected .*, found nan"),
        (Asked(beams=(-1e6,)), r"--beams: expected .*, found -1e\+06"),
        (Asked(("tiles",), (1e6,)), r"--beams: goes with --only beams, not with tiles alone"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_written(tmp_path, asked, wrong):
    with pytest.raises(InputError, match=wrong):
        run(tmp_path, asked)
    assert list(tmp_path.iterdir()) == []


def test_a_row_that_lacks_a_figure_is_one_sentence(tmp_path):
    journal = Journal(tmp_path / "scale.json", "scale")
    for step in beams.STEPS:
        journal.add("beams", {"beams": 1_000_000, "step": step, "size": "full"}, {"seconds": 1.0}, 0.0)
    with pytest.raises(FileError, match=r"scale\.json: a row lacks 'processor_s'; delete the file"):
        run(tmp_path, Asked(("beams",), (1e6,)), str)


def test_without_dask_workers_are_refused_and_tiles_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "_has_dask", lambda: False)
    monkeypatch.setattr(scale, "draw_scale", lambda rows, path: None)
    for only in ((), ("workers",), ("tiles", "processors")):
        with pytest.raises(InputError, match=r"pip install 'hedgerow\[cluster\]'"):
            run(tmp_path, Asked(only, size="small"))
    said = []
    monkeypatch.setattr(chain, "measure", measure_here)
    assert [table.title for table in run(tmp_path, Asked(("tiles",), size="small"), said.append).tables] == ["Tiles"]
    assert len(said) == 4


# the sites


def test_the_trail_grows_with_the_beams_and_is_long_enough_for_them(tmp_path):
    assert beams.drive_m(10_000_000) == pytest.approx(10 * beams.drive_m(1_000_000), rel=0.05)
    for n in (100_000, 1_000_000):
        (tmp_path / "trail.toml").write_text(beams.trail_text(n, wood=False), encoding="utf-8")
        way = open_scene(tmp_path / "trail.toml", {"scatter.verge.density_per_m2": 0.1}).build().trajectories["drive"]
        needed_s = beams.n_sweeps(n) * Sensor.named("hdl-32e").sweep_s
        assert (way.time_ns[-1] - way.time_ns[0]) / 1e9 > needed_s


@pytest.mark.parametrize(("n", "sides"), [(1, (1, 1)), (7, (7, 1)), (10, (5, 2)), (100, (10, 10))])
def test_a_site_has_its_tiles_around_the_middle_each_with_as_many_elements(tmp_path, n, sides):
    size = write_site(tmp_path / "x.world", n, 50)
    file = WorldFile(tmp_path / "x.world")
    assert size.elements == 50 * n and file.tiles.n.tolist() == [50] * n
    assert (np.ptp(file.tiles.x) + 1, np.ptp(file.tiles.y) + 1) == sides
    lidar = Sensor.named("hdl-32e")
    way = middle_drive(lidar, 10, 10.0)
    middle = way.position_m.mean(axis=0)
    assert file.tiles.x[0] * TILE_M <= middle[0] <= (file.tiles.x[-1] + 1) * TILE_M
    assert (way.time_ns[-1] - way.time_ns[0]) / 1e9 > 11 * lidar.sweep_s
    assert load_world(tmp_path / "x.world").size().elements == 50 * n


# tables


def test_goals_of_workers_are_held_against_the_best_rounds():
    rows = [
        *(of_workers("fire", "plain process", each, k) for k, each in enumerate((10.0, 12.0))),
        *(of_workers("fire", "1 worker", each, k) for k, each in enumerate((14.0, 10.5))),
        of_workers("fire", "1 worker, one thread", 20.0),
        of_workers("fire", "2 workers, one thread each", 10.0),
        of_workers("learn voxel", "plain process", 1.0),
        of_workers("learn voxel", "1 worker", 1.2),
    ]
    table = workers.table(rows)
    assert [line[:7] for line in table.rows[:2]] == [
        ("fire", "plain process", "1.5", "0.5", "10.0", "3.5", "1.00"),
        ("fire", "1 worker", "1.5", "0.5", "10.5", "3.5", "1.05"),
    ]
    assert table.notes[1:] == (
        "fire: one worker takes 1.05 times the plain process (goal: at most 1.1, reached).",
        "fire: two workers are 2.00 times as fast as one of one thread (goal: at least 1.7, reached), "
        "1.05 times as one with all cores.",
        "learn voxel: one worker takes 1.20 times the plain process (goal: at most 1.1, not reached).",
    )


def test_processors_are_counted_in_powers_of_two_and_stand_beside_the_paper():
    assert [processors.counts(n) for n in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2], [1, 2, 4, 8]]
    kinds = (("threads", 1, 8.0), ("threads", 2, 4.0), ("processes", 1, 10.0))
    rows = [
        made_row("processors", {"scene": "rods", "sweeps": 8, "kind": kind, "n": n}, seconds=s, simulated_s=4.0)
        for kind, n, s in kinds
    ]
    lines = processors.table(rows[::-1]).rows
    assert [line[:7] for line in lines] == [
        ("threads", "1", "8.0", "3.5", "0.50", "0.50", "1.00"),
        ("threads", "2", "4.0", "3.5", "1.00", "0.50", "2.00"),
        ("processes", "1", "10.0", "3.5", "0.40", "0.40", "1.00"),
        ("Goodin 2018 §3.3", "40", "4.7", "-", "1.45", "0.036", "-"),
    ]


def test_the_time_that_beams_will_take_follows_from_the_largest_number_that_is_whole():
    def rows(n, steps, seconds):
        return [made_row("beams", {"beams": n, "step": step}, seconds=seconds, open_s=0.0) for step in steps]

    assert beams.expected_s(rows(10, beams.STEPS[:3], 1.0), 100) is None
    measured = [*rows(10, beams.STEPS, 1.0), *rows(20, beams.STEPS, 3.0), *rows(30, beams.STEPS[:1], 9.0)]
    assert beams.expected_s(measured, 100) == pytest.approx(5 * 3.0 * 100 / 20)
