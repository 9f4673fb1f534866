# SPDX-License-Identifier: Apache-2.0
"""What CONTRIBUTING.md says is so: files are there, layers stand in their order, every kernel is listed."""

import inspect
import re
import tomllib
from pathlib import Path

from hedgerow import _core

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
IMAGINARY = ("NAME", "weather", "cpp/gpu")
ROOMS = [ROOT, ROOT / "src" / "hedgerow"]
WRITTEN = re.findall(r"`([^`\n]+)`", PAGE)


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_files_that_it_names_are_there():
    paths = [
        word for word in WRITTEN if re.fullmatch(r"[\w./-]+(\.(py|md|toml|cpp|hpp|txt)|/)|(tests|src|cpp)/[\w/]+", word)
    ]
    paths = [path for path in paths if not any(word in path for word in IMAGINARY)]
    assert len(paths) > 50
    assert [path for path in paths if not any((room / path).exists() for room in ROOMS)] == []


def test_layers_stand_in_the_order_that_is_checked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [contract] = project["tool"]["importlinter"]["contracts"]
    table = section("The rooms").split("The core, `cpp/`")[0]
    named = [re.sub(r"(/|\.py)$", "", word) for word in re.findall(r"^\| `([^`]+)` \|", table, flags=re.M)]
    assert named == contract["layers"]


def test_every_kernel_and_every_name_of_the_core_is_listed():
    text = section("The seam for another ray tracer")
    kernels = [name for name, each in vars(_core).items() if callable(each) and not inspect.isclass(each)]
    of_scenes = [name for name in vars(_core.Scene) if not name.startswith("_")]
    assert [name for name in (*kernels, *of_scenes) if not re.search(rf"[`.]{name}`", text)] == []


def test_names_of_the_core_that_it_lists_are_there():
    text = section("The seam for another ray tracer")
    named = set(re.findall(r"`([A-Z]\w+)(?:\.\w+)?`", text)) - {"None", "TypeError"}
    assert [name for name in named if not hasattr(_core, name)] == []
