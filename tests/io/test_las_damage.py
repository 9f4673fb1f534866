# SPDX-License-Identifier: Apache-2.0
"""Damaged LAS and LAZ files: every size and count that does not fit the file is refused in a moment, in one sentence.

Before these checks, laspy hung on counts of records, and lazrs ended the process by asking for up to 67 GB.
"""

import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import laspy
import numpy as np
import pytest
from las_maker import VARIABLE, foreign_las, to_laz, write_laz

from hedgerow.errors import FileError
from hedgerow.io import open_log, read_log, write_log
from hedgerow.io.points.las_header import read_header
from hedgerow.io.points.rust import calling_rust

SCANNER: dict[str, Any] = {"scanner_m": [0, 0, 50.0]}
MOST_S = 10  # before, it was for ever; on an idle machine it is 0.01 s
LAS, LAZ = foreign_las(6, 130), to_laz(foreign_las(6, 130, extra=True), 50)


def patched(data, *changes):
    """Return bytes with numbers replaced: (place, format, value)."""
    changed = bytearray(data)
    for place, kind, value in changes:
        struct.pack_into(kind, changed, place, value)
    return bytes(changed)


def require_refused(path, data, match):
    path.write_bytes(data)
    begin_s = time.monotonic()
    with pytest.raises(FileError, match=match) as caught:
        read_log(path, **SCANNER)
    assert time.monotonic() - begin_s < MOST_S
    sentence = str(caught.value)
    assert sentence.startswith(f"{path}: ") and sentence.isprintable() and len(sentence) < 300 + len(str(path))


HEADER = [
    ((24, "<B", 2), r"is LAS 2.4; 1.0 to 1.5 are read"),
    ((25, "<B", 9), r"is LAS 1.9; 1.0 to 1.5 are read"),
    ((94, "<H", 10), r"after a header of 10 bytes, but there is room"),
    ((94, "<H", 65535), r"after a header of 65,535 bytes, but there is room"),
    ((96, "<I", 2**32 - 1), r"points at byte 4,294,967,295 after a header"),
    ((96, "<I", 0), r"points at byte 0 after a header"),
    ((100, "<I", 10**8), r"its header promises 100,000,000 records from byte 375 on"),
    ((100, "<I", 2**32 - 1), r"its header promises 4,294,967,295 records"),
    ((104, "<B", 11), r"points of format 11; 0 to 10 are read"),
    ((104, "<B", 0x46), r"points of format 70; 0 to 10 are read"),
    ((105, "<H", 3), r"points of 3 bytes; those of format 6 need 30"),
    ((105, "<H", 65535), r"130 points, which [\d,]+ bytes cannot hold|do not make up points of 65535 bytes"),
    ((131, "<d", 0.0), r"gives coordinates the scales 0, "),
    ((155, "<d", float("nan")), r"and the offsets nan, "),
    ((243, "<I", 10**9), r"its header promises 1,000,000,000 records from byte"),
    ((247, "<Q", 0), r"holds no points"),
    ((247, "<Q", 2**63), r"its header says 9,223,372,036,854,775,808 points, which"),
]


@pytest.mark.parametrize(("change", "match"), HEADER)
@pytest.mark.parametrize("name", ["x.las", "x.laz"])
def test_numbers_of_the_header_must_fit_into_the_file(tmp_path, name, change, match):
    require_refused(tmp_path / name, patched(LAS if name == "x.las" else LAZ, change), match)


def test_records_before_and_behind_the_points_must_fit(tmp_path, log_maker):
    log = log_maker()
    log.metadata["long"] = "x" * 70_000  # its record comes behind the points
    write_log(log, tmp_path / "x.las")
    data = (tmp_path / "x.las").read_bytes()
    (behind,) = struct.unpack_from("<Q", data, 235)
    bad = tmp_path / "bad.las"
    require_refused(bad, patched(data, (375 + 20, "<H", 65535)), r"promises a record of 65,535 bytes at byte 429")
    require_refused(
        bad, patched(data, (behind + 20, "<Q", 2**63)), r"promises a record of 9,223,372,036,854,775,808 byt"
    )
    require_refused(
        bad, patched(data, (235, "<Q", 2**64 - 1)), r"promises 1 records from byte 18,446,744,073,709,551,615"
    )
    require_refused(bad, data[:300], r"ends in its header after 300 bytes; is it cut off\?")
    require_refused(bad, b"LASF", r"ends in its header after 4 bytes")


