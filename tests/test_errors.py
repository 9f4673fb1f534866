# SPDX-License-Identifier: Apache-2.0
"""Errors say what is wrong in one sentence, and carry the same as data."""

import copy
import pickle
import unicodedata
import warnings

import numpy as np
import pytest

from hedgerow.base.arrays import RowError
from hedgerow.errors import (
    LONGEST_TEXT,
    FileError,
    HedgerowError,
    HedgerowWarning,
    InputError,
    MissingPackage,
    ParameterError,
    SocketError,
    dotted,
    one_line,
    warn,
)


def test_an_input_error_says_its_field_and_what_is_wrong():
    error = InputError("range_m", "expected 0 or more, found -1: a range is a length")
    assert (error.field, error.said) == ("range_m", "expected 0 or more, found -1: a range is a length")
    assert str(error) == "range_m: expected 0 or more, found -1: a range is a length"
    assert isinstance(error, HedgerowError) and isinstance(error, ValueError)


def test_a_parameter_error_knows_its_place_as_data():
    error = ParameterError(("group", 2, "time_us"), "goes down")
    assert (error.location, error.field) == (("group", 2, "time_us"), "group[2].time_us")
    assert str(error) == "group[2].time_us: goes down"
    assert str(ParameterError((), "is no table", "a sensor")) == "a sensor: is no table"


@pytest.mark.parametrize(
    ("location", "text"), [((), ""), (("a",), "a"), (("a", "b", 0, "c"), "a.b[0].c"), (("a", 1, 2), "a[1][2]")]
)
def test_a_place_is_written_with_dots_and_brackets(location, text):
    assert dotted(location) == text


@pytest.mark.parametrize(
    "error",
    [
        InputError("range_m", "is: no number"),
        ParameterError(("group", 2, "time_us"), "goes down", "a sensor"),
        ParameterError((), "is no table", "a sensor"),
        RowError("origin_m", 7, "is nan; every number must be finite"),
        FileError("a.pcd: no such file"),
        MissingPackage("viser: pip install viser"),
        SocketError("port: 8765 is taken"),
    ],
)
def test_errors_pass_between_processes_whole(error):
    for made in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(made) is type(error)
        assert str(made) == str(error)
        assert vars(made) == vars(error)


def hostile_texts(n=300):
    """Texts of everything that steers a terminal, has no width, turns the writing, breaks lines or is long."""
    rng = np.random.default_rng(28)
    pieces = ["\x1b[2J", "\n", "\r", "\0", "\x7f", "\x85", "\x9b31m", "\u2028", "\u202e", "\u200b", "\ufeff", "\udc80"]
    pieces += [
        "\U000e0041",
        "\ue000",
        " ",
        "\t",
        "'",
        "a word",
        "/a/folder/",
        "\u00e4",
        "\U0001f33f",
        "x" * 4000,
        "y " * 900,
    ]
    for _ in range(n):
        yield "".join(pieces[k] for k in rng.integers(0, len(pieces), rng.integers(0, 12)))


def is_one_sentence(text):
    return (
        len(text) <= LONGEST_TEXT
        and all(unicodedata.category(each)[0] not in "C" for each in text)
        and (text.isprintable() and "\n" not in text)
    )


def test_no_text_can_break_the_line_steer_the_terminal_or_go_on_for_pages():
    for text in hostile_texts():
        for error in (FileError(text), InputError(text, text), ParameterError((text, 3), text), MissingPackage(text)):
            assert is_one_sentence(str(error))
            str(error).encode("utf-8")  # half a surrogate pair could not be printed
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warn(text)
        assert is_one_sentence(str(caught[0].message)) and caught[0].category is HedgerowWarning


def test_the_attributes_of_an_error_keep_what_was_given():
    for text in hostile_texts(20):
        error = pickle.loads(pickle.dumps(InputError(text, text)))
        assert (error.field, error.said, error.sentence()) == (text, text, f"{text}: {text}")
        assert pickle.loads(pickle.dumps(FileError(text))).sentence() == text


def test_a_plain_text_is_left_alone_and_what_cannot_be_seen_is_escaped():
    plain = "a  b/\u00e4\U0001f33f.pcd: 12 m"
    assert one_line(plain) == plain
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("\x1b[31mred\u202e\udc80") == "\\x1b[31mred\\u202e\\udc80"


def test_of_a_long_text_the_long_words_are_cut_and_paths_stay_whole():
    path = "/a-long-folder" * 12 + "/scene.toml"
    text = str(FileError(f"{path}, line 3: {'k' * 400_000}: no such field; leave it out"))
    assert text.startswith(f"{path}, line 3: kkk") and text.endswith("kkk: no such field; leave it out")
    assert len(text) < len(path) + 150
    long = str(FileError("one word and " * 200 + "the end"))
    assert len(long) == LONGEST_TEXT and long.endswith("and the end") and "..." in long
