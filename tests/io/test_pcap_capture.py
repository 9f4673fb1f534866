# SPDX-License-Identifier: Apache-2.0
"""Datagrams come out of captures as they went in, in every variant of the file; damage is told."""

import struct
import time

import pytest
from packet_maker import ethernet, fragments, ip, pcap, pcapng, udp

from hedgerow.errors import FileError
from hedgerow.io.pcap.capture import Capture, Fragments

STAMPS = [1_700_000_000_123_456_000, 1_700_000_001_000_001_000, 1_700_000_002_999_999_000]
PAYLOADS = [bytes([k]) * (100 + k) for k in range(3)]
FRAMES = [
    (stamp, ethernet(ip(udp(payload, 7000 + k))))
    for k, (stamp, payload) in enumerate(zip(STAMPS, PAYLOADS, strict=True))
]


def found(path):
    return [(each.time_ns, each.port, each.payload) for each in Capture(path).datagrams()]


EXPECTED = [(stamp, 7000 + k, payload) for k, (stamp, payload) in enumerate(zip(STAMPS, PAYLOADS, strict=True))]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_of_both_byte_orders_and_resolutions(tmp_path, order, nanoseconds):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap(FRAMES, order=order, nanoseconds=nanoseconds))
    assert found(path) == EXPECTED


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("ticks", [6, 9])
def test_pcapng_of_both_byte_orders_and_resolutions(tmp_path, order, ticks):
    path = tmp_path / "x.pcapng"
    path.write_bytes(pcapng(FRAMES, order=order, ticks=ticks))
    assert found(path) == EXPECTED


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_reading_goes_on_from_the_position_of_any_datagram(tmp_path, write):
    path = tmp_path / "x.pcap"
    path.write_bytes(write(FRAMES))
    capture = Capture(path)
    for k, datagram in enumerate(list(capture.datagrams())):
        assert [each.payload for each in capture.datagrams(datagram.position)] == PAYLOADS[k:]


def test_vlan_raw_and_cooked_captures_hold_the_same(tmp_path):
    packet = ip(udp(PAYLOADS[1], 7001))
    cooked = bytes(14) + b"\x08\x00" + packet
    for link, frame in ((1, ethernet(packet, vlan=True)), (101, packet), (113, cooked), (0, b"\x02\0\0\0" + packet)):
        (tmp_path / "x.pcap").write_bytes(pcap([(STAMPS[0], frame)], link=link))
        assert found(tmp_path / "x.pcap") == [(STAMPS[0], 7001, PAYLOADS[1])]


def test_fragments_are_joined_in_any_order_and_a_lost_one_loses_its_datagram_only(tmp_path):
    large = bytes(range(256)) * 40
    pieces, lost = fragments(large, 7502, identity=1), fragments(large, 7502, identity=2)
    assert len(pieces) == 7
    frames = [*lost[:3], *lost[4:], pieces[2], pieces[0], pieces[1], pieces[6], *pieces[3:6], FRAMES[0][1]]
    (tmp_path / "x.pcap").write_bytes(pcap([(STAMPS[0], frame) for frame in frames]))
    assert [payload for _, _, payload in found(tmp_path / "x.pcap")] == [large, PAYLOADS[0]]


def test_other_traffic_is_passed_over(tmp_path):
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    tcp = ethernet(ip(udp(b"x")).replace(b"\x40\x11", b"\x40\x06", 1))
    frames = [(STAMPS[0], each) for each in (arp, tcp, b"", b"\0" * 13, ethernet(b"\x45"))]
    (tmp_path / "x.pcap").write_bytes(pcap([*frames, *FRAMES]))
    assert found(tmp_path / "x.pcap") == EXPECTED


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_a_capture_that_was_cut_off_is_refused_at_the_byte(tmp_path, write):
    data = write(FRAMES)
    (tmp_path / "x.pcap").write_bytes(data[:-20])
    with pytest.raises(FileError, match=r"ends within the packet at byte \d+; it was cut off"):
        found(tmp_path / "x.pcap")


def test_what_is_no_capture_is_refused(tmp_path):
    path = tmp_path / "x.pcap"
    for data, text in (
        (b"", "is empty"),
        (b"hello world, not", "no pcap or pcapng"),
        (pcap([])[:10], "within its header"),
    ):
        path.write_bytes(data)
        with pytest.raises(FileError, match=text):
            Capture(path)
    path.write_bytes(pcap([]) + b"\xff" * 16)
    with pytest.raises(FileError, match="is damaged at byte 24"):
        found(path)


def test_packets_cut_when_captured_are_counted_not_decoded(tmp_path):
    (tmp_path / "x.pcap").write_bytes(pcap(FRAMES, snap=96))
    capture = Capture(tmp_path / "x.pcap")
    assert list(capture.datagrams()) == []
    assert capture.n_cut == 3


def block(kind, body):
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))


def test_a_file_of_nothing_but_sections_is_read_in_good_time(tmp_path):
    (tmp_path / "x.pcapng").write_bytes(SECTION * 40_000)
    begin_s = time.process_time()
    assert list(Capture(tmp_path / "x.pcapng").datagrams()) == []
    assert time.process_time() - begin_s < 2  # where every section looked at all before it, a minute


def test_reading_twice_tells_no_interface_twice(tmp_path):
    interface = block(1, struct.pack("<HHI", 1, 0, 0))
    (tmp_path / "x.pcapng").write_bytes(SECTION + interface)
    capture = Capture(tmp_path / "x.pcapng")
    for _ in range(3):
        assert list(capture.datagrams()) == []
    assert len(capture._sections[0].interfaces) == 1


@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_a_packet_of_the_far_future_is_damage(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    if suffix == ".pcap":
        path.write_bytes(
            struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<4I", 2**32 - 1, 0, 0, 0)
        )
    else:
        seconds = struct.pack("<HHI", 1, 0, 0) + struct.pack("<HHB3x", 9, 1, 0)  # a tick is a second
        packet = block(6, struct.pack("<5I", 0, 2**31, 0, 0, 0))
        path.write_bytes(SECTION + block(1, seconds) + packet)
    with pytest.raises(FileError, match=r"is damaged at byte \d+; a packet captured after 2100"):
        list(Capture(path).datagrams())


def test_fragments_that_never_end_are_dropped():
    waiting = Fragments()
    for offset in range(0, 0x1FFF, 2):
        packet = struct.pack(">BBHHHBBHII", 0x45, 0, 36, 7, 0x2000 | offset, 9, 17, 0, 1, 2) + bytes(16)
        assert waiting.add(101, packet, (0, 0)) is None
    assert sum(len(part) for each in waiting.waiting.values() for part in each.parts.values()) <= 65_535
