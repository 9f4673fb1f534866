# SPDX-License-Identifier: Apache-2.0
"""Scene files that ask for too much, or for what cannot be: one sentence each, before anything is made."""

import time
import tomllib
from importlib import resources

import numpy as np
import pytest
from hostile import changes, outcomes, to_toml, try_scene
from scene_texts import GOOD, write_scene

from hedgerow.cli.options import parse_settings
from hedgerow.errors import FileError, InputError
from hedgerow.scenes.file.budget import MAX_TRIANGLES, Budget
from hedgerow.scenes.file.read import read_scene
from hedgerow.scenes.file.schema import MAX_COPIES
from hedgerow.scenes.plants import PLANTS
from hedgerow.scenes.site import load_site

GROUND = "terrain = { size_m = [100, 100] }\n"
WIDE = "terrain = { size_m = [1e6, 1e6] }\n"
KINDS = "[plants.g]\nkind = 'blade-grass'\n[plants.s]\nkind = 'shrub'\n[shapes.b]\nkind = 'box'\nsize_m = [1, 1, 1]\n"
FAR = "[trajectories.t]\nwaypoints_m = [[0, 0], [%s, 0]]\n"
TOO_MUCH = {
    "density 1e9": (f"{GROUND}{KINDS}[scatter.x]\nwhat = 'g'\ndensity_per_m2 = 1e9", "scatter.x.density_per_m2: "),
    "density 1e15": (f"{GROUND}{KINDS}[scatter.x]\nwhat = 's'\ndensity_per_m2 = 1e15", "scatter.x.density_per_m2: "),
    "many shrubs": (
        f"{WIDE}{KINDS}[scatter.x]\nwhat = 's'\ndensity_per_m2 = 1",
        r"scatter.x.density_per_m2: the scene would have 1e\+12 copies; at most 10,000,000 may be",
    ),
    "wide grass": (
        f"{WIDE}{KINDS}[scatter.x]\nwhat = 'g'\ndensity_per_m2 = 1",
        r"scatter.x.box_m: the rule covers 1e\+10 squares of ground; at most 2,000,000 may be",
    ),
    "dense cereal": (
        f"{GROUND}[plants.c]\nkind = 'cereal'\nparameters = {{ leaves = 30, spikelets = 200 }}\n"
        "[scatter.x]\nwhat = 'c'\ndensity_per_m2 = 90000",
        r"scatter.x.density_per_m2: the scene would have .* different triangles; at most 50,000,000 may be",
    ),
    "cut grass": (
        "terrain = { kind = 'noise', size_m = [100, 100] }\n[plants.g]\nkind = 'blade-grass'\n[plants.g.parameters]\n"
        "segments = 64\n[scatter.x]\nwhat = 'g'\ndensity_per_m2 = 50\nmax_gap_m = 1e-6",
        "scatter.x.max_gap_m: the scene would have .* different triangles",
    ),
    "many variants": (
        f"{GROUND}[plants.t]\nkind = 'conifer'\nvariants = 1000\n[objects.x]\nwhat = 't'\nat_m = [0, 0]",
        r"objects.x.what: the scene would have .* different triangles",
    ),
    "rows of copies": (
        GROUND + KINDS + "".join(
            f"[objects.x{i}]\nwhat = 'b'\nat_m = [0, 0, 0]\nrepeat = {{ count = 1000000, step_m = [0, 0] }}\n"
            for i in range(11)
        ),
        r"objects.x\d+.repeat: the scene would have 1.1e\+07 copies",
    ),
    "terrain 1e9": ("terrain = { size_m = [1e9, 1e9] }", r"terrain.size_m\[0\]: .*found 1000000000.0"),
    "terrain of noise": ("terrain = { kind = 'noise', size_m = [1e6, 1e6] }", "terrain.spacing_m: 0.5 m gives"),
    "step 1e-9": (
        "terrain = { kind = 'noise', size_m = [10, 10], spacing_m = 1e-9 }",
        "terrain.spacing_m: .*greater than or equal to 0.001",
    ),
    "waypoint 1e9": (GROUND + FAR % 1e9, r"trajectories.t.waypoints_m\[1\]\[0\]: "),
    "waypoint 1e7": (GROUND + FAR % 1e7, "trajectories.t.waypoints_m: is 10,000 km long; expected at most 100 km"),
    "trail 1e7": (GROUND + "[trail]\npath_m = [[0, 0], [1e7, 0]]", "trail.path_m: is 10,000 km long"),
    "a corner twice": (GROUND + "[trail]\npath_m = [[0, 0], [0, 0], [5, 5]]", "trail.path_m: a corner comes twice"),
    "many corners": (
        f"{GROUND}{KINDS}[scatter.x]\nwhat = 'b'\ncount = 5\npolygon_m = {[[i % 90, i % 7] for i in range(5000)]}",
        "scatter.x.polygon_m: .*at most 1000 items",
    ),
    "a long name of a file": (f"{GROUND}[meshes.m]\nfile = '{'x' * 5000}.ply'", "meshes.m.file: there is no file"),
    "a null in a name": (f'{GROUND}[worlds.w]\nfile = "a/b/{"y" * 400}"', "worlds.w.file: .* is no world"),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_asks_for_too_much_is_refused_with_one_sentence_and_soon(tmp_path, name):
    text, words = TOO_MUCH[name]
    begin = time.process_time()
    with pytest.raises(FileError, match=words) as caught:
        load_site(write_scene(tmp_path, text))
    assert time.process_time() - begin < 2
    assert "own.toml" in str(caught.value) and len(str(caught.value)) <= 500


def test_a_budget_names_the_field_that_goes_beyond_it():
    budget = Budget()
    budget.take_triangles(MAX_TRIANGLES, "what")
    with pytest.raises(
        InputError, match=r"^path_m: the scene would have 5e\+07 different triangles; at most 50,000,000"
    ):
        budget.take_triangles(1, "path_m")
    budget.take_copies(MAX_COPIES, "repeat")
    with pytest.raises(InputError, match=r"^repeat: "):
        budget.take_copies(1, "repeat")


@pytest.mark.parametrize("kind", PLANTS)
def test_the_triangles_of_a_plant_are_known_before_it_grows(kind):
    fields = PLANTS[kind].parameters.model_fields
    small = {name: value for name, value in (("side_m", 3.0), ("detail", 0.3)) if name in fields}
    parameters = PLANTS[kind].parameters.parse(small, kind)
    grown = sum(len(part.mesh.triangles) for part in PLANTS[kind].make(parameters, np.random.default_rng(1)))
    assert 0.4 < grown / parameters.n_triangles < 2.5  # an estimate; the least certain are the shoots of a conifer


def test_one_hostile_value_in_a_scene_never_leads_to_more_than_a_sentence(tmp_path):
    files = changes(tomllib.loads(GOOD), 60)
    faults = [(each.name, each.fault) for each in outcomes(try_scene, files, tmp_path, most_s=30) if each.fault]
    assert not faults


@pytest.mark.parametrize("name", ["rods", "root", "shrub", "street", "courtyard", "trail", "static-targets"])
def test_one_hostile_value_in_a_shipped_scene_is_refused_by_a_sentence(tmp_path, name):
    def check(path):
        read_scene(path).check()

    text = (resources.files("hedgerow.scenes") / "shipped" / f"{name}.toml").read_text(encoding="utf-8")
    found = list(outcomes(check, changes(tomllib.loads(text), 40), tmp_path, most_s=30))
    assert not [(each.name, each.fault) for each in found if each.fault]
    assert sum(bool(each.said) for each in found) > 20


def test_the_writer_of_hostile_files_writes_what_it_was_given():
    content = tomllib.loads(GOOD)
    assert tomllib.loads(to_toml(content)) == content


@pytest.mark.parametrize("value", ["[" * 100_000, "1" * 5_000])
def test_a_hostile_value_from_the_command_line_is_refused(value):
    with pytest.raises(InputError, match="--set seed: has too many digits, or lists too deep inside each other"):
        parse_settings([f"seed={value}"])
