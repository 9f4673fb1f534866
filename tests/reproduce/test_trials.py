# SPDX-License-Identifier: Apache-2.0
"""Trials of worlds in small: seven worlds beside the scene itself, other sensors, other sizes.

A patch of bushes and a wall take the place of the trail, one pulse in seven of a VLP-16 that of the HDL-64E.
"""

import numpy as np
import pytest

from hedgerow.log import Log
from hedgerow.metrics import compare
from hedgerow.reproduce import budget, mobile, pose_errors, sensor_transfer
from hedgerow.reproduce.mobile import SCENE_AGAIN
from hedgerow.reproduce.recording import SceneDrive
from hedgerow.reproduce.tables import PaperTable, markdown_table
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
count = 60
box_m = [-20, -8, 20, -2]
[trajectories.first]
waypoints_m = [[-10, 0], [10, 0]]
[trajectories.second]
waypoints_m = [[-10, 0], [10, 0]]
offset_m = 0.6
"""


class SmallDrive(SceneDrive):
    """Few pulses, whatever the sensor."""

    def record(self, trajectory, n_sweeps, seed, sensor="vlp-16", **options):
        sensor = "vlp-16" if sensor == "hdl-64e-s2" else sensor
        sweeps = super().record(trajectory, n_sweeps, seed, sensor, **options).iter_sweeps()
        return Log.concatenate([sweep[::7] for _, sweep in sweeps])


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    path = tmp_path_factory.mktemp("scene") / "small.toml"
    path.write_text(SCENE)
    return SmallDrive(load_site(path), (0.0, 3.0))


@pytest.fixture
def opened(drive, monkeypatch):
    monkeypatch.setattr(SceneDrive, "open", lambda scene, span_s: drive)


def silent(text):
    pass


def test_another_seed_has_the_same_beams_and_other_returns(drive):
    one, same, other = (drive.record("first", 2, seed) for seed in (1, 1, 2))
    assert one.equal(same)
    assert one.beams.equal(other.beams)
    assert not np.array_equal(one.returns.range_m, other.returns.range_m)
    scores = compare(one, other)
    assert scores["hits_found"] > 0.95  # the scene is the same; only pulses along its edges differ
    assert scores["nll"] is None


def test_wider_pulses_meet_more(drive):
    returned = [drive.record("first", 1, 1, width=width).returns.hit.mean() for width in (0.0, 8.0)]
    # 4,100 pulses, 24 mrad wider along the edges of wall and bushes: a few percent, against noise of 0.5 %.
    assert returned[0] + 0.005 < returned[1]


def test_seven_worlds_stand_beside_the_paper_and_the_scene_itself(opened, tmp_path):
    outcome = mobile.run(tmp_path, 2, say=silent)
    rates, distances, sizes = outcome.tables
    assert rates.columns == (*mobile.PAPER_MODELS, "Refined", SCENE_AGAIN)
    paper, ours = distances.lines()[:2]
    assert paper[-2:] == ("-", "-") and "16.07" in paper  # unmarked: the paper has no scene again
    assert float(ours[-2].strip("*")) > 0 and float(ours[-1]) > 0
    likelihood = distances.lines()[-1]
    assert likelihood[-1] == "-" and likelihood[-2] != "-"
    assert [line[:2] for line in distances.lines()].count(("Beam error, mean [cm]", "ours")) == 1
    elements = dict(zip(sizes.columns, sizes.rows[0][2].values(), strict=True))
    assert elements["Refined"] <= elements["Top Down"]


def test_other_sensors_are_compared_with_brought_and_own_worlds(opened, tmp_path):
    outcome = sensor_transfer.run(tmp_path, 2, say=silent)
    parts = dict(part.split("**\n\n") for part in outcome.text.removeprefix("**").split("\n\n**"))
    names = {title: [line.split(" | ")[0][2:] for line in table.splitlines()[2:]] for title, table in parts.items()}
    trained = [f"{model}, {by}" for model in ("topdown", "hybrid", "refined") for by in ("hdl-64e", "own")]
    for sensor in ("HDL-32E", "VLP-16"):
        expected = [*trained, SCENE_AGAIN]
        assert names[f"{sensor}, all beams"] == names[f"{sensor}, beams from -24.8 to 2.1 degrees"] == expected
        assert parts[f"{sensor}, all beams"] != parts[f"{sensor}, beams from -24.8 to 2.1 degrees"]
    widths = ["refined, usual width", "refined, own", "Scene, usual width", SCENE_AGAIN]
    assert names["HDL-64E, rays"] == names["HDL-64E, four times as wide"] == widths


def test_budgets_are_kept_and_drawn_beside_the_six(opened, tmp_path):
    outcome = budget.run(tmp_path, 2, say=silent, budgets=(40, 80))
    head, _, *rows = (line.strip("| ").split(" | ") for line in outcome.text.splitlines())
    elements = head.index("Elements") + 1  # the first heading is empty and stripped away
    found = {row[0]: int(row[elements].replace(",", "")) for row in rows}
    assert len(found) == 6 + 3
    assert found["Refined, 40"] <= 40 and found["Refined, 80"] <= 80
    assert f"Refined, {found['Top Down']:,}" in found
    assert outcome.pictures[0].read_bytes()[:4] == b"\x89PNG"


def test_what_stands_aside_is_never_the_best(drive):
    table = PaperTable("t", ("A", "B", "C"), (("m", {}, {"A": 2.0, "B": 3.0, "C": 1.0}),), digits=0, aside=("C",))
    assert table.lines() == [("m", "ours", "**2**", "3", "1")]
    real, *others = (drive.record("first", 1, seed) for seed in (1, 2, 3))
    scores = compare(real, {"same": real, "two": others[0], "three": others[1]})
    for row in scores.table(aside=("same",)).rows:
        assert row.cells[0].mark == ""
        assert sorted(cell.mark for cell in row.cells[1:]) in (["", ""], ["", "best"])


def test_a_plain_table_in_markdown():
    assert markdown_table(("a", "b"), [("x", "1")]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_pose_errors_cost_likelihood(drive, tmp_path, monkeypatch):
    monkeypatch.setattr(pose_errors.SceneDrive, "open", lambda *_: drive)
    monkeypatch.setattr(pose_errors, "FIGURES", {"position_sigma_m": 0.5})  # large, for so few beams
    errors = {"exact": (), "position": ("position_sigma_m",)}
    said: list[str] = []
    outcome = pose_errors.run(tmp_path, 6, 1, said.append, models={"Top Down": "topdown"}, errors=errors, one_in=1)
    rows = [line.split("|")[2:4] for line in outcome.text.splitlines() if line.startswith("| Top Down")]
    assert len(rows) == len(pose_errors.SHOWN)
    (exact, wrong), *_, (near, far) = [[float(cell) for cell in row] for row in rows]
    assert exact < wrong and near < far
    assert "position: recording and learning" in said
