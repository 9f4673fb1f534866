# SPDX-License-Identifier: Apache-2.0
"""Velodyne's packets: closed forms, velodyne-decoder as another opinion, missing and double returns, cuts, clocks."""

from pathlib import Path

import numpy as np
import pytest
from packet_maker import (
    DUAL,
    HDL_32E,
    HDL_64E,
    START_NS,
    STRONGEST,
    VLP_16,
    VLP_32C,
    VLS_128,
    ethernet,
    hdl_64e_calibration,
    hdl_64e_status,
    ip,
    pcap,
    udp,
    velodyne_drive,
    velodyne_payload,
    velodyne_pcap,
)

import hedgerow as hr
from hedgerow.errors import FileError, InputError
from hedgerow.io.describe import describe
from hedgerow.io.pcap.hdl_64e import Calibration

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "pcap" / "velodyne"
WIDE = {"static": True, "min_range_m": 0.0, "max_range_m": 400.0}
MODELS = {"vlp-16": VLP_16, "hdl-32e": HDL_32E, "vlp-32c": VLP_32C, "vls-128": VLS_128}


def one_packet(tmp_path, distance, azimuth=(0,) * 12, **options):
    frame = ethernet(ip(udp(velodyne_payload(azimuth, distance, **options))))
    (tmp_path / "x.pcap").write_bytes(pcap([(START_NS, frame)]))
    return hr.read_log(tmp_path / "x.pcap", **WIDE)


def test_one_return_lies_where_the_manual_says(tmp_path):
    distance = np.zeros((12, 32), int)
    distance[3, 1] = 5000  # 10 m; second laser, one degree up, 0.7 mm below the centre
    log = one_packet(tmp_path, distance, azimuth=np.arange(12) * 40 + 8880)
    assert log.sensor == "vlp-16"
    assert len(log) == 384  # a pulse for every firing
    assert np.flatnonzero(log.returns.hit).tolist() == [3 * 32 + 1]
    # 89.2 + 0.8 degrees clockwise, and 2.304 of 110.592 us of the 0.4 degrees to the next block
    azimuth = np.deg2rad(-(8880 + 3 * 40 + 40 * 2.304 / 110.592) / 100)
    up = np.deg2rad(1.0)
    expected = 10 * np.array([np.cos(up) * np.cos(azimuth), np.cos(up) * np.sin(azimuth), np.sin(up)]) - [0, 0, 0.0007]
    np.testing.assert_allclose(log.points()[0], expected, atol=2e-6)  # float32 directions at 10 m
    assert log.beams.ring[3 * 32 + 1] == 8
    since_ns = log.beams.time_ns[3 * 32 + 1] - log.beams.time_ns[0]
    assert since_ns == (3 * 110_592 + 2_304)


def decoded_by_another(path, **options):
    """Points of velodyne-decoder, the returns of a pulse nearest first, as the readers give them; and their xyz."""
    decoder = pytest.importorskip("velodyne_decoder")
    config = decoder.Config(min_range=0.001, max_range=400, **options)
    theirs = np.concatenate([cloud for _, cloud in decoder.read_pcap(path, config, as_pcl_structs=True)])
    xyz = np.stack([theirs[axis] for axis in "xyz"], axis=1).astype(np.float64)
    return theirs, xyz


def by_pulse(theirs, xyz):
    """The returns of a pulse follow each other, the strongest first: sort them by range."""
    pulse = np.cumsum(
        (np.diff(theirs["ring"].astype(int), prepend=-1) != 0) | (np.diff(theirs["column"], prepend=0) != 0)
    )
    return np.lexsort([np.linalg.norm(xyz, axis=1), pulse])


def compare_with_decoder(path):
    """Compare point by point with velodyne-decoder; return the number of points."""
    theirs, xyz = decoded_by_another(path)
    log = hr.read_log(path, **WIDE)
    order = by_pulse(theirs, xyz)
    theirs, xyz = theirs[order], xyz[order]
    hit = log.returns.hit
    ours, mine = log.points(), np.nonzero(hit)[0]
    assert len(xyz) == len(ours)
    assert np.array_equal(log.beams.ring[mine], theirs["ring"])
    assert log.returns.intensity is not None
    assert np.array_equal(log.returns.intensity[hit], theirs["intensity"])
    off = ours - xyz
    # Both place a laser between the azimuths of two blocks, they to 0.01 degrees and with the speed of another block.
    across = np.hypot(off[:, 0], off[:, 1]) / np.hypot(xyz[:, 0], xyz[:, 1])
    timed = (mine >= 384) | (log.sensor != "vls-128")  # of that they take the speed from the packet before
    assert np.rad2deg(across[timed].max()) < 0.03
    # Heights of the lasers are rounded to 0.1 mm in the catalogue, elevations to 0.01 or 0.001 degrees.
    step = {"hdl-32e": 0.01}.get(log.sensor, 0.001)
    assert np.all(np.abs(off[:, 2]) < 2e-4 + np.deg2rad(step / 2) * np.linalg.norm(xyz, axis=1))
    return len(xyz)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", [STRONGEST, DUAL])
