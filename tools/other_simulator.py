# SPDX-License-Identifier: Apache-2.0
"""Let another lidar simulator drive through one of our scenes, for docs/compare.md.

    python tools/other_simulator.py mesh SCENE OUT.ply [--set NAME=VALUE ...]
    python tools/other_simulator.py path SCENE OUT.tum [--trajectory NAME] [--set NAME=VALUE ...]
    python tools/other_simulator.py helios MESH PATH.tum OUT.las [--start-s S] [--sweeps N] [--rays-per-pulse N]

`mesh` writes a scene as one mesh (PLY, OBJ, STL or GLB), which any simulator can load: every copy of every plant as its
own triangles, so take a scene of some hundred thousand. A mesh knows no permeability: a wire fence becomes a wall.

`helios` needs pyhelios3d, the Python package of Helios (Bailey 2019; not HELIOS++), and laspy:

    pip install pyhelios3d laspy

It drives a spinning lidar of Helios along the path and writes what Helios gives as an ordinary LAS file: points with
GPS time, intensity, and the channel as `ring`. Beams that meet nothing are points 20 km away there, and stay so: they
are beyond the range of any sensor that they are compared with. With --rays-per-pulse a pulse is a bundle of rays, and
the strongest return is kept.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.cli.options import parse_settings
from hedgerow.errors import HedgerowError, InputError
from hedgerow.frames import Pose, Trajectory
from hedgerow.io.trajectory import read_trajectory, write_trajectory
from hedgerow.scenes.site import load_site
from hedgerow.sensor import Sensor
from hedgerow.world.elements import Triangles
from hedgerow.world.recording import RecordingScene

MOST_TRIANGLES = 5_000_000
"""Other programs hold each triangle as an object of its own, up to a kilobyte."""
SINGLE = 1
"""Helios's name for one return of each pulse, the strongest."""
TURN_DEG = -90.0
"""Helios begins a turn at the left of the vehicle, our sensors ahead; both turn clockwise."""
POSE_RATE_HZ = 100


def scene_triangles(scene: RecordingScene, transforms: NDArray[np.float64] | None = None) -> Iterator[NDArray[Any]]:
    """Give the corners of all triangles of a scene, (T, 3, 3) for each copy of each part.

    Args:
        scene: what a site was built of, with `record=True`.
        transforms: (K, 4, 4) where its copies stand. Default: once, as it is.
    """
    placed = np.eye(4)[None] if transforms is None else transforms
    for part in scene.parts:
        if not isinstance(part, Triangles):
            raise InputError("scene", "has Gaussians of learned worlds, which no mesh can hold")
        for matrix in placed:
            yield part.corners_m @ matrix[:3, :3].T + matrix[:3, 3]
    for copies in scene.copies:
        both = np.einsum("nij,mjk->nmik", placed, copies.matrices).reshape(-1, 4, 4)
        yield from scene_triangles(copies.scene, both)


def write_mesh(scene: str, out: Path, settings: dict[str, Any]) -> int:
    """Write a scene as one mesh; return how many triangles it has."""
    import trimesh

    site = load_site(scene, set=settings, record=True)
    if site.n_triangles > MOST_TRIANGLES:
        raise InputError(
            scene, f"has {site.n_triangles:,} triangles; set coarser plants until there are {MOST_TRIANGLES:,} at most"
        )
    assert isinstance(site.scene, RecordingScene)
    corners = np.concatenate(list(scene_triangles(site.scene)))
    faces = np.arange(corners.shape[0] * 3).reshape(-1, 3)
    trimesh.Trimesh(corners.reshape(-1, 3), faces, process=False).export(out)
    return len(faces)


def write_path(scene: str, out: Path, name: str, settings: dict[str, Any]) -> None:
    """Write a named trajectory of a scene, or its first, as TUM text."""
    trajectories = load_site(scene, set=settings).trajectories
    chosen = name or next(iter(trajectories), "")
    if chosen not in trajectories:
        raise InputError(scene, f"has no trajectory '{chosen}'; it has {', '.join(trajectories) or 'none'}")
    write_trajectory(trajectories[chosen], out)


def helios_scan(
    trajectory: Trajectory, sensor: Sensor, begin_s: float, n_sweeps: int, turn_deg: float
) -> dict[str, Any]:
    """Describe a sensor and its way in the words of Helios's `addScanSpinning`.

    Args:
        trajectory: of the sensor.
        sensor: a spinning lidar whose lasers all fire at each step.
        begin_s: time of the first pulse, on the clock of the trajectory.
        n_sweeps: turns of the sensor.
        turn_deg: how far the sensor is turned about its axis.
    """
    once = sensor.sweep(Pose.from_xyz_rpy((0.0, 0.0, 0.0)))
    elevation = np.arcsin(once.direction[:, 2].astype(np.float64))
    rings = np.unique(once.ring)
    end_s = begin_s + n_sweeps * sensor.sweep_s
    time_s = np.linspace(begin_s, end_s, max(2, round((end_s - begin_s) * POSE_RATE_HZ) + 1))
    position_m, quaternion = trajectory.at(np.rint(time_s * 1e9).astype(np.int64))
    beam = sensor.config.beam
    return {
        "beam_elevation_angles": [float(np.median(elevation[once.ring == ring])) for ring in rings],
        "azimuth_step": 2 * np.pi * len(rings) / len(once),
        "pulse_rate_hz": len(once) / sensor.sweep_s,
        "traj_t": time_s.tolist(),
        "traj_pos": position_m.tolist(),
        "traj_rot": quaternion.tolist(),
        "exit_diameter": max(beam.aperture_horizontal_mm, beam.aperture_vertical_mm) / 1000,
        "beam_divergence": (beam.divergence_horizontal_mrad + beam.divergence_vertical_mrad) / 2000,
        "boresight_rpy": [0.0, 0.0, float(np.radians(turn_deg))],
        "range_noise_stddev": sensor.config.range.sigma_m,
        "t0": begin_s,
    }


