# SPDX-License-Identifier: Apache-2.0
"""Primitives and annotations in scene files: which primitive a box takes, where it stands, what is refused."""

import numpy as np
import pytest

from hedgerow import FileError, Sensor, load_world
from hedgerow.base.labels import LABELS
from hedgerow.compose.composition import compose, count_classes
from hedgerow.scenes.annotation import Annotation, write_annotation
from hedgerow.scenes.primitive import SECTORS, Library, PrimitiveFacts, nearest_extents
from hedgerow.scenes.site import load_site
from hedgerow.world import Gaussians, LearnedWorld
from hedgerow.world.assets import Asset
from hedgerow.world.elements import Instances

SCENE = """
seed = 2
[terrain]
size_m = [60, 60]
[primitives.trees]
library = "lib.world"
class = "small-tree"
[primitives.bushes]
library = "lib.world"
class = "low-shrub"
"""
ANNOTATED = SCENE + '[annotation]\nfile = "boxes.csv"\n'


def ball(height_m, n=40, seed=0):
    """Solid Gaussians that fill a ball of that height, standing on the origin."""
    rng = np.random.default_rng(seed)
    place = rng.normal(size=(n, 3))
    place *= (rng.uniform(0, 1, n) ** (1 / 3) / np.linalg.norm(place, axis=1))[:, None] * height_m / 2.2
    place[:, 2] += height_m / 2
    return Gaussians.plain(place, np.tile((height_m / 20) ** 2 * np.eye(3), (n, 1, 1)))


def plant(name, class_name, height_m, **facts):
    width = {"length_m": height_m, "width_m": height_m, "height_m": height_m}
    about = PrimitiveFacts(class_name=class_name, **(width | facts)).model_dump(mode="json")
    return Asset(name, (ball(height_m),), about)


@pytest.fixture
def folder(tmp_path):
    assets = [plant("tree-4", "small-tree", 4.0), plant("tree-8", "small-tree", 8.0), plant("bush", "low-shrub", 1.0)]
    LearnedWorld(kind="library", assets=assets).save(tmp_path / "lib.world")
    boxes = Annotation.of_boxes(
        ["small-tree", "small-tree", "low-shrub"],
        [[-10.0, 0], [10, 0], [0, 10]],
        [0.0, 0.5, 0],
        [[3.5, 3.5, 4.5], [9.0, 9, 7], [1, 1, 1]],
    )
    write_annotation(tmp_path / "boxes.csv", boxes)
    return tmp_path


def built(folder, text, **how):
    (folder / "site.toml").write_text(text)
    return load_site(folder / "site.toml", **how)


def looking_at(x, y):
    """Beams from 12 m above the middle to a spot."""
    from hedgerow import Beams

    target = np.array([[x, y, 0.5]])
    way = target - [0.0, -25.0, 12.0]
    return Beams.from_arrays(origins=[[0.0, -25, 12]], directions=way / np.linalg.norm(way))


def test_a_box_takes_the_primitive_of_its_class_with_the_nearest_extents(folder):
    world = built(folder, ANNOTATED, record=True).composed()
    instances = world.tables["instances"]
    assert isinstance(instances, Instances)
    names = [world.assets[k].name for k in instances.asset]
    at = {name: tuple(place) for name, place in zip(names, instances.transform[:, :2, 3].round(3), strict=True)}
    assert at == {"tree-4": (-10.0, 0.0), "tree-8": (10.0, 0.0), "bush": (0.0, 10.0)}
    assert count_classes(world) == {"low-shrub": 1, "small-tree": 2}
    assert sorted(instances.object.tolist()) == [1, 2, 3]
    assert np.allclose(
        instances.transform[names.index("tree-8"), :2, :2], [[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]]
    )


def test_returns_carry_class_and_object(folder):
    world = built(folder, ANNOTATED).world()
    log = world.fire(Sensor.named("vlp-16").sweep_at(_standing(), 0, 0), 1, sensor=Sensor.named("vlp-16"))
    label, owner = log.returns.label, log.returns.object
    assert label is not None and owner is not None
    for number, name in ((1, "low-shrub"), (2, "small-tree"), (3, "small-tree")):
        assert (label[owner == number] == LABELS[name].number).all()
    assert (label[(owner == 0) & log.returns.hit] == LABELS["ground"].number).all()
    points = log.points()
    mine = owner[log.returns.hit]
    # Boxes are filled by class in the order of the alphabet; object 3 is the tree at (10, 0).
    assert np.abs(points[mine == 3][:, :2] - [10, 0]).max() < 5.5
    assert log.metadata["classes"]["small-tree"] == LABELS["small-tree"].number


def _standing():
    from hedgerow import Trajectory

    return Trajectory.line((0, -8, 2), (0, -7, 2), speed_mps=1)


