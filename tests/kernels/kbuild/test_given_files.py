# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of files under odd names and packed: those of what the files hold."""

from pathlib import Path

import pytest

from kdelta.cli.kernels import built_text
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.kbuild.build import build_question
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources.given import GivenFile, given_at
from kdelta.kernels.sources.source import Source, source_of
from kdelta.spec.kernel import SourceSpec, parse_kernel_spec
from kdelta.spec.note import SpecNote
from kdelta.spec.run import RunStatus
from tests.kernels.sources.given_files import (
    CUT,
    FRAGMENT,
    LONG,
    MAILBOX,
    PACKERS,
    PLAIN,
    SERIES,
    diff,
)
from tests.kernels.trees import failure, fake_tree, kernel, made, patch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


@pytest.mark.slow
def test_a_patch_makes_one_kernel_whatever_its_file_is_called(tree: Path) -> None:
    folder = tree.parent
    files = {"member.patch": PLAIN, "README.md": PLAIN, "t.mbox": MAILBOX, "queue": SERIES}
    for name, content in files.items():
        (folder / name).write_text(content)
    for ending, pack in PACKERS.items():
        (folder / f"patch-6.12.117-118{ending}").write_bytes(pack(PLAIN.encode()))
        (folder / f"t{ending}").write_bytes(pack(MAILBOX.encode()))
    plain, _ = kernel(tree)
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    assert len(names) == 12
    found = {kernel(tree, f"+{folder}/{name}")[0].identity for name in names}
    assert len(found) == 1
    assert plain.identity not in found


def test_a_fragment_goes_over_the_base_that_is_named_before(tree: Path) -> None:
    base = tree.parent / "board"
    base.write_text("CONFIG_DEBUG_KERNEL=y\nCONFIG_OLD_DRIVER=y\n")
    known = {line.partition("=")[0] for line in LONG.splitlines()}
    options = "".join(f'config {name[7:]}\n\tbool "x"\n' for name in sorted(known))
    (tree / "Kconfig").write_text((tree / "Kconfig").read_text() + options)
    for number, text in enumerate((CUT, LONG + FRAGMENT)):
        fragment = tree.parent / f"fragment-{number}"
        fragment.write_text(text)
        found, built = kernel(tree, f"+base:{base}", f"+{fragment}")
        granted = parse_config(Path(found.config or "").read_text())
        assert built.base == str(base)
        assert (granted["CONFIG_OLD_DRIVER"], granted["CONFIG_ZERO_PAGES"]) == ("y", "y")


@pytest.mark.slow
def test_what_was_asked_for_and_not_granted_is_all_listed(tree: Path) -> None:
    fragment, base = tree.parent / "x.config", tree.parent / "board"
    base.write_text("CONFIG_DEBUG_LIST=y\nCONFIG_OLD_DRIVER=y\nCONFIG_FORMER=y\n")
    fragment.write_text("CONFIG_GONE=y\nCONFIG_AWAY=y\nCONFIG_ZERO_PAGES=y\n")
    words = [f"+base:{base}", "+CONFIG_OLD_DRIVER=y", f"+{fragment}"]
    refused = failure(tree, *words)
    assert refused.detail == (
        "this tree has no such options: CONFIG_GONE, CONFIG_AWAY (+allow-unknown leaves them out)"
    )
    said: list[str] = []
    found = made(tree, *words, "+allow-unknown", said=said)
    assert isinstance(found, Kernel)
    assert made(tree, *words, "+allow-unknown") == found
    text = built_text(found)
    assert "not in this tree, and left out: CONFIG_GONE, CONFIG_AWAY" in text
    assert "changed nothing: CONFIG_OLD_DRIVER" in text
    assert f"+{fragment}: a config fragment with 3 options, over the base" in text
    assert "granted otherwise: DEBUG_LIST y -> n, FORMER y -> n" in text
    assert said[:3] == [
        "CONFIG_OLD_DRIVER changes nothing: what it sets is so already",
        "this tree does not have CONFIG_GONE, CONFIG_AWAY",
        f"of {base}, not granted as it has them: DEBUG_LIST y -> n, FORMER y -> n",
    ]


