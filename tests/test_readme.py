# SPDX-License-Identifier: Apache-2.0
"""What the README and the pages behind it say is so: code runs, tables are those of the code, links lead somewhere."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import run

from hedgerow.cli import app
from hedgerow.models.registry import MODELS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
DRIVE = ROOT.parent / "shared" / "data" / "kitti_raw_sample" / "2011_09_26"


def python_blocks(text):
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


def run_code(code, folder):
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def section(text, title):
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(text):
    """The first cell of each row of a table, without its heading."""
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


def test_the_code_of_the_readme_runs(tmp_path):
    ten_lines, learning = python_blocks(README)
    run_code(ten_lines, tmp_path)
    assert (tmp_path / "drive.parquet").stat().st_size > 100_000
    (tmp_path / "out").mkdir()
    for name in ("first", "second"):  # as make demo calls them
        shutil.copy(tmp_path / "drive.parquet", tmp_path / "out" / f"{name}.parquet")
    printed = run_code("import hedgerow as hr\n" + learning, tmp_path)
    assert "| Hits found [%] |" in printed
    (tmp_path / "site.world").rename(tmp_path / "out" / "trail.world")
    [quick_start] = python_blocks((ROOT / "docs" / "quick_start.md").read_text(encoding="utf-8"))
    assert "of the real beams returned" in run_code(quick_start, tmp_path)


def test_tables_of_sensors_and_formats_are_those_of_the_code():
    spec = importlib.util.spec_from_file_location("readme_tables", ROOT / "tools" / "readme_tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.with_tables(README) == README, "run python tools/readme_tables.py"


def test_table_of_worlds_has_every_model_once():
    *models, scene = first_cells(section(README, "Worlds"))
    assert scene == "a scene file"
    assert sorted(models) == sorted(f"`{name}`" for name in MODELS)


def test_table_of_commands_has_every_command():
    named = " ".join(first_cells(section(README, "Command line"))) + " `hedgerow models`"
    assert "`hedgerow models`" in section(README, "Command line")
    missing = [name for name in app if not name.startswith("-") and not re.search(rf"[` ]{name}[` ]", named)]
    assert missing == []


def test_forecasts_are_those_of_the_page_on_recordings():
    page = (ROOT / "docs" / "results" / "recordings.md").read_text(encoding="utf-8")
    labels = ("CRPS of the range [m]", "Brier score of returns", "-log L of the density, mean", "Spread of ranges")
    section_text = section(README, "Measured: fidelity")
    lines = [
        line for line in section_text.splitlines() if re.match(r"\|.*\| `(topdown|hybrid|refined)` \|.* m \|", line)
    ]
    names = re.findall(r"real_fidelity.py DATA --only ([\w-]+)`", section_text)
    assert len(lines) == 3 * len(names) > 0
    for number, line in enumerate(lines):
        table = re.search(rf"--only {names[number // 3]}\n.*?\n(\|.*?)\n\n", page, flags=re.DOTALL)
        assert table is not None
        rows = [[cell.strip(" *") for cell in row.split("|")[1:-1]] for row in table[1].splitlines()]
        cells = [cell.strip(" `") for cell in line.split("|")[1:-1]]
        column = rows[0].index(cells[1])
        measured = {row[0]: row[column] for row in rows}
        shown = [float(cell.split()[0]) for cell in cells[2:6]]
        assert shown == pytest.approx([float(measured[label]) for label in labels], abs=0.00501)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.slow  # ten seconds of work
@pytest.mark.skipif(not DRIVE.is_dir(), reason="needs the recording in ../shared/data")
def test_every_command_of_the_page_on_own_logs_does_what_it_says(tmp_path):
    text = (ROOT / "docs" / "your_own_log.md").read_text(encoding="utf-8")
    (tmp_path / "2011_09_26").symlink_to(DRIVE.resolve())
    poses = re.search(r"\$ cat way.tum\n((?:    [#\d].*\n)+)", text)
    assert poses is not None
    (tmp_path / "way.tum").write_text("".join(line.strip() + "\n" for line in poses[1].splitlines()))
    commands = re.findall(r"^    \$ hedgerow (.*)\n((?:    [^$].*\n)*)", text, flags=re.M)
    assert len(commands) == 8
    for words, promised in commands:
        if words.startswith("view"):  # has no end of its own
            continue
        done = run(*words.split(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        found = " ".join(done.stdout.split())
        for line in promised.splitlines():
            said = re.sub(r" in [\d.]+ s$", "", " ".join(line.split()).removesuffix(" ..."))
            assert said in found, words
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "92.9 % of the real returns" in " ".join(text.split()) and "92.9 % of the real returns" in report
    assert "within 14.6" in " ".join(text.split()) and "within 14.6" in report
