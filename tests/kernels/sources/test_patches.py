# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches: those that git and diff make apply, in order; of the others it is reported why not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kdelta.kernels.sources.diffs import read_diff, unquote
from kdelta.kernels.sources.given import read_patches
from kdelta.spec.errors import UserError
from tests.kernels.git_trees import (
    FORK,
    checkout,
    commit,
    failure,
    files,
    git,
    source,
    state,
    write_tree,
)

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]

PLAIN = """\
Subject: anything
Some text, as quilt keeps it.

Index: linux/kernel/fork.c
===================================================================
--- linux.orig/kernel/fork.c\t2026-01-01 00:00:00.000000000 +0000
+++ linux/kernel/fork.c\t2026-01-02 00:00:00.000000000 +0000
@@ -1,3 +1,4 @@
 int line_1;
+int added;
 int line_2;
 int line_3;
"""
HUNK = "kernel/fork.c, hunk 1 (line 1)"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of a small tree, which stands at its first commit."""
    folder = write_tree(tmp_path / "linux")
    commit(folder, "base")
    git(folder, "tag", "base")
    return folder


@pytest.fixture
def patch(tree: Path, tmp_path: Path) -> Callable[..., Path]:
    """Writes a file of patches next to the tree: this text, or what git diff says of all commits
    since the base.
    """

    def write(name: str, content: str | None = None) -> Path:
        if content is None:
            content = git(tree, "diff", "--binary", "-M", "base", "HEAD")
            git(tree, "checkout", "-q", "base")
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return write


def patched(tree: Path, *patches: Path) -> dict[str, str]:
    return files(source(" ".join([f"tree:{tree}", *(f"'+{path}'" for path in patches)])))


def test_plain_diff(tree: Path, patch: Callable[..., Path]) -> None:
    before = state(tree)
    found = patched(tree, patch("plain.patch", PLAIN))
    assert found["kernel/fork.c"] == FORK.replace("line_1;\n", "line_1;\nint added;\n")
    assert found["Makefile"] == files(source(f"tree:{tree}"))["Makefile"]
    assert state(tree) == before


def test_offset_is_no_failure(tree: Path, patch: Callable[..., Path]) -> None:
    moved = PLAIN.replace("-1,3 +1,4", "-21,3 +21,4").replace("line_1;", "line_11;")
    moved = moved.replace("line_2;", "line_12;").replace("line_3;", "line_13;")
    found = patched(tree, patch("plain.patch", moved))
    assert "int line_11;\nint added;\nint line_12;\n" in found["kernel/fork.c"]


def test_all_that_a_git_diff_can_log(tree: Path, patch: Callable[..., Path]) -> None:
    """New, removed, renamed, made executable, a link, binary, and names that need quotes."""
    (tree / "scripts/new.sh").write_text("#!/bin/sh\n")
    (tree / "scripts/new.sh").chmod(0o755)
    (tree / "Kbuild").unlink()
    git(tree, "mv", "kernel/fork.c", "kernel/spoon.c")
    (tree / "kernel/Makefile").chmod(0o755)
    (tree / "scripts/link").unlink()
    (tree / "scripts/link").symlink_to("new.sh")
    (tree / "logo.bin").write_bytes(bytes(range(256)))
    (tree / 'a "b"\\\n\té.c').write_text("quoted\n")
    commit(tree, "all", **{"kernel/spoon.c": FORK.replace("line_7", "seven")})
    expected = files(source(f"git:{tree}@HEAD"))
    wanted = source(f"git:{tree}@HEAD").tree
    file = patch("all.diff")
    assert "rename from" in file.read_text()
    assert 'b/a \\"b\\"' in file.read_text()
    assert patched(tree, file) == expected
    found = source(f"tree:{tree} +{file}")
    assert found.tree == wanted
    assert (checkout(found) / "scripts/new.sh").stat().st_mode & 0o100
    assert (checkout(found) / "logo.bin").read_bytes() == bytes(range(256))


def series(tree: Path, *subjects: str) -> None:
    """Commits of which each changes the line that the one before has changed."""
    text = FORK
    for number, subject in enumerate(subjects):
        old = "int line_9;" if number == 0 else f"int nine_{number - 1};"
        text = text.replace(old, f"int nine_{number};")
        commit(tree, subject, **{"kernel/fork.c": text})


def mails(tree: Path, *words: str) -> str:
    text = git(tree, "format-patch", "--stdout", *words, "base..HEAD")
    git(tree, "checkout", "-q", "base")
    return text


def test_mail(tree: Path, patch: Callable[..., Path]) -> None:
    series(tree, "fork: nine")
    found = patched(tree, patch("0001-fork-nine.patch", mails(tree)))
    assert "int nine_0;" in found["kernel/fork.c"]


def test_mbox_whose_patches_build_on_each_other(tree: Path, patch: Callable[..., Path]) -> None:
    series(tree, "fork: one", "fork: two", "fork: three")
    tip = source(f"git:{tree}@HEAD").tree
    mbox = patch("series.mbox", mails(tree, "--cover-letter", "--thread"))
    assert mbox.read_text().count("\nSubject: ") == 4
    assert source(f"tree:{tree} +{mbox}").tree == tip


def test_encoded_mail(tree: Path, patch: Callable[..., Path]) -> None:
    """As mail programs send it: quoted-printable, no line "From ", and CRLF."""
    body = PLAIN[PLAIN.index("--- linux") :].replace("=", "=3D").replace("added;", "adde=\nd;")
    text = (
        "From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\nMessage-ID: <1@example.org>\n"
        "Subject: [PATCH] fork: add\nMIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=utf-8\n"
        f"Content-Transfer-Encoding: quoted-printable\n\nText.\n\n---\n{body}"
    )
    for name, content in (("a.eml", text), ("b.eml", text.replace("\n", "\r\n"))):
        found = patched(tree, patch(name, content))
        assert found["kernel/fork.c"] == FORK.replace("line_1;\n", "line_1;\nint added;\n")


def test_patches_apply_in_the_order_of_the_words(tree: Path, patch: Callable[..., Path]) -> None:
    series(tree, "fork: one", "fork: two")
    git(tree, "checkout", "-q", "-b", "both")
    one = patch("one.patch", git(tree, "diff", "base", "both~1"))
    two = patch("two.patch", git(tree, "diff", "both~1", "both"))
    git(tree, "checkout", "-q", "base")
    assert "int nine_1;" in patched(tree, one, two)["kernel/fork.c"]
    failed = failure(f"tree:{tree} +{two} +{one}")
    assert failed.patch == "two.patch"


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (
            ("line_2;", "line_x;"),
            f"{HUNK}: the context differs: the tree's file has no line `int line_x;`",
        ),
        (
            ("line_2;\n int line_3;", "line_3;\n int line_2;"),
            f"{HUNK}: the context differs: its lines are not together in the tree's file",
        ),
        (("fork.c", "spoon.c"), "kernel/spoon.c: the tree has no such file"),
        (("linux/", ""), "fork.c: the tree has no such file (paths lose their first part"),
        (("-1,3 +1,4", "-1,3 +1,9"), "the patch is damaged at its line 13"),
    ],
)
def test_why_it_does_not_apply(
    tree: Path, patch: Callable[..., Path], change: tuple[str, str], detail: str
) -> None:
    text = PLAIN.replace("linux.orig/", "linux/").replace(*change)
    before = state(tree)
    failed = failure(f"tree:{tree} +{patch('bad.patch', text)}")
    assert failed.patch == "bad.patch"
    assert failed.detail.startswith(detail)
    assert state(tree) == before


def test_the_hunk_is_counted_in_its_file(tree: Path, patch: Callable[..., Path]) -> None:
    text = FORK.replace("line_3;", "three;").replace("line_20;", "twenty;")
    commit(tree, "two hunks", **{"kernel/fork.c": text, "Kconfig": "config B\n"})
    file = patch("two.patch")
    file.write_text(file.read_text().replace(" int line_22;", f" int {'x' * 80};"))
    failed = failure(f"tree:{tree} +{file}")
    assert failed.detail.startswith("kernel/fork.c, hunk 2 (line 17): ")
    shown, fuzz = failed.detail.split("; ")
    assert shown.endswith(f"no line `int {'x' * 53}...`")
    assert fuzz == "--fuzz 2 would take it, with less context"


def test_several_files_that_do_not_fit(tree: Path, patch: Callable[..., Path]) -> None:
    text = "".join(PLAIN.replace("fork.c", f"{name}.c") for name in ("a", "b"))
    detail = failure(f"tree:{tree} +{patch('x.patch', text)}").detail
    assert detail == "kernel/a.c: the tree has no such file; kernel/b.c: the tree has no such file"
    text += PLAIN.replace("fork.c", "c.c")
    detail = failure(f"tree:{tree} +{patch('x.patch', text)}").detail
    assert detail.count("the tree has no such file") == 3
    text = "".join(PLAIN.replace("fork.c", f"{n}.c") for n in range(30))
    detail = failure(f"tree:{tree} +{patch('x.patch', text)}").detail
    assert detail.endswith("kernel/19.c: the tree has no such file; and 10 more")


def test_all_hunks_of_a_file_that_do_not_fit_are_named(
    tree: Path, patch: Callable[..., Path]
) -> None:
    text = FORK.replace("line_3;", "three;").replace("line_20;", "twenty;")
    commit(tree, "two hunks", **{"kernel/fork.c": text, "Kconfig": "config B\n"})
    file = patch("two.patch")
    both = file.read_text().replace(" int line_22;", " int x;").replace(" int line_4;", " int y;")
    file.write_text(both)
    detail = failure(f"tree:{tree} +{file}").detail
    first, second = detail.split("; ")[:2]
    assert first == f"{HUNK}: the context differs: the tree's file has no line `int y;`"
    assert second == first.replace("hunk 1 (line 1)", "hunk 2 (line 17)").replace("y;", "x;")


def test_applied_already(tree: Path, patch: Callable[..., Path]) -> None:
    plain = patch("plain.patch", PLAIN)
    failed = failure(f"tree:{tree} +{plain} +{plain}")
    assert failed.patch == "plain.patch"
    assert failed.detail.startswith("it is applied already")


def test_new_file_that_is_there(tree: Path, patch: Callable[..., Path]) -> None:
    commit(tree, "new", **{"lib/new.c": "new\n"})
    file = patch("new.patch")
    write_tree(tree, {"lib/new.c": "mine\n"})
    detail = failure(f"tree:{tree} +{file}").detail
    assert detail == "lib/new.c: the patch makes this file, and the tree has it already"


def test_binary_without_its_content(tree: Path, patch: Callable[..., Path]) -> None:
    (tree / "logo.bin").write_bytes(bytes(range(256)))
    commit(tree, "logo")
    text = git(tree, "diff", "base", "HEAD")
    git(tree, "checkout", "-q", "base")
    detail = failure(f"tree:{tree} +{patch('logo.patch', text)}").detail
    assert detail == "logo.bin: the patch says that it differs, but not how (git diff --binary)"


def test_binary_for_another_content(tree: Path, patch: Callable[..., Path]) -> None:
    (tree / "logo.bin").write_bytes(bytes(range(256)))
    commit(tree, "logo")
    git(tree, "tag", "-f", "base")
    (tree / "logo.bin").write_bytes(bytes(range(255, -1, -1)))
    commit(tree, "other logo")
    file = patch("logo.patch")
    (tree / "logo.bin").write_bytes(bytes(300))
    detail = failure(f"tree:{tree} +{file}").detail
    assert detail == "logo.bin: the patch is for another content of this binary file"


def test_the_mail_of_a_series_that_fails_is_named(tree: Path, patch: Callable[..., Path]) -> None:
    series(tree, "fork: one", "fork: two is a subject", "fork: three")
    mbox = patch("series.mbox", mails(tree).replace("+int nine_0;", "+int other;"))
    failed = failure(f"tree:{tree} +{mbox}")
    assert failed.patch == 'series.mbox: "fork: two is a subject"'
    assert failed.detail.startswith("kernel/fork.c, hunk 1 (line 6): ")
    assert failed.detail.endswith("has no line `int nine_0;`")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        ("", "looks like an empty file"),
        ("some text\n", "is neither a patch, a mailbox, a series nor a config"),
        ("From a@b Mon Sep 17 00:00:00 2001\nSubject: x\n\nno patch\n", "holds no patch"),
    ],
)
def test_a_file_that_is_no_patch(tree: Path, content: str | None, message: str) -> None:
    path = tree.parent / "x.patch"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=message) as caught:
        source(f"tree:{tree} +{path}")
    assert str(path) in caught.value.message


def test_patch_cannot_write_elsewhere(tree: Path, patch: Callable[..., Path]) -> None:
    for name in ("../../evil", ".git/config"):
        text = f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n"
        assert failure(f"tree:{tree} +{patch('x.patch', text)}").patch == "x.patch"
    assert not (tree.parent / "evil").exists()


@pytest.mark.parametrize(
    ("quoted", "name"),
    [
        (b"a/b.c", "a/b.c"),
        (b'"a\\tb\\"c\\\\"', 'a\tb"c\\'),
        (b'"\\303\\251"', "é"),
        (b'"', '"'),
    ],
)
def test_names_in_quotes(quoted: bytes, name: str) -> None:
    assert unquote(quoted) == name


def test_a_diff_whose_line_ends_were_made_crlf(tree: Path, patch: Callable[..., Path]) -> None:
    path = patch("plain.patch", PLAIN)
    path.write_bytes(PLAIN.replace("\n", "\r\n").encode())
    found = patched(tree, path)
    assert found["kernel/fork.c"] == FORK.replace("line_1;\n", "line_1;\nint added;\n")


def test_crlf_of_the_files_own_stays(tree: Path, patch: Callable[..., Path]) -> None:
    (tree / "kernel/fork.c").write_bytes(FORK.replace("\n", "\r\n").encode())
    path = patch("plain.patch", PLAIN)
    body = PLAIN.index("@@ -1") + len("@@ -1,3 +1,4 @@\n")
    path.write_bytes((PLAIN[:body] + PLAIN[body:].replace("\n", "\r\n")).encode())
    assert "line_1;\r\nint added;\r\n" in patched(tree, path)["kernel/fork.c"]


def test_what_the_head_of_a_patch_says(patch: Callable[..., Path]) -> None:
    path = patch("plain.patch", PLAIN)
    (read,) = read_patches(path).patches
    assert (read.subject, read.message) == ("anything", "Some text, as quilt keeps it.")
    text = (
        "From: J <j@example.org>\nDescription: [PATCH 1/2] fork: add\n more\nDate: 1 Jan\n\nWhy.\n"
    )
    path.write_text(f"{text}---\n kernel/fork.c | 1 +\n{PLAIN[PLAIN.index('--- linux') :]}")
    (read,) = read_patches(path).patches
    assert (read.author, read.subject) == ("J <j@example.org>", "fork: add")
    assert (read.date, read.message) == ("1 Jan", "Why.")


def test_files_and_hunks_of_a_diff(tree: Path, patch: Callable[..., Path]) -> None:
    (tree / "Kbuild").unlink()
    git(tree, "mv", "kernel/fork.c", "kernel/spoon.c")
    (tree / "kernel/Makefile").chmod(0o755)
    (tree / "logo.bin").write_bytes(bytes(range(256)))
    text = FORK.replace("line_7;", "seven;").replace("line_30;", "-- a;\nint b;")
    commit(tree, "all", **{"kernel/spoon.c": text, "new.c": "-- one\n++ two\n"})
    found = read_diff(patch("all.diff").read_bytes())
    assert set(found.files) == {
        *("Kbuild", "kernel/fork.c", "kernel/spoon.c", "kernel/Makefile", "logo.bin", "new.c"),
    }
    rows = [(hunk.file, hunk.number, hunk.line) for hunk in found.hunks]
    assert rows == [
        ("Kbuild", 1, 1),
        ("kernel/fork.c", 1, 4),
        ("kernel/fork.c", 2, 27),
        ("new.c", 1, 0),
    ]
    assert found.hunks[2].added == (b"int -- a;", b"int b;")
    assert found.hunks[1].last == 10