@pytest.mark.parametrize(("scale", "height_m"), [("none", 8.0), ("height", 7.0), ("box", 7.0)])
def test_a_primitive_is_scaled_if_asked_to(folder, scale, height_m):
    site = built(folder, ANNOTATED + f'scale = "{scale}"\n', record=True)
    world = site.composed()
    instances = world.tables["instances"]
    assert isinstance(instances, Instances)
    row = [world.assets[k].name for k in instances.asset].index("tree-8")
    top = instances.high_m[row, 2]
    reach = world.assets[int(instances.asset[row])].box.high_m[2] * height_m / 8.0
    assert top == pytest.approx(reach, rel=1e-6)


def test_drawing_among_the_nearest_uses_several(folder):
    boxes = Annotation.of_boxes(
        ["small-tree"] * 40, np.c_[np.linspace(-25, 25, 40), np.zeros(40)], 0.0, np.full((40, 3), 4.0)
    )
    write_annotation(folder / "boxes.csv", boxes)
    one, two = (built(folder, ANNOTATED + f"among = {k}\n", record=True).composed() for k in (1, 2))
    assert [len(np.unique(each.tables["instances"].columns()["asset"])) for each in (one, two)] == [1, 2]  # pyright: ignore


def test_nearest_extents_is_euclidean():
    extents = np.array([[1.0, 1, 1], [2, 2, 9], [5, 5, 5]])
    boxes = np.array([[1.0, 1, 2], [4.4, 4.4, 6.5], [2, 2, 8]])
    assert nearest_extents(extents, boxes, 1, None).tolist() == [0, 2, 1]


def test_rules_keep_away_from_annotated_boxes(folder):
    rule = '[scatter.more]\nwhat = "bushes"\ncount = 60\naway_from = { annotation = 6.0 }\n'
    site = built(folder, ANNOTATED + rule, record=True)
    instances = site.composed().tables["instances"]
    assert isinstance(instances, Instances)
    assert len(instances) == 63
    place = instances.transform[:, :2, 3]
    boxes = np.array([[-10.0, 0], [10, 0], [0, 10]])
    others = np.array([each for each in place if np.abs(boxes - each).sum(axis=1).min() > 1e-6])
    assert np.linalg.norm(others[:, None] - boxes, axis=2).min() >= 6.0


def test_a_plant_of_meshes_is_a_primitive_too(folder):
    text = ANNOTATED.replace('library = "lib.world"\nclass = "small-tree"', 'of = "oak"\nclass = "small-tree"')
    text += '[plants.oak]\nkind = "broadleaf"\nvariants = 2\nparameters = { height_m = 5, detail = 0.1 }\n'
    site = built(folder, text)
    assert site.n_copies == {"annotation": 3}
    assert site.scene.answers("sub_ray") and site.scene.answers("pulse")


def test_what_was_half_seen_faces_the_path_as_it_was_seen(folder):
    seen = [0] * SECTORS
    seen[2] = 100  # from +y of its own frame
    half = plant("half", "small-tree", 4.0, n_beams=100, seen_from=seen)
    LearnedWorld(kind="library", assets=[half, plant("bush", "low-shrub", 1.0)]).save(folder / "lib.world")
    text = ANNOTATED + "[trail]\npath_m = [[-29, -20], [29, -20]]\nsmooth = false\n"
    instances = built(folder, text, record=True).composed().tables["instances"]
    assert isinstance(instances, Instances)
    trees = instances[instances.class_label == LABELS["small-tree"].number]
    for transform in trees.transform:
        assert np.allclose(transform[:2, :2] @ [0, 1], [0, -1], atol=0.05)  # its seen side looks down to the trail


def test_a_composed_world_is_saved_and_answers_like_the_site(folder):
    site = built(folder, ANNOTATED, record=True)
    compose(folder / "site.toml").save(folder / "new.world")
    world = load_world(folder / "new.world")
    sensor = Sensor.named("vlp-16")
    beams = sensor.sweep_at(_standing(), 0, 0)
    one, other = site.world().fire(beams, 3, sensor=sensor), world.fire(beams, 3, sensor=sensor)
    # Elements are numbered in another order, so coins differ; these are solid, so the same things answer.
    assert (one.returns.label == other.returns.label).mean() > 0.99  # pyright: ignore[reportAttributeAccessIssue]
    assert world.box is not None
    likely = world.log_likelihood(one)
    np.testing.assert_allclose(likely, site.world().log_likelihood(one), atol=1e-4)
    assert np.isfinite(likely).mean() > 0.99


