# SPDX-License-Identifier: Apache-2.0
"""Small good inputs of every kind that Hedgerow reads: a few hundred bytes to a few kilobytes, read in milliseconds.

Each function fills an empty folder and returns the path that is opened. Packets, bags and foreign folders come from
the makers of the tests, which do not use the code under test.
"""

import sys
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.io import write_log

_TESTS = Path(__file__).parents[2] / "tests"
for _folder in ("io", "world", "core", ""):  # the makers of the tests are no package
    sys.path.append(str(_TESTS / _folder))

from bag_maker import START_NS, Maker, points_at  # noqa: E402
from kitti360_maker import write_drive  # noqa: E402
from kitti_maker import make_raw, make_sequence, points  # noqa: E402
from packet_maker import (  # noqa: E402
    HDL_64E,
    VLS_128,
    ethernet,
    hdl_64e_calibration,
    hdl_64e_status,
    ip,
    ouster_metadata,
    ouster_pcap,
    pcapng,
    udp,
    velodyne_drive,
    velodyne_pcap,
)
from pcd_maker import write_pcd  # noqa: E402

MAP_ORIGIN_M = [4e5, 5e6, 100.0]
N_PACKETS = 4
TURN_AT = 35_900
"""Azimuth at which a drive begins, so that four packets pass into the next turn [0.01 degrees]."""


def small_log(n_sweeps: int = 2, per_sweep: int = 12, n_returns: int = 2) -> hr.Log:
    """Return a log with two returns per pulse, intensities, labels, colours, and some pulses without a return."""
    rng = np.random.default_rng(1)
    n = n_sweeps * per_sweep
    direction = rng.normal(size=(n, 3))
    ranges = np.sort(rng.uniform(1, 50, (n, n_returns)).astype(np.float32), axis=1)
    ranges[np.arange(n_returns) >= rng.integers(0, n_returns + 1, n)[:, None]] = np.inf
    hit = np.isfinite(ranges)
    beams = hr.Beams.from_arrays(
        origins=rng.normal(size=(n, 3)),
        directions=direction / np.linalg.norm(direction, axis=1, keepdims=True),
        times=START_NS + np.arange(n) * 1_333,
        rings=rng.integers(0, 16, n),
        sweeps=np.repeat(np.arange(n_sweeps), per_sweep),
    )
    returns = hr.Returns(
        ranges,
        intensity=np.where(hit, rng.random((n, n_returns)), np.nan).astype(np.float32),
        label=np.where(hit, rng.integers(0, 100, (n, n_returns)), 0).astype(np.uint16),
        colour=np.where(hit, rng.integers(0, 1 << 24, (n, n_returns)), 0).astype(np.uint32),
    )
    return hr.Log(beams, returns, "vlp-16", 0.5, 60.0, np.array(MAP_ORIGIN_M), {"seed": 7, "note": "größer"})


def written(name: str, format: str | None = None):
    """Return a maker that writes the small log under a name."""

    def make(folder: Path) -> Path:
        write_log(small_log(), folder / name, format=format)
        return folder / name

    return make


def kitti_raw(folder: Path) -> Path:
    """A raw drive."""
    return make_raw(folder, n_sweeps=2)


def kitti_360(folder: Path) -> Path:
    """A drive of KITTI-360, and what stands beside it."""
    poses = {k: hr.Pose.from_xyz_rpy((0.5 * k, 0, 1)) for k in range(2)}
    return write_drive(folder, {k: points(k) for k in poses}, poses)


def kitti(folder: Path) -> Path:
    """A sequence with labels."""
    return make_sequence(folder, n_sweeps=2, labels=True)


