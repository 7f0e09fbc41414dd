# SPDX-License-Identifier: GPL-2.0-or-later
"""tree: sources: what belongs to a tree, and what its files are when it is checked out."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kdelta.kernels.sources.git import GitStore
from kdelta.spec.errors import LabError, UserError
from tests.conftest import FakeProgram
from tests.kernels.git_trees import (
    MAKEFILE,
    SOURCES,
    checkout,
    commit,
    files,
    git,
    source,
    state,
    write_tree,
)

pytestmark = pytest.mark.usefixtures("own_cache")
LISTED = sorted([*SOURCES, "scripts/link"])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "linux")


def test_plain_folder(tree: Path, own_cache: Path) -> None:
    before = state(tree)
    found = source(f"tree:{tree}")
    assert sorted(files(found)) == LISTED
    assert found.name == "linux"
    assert found.folder.parent == own_cache / "trees"
    assert found.folder.name.startswith("linux-")
    assert source(str(tree)) == found
    assert state(tree) == before


def test_checked_out_is_the_tree(tree: Path) -> None:
    src = checkout(source(f"tree:{tree}"))
    assert sorted(state(src)) == sorted(state(tree))
    for name, (mode, _, content) in state(tree).items():
        assert state(src)[name][2] == content
        assert bool(state(src)[name][0] & 0o100) == bool(mode & 0o100)


def test_what_a_build_left_in_a_plain_folder_is_no_part_of_it(tree: Path) -> None:
    found = source(f"tree:{tree}")
    made = ("kernel/fork.o", "vmlinux", ".config", "include/generated/x.h", "kernel/made.h")
    write_tree(tree, dict.fromkeys(made, "made"))
    assert source(f"tree:{tree}") == found
    assert not (checkout(found) / "vmlinux").exists()


def test_ignore_file_of_a_distribution_hides_nothing(tree: Path) -> None:
    """Debian's source ignores all of itself: its packaging is what they keep in git."""
    ignore = tree / ".gitignore"
    ignore.write_text(ignore.read_text() + "/*\n!/debian/\n")
    write_tree(tree, {"vmlinux": "made", "kernel/fork.o": "made", ".mailmap": "x"})
    assert sorted(files(source(f"tree:{tree}"))) == sorted([*LISTED, ".mailmap"])


def test_a_tree_is_known_by_its_content(tree: Path) -> None:
    found = source(f"tree:{tree}")
    fork = tree / "kernel/fork.c"
    text = fork.read_text()
    fork.write_text(text + "int more;\n")
    (tree / "Kbuild").unlink()
    (tree / "new.c").write_text("new\n")
    changed = source(f"tree:{tree}")
    assert changed.tree != found.tree
    assert sorted(files(changed)) == sorted({*LISTED, "new.c"} - {"Kbuild"})
    assert files(changed)["kernel/fork.c"].endswith("int more;\n")
    fork.write_text(text)
    (tree / "new.c").unlink()
    write_tree(tree, {"Kbuild": "obj-y += kernel/\n"})
    assert source(f"tree:{tree}") == found


def test_equal_folders_are_equal_trees(tree: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tree, tmp_path / "copy", symlinks=True)
    assert source(f"tree:{copy}").tree == source(f"tree:{tree}").tree
    assert source(f"tree:{copy}").folder != source(f"tree:{tree}").folder


def test_a_file_that_became_a_folder_and_back(tree: Path) -> None:
    found = source(f"tree:{tree}")
    (tree / "Kbuild").unlink()
    write_tree(tree, {"Kbuild/x": "x"})
    assert "Kbuild/x" in files(source(f"tree:{tree}"))
    shutil.rmtree(tree / "Kbuild")
    write_tree(tree, {"Kbuild": "obj-y += kernel/\n"})
    assert source(f"tree:{tree}") == found


