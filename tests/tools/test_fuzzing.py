# SPDX-License-Identifier: Apache-2.0
"""The fuzzer finds what it is for: readers are planted that fail in each of the ways, and are named."""

import os
import sys
import time
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("the fuzzer forks, and limits memory as Linux does", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # tools are scripts, not a package
from fuzzing import guided, isolate, verdict
from fuzzing.campaign import Campaign
from fuzzing.change import Seed, change_input
from fuzzing.isolate import run_all
from fuzzing.kinds import Kind
from fuzzing.reproducers import keep, kept, kept_below, shrink

from hedgerow.errors import FileError, HedgerowError, warn

GOOD, BAD = b"good", b"xxxx bad xxxx"
SEED = Seed({"x.json": GOOD}, "x.json")


def planted(fault):
    """A kind whose reader has a fault that shows where the file has the word "bad"."""

    def make(folder):
        (folder / "x.json").write_bytes(GOOD)
        return folder / "x.json"

    def read(path):
        if b"bad" in path.read_bytes():
            fault(path)

    return Kind("planted", "nowhere", make, (read,))


def found_with(fault, folder, inputs=(BAD,)):
    """What the fuzzer says about inputs of which some are bad."""
    rows = run_all(planted(fault), SEED, [{"x.json": data} for data in inputs], folder / "slot")
    return [[each.what for each in row] for row in rows], [each for row in rows for each in row]


def test_what_is_read_or_refused_in_a_sentence_is_no_finding(tmp_path):
    def refuse(path):
        warn(f"{path}: is read as if it were good")
        raise FileError(f"{path}: is bad, and refused in one sentence")

    assert found_with(refuse, tmp_path, [GOOD, BAD])[0] == [[], []]


def test_an_exception_is_found_and_its_place_named(tmp_path):
    def fault(path):
        {}["absent"]

    whats, [finding] = found_with(fault, tmp_path, [GOOD, BAD, GOOD])
    assert whats == [[], ["traceback"], []]
    assert finding.where.startswith("KeyError") and "test_fuzzing.py:fault" in finding.where


def test_what_is_no_exception_is_found_too(tmp_path):
    def fault(path):
        raise type("PanicException", (BaseException,), {})("index out of range")

    assert "PanicException" in found_with(fault, tmp_path)[1][0].where


def test_a_loop_without_end_is_found_by_its_processor_time(tmp_path, monkeypatch):
    monkeypatch.setattr(verdict, "LIMIT_S", 0.2)

    def fault(path):
        while True:
            pass

    whats, [finding] = found_with(fault, tmp_path, [BAD, GOOD])
    assert whats == [["hang"], []]
    assert "test_fuzzing.py:fault" in finding.where


def test_waiting_without_end_is_found_by_the_clock(tmp_path, monkeypatch):
    monkeypatch.setattr(isolate, "CLOCK_S", 0.7)
    whats, _ = found_with(lambda path: time.sleep(60), tmp_path, [BAD, GOOD])
    assert whats == [["hang"], []]


def test_too_much_memory_is_found_even_if_the_reader_says_a_sentence(tmp_path):
    def bare(path):
        np.ones(2**28)

    def said(path):
        try:
            np.ones(2**28)
        except MemoryError as error:
            raise FileError(f"{path}: is damaged") from error

    assert found_with(bare, tmp_path)[0] == [["memory"]]
    assert found_with(said, tmp_path)[0] == [["memory"]]
    assert found_with(lambda path: np.ones(2**22), tmp_path)[0] == [[]]


def test_an_abort_ends_one_input_and_the_next_are_read(tmp_path):
    whats, [first, _] = found_with(lambda path: os.abort(), tmp_path, [GOOD, BAD, GOOD, BAD])
    assert whats == [[], ["abort"], [], ["abort"]]
    assert "SIGABRT" in first.where


def test_what_a_reader_prints_is_found(tmp_path):
    assert found_with(lambda path: print("look"), tmp_path)[0] == [["prints"]]
    assert found_with(lambda path: os.write(2, b"look"), tmp_path)[0] == [["prints"]]


def test_warnings_of_libraries_are_found(tmp_path):
    def fault(path):
        np.log(np.zeros(1))
        warnings.warn("old", DeprecationWarning, stacklevel=1)  # concerns who writes code

    whats, [finding] = found_with(fault, tmp_path)
    assert whats == [["warns"]] and finding.where.startswith("RuntimeWarning")


@pytest.mark.parametrize("said", ["two\nlines of text", "a \x1b[31mcolour", "x" * 600, "short"])
def test_bad_sentences_are_found(tmp_path, said):
    class Raw(HedgerowError):  # others make their texts fit to be printed themselves
        def __str__(self):
            return said

    def fault(path):
        raise Raw

    assert found_with(fault, tmp_path)[0] == [["sentence"]]


def test_files_left_behind_are_found_and_removed(tmp_path):
    whats, _ = found_with(lambda path: path.with_name(".x.part").touch(), tmp_path, [BAD, GOOD])
    assert whats == [["leftover"], []]


def test_same_seed_same_inputs():
    seed = Seed({"a.toml": b"x = 1\ny = [1, 2]\n", "b.bin": bytes(50)}, ".")
    first, again = ([change_input(seed, Random(f"1/{k}")) for k in range(200)] for _ in range(2))
    assert first == again
    assert len({str(each) for each in first}) > 150


def test_a_finding_is_made_smaller_kept_and_read_again(tmp_path):
    def fault(path):
        {}["absent"]

    kind = planted(fault)
    data = b"a" * 20 + b"bad" + b"b" * 30
    [[finding]] = run_all(kind, SEED, [{"x.json": data}], tmp_path / "slot")
    smaller = shrink(kind, SEED, {"x.json": data}, finding, tmp_path / "slot")
    assert smaller is not None and smaller["x.json"] == b"bad"
    path = keep(kind, SEED, smaller, finding, tmp_path / "kept")
    assert kept_below(tmp_path / "kept", {"planted": kind}) == [(kind, path)]
    assert run_all(kind, SEED, [kept(path, SEED)], tmp_path / "slot") == [[finding]]


def test_a_campaign_counts_goes_on_where_it_ended_and_finds_the_fault(tmp_path):
    def fault(path):
        {}["absent"]

    kind = planted(fault)
    seed = Seed({"x.json": b'{"bad": 1}'}, "x.json")
    campaign = Campaign([kind], {"planted": seed}, 1)
    # The good input must be read, so the fault waits for a change.
    reads = (lambda path: fault(path) if b"bad" not in path.read_bytes() else None,)
    campaign.kinds = [Kind("planted", "nowhere", kind.make, reads)]
    campaign.run(2, tmp_path, lambda so_far: so_far.n_inputs >= 300, lambda line: None)
    assert campaign.n_inputs >= 300
    [entry] = campaign.found.values()
    assert entry.hit.finding.what == "traceback" and entry.times == campaign.counts["planted"].findings
    assert b"bad" not in (campaign.changes_of(entry.hit)["x.json"] or b"")
    assert campaign.totals()["inputs"] == campaign.n_inputs


@pytest.mark.slow
@pytest.mark.skipif(not guided.is_there(), reason="Atheris is not installed; make fuzz installs it where it can")
def test_atheris_keeps_inputs_that_reach_new_code(tmp_path):
    process = guided.start(["tum"], 6.0, 1, tmp_path / "guided")
    assert process.wait() == 0
    batches = guided.results(tmp_path / "guided")
    assert {name for name, _ in batches} == {"tum"}
    assert sum(batch.n_done for _, batch in batches) > 100
    assert len(list((tmp_path / "guided" / "corpus" / "tum").iterdir())) > 3
