# SPDX-License-Identifier: Apache-2.0
"""Files and folders appear complete or not at all, and never at the cost of something else."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow.base.atomic import atomic_file, atomic_folder, output_folder, require_place
from hedgerow.errors import FileError

FAILURES = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), RuntimeError("bug")]


@pytest.mark.parametrize("durable", [False, True])
def test_file_appears_when_the_block_ends(tmp_path, durable):
    with atomic_file(tmp_path / "a.txt", durable=durable) as temporary:
        temporary.write_text("new")
        assert temporary.parent.parent == tmp_path
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_failure_leaves_the_old_file(tmp_path, failure):
    (tmp_path / "a.txt").write_text("old")
    expected = FileError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected), atomic_file(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise failure
    assert (tmp_path / "a.txt").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
@pytest.mark.parametrize("old", [False, True])
def test_failure_leaves_the_old_folder(tmp_path, failure, old):
    if old:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "x.part").write_text("old")
    expected = FileError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected), atomic_folder(tmp_path / "a", replaces=["*.part"]) as temporary:
        (temporary / "x.part").write_text("half")
        (temporary / "deep").mkdir()
        raise failure
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")] == ([Path("a/x.part")] if old else [])
    assert len(list(tmp_path.iterdir())) == old


@pytest.mark.parametrize("durable", [False, True])
def test_folder_is_replaced_as_a_whole(tmp_path, durable):
    for names in (["1.part", "2.part"], ["3.part"]):
        with atomic_folder(tmp_path / "a", replaces=["*.part"], durable=durable) as temporary:
            for name in names:
                (temporary / name).write_text(name)
        assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_old_folder_comes_back_if_the_last_rename_fails(tmp_path, monkeypatch):
    with atomic_folder(tmp_path / "a", replaces=[]) as temporary:
        (temporary / "old.txt").write_text("old")
    rename = Path.rename

    def failing(self, target):
        if self.parent.name.endswith(".part") and self.name != "old":
            raise PermissionError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    replacing = atomic_folder(tmp_path / "a", replaces=["old.txt"])
    with pytest.raises(FileError, match="Permission denied"), replacing as temporary:
        (temporary / "new.txt").write_text("new")
    assert (tmp_path / "a" / "old.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_folder_that_holds_other_things_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    message = r"thesis: the folder holds other things \(chapter.tex\); choose another name"
    with pytest.raises(FileError, match=message), atomic_folder(tmp_path / "thesis", replaces=["part-*.parquet"]):
        pass
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with atomic_file(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_missing_parent_and_wrong_kind_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="no/such does not exist; create it first"):
        atomic_file(tmp_path / "no" / "such" / "a.txt").__enter__()
    with pytest.raises(FileError, match="folder: is a folder; give the name of a file"):
        atomic_file(tmp_path / "folder").__enter__()
    with pytest.raises(FileError, match="file: is a file; give the name of a folder"):
        atomic_folder(tmp_path / "file", replaces=[]).__enter__()


def test_a_place_that_cannot_be_written_is_refused_beforehand(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file"):
        require_place(tmp_path / "file", folder=True)
    (tmp_path / "file").unlink()
    require_place(tmp_path / "new.txt")
    require_place(tmp_path, folder=True)
    with pytest.raises(FileError, match="does not exist"):
        require_place(tmp_path / "none" / "new.txt")
    with pytest.raises(FileError, match="is a folder"):
        require_place(tmp_path)

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(Path, "touch", refuse)  # root may write everywhere
    with pytest.raises(FileError, match=r"new\.txt: cannot write \(Permission denied\)"):
        require_place(tmp_path / "new.txt")
    assert list(tmp_path.iterdir()) == []


def test_an_output_folder_that_stays_empty_goes_again(tmp_path):
    for error in (FileError("full"), KeyboardInterrupt()):
        with pytest.raises(type(error)), output_folder(tmp_path / "a" / "b"):
            assert (tmp_path / "a" / "b").is_dir()
            raise error
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "old").mkdir()
    with output_folder(tmp_path / "old"), output_folder(tmp_path / "new"):
        (tmp_path / "new" / "file").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]
    with pytest.raises(FileError, match="cannot make this folder"), output_folder(tmp_path / "new" / "file" / "c"):
        pass


def write_a_file(path):
    with atomic_file(path) as temporary:
        temporary.write_text("new")


def write_a_folder(path):
    with atomic_folder(path, replaces=["*"]) as temporary:
        (temporary / "a").write_text("new")


def interrupted_at(call, write, path):
    """Whether the write was interrupted at this call, counted from its beginning; false if it has not so many."""
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        # No signal comes at a return, and what is raised there would pass by the finally of a generator.
        if event == "return" or frame.f_code is interrupted_at.__code__:
            return
        calls += 1
        if calls == call:
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(count)
    try:
        write(path)
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize(("write", "inside"), [(write_a_file, ""), (write_a_folder, "a")])
def test_an_interrupt_at_any_call_leaves_the_old_or_the_new_and_nothing_else(tmp_path, write, inside):
    write(tmp_path / "x")
    call = 0
    contents = set()
    while call == 0 or interrupted_at(call, write, tmp_path / "x"):
        call += 1
        assert [path.name for path in tmp_path.iterdir()] == ["x"], f"at call {call}"
        contents.add((tmp_path / "x" / inside).read_text())
        (tmp_path / "x" / inside).write_text("old")
    assert call > 50
    assert contents == {"old", "new"}


KILLED = """
import os, signal, sys
from hedgerow.base.atomic import atomic_file, atomic_folder
make = atomic_folder(sys.argv[1], replaces=["*"]) if sys.argv[2] == "folder" else atomic_file(sys.argv[1])
with make as temporary:
    (temporary / "x.txt" if temporary.is_dir() else temporary).write_text("half")
    print("writing", flush=True)
    sys.stdin.read(1)