def test_bytes_are_taken_as_they_are(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither attributes nor the user's settings convert line ends."""
    write_tree(tree, {".gitattributes": "* text=auto eol=crlf ident\n", "id.c": "$Id$\n"})
    (tree / "crlf.c").write_bytes(b"a\r\nb\n")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.autocrlf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    src = checkout(source(f"tree:{tree}"))
    assert (src / "crlf.c").read_bytes() == b"a\r\nb\n"
    assert (src / "id.c").read_bytes() == b"$Id$\n"


def test_names_that_are_no_utf8(tree: Path) -> None:
    name = os.fsencode(tree) + b'/kernel/a\xff "b"\n.c'
    with open(name, "w") as file:  # noqa: PTH123  (its name is bytes)
        file.write("x")
    src = checkout(source(f"tree:{tree}"))
    assert b'a\xff "b"\n.c' in os.listdir(os.fsencode(src) + b"/kernel")  # noqa: PTH208


def test_git_repository_as_it_stands(tree: Path) -> None:
    """Tracked files, changed ones, new ones; not what is ignored, here or by this repository."""
    (tree / "kernel/forced.o").write_text("tracked though ignored")
    git(tree, "init", "-q")
    git(tree, "add", "-f", "kernel/forced.o")
    commit(tree, "one")
    (tree / ".git/info/exclude").write_text("/notes\n")
    write_tree(tree, {"notes": "mine", "kernel/new.c": "new", "kernel/fork.o": "made"})
    write_tree(tree, {"kernel/Makefile": "changed\n"})
    (tree / "Kbuild").unlink()
    before = state(tree)
    found = source(f"tree:{tree}")
    expected = {*LISTED, "kernel/new.c", "kernel/forced.o"} - {"Kbuild"}
    assert sorted(files(found)) == sorted(expected)
    assert files(found)["kernel/Makefile"] == "changed\n"
    checkout(found)
    assert state(tree) == before


def test_worktree_of_a_repository(tree: Path, tmp_path: Path) -> None:
    commit(tree, "one")
    git(tree, "worktree", "add", "-q", str(tmp_path / "work"), "-b", "side")
    write_tree(tmp_path / "work", {"kernel/new.c": "new"})
    before = state(tmp_path)
    assert (tmp_path / "work/.git").is_file()
    assert sorted(files(source(f"tree:{tmp_path}/work"))) == sorted([*LISTED, "kernel/new.c"])
    assert state(tmp_path) == before


def test_dangling_git_file_makes_a_plain_folder(tree: Path) -> None:
    (tree / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert sorted(files(source(f"tree:{tree}"))) == LISTED


def test_tree_inside_another_repository(tree: Path) -> None:
    """A home folder in git that ignores what lies in it says nothing of the tree, though it may
    keep a file of it.
    """
    home = tree.parent
    (home / ".gitignore").write_text("*\n")
    git(home, "init", "-q")
    git(home, "add", "-f", str(tree / "Kconfig"))
    assert sorted(files(source(f"tree:{tree}"))) == LISTED


def test_tree_that_is_a_folder_of_a_repository(tmp_path: Path) -> None:
    write_tree(tmp_path / "sdk/linux")
    commit(tmp_path / "sdk", "one", other="x")
    assert sorted(files(source(f"tree:{tmp_path}/sdk/linux"))) == LISTED


@pytest.mark.parametrize("outer", ["plain", "git"])
def test_repository_inside_a_tree(tree: Path, outer: str) -> None:
    """A driver that is developed in a repository of its own, within the tree."""
    if outer == "git":
        commit(tree, "one")
    driver = write_tree(tree / "drivers/mine", {"mine.c": "mine", ".gitignore": "*.log\n"})
    commit(driver, "driver")
    write_tree(driver, {"new.c": "new", "x.log": "log"})
    below = ["drivers/mine/.gitignore", "drivers/mine/mine.c", "drivers/mine/new.c"]
    assert sorted(files(source(f"tree:{tree}"))) == sorted([*LISTED, *below])


def test_settings_of_a_hook_are_not_ours(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(tree, "one")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    monkeypatch.setenv("GIT_WORK_TREE", "/nowhere")
    assert sorted(files(source(f"tree:{tree}"))) == LISTED


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        (None, "there is no", "tree:"),
        ({"README": "x"}, "no kernel tree", "topmost folder"),
        ({"Makefile": "all:\n", "Kconfig": ""}, "no kernel tree", "topmost folder"),
        ({"Makefile": MAKEFILE}, "no kernel tree", "topmost folder"),
        ({"linux-6.12/Makefile": MAKEFILE, "linux-6.12/Kconfig": ""}, "no kernel", "linux-6.12"),
    ],
)
def test_what_is_no_kernel_tree(
    tmp_path: Path, own_cache: Path, content: dict[str, str] | None, message: str, hint: str
) -> None:
    if content is not None:
        write_tree(tmp_path / "x", content)
    with pytest.raises(UserError, match=message) as caught:
        source(f"tree:{tmp_path}/x")
    assert hint in caught.value.hint
    assert list((own_cache / "trees").glob("*/*")) == []


def test_output_of_a_build_names_its_source(tree: Path, tmp_path: Path) -> None:
    out = write_tree(tmp_path / "out", {"Makefile": f"include {tree}/Makefile\n", ".config": ""})
    (out / "source").symlink_to(tree)
    with pytest.raises(UserError, match="no kernel tree") as caught:
        source(f"tree:{out}")
    assert str(tree) in caught.value.hint


def test_cache_in_which_make_cannot_build(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a b", "a:b", "a=b", "a#b", "a$b"):
        monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / name))
        with pytest.raises(LabError, match="make cannot build") as caught:
            source(f"tree:{tree}")
        assert "KDELTA_CACHE_DIR" in caught.value.hint


