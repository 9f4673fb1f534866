# SPDX-License-Identifier: Apache-2.0
"""Chains go on where they were stopped, and make again what is lost."""

import pytest
from made_rows import made_row

from hedgerow import FileError
from hedgerow.bench import chain as chains
from hedgerow.bench.chain import Chain, Task, in_words, memory_mb
from hedgerow.bench.journal import Journal


class Measuring:
    """Stands for the processes: makes the files, and can stop before a step."""

    def __init__(self):
        self.done = []
        self.stop_before = None

    def __call__(self, step, arguments, *, threads=None):
        if step == self.stop_before:
            raise KeyboardInterrupt
        self.done.append(step)
        if "output" in arguments:
            arguments["output"].mkdir()
        return {"seconds": 1.0, "beams": 10}


@pytest.fixture
def measuring(monkeypatch):
    made = Measuring()
    monkeypatch.setattr(chains, "measure", made)
    return made


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "scale.json", "scale")


@pytest.fixture
def chain(tmp_path):
    folder = tmp_path / "work" / "a"
    log, world = folder / "log", folder / "world"
    tasks = (
        Task("recording", {"step": "fire"}, "fire", {"output": log}, log),
        Task("learning", {"step": "learn"}, "learn", {"output": world}, world),
        Task("comparing", {"step": "compare"}, "compare", {}),
    )
    return Chain("beams", folder, tasks, {"scene.toml": "a scene"})


def stopped(chain, journal, measuring, step, said=lambda line: None):
    measuring.stop_before = step
    with pytest.raises(KeyboardInterrupt):
        chain.run(journal, said)
    measuring.stop_before = None
    assert (chain.folder / "scene.toml").read_text() == "a scene"


def test_rows_come_one_by_one_and_files_go_at_the_end(chain, journal, measuring):
    said = []
    chain.run(journal, said.append)
    assert measuring.done == ["fire", "learn", "compare"]
    assert [line.partition(": 1.00 s, 0.00 M beams/s")[0] for line in said] == ["recording", "learning", "comparing"]
    assert not chain.folder.exists()
    assert chain.missing(Journal(journal.path, "scale")) == []
    chain.run(journal, said.append)
    assert len(said) == 3


def test_a_stopped_chain_goes_on_behind_its_last_row(chain, journal, measuring):
    stopped(chain, journal, measuring, "compare")
    again = Journal(journal.path, "scale")
    assert [task.step for task in chain.missing(again)] == ["compare"]
    chain.run(again, str)
    assert measuring.done == ["fire", "learn", "compare"]


def test_what_is_lost_is_made_again_and_nothing_else(chain, journal, measuring):
    stopped(chain, journal, measuring, "compare")
    (chain.folder / "log").rmdir()
    chain.run(journal, str)
    assert measuring.done == ["fire", "learn", "fire", "compare"]


def test_files_that_nothing_needs_any_more_are_not_made_again(chain, journal, measuring):
    chain.run(journal, str)
    journal.forget("beams", {"step": "learn"})
    measuring.done.clear()
    chain.run(journal, str)
    assert measuring.done == ["fire", "learn"]


def test_a_size_names_other_rows(chain, journal, measuring):
    chain.of_size("small").run(journal, str)
    assert chain.of_size("small").missing(journal) == []
    assert len(chain.of_size("full").missing(journal)) == 3
    assert [row.text("step") for row in journal.of("beams", "small")] == ["fire", "learn", "compare"]


def test_a_file_in_the_way_is_one_sentence(chain, journal, measuring):
    chain.folder.parent.write_text("a file")
    with pytest.raises(FileError, match="cannot make this folder"):
        chain.run(journal, str)


def test_a_row_in_words_has_the_memory_of_the_process_and_of_its_workers():
    row = made_row("workers", {}, worker_mb=[50.4, 60.6], elements=1234)
    assert in_words(row) == (
        "2.00 s, 3.50 s of the processors, 0.50 M beams/s, 1,234 elements, opened in 0.50 s, "
        "workers started in 1.5 s, 100 + 50 + 61 MB, load 0.5"
    )
    assert memory_mb(row) == pytest.approx(211.0)
    assert memory_mb(made_row("workers", {}, own_mb=None)) != memory_mb(row)
