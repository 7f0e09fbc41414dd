# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches that apply with less context: as patch(1) takes them, if that is asked for."""

from pathlib import Path

import pytest

from kdelta.kernels.sources.patches import PatchFailure
from kdelta.kernels.sources.source import source_of
from kdelta.spec.errors import LabError
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from tests.kernels.git_trees import FORK, commit, failure, files, git, source, write_tree

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]

OUTER, INNER = ("line_17;", "line_18;")
"""Lines of the context of a patch of line 20."""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = write_tree(tmp_path / "linux")
    commit(folder, "base")
    return folder


@pytest.fixture
def patch(tree: Path, tmp_path: Path) -> Path:
    """A patch of lines 3 and 20, and of a script that it makes another mode of."""
    text = FORK.replace("line_3;", "three;").replace("line_20;", "twenty;")
    (tree / "scripts" / "run.sh").chmod(0o755)
    commit(tree, "two hunks", **{"kernel/fork.c": text, "lib/new.c": "int n;\n"})
    path = tmp_path / "two.patch"
    path.write_text(git(tree, "diff", "HEAD~", "HEAD"))
    git(tree, "checkout", "-q", "HEAD~")
    return path


def differs(tree: Path, *lines: str) -> str:
    """The tree's file, once it has other lines in the place of these."""
    text = FORK
    for line in lines:
        text = text.replace(line, f"other_{line}")
    write_tree(tree, {"kernel/fork.c": text})
    return text


@pytest.mark.parametrize(("line", "fuzz"), [(OUTER, 1), (INNER, 2)])
@pytest.mark.slow
def test_patch_that_needs_fuzz_applies_with_as_much(
    tree: Path, patch: Path, line: str, fuzz: int
) -> None:
    exact = source(f"tree:{tree} +{patch}")
    text = differs(tree, line)
    without = [failure(f"tree:{tree} +{patch} {more}") for more in ("", f"+fuzz:{fuzz - 1}")]
    for one in without:
        assert one.detail.endswith(f"; --fuzz {fuzz} would take it, with less context")
    for most in (fuzz, 3):
        found = source(f"tree:{tree} +{patch} +fuzz:{most}")
        assert found.notes == (f"two.patch: kernel/fork.c, hunk 2: fuzz {fuzz}",)
        made = files(found)
        wanted = text.replace("line_3;", "three;").replace("line_20;", "twenty;")
        assert made == {**files(exact), "kernel/fork.c": wanted}


def test_patch_that_no_fuzz_helps_does_not_apply(tree: Path, patch: Path) -> None:
    differs(tree, "line_20;")
    for more in ("", "+fuzz:9"):
        detail = failure(f"tree:{tree} +{patch} {more}").detail
        assert detail.startswith("kernel/fork.c, hunk 2 (line 17): the context differs")
        assert "fuzz" not in detail


def test_patch_that_applies_exactly_is_the_same_with_fuzz(tree: Path, patch: Path) -> None:
    exact = source(f"tree:{tree} +{patch}")
    assert source(f"tree:{tree} +{patch} +fuzz:2") == exact
    assert exact.notes == ()


def test_applied_already_or_new_file_that_is_there_is_no_matter_of_fuzz(
    tree: Path, patch: Path
) -> None:
    twice = failure(f"tree:{tree} +{patch} +{patch} +fuzz:2")
    assert twice.detail.startswith("it is applied already")
    differs(tree, OUTER)
    write_tree(tree, {"lib/new.c": "mine\n"})
    assert "has it already" in failure(f"tree:{tree} +{patch} +fuzz:2").detail


@pytest.mark.parametrize("how", ["--binary", "--no-renames"])
def test_binary_file_is_not_left_out_of_a_patch_with_fuzz(
    tree: Path, patch: Path, how: str
) -> None:
    (tree / "logo.bin").write_bytes(bytes(range(256)))
    commit(tree, "logo")
    more = git(tree, "diff", how, "HEAD~", "HEAD")
    git(tree, "checkout", "-q", "HEAD~")
    differs(tree, OUTER)
    patch.write_text(patch.read_text() + more)
    detail = failure(f"tree:{tree} +{patch} +fuzz:2").detail
    assert "kernel/fork.c, hunk 2 (line 17): the context differs" in detail
    assert ("logo.bin" in detail) == (how == "--no-renames")


def test_commands_of_ed_are_not_run(tree: Path, patch: Path) -> None:
    differs(tree, OUTER)
    patch.write_text(patch.read_text() + "--- a/Kconfig\n+++ b/Kconfig\n1c\nconfig ED\n.\n")
    found = source(f"tree:{tree} +{patch} +fuzz:2")
    assert len(found.notes) == 1
    assert files(found)["Kconfig"] == "config A\n"


def test_without_the_program_patch_says_what_to_install(
    tree: Path, patch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    differs(tree, OUTER)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").symlink_to("/usr/bin/git")
    monkeypatch.setenv("PATH", str(programs))
    spec = parse_kernel_spec(f"tree:{tree} +{patch} +fuzz:2")
    assert isinstance(spec, SourceSpec)
    with pytest.raises(LabError, match="the program patch is missing"):
        source_of(spec, lambda _: None)
    exact = parse_kernel_spec(f"tree:{tree} +{patch}")
    assert isinstance(exact, SourceSpec)
    found = source_of(exact, lambda _: None)
    assert isinstance(found, PatchFailure)
    assert "fuzz" not in found.detail
