# SPDX-License-Identifier: Apache-2.0
"""Every reader against damage: a good file cut off, with bytes changed, or nothing but random bytes.

Only HedgerowError may come out, in one line, and what is converted is written whole or not at all. Seeded, so that a
failure comes again.
"""

import shutil
import time

import numpy as np
import pytest
from bag_maker import Maker, drive
from kitti_maker import make_raw, make_sequence
from packet_maker import (
    HDL_64E,
    VLS_128,
    hdl_64e_calibration,
    hdl_64e_status,
    ouster_metadata,
    ouster_pcap,
    velodyne_drive,
    velodyne_pcap,
)
from pcd_maker import organised_folder

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.io import open_log, write_log
from hedgerow.io.convert import convert
from hedgerow.io.formats import FORMATS, format_of

N_TRIES = 25
MOST_S = 20  # no reader may hang; a good one needs a tenth of a second
SCANNER = {"scanner_m": [0, 0, 0]}


def small_log(log_maker):
    log = log_maker(n_sweeps=2, per_sweep=20, n_returns=2, arrays=("intensity", "label"))
    beams = hr.Beams(**log.beams.columns() | {"origin_m": log.beams.origin_m * 1e-5})  # near each other
    return hr.Log(beams, log.returns, "vlp-16", 0.5, 60.0)


def make(kind, folder, log_maker):
    """Make a good log; return its path and the files that can be damaged."""
    if kind == "kitti-raw":
        path = make_raw(folder)
    elif kind == "kitti":
        path = make_sequence(folder, labels=True)
    elif kind in ("kitti-own", "pcd-folder"):
        path = folder / "seq"
        write_log(small_log(log_maker), path, format=kind.removesuffix("-own"))
    elif kind == "velodyne.pcap":
        path = velodyne_pcap(folder / "x.pcap", n_packets=60, start_azimuth=33_000)
    elif kind == "vls-128.pcap":
        path = velodyne_pcap(folder / "x.pcap", n_packets=60, start_azimuth=33_000, model=VLS_128)
    elif kind == "hdl-64e.pcap":
        path = velodyne_pcap(folder / "x.pcap", n_packets=60, model=HDL_64E, status=hdl_64e_status()[0])
        hdl_64e_calibration(folder / "unit.yaml")
    elif kind == "pcd-organised":
        path = organised_folder(folder)
    elif kind == "packets.mcap":
        maker = Maker("mcap")
        maker.scan(velodyne_drive(60))
        path = maker.write(folder)
    elif kind == "ouster.pcap":
        turns = [np.full((4, 64), 5_000 + k) for k in range(2)]
        path = ouster_pcap(folder / "x.pcap", ouster_metadata(), turns)
    elif kind in ("ros1", "mcap", "ros2"):
        path = drive({"ros1": "bag", "ros2": "db3"}.get(kind, kind)).write(folder)
    elif kind in ("mcap-own", "bag-own"):
        path = folder / f"x.{kind.removesuffix('-own')}"
        write_log(small_log(log_maker), path)
    elif kind == "log":
        path = folder / "x.log"
        write_log(small_log(log_maker), path)
    else:
        path = folder / f"x.{kind}"
        write_log(small_log(log_maker), path)
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    return path, files


def options_for(kind, path):
    """What a reader has to be told."""
    if kind in ("ply", "pcd", "las", "laz"):
        return SCANNER
    if kind == "hdl-64e.pcap":
        return {"static": True, "metadata": path.with_name("unit.yaml")}
    return {"static": True} if kind.endswith(".pcap") or kind == "packets.mcap" else {}


def damaged(data: bytes, rng: np.random.Generator, how: str) -> bytes:
    if how == "cut":
        return data[: int(rng.integers(0, len(data)))]
    if how == "random":
        return rng.bytes(int(rng.integers(0, 400)))
    changed = bytearray(data)
    # Mostly near the start, where headers are.
    for at in (rng.random(int(rng.integers(1, 6))) ** 3 * len(data)).astype(int):
        changed[at] = int(rng.integers(0, 256))
    return bytes(changed)


def try_to_convert(path, target, options) -> bool:
    """Tell whether it could be converted; anything but one clear sentence fails the test."""
    try:
        convert(open_log(path, **options), target)
    except HedgerowError as error:
        assert 10 < len(str(error)) < 700
        assert "\n" not in str(error)
        assert not target.exists()
        return False
    log = hr.read_log(target)
    assert np.isfinite(log.points()).all()
    return True


KINDS = [
    *["kitti-raw", "kitti", "kitti-own", "pcd-folder", "parquet", "log", "ply", "pcd", "las", "laz"],
    *["velodyne.pcap", "ouster.pcap", "ros1", "mcap", "ros2", "mcap-own", "bag-own"],
    *["vls-128.pcap", "hdl-64e.pcap", "pcd-organised", "packets.mcap"],
]


def test_every_format_that_is_read_is_tried(tmp_path, log_maker):
    found = set()
    for kind in KINDS:
        (tmp_path / kind).mkdir()
        found.add(format_of(make(kind, tmp_path / kind, log_maker)[0], reading=True).name)
    assert found == {each.name for each in FORMATS if each.reads}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["cut", "random", "changed"])
def test_damage_is_refused_or_harmless(tmp_path, log_maker, kind, how):
    rng = np.random.default_rng([ord(letter) for letter in kind + how])
    good = tmp_path / "good"
    good.mkdir()
    path, files = make(kind, good, log_maker)
    out = tmp_path / "out"
    out.mkdir()
    assert try_to_convert(path, out / "good.parquet", options_for(kind, path))
    n_refused = 0
    for attempt in range(N_TRIES):
        shutil.copytree(good, tmp_path / "bad")
        file = files[int(rng.integers(0, len(files)))].relative_to(good)
        (tmp_path / "bad" / file).write_bytes(damaged((good / file).read_bytes(), rng, how))
        bad, target = tmp_path / "bad" / path.relative_to(good), out / f"{attempt}.parquet"
        begin_s = time.monotonic()
        n_refused += not try_to_convert(bad, target, options_for(kind, bad))
        assert time.monotonic() - begin_s < MOST_S
        shutil.rmtree(tmp_path / "bad")
    assert not [each.name for each in out.iterdir() if each.name.startswith(".")]  # no temporaries
    # A single changed byte in a number is often another good number; bytes at random never make a log.
    assert n_refused >= (N_TRIES // 2 if how != "changed" else 1)
