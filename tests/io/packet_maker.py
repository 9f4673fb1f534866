# SPDX-License-Identifier: Apache-2.0
"""Makes packets of lidars and captures of them, byte by byte after the manuals, without the code under test."""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

HDL_32E, VLP_16, VLP_32C, VLS_128 = 0x21, 0x22, 0x28, 0xA1
HDL_64E = 0  # its packets have something else where others tell the model
BANKS = [0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF]
BLOCK_US = {VLP_16: 110.592, HDL_32E: 46.08, VLP_32C: 55.296, VLS_128: 160 / 3, HDL_64E: 48.0}
"""From one azimuth to the next."""
STRONGEST, DUAL = 0x37, 0x39
START_NS = 1_700_000_000_000_000_000


def velodyne_payload(
    azimuth, distance, intensity=None, time_us=0, mode=STRONGEST, model=VLP_16, flag: ArrayLike = 0xEEFF
) -> bytes:
    """12 azimuths [0.01 degrees], (12, 32) distances in steps and intensities; one flag, or one for each block."""
    flags = np.broadcast_to(flag, 12)
    distance = np.asarray(distance)
    intensity = np.zeros_like(distance) if intensity is None else np.asarray(intensity)
    block = np.zeros((12, 100), np.uint8)
    block[:, :4] = np.stack([flags, np.asarray(azimuth) % 36_000], axis=1).astype("<u2").view(np.uint8)
    points = block[:, 4:].reshape(12, 32, 3)
    points[..., :2] = distance.astype("<u2")[..., None].view(np.uint8)
    points[..., 2] = intensity
    return block.tobytes() + struct.pack("<IBB", time_us, mode, model)


def block_layout(model, dual):
    """Flags of the 12 blocks, and which of the packet's azimuths each has; of a VLS-128's empty blocks, the first."""
    if model == HDL_64E:  # both banks, and with two returns both banks again
        return np.tile(BANKS[:2], 6), np.arange(12) // (4 if dual else 2)
    if model == VLS_128 and dual:  # each bank twice
        return np.append(np.repeat(BANKS, 2), [0] * 4), np.zeros(12, int)
    if model == VLS_128:
        return np.tile(BANKS, 3), np.arange(12) // 4
    return np.full(12, BANKS[0]), np.arange(12) // (2 if dual else 1)


