# SPDX-License-Identifier: Apache-2.0
"""Parquet logs that someone made up: every one is read or refused with a sentence, and none ends the process."""

import copy
import json
import random
import subprocess
import sys

import numpy as np
import parquet_footer as footer
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.errors import FileError, InputError
from hedgerow.io import open_log, read_log, write_log
from hedgerow.io.convert import convert
from hedgerow.io.describe import describe
from hedgerow.io.parquet import reader
from hedgerow.log import Log

COLUMNS = ["sweep", "pulse", "time_ns", "ring", "origin_x", "direction_z", "return_number", "range_m", "label"]

USE = """
import sys, warnings
from hedgerow.errors import HedgerowError
from hedgerow.io import open_log
from hedgerow.io.describe import describe
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
except ImportError:
    pass
warnings.simplefilter("error")
for path in sys.stdin.read().splitlines():
    print("begun", path, flush=True)
    try:
        file = open_log(path)
        log = file.read()
        describe(path)
        print("read", len(log), file.sweeps.tolist(), sum(len(each) for _, each in file.iter_sweeps()), flush=True)
    except HedgerowError as error:
        assert path in str(error), error
        assert len(str(error)) - len(path) < 300, error
        assert str(error).isprintable(), error
        print("refused", str(error).removeprefix(path), flush=True)
"""


