# SPDX-License-Identifier: Apache-2.0
"""Ouster's packets: made by hand in four profiles, and real ones against arrays made with Ouster's own library."""

import json
from pathlib import Path

import numpy as np
import pytest
from packet_maker import ethernet, ip, ouster_metadata, ouster_payloads, ouster_pcap, pcap, udp

import hedgerow as hr
from hedgerow.errors import FileError
from hedgerow.io.pcap.ouster import OusterMetadata, crc64

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
OUSTER = DATA / "pcap" / "ouster"
needs_data = pytest.mark.skipif(not OUSTER.exists(), reason="needs the captures in ../shared/data/pcap")
WIDE = {"static": True, "min_range_m": 0.0, "max_range_m": 600.0}
PROFILES = ["LEGACY", "RNG19_RFL8_SIG16_NIR16", "RNG19_RFL8_SIG16_NIR16_DUAL", "RNG15_RFL8_NIR8"]


def ranges(seed=1, n_pixels=4, n_columns=64):
    rng = np.random.default_rng(seed)
    return rng.integers(1, 30_000, (n_pixels, n_columns)) * 8 * (rng.random((n_pixels, n_columns)) < 0.7)


def grid(values, shape):
    """Pulses of a sweep back as (pixels, columns)."""
    return values.reshape(shape[1], shape[0], *values.shape[1:]).swapaxes(0, 1)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("sections", [False, True])
def test_every_profile_gives_back_what_was_packed(tmp_path, profile, sections):
    metadata = ouster_metadata(profile, sections=sections)
    turns = [ranges(1), ranges(2)]
    source = hr.open_log(ouster_pcap(tmp_path / "x.pcap", metadata, turns), **WIDE)
    assert source.sensor == "os1-4"
    assert source.sweeps.tolist() == [0, 1]
    for number, log in source.iter_sweeps():
        found = grid(log.returns.first_m, (4, 64))
        expected = np.where(turns[number] > 0, turns[number] * 1e-3, np.inf)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert log.returns.intensity is not None
        intensity = log.returns.intensity if log.returns.n_per_pulse == 1 else log.returns.intensity[:, 0]
        column = np.tile(np.arange(64), (4, 1))
        np.testing.assert_array_equal(grid(intensity, (4, 64))[turns[number] > 0], column[turns[number] > 0])
        np.testing.assert_array_equal(log.beams.ring, np.tile(np.arange(4), 64))
        np.testing.assert_array_equal(np.diff(log.beams.time_ns[::4]), 100_000)


def test_the_second_return_comes_behind_the_first(tmp_path):
    metadata = ouster_metadata("RNG19_RFL8_SIG16_NIR16_DUAL")
    first, second = np.full((4, 64), 5_000), np.zeros((4, 64), int)
    second[1], second[2], second[3] = 9_000, 3_000, 5_000
    log = hr.read_log(ouster_pcap(tmp_path / "x.pcap", metadata, [first], range2_mm=second), **WIDE)
    expected = np.array([[5, np.inf], [5, 9], [3, 5], [5, np.inf]], np.float32)
    np.testing.assert_allclose(log.returns.range_m.reshape(64, 4, 2), np.tile(expected, (64, 1, 1)))


def test_beams_bend_where_the_manual_says(tmp_path):
    # Column 16 of 64, a quarter turn: the rotor looks along -y of the lidar, which is +y of the sensor.
    (tmp_path / "x.json").write_text(json.dumps(ouster_metadata()))
    metadata = OusterMetadata.read(tmp_path / "x.json")
    origin, direction = metadata.beams(np.array([16]))
    altitude, azimuth = np.deg2rad(15.0), np.deg2rad(90 - 3.0)
    unit = np.array([np.cos(altitude) * np.cos(azimuth), np.cos(altitude) * np.sin(azimuth), np.sin(altitude)])
    np.testing.assert_allclose(direction[0, 0], unit, atol=1e-12)
    emission = np.array([0, 0.015806, 0.03618])
    np.testing.assert_allclose(origin[0, 0] + 0.015806 * unit, emission, atol=1e-12)


def test_columns_not_marked_valid_say_nothing(tmp_path):
    path = ouster_pcap(tmp_path / "x.pcap", ouster_metadata(), [ranges()], invalid=range(10, 20))
    log = hr.read_log(path, **WIDE)
    assert len(log) == 54 * 4