def test_agrees_with_velodyne_decoder_on_random_packets(tmp_path, name, mode):
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=30, model=MODELS[name], mode=mode, seed=3)
    n_points = compare_with_decoder(path)
    empty = 128 if (name, mode) == ("vls-128", DUAL) else 0  # four blocks of each packet
    assert n_points == pytest.approx(0.7 * 30 * (384 - empty), rel=0.05)


@pytest.mark.parametrize("series", [2, 3])
@pytest.mark.parametrize("mode", [STRONGEST, DUAL])
def test_an_hdl_64e_tells_its_calibration_and_agrees_with_velodyne_decoder(tmp_path, series, mode):
    status, _ = hdl_64e_status(series=series)
    status = status[500:] + status[:500]  # the text need not begin with the capture
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=4200, model=HDL_64E, mode=mode, status=status)
    log = hr.open_log(path, **WIDE).read(0)
    assert log.sensor == "hdl-64e-s2"
    hit = log.returns.hit
    ours, mine = log.points(), np.nonzero(hit)[0]
    decoder = pytest.importorskip("velodyne_decoder")
    model, calibration = decoder.hdl64e.read_calibration_from_pcap(str(path))
    theirs, xyz = decoded_by_another(path, model=model, calibration=calibration)
    n = len(ours)
    order = by_pulse(theirs[:n], xyz[:n]) if mode == DUAL else np.arange(n)
    theirs, xyz = theirs[order], xyz[order]
    same = log.beams.ring[mine] == theirs["ring"]
    assert same.mean() > 0.999
    direction = log.beams.direction[mine].astype(np.float64)
    off = ours - xyz
    along = np.einsum("ij,ij->i", off, direction)
    assert np.abs(along[same]).max() < 1e-4  # of 1 to 41 m
    # Across the beam: azimuths as above, and the coordinates that they correct one by one, by up to 60 mm here.
    across = np.linalg.norm(off - along[:, None] * direction, axis=1)
    assert np.all(across[same] < 0.04 + np.deg2rad(0.03) * np.linalg.norm(xyz[same], axis=1))


def same_beams(one, other):
    """Compare logs up to the rounding of degrees to radians."""
    np.testing.assert_allclose(one.beams.origin_m, other.beams.origin_m, atol=1e-12)
    np.testing.assert_allclose(one.beams.direction, other.beams.direction, atol=2e-7)
    np.testing.assert_allclose(one.returns.range_m, other.returns.range_m, rtol=2e-7)
    np.testing.assert_array_equal(one.beams.ring, other.beams.ring)
    np.testing.assert_array_equal(one.beams.time_ns, other.beams.time_ns)


def test_an_hdl_64e_takes_its_calibration_from_a_file(tmp_path):
    import yaml

    status, _ = hdl_64e_status()
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=4200, model=HDL_64E, status=status)
    rows = hdl_64e_calibration(tmp_path / "unit.yaml")
    told, given = (hr.open_log(path, **WIDE, **more).read(0) for more in ({}, {"metadata": tmp_path / "unit.yaml"}))
    same_beams(told, given)
    short = velodyne_pcap(tmp_path / "short.pcap", n_packets=100, model=HDL_64E, status=status)
    with pytest.raises(FileError, match=r"HDL-64E and mean nothing without the calibration.*4,160 packets.*metadata="):
        hr.open_log(short, **WIDE)
    alone = hr.open_log(short, **WIDE, metadata=tmp_path / "unit.yaml").read(0)
    same_beams(alone[: 99 * 384], given[: 99 * 384])  # the last one shows no speed of its own
    for text, said in (
        (yaml.safe_dump({"lasers": rows[:32]}), "is no calibration of an HDL-64E; lasers"),
        (yaml.safe_dump({"lasers": [*rows[:63], rows[0]]}), "laser_id must be 0 to 63, each once"),
        (yaml.safe_dump({"lasers": [{**rows[0], "vert_correction": 7}, *rows[1:]]}), r"lasers\[0\].vert_correction"),
        ("{", "cannot be read as YAML"),
    ):
        (tmp_path / "bad.yaml").write_text(text)
        with pytest.raises(FileError, match=rf"bad.yaml: .*{said}"):
            hr.open_log(short, **WIDE, metadata=tmp_path / "bad.yaml")