def test_semantic_kitti_files_carry_class_and_object(folder):
    """Read back as SemanticKITTI's own tools do: lower 16 bits the class, upper 16 the instance."""
    from hedgerow import write_log

    sensor = Sensor.named("vlp-16")
    log = built(folder, ANNOTATED).world().fire(sensor.sweep_at(_standing(), 0, 0), 1, sensor=sensor)
    write_log(log, folder / "sequence", format="kitti")
    label = np.fromfile(folder / "sequence" / "labels" / "000000.label", dtype="<u4")
    points = np.fromfile(folder / "sequence" / "velodyne" / "000000.bin", dtype="<f4").reshape(-1, 4)[:, :3]
    semantic, instance = label & 0xFFFF, label >> 16
    assert len(label) == len(points) == log.returns.hit.sum()
    assert set(np.unique(semantic).tolist()) == {70, 72}  # vegetation, terrain
    assert (semantic[instance > 0] == 70).all()
    assert (instance[semantic == 72] == 0).all()
    # The sensor stands at (0, -8, 2) and looks along x: the tree at (10, 0) is 10 m ahead and 8 m to the left.
    assert np.abs(points[instance == 3][:, :2] - [10, 8]).max() < 5.5


def test_info_counts_boxes_and_patches_and_tells_lengths(folder):
    from hedgerow.scenes.site import open_scene

    (folder / "boxes.csv").write_text(
        "class,x,y,yaw,length,width,height,polygon,cell\n"
        'low-shrub,0,10,0,8,4,1,"POLYGON ((-4 8, 4 8, 4 12, -4 12))",2\nsmall-tree,5,0,0,4,4,5,,\n'
    )
    text = ANNOTATED + "[trajectories.drive]\nwaypoints_m = [[-20, 0], [20, 0]]\nspeed_mps = 5\n"
    (folder / "site.toml").write_text(text)
    lines = dict(open_scene(folder / "site.toml").details())
    assert lines["Annotation"] == "boxes.csv: 1 small-tree, 1 patch of low-shrub"
    assert lines["Trajectories"] == "drive (40 m, 8 s)"


# refusals


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'class = "small-tree"',
            'class = "tree"',
            r"primitives\.trees\.class: there is no class 'tree'; there are low-shrub",
        ),
        ('library = "lib.world"', 'library = "no.world"', r"no\.world is no library; expected a folder"),
        ('file = "boxes.csv"', 'file = "none.csv"', r"annotation\.file: there is no file"),
        ('file = "boxes.csv"', 'file = "site.toml"', r"annotation\.file: .*site\.toml"),
        ("[annotation]", "[annotation]\namong = 0", r"annotation\.among"),
        ("size_m = [60, 60]", "size_m = [15, 15]", r"3 of 3 boxes stand off the ground, the first at \(-10, 0\)"),
    ],
)
def test_one_sentence_says_what_is_wrong(folder, old, new, message):
    text = ANNOTATED.replace(old, new, 1)
    assert text != ANNOTATED
    with pytest.raises(FileError, match=message) as caught:
        built(folder, text)
    assert "\n" not in str(caught.value)


def test_a_class_that_the_library_does_not_have_is_told(folder):
    text = SCENE.replace("small-tree", "large-tree") + '[objects.one]\nwhat = "trees"\nat_m = [0, 0]\n'
    with pytest.raises(
        FileError, match=r"lib\.world has no primitive of class large-tree; it has low-shrub, small-tree"
    ):
        built(folder, text)


def test_boxes_of_a_class_without_primitives_are_told(folder):
    with pytest.raises(FileError, match=r"has boxes of class low-shrub, but no \[primitives\.\*\] is of that class"):
        built(
            folder, ANNOTATED.replace("[primitives.bushes]", "[primitives.more]").replace('"low-shrub"', '"small-tree"')
        )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("bush,0,0,0,1,1,1", "row 1.*bush"),
        ("low-shrub,0,0,0,0,1,1", "length.*row 1|row 1.*length"),
        ("low-shrub,0,0,0,1,-1,1", "width.*row 1|row 1.*width"),
        ("low-shrub,nan,0,0,1,1,1", "x.*row 1|row 1.*x"),
    ],
)
def test_a_wrong_row_of_an_annotation_is_told(folder, row, message):
    (folder / "boxes.csv").write_text(f"class,x,y,yaw,length,width,height\n{row}\n")
    with pytest.raises(FileError, match=message):
        built(folder, ANNOTATED)


def test_a_library_that_is_damaged_newer_or_none_is_told(folder):
    asset = folder / "lib.world" / "assets" / "tree-8.0.parquet"
    content = asset.read_bytes()
    asset.write_bytes(content[:100])
    with pytest.raises(FileError, match="damaged, or changed since the world was saved"):
        built(folder, ANNOTATED)
    asset.write_bytes(content)
    toml = folder / "lib.world" / "world.toml"
    text = toml.read_text()
    toml.write_text(text.replace("format = 3", "format = 9"))
    with pytest.raises(FileError, match=r"primitives\.bushes\.library: .*newer"):
        built(folder, ANNOTATED)
    LearnedWorld(ball(1.0), kind="test").save(folder / "lib.world")
    with pytest.raises(FileError, match="has no primitives; make a library with hedgerow primitives extract"):
        Library(folder / "lib.world")