def test_packets_that_come_late_twice_or_never_do_no_harm(tmp_path):
    metadata = ouster_metadata()
    first = ouster_payloads(metadata, ranges(1), frame=65_535)
    second = ouster_payloads(metadata, ranges(2), frame=0, start_ns=5_100_000_000)
    payloads = [first[0], first[1], first[1], first[3], second[0], first[2], second[1], second[3]]
    frames = [(k * 10**6, ethernet(ip(udp(each, 7502)))) for k, each in enumerate(payloads)]
    (tmp_path / "x.pcap").write_bytes(pcap(frames))
    (tmp_path / "x.json").write_text(json.dumps(metadata))
    logs = dict(hr.open_log(tmp_path / "x.pcap", **WIDE).iter_sweeps())
    assert {number: len(log) for number, log in logs.items()} == {0: 64 * 4, 1: 48 * 4}
    found = grid(logs[0].returns.range_m, (4, 64))
    np.testing.assert_allclose(found, np.where(ranges(1) > 0, ranges(1) * 1e-3, np.inf), rtol=1e-6)


def test_crc64_of_the_check_string_and_of_any_length():
    # The check value of CRC-64/XZ in the catalogue of parametrised CRC algorithms.
    assert crc64(np.frombuffer(b"123456789", np.uint8)[None])[0] == 0x995DC9BBDF1939FA
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (3, 100), np.uint8)
    for length in (0, 1, 7, 8, 9, 100):
        slow = [_slow_crc(bytes(row[:length])) for row in rows]
        assert crc64(rows[:, :length]).tolist() == slow


def _slow_crc(data):
    value = 2**64 - 1
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0xC96C5795D7870F42 if value & 1 else 0)
    return value ^ (2**64 - 1)


@needs_data
@pytest.mark.parametrize(
    "file, arrays",
    [("OS-0-128-U1_v2.3.0_1024x10", "OS0-128_1024_street"), ("OS-0-32-U1_v2.2.0_1024x10", "dual_OS0-32_1024_indoor")],
)
def test_real_captures_equal_what_ousters_library_made_of_them(file, arrays):
    expected = np.load(DATA / "ouster_bsd" / f"{arrays}.npz")
    log = hr.read_log(OUSTER / f"{file}.pcap", **WIDE)
    shape = expected["range_mm"].shape[1:]
    told = [expected["range_mm"][0]] + ([expected["range2_mm"][0]] if "range2_mm" in expected.files else [])
    metres = np.sort(np.where(np.stack(told) > 0, np.stack(told) * 1e-3, np.inf), axis=0)
    found = grid(log.returns.range_m.reshape(len(log), -1), shape)
    for k in range(len(told)):
        np.testing.assert_allclose(found[..., k], metres[k], rtol=1e-6)  # float32
    np.testing.assert_allclose(grid(log.beams.direction, shape), expected["dir"].reshape(*shape, 3), atol=1e-7)
    np.testing.assert_allclose(grid(log.beams.origin_m, shape), expected["org"].reshape(*shape, 3), atol=1e-8)
    assert log.returns.intensity is not None
    one = log.returns.intensity if log.returns.n_per_pulse == 1 else log.returns.intensity[:, 0]
    first = (told[0] > 0) & (metres[0] == told[0] * 1e-3)
    np.testing.assert_array_equal(grid(one, shape)[first], expected["refl"][0][first])


@needs_data
def test_a_low_bandwidth_capture_without_metadata_equals_too():
    expected = np.load(DATA / "ouster_bsd" / "OS1-128_1024_street_3sweeps.npz")
    # Another OS1-128 with the same profile: the ranges do not depend on its angles.
    metadata = OUSTER / "malformed_metadata" / "legacy_with_calibration_status.json"
    source = hr.open_log(OUSTER / "OS-1-128_v2.3.0_1024x10_lb_n3.pcap", metadata=metadata, **WIDE)
    assert source.sweeps.tolist() == [0, 1, 2]
    for number, log in source.iter_sweeps():
        metres = np.where(expected["range_mm"][number] > 0, expected["range_mm"][number] * 1e-3, np.inf)
        np.testing.assert_allclose(grid(log.returns.range_m, (128, 1024)), metres, rtol=1e-6)