def test_the_tree_itself_may_be_called_anything(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "my linux: 6=x +y")
    found = source(f"'tree:{tree}'")
    assert sorted(files(found)) == LISTED
    assert found.folder.name.startswith("my-linux-6-x-y-")


def times(src: Path) -> dict[str, int]:
    return {name: time for name, (mode, time, _) in state(src).items() if mode & 0o100000}


def test_switching_touches_only_what_differs(tree: Path) -> None:
    one = source(f"tree:{tree}")
    before = times(checkout(one))
    write_tree(tree, {"kernel/fork.c": "other\n", "new/file.c": "new\n"})
    (tree / "Kbuild").unlink()
    two = source(f"tree:{tree}")
    src = checkout(two)
    after = times(src)
    assert {n for n in after if after[n] != before.get(n)} == {"kernel/fork.c", "new/file.c"}
    assert set(before) - set(after) == {"Kbuild"}
    assert times(checkout(two)) == after
    assert (checkout(one) / "kernel/fork.c").read_text() != "other\n"
    assert not (src / "new").exists()


def test_checkout_repairs_what_was_done_to_it(tree: Path) -> None:
    found = source(f"tree:{tree}")
    src = checkout(found)
    good = {name: entry[2] for name, entry in state(src).items()}
    write_tree(src, {"kernel/fork.c": "damaged", "include/left.h": "left", ".git": "x"})
    (src / "Kbuild").unlink()
    commit(write_tree(src / "nested", {"a": "b"}), "a repository")
    assert {name: entry[2] for name, entry in state(checkout(found)).items()} == good


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"x" * 100])
def test_damaged_indexes_are_made_again(tree: Path, damage: bytes) -> None:
    found = source(f"tree:{tree}")
    src = checkout(found)
    good = {name: entry[2] for name, entry in state(src).items()}
    for name in ("import", "src"):
        index = GitStore(found.folder).index(name)
        assert index.is_file()
        index.write_bytes(damage)
        index.with_name(f"{index.name}.lock").touch()
    assert source(f"tree:{tree}") == found
    assert {name: entry[2] for name, entry in state(checkout(found)).items()} == good


def test_objects_that_a_power_cut_took_are_stored_again(tree: Path) -> None:
    found = source(f"tree:{tree}")
    objects = GitStore(found.folder).git_dir / "objects"
    for path in objects.glob("??/*"):
        path.unlink()
    assert source(f"tree:{tree}") == found
    assert sorted(files(found)) == LISTED
    assert files(found)["Makefile"] == MAKEFILE


