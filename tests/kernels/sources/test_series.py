# SPDX-License-Identifier: GPL-2.0-or-later
"""The words that name a series of patches, and what applies without what."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kdelta.kernels.sources.patches import PatchFailure, plain_patch
from kdelta.kernels.sources.series import PatchSeries, likely_needs, read_series
from kdelta.kernels.sources.stack import Stack, stacked
from kdelta.spec.errors import UserError
from tests.kernels.git_trees import commit, files, git, quiet, source, write_tree

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of a small tree, with a tag at its first commit."""
    folder = write_tree(tmp_path / "linux")
    commit(folder, "base")
    git(folder, "tag", "base")
    return folder


def edit(tree: Path, subject: str, **lines: str) -> None:
    """A commit that gives lines of kernel/fork.c other texts: line_3="int three;"."""
    path = tree / "kernel/fork.c"
    text = path.read_text()
    for name, line in lines.items():
        assert f"int {name};\n" in text
        text = text.replace(f"int {name};\n", f"{line}\n")
    commit(tree, subject, **{"kernel/fork.c": text})


@pytest.fixture
def queue(tree: Path, tmp_path: Path) -> Path:
    """A folder with five patches: one and two far apart, three on one's line, new.c alone, and
    five, which changes new.c and two's line.
    """
    edit(tree, "fork: one", line_3="int one;")
    edit(tree, "fork: two", line_30="int two;")
    edit(tree, "fork: three", one="int three;")
    commit(tree, "new: a file", **{"lib/new.c": "int fresh_name;\n"})
    write_tree(tree, {"lib/new.c": "int fresh_name;\nint more;\n"})
    edit(tree, "fork: five", two="int five = fresh_name;")
    folder = tmp_path / "queue"
    git(tree, "format-patch", "-q", "-o", str(folder), "base..HEAD")
    git(tree, "branch", "work")
    git(tree, "checkout", "-q", "base")
    return folder


HUNK = "kernel/fork.c, hunk 1"
NO_LINE = "the context differs: the tree's file has no line"
NAMES = ["0001-fork-one", "0002-fork-two", "0003-fork-three", "0004-new-a-file", "0005-fork-five"]


def read(*words: str | Path, tree: Path | None = None) -> PatchSeries:
    return read_series([str(word) for word in words], tree, quiet)


def names(series: PatchSeries) -> list[str]:
    return [patch.name for patch in series.patches]


def test_a_folder_without_a_series_file(queue: Path) -> None:
    (queue / "README").write_text("no patch\n")
    found = read(queue)
    assert names(found) == NAMES
    assert [patch.subject for patch in found.patches][:2] == ["fork: one", "fork: two"]
    assert found.patches[0].author == "A <a@example.org>"


def test_a_series_file_says_which_and_in_what_order(queue: Path) -> None:
    text = "# a queue\n\n0002-fork-two.patch -p1 # first\n  0001-fork-one.patch\n#0003-fork-three\n"
    (queue / "series").write_text(text)
    wanted = ["0002-fork-two", "0001-fork-one"]
    assert names(read(queue)) == wanted
    assert names(read(queue / "series")) == wanted
    (queue / "series").rename(queue / "series.conf")
    assert names(read(queue / "series.conf")) == wanted


def test_crlf_in_a_series_file(queue: Path) -> None:
    (queue / "series").write_bytes(b"0001-fork-one.patch -p1\r\n\r\n0002-fork-two.patch\r\n")
    assert names(read(queue)) == NAMES[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0001-fork-one.patch\ngone.patch\n", "a patch of .*series is missing: gone.patch"),
        ("a.patch\nb.patch\n", "2 patches of .*series are missing: a.patch, b.patch"),
        ("0001-fork-one.patch -p0\n", "line 1: 0001-fork-one.patch is to be applied with -p0"),
        ("\n0001-fork-one.patch -p1 -R\n", "line 2: .* with -p1 -R, and only -p1"),
        ("+old 0001-fork-one.patch\n", r"line 1: \+old is a guard"),
        ("# nothing\n", "names no patches"),
    ],
)
def test_a_series_file_that_cannot_be_followed(queue: Path, text: str, message: str) -> None:
    (queue / "series").write_text(text)
    with pytest.raises(UserError, match=message):
        read(queue)


