# SPDX-License-Identifier: Apache-2.0
"""Settings files: whatever is in them, they are read or refused with one sentence, and soon."""

import os
import time

import pytest

from hedgerow.base.settings_file import MAX_BYTES, MAX_DEPTH, read_toml
from hedgerow.errors import FileError

HOSTILE = {
    "lists inside lists": (b"a = " + b"[" * 100_000, "too deep inside each other"),
    "tables inside tables": (b"a = " + b"{a = " * 5_000, "too deep inside each other"),
    "a little too deep": (b"a = " + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "a.*too deep inside each other"),
    "a name of many parts": (b".".join([b"a"] * 100_000) + b" = 1", "line 1: a name has more than 32 parts"),
    "quoted parts": (b"[" + b" . ".join([b'"a"'] * 50_000) + b"]", "line 1: a name has more than 32 parts"),
    "many digits": (b"b = 1\na = " + b"1" * 5_000, "line 2: a number has more than 1,000 digits"),
    "many hexadecimal digits": (b"a = 0x" + b"f" * 5_000, "line 1: a number has more than 1,000 digits"),
    "a long open word": (b"k" * 900_000, "not valid TOML"),
    "open quotes": (b'a = "' + b"'" * 900_000, "not valid TOML"),
    "a large file": (b"#" * (MAX_BYTES + 1), "is larger than 1 MB, the most that a scene file may have"),
    "a control character": (b'a = "\x00"', "not valid TOML: Illegal character"),
    "a terminal's escape": (b'a = [{ b = "\\u001b[2J" }]', r"a\[0\].b: has a control character"),
    "an escape in a name": (b'"\\u001b[2J" = 1', "a name: has a control character"),
    "bytes that are no UTF-8": (b'a = 1\nb = "\xff"', "line 2 is no UTF-8 text"),
    "UTF-16": ("a = 1".encode("utf-16"), "is no UTF-8 text"),
    "a date that is none": (b"a = 2000-13-45", "not valid TOML"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_one_sentence_and_soon(tmp_path, name):
    content, words = HOSTILE[name]
    path = tmp_path / "own.toml"
    path.write_bytes(content)
    begin = time.process_time()
    with pytest.raises(FileError, match=rf"own.toml.*{words}") as caught:
        read_toml(path, "scene file")
    assert time.process_time() - begin < 1  # each takes below 0.2 s
    assert len(str(caught.value)) <= 500 and str(caught.value).isprintable()


def test_a_byte_order_mark_and_line_ends_of_windows_are_read(tmp_path):
    (tmp_path / "own.toml").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = '''x\r\ny'''\r\n")
    assert read_toml(tmp_path / "own.toml", "scene file") == {"a": 1, "b": "x\ny"}


def test_what_is_near_the_limits_is_read(tmp_path):
    path = tmp_path / "own.toml"
    nested = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    path.write_text(f"a = {nested}\n{'.'.join('b' * 30)} = 1\n{'k' * 400_000} = 1\n# {'1.' * 20}\n")
    assert set(read_toml(path, "scene file")) == {"a", "b", "k" * 400_000}


def test_pipes_folders_and_impossible_names_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(FileError, match=r"pipe.toml: is no file, so it cannot be read as a sensor file"):
        read_toml(tmp_path / "pipe.toml", "sensor file")
    with pytest.raises(FileError, match="is no file"):
        read_toml(tmp_path, "sensor file")
    with pytest.raises(FileError, match="no such sensor file"):
        read_toml(tmp_path / "none.toml", "sensor file")
    with pytest.raises(FileError, match="cannot be read as a sensor file: File name too long"):
        read_toml(tmp_path / ("x" * 5_000), "sensor file")
    with pytest.raises(FileError, match="cannot be read as a sensor file"):
        read_toml(tmp_path / "a\0b", "sensor file")