def test_moved_cache_keeps_its_files(
    tree: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = times(checkout(source(f"tree:{tree}")))
    subprocess.run(["cp", "-a", own_cache, tmp_path / "moved"], check=True)
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "moved"))
    src = checkout(source(f"tree:{tree}"))
    assert src.is_relative_to(tmp_path / "moved")
    assert times(src) == before


def test_files_without_a_store_are_not_trusted(tree: Path) -> None:
    found = source(f"tree:{tree}")
    src = checkout(found)
    shutil.rmtree(GitStore(found.folder).git_dir)
    write_tree(src, {"left.h": "left"})
    (found.folder / "out-x86").mkdir()
    assert source(f"tree:{tree}") == found
    assert not src.exists()
    assert (found.folder / "out-x86").is_dir()


IMPORT = """
import sys
from kdelta.kernels.sources.source import source_of
from kdelta.spec.kernel import parse_kernel_spec
print(source_of(parse_kernel_spec(sys.argv[1]), lambda line: None).tree)
"""


def start_import(tree: Path) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-c", IMPORT, f"tree:{tree}"]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", ["init", "update-index", "write-tree"])
@pytest.mark.slow
def test_interrupted_import(
    tree: Path, fake_program: FakeProgram, tmp_path: Path, how: signal.Signals, step: str
) -> None:
    """Stopped in the middle, with half a file left behind; the next time is as the first."""
    real = shutil.which("git")
    pipe = tmp_path / "started"
    os.mkfifo(pipe)
    script = fake_program(
        "git",
        f'#!/bin/sh\ncase " $* " in *" {step} "*)\n'
        'mkdir -p "${GIT_DIR:-/tmp}/objects/pack"\n'
        '[ -n "$GIT_DIR" ] && echo half > "$GIT_DIR/objects/pack/tmp_pack_x"\n'
        '[ -n "$GIT_INDEX_FILE" ] && echo half > "$GIT_INDEX_FILE.lock"\n'
        f'echo > {pipe}; exec sleep 600;; esac\nexec {real} "$@"\n',
    )
    with start_import(tree) as process:
        pipe.read_text()
        os.killpg(process.pid, how)
    assert process.returncode != 0
    script.unlink()
    found = source(f"tree:{tree}")
    assert sorted(files(found)) == LISTED
    assert list(found.folder.rglob("tmp_*")) == []
    assert list(found.folder.rglob("*.lock")) == []
    assert list(found.folder.glob("*.partial")) == []


def test_two_processes_read_one_source(tree: Path) -> None:
    both = [start_import(tree), start_import(tree)]
    said = [process.communicate()[0].strip() for process in both]
    assert said == [source(f"tree:{tree}").tree] * 2


def test_full_disk(tree: Path, fake_program: FakeProgram) -> None:
    real = shutil.which("git")
    text = "fatal: unable to write loose object file: No space left on device"
    fake_program(
        "git",
        f'#!/bin/sh\ncase " $* " in *" update-index "*) echo "{text}" >&2; exit 128;; esac\n'
        f'exec {real} "$@"\n',
    )
    with pytest.raises(LabError, match="No space left") as caught:
        source(f"tree:{tree}")
    assert "KDELTA_CACHE_DIR" in caught.value.hint


def test_git_is_missing(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="git is missing") as caught:
        source(f"tree:{tree}")
    assert "Debian's package git" in caught.value.hint  # apt-get is not on this PATH either


def test_file_that_cannot_be_read(tree: Path, fake_program: FakeProgram) -> None:
    """What git says then was recorded: tests may run as root, who can read everything."""
    real = shutil.which("git")
    text = """error: open("kernel/fork.c"): Permission denied
error: unable to index file 'kernel/fork.c'
fatal: Unable to process path kernel/fork.c"""
    fake_program(
        "git",
        f"#!/bin/sh\ncase \" $* \" in *' update-index '*) cat >&2 <<'END'\n{text}\nEND\n"
        f'exit 128;; esac\nexec {real} "$@"\n',
    )
    with pytest.raises(UserError, match=r"kernel/fork.c cannot be read: Permission denied"):
        source(f"tree:{tree}")