def drive_helios(mesh: Path, scan: dict[str, Any], rays_per_pulse: int, cutoff_m: float) -> dict[str, NDArray[Any]]:
    """Let Helios scan a mesh; return a row for each pulse: place [m], time [s], channel, intensity."""
    try:
        from pyhelios import Context, LiDARCloud  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("helios", "the package is missing; pip install pyhelios3d") from None
    import trimesh

    shape: Any = trimesh.load(mesh, process=False, force="mesh")
    with Context() as context, LiDARCloud() as cloud:
        context.addTrianglesFromArrays(np.asarray(shape.vertices), np.asarray(shape.faces))
        cloud.disableMessages()
        cloud.addScanSpinning(**scan)
        waveform = {"rays_per_pulse": rays_per_pulse, "pulse_distance_threshold": cutoff_m, "return_mode": SINGLE}
        cloud.syntheticScan(context, record_misses=True, **(waveform if rays_per_pulse > 1 else {}))
        columns = {
            name: np.asarray(cloud.getHitDataColumnArray(name)) for name in ("timestamp", "channel", "intensity")
        }
        return columns | {"xyz": np.asarray(cloud.getHitXYZColumn(), dtype=np.float64)}


def write_las(rows: dict[str, NDArray[Any]], out: Path) -> None:
    """Write rows as LAS 1.4, as any program would: GPS time as seconds, `ring` as an extra dimension."""
    from importlib import import_module

    laspy: Any = import_module("laspy")

    header = laspy.LasHeader(version="1.4", point_format=6)
    header.scales = np.full(3, 0.001)
    header.add_extra_dim(laspy.ExtraBytesParams("ring", np.uint16))
    las = laspy.LasData(header)
    las.x, las.y, las.z = rows["xyz"].T
    las.gps_time = rows["timestamp"]
    las.return_number = las.number_of_returns = np.ones(len(rows["xyz"]), dtype=np.uint8)
    # Helios's intensity is the cosine of incidence by reflectivity, with the sign of the side that is seen.
    las.intensity = np.rint(np.clip(np.abs(rows["intensity"]), 0, 1) * 65535).astype(np.uint16)
    las.ring = rows["channel"].astype(np.uint16)
    las.write(out)


def run_helios(asked: argparse.Namespace) -> str:
    """Scan a mesh along a path; return what was done in a line."""
    sensor = Sensor.named(asked.sensor)
    scan = helios_scan(read_trajectory(asked.path), sensor, asked.start_s, asked.sweeps, asked.turn_deg)
    rows = drive_helios(asked.mesh, scan, asked.rays_per_pulse, sensor.config.signal.cutoff_m)
    write_las(rows, asked.out)
    return f"{len(rows['xyz']):,} pulses of a {asked.sensor} in Helios"


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("mesh", "path"):
        each = verbs.add_parser(verb)
        each.add_argument("scene", help="name of a shipped scene, or a .toml file")
        each.add_argument("out", type=Path)
        each.add_argument("--set", action="append", metavar="NAME=VALUE", help="as in hedgerow fire")
        each.add_argument("--trajectory", default="", help="path alone: one of the scene; default: its first")
    helios = verbs.add_parser("helios")
    helios.add_argument("mesh", type=Path)
    helios.add_argument("path", type=Path, help="poses of the sensor, TUM text")
    helios.add_argument("out", type=Path)
    helios.add_argument("--sensor", default="vlp-16", help="a spinning one of the catalogue")
    helios.add_argument("--start-s", type=float, default=0.0, help="time of the first pulse, on the clock of the path")
    helios.add_argument("--sweeps", type=int, default=10)
    helios.add_argument("--rays-per-pulse", type=int, default=1, help="1: one ray, else a bundle as wide as the beam")
    helios.add_argument("--turn-deg", type=float, default=TURN_DEG, help="how the sensor is mounted")
    return parser.parse_args()


def main() -> None:
    """Do what is asked for, or say in one sentence why not."""
    asked = parse_arguments()
    try:
        if asked.verb == "mesh":
            said = f"{write_mesh(asked.scene, asked.out, parse_settings(asked.set)):,} triangles"
        elif asked.verb == "path":
            write_path(asked.scene, asked.out, asked.trajectory, parse_settings(asked.set))
            said = "poses"
        else:
            said = run_helios(asked)
    except HedgerowError as error:
        raise SystemExit(f"error: {error}") from None
    print(f"wrote {asked.out}: {said}")


if __name__ == "__main__":
    main()