def test_a_lost_packet_does_not_shift_the_calibration():
    status, lasers = hdl_64e_status(series=3)
    payloads = [bytes(1204) + bytes(told) for told in status * 2]
    del payloads[700]  # tells a byte of one of the first lasers; the text is whole only when it comes again
    found = Calibration.told(payloads)
    assert found is not None
    assert [round(np.rad2deg(laser.vert_correction) * 100) for laser in found.lasers] == lasers[:, 0].tolist()
    assert Calibration.told(payloads[: len(status)]) is None
    changed = bytearray(b"".join(payloads[len(status) :]))
    changed[1206 * 890 + 1205] ^= 1  # a laser with another value does not go with the checksum
    assert Calibration.told([bytes(changed[k : k + 1206]) for k in range(0, len(changed), 1206)]) is None


@pytest.mark.parametrize("name, file", [("hdl-32e", "sample_velodyne_hdl32"), ("vlp-16", "sample_velodyne_vlp16_gps")])
def test_agrees_with_velodyne_decoder_on_real_captures(name, file):
    path = DATA / f"{file}.pcap"
    if not path.exists():
        pytest.skip("needs the captures in ../shared/data/pcap")
    assert compare_with_decoder(path) > 70_000
    source = hr.open_log(path, **WIDE)
    whole = [log for _, log in source.iter_sweeps()][1:-1]
    for log in whole:
        n_rings = 16 if name == "vlp-16" else 32
        assert len(log) % n_rings == 0  # every laser at every firing
        assert 0.6 < np.mean(log.returns.hit) < 0.8
        assert np.all(np.diff(log.beams.time_ns.reshape(-1, n_rings)[:, 0]) > 0)


def test_distance_zero_is_a_beam_without_a_return(tmp_path):
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=5, miss=0.4)
    log = hr.read_log(path, **WIDE)
    assert len(log) == 5 * 384
    raw = np.frombuffer(b"".join(payload for _, payload in velodyne_drive(5, miss=0.4)), np.uint8).reshape(5, 1206)
    steps = raw[:, :1200].reshape(-1, 100)[:, 4:].reshape(-1, 3)[:, :2].copy().view("<u2")[:, 0]
    np.testing.assert_array_equal(log.returns.range_m, np.where(steps > 0, steps * 0.002, np.inf).astype(np.float32))
    assert log.returns.intensity is not None
    assert np.isnan(log.returns.intensity[steps == 0]).all()


def test_two_returns_come_nearest_first_and_one_told_twice_is_one(tmp_path):
    distance = np.zeros((12, 32), int)
    distance[0, 0], distance[1, 0] = 6000, 2000  # last, strongest
    distance[0, 2], distance[1, 2] = 3000, 3000
    log = one_packet(tmp_path, distance, mode=DUAL)
    assert log.returns.range_m.shape == (192, 2)
    np.testing.assert_allclose(log.returns.range_m[0], [4, 12])
    np.testing.assert_allclose(log.returns.range_m[2], [6, np.inf])
    assert np.isinf(log.returns.range_m[[1, 3]]).all()


def test_sweeps_are_cut_straight_ahead_and_hold_every_firing_once(tmp_path):
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=200, start_azimuth=30_000)
    source = hr.open_log(path, **WIDE)
    logs = dict(source.iter_sweeps())
    assert list(logs) == [0, 1, 2, 3]
    assert sum(map(len, logs.values())) == 200 * 384
    times = np.concatenate([log.beams.time_ns for log in logs.values()])
    assert len(np.unique(times)) == 200 * 384  # no two lasers of a VLP-16 fire at once
    for number, log in logs.items():
        turned = -np.unwrap(np.arctan2(log.beams.direction[::16, 1], log.beams.direction[::16, 0]))
        assert np.ptp(turned) < 2 * np.pi + np.deg2rad(0.5)
        if number:
            assert abs((turned[0] + np.pi) % (2 * np.pi) - np.pi) < np.deg2rad(0.5)
        assert source.read(number).equal(log)  # alone, and out of order