@pytest.fixture
def path(tmp_path, log_maker):
    write_log(log_maker(n_sweeps=2, per_sweep=30, arrays=("label",)), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


def outcomes(paths):
    """Open, read and describe each in another process, which must live."""
    asked = "\n".join(str(path) for path in paths)
    done = subprocess.run([sys.executable, "-c", USE], input=asked, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 2 * len(paths)
    return lines[1::2]


def refused(path, message):
    """Whatever is asked of the log, it is refused with the same sentence."""
    for ask in (read_log, describe, lambda path: [0 for _ in open_log(path).iter_sweeps()]):
        with pytest.raises(FileError, match=message) as caught:
            ask(path)
        said = str(caught.value)
        assert said.isprintable()
        assert str(path) in said
        assert len(said) - len(str(path)) < 300


# The footer


def cut_statistics(tree):
    for each in footer.entry(footer.chunk(tree), 12)[2]:
        if each[1] == footer.TEXT:
            each[2] = b"\x01"


def another_type(tree):
    footer.entry(footer.chunk(tree), 1)[2] = 2


def unknown_type(tree):
    footer.entry(footer.chunk(tree), 1)[2] = 77


def wrong_histogram(tree):
    footer.chunk(tree)[:] = [each for each in footer.chunk(tree) if each[0] < 16]
    footer.chunk(tree).append([16, footer.STRUCT, [[3, footer.LIST, [6, [1, 2, 3, 4]]]]])


def more_columns(tree):
    columns = footer.entry(footer.entry(tree, 4)[2][1][0], 1)[2][1]
    columns += columns[:1] * 5


def no_columns(tree):
    footer.entry(footer.entry(tree, 4)[2][1][0], 1)[2][1].clear()


def encrypted(tree):
    columns = footer.entry(footer.entry(tree, 4)[2][1][0], 1)[2][1]
    columns[0].append([8, footer.STRUCT, [[1, footer.STRUCT, []]]])


def unknown_codec(tree):
    footer.entry(footer.chunk(tree), 4)[2] = 77


def far_data(tree):
    for field in (9, 11):
        footer.entry(footer.chunk(tree), field)[2] = 2**62


def many_rows(tree):
    for group in footer.entry(tree, 4)[2][1]:
        footer.entry(group, 3)[2] = 2**40
    footer.entry(tree, 3)[2] = 2**41


def negative_rows(tree):
    first, second = footer.entry(tree, 4)[2][1]
    footer.entry(first, 3)[2], footer.entry(second, 3)[2] = -5, 65


def other_sum(tree):
    footer.entry(tree, 3)[2] = 61


def more_rows_than_values(tree):
    footer.entry(footer.entry(tree, 4)[2][1][0], 3)[2] = 40
    footer.entry(tree, 3)[2] = 70


ABORTING = [cut_statistics, another_type, unknown_type, wrong_histogram]
"""What ends the process when pyarrow is asked about a column chunk."""
BROKEN = [no_columns, encrypted, unknown_codec, far_data, many_rows, negative_rows, other_sum, more_rows_than_values]


def test_footers_that_contradict_themselves(path):
    body, tree = footer.split(path.read_bytes())
    assert footer.join(body, tree) == path.read_bytes()
    paths = []
    for change in [*ABORTING, *BROKEN, more_columns]:
        changed = copy.deepcopy(tree)
        change(changed)
        paths.append(path.with_name(f"{change.__name__}.parquet"))
        paths[-1].write_bytes(footer.join(body, changed))
    said = dict(zip([each.stem for each in paths], outcomes(paths), strict=True))
    assert [name for name, text in said.items() if not text.startswith("refused : ")] == ["more_columns"]
    assert said["more_columns"] == "read 60 [0, 1] 60"
    assert "says 2,199,023,255,552 rows, more than" in said["many_rows"]
    assert "says 61 rows, but its row groups have 60" in said["other_sum"]
    assert "a row group has -5 rows" in said["negative_rows"]
    assert "column 'sweep' has 60 of 70 values" in said["more_rows_than_values"]


def test_footers_changed_at_random(path):
    rng = random.Random(28)
    body, tree = footer.split(path.read_bytes())
    paths = []
    for number in range(80):
        changed = copy.deepcopy(tree)
        footer.mutate(changed, rng)
        paths.append(path.with_name(f"{number}.parquet"))
        paths[-1].write_bytes(footer.join(body, changed))
    said = outcomes(paths)
    assert sum(text.startswith("refused") for text in said) > 20
    assert sum(text.startswith("read 60 [0, 1] 60") for text in said) > 20


def test_a_footer_cannot_ask_for_more_memory_than_its_length_accounts_for(path):
    body, tree = footer.split(path.read_bytes())
    groups = footer.entry(tree, 4)
    data = footer.join(body, tree)
    head = bytes([len(groups[2][1]) << 4 | footer.STRUCT])
    end = len(body) + data[len(body) :].index(head + footer._write(groups[2][1][0], footer.STRUCT))
    promising = data[:end] + bytes([0xF0 | footer.STRUCT]) + footer._number(900_000) + data[end + 1 : -8]
    path.write_bytes(promising + (len(promising) - len(body)).to_bytes(4, "little") + b"PAR1")
    refused(path, "not a Parquet file, or damaged")


def test_a_log_larger_than_memory_is_read_sweep_by_sweep(path, monkeypatch):
    monkeypatch.setattr(reader, "free_memory_bytes", lambda: 3000)
    with pytest.raises(FileError, match=r"60 rows need 0.0 GB of .* free memory; read it sweep by sweep"):
        read_log(path)
    assert sum(len(log) for _, log in open_log(path).iter_sweeps()) == 60


def test_statistics_that_lie_hide_no_sweep(path):
    body, tree = footer.split(path.read_bytes())
    for each in footer.entry(footer.chunk(tree, group=1), 12)[2]:
        if each[1] == footer.TEXT:
            each[2] = (9).to_bytes(4, "little")
    path.write_bytes(footer.join(body, tree))
    statistics = pq.read_metadata(path).row_group(1).column(0).statistics
    assert statistics is not None and statistics.min == 9
    assert open_log(path).sweeps.tolist() == [0, 1]
    assert len(read_log(path).select(sweep=1)) == len(open_log(path).read(1)) == 30


# Columns


def rewrite(path, table):
    pq.write_table(table, path)


@pytest.mark.parametrize("name", COLUMNS[:-1])
def test_without_a_column(path, name):
    rewrite(path, pq.read_table(path).drop_columns([name]))
    refused(path, f"column '{name}' is missing")


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("kind", ["text", "struct", "list", "wide"])
def test_column_of_another_type(path, name, kind):
    table = pq.read_table(path)
    values = table[name].to_pylist()
    column = {
        "text": lambda: pa.array([str(each) for each in values]),
        "struct": lambda: pa.array([{name: each} for each in values]),
        "list": lambda: pa.array([[each] for each in values]),
        "wide": lambda: pa.array([float(each) for each in values], pa.float32() if "origin" in name else pa.float64()),
    }[kind]()
    rewrite(path, table.set_column(table.column_names.index(name), name, column))
    refused(path, f"column '{name}' is (string|struct|list|double|float).*, expected")


@pytest.mark.parametrize("name", COLUMNS)
def test_missing_values(path, name):
    table = pq.read_table(path)
    values = table[name].to_pylist()
    values[7] = None
    rewrite(path, table.set_column(table.column_names.index(name), name, pa.array(values, table[name].type)))
    with pytest.raises(FileError, match=f"column '{name}': has missing values"):
        read_log(path)
    for _ in range(2):
        with pytest.raises(FileError, match=f"column '{name}': has missing values"):
            next(reader.LogFile(path).batches([name]))


def test_a_column_twice(path):
    table = pq.read_table(path)
    rewrite(path, table.append_column("ring", table["ring"]))
    refused(path, "column 'ring' is there 2 times")


def test_long_and_unprintable_names_of_columns(path):
    table = pq.read_table(path).drop_columns(["ring"])
    rewrite(path, table.append_column("\x1b[31m" + "x" * 5000, table["sweep"]))
    refused(path, "column 'ring' is missing")


@pytest.mark.parametrize(("number", "range_m", "message"), [(7, 3.0, "return_number"), (1, np.nan, "range")])
def test_impossible_rows_are_no_description(path, number, range_m, message):
    table = pq.read_table(path)
    for name, value in (("return_number", number), ("range_m", range_m)):
        column = table[name].to_numpy().copy()
        column[5] = value
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    rewrite(path, table)
    refused(path, message)


# The header


def header_text(path) -> str:
    metadata = pq.read_metadata(path).metadata
    assert metadata is not None
    return metadata[b"hedgerow"].decode()


def with_header(path, text):
    table = pq.read_table(path).replace_schema_metadata({b"hedgerow": text})
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("returns_per_pulse", value) for value in (2**24, 2**30, 256, 0, -1, 1.0, True, "1", None, [1])],
        *[("part", value) for value in (-1, 2**40, 0.5, False, "0", None)],
        *[("min_range_m", value) for value in (-1, 1e9, "0", None, True, [0])],
        *[("max_range_m", value) for value in (0, -5, 1e300, "60", False, {})],
        *[("sensor", value) for value in (7, None, ["a"], "x" * 300, "a\x1b[31mb", "two\nlines")],
        *[("map_origin_m", value) for value in ([1, 2], [1, 2, 3, 4], "abc", [1, 2, "3"], [1, 2, None], {"x": 1}, 3)],
        *[("metadata", value) for value in (None, [], "x", 3)],
        *[("hedgerow", value) for value in (None, 3, "x" * 999, "\x00")],
        *[("format", value) for value in (None, 0, -1, True, "1", 1.0)],
    ],
)
def test_header_field_of_wrong_type_or_out_of_bounds(path, name, value):
    header = json.loads(header_text(path)) | {name: value}
    with_header(path, json.dumps(header))
    expected = "range limits|max_range_m|min_range_m" if "range_m" in name else name
    refused(path, rf"the 'hedgerow' metadata is damaged \(({expected}): ")