@needs_data
def test_a_damaged_packet_is_found_by_its_checksum(tmp_path):
    data = bytearray((OUSTER / "crc_test.pcap").read_bytes())
    (tmp_path / "x.json").write_bytes((OUSTER / "crc_test.json").read_bytes())
    (tmp_path / "x.pcap").write_bytes(data)
    source = hr.open_log(tmp_path / "x.pcap", **WIDE)
    assert [len(log) for _, log in source.iter_sweeps()] == [512 * 128, 32 * 128]
    data[150_000] ^= 4
    (tmp_path / "x.pcap").write_bytes(data)
    with pytest.raises(FileError, match="sweep 0: 1 of 32 packets are damaged, their checksums do not match"):
        hr.read_log(tmp_path / "x.pcap", **WIDE)


@needs_data
@pytest.mark.parametrize(
    "file, text",
    [
        ("complete_but_all_zeros_legacy", "beam_altitude_angles: are all the same"),
        ("garbled_legacy_and_nonlegacy", "holds no lidar packets of 12608 bytes"),
        ("incomplete_data_format_legacy", "data_format.columns_per_frame: missing; expected: columns of one turn"),
        ("incomplete_data_format_nonlegacy", "data_format.pixels_per_column: missing; expected: beams of the lidar"),
        ("incomplete_no_sensor_info_nonlegacy", "prod_line: missing; expected: name of the product"),
        ("incorrect_nbeam_angles_legacy_113", "beam_altitude_angles: has 63 numbers, expected 64"),
    ],
)
def test_malformed_metadata_are_refused_by_field(file, text):
    with pytest.raises(FileError, match=text):
        hr.open_log(
            OUSTER / "OS-1-128_v2.3.0_1024x10_lb_n3.pcap",
            metadata=OUSTER / "malformed_metadata" / f"{file}.json",
            static=True,
        )


@needs_data
def test_an_empty_capture_is_refused():
    with pytest.raises(FileError, match=r"empty_pcap\.pcap: holds no lidar packets of 33024 bytes.*os2-128"):
        hr.open_log(OUSTER / "empty_pcap.pcap", static=True)


def test_metadata_that_are_none_and_unknown_profiles_are_refused(tmp_path):
    path = ouster_pcap(tmp_path / "x.pcap", ouster_metadata(), [ranges()])
    for text, match in (("{", "is no JSON"), ("[1]", "holds no table"), ("{}", "data_format: missing")):
        path.with_suffix(".json").write_text(text)
        with pytest.raises(FileError, match=match):
            hr.open_log(path, static=True)
    metadata = ouster_metadata()
    metadata["data_format"]["udp_profile_lidar"] = "FIVE_WORD_PIXEL"
    path.with_suffix(".json").write_text(json.dumps(metadata))
    with pytest.raises(FileError, match="udp_profile_lidar: FIVE_WORD_PIXEL is not one that Hedgerow reads"):
        hr.open_log(path, static=True)


@pytest.mark.parametrize(
    "text",
    [
        *["[" * 100_000, '{"a":' * 100_000, "9" * 5_000, '{"prod_line": ' + "9" * 5_000 + "}", "[]", "null"],
        json.dumps(ouster_metadata() | {"prod_line": "x" * 400_000}),
        json.dumps(ouster_metadata() | {"beam_altitude_angles": [10**400] * 4}),
        json.dumps(ouster_metadata() | {"beam_altitude_angles": "up"}),
        json.dumps(ouster_metadata() | {"data_format": None, "lidar_mode": "²x10"}),
        json.dumps(ouster_metadata() | {"lidar_to_sensor_transform": [1e308] * 16}),
        json.dumps(ouster_metadata() | {"lidar_to_sensor_transform": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]}),
    ],
)
def test_metadata_that_are_none_are_refused_in_one_sentence(tmp_path, text):
    path = ouster_pcap(tmp_path / "x.pcap", ouster_metadata(), [ranges()])
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FileError, match=r"x\.json: ") as error:
        hr.open_log(path, **WIDE)
    assert len(str(error.value)) < 400 and "\n" not in str(error.value)


def test_a_turn_without_a_valid_column_is_empty(tmp_path):
    metadata = ouster_metadata("RNG19_RFL8_SIG16_NIR16_DUAL")
    payloads = ouster_payloads(metadata, ranges(), invalid=range(64))
    (tmp_path / "x.json").write_text(json.dumps(metadata))
    frames = [(10**18 + k, ethernet(ip(udp(each, 7502)))) for k, each in enumerate(payloads)]
    (tmp_path / "x.pcap").write_bytes(pcap(frames))
    assert len(hr.read_log(tmp_path / "x.pcap", **WIDE)) == 0
