# SPDX-License-Identifier: GPL-2.0-or-later
"""+kernel-mode: the package's patches on a tree, their options, and what does not go with them."""

from pathlib import Path

import pytest

from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.model import Kernel
from kdelta.kernels.sources import mode_series
from kdelta.spec.change import KernelModeChange, parse_change
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.kernel import parse_kernel_spec
from kdelta.spec.run import RunStatus
from tests.kernels.trees import compiled, failure, fake_tree, kernel, made, patch

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]

OPTION = """\
--- a/Kconfig
+++ b/Kconfig
@@ -39,4 +39,8 @@
 \tbool "A driver that nothing calls"
+
+config KERNEL_MODE
+\tbool "Programs in kernel mode"
+\tdepends on !OLD_DRIVER
\x20
 config SLOW
 \tbool "Takes long to compile"
"""
CALLS = """\
--- a/mm/pages.c
+++ b/mm/pages.c
@@ -1,3 +1,3 @@
 /* SPDX-License-Identifier: GPL-2.0-or-later */
-static int pages[64];
+static int pages[32];
 int clear_pages(int count)
"""
FRAGMENT = "CONFIG_KERNEL_MODE=y\n# CONFIG_DEBUG_LOCK is not set\n# CONFIG_OLD_DRIVER is not set\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


@pytest.fixture(autouse=True)
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "kernel_mode"
    (folder / "6.12").mkdir(parents=True)
    (folder / "6.12" / "0001-option.patch").write_text(OPTION)
    (folder / "6.12" / "0002-calls.patch").write_text(CALLS)
    (folder / "kernel-mode.config").write_text(FRAGMENT)
    monkeypatch.setattr(mode_series, "_folder", lambda: folder)
    return folder


def of_version(tree: Path, version: str) -> None:
    major, _, minor = version.partition(".")
    makefile = tree / "Makefile"
    text = makefile.read_text().replace("VERSION = 6\n", f"VERSION = {major}\n", 1)
    makefile.write_text(text.replace("PATCHLEVEL = 12\n", f"PATCHLEVEL = {minor}\n", 1))


def test_the_change_has_a_text() -> None:
    assert parse_change("+kernel-mode") == KernelModeChange()
    spec = parse_kernel_spec("deb-src:linux-source-6.12 +kernel-mode +CONFIG_A=y")
    assert str(spec) == "deb-src:linux-source-6.12 +kernel-mode +CONFIG_A=y"


@pytest.mark.slow
def test_patches_are_applied_and_the_fragment_is_merged(tree: Path) -> None:
    kernel(tree)
    found, built = kernel(tree, "+kernel-mode", "+CONFIG_DEBUG_KERNEL=y")
    config = parse_config(Path(found.config or "").read_text())
    assert (config["CONFIG_KERNEL_MODE"], config["CONFIG_DEBUG_LOCK"]) == ("y", "n")
    assert built.asked["CONFIG_KERNEL_MODE"] == "y"
    assert "mm/pages.o" in compiled(built)


def test_a_users_patch_is_applied_in_its_turn(tree: Path) -> None:
    before = patch(tree, "mm/pages.c", "static int pages[64];", "static int pages[9];")
    found = failure(tree, f"+{before}", "+kernel-mode")
    assert "+kernel-mode: 0002-calls.patch: mm/pages.c, hunk 1" in found.detail
    found = failure(tree, "+kernel-mode", f"+{before}")
    assert found.detail.startswith(f"{before.name}: mm/pages.c, hunk 1")


@pytest.mark.slow
def test_asking_twice_is_asking_once(tree: Path) -> None:
    assert kernel(tree, "+kernel-mode", "+kernel-mode")[0].identity == (
        kernel(tree, "+kernel-mode")[0].identity
    )


@pytest.mark.slow
def test_another_version_to_which_the_patches_apply(tree: Path) -> None:
    of_version(tree, "6.13")
    assert isinstance(made(tree, "+kernel-mode"), Kernel)


def test_a_version_to_which_a_patch_does_not_apply(tree: Path) -> None:
    of_version(tree, "6.6")
    source = tree / "mm/pages.c"
    source.write_text(source.read_text().replace("static int pages[64];", "static long p[64];"))
    found = failure(tree, "+kernel-mode")
    assert found.status is RunStatus.DOES_NOT_APPLY
    assert found.detail == (
        "+kernel-mode: 0002-calls.patch: mm/pages.c, hunk 1 (line 1): the context "
        "differs: the tree's file has no line `static int pages[64];`; the patches are for Linux "
        "6.12, this is 6.6"
    )


@pytest.mark.parametrize(
    ("version", "expected"), [("6.12", "6.12"), ("6.20", "6.18"), ("6.17", "6.12"), ("6.1", "6.12")]
)
def test_the_nearest_series_that_is_not_newer(series: Path, version: str, expected: str) -> None:
    (series / "6.18").mkdir()
    (series / "6.18" / "0001-later.patch").write_text(OPTION)
    major, minor = version.split(".")
    found = mode_series.kernel_mode_series(f"VERSION = {major}\nPATCHLEVEL = {minor}\n")
    assert found.version == tuple(map(int, expected.split(".")))
    assert found.files[0].parent.name == expected


@pytest.mark.parametrize("kernel_mode_first", [True, False])
@pytest.mark.slow
def test_a_wish_that_conflicts_is_refused(tree: Path, kernel_mode_first: bool) -> None:
    words = ["+CONFIG_OLD_DRIVER=y", "+kernel-mode"]
    found = failure(tree, *(reversed(words) if kernel_mode_first else words))
    assert found.status is RunStatus.CONFIG_REFUSED
    assert [(one.option, one.asked) for one in found.refused] == [("CONFIG_KERNEL_MODE", "y")]
    assert "its dependencies are not met: CONFIG_OLD_DRIVER is on" in found.detail


def test_a_config_file_that_conflicts_is_refused_too(tree: Path, tmp_path: Path) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("CONFIG_OLD_DRIVER=y\n")
    found = failure(tree, f"+{fragment}", "+kernel-mode")
    assert "CONFIG_KERNEL_MODE=y was not granted" in found.detail


@pytest.mark.slow
def test_a_whole_config_does_not_undo_it(tree: Path) -> None:
    found, _ = kernel(tree, "+kernel-mode", "+defconfig")
    assert parse_config(Path(found.config or "").read_text())["CONFIG_KERNEL_MODE"] == "y"


def test_other_architectures_have_no_kernel_mode(tree: Path) -> None:
    with pytest.raises(UserError, match=r"\+kernel-mode on a kernel for arm64"):
        made(tree, "ARCH=arm64", "+kernel-mode")


def test_a_package_without_patches(tree: Path, series: Path) -> None:
    for path in sorted(series.rglob("*.patch")):
        path.unlink()
    (series / "6.12").rmdir()
    with pytest.raises(LabError, match="patches of"):
        made(tree, "+kernel-mode")
