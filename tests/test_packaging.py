# SPDX-License-Identifier: Apache-2.0
"""What is shipped fits together: one version, no traces of a machine, a quick command line, a set-up that explains."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import hedgerow

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# Spelled in two parts, so that this file passes its own test.
REGISTRY_HOSTS = [
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "deb.debian" + ".org",
    "npmjs" + ".org",
    "anaconda" + ".org",
    "quay" + ".io",
    "ghcr" + ".io",
]
MACHINE_PATH = re.compile(r"(?<![\w.~$}/-])/(?:root|home|work|Users)/\w")


def tracked_files() -> list[Path]:
    """Everything that git has or would add."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"]
    try:
        listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (FileNotFoundError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def traces(text: str) -> list[str]:
    return [host for host in REGISTRY_HOSTS if host in text] + MACHINE_PATH.findall(text)


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~;\s]", requirement)[0].lower()


def test_installed_version_is_that_of_the_source():
    assert metadata.version("hedgerow") == hedgerow.__version__


def test_version_is_written_once():
    assert "version" not in PYPROJECT["project"]
    assert PYPROJECT["tool"]["scikit-build"]["metadata"]["version"]["input"] == "src/hedgerow/__init__.py"


def test_changelog_starts_with_the_current_version():
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[0] == hedgerow.__version__


def test_the_search_for_traces_finds_them():
    assert traces("index-url = https://" + REGISTRY_HOSTS[0] + "/simple") == [REGISTRY_HOSTS[0]]
    assert traces("open('/" + "home/ann/forest.pcd')") != []
    assert traces("see docs/work/plan.md and ~/home/x") == []


def test_no_file_names_a_registry_host_or_a_path_of_a_machine():
    found = {}
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        if hits := traces(text):
            found[str(path.relative_to(ROOT))] = hits
    assert found == {}


def test_no_lock_file_is_tracked():
    locks = {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "package-lock.json"}
    assert [path.name for path in tracked_files() if path.name in locks] == []


def test_make_builds_with_what_pip_would_build_with():
    requires, group = PYPROJECT["build-system"]["requires"], PYPROJECT["dependency-groups"]["build"]
    assert set(requires) <= set(group)


def test_pre_commit_runs_the_linters_that_make_runs():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    revisions = dict(re.findall(r"repo: \S*/(\S+)\n\s+rev: v(\S+)", hooks))
    pins = {name_of(pin): pin.split("==")[1] for pin in PYPROJECT["dependency-groups"]["lint"]}
    assert revisions["ruff-pre-commit"] == pins["ruff"]
    assert revisions["mirrors-clang-format"] == pins["clang-format"]


def test_help_imports_no_heavy_package():
    program = """
import sys
sys.argv = ["hedgerow", "--help"]
from hedgerow.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print("loaded:", *sorted({"matplotlib", "pyarrow", "scipy", "hedgerow._core"} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "demo" in run.stdout
    assert run.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.skipif(sys.platform == "win32", reason="make is not used on Windows")
@pytest.mark.parametrize(("has_apt", "reason"), [(True, "neither root nor sudo"), (False, "no apt-get")])
def test_setup_that_may_not_install_says_what_to_install(tmp_path: Path, has_apt: bool, reason: str):
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(ROOT / "tools" / "setup.sh", tools)
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("bash", "cat", "dirname", "env", "grep", "mkdir", "tail", "tr"):
        (commands / name).symlink_to(shutil.which(name) or name)
    for name, body in [("id", "echo 1000"), ("apt-get", "exit 9"), ("c++", "exit 1")]:
        if name != "apt-get" or has_apt:
            (commands / name).write_text(f"#!/bin/sh\n{body}\n")
            (commands / name).chmod(0o755)
    run = subprocess.run(
        [tools / "setup.sh"],
        env={"PATH": str(commands), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    [sentence] = run.stderr.splitlines()
    assert reason in sentence
    assert "libembree-dev" in sentence and "libtbb-dev" in sentence
    assert not (tmp_path / ".venv").exists()
