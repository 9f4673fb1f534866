# SPDX-License-Identifier: Apache-2.0
"""Scene files: what is right loads; what is wrong is refused with file, line and field."""

import pytest
from scene_texts import GOOD, write_scene

from hedgerow.errors import FileError, InputError
from hedgerow.scenes.file.read import line_of, scene_names, toml_lines
from hedgerow.scenes.site import load_site, open_scene


def refusal(tmp_path, old, new, build=False) -> str:
    """Change the good file in one place and return the message with which it is refused."""
    assert GOOD.count(old) >= 1
    path = write_scene(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(FileError) as caught:
        (load_site if build else open_scene)(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    assert "pydantic" not in message
    return message.removeprefix(str(path))


@pytest.mark.parametrize(
    ("old", "new", "start"),
    [
        ("relief_m = 2", "relief_m = -2", ", line 12: terrain.relief_m: input should be greater than or equal to 0"),
        ("relief_m = 2", "height = 2", ", line 12: terrain.height: a scene has no such parameter"),
        ("size_m = [60, 40]", "", ", line 9: terrain.size_m: missing"),
        ("size_m = [60, 40]", "size_m = [60]", ", line 11: terrain.size_m: list should have at least 2"),
        ("[0, 3], [30, 0]]", '[0, "x"], [30, 0]]', ", line 17: trail.path_m[1][1]: input should be a valid number"),
        (
            'kind = "shrub"',
            'kind = "schrub"',
            ", line 36: plants.bush.kind: there is no plant 'schrub'; did you mean sh",
        ),
        (
            "height_m = 0.3",
            "height_m = -1",
            ", line 32: plants.grass.parameters.height_m: input should be greater than 0",
        ),
        (
            "segments = 2",
            "segmints = 2",
            ", line 33: plants.grass.parameters.segmints: there is no parameter 'segmints'",
        ),
        ('kind = "box"', 'kind = "bocks"', ", line 41: shapes.crate.kind: expected one of 'box', 'cyl"),
        (
            "size_m = [1, 1, 1]",
            "size_m = [1, 1, 0]",
            ", line 42: shapes.crate.size_m[2]: input should be greater than 0",
        ),
        (
            '"tarmac"\nlabel',
            '"tarmak"\nlabel',
            ", line 43: shapes.crate.material: there is no material 'tarmak'; did you m",
        ),
        (
            'label = "oddity"',
            'label = "odity"',
            ", line 44: shapes.crate.label: there is no label 'odity'; did you mean odd",
        ),
        ("number = 2000", "number = 70", ", line 25: labels.oddity.number: 70 is vegetation"),
        (
            "permeability = 0.7",
            "permeability = 1.7",
            ", line 49: walls.fence.permeability: input should be less than or",
        ),
        ("[[-20, 10], [20, 10]]", "[[-20, 10], [-20, 10]]", ", line 47: walls.fence.path_m: a corner comes twice"),
        (
            'what = "crate"',
            'what = "crates"',
            ", line 54: objects.crates.what: there is no plant, mesh, shape, world or primitive",
        ),
        (
            "step_m = [2, 0]",
            "step = [2, 0]",
            ", line 56: objects.crates.repeat.step_m: missing; expected: step from one copy to the next: x and y, or "
            "x, y and z (1 more)",
        ),
        ('count = "$n_bushes"', 'count = "$bushes"', ", line 60: scatter.bushes.count: no parameter 'bushes'; [parame"),
        ("n_bushes = 12", "n_bushes = 12\nm = 3", ', line 8: parameters.m: no field takes "$m"'),
        ("n_bushes = 12", "n_bushes = 1.5", ", line 60: scatter.bushes.count: input should be a valid integer"),
        (
            "crates = 2 }",
            "trees = 2 }",
            ", line 62: scatter.bushes.away_from.trees: there is no object or earlier rule",
        ),
        (
            "crates = 2 }",
            "grass = 2 }",
            ", line 62: scatter.bushes.away_from.grass: there is no object or earlier rule",
        ),
        ("scale = [0.8, 1.2]", "scale = [1.8, 1.2]", ", line 64: scatter.bushes.scale: 1.8 is above 1.2"),
        (
            "density_per_m2 = 20",
            "count = 5\ndensity_per_m2 = 2",
            ", line 69: scatter.grass.density_per_m2: give either",
        ),
        (
            "slope_deg",
            "box_m = [0, 0, 1, 1]\nslope_deg",
            ", line 69: scatter.grass.polygon_m: give either polygon_m or",
        ),
        ("along_trail = true", "", ", line 73: trajectories.first.waypoints_m: give one of"),
        ("to_m = 50", "to_m = 4", ", line 76: trajectories.first.to_m: 4 is not beyond from_m, 5"),
        (
            "[labels.oddity]",
            "[meshes.crate]\nfile = 'a.obj'\n[labels.oddity]",
            ", line 42: shapes.crate: the name is taken by",
        ),
        (
            "[labels.oddity]",
            "[meshes.m]\nfile = 'a.obj'\n[labels.oddity]",
            ", line 25: meshes.m.file: there is no file",
        ),
        (
            "[labels.oddity]",
            "[meshes.m]\nfile = 'a.txt'\n[labels.oddity]",
            ", line 25: meshes.m.file: 'a.txt' is no mesh",
        ),
        ("[labels.oddity]", "[worlds.w]\nfile = 'a.world'\n[labels.oddity]", ", line 25: worlds.w.file: "),
        ("[trail]", "[tracks]", ", line 16: tracks: a scene has no such parameter"),
    ],
)
def test_a_wrong_field_is_refused_with_its_line(tmp_path, old, new, start):
    assert refusal(tmp_path, old, new).startswith(start)


@pytest.mark.parametrize(
    ("old", "new", "start"),
    [
        ("n_bushes = 12", "n_bushes = 99999", ", line 63: scatter.bushes.spacing_m: 99999 copies cannot"),
        ("n_bushes = 12", "n_bushes = 800", ", line 63: scatter.bushes.spacing_m: only "),
        (
            "trail_distance_m = [3, 15]",
            "trail_distance_m = [90, 95]",
            ", line 59: scatter.bushes.what: no place fulfils",
        ),
        ("at_m = [5, -10]", "at_m = [5, -100]", ", line 55: objects.crates.at_m: lies off the terrain"),
        ("[[-20, 10], [20, 10]]", "[[-20, 10], [90, 10]]", ", line 47: walls.fence.path_m: corner 1, (90, 10), lies"),
        (
            "standing_m = [0, 0]",
            "standing_m = [0, 99]",
            ", line 78: trajectories.here.follow_terrain: the trajectory leaves",
        ),
        ("to_m = 50", "from_m = 500", "not valid TOML"),
        ("from_m = 5\n", "from_m = 500\n", ", line 76: trajectories.first.to_m: 50 is not beyond from_m"),
        ("slope_deg = [0, 30]", "spacing_m = 0.1", ", line 70: scatter.grass.spacing_m: copies this dense are merged"),
        ("slope_deg = [0, 30]", "tilt_deg = 5", ", line 70: scatter.grass.tilt_deg: a grass has its own spread"),
        ("width_m = 3", "width_m = 0.2", ", line 18: trail.width_m: 0.2 m is less than two cells"),
    ],
)
def test_what_only_shows_while_building_is_refused_with_its_line(tmp_path, old, new, start):
    assert start in refusal(tmp_path, old, new, build=True)


def test_missing_and_damaged_files_are_refused(tmp_path):
    with pytest.raises(FileError, match=r"nowhere.toml: no such scene file"):
        open_scene(tmp_path / "nowhere.toml")
    with pytest.raises(FileError, match=r"own.toml: not valid TOML: .*line 1"):
        open_scene(write_scene(tmp_path, "a = = 3"))
    (tmp_path / "x.png").write_bytes(b"1")
    with pytest.raises(FileError, match=r"x.png: no scene file; expected the suffix .toml$"):
        open_scene(tmp_path / "x.png")
    with pytest.raises(InputError, match=r"'cortyard' is no file and no shipped scene; did you mean courtyard\?"):
        open_scene("cortyard")


@pytest.mark.parametrize("name", ["own.yaml", "own.YML"])
def test_yaml_is_refused_with_what_to_do(tmp_path, name):
    with pytest.raises(FileError, match=rf"{name}: is YAML, but scenes are TOML; write it as own.toml$"):
        open_scene(write_scene(tmp_path, "terrain:\n  size_m: [9, 9]\n", name))


def test_values_are_set_from_outside(tmp_path):
    path = write_scene(tmp_path)
    file = open_scene(path, {"n_bushes": 3, "scatter.grass.density_per_m2": 2.5, "seed": 9}).file
    assert (file.scatter["bushes"].count, file.scatter["grass"].density_per_m2, file.seed) == (3, 2.5, 9)
    with pytest.raises(InputError, match="set: the scene has no parameter 'n_trees'; it has n_bushes"):
        open_scene(path, {"n_trees": 3})
    with pytest.raises(InputError, match=r"set: 'about.x' leads through about, which is no table"):
        open_scene(path, {"about.x": 3})
    with pytest.raises(FileError, match=r"scatter.grass.density_per_m2: input should .* \(as set from outside\)"):
        open_scene(path, {"scatter.grass.density_per_m2": -1})


def test_lines_are_found_past_strings_lists_and_comments():
    text = 'a = """\n[b]\nc = 1\n"""\nd = [ # [\n  "]",\n]\n[[e]]\nf = 1\n[[e]]\n'
    text += "\"g h\".i = {j = [1]}\n[e.k]\nl = '#['\nm = 2\n"
    lines = toml_lines(text)
    wanted = {("a",): 1, ("d",): 5, ("e", 0): 8, ("e", 0, "f"): 9, ("e", 1): 10, ("e", 1, "g h", "i"): 11}
    assert lines == wanted | {("e", 1, "k"): 12, ("e", 1, "k", "l"): 13, ("e", 1, "k", "m"): 14}
    assert line_of(lines, ("e", 1, "g h", "i", "j", 0)) == 11
    assert line_of(lines, ("z",)) is None


@pytest.mark.parametrize("name", scene_names())
def test_every_shipped_scene_is_right(name):
    file = open_scene(name).file
    assert file.about
    assert file.trajectories


def test_the_shipped_scenes_are_those_of_the_papers():
    assert {"courtyard", "root", "trail", "static-targets", "rods", "shrub"} <= set(scene_names())