@pytest.mark.parametrize("name", ["format", "part", "returns_per_pulse", "min_range_m", "sensor", "metadata", "seed"])
def test_header_without_a_field(path, name):
    header = json.loads(header_text(path))
    del header[name]
    with_header(path, json.dumps(header))
    refused(path, rf"the 'hedgerow' metadata is damaged \({name}: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "too deeply"),
        ('{"metadata":' * 50_000, "too deeply|no JSON"),
        ("9" * 5000, "64 bits"),
        ("NaN", "not finite"),
        ("-Infinity", "not finite"),
        ("1e999", "not finite"),
        ("[1]", "expected a mapping"),
        ('"x"', "expected a mapping"),
        (b"\xff\xfe{", "no UTF-8|no JSON"),
        (b'{"a": "\xff"}', "no UTF-8"),
        ("{}", "format: expected"),
    ],
)
def test_header_that_is_no_plain_json(path, text, message):
    with_header(path, text)
    refused(path, rf"the 'hedgerow' metadata is damaged \(.*({message})")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("NaN", "not finite"),
        ("[" * 80 + "]" * 80, "nested too deeply"),
        ("9" * 4299, "64 bits"),
        (r'"\ud800"', "no Unicode"),
    ],
)
def test_metadata_that_could_not_be_written_again(path, metadata, message):
    text = header_text(path)
    with_header(path, text.replace('"note": "', f'"odd": {metadata}, "note": "'))
    refused(path, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensor": "two\nlines"}, "sensor: expected a line"),
        ({"metadata": {"x": "\ud800"}}, "metadata: holds text that is no Unicode"),
        ({"max_range_m": 1e300}, "range limits: expected 0"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path, change, message):
    log = Log.from_arrays(origins=[0, 0, 0], directions=[[1, 0, 0]], ranges=[1])
    with np.errstate(over="ignore"), pytest.raises(InputError, match=message):
        write_log(Log(log.beams, log.returns, **change), tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_more_returns_than_a_return_number_counts_are_not_written(tmp_path):
    log = Log.from_arrays(origins=[0, 0, 0], directions=[[1, 0, 0]], ranges=[np.arange(1, 300)])
    with pytest.raises(InputError, match="returns_per_pulse: expected a whole number from 1 to 255, found 299"):
        write_log(log, tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


# Same input, same bytes


@pytest.mark.parametrize("name", ["x.parquet", "x.log"])
def test_the_same_log_gives_the_same_bytes(tmp_path, log_maker, name):
    log = log_maker(n_sweeps=3, n_returns=2, arrays=("intensity", "label", "element"))
    written = []
    for folder in ("a", "b", "c"):
        (tmp_path / folder).mkdir()
        target = tmp_path / folder / name
        if folder == "c":
            convert(open_log(tmp_path / "a" / name), target)
        else:
            write_log(log, target)
        files = [target] if target.is_file() else sorted(target.iterdir())
        written.append([(file.name, file.read_bytes()) for file in files])
    assert written[0] == written[1] == written[2]
