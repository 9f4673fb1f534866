# SPDX-License-Identifier: Apache-2.0
"""The kinds of input that are tried: how a good one is made, how it is read to the end, and which room reads it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

import hedgerow as hr
from fuzzing import seeds
from fuzzing.change import Seed

if TYPE_CHECKING:
    from hedgerow.io.source import LogSource

_SCANNER: dict[str, Any] = {"scanner_m": seeds.MAP_ORIGIN_M}
_STATIC: dict[str, Any] = {"static": True}


@dataclass(frozen=True)
class Kind:
    """One kind of input."""

    name: str
    room: str
    """Folder or module of src/hedgerow that reads it."""
    make: Callable[[Path], Path]
    """Makes a good input in an empty folder; returns the path that is opened."""
    steps: tuple[Callable[[Path], object], ...]
    """What is done with an input; each may refuse it."""
    weight: float = 1.0
    """Its share of the time, against the others'."""
    open_log: Callable[[Path], "LogSource"] | None = None
    """Opens it, if it is a log."""
    is_recipe: bool = False
    """Whether a small one may rightly ask for much memory; then it may say in a sentence that there is too little."""

    def seed(self) -> Seed:
        """Make the good input and take it into memory."""
        with TemporaryDirectory() as name, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a format may not hold all of the small log
            folder = Path(name)
            opened = self.make(folder).relative_to(folder).as_posix()
            return Seed(seeds.read_seed(folder), opened)


class Nonsense(Exception):
    """Something was accepted that no reader should accept."""


def opener(options: dict[str, Any]) -> Callable[[Path], "LogSource"]:
    """Return a function that opens a log with these options; `metadata` is a file beside it."""

    def open_log(path: Path) -> "LogSource":
        beside: dict[str, Any] = {"metadata": path.with_name(options["metadata"])} if "metadata" in options else {}
        return hr.open_log(path, **(options | beside))

    return open_log


def read_log(open_log: Callable[[Path], "LogSource"]) -> Callable[[Path], object]:
    """Return a step that opens a log and reads it sweep by sweep."""

    def read(path: Path) -> None:
        for _, log in open_log(path).iter_sweeps():
            if not np.isfinite(log.points()).all():
                raise Nonsense("a log with points that are not finite was accepted")

    return read


def describe(path: Path) -> None:
    """What `hedgerow info` does."""
    from hedgerow.inputs import describe

    for label, text in describe(path):
        if not (isinstance(label, str) and isinstance(text, str)):
            raise Nonsense(f"a description is no text: {label!r}: {text!r}")
        if not all(line.isprintable() for line in (label, *text.split("\n"))):
            raise Nonsense(f"a description is not fit to be printed: {label}: {text[:200]!r}")


_BEAMS = hr.Beams.from_arrays(
    origins=[0, 0, 1], directions=np.array([[1.0, 0, 0], [0, 1, 0], [0.6, 0.8, 0], [0, 0, -1]])
)


def fire_world(path: Path) -> None:
    """Load a world, fire a few beams."""
    hr.load_world(path).fire(_BEAMS, seed=1)


def fire_tiles(path: Path) -> None:
    """Fire through a world whose tiles are read as they are needed."""
    hr.load_world(path, resident_tiles=1).fire(_BEAMS, seed=1)


def build_scene(path: Path) -> None:
    """Build a scene and fire a few beams."""
    from hedgerow.scenes.site import load_site

    load_site(path).world().fire(_BEAMS, seed=1)


def read_segments(path: Path) -> None:
    """Read a segmentation, and take its annotation."""
    from hedgerow.compose.segment_file import load_segmentation

    load_segmentation(path).annotation().expanded()