def test_a_series_file_that_is_no_text(queue: Path) -> None:
    (queue / "series").write_bytes(b"0001-fork-one.patch\n\x1b[2J\x00\xff -p0\n")
    with pytest.raises(UserError, match="no list of patches") as error:
        read(queue)
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize("option", ["-p1", "-p 1", "--strip=1", "-pab"])
def test_options_that_log_what_is_so_anyway(queue: Path, option: str) -> None:
    (queue / "series").write_text(f"0001-fork-one.patch {option}\n")
    assert names(read(queue)) == NAMES[:1]


def test_files_and_an_mbox_one_after_the_other(tree: Path, queue: Path, tmp_path: Path) -> None:
    mbox = tmp_path / "two.mbox"
    mbox.write_text(git(tree, "format-patch", "--stdout", "base..work~3"))
    found = read(queue / "0004-new-a-file.patch", mbox, queue / "0004-new-a-file.patch")
    assert names(found) == ["0004-new-a-file", "fork-one", "fork-two", "0004-new-a-file-2"]


def test_a_range_of_commits(tree: Path, queue: Path) -> None:
    assert queue.is_dir()
    wanted = ["fork-one", "fork-two", "fork-three", "new-a-file", "fork-five"]
    for word in (f"{tree}:base..work", f"git:{tree}@base..work"):
        assert names(read(word)) == wanted
    found = read("base..work", tree=tree)
    assert names(found) == wanted
    tip = source(f"git:{tree}@work").tree
    with stacked(source(f"git:{tree}@base"), found.patches, quiet) as stack:
        assert stack.tree(wanted) == tip


def test_merges_of_a_range_are_left_out_and_said(tree: Path) -> None:
    git(tree, "checkout", "-q", "-b", "side")
    edit(tree, "fork: side", line_30="int side;")
    git(tree, "checkout", "-q", "-b", "main2", "base")
    edit(tree, "fork: main", line_3="int main;")
    git(tree, "commit", "-q", "--allow-empty", "-m", "nothing")
    git(tree, "merge", "-q", "--no-edit", "side")
    said: list[str] = []
    found = read_series([f"{tree}:base..main2"], None, said.append)
    assert sorted(names(found)) == ["fork-main", "fork-side"]
    assert [line.partition(": ")[2] for line in said] == [
        "1 merges left out; the commits of all sides stand in one line",
        "1 commits left out that change nothing",
    ]


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("work..base", "work..base has no commits"),
        ("base..base", "base..base has no commits"),
        ("base..nowhere", "has no commit nowhere"),
        ("base...work", "not a range"),
        ("/nowhere:base..work", "there is no repository /nowhere"),
        ("nothing.patch", "no patches: nothing.patch"),
    ],
)
def test_a_word_that_names_no_patches(tree: Path, queue: Path, word: str, message: str) -> None:
    assert queue.is_dir()
    with pytest.raises(UserError, match=message) as caught:
        read(word, tree=tree)
    if word == "work..base":
        assert caught.value.hint == "did you mean base..work?"


def test_a_shallow_clone(tree: Path, queue: Path, tmp_path: Path) -> None:
    assert queue.is_dir()
    clone = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "2", "--branch", "work", f"file://{tree}", str(clone))
    with pytest.raises(UserError, match="has no commit base") as caught:
        read(f"{clone}:base..work")
    assert "git fetch --unshallow" in (caught.value.hint or "")
    git(clone, "fetch", "-q", "--depth", "1", "origin", "tag", "base")
    with pytest.raises(UserError, match="work does not come from base"):
        read(f"{clone}:base..work")


def test_a_tree_that_is_no_folder_and_a_range() -> None:
    with pytest.raises(UserError, match=r"no repository for base\.\.work"):
        read("base..work")


def test_an_empty_folder_and_a_file_without_a_patch(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="neither a series file nor patches"):
        read(tmp_path / "empty")
    (tmp_path / "note.txt").write_text("some words\n")
    with pytest.raises(UserError, match=r"note\.txt is neither a patch"):
        read(tmp_path / "note.txt")


def on(tree: Path, queue: Path, check: Callable[[Stack], None]) -> None:
    with stacked(source(f"tree:{tree}"), read(queue).patches, quiet) as stack:
        check(stack)