def places(laz):
    """Return where things are in a LAZ file: what says how points are packed, the points, the table of chunks."""
    (points_at,) = struct.unpack_from("<I", laz, 96)
    (table_at,) = struct.unpack_from("<q", laz, points_at)
    return laz.index(b"laszip encoded") + 52, points_at, table_at


def test_how_points_are_packed_must_fit(tmp_path):
    bad = tmp_path / "x.laz"
    packing, _, _ = places(LAZ)
    for change, match in [
        ((packing, "<H", 2), r"points of format 6 cannot be packed by method 2"),
        ((packing + 2, "<H", 1), r"cannot be packed by method 3"),
        ((packing + 12, "<I", 0), r"chunks of 0 points"),
        ((packing + 12, "<I", 2**32 - 2), r"chunks of 4,294,967,294 points"),  # lazrs asks for 137 GB
        ((packing + 12, "<I", 3_000_000), r"chunks of 3,000,000 points"),  # 96 MB for a file of 5 kB
        ((packing + 12, "<I", 1), r"3 chunks in [\d,]+ bytes for 130 points"),
        ((packing + 32, "<H", 65535), r"65535 packed items in 46 bytes"),
        ((packing + 32, "<H", 1), r"its packed items do not make up points of 32 bytes"),
        ((packing + 34, "<H", 6), r"its packed items do not make up"),
        ((packing + 42, "<H", 65535), r"its packed items do not make up"),
        ((packing - 34, "<H", 10), r"nothing says how its points are packed"),
    ]:
        require_refused(bad, patched(LAZ, change), match)


@pytest.mark.parametrize("chunk_points", [50, VARIABLE])
def test_the_table_of_chunks_must_fit(tmp_path, chunk_points):
    laz = to_laz(foreign_las(6, 130), chunk_points)
    bad = tmp_path / "x.laz"
    _, points_at, table_at = places(laz)
    for changes, match in [
        ([(table_at + 4, "<I", 2**32 - 1)], r"4,294,967,295 chunks in [\d,]+ bytes for 130 points"),  # lazrs: 67 GB
        ([(table_at + 4, "<I", 0)], r"0 chunks in [\d,]+ bytes for 130 points"),
        ([(points_at, "<q", len(laz))], r"its table of chunks would be at byte"),
        ([(points_at, "<q", 2**62)], r"its table of chunks would be at byte 4,611,686,018,427,387,904"),
        ([(points_at, "<q", -1), (len(laz) - 8, "<q", 0)], r"it has no table of chunks"),
        ([(table_at + 8, "<Q", 2**64 - 1)], r"its chunks have|damaged"),
    ]:
        require_refused(bad, patched(laz, *changes), match)
    require_refused(bad, laz[: points_at + 4], r"it ends before its points")


def test_a_table_of_chunks_named_at_the_end_is_found(tmp_path):
    _, points_at, table_at = places(LAZ)
    (tmp_path / "x.laz").write_bytes(patched(LAZ, (points_at, "<q", -1)) + struct.pack("<q", table_at))
    assert len(read_log(tmp_path / "x.laz", **SCANNER)) == 130


def test_layers_must_fit_into_their_chunk(tmp_path):
    _, points_at, _ = places(LAZ)
    layers = points_at + 8 + 32 + 4  # behind the offset of the table, a point and a count
    for place in (layers, layers + 8 * 4, layers + 10 * 4):
        bad = patched(LAZ, (place, "<I", 2**32 - 1))
        require_refused(tmp_path / "x.laz", bad, r"layers of [\d,]+ bytes in a chunk of [\d,]+")