def read_poses(path: Path) -> None:
    """Read a trajectory, and ask for a pose in its middle."""
    times = path.with_name("times.txt") if path.suffix == ".kitti" else None
    found = hr.read_trajectory(path, times=times) if times else hr.read_trajectory(path)
    found.at([(found.start_ns + found.end_ns) // 2])


def sweep_sensor(path: Path) -> None:
    """Load a sensor; make a sweep unless it is large."""
    sensor = hr.Sensor.load(path)
    if sensor.pulses_per_sweep < 50_000:
        sensor.sweep(hr.Pose.from_xyz_rpy((0, 0, 1)))


def read_classifier(path: Path) -> None:
    """Read parameters of the classifier."""
    from hedgerow.models.steps.classifier import read_classifier

    read_classifier(path)


def read_vegetation(path: Path) -> None:
    """Read settings of the vegetation response."""
    from hedgerow.pulse.vegetation import VegetationSettings

    VegetationSettings.load(path)


def read_pose_errors(path: Path) -> None:
    """Read errors of the pose, and apply them."""
    from hedgerow.frames import Trajectory
    from hedgerow.sensor.pose_errors import PoseErrors

    PoseErrors.open(path).displace(Trajectory.line((0, 0, 0), (5, 0, 0), 5.0))


def _log(name: str, room: str, make: Callable[[Path], Path], weight: float = 1.0, **options: Any) -> Kind:
    open_log = opener(options)
    return Kind(name, room, make, (read_log(open_log), describe), weight, open_log)


def _scene(name: str, make: Callable[[Path], Path], weight: float = 0.5, is_recipe: bool = True) -> Kind:
    return Kind(name, "scenes", make, (build_scene, describe), weight, is_recipe=is_recipe)


KINDS = (
    _log("parquet", "io/parquet", seeds.written("x.parquet"), 2),
    _log("log", "io/parquet", seeds.written("x.log")),
    _log("kitti-raw", "io/kitti", seeds.kitti_raw),
    _log("kitti-360", "io/kitti360", seeds.kitti_360),
    _log("kitti", "io/kitti", seeds.kitti),
    _log("kitti-own", "io/kitti", seeds.written("seq", "kitti")),
    _log("pcd-folder", "io/points", seeds.written("seq", "pcd-folder")),
    _log("pcd-organised", "io/points", seeds.pcd_organised),
    _log("pcd", "io/points", seeds.written("x.pcd"), **_SCANNER),
    _log("ply", "io/points", seeds.written("x.ply"), **_SCANNER),
    _log("las", "io/points", seeds.written("x.las"), 2, **_SCANNER),
    _log("laz", "io/points", seeds.written("x.laz"), 2, **_SCANNER),
    _log("velodyne.pcap", "io/pcap", seeds.velodyne, **_STATIC),
    _log("velodyne.pcapng", "io/pcap", seeds.velodyne_ng, **_STATIC),
    _log("vls-128.pcap", "io/pcap", seeds.vls_128, **_STATIC),
    _log("hdl-64e.pcap", "io/pcap", seeds.hdl_64e, **_STATIC, metadata="unit.yaml"),
    _log("ouster.pcap", "io/pcap", seeds.ouster, **_STATIC),
    _log("ros1", "io/ros", seeds.bag("bag")),
    _log("ros1-odometry", "io/ros", seeds.bag_odometry),
    _log("mcap", "io/ros", seeds.bag("mcap")),
    _log("ros2", "io/ros", seeds.bag("db3")),
    _log("mcap-own", "io/ros", seeds.written("x.mcap")),
    _log("bag-own", "io/ros", seeds.written("x.bag")),
    _log("packets.mcap", "io/ros", seeds.bag_packets, **_STATIC),
    Kind("tum", "io/trajectory", seeds.tum, (read_poses, describe)),
    Kind("kitti-poses", "io/trajectory", seeds.kitti_poses, (read_poses, describe)),
    Kind("world", "world", seeds.world("triangles", "gaussians"), (fire_world, fire_tiles, describe), 2),
    Kind("world-points", "world", seeds.world("points"), (fire_world, describe)),
    Kind("world-assets", "world", seeds.world_of_assets, (fire_world, fire_tiles, describe), 2),
    Kind("segments", "compose", seeds.segments, (read_segments,)),
    _scene("scene", seeds.scene, 2),
    *(_scene(f"scene-boxes{suffix}", seeds.scene_annotation(suffix), 1) for suffix in (".csv", ".parquet")),
    *(_scene(f"scene-{suffix}", seeds.scene_mesh(suffix), is_recipe=False) for suffix in ("obj", "ply", "stl", "glb")),
    *(_scene(f"scene-{suffix}", seeds.scene_raster(suffix)) for suffix in ("png", "tif")),
    _scene("scene-world", seeds.scene_world),
    Kind("sensor", "sensor", seeds.sensor, (sweep_sensor, describe)),
    Kind("sensor-rosette", "sensor", seeds.rosette, (sweep_sensor, describe)),
    Kind("classifier", "models", seeds.classifier, (read_classifier,), 0.5),
    Kind("vegetation", "pulse", seeds.vegetation, (read_vegetation,), 0.5),
    Kind("pose-errors", "sensor", seeds.pose_errors, (read_pose_errors,), 0.5),
)
BY_NAME = {each.name: each for each in KINDS}