def pcd_organised(folder: Path) -> Path:
    """Two organised clouds of four lasers, with poses beside them."""
    clouds = folder / "clouds"
    clouds.mkdir()
    rng = np.random.default_rng(2)
    rows = np.zeros((4, 12), [("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("ring", "<u2"), ("t", "<u4")])
    azimuth, elevation = -np.linspace(0, 6, 12), np.linspace(0.2, -0.2, 4)[:, None]
    range_m = np.where(rng.random(rows.shape) < 0.2, np.nan, rng.uniform(2, 50, rows.shape))
    rows["x"], rows["y"] = range_m * np.cos(elevation) * np.cos(azimuth), range_m * np.cos(elevation) * np.sin(azimuth)
    rows["z"], rows["ring"] = range_m * np.sin(elevation), np.arange(4)[:, None]
    rows["t"] = np.arange(12) * 500_000
    stamps = [START_NS + k * 100_000_000 for k in range(-1, 4)]
    for stamp in stamps[1:3]:
        write_pcd(clouds / f"{stamp / 1e9:.6f}.pcd", rows)
    hr.write_trajectory(_drive(stamps), clouds / "poses.tum")
    return clouds


def _drive(stamps: list[int]) -> hr.Trajectory:
    return hr.Trajectory.from_poses(stamps, [hr.Pose.from_xyz_rpy((k, 0, 2)) for k in range(len(stamps))])


def velodyne(folder: Path) -> Path:
    """A capture of a VLP-16."""
    return velodyne_pcap(folder / "x.pcap", n_packets=N_PACKETS, start_azimuth=TURN_AT)


def velodyne_ng(folder: Path) -> Path:
    """The same in the newer container."""
    frames = [(ns, ethernet(ip(udp(load)))) for ns, load in velodyne_drive(N_PACKETS, start_azimuth=TURN_AT)]
    (folder / "x.pcapng").write_bytes(pcapng(frames))
    return folder / "x.pcapng"


def vls_128(folder: Path) -> Path:
    """A capture of a VLS-128."""
    return velodyne_pcap(folder / "x.pcap", n_packets=N_PACKETS, start_azimuth=TURN_AT, model=VLS_128)


def hdl_64e(folder: Path) -> Path:
    """A capture of an HDL-64E, its calibration beside it."""
    hdl_64e_calibration(folder / "unit.yaml")
    return velodyne_pcap(folder / "x.pcap", n_packets=N_PACKETS, model=HDL_64E, status=hdl_64e_status()[0])


def ouster(folder: Path) -> Path:
    """Two turns of an Ouster of 4 by 32."""
    metadata = ouster_metadata(n_columns=32)
    return ouster_pcap(folder / "x.pcap", metadata, [np.full((4, 32), 5_000 + k) for k in range(2)])


def bag(kind: str):
    """Return a maker of a recording of two clouds with transforms: bag, mcap or db3."""

    def make(folder: Path) -> Path:
        maker = Maker(kind)
        for k in range(2):
            maker.cloud(points_at(START_NS, n=12, seed=k), START_NS + k * 100_000_000)
        maker.tf(START_NS - 200_000_000, "base_link", "velodyne", (0, 0, 1.5), static=True)
        for k in range(-1, 4):
            maker.tf(START_NS + k * 100_000_000, "map", "base_link", (k, 0, 0))
        return maker.write(folder)

    return make


def bag_packets(folder: Path) -> Path:
    """A recording of Velodyne packets, and odometry."""
    maker = Maker("mcap")
    maker.scan(velodyne_drive(2))
    return maker.write(folder)


def bag_odometry(folder: Path) -> Path:
    """A ROS 1 bag of clouds, poses from odometry."""
    maker = Maker("bag")
    for k in range(2):
        maker.cloud(points_at(START_NS, n=12, seed=k), START_NS + k * 100_000_000, frame="base_link")
    for k in range(-1, 4):
        maker.odometry(START_NS + k * 100_000_000, (k, 0, 0))
    return maker.write(folder)


# ---- what is no log


def tum(folder: Path) -> Path:
    """Poses with times."""
    hr.write_trajectory(_drive([START_NS + k * 100_000_000 for k in range(5)]), folder / "poses.tum")
    return folder / "poses.tum"


def kitti_poses(folder: Path) -> Path:
    """Poses as matrices, and times beside them."""
    from hedgerow.io.trajectory import write_kitti

    write_kitti(_drive([k * 100_000_000 for k in range(5)]), folder / "poses.kitti", times=folder / "times.txt")
    return folder / "poses.kitti"


def world(*tables: str):
    """Return a maker of a saved world of some tables, a few elements each."""

    def make(folder: Path) -> Path:
        import small_worlds

        content = {
            "triangles": small_worlds.triangles,
            "gaussians": small_worlds.gaussians,
            "points": small_worlds.points,
        }
        made = small_worlds.world(*(content[name](6, extent=20.0) for name in tables))
        made.save(folder / "x.world")
        return folder / "x.world"

    return make


SCENE = """about = "ground and shrubs"
seed = 3
sensor = "vlp-16"
[parameters]
shrubs = 3
[terrain]
kind = "noise"
size_m = [20, 20]
spacing_m = 1.0
relief_m = 0.5
[trail]
path_m = [[-9, -9], [9, 9]]
width_m = 2.0
[shapes.post]
kind = "cylinder"
height_m = 1.5
radius_m = 0.1
[plants.bush]
kind = "shrub"
variants = 1
parameters = { height_m = 0.5, detail = 0.1 }
[objects.one]
what = "post"
at_m = [1, 2]
repeat = { count = 2, step_m = [0, 0.5] }
[scatter.bushes]
what = "bush"
count = "$shrubs"
spacing_m = 0.5
scale = [0.7, 1.3]
[walls.fence]
path_m = [[-5, -5], [5, -5]]
height_m = 1.0
thickness_m = 0.2
[materials.paint]
wavelength_nm = [905]
reflectance = [0.5]
[trajectories.drive]
waypoints_m = [[-2, 0], [2, 0]]
speed_mps = 10
height_m = 1.5
[trajectories.stand]
standing_m = [0, 0]
height_m = 2.0
"""

_MESH_SCENE = """about = "one mesh"
sensor = "vlp-16"
[terrain]
size_m = [20, 20]
[meshes.thing]
file = "thing.SUFFIX"
scale = 1.0
[objects.one]
what = "thing"
at_m = [0, 0]
"""

_RASTER_SCENE = """about = "heights"
sensor = "vlp-16"
[terrain]
kind = "raster"
file = "heights.SUFFIX"
"""

_WORLD_SCENE = """about = "a learned world in a scene"
sensor = "vlp-16"
[terrain]
size_m = [20, 20]
[worlds.thing]
file = "x.world"
[objects.one]
what = "thing"
at_m = [0, 0]
"""


def scene(folder: Path) -> Path:
    """A scene file with a little of everything."""
    (folder / "scene.toml").write_text(SCENE, encoding="utf-8")
    return folder / "scene.toml"


def scene_mesh(suffix: str):
    """Return a maker of a scene with a box from a mesh file."""

    def make(folder: Path) -> Path:
        import trimesh

        trimesh.creation.box((1, 1, 2)).export(folder / f"thing.{suffix}")
        (folder / "scene.toml").write_text(_MESH_SCENE.replace("SUFFIX", suffix), encoding="utf-8")
        return folder / "scene.toml"

    return make


def scene_raster(suffix: str):
    """Return a maker of a scene on heights from a picture."""

    def make(folder: Path) -> Path:
        from PIL import Image, TiffImagePlugin

        text = _RASTER_SCENE.replace("SUFFIX", suffix)
        heights = np.arange(64, dtype=np.uint16).reshape(8, 8) * 100
        if suffix == "png":
            text += "metres_per_pixel = 2.0\nheight_range_m = [0, 3]\n"
            Image.fromarray(heights).save(folder / "heights.png")
        else:
            tags = TiffImagePlugin.ImageFileDirectory_v2()
            tags[33550] = (2.0, 2.0, 0.0)
            tags.tagtype[33550] = 12
            tags[33922] = (0.0, 0.0, 0.0, 0.0, 16.0, 0.0)
            tags.tagtype[33922] = 12
            Image.fromarray((heights / 1000).astype(np.float32)).save(folder / "heights.tif", tiffinfo=tags)
        (folder / "scene.toml").write_text(text, encoding="utf-8")
        return folder / "scene.toml"

    return make


def scene_world(folder: Path) -> Path:
    """A scene that places a learned world."""
    world("gaussians")(folder)
    (folder / "scene.toml").write_text(_WORLD_SCENE, encoding="utf-8")
    return folder / "scene.toml"


def world_of_assets(folder: Path) -> Path:
    """A composed world: two assets, of which one is met by sub-rays, and copies of them."""
    import numpy as np
    import small_worlds

    from hedgerow.world.assets import Asset, instances_of
    from hedgerow.world.elements import Triangles

    hut = Triangles.plain(np.eye(3)[None] * 2.0, answer="sub_ray", lambertian=True)
    assets = [
        Asset("bush", (small_worlds.gaussians(6, extent=1.0),), {"class_name": "low-shrub"}),
        Asset("hut", (hut,)),
    ]
    places = np.tile(np.eye(4), (4, 1, 1))
    places[:, 0, 3] = [3.0, 8.0, -12.0, 15.0]
    copies = instances_of(assets, np.array([0, 0, 1, 1]), places, object=[1, 2, 3, 4], class_label=[121, 121, 0, 0])
    made = small_worlds.world(copies, assets=assets, classes={"low-shrub": 121}, parameters={"beam": {}})
    made.save(folder / "x.world")
    return folder / "x.world"


_PRIMITIVE_SCENE = """seed = 1
[terrain]
size_m = [40, 40]
[primitives.bushes]
library = "lib.world"
class = "low-shrub"
[annotation]
file = "FILE"
among = 2
"""


def scene_annotation(suffix: str):
    """Return a maker of a scene of primitives from a library, placed by an annotation of this kind."""

    def make(folder: Path) -> Path:
        import numpy as np
        import small_worlds

        from hedgerow.scenes.annotation import Annotation, write_annotation
        from hedgerow.scenes.primitive import PrimitiveFacts
        from hedgerow.world.assets import Asset

        facts = PrimitiveFacts(
            class_name="low-shrub", length_m=1, width_m=1, height_m=1, seen_from=[9, 0, 0, 0, 0, 0, 0, 0]
        )
        bush = Asset("bush-1", (small_worlds.gaussians(4, extent=0.5),), facts.model_dump(mode="json"))
        small_worlds.world(kind="library", assets=[bush]).save(folder / "lib.world")
        square = np.array([[0.0, 4], [6, 4], [6, 8], [0, 8]])
        boxes = Annotation.of_boxes(
            ["low-shrub", "low-shrub"],
            [[2.0, 1.0], [3.0, 6.0]],
            [0.1, 0.2],
            [[1.0, 1, 1], [6, 4, 1]],
            polygon_m=[None, square],
            cell_m=[np.nan, 2.0],
        )
        write_annotation(folder / f"boxes{suffix}", boxes)
        text = _PRIMITIVE_SCENE.replace("FILE", f"boxes{suffix}")
        (folder / "scene.toml").write_text(text, encoding="utf-8")
        return folder / "scene.toml"

    return make


def segments(folder: Path) -> Path:
    """A segment file: objects of a small cloud of plants on level ground."""
    import numpy as np

    from hedgerow.compose.segment_file import save_segmentation
    from hedgerow.compose.segmentation import segment
    from hedgerow.log import Log

    rng = np.random.default_rng(1)
    ground = np.c_[rng.uniform(-15, 15, (4000, 2)), rng.normal(0, 0.01, 4000)]
    plants = rng.normal(size=(600, 3)) * [0.5, 0.5, 0.4] + [5.0, 3.0, 1.2]
    points = np.concatenate([ground, plants]) - [0, 0, 30.0]
    log = Log.from_arrays(
        origins=np.zeros((len(points), 3)),
        directions=points / np.linalg.norm(points, axis=1, keepdims=True),
        ranges=np.linalg.norm(points, axis=1),
    )
    save_segmentation(folder / "x.segments.parquet", segment(log))
    return folder / "x.segments.parquet"


def sensor(folder: Path) -> Path:
    """A sensor file: that of the VLP-16."""
    from importlib import resources

    content = (resources.files("hedgerow.sensor") / "catalogue" / "vlp-16.toml").read_text(encoding="utf-8")
    (folder / "mine.toml").write_text(content, encoding="utf-8")
    return folder / "mine.toml"


def rosette(folder: Path) -> Path:
    """A sensor file of another pattern: that of the Mid-40."""
    from importlib import resources

    files = resources.files("hedgerow.sensor") / "catalogue"
    name = next(each for each in files.iterdir() if 'kind = "rosette"' in each.read_text(encoding="utf-8"))
    (folder / "mine.toml").write_text(name.read_text(encoding="utf-8"), encoding="utf-8")
    return folder / "mine.toml"


def classifier(folder: Path) -> Path:
    """Parameters that `tune classifier` writes."""
    from importlib import resources

    path = resources.files("hedgerow.models.steps") / "classifier_defaults.toml"
    (folder / "classifier.toml").write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return folder / "classifier.toml"


def vegetation(folder: Path) -> Path:
    """Settings that `calibrate vegetation` writes."""
    text = "[vegetation]\nlabels = [70, 71]\nmean_m = { 70 = 0.1, 71 = 0.0 }\nsigma_m = 1.0\ndual = true\n"
    (folder / "vegetation.toml").write_text(text, encoding="utf-8")
    return folder / "vegetation.toml"


def pose_errors(folder: Path) -> Path:
    """Errors of the reported pose."""
    text = "position_sigma_m = 0.02\nheading_sigma_deg = 0.1\nheading_correlation_s = 5\nmount_rpy_deg = [0, 0.5, -1]\n"
    (folder / "errors.toml").write_text(text, encoding="utf-8")
    return folder / "errors.toml"


def read_seed(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their path in it."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}