def test_which_patch_does_not_apply_without_which(tree: Path, queue: Path) -> None:
    def check(stack: Stack) -> None:
        found = {
            name: [(need.patch, need.reason) for need in needs]
            for name, needs in stack.needs().items()
        }
        assert found == {
            NAMES[0]: [],
            NAMES[1]: [],
            NAMES[2]: [
                (
                    NAMES[0],
                    f"{HUNK} (line 1): {NO_LINE} `int one;`",
                )
            ],
            NAMES[3]: [],
            NAMES[4]: [
                (NAMES[3], "lib/new.c: the tree has no such file"),
                (
                    NAMES[1],
                    f"{HUNK} (line 27): {NO_LINE} `int two;`",
                ),
            ],
        }

    on(tree, queue, check)


def test_the_tree_of_a_set_is_that_of_its_patches_in_order(tree: Path, queue: Path) -> None:
    sets = [[], NAMES[:1], NAMES[1::2], NAMES[:3], NAMES]
    words = [" ".join(f"+{queue / name}.patch" for name in chosen) for chosen in sets]
    wanted = [source(f"tree:{tree} {word}".strip()) for word in words]

    def check(stack: Stack) -> None:
        for chosen, one in zip(sets, wanted, strict=True):
            assert stack.tree(reversed(chosen)) == one.tree, chosen

    on(tree, queue, check)
    assert "int five" in files(wanted[-1])["kernel/fork.c"]


def test_files_that_come_and_go_and_change_their_mode(tree: Path, tmp_path: Path) -> None:
    git(tree, "rm", "-q", "scripts/link")
    git(tree, "commit", "-q", "-m", "gone")
    commit(tree, "come", **{"lib/new.c": "int a;\n"})
    (tree / "Kconfig").chmod(0o755)
    commit(tree, "mode")
    git(tree, "rm", "-q", "lib/new.c")
    git(tree, "commit", "-q", "-m", "gone again")
    git(tree, "format-patch", "-q", "-o", str(tmp_path / "queue"), "base..HEAD")
    tips = [source(f"git:{tree}@HEAD~{back}").tree for back in (3, 2, 1, 0)]
    git(tree, "checkout", "-q", "base")
    series = names(read(tmp_path / "queue"))

    def check(stack: Stack) -> None:
        assert [stack.tree(series[: n + 1]) for n in range(4)] == tips
        assert [need.patch for need in stack.needs()[series[3]]] == [series[1]]

    on(tree, tmp_path / "queue", check)


def test_a_set_that_does_not_apply(tree: Path, queue: Path) -> None:
    def check(stack: Stack) -> None:
        found = stack.tree([NAMES[0], NAMES[4]])
        assert isinstance(found, PatchFailure)
        assert found.patch == NAMES[4]
        assert stack.failure(NAMES) is None

    on(tree, queue, check)


def test_what_a_patch_needs_that_never_applies(tree: Path, queue: Path) -> None:
    bad = queue / "0003-fork-three.patch"
    bad.write_text(bad.read_text().replace("-int one;", "-int other;"))

    def check(stack: Stack) -> None:
        assert stack.needs()[NAMES[2]] == ()
        failure = stack.failure(NAMES)
        assert failure is not None
        assert failure.patch == NAMES[2]

    on(tree, queue, check)


def diff(file: str, line: int, *body: str) -> bytes:
    old = sum(text[0] != "+" for text in body)
    new = sum(text[0] != "-" for text in body)
    head = f"--- a/{file}\n+++ b/{file}\n@@ -{line},{old} +{line},{new} @@\n"
    return (head + "".join(f"{text}\n" for text in body)).encode()


def suspects(*patches: tuple[str, bytes]) -> dict[str, Sequence[str]]:
    return dict(likely_needs([plain_patch(name, content) for name, content in patches]))


def test_what_a_patch_may_need_by_its_words_and_lines() -> None:
    found = suspects(
        ("helper", diff("a.h", 10, " int old;", "+int new_helper(void);")),
        ("far", diff("b.c", 500, " int x;", "+int y;")),
        ("near", diff("b.c", 5, " int x;", "+int z;")),
        ("user", diff("b.c", 20, " call();", "+new_helper();", "+new_helper();")),
    )
    assert found == {"helper": (), "far": (), "near": ("far",), "user": ("near", "helper", "far")}
