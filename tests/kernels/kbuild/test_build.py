# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels from a source tree: what is built, what is built again, and what a failure tells."""

from pathlib import Path
from shutil import which

import pytest

from kdelta.host.dirs import cache_dir
from kdelta.kernels.config.kconfig import parse_config
from kdelta.kernels.kbuild.built import built_kernels
from kdelta.kernels.model import Kernel
from kdelta.kernels.objects.digest_file import load_digest
from kdelta.spec.errors import LabError, UserError
from kdelta.spec.run import RunStatus
from tests.caches import forget_checks
from tests.conftest import FakeProgram
from tests.kernels.trees import compiled, failure, fake_tree, kernel, made, patch

DEBUG = ("+CONFIG_DEBUG_KERNEL=y", "+CONFIG_DEBUG_LIST=y")

pytestmark = [pytest.mark.build, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return fake_tree(tmp_path)


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.stat().st_size)
        for path in sorted(folder.rglob("*"))
    }


def test_a_kernel_is_built_and_kept(tree: Path) -> None:
    found, built = kernel(tree, *DEBUG)
    assert (found.release, found.image_format, found.arch) == ("6.12.99", "vmlinux", "x86_64")
    assert found.spec == f"tree:{tree} +CONFIG_DEBUG_KERNEL=y +CONFIG_DEBUG_LIST=y"
    config = parse_config(Path(found.config or "").read_text())
    assert config["CONFIG_DEBUG_LIST"] == "y"
    assert built.asked == {"CONFIG_DEBUG_KERNEL": "y", "CONFIG_DEBUG_LIST": "y"}
    assert "kernel/debug_list.o" in load_digest(built.path / "digest").objects
    assert "kernel/core.o" in compiled(built)


@pytest.mark.slow
def test_nothing_is_written_into_the_tree(tree: Path) -> None:
    before = listing(tree)
    kernel(tree, *DEBUG)
    kernel(tree, f"+{patch(tree, 'mm/pages.c', 'static int pages[64];', 'static int pages[9];')}")
    assert listing(tree) == before


def test_the_same_spec_again_runs_no_make(tree: Path, fake_program: FakeProgram) -> None:
    first, _ = kernel(tree, *DEBUG)
    fake_program("make", "#!/bin/sh\n[ $1 = --version ] && exec /usr/bin/make $1\nexit 1\n")
    again, _ = kernel(tree, *DEBUG)
    assert again == first
    assert failure(tree).status is RunStatus.CONFIG_REFUSED, "the fake make is not used at all"


@pytest.mark.slow
def test_boot_parameters_build_nothing(tree: Path, fake_program: FakeProgram) -> None:
    plain, record = kernel(tree, *DEBUG)
    fake_program("make", "#!/bin/sh\n[ $1 = --version ] && exec /usr/bin/make $1\nexit 1\n")
    booted, again = kernel(tree, "+cmdline:mitigations=off", *DEBUG)
    assert again == record
    assert booted.spec == f"tree:{tree} +cmdline:mitigations=off {' '.join(DEBUG)}"
    assert (booted.image, booted.parameters) == (plain.image, ("mitigations=off",))
    assert booted.identity != plain.identity
    failed = failure(tree, "+cmdline:nosmt")
    assert failed.spec == f"tree:{tree} +cmdline:nosmt"
    assert failed.identity == failure(tree).identity


