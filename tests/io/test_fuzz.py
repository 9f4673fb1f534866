# SPDX-License-Identifier: Apache-2.0
"""Every reader against damage: a good file cut off, with bytes changed, or nothing but random bytes.

Only HedgerowError may come out, in one line, and what is converted is written whole or not at all. Seeded, so that a
failure comes again. tools/fuzz.py does much more of this; the inputs that it kept are read here once more.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.io.convert import convert
from hedgerow.io.formats import FORMATS, format_of

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))  # tools are scripts, not a package
from fuzzing.kinds import BY_NAME, KINDS

ROOT = Path(__file__).parents[2]
N_TRIES = 25
MOST_S = 20  # no reader may hang; a good one needs a tenth of a second
LOGS = [kind for kind in KINDS if kind.open_log is not None]
KEPT = ROOT / "tests" / "data" / "fuzz"
SAVED = sorted(f"{each.parent.name}/{each.name}" for each in KEPT.glob("*/*"))


def damaged(data: bytes, rng: np.random.Generator, how: str) -> bytes:
    if how == "cut":
        return data[: int(rng.integers(0, len(data)))]
    if how == "random":
        return rng.bytes(int(rng.integers(0, 400)))
    changed = bytearray(data)
    # Mostly near the start, where headers are.
    for at in (rng.random(int(rng.integers(1, 6))) ** 3 * len(data)).astype(int):
        changed[at] = int(rng.integers(0, 256))
    return bytes(changed)


def try_to_convert(kind, path, target) -> bool:
    """Tell whether it could be converted; anything but one clear sentence fails the test."""
    try:
        convert(kind.open_log(path), target)
    except HedgerowError as error:
        assert 10 < len(str(error)) < 700
        assert "\n" not in str(error)
        assert not target.exists()
        return False
    log = hr.read_log(target)
    assert np.isfinite(log.points()).all()
    return True


@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
def test_every_format_that_is_read_is_tried(tmp_path):
    found = set()
    for kind in LOGS:
        (tmp_path / kind.name).mkdir()
        found.add(format_of(kind.make(tmp_path / kind.name), reading=True).name)
    assert found == {each.name for each in FORMATS if each.reads}


@pytest.mark.parametrize("kind", LOGS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("how", ["cut", "random", "changed"])
@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
def test_damage_is_refused_or_harmless(tmp_path, kind, how):
    rng = np.random.default_rng([ord(letter) for letter in kind.name + how])
    good = tmp_path / "good"
    good.mkdir()
    path = kind.make(good)
    files = sorted(each for each in good.rglob("*") if each.is_file())
    out = tmp_path / "out"
    out.mkdir()
    assert try_to_convert(kind, path, out / "good.parquet")
    n_refused = 0
    for attempt in range(N_TRIES):
        shutil.copytree(good, tmp_path / "bad")
        file = files[int(rng.integers(0, len(files)))].relative_to(good)
        (tmp_path / "bad" / file).write_bytes(damaged((good / file).read_bytes(), rng, how))
        bad, target = tmp_path / "bad" / path.relative_to(good), out / f"{attempt}.parquet"
        begin_s = time.monotonic()
        n_refused += not try_to_convert(kind, bad, target)
        assert time.monotonic() - begin_s < MOST_S
        shutil.rmtree(tmp_path / "bad")
    assert not [each.name for each in out.iterdir() if each.name.startswith(".")]  # no temporaries
    # A single changed byte in a number is often another good number; bytes at random never make a log.
    assert n_refused >= (N_TRIES // 2 if how != "changed" else 1)


@pytest.fixture(scope="session")
def replayed(tmp_path_factory):
    """What reading the kept inputs again found, by input; in a process of its own, which may fork."""
    told = tmp_path_factory.mktemp("replayed") / "told.json"
    command = [sys.executable, str(ROOT / "tools" / "fuzz.py"), "--replay", str(KEPT), "--json", str(told)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert told.exists(), done.stderr
    return json.loads(told.read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="the fuzzer forks, and limits memory as Linux does")
@pytest.mark.parametrize("name", SAVED)
def test_what_the_fuzzer_found_stays_mended(name, replayed):
    assert replayed[name] == []


def test_kept_inputs_are_of_kinds_that_there_are():
    assert {name.partition("/")[0] for name in SAVED} <= set(BY_NAME)
