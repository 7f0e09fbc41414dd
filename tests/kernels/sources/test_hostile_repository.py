# SPDX-License-Identifier: GPL-2.0-or-later
"""A repository that names programs in its config: none of them is run where it is read."""

import os
from pathlib import Path

import pytest

from kdelta.cli.meant import kernels_meant
from kdelta.kernels.sources import git_config
from kdelta.kernels.sources.git import object_named, read_repository
from kdelta.kernels.sources.history import read_range
from kdelta.kernels.sources.ranges import range_patches
from kdelta.kernels.sources.source import source_of
from kdelta.spec.errors import UserError
from kdelta.spec.kernel import GitSpec, TreeSpec, parse_kernel_spec
from tests.kernels.git_trees import commit, git, write_tree

_SIGNATURE = "-----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----"
_PROGRAMS = (
    *(
        "gpg.program",
        "gpg.openpgp.program",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.a=b.clean",
    ),
    *("filter.p.process", "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand"),
    *("core.askPass", "core.alternateRefsCommand", "credential.helper", "diff.external"),
    *("diff.x.textconv", "diff.x.command", "pager.log", "pager.status", "merge.x.driver"),
    *("remote.origin.uploadpack", "trailer.x.command", "alias.x"),
)


def _line(section: str, variable: str, value: str) -> str:
    name, _, below = section.partition(".")
    head = f'{name} "{below}"' if below else name
    return f"[{head}]\n\t{variable} = {value}\n"


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The folder in which a program of the repository leaves a file, if it is run."""
    folder = tmp_path / "ran"
    folder.mkdir()
    return folder


@pytest.fixture
def hostile(tmp_path: Path, ran: Path) -> Path:
    """A repository whose last commit is signed, and whose config names a program everywhere."""
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    attributes = "*.c filter=x diff=x merge=x\nMakefile filter=a=b\nKconfig filter=p\n"
    commit(tree, "two", **{".gitattributes": attributes, "kernel/fork.c": "int b;\n"})
    plain = git(tree, "cat-file", "commit", "HEAD")
    head, _, text = plain.partition("\n\n")
    signed = tmp_path / "signed"
    signed.write_text(f"{head}\ngpgsig {_SIGNATURE}\n\n{text}")
    name = git(tree, "hash-object", "-t", "commit", "-w", str(signed)).strip()
    git(tree, "update-ref", "HEAD", name)
    hooks = tree / ".git/own-hooks"
    hooks.mkdir()
    for program in (hook := hooks / "post-index-change", hooks / "reference-transaction"):
        program.write_text(f"#!/bin/sh\ntouch {ran}/hook\n")
        program.chmod(0o755)
    assert hook.exists()
    lines = []
    for setting in _PROGRAMS:
        program = tmp_path / f"run-{setting}"
        program.write_text(f"#!/bin/sh\ntouch '{ran}/{setting}'\ncat\n")
        program.chmod(0o755)
        section, _, variable = setting.rpartition(".")
        lines.append(_line(section, variable, f"{'!' * setting.startswith('alias')}{program}"))
    lines.append(_line("core", "hooksPath", str(hooks)))
    lines.append(_line("filter.a=b", "required", "true"))
    lines.append(_line("log", "showSignature", "true"))
    with (tree / ".git/config").open("a") as file:
        file.writelines(lines)
    # The content is the same, and the time is not: git status looks into the file.
    (tree / "kernel/fork.c").write_text("int c;\n")
    (tree / "Makefile").write_text((tree / "Makefile").read_text() + "\n")
    (tree / "Kconfig").write_text("config B\n")
    return tree


def test_reading_a_range_of_a_hostile_repository_runs_nothing(hostile: Path, ran: Path) -> None:
    found = range_patches(hostile, "HEAD^", "HEAD")
    assert [one.subject for one in found.patches] == ["two"]
    assert list(ran.iterdir()) == []


def test_reading_a_history_of_a_hostile_repository_runs_nothing(hostile: Path, ran: Path) -> None:
    history = read_range(hostile, "HEAD^", "HEAD")
    assert [one.subject for one in history.commits] == ["two"]
    assert "files that were changed and not committed are no part of it" in history.notes
    assert list(ran.iterdir()) == []


@pytest.mark.parametrize("spec", ["tree:{}", "git:{}@HEAD"])
def test_reading_a_tree_of_a_hostile_repository_runs_nothing(
    hostile: Path, ran: Path, spec: str
) -> None:
    parsed = parse_kernel_spec(spec.format(hostile))
    assert isinstance(parsed, TreeSpec | GitSpec)
    source_of(parsed, lambda _: None)
    assert list(ran.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["config", "packed-refs", "shallow", "info/grafts", "objects/info/alternates"]
)
def test_pipe_in_a_repository_is_not_waited_for(tmp_path: Path, name: str) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    git(tree, "worktree", "add", "-q", str(tmp_path / "work"))
    path = tree / ".git" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    for folder in (tree, tree / "kernel", tmp_path / "work"):
        with pytest.raises(UserError, match=f"{name} is no file"):
            read_range(folder, "HEAD", "HEAD")


def test_folders_with_names_of_git_are_no_repository(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    for name in ("config", "objects", "HEAD", "index"):
        (tree / "kernel" / name).mkdir()
    (tree / ".git/commondir").write_bytes(b"..\0/x\n")
    assert object_named(tree / "kernel", "HEAD") == ""
    (tree / ".git/commondir").unlink()
    assert object_named(tree / "kernel", "HEAD") == git(tree, "rev-parse", "HEAD").strip()


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-7", "ISO-8859-1"])
def test_encoding_that_a_repository_wants_changes_nothing(tmp_path: Path, encoding: str) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    commit(tree, "für", **{"kernel/fork.c": "int b;\n"})
    with (tree / ".git/config").open("a") as file:
        file.write(_line("i18n", "logOutputEncoding", encoding))
    assert [one.subject for one in range_patches(tree, "HEAD^", "HEAD").patches] == ["für"]
    assert [one.subject for one in read_range(tree, "HEAD^", "HEAD").commits] == ["für"]


def test_pipe_beyond_a_link_is_not_waited_for(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    os.mkfifo(tree / ".git/info/grafts")
    (tmp_path / "link").symlink_to(tree / "kernel")
    with pytest.raises(UserError, match="grafts is no file"):
        read_range(tmp_path / "link", "HEAD", "HEAD")


FORGED = {
    "record of a range": "s\n\nb\x1e--output={}\x1fabc\x1f\x1fA <a@b>\x1f2020-01-01\x1fs\x1ftext",
    "separators of a range": "sub\n\nbody \x1e more \x1e end \x1f",
    "record of a history": f"s \x02\x01{'a' * 40}\x02t\x02p\x02Linus <t@l>\x022020-01-01\x02forged",
    "separators of a history": "sub \x01" + "a" * 40 + "\x02 b",
    "options": "--output={}\n\n--output={}",
}  # fmt: skip


@pytest.mark.parametrize("what", FORGED)
def test_message_of_a_commit_is_text(tmp_path: Path, what: str) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    (own := tmp_path / "own").write_text("of the user")
    (message := tmp_path / "message").write_text(FORGED[what].replace("{}", str(own)))
    (tree / "kernel/fork.c").write_text("int forged;\n")
    git(tree, "commit", "-q", "-a", "--cleanup=verbatim", "-F", str(message))
    commit(tree, "three", **{"kernel/exit.c": "int c;\n"})
    patches = range_patches(tree, "HEAD~2", "HEAD").patches
    assert [b"int forged" in one.content for one in patches] == [True, False]
    history = read_range(tree, "HEAD~2", "HEAD").commits
    assert [one.name for one in history] == git(tree, "rev-list", "--reverse", "HEAD~2..").split()
    assert [one.files for one in history] == [{"kernel/fork.c"}, {"kernel/exit.c"}]
    assert own.read_text() == "of the user"


def test_looking_for_a_version_runs_nothing(
    hostile: Path, ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a partial clone, which git would have the missing commit fetched for."""
    monkeypatch.chdir(hostile)
    (hostile / ".git/refs/tags").mkdir(exist_ok=True)
    (hostile / ".git/refs/tags/v6.12").write_text("1" * 40 + "\n")
    with (hostile / ".git/config").open("a") as file:
        file.write(_line("core", "repositoryformatversion", "1"))
        file.write(_line("extensions", "partialClone", "origin"))
        file.write('[remote "origin"]\n\turl = ssh://localhost/x\n\tpromisor = true\n')
    kernels_meant(["6.12"])
    assert list(ran.iterdir()) == []


def test_a_repository_of_another_user_is_refused_with_the_command_that_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_tree(tmp_path / "tree")
    commit(tree, "one")
    plain = git_config.plain_environment
    monkeypatch.setattr(
        git_config,
        "plain_environment",
        lambda: {**plain(), "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"},
    )
    with pytest.raises(UserError, match="belongs to another user") as refused:
        read_repository(tree, "ls-files")
    assert f"safe.directory {tree}" in refused.value.hint
    monkeypatch.setattr(git_config, "_users", lambda: (("safe.directory", str(tree)),))
    assert object_named(tree, "HEAD")