def velodyne_drive(
    n_packets, model=VLP_16, mode=STRONGEST, seed=1, start_azimuth=0, miss=0.3, host_shift_ns=0, status=None
):
    """Random distances at ten turns a second; return (host time, payload) of each packet.

    status: of an HDL-64E, (kind, value) of the last two bytes of each packet, repeated.
    """
    rng = np.random.default_rng(seed)
    flags, column = block_layout(model, mode == DUAL)
    n_columns, block_us = column.max() + 1, BLOCK_US[model]
    step = 0.36 * block_us  # 3600 degrees per second in 0.01 degrees per us
    found = []
    for number in range(n_packets):
        azimuth = np.rint(start_azimuth + (number * n_columns + column) * step).astype(int)
        distance = rng.integers(500, 20_000, (12, 32)) * (rng.random((12, 32)) >= miss) * (flags != 0)[:, None]
        intensity = rng.integers(0, 256, (12, 32))
        time_ns = START_NS + round(number * n_columns * block_us * 1e3)
        kind, value = (mode, model) if status is None else status[number % len(status)]
        time_us = int(time_ns // 1000 % 3_600_000_000)
        payload = velodyne_payload(azimuth, distance, intensity, time_us, kind, value, flags)
        found.append((time_ns + host_shift_ns, payload))
    return found


def hdl_64e_status(seed=1, series=2):
    """Calibration of a unit as its packets tell it: (kind, value) for 4,160 packets, and the values.

    Values of each laser: elevation, azimuth [0.01 degrees], far, near aside, near ahead, up, left [mm].
    """
    rng = np.random.default_rng(seed)
    lasers = np.stack(
        [
            rng.permutation(np.round(np.linspace(-2480, 200, 64))),
            rng.integers(-800, 800, 64),
            *(rng.integers(1200, 1300, 64) + rng.integers(-30, 30, (3, 64))),
            np.repeat([203, 115], 32),
            np.tile([26, -26], 32),
        ],
        axis=1,
    ).astype(int)
    rows = [struct.pack("<B9hBB", k, *lasers[k].tolist(), 250, 11, 40, 255) + bytes(7) for k in range(64)]
    told = b"UNIT#" + bytes([24, 24]) + b"".join(rows)
    told = told[:-7] + bytes([16, 11, 15, 12, 47, 47, 25])  # when it was calibrated, and the humidity
    tail = bytearray(19)
    checksum = 1820
    if series == 3:
        checksum = crc16(b"".join(row[1:21] for row in rows))
    told = told + bytes(tail) + struct.pack("<H", checksum)
    time = {"H": 1, "M": 2, "S": 3, "D": 4, "N": 5, "Y": 16, "G": 0, "T": 20, "V": 227}
    found = []
    for first in range(0, 1820, 7):
        found += [(ord(kind), value) for kind, value in time.items()]
        kinds = b"1234567" if series == 2 else b"123456W"
        found += list(zip(kinds, told[first : first + 7], strict=True))
    return found, lasers


def hdl_64e_calibration(path, seed=1):
    """Write what `hdl_64e_status` tells as a file of velodyne_pointcloud; return its lasers."""
    import yaml

    names = ("vert_correction", "rot_correction", "dist_correction", "dist_correction_x", "dist_correction_y")
    names = (*names, "vert_offset_correction", "horiz_offset_correction")
    units = [np.pi / 18_000] * 2 + [1e-3] * 5
    _, lasers = hdl_64e_status(seed)
    rows = [dict(zip(names, (row * units).tolist(), strict=True)) | {"laser_id": k} for k, row in enumerate(lasers)]
    path.write_text(yaml.safe_dump({"lasers": rows[::-1], "num_lasers": 64}))
    return rows


def crc16(data):
    """CRC-16/BUYPASS, bit by bit over a long number: another way than in the code under test."""
    rest = int.from_bytes(data) << 16
    for bit in range(rest.bit_length() - 1, 15, -1):
        if rest >> bit & 1:
            rest ^= 0x18005 << (bit - 16)
    return rest


def udp(payload, port=2368) -> bytes:
    return struct.pack(">HHHH", 40_000, port, 8 + len(payload), 0) + payload


def ip(body, *, offset=0, more=False, identity=7) -> bytes:
    head = struct.pack(
        ">BBHHHBBH", 0x45, 0, 20 + len(body), identity, (offset // 8) | (0x2000 if more else 0), 64, 17, 0
    )
    return head + bytes([192, 168, 1, 201]) + bytes([255] * 4) + body


def ethernet(packet, *, vlan=False) -> bytes:
    tag = struct.pack(">HH", 0x8100, 5) if vlan else b""
    return bytes(12) + tag + b"\x08\x00" + packet


def fragments(payload, port, size=1480, identity=7):
    """Cut a datagram into frames."""
    body = udp(payload, port)
    pieces = range(0, len(body), size)
    return [
        ethernet(ip(body[at : at + size], offset=at, more=at + size < len(body), identity=identity)) for at in pieces
    ]


def pcap(frames, *, order="<", nanoseconds=False, link=1, snap=None) -> bytes:
    """A capture of (time [ns], frame) pairs."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    data = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, link)
    for time_ns, frame in frames:
        fraction = time_ns % 10**9 // (1 if nanoseconds else 1000)
        kept = frame[:snap]
        data += struct.pack(order + "4I", time_ns // 10**9, fraction, len(kept), len(frame)) + kept
    return data


def pcapng(frames, *, order="<", ticks=9) -> bytes:
    """The same as pcapng with times in 10 ** -ticks seconds."""

    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack(order + "II", kind, 12 + len(body)) + body + struct.pack(order + "I", 12 + len(body))

    data = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    option = struct.pack(order + "HHB3xHH", 9, 1, ticks, 0, 0)
    data += block(1, struct.pack(order + "HHI", 1, 0, 0) + option)
    for time_ns, frame in frames:
        stamp = time_ns * 10**ticks // 10**9
        head = struct.pack(order + "5I", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(frame), len(frame))
        data += block(6, head + frame)
    return data


def velodyne_pcap(path, **options):
    path.write_bytes(pcap([(time_ns, ethernet(ip(udp(payload)))) for time_ns, payload in velodyne_drive(**options)]))
    return path


PIXEL = {"LEGACY": 12, "RNG19_RFL8_SIG16_NIR16": 12, "RNG19_RFL8_SIG16_NIR16_DUAL": 16, "RNG15_RFL8_NIR8": 4}


def ouster_metadata(profile="RNG19_RFL8_SIG16_NIR16", n_pixels=4, n_columns=64, sections=False) -> dict[str, Any]:
    angles = {
        "beam_altitude_angles": np.linspace(15, -15, n_pixels).tolist(),
        "beam_azimuth_angles": [3.0 - 2 * (k % 4) for k in range(n_pixels)],
        "lidar_origin_to_beam_origin_mm": 15.806,
    }
    layout = {
        "columns_per_frame": n_columns,
        "columns_per_packet": 16,
        "pixels_per_column": n_pixels,
        "column_window": [0, n_columns - 1],
        "udp_profile_lidar": profile,
    }
    turn = {"lidar_to_sensor_transform": [-1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 36.18, 0, 0, 0, 1]}
    if sections:
        product = {"sensor_info": {"prod_line": "OS-1-4"}}
        return {"beam_intrinsics": angles, "lidar_data_format": layout, "lidar_intrinsics": turn} | product
    return angles | turn | {"data_format": layout, "prod_line": "OS-1-4-U2"}


def ouster_payloads(metadata, range_mm, range2_mm=None, *, frame=1, start_ns=5_000_000_000, invalid=()):
    """Packets of one turn of (pixels, columns) ranges [mm]; reflectivity is the column's number modulo 200."""
    layout = metadata.get("data_format") or metadata["lidar_data_format"]
    profile, n_columns, n_pixels = (
        layout[key] for key in ("udp_profile_lidar", "columns_per_frame", "pixels_per_column")
    )
    found = []
    for first in range(0, n_columns, 16):
        body = b""
        for column in range(first, first + 16):
            second = None if range2_mm is None else range2_mm[:, column]
            pixels = b"".join(
                _pixel(profile, int(range_mm[k, column]), 0 if second is None else int(second[k]), column % 200)
                for k in range(n_pixels)
            )
            time_ns, valid = start_ns + column * 100_000, column not in invalid
            if profile == "LEGACY":
                head = struct.pack("<QHHI", time_ns, column, frame, 0)
                body += head + pixels + struct.pack("<I", 0xFFFFFFFF if valid else 0)
            else:
                body += struct.pack("<QHH", time_ns, column, int(valid)) + pixels
        found.append(body if profile == "LEGACY" else struct.pack("<HH28x", 1, frame) + body + bytes(32))
    return found


def _pixel(profile, range_mm, range2_mm, reflectivity):
    if profile == "RNG15_RFL8_NIR8":
        return struct.pack("<HBB", range_mm // 8, reflectivity, 3)
    if profile.endswith("DUAL"):
        words = range_mm | reflectivity << 24, range2_mm | (reflectivity + 1) << 24
        return struct.pack("<IIHHHH", *words, 9, 9, 9, 0)
    flags = 0xA00000 if profile == "LEGACY" else 0xF80000  # bits above the range must not matter
    return struct.pack("<IBBHHH", range_mm | flags, reflectivity, 0, 9, 9, 0)


def ouster_pcap(path, metadata, turns, **options):
    """Write a capture of turns of ranges, in fragments as on the wire, and its metadata beside it."""
    frames = []
    for number, range_mm in enumerate(turns):
        start_ns = 5_000_000_000 + number * 100_000_000
        payloads = ouster_payloads(metadata, range_mm, frame=number, start_ns=start_ns, **options)
        for k, payload in enumerate(payloads):
            identity = number * 100 + k
            frames += [(START_NS + start_ns, each) for each in fragments(payload, 7502, identity=identity)]
    path.write_bytes(pcap(frames))
    path.with_suffix(".json").write_text(json.dumps(metadata))
    return path
