# SPDX-License-Identifier: Apache-2.0
"""hedgerow primitives and hedgerow compose, as a user runs them, with good input and with bad."""

import numpy as np
import pytest
from cli_runner import assert_refused, run

import hedgerow as hr
from hedgerow.scenes.primitive import PrimitiveFacts
from hedgerow.world import Gaussians, LearnedWorld
from hedgerow.world.assets import Asset

SCENE = """
seed = 2
[terrain]
size_m = [40, 40]
[primitives.bushes]
library = "lib.world"
class = "low-shrub"
[scatter.some]
what = "bushes"
count = 20
[trajectories.drive]
waypoints_m = [[-5, 0], [5, 0]]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    mean = rng.uniform((-0.5, -0.5, 0), (0.5, 0.5, 1), (30, 3))
    table = Gaussians.plain(mean, np.tile(0.01 * np.eye(3), (30, 1, 1)))
    facts = PrimitiveFacts(
        class_name="low-shrub", length_m=1, width_m=1, height_m=1, n_beams=50, seen_from=[50] + [0] * 7
    )
    LearnedWorld(kind="library", assets=[Asset("bush-1", (table,), facts.model_dump(mode="json"))]).save("lib.world")
    (tmp_path / "scene.toml").write_text(SCENE)
    return tmp_path


def test_a_site_is_composed_fired_at_and_described(folder):
    done = run("compose", "scene.toml", "-o", "new.world")
    assert done.returncode == 0
    assert "low-shrub  20" in done.stdout
    assert "20 instances of 1 assets" in done.stdout
    assert "20 low-shrub" in run("info", "new.world").stdout
    fired = run("fire", "scene.toml", "--sensor", "vlp-16", "--sweeps", "1", "-o", "drive.parquet")
    assert fired.returncode == 0
    assert "object" in hr.open_log("drive.parquet").arrays
    compared = run("compare", "drive.parquet", "new.world")
    assert compared.returncode == 0
    assert "-log L" in compared.stdout


def test_composing_again_replaces_the_world(folder):
    assert run("compose", "scene.toml", "-o", "new.world").returncode == 0
    assert run("compose", "scene.toml", "-o", "new.world", "--seed", "5").returncode == 0
    assert len(hr.load_world("new.world").tables["instances"]) == 20


def test_a_library_is_listed_and_shown(folder):
    listed = run("primitives", "list", "lib.world")
    assert listed.returncode == 0
    assert "bush-1" in listed.stdout and "half" in listed.stdout
    shown = run("primitives", "show", "lib.world", "bush-1", "--picture", "bush.png")
    assert shown.returncode == 0
    assert "30 gaussians" in shown.stdout
    assert (folder / "bush.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("compose", "none.toml", "-o", "x.world"), "none.toml"),
        (("compose", "scene.toml", "-o", "no/such/x.world"), "no/such"),
        (("compose", "lib.world", "-o", "x.world"), "lib.world"),
        (("primitives", "list", "scene.toml"), "scene.toml"),
        (("primitives", "show", "lib.world", "bush-2"), "did you mean bush-1"),
        (("primitives", "extract", "scene.toml", "-o", "x.world"), "scene.toml"),
        (("primitives", "extract", "lib.world", "-o", "x.world"), "no points"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(folder, words, said):
    before = sorted(folder.iterdir())
    assert_refused(run(*words), said)
    assert sorted(folder.iterdir()) == before