def test_the_sensors_clock_runs_on_over_the_hour(tmp_path):
    # START_NS is 800 s past the hour; begin 3 ms before the full hour instead, ten seconds apart from the computer.
    shift = 3_600 * 10**9 - (START_NS % (3_600 * 10**9)) - 3_000_000
    frames = []
    for host_ns, payload in velodyne_drive(10):
        time_us = (host_ns + shift) // 1000 % 3_600_000_000
        changed = payload[:1200] + int(time_us).to_bytes(4, "little") + payload[1204:]
        frames.append((host_ns + shift + 10 * 10**9, ethernet(ip(udp(changed)))))
    (tmp_path / "x.pcap").write_bytes(pcap(frames, nanoseconds=True))
    source = hr.open_log(tmp_path / "x.pcap", **WIDE)
    log = source.read()
    assert source.metadata["clock"] == "sensor, shifted by 10.000000 s"
    firing = log.beams.time_ns.reshape(-1, 16)[:, 0]
    np.testing.assert_allclose(np.diff(firing), 55_296, atol=1_000)  # packets tell microseconds
    assert abs(firing[0] - (START_NS + shift + 10 * 10**9)) < 1_000


def test_every_pulse_has_the_pose_of_its_instant(tmp_path):
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=40)
    start_s, end_s = START_NS / 1e9 - 1, START_NS / 1e9 + 1
    drive = hr.Trajectory.from_poses(
        [START_NS - 10**9, START_NS + 10**9],
        [hr.Pose.from_xyz_rpy([0, 0, 2]), hr.Pose.from_xyz_rpy([20, 0, 2], [0, 0, 0.5])],
    )
    log, still = hr.read_log(path, trajectory=drive, max_range_m=400), hr.read_log(path, static=True, max_range_m=400)
    assert end_s - start_s == 2
    position, turn = drive.at(log.beams.time_ns)
    from hedgerow.base import rotation

    expected = position + rotation.rotate(turn, still.beams.origin_m)
    np.testing.assert_allclose(log.beams.origin_m, expected, atol=1e-9)
    expected = rotation.rotate(turn, still.beams.direction.astype(np.float64))
    np.testing.assert_allclose(log.beams.direction, expected, atol=2e-7)  # float32


def test_no_poses_and_both_kinds_of_poses_are_refused(tmp_path):
    path = velodyne_pcap(tmp_path / "x.pcap", n_packets=2)
    with pytest.raises(FileError, match="holds no poses; give a trajectory, or static=true"):
        hr.open_log(path)
    with pytest.raises(InputError, match="static: a trajectory is given as well"):
        hr.open_log(path, static=True, trajectory=hr.Trajectory.standing(hr.Pose(), 1.0))
    with pytest.raises(FileError, match=r"sweep 0: the poses end .* s before this sweep does"):
        hr.read_log(path, trajectory=hr.Trajectory.standing(hr.Pose(), 1.0))


def test_packets_of_other_lidars_are_refused_by_name(tmp_path):
    distance = np.zeros((12, 32), int)
    for options, text in (
        ({"flag": [0xEEFF, 0xDDFF, 0xEEFF, 0xEEFF] * 3, "model": 1}, "an HDL-64E of the first series"),
        ({"model": 0x24}, "a Puck Hi-Res"),
        ({"model": 0xA1}, "a packet is damaged or of another lidar; its blocks are not those of vls-128"),
        ({"model": 3}, "code 0x03"),
    ):
        with pytest.raises(FileError, match=text):
            one_packet(tmp_path, distance, **options)
    frame = ethernet(ip(udp(bytes(900))))
    (tmp_path / "x.pcap").write_bytes(pcap([(START_NS, frame)]))
    with pytest.raises(FileError, match=r"packets of 900 bytes are of an unknown lidar.*x\.json of an Ouster"):
        hr.open_log(tmp_path / "x.pcap", static=True)
    (tmp_path / "x.pcap").write_bytes(pcap([]))
    with pytest.raises(FileError, match="holds no UDP packets"):
        hr.open_log(tmp_path / "x.pcap", static=True)


def test_a_rotor_that_stands_still_does_not_make_one_endless_sweep(tmp_path):
    distance = np.full((12, 32), 1000)
    frames = [
        (START_NS + k * 10**7, ethernet(ip(udp(velodyne_payload([100] * 12, distance, time_us=k * 10_000)))))
        for k in range(120)
    ]
    (tmp_path / "x.pcap").write_bytes(pcap(frames))
    assert len(hr.open_log(tmp_path / "x.pcap", **WIDE).sweeps) == 3  # 1.2 s, cut every 0.5 s


def test_info_looks_at_packets_without_poses(tmp_path):
    lines = describe(velodyne_pcap(tmp_path / "x.pcap", n_packets=200))
    assert lines["Sensor"] == "vlp-16"
    assert lines["Missing returns"] == "known; the packets tell every firing"
