# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels of files under odd names and packed: those of what the files hold."""

from pathlib import Path

import pytest

from kdelta.kernels.config.kconfig import parse_config
from tests.kernels.sources.given_files import CUT, FRAGMENT, LONG, MAILBOX, PACKERS, PLAIN, SERIES
from tests.kernels.trees import fake_tree, kernel

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


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