"""
posix = pytest.mark.skipif(os.name != "posix", reason="there are no locks on folders")


@posix
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_has_is_not(tmp_path, kind):
    command = [sys.executable, "-c", KILLED, str(tmp_path / "a"), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"writing\n"
        with atomic_file(tmp_path / "b.txt") as temporary:
            temporary.write_text("b")
        assert len(list(tmp_path.glob(".a.*.part"))) == 1  # it lives
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(list(tmp_path.glob(".a.*.part"))) == 1
    with atomic_file(tmp_path / "c.txt") as temporary:
        temporary.write_text("c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt", "c.txt"]


@posix
def test_a_folder_that_was_about_to_be_replaced_comes_back(tmp_path):
    old = tmp_path / ".site.world.0123abcd.part" / "old"
    old.mkdir(parents=True)
    (old / "table").write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_folder(tmp_path / "site.world", replaces=["table"]):
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["site.world"]
    assert (tmp_path / "site.world" / "table").read_text() == "old"


@posix
def test_folders_that_only_look_alike_stay(tmp_path):
    for name in (".a.part", "a.0123abcd.part", ".a.0123abcd.partial", ".a.0123abcg.part"):
        (tmp_path / name).mkdir()
    (tmp_path / ".a.0123abcd.part").write_text("a file of another program")
    with atomic_file(tmp_path / "c.txt") as temporary:
        temporary.write_text("c")
    assert len(list(tmp_path.iterdir())) == 6


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root, who may become nobody")
def test_a_read_only_folder_is_told_in_one_sentence(tmp_path):
    code = (
        "import os, sys\n"
        "from hedgerow.base.atomic import atomic_file, atomic_folder, require_place\n"
        "from hedgerow.errors import FileError\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "for make in (atomic_file, lambda p: atomic_folder(p, replaces=[]), require_place):\n"
        "    try:\n"
        "        context = make(sys.argv[1])\n"
        "        context.__enter__()\n"
        "    except FileError as error: print(error)\n"
    )
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"{tmp_path / 'a'}: cannot write (Permission denied)"] * 3, done.stderr
