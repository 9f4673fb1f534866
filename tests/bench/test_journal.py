# SPDX-License-Identifier: Apache-2.0
"""Rows on the disk: what is there is found again, what is of another machine or version is not."""

import json

import pytest

from hedgerow import FileError
from hedgerow.bench import journal as journals
from hedgerow.bench.journal import Journal

SETTINGS = {"beams": 1000, "step": "fire", "size": "small"}


@pytest.fixture
def path(tmp_path):
    journal = Journal(tmp_path / "scale.json", "scale")
    journal.add("beams", SETTINGS, {"seconds": 2.5, "worker_mb": [1.0, 2.0]}, 0.75)
    journal.add("tiles", {"tiles": 10, "size": "full"}, {"seconds": 1.0}, 0.1)
    return journal.path


def test_rows_are_found_again_by_their_settings(path):
    journal = Journal(path, "scale")
    row = journal.find("beams", dict(reversed(SETTINGS.items())))
    assert row is not None
    assert (row.values, row.load) == ({"seconds": 2.5, "worker_mb": [1.0, 2.0]}, 0.75)
    assert (row.number("beams"), row.text("step")) == (1000.0, "fire")
    assert journal.find("beams", SETTINGS | {"beams": 1001}) is None
    assert journal.find("workers", SETTINGS) is None
    assert [each.part for each in journal] == ["beams", "tiles"]
    assert [each.part for each in journal.of("tiles", "full")] == ["tiles"]
    assert journal.of("tiles", "small") == []


def test_a_row_replaces_the_one_before_it(path):
    journal = Journal(path, "scale")
    journal.add("beams", SETTINGS, {"seconds": 9.0}, 0.0)
    rows = list(Journal(path, "scale"))
    assert [(row.part, row.values["seconds"]) for row in rows] == [("tiles", 1.0), ("beams", 9.0)]


@pytest.mark.parametrize("field", ["version", "machine"])
def test_rows_of_another_version_or_machine_do_not_count(path, field):
    content = json.loads(path.read_text())
    content["rows"][0][field] = "another"
    path.write_text(json.dumps(content))
    journal = Journal(path, "scale")
    assert journal.find("beams", SETTINGS) is None
    assert [row.part for row in journal] == ["tiles"]


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "3", '{"benchmark": "scale"}', '{"benchmark": "other", "rows": []}'),
        *(json.dumps({"benchmark": "scale", "rows": [row]}) for row in (3, {}, {"part": "beams"})),
    ],
)
def test_other_files_are_refused_and_stay(tmp_path, content):
    path = tmp_path / "scale.json"
    path.write_text(content)
    with pytest.raises(FileError, match="is no file of hedgerow bench scale"):
        Journal(path, "scale")
    assert path.read_text() == content


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("values", []),
        ("values", {"seconds": "long"}),
        ("values", {"seconds": 0}),
        ("values", {"seconds": 1, "worker_mb": ["much"]}),
        ("settings", {"step": {}}),
        ("load", "high"),
    ],
)
def test_a_row_with_a_value_of_another_kind_is_refused(path, field, value):
    content = json.loads(path.read_text())
    content["rows"][0][field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(FileError, match=r"scale\.json: is no file"):
        Journal(path, "scale")


def test_the_machine_is_named_with_its_cores(monkeypatch):
    monkeypatch.setattr(journals, "n_cores", lambda: 7)
    assert ", 7 cores, " in journals.machine()