@pytest.mark.slow
def test_the_same_kernel_wherever_and_whenever_it_is_built(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, _ = kernel(tree, *DEBUG)
    kernel(tree)
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("KBUILD_BUILD_USER", "somebody")
    monkeypatch.setenv("KCFLAGS", "-O0")
    kernel(tree, "+CONFIG_ZERO_PAGES=y")
    incremental, built = kernel(tree, *DEBUG)
    assert compiled(built) != []
    assert incremental.image != fresh.image
    assert Path(incremental.image).read_bytes() == Path(fresh.image).read_bytes()
    assert incremental.identity == fresh.identity


@pytest.mark.slow
def test_the_same_kernel_with_and_without_ccache(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None if name == "ccache" else which(name))
    without, built = kernel(tree, *DEBUG)
    assert "ccache" not in (built.path / "build.log").read_text().splitlines()[0].split("make")[1]
    assert b"../src/init/version.c\0" in Path(without.image).read_bytes()
    monkeypatch.undo()
    monkeypatch.setenv("KDELTA_CACHE_DIR", str(tmp_path / "other"))
    with_it, built = kernel(tree, *DEBUG)
    assert "CC=ccache gcc" in (built.path / "build.log").read_text().splitlines()[0]
    assert with_it.identity == without.identity


def test_an_architecture_that_cannot_be_booted(tree: Path) -> None:
    with pytest.raises(UserError, match="s390 cannot be booted"):
        made(tree, "ARCH=s390")


def test_a_config_for_32_bits(tree: Path) -> None:
    found = failure(tree, "+# CONFIG_64BIT is not set")
    assert found.status is RunStatus.CONFIG_REFUSED
    assert "32-bit" in found.detail


def test_a_missing_header_of_the_builds_own_is_the_labs(
    tree: Path, fake_program: FakeProgram
) -> None:
    words = "elf.c:5:10: fatal error: gelf.h: No such file or directory"
    compiler = fake_program(
        "headless-gcc",
        f'#!/bin/sh\n[ $1 = --version ] && echo gcc && exit\necho "{words}"; exit 1\n',
    )
    with pytest.raises(LabError, match=r"header gelf\.h is missing") as caught:
        made(tree, f"+CC={compiler}")
    assert "libelf-dev" in caught.value.hint


@pytest.mark.slow
def test_what_a_users_shell_has_set_changes_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = kernel(tree)
    for name in (
        "KCFLAGS",
        "CC",
        "LLVM",
        "ARCH",
        "V",
        "O",
        "KBUILD_OUTPUT",
        "GNUMAKEFLAGS",
        "CPATH",
    ):
        monkeypatch.setenv(name, "nonsense")
    Path(found.image).unlink()
    assert kernel(tree)[0] == found


def test_only_what_an_option_reaches_is_compiled_again(tree: Path) -> None:
    _, first = kernel(tree, "+CONFIG_DEBUG_KERNEL=y")
    assert len(compiled(first)) == 5
    _, second = kernel(tree, *DEBUG)
    assert compiled(second) == ["kernel/core.o", "kernel/debug_list.o"]


@pytest.mark.slow
def test_only_what_a_patch_reaches_is_compiled_again(tree: Path) -> None:
    plain, _ = kernel(tree)
    fix = patch(tree, "kernel/lock.c", "\t*it += 1;", "\t*it += 2;")
    patched, built = kernel(tree, f"+{fix}")
    assert compiled(built) == ["kernel/lock.o"]
    assert patched.identity != plain.identity


@pytest.mark.slow
def test_requests_that_come_to_the_same_config_share_a_kernel(tree: Path) -> None:
    first, _ = kernel(tree, "+CONFIG_DEBUG_KERNEL=y")
    second, _ = kernel(tree, "+CONFIG_DEBUG_KERNEL=y", "+# CONFIG_DEBUG_LIST is not set")
    assert (second.built, second.identity) == (first.built, first.identity)
    assert second.spec != first.spec
    assert len(built_kernels()) == 1


@pytest.mark.slow
def test_flags_make_another_kernel(tree: Path) -> None:
    plain, _ = kernel(tree)
    other, built = kernel(tree, "+KCFLAGS=-O1 -fno-inline")
    assert other.identity != plain.identity
    assert built.variables == {"KCFLAGS": "-O1 -fno-inline"}


@pytest.mark.slow
def test_a_kernel_that_was_removed_is_built_again(tree: Path) -> None:
    first, built = kernel(tree)
    (built.path / "vmlinux").write_bytes(b"damaged")
    forget_checks()
    again, _ = kernel(tree)
    assert again == first
    assert Path(again.image).read_bytes() != b"damaged"


def test_what_the_lab_needs_is_added_and_said(tree: Path) -> None:
    _, built = kernel(tree, "+defconfig")
    assert "PVH n -> y" in [str(flip) for flip in built.lab]
    assert built.base == "defconfig"


def test_options_that_are_not_granted(tree: Path) -> None:
    found = failure(tree, "+CONFIG_DEBUG_LIST=y", "+CONFIG_NONSENSE=y")
    assert found.status is RunStatus.CONFIG_REFUSED
    head, first, second = found.detail.splitlines()
    assert head == "2 options were not granted:"
    assert first.startswith("  CONFIG_DEBUG_LIST=y was not granted (it is off): its dependencies")
    assert first.endswith("CONFIG_DEBUG_KERNEL is off")
    assert second.endswith("this tree has no such option for x86")
    assert [one.option for one in found.refused] == ["CONFIG_DEBUG_LIST", "CONFIG_NONSENSE"]
    assert built_kernels() == []


def test_file_that_an_option_names_and_that_is_missing_is_refused_before_the_build(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The fake tree has no options with texts.
    monkeypatch.setattr("kdelta.kernels.kbuild.build.parse_config", lambda _: NAMING_ONE)
    found = failure(tree)
    assert found.status is RunStatus.CONFIG_REFUSED
    assert found.detail.endswith('KSYMS_WHITELIST="away" names away, which is not there')


NAMING_ONE = {"CONFIG_64BIT": "y", "CONFIG_UNUSED_KSYMS_WHITELIST": '"away"'}


def test_a_target_that_the_tree_does_not_have(tree: Path) -> None:
    found = failure(tree, "+nonsense_defconfig")
    assert found.status is RunStatus.CONFIG_REFUSED
    assert "nonsense_defconfig" in found.detail


@pytest.mark.slow
def test_a_compile_error_names_its_line_and_the_log(tree: Path) -> None:
    broken = patch(tree, "mm/pages.c", "static int pages[64];", "static integer pages[64];")
    found = failure(tree, f"+{broken}")
    assert found.status is RunStatus.BUILD_FAILED
    assert "mm/pages.c:2: " in found.detail
    assert "integer" in found.detail
    assert found.log is not None
    assert "unknown type name" in Path(found.log).read_text()
    assert isinstance(made(tree), Kernel), "the next kernel is built as ever"


@pytest.mark.slow
def test_a_link_error_names_the_symbol(tree: Path) -> None:
    broken = patch(tree, "kernel/core.c", "\tclear_pages(2);", "\tclear_all_pages(2);")
    fix = patch(tree, "kernel/core.c", "int clear_pages(int count);", "int clear_all_pages(int c);")
    found = failure(tree, f"+{fix}", f"+{broken}")
    assert found.status is RunStatus.BUILD_FAILED
    assert found.detail.startswith("linking failed: ")
    assert "undefined reference to `clear_all_pages'" in found.detail


def test_a_patch_that_does_not_apply_is_told_by_its_hunk(tree: Path) -> None:
    fix = patch(tree, "mm/pages.c", "static int pages[64];", "static int pages[9];")
    source = tree / "mm/pages.c"
    source.write_text(source.read_text().replace("static int pages[64];", "static long p[64];"))
    found = failure(tree, f"+{fix}")
    assert found.status is RunStatus.DOES_NOT_APPLY
    assert f"{fix.name}: mm" in found.detail
    assert "mm/pages.c, hunk 1" in found.detail


def test_a_compiler_killed_for_memory(tree: Path, fake_program: FakeProgram) -> None:
    words = "gcc: fatal error: Killed signal terminated program cc1"
    compiler = fake_program(
        "killed-gcc", f"#!/bin/sh\n[ $1 = --version ] && echo gcc && exit\necho '{words}'; exit 1\n"
    )
    found = failure(tree, f"+CC={compiler}")
    assert found.status is RunStatus.BUILD_FAILED
    assert "too little memory" in found.detail


def test_a_full_disk_is_the_labs(tree: Path, fake_program: FakeProgram) -> None:
    words = "Assembler messages: Fatal error: can't write 12 bytes: No space left on device"
    compiler = fake_program(
        "full-gcc", f'#!/bin/sh\n[ $1 = --version ] && echo gcc && exit\necho "{words}"; exit 1\n'
    )
    with pytest.raises(LabError, match="No space left") as caught:
        made(tree, f"+CC={compiler}")
    assert "KDELTA_CACHE_DIR" in caught.value.hint


def test_a_missing_compiler_is_the_labs(tree: Path) -> None:
    with pytest.raises(LabError, match="no-such-gcc"):
        made(tree, "CROSS_COMPILE=no-such-")


def test_a_missing_config_is_the_users_slip(tree: Path) -> None:
    with pytest.raises(UserError, match=r"there is no file mine.config"):
        made(tree, "+./mine.config")


@pytest.mark.slow
def test_the_trees_own_config_is_where_a_kernel_starts(tree: Path) -> None:
    (tree / ".config").write_text("CONFIG_ZERO_PAGES=y\n")
    found, built = kernel(tree)
    assert parse_config(Path(found.config or "").read_text())["CONFIG_ZERO_PAGES"] == "y"
    assert built.base == "the tree's .config"


@pytest.mark.slow
def test_logs_stay_in_the_cache(tree: Path) -> None:
    kernel(tree)
    assert [path.suffix for path in cache_dir("logs").iterdir()] == [".log"]