@pytest.mark.slow
def test_notes_of_a_kernel_are_of_the_spec_that_asks_for_it(tree: Path) -> None:
    text = "CONFIG_DEBUG_KERNEL=y\nCONFIG_DEBUG_LIST=y\n"
    (tree.parent / "one.config").write_text(text)
    (tree.parent / "two.config").write_text(text)
    words = [f"+{tree.parent}/{name}.config" for name in ("one", "two")]
    first, _ = kernel(tree, words[0])
    both, both_again = kernel(tree, *words)[0], kernel(tree, *words)[0]
    assert first.identity == both.identity
    idle = SpecNote(f"{tree.parent}/two.config changes nothing: what it sets is so already")
    assert (first.notes, both.notes, both_again.notes) == ((), (idle,), (idle,))
    assert kernel(tree, words[0])[0].notes == ()
    bases = [f"+base:{word[1:]}" for word in words]
    replaced = kernel(tree, *bases)[0].notes[0]
    assert replaced == SpecNote(
        f"{bases[0]} does not count: the base is {bases[1]}, which comes later", lost=True
    )


@pytest.mark.slow
def test_hunks_with_fuzz_stand_in_the_log_and_the_record_of_their_kernel(tree: Path) -> None:
    word = f"+{tree.parent}/a.patch"
    (tree.parent / "a.patch").write_text(diff().replace(" {", " [").replace("lock(", "look("))
    status = failure(tree, word).status
    assert status is RunStatus.DOES_NOT_APPLY
    said: list[str] = []
    found = made(tree, word, "+fuzz:2", said=said)
    assert isinstance(found, Kernel)
    note = "a.patch: kernel/core.c, hunk 1: fuzz 2"
    assert note in said
    assert f"    {note}" in built_text(found).splitlines()
    (tree.parent / "a.patch").write_text(diff())
    assert kernel(tree, word)[0].identity == found.identity


@pytest.mark.slow
def test_patches_that_undo_each_other_change_nothing_and_that_is_reported(tree: Path) -> None:
    (tree.parent / "a.patch").write_text(diff())
    back = diff().replace("-\tclear_pages(2)", "-\tclear_pages(3)")
    (tree.parent / "b.patch").write_text(back.replace("+\tclear_pages(3)", "+\tclear_pages(2)"))
    said: list[str] = []
    found = made(tree, f"+{tree.parent}/a.patch", f"+{tree.parent}/b.patch", said=said)
    assert isinstance(found, Kernel)
    assert found.identity == kernel(tree)[0].identity
    assert "the patches change nothing of linux: it is the same with them" in said
    other = patch(tree, "mm/pages.c", "\tint i = 0;", "\tint i = 1;")
    said.clear()
    changed = made(
        tree, f"+{tree.parent}/a.patch", f"+{other}", f"+{tree.parent}/b.patch", said=said
    )
    assert isinstance(changed, Kernel)
    assert changed.identity == kernel(tree, f"+{other}")[0].identity
    wanted = "changes nothing: with all patches, its files are as without any"
    assert {line for line in said if wanted in line} == {f"a.patch {wanted}", f"b.patch {wanted}"}


def test_a_request_has_each_file_as_it_was_at_one_time(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fragment = tree.parent / "x.config"
    fragment.write_text(FRAGMENT)
    spec = parse_kernel_spec(f"tree:{tree} +{fragment}")
    assert isinstance(spec, SourceSpec)
    source = source_of(spec, print)
    assert isinstance(source, Source)
    read: list[Path] = []

    def noted(path: Path) -> GivenFile:
        read.append(path)
        return given_at(path)

    monkeypatch.setattr("kdelta.kernels.sources.given.given_at", noted)
    assert build_question(spec, source)
    assert read == [fragment]
