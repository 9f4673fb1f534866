# SPDX-License-Identifier: Apache-2.0
"""Organised clouds of a lidar that is in no catalogue, as rows and as PCD files, byte by byte."""

import numpy as np
from bag_maker import OUSTER, START_NS, rows_of

import hedgerow as hr

N_LASERS, N_COLUMNS = 16, 200


def lidar(seed=1):
    """Directions (lasers, columns, 3), times and ranges of a lidar that is in no catalogue."""
    rng = np.random.default_rng(seed)
    elevation = np.deg2rad(np.linspace(15, -15, N_LASERS))[:, None]
    azimuth = -np.linspace(0, 2 * np.pi, N_COLUMNS, endpoint=False) + np.deg2rad(rng.uniform(-3, 3, (N_LASERS, 1)))
    flat = np.cos(elevation)
    up = np.broadcast_to(np.sin(elevation), azimuth.shape)
    unit = np.stack([flat * np.cos(azimuth), flat * np.sin(azimuth), up], axis=-1)
    time_ns = np.arange(N_COLUMNS) * 500_000 + np.arange(N_LASERS)[:, None] * 2_000
    range_m = rng.uniform(2, 50, azimuth.shape)
    range_m[rng.random(azimuth.shape) < 0.4] = np.nan
    range_m[:, 60:75] = np.nan  # nothing at all, as towards the sky
    range_m[:, :3] = range_m[:, -4:] = np.nan
    return unit, time_ns, range_m


def organised(blank=np.nan, fields=OUSTER):
    unit, time_ns, range_m = lidar()
    rows = rows_of(fields, unit.shape[:2])
    for k, axis in enumerate("xyz"):
        rows[axis] = np.where(np.isnan(range_m), blank, unit[..., k] * range_m)
    rows["ring"] = np.arange(N_LASERS)[:, None]
    if fields is OUSTER:
        rows["t"] = time_ns
    else:
        rows["time"] = time_ns * 1e-9
    return rows


def write_pcd(path, rows):
    """Write (lasers, columns) rows as an organised binary PCD file, byte by byte."""
    height, width = rows.shape
    packed = np.zeros(rows.shape, [(name, rows.dtype[name]) for name in rows.dtype.names])
    for name in rows.dtype.names:
        packed[name] = rows[name]
    assert packed.dtype.names is not None
    kinds = [packed.dtype[name] for name in packed.dtype.names]
    head = [
        "VERSION .7",
        "FIELDS " + " ".join(packed.dtype.names),
        "SIZE " + " ".join(str(kind.itemsize) for kind in kinds),
        "TYPE " + " ".join(kind.kind.upper() for kind in kinds),
        "COUNT" + " 1" * len(kinds),
        f"WIDTH {width}",
        f"HEIGHT {height}",
        "VIEWPOINT 0 0 0 1 0 0 0",
        f"POINTS {rows.size}",
        "DATA binary",
    ]
    path.write_bytes(("\n".join(head) + "\n").encode() + packed.tobytes())


def pcd_folder(tmp_path, rows, n=2):
    folder = tmp_path / "clouds"
    folder.mkdir()
    stamps = [START_NS + k * 100_000_000 for k in range(n)]
    for stamp in stamps:
        write_pcd(folder / f"{stamp / 1e9:.6f}.pcd", rows)
    poses = [hr.Pose.from_xyz_rpy((k, 0, 2)) for k in range(n + 3)]
    drive = hr.Trajectory.from_poses([START_NS + k * 100_000_000 for k in range(-1, n + 2)], poses)
    return folder, drive


def organised_folder(tmp_path):
    """Two organised files with their poses beside them; return the folder."""
    folder, drive = pcd_folder(tmp_path, organised())
    hr.write_trajectory(drive, folder / "poses.tum")
    return folder