@pytest.mark.parametrize("point_format", range(11))
def test_good_files_of_every_point_format_pass(tmp_path, point_format):
    for extra in (False, True):
        for chunk_points in (50, 130, VARIABLE):
            path = write_laz(tmp_path / "x.laz", point_format, 130, chunk_points, extra=extra)
            header = read_header(path)
            assert (header.point_format, header.n_points, header.is_compressed) == (point_format, 130, True)
            assert len(open_log(path, **SCANNER).read()) == 130
    assert np.array_equal(laspy.read(path).points.array, laspy.read(_written(tmp_path, point_format)).points.array)


def _written(folder, point_format):
    path = folder / "x.las"
    path.write_bytes(foreign_las(point_format, 130, extra=True))
    return path


def test_points_of_many_bytes_are_read_in_smaller_parts(tmp_path, monkeypatch):
    (tmp_path / "x.las").write_bytes(LAS)
    monkeypatch.setattr("hedgerow.io.points.las._MOST_BYTES_AT_ONCE", 30 * 50)
    source = open_log(tmp_path / "x.las", **SCANNER)
    assert sum(len(log) for _, log in source.iter_sweeps()) == 130
    assert source.sweeps.tolist() == [0, 1, 2]


class PanicException(BaseException):
    """As pyo3 names what Rust raises."""


def test_a_panic_of_rust_is_one_sentence_and_prints_nothing(capfd):
    with (
        pytest.raises(FileError, match=r"x.laz: damaged, its points cannot be unpacked \(range end 9 is past"),
        calling_rust(Path("x.laz")),
    ):
        os.write(2, b"thread panicked at")
        raise PanicException("range end 9\nis past the end")
    assert capfd.readouterr().err == ""


def test_what_others_print_meanwhile_is_printed_after(capfd):
    with calling_rust(Path("x.laz")):
        os.write(2, b"a bar ")
        with calling_rust(Path("y.laz")):
            os.write(2, b"that grows")
        assert capfd.readouterr().err == ""
    with pytest.raises(KeyboardInterrupt), calling_rust(Path("x.laz")):
        os.write(2, b", and an end")
        raise KeyboardInterrupt
    os.write(2, b".")
    assert capfd.readouterr().err == "a bar that grows, and an end."


@pytest.mark.parametrize("chunk_points", [1500, VARIABLE])
def test_points_that_make_lazrs_panic_are_damage(tmp_path, chunk_points, capfd):
    laz = to_laz(foreign_las(7, 3000), chunk_points)
    _, points_at, _ = places(laz)
    layers = points_at + 8 + 36 + 4 + 10 * 4  # the first layer begins with what its decoder starts from
    require_refused(
        tmp_path / "x.laz", patched(laz, (layers, "<I", 2**32 - 1)), r"damaged, its points cannot be unpack"
    )
    assert capfd.readouterr().err == ""


READER = """
import resource, sys
from pathlib import Path
from hedgerow.errors import HedgerowError
from hedgerow.io import open_log
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
n_read = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        n_read += sum(1 for _ in open_log(path, scanner_m=[0, 0, 50.0]).iter_sweeps())
    except HedgerowError as error:
        assert str(error).isprintable(), str(error)
print("all", n_read)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits memory by a call of Unix")
def test_no_damage_ends_the_process_or_takes_much_memory(tmp_path):
    rng = random.Random(7)
    odd = [0, 1, 255, 65535, 2**31 - 1, 2**31, 2**32 - 1]
    good = [to_laz(foreign_las(kind, 60, extra=True), size) for kind in (1, 6, 7) for size in (25, VARIABLE)]
    for number in range(60):
        laz = bytearray(rng.choice(good))
        packing, points_at, table_at = places(laz)
        begin, end = rng.choice([(94, 255), (packing, points_at), (points_at, points_at + 100), (table_at, len(laz))])
        for _ in range(rng.choice((1, 1, 2))):
            struct.pack_into("<I", laz, rng.randrange(begin, end - 4), rng.choice(odd))
        (tmp_path / f"{number:03}.laz").write_bytes(laz)
    command = [sys.executable, "-c", READER, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("all ")
